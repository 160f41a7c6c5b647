import type { Socket } from "node:net";
import { clientNetwork, type ProxyConfig } from "../../model/serving.js";
import { plainAddress } from "./clientInfo.js";

/**
 * Counts the client connections of a worker on all its listeners and refuses those beyond the limits. There is one
 * limit for all clients together and one for each client, so that a single client cannot use up all connections. Also
 * knows when the last connection has closed.
 */
export class ConnectionGate {
  private open = 0;
  private readonly openByClient = new Map<string, number>();
  private readonly warnedAt = new Map<string, number>();
  private waiting: (() => void)[] = [];

  /**
   * @param trusted whether an address belongs to a trusted proxy, which has many clients and so no limit per client
   * @param warn called at most once a minute for each limit, however many connections are refused
   */
  constructor(
    private readonly limits: Pick<ProxyConfig["limits"], "connectionsMax" | "connectionsPerClientMax">,
    private readonly trusted: (address: string) => boolean,
    private readonly warn: (message: string) => void,
  ) {}

  /** Open connections. */
  get clientConnections(): number {
    return this.open;
  }

  /** Clients with open connections, as far as they are counted by client. */
  get clients(): number {
    return this.openByClient.size;
  }

  /** True if the connection may stay; otherwise it is already closed. */
  admit(socket: Socket): boolean {
    if (this.open >= this.limits.connectionsMax) return this.refuse(socket, "connectionsMax", "");
    // Undefined if the peer is already gone.
    const client = this.clientAt(plainAddress(socket.remoteAddress ?? ""));
    if (!this.count(socket, client)) return false;
    this.open++;
    socket.on("close", () => {
      this.leave(client);
      this.closed();
    });
    return true;
  }

  /** The same for a connection whose client is not known yet; {@link identify} follows. */
  admitUnidentified(socket: Socket): boolean {
    if (this.open >= this.limits.connectionsMax) return this.refuse(socket, "connectionsMax", "");
    this.open++;
    socket.on("close", () => this.closed());
    return true;
  }

  /** True if the connection may stay; otherwise it is already closed. */
  identify(socket: Socket, address: string): boolean {
    const client = this.clientAt(address);
    if (!this.count(socket, client)) return false;
    socket.on("close", () => this.leave(client));
    return true;
  }

  /** Resolves when no connection is open. */
  empty(): Promise<void> {
    return this.open === 0 ? Promise.resolve() : new Promise((resolve) => this.waiting.push(resolve));
  }

  /** The client that a connection is counted for; undefined for a trusted proxy. */
  private clientAt(address: string): string | undefined {
    return this.trusted(address) ? undefined : clientNetwork(address);
  }

  private count(socket: Socket, client: string | undefined): boolean {
    if (client === undefined) return true;
    const open = this.openByClient.get(client) ?? 0;
    if (open >= this.limits.connectionsPerClientMax)
      return this.refuse(socket, "connectionsPerClientMax", ` by ${client}`);
    this.openByClient.set(client, open + 1);
    return true;
  }

  private leave(client: string | undefined): void {
    if (client === undefined) return;
    const left = this.openByClient.get(client)! - 1;
    if (left === 0) this.openByClient.delete(client);
    else this.openByClient.set(client, left);
  }

  private closed(): void {
    this.open--;
    if (this.open > 0) return;
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  private refuse(socket: Socket, limit: "connectionsMax" | "connectionsPerClientMax", byWhom: string): false {
    socket.destroy();
    const now = performance.now();
    if (now - (this.warnedAt.get(limit) ?? -Infinity) >= WARN_MS) {
      this.warnedAt.set(limit, now);
      this.warn(`limits.${limit} (${this.limits[limit]}) is reached${byWhom}: new connections are closed`);
    }
    return false;
  }
}

const WARN_MS = 60_000;
