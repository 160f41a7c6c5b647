import type { ClientInfo } from "../exchange/exchange.js";

/** A client connection, and the client whose requests a trusted proxy sends on it. */
export type ClientKey = string;

export const clientConnection = ({ connectionId, address }: ClientInfo): ClientKey =>
  `${connectionId} ${address}`;

/** What can be kept for one client connection. */
interface Keepable {
  readonly onlyFor: ClientKey | undefined;
  destroy(): void;
}

/** Idle connections to one server, each of which waits for requests of one client connection. */
export class KeptConnections<C extends Keepable> {
  private readonly byClient = new Map<ClientKey, C>();

  /** @param max how many there are at most */
  constructor(private readonly max: number) {}

  get size(): number {
    return this.byClient.size;
  }

  has(client: ClientInfo): boolean {
    return this.size > 0 && this.byClient.has(clientConnection(client));
  }

  take(client: ClientInfo): C | undefined {
    if (this.size === 0) return undefined;
    const key = clientConnection(client);
    const connection = this.byClient.get(key);
    this.byClient.delete(key);
    return connection;
  }

  /**
   * Keeps a connection in place of an earlier one of the same client, and, with too many, of the oldest.
   *
   * @returns false if none are kept
   */
  keep(connection: C): boolean {
    if (this.max === 0) return false;
    const key = connection.onlyFor!;
    const earlier = this.byClient.get(key);
    this.byClient.delete(key);
    this.byClient.set(key, connection);
    earlier?.destroy();
    if (this.size > this.max) this.dropOldest();
    return true;
  }

  dropOldest(): void {
    const [oldest] = this.byClient;
    if (oldest === undefined) return;
    this.byClient.delete(oldest[0]);
    oldest[1].destroy();
  }

  /** A connection is closed. */
  forget(connection: C): void {
    if (connection.onlyFor !== undefined && this.byClient.get(connection.onlyFor) === connection)
      this.byClient.delete(connection.onlyFor);
  }

  closeAll(): void {
    while (this.size > 0) this.dropOldest();
  }
}
