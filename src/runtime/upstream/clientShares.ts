import { clientNetwork, type UpstreamConfig } from "../../model/serving.js";

/** A client's use of an upstream at present. */
export interface ConnectionUser {
  /** Connections that requests of it use. */
  inUse: number;
  /** The user's requests that wait, in the order they came, and until when each does; undefined before the first. */
  waiting: Map<unknown, number> | undefined;
}

/** A request whose turn it is. */
export interface ShareTaker<T> {
  readonly taker: T;
  readonly user: ConnectionUser;
}

/** Something that a client can use. */
interface Used {
  /** Whose request it serves; undefined if none. */
  user: ConnectionUser | undefined;
}

/**
 * Which of an upstream's connections, and of the places in the queue for them, each client has. Without a bound for each,
 * a client of HTTP/2 alone could have all of them; in a queue without turns, a client with a thousand requests would make
 * everybody wait for all of these.
 */
export class ClientShares<T> {
  /** How many requests wait. */
  queued = 0;
  /** Why no connection is made at the moment, for the error log. */
  obstacle: string | undefined = undefined;
  private readonly users = new Map<string, ConnectionUser>();
  /** The users whose requests wait, the next one first. */
  private readonly turns = new Set<ConnectionUser>();
  /** A client sends many requests in a row. */
  private lastAddress: string | undefined = undefined;
  private lastUser: ConnectionUser = { inUse: 0, waiting: undefined };
  private readonly connectionsMax: number;
  private readonly queuedMax: number;

  constructor(private readonly config: UpstreamConfig) {
    const share = (all: number): number =>
      Math.max(Math.min(all, 1), Math.floor((all * config.clientSharePercent) / 100));
    this.connectionsMax = share(config.connectionsMax);
    this.queuedMax = share(config.queuedRequestsMax);
  }

  userAt(address: string): ConnectionUser {
    if (address === this.lastAddress) return this.lastUser;
    const key = clientNetwork(address);
    let user = this.users.get(key);
    if (user === undefined) this.users.set(key, (user = { inUse: 0, waiting: undefined }));
    this.lastAddress = address;
    this.lastUser = user;
    return user;
  }

  mayUse(user: ConnectionUser): boolean {
    return user.inUse < this.connectionsMax;
  }

  used(connection: Used, user: ConnectionUser): void {
    connection.user = user;
    user.inUse++;
  }

  /** A connection serves no request any more. */
  unused(connection: Used): void {
    if (connection.user === undefined) return;
    connection.user.inUse--;
    connection.user = undefined;
  }

  /** @returns why it cannot wait, for the error log */
  enqueue(user: ConnectionUser, taker: T, deadline: number): string | undefined {
    if (this.queued >= this.config.queuedRequestsMax)
      return `${this.inUseBy(user)}, and the queue for one is full`;
    const waiting = (user.waiting ??= new Map());
    if (waiting.size >= this.queuedMax) return `${this.inUseBy(user)}, and its share of the queue is full`;
    waiting.set(taker, deadline);
    this.queued++;
    this.turns.add(user);
    return undefined;
  }

  leave(taker: T, address: string): void {
    const user = this.userAt(address);
    if (user.waiting?.delete(taker) !== true) return;
    this.queued--;
    if (user.waiting.size === 0) this.turns.delete(user);
  }

  /** The request whose turn it is; undefined if none waits that may have a connection. */
  next(): ShareTaker<T> | undefined {
    for (const user of this.turns)
      if (this.mayUse(user)) return { user, taker: user.waiting!.keys().next().value as T };
    return undefined;
  }

  /** The first waiting request, whether or not it may have a connection; undefined if there is none. */
  first(): ShareTaker<T> | undefined {
    for (const user of this.turns) return { user, taker: user.waiting!.keys().next().value as T };
    return undefined;
  }

  /** The request gets a connection; the next turn is another client's. */
  served({ user, taker }: ShareTaker<T>): void {
    const waiting = user.waiting!;
    waiting.delete(taker);
    this.queued--;
    this.turns.delete(user);
    if (waiting.size > 0) this.turns.add(user);
  }

  /** @param refuse called for each that has waited too long, and is out of the queue, with the reason */
  sweep(now: number, refuse: (taker: T, reason: string) => void): void {
    for (const user of this.turns) {
      // All wait equally long.
      for (const [taker, deadline] of user.waiting!) {
        if (now < deadline) break;
        this.served({ user, taker: taker as T });
        refuse(
          taker as T,
          `${this.inUseBy(user)}, and no connection became free within ${this.config.queueTimeoutMs} ms`,
        );
      }
    }
    for (const [key, user] of this.users)
      if (user.inUse === 0 && (user.waiting?.size ?? 0) === 0) this.users.delete(key);
    this.lastAddress = undefined;
  }

  private inUseBy(user: ConnectionUser): string {
    if (this.obstacle !== undefined) return this.obstacle;
    const { connectionsMax } = this.config;
    if (this.mayUse(user) || this.connectionsMax === connectionsMax)
      return `all ${connectionsMax} connections to upstream are in use`;
    return `the client uses its share of the connections to upstream (${this.connectionsMax} of ${connectionsMax})`;
  }
}
