import type { Socket } from "node:net";
import { clientNetwork, type ProxyConfig } from "../../model/serving.js";
import { plainAddress } from "./clientInfo.js";

/**
 * Ends client connections that wait for a request, those first that have waited longest.
 *
 * @param most how many
 * @param counts whether the end of a connection makes room, by its TCP socket
 * @returns the TCP sockets of those that it ended
 */
export type MakeRoom = (most: number, counts: (socket: Socket) => boolean) => Iterable<Socket>;

/**
 * Counts the client connections of a worker on all its listeners. There is one limit for all clients together and one for
 * each client, so that a single client cannot use up all connections. Beyond a limit a new connection takes the place of one
 * that waits for a request, as in nginx, or else is refused. Also knows when the last connection has closed.
 */
export class ConnectionGate {
  /** Those that count, each with the client that the connection counts for, too. */
  private readonly counted = new Map<Socket, string | undefined>();
  private readonly openByClient = new Map<string, number>();
  private readonly warnedAt = new Map<string, number>();
  /** Clients, and `undefined` for all, for which there was no room to make a moment ago. */
  private readonly full = new Set<string | undefined>();
  private fullUntil = -Infinity;
  private waiting: (() => void)[] = [];
  private readonly closed: (this: Socket) => void;

  /**
   * @param trusted whether an address belongs to a trusted proxy, which has many clients and so no limit per client
   * @param warn called at most once a minute for each limit, however many connections are refused or ended
   */
  constructor(
    private readonly limits: Pick<ProxyConfig["limits"], "connectionsMax" | "connectionsPerClientMax">,
    private readonly trusted: (address: string) => boolean,
    private readonly warn: (message: string) => void,
    private readonly makeRoom: MakeRoom,
  ) {
    const release = (socket: Socket): void => this.release(socket);
    this.closed = function (this: Socket) {
      release(this);
    };
  }

  /** Open connections. */
  get clientConnections(): number {
    return this.counted.size;
  }

  /** Clients with open connections, as far as they are counted by client. */
  get clients(): number {
    return this.openByClient.size;
  }

  /** True if the connection may stay; otherwise it is already closed. */
  admit(socket: Socket): boolean {
    // Undefined if the peer is already gone.
    const client = this.clientAt(plainAddress(socket.remoteAddress ?? ""));
    // In this order: a client that may have no more must not cost others theirs.
    if ((client !== undefined && !this.hasRoom(client)) || !this.hasRoom()) return this.refuse(socket);
    this.add(socket);
    this.assign(socket, client);
    return true;
  }

  /** The same for a connection whose client is not known yet; {@link identify} follows. */
  admitUnidentified(socket: Socket): boolean {
    if (!this.hasRoom()) return this.refuse(socket);
    this.add(socket);
    return true;
  }

  /** True if the connection may stay; otherwise it is already closed. */
  identify(socket: Socket, address: string): boolean {
    const client = this.clientAt(address);
    if (client !== undefined && !this.hasRoom(client)) return this.refuse(socket);
    this.assign(socket, client);
    return true;
  }

  /** Resolves when no connection is open. */
  empty(): Promise<void> {
    return this.counted.size === 0 ? Promise.resolve() : new Promise((resolve) => this.waiting.push(resolve));
  }

  /** The client that a connection is counted for; undefined for a trusted proxy. */
  private clientAt(address: string): string | undefined {
    return this.trusted(address) ? undefined : clientNetwork(address);
  }

  private add(socket: Socket): void {
    this.counted.set(socket, undefined);
    socket.on("close", this.closed);
  }

  private assign(socket: Socket, client: string | undefined): void {
    if (client === undefined) return;
    this.openByClient.set(client, (this.openByClient.get(client) ?? 0) + 1);
    this.counted.set(socket, client);
  }

  /** @param client undefined for all together */
  private hasRoom(client?: string): boolean {
    const limit = client === undefined ? "connectionsMax" : "connectionsPerClientMax";
    const most = this.limits[limit];
    const open = (): number =>
      client === undefined ? this.counted.size : (this.openByClient.get(client) ?? 0);
    if (open() < most) return true;
    const wanted = Math.ceil(most * ROOM_SHARE);
    // A connection that was ended a moment ago counts no more, and so makes no room again.
    const counts = (socket: Socket): boolean =>
      client === undefined ? this.counted.has(socket) : this.counted.get(socket) === client;
    const ended = this.isFull(client) ? [] : [...this.makeRoom(wanted, counts)];
    for (const socket of ended) this.release(socket);
    if (ended.length < wanted) this.full.add(client);
    const hasRoom = open() < most;
    const byWhom = client === undefined ? "" : ` by ${client}`;
    this.report(limit, `limits.${limit} (${most}) is reached${byWhom}`, hasRoom);
    return hasRoom;
  }

  /** To look for connections that wait takes as long as there are connections, so that is not done for each that comes. */
  private isFull(client: string | undefined): boolean {
    const now = performance.now();
    if (now >= this.fullUntil) {
      this.full.clear();
      this.fullUntil = now + FULL_MS;
    }
    return this.full.has(client);
  }

  private release(socket: Socket): void {
    const client = this.counted.get(socket);
    if (!this.counted.delete(socket)) return;
    if (client !== undefined) {
      const left = this.openByClient.get(client)! - 1;
      if (left === 0) this.openByClient.delete(client);
      else this.openByClient.set(client, left);
    }
    if (this.counted.size > 0) return;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  private refuse(socket: Socket): false {
    this.release(socket);
    socket.destroy();
    return false;
  }

  private report(limit: string, reached: string, makesRoom: boolean): void {
    const now = performance.now();
    const what = makesRoom
      ? "new connections take the place of connections that wait for a request"
      : "new connections are closed";
    if (now - (this.warnedAt.get(limit + what) ?? -Infinity) < WARN_MS) return;
    this.warnedAt.set(limit + what, now);
    this.warn(`${reached}: ${what}`);
  }
}

const WARN_MS = 60_000;
/** A limit's share of connections that are ended at once: to look for one at a time would cost more than to end it. */
const ROOM_SHARE = 1 / 64;
const FULL_MS = 250;
