import type { Socket } from "node:net";
import { ipv6Groups, type ProxyConfig } from "../../model/serving.js";
import { plainAddress } from "./client.js";

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
   * @param trusted whether an address belongs to a proxy, which has many clients and no limit of its own
   * @param warn called at most once a minute for each limit, however many connections are refused
   */
  constructor(
    private readonly limits: Pick<ProxyConfig["limits"], "connectionsMax" | "connectionsPerClientMax">,
    private readonly trusted: (address: string) => boolean,
    private readonly warn: (message: string) => void,
  ) {}

  /** True if the connection may stay; otherwise it is already closed. */
  admit(socket: Socket): boolean {
    const { connectionsMax, connectionsPerClientMax } = this.limits;
    if (this.open >= connectionsMax) return this.refuse(socket, "connectionsMax", "");
    // Undefined if the peer is already gone.
    const address = plainAddress(socket.remoteAddress ?? "");
    const client = this.trusted(address) ? undefined : clientOf(address);
    const openOfClient = client === undefined ? 0 : (this.openByClient.get(client) ?? 0);
    if (openOfClient >= connectionsPerClientMax)
      return this.refuse(socket, "connectionsPerClientMax", ` by ${client}`);
    this.open++;
    if (client !== undefined) this.openByClient.set(client, openOfClient + 1);
    socket.on("close", () => this.closed(client));
    return true;
  }

  /** Resolves when no connection is open. */
  empty(): Promise<void> {
    return this.open === 0 ? Promise.resolve() : new Promise((resolve) => this.waiting.push(resolve));
  }

  private closed(client: string | undefined): void {
    this.open--;
    if (client !== undefined) {
      const left = this.openByClient.get(client)! - 1;
      if (left === 0) this.openByClient.delete(client);
      else this.openByClient.set(client, left);
    }
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

/** What counts as one client: with IPv6, each has a whole /64 network of addresses to choose from (RFC 6177). */
function clientOf(address: string): string {
  const groups = address.includes(":") ? ipv6Groups(address) : undefined;
  if (groups === undefined) return address;
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}
