import type { Socket } from "node:net";
import { ipv6Groups, type ProxyConfig } from "../../model/serving.js";
import { plainAddress } from "./client.js";

/**
 * Counts the client connections of a worker, over all its listeners, and refuses those beyond the limits: of all
 * clients together, and of each by itself, so that one cannot take the places of all others.
 * The one place that knows when the last of them is gone.
 */
export class ConnectionGate {
  private open = 0;
  private readonly openByClient = new Map<string, number>();
  private readonly warnedAt = new Map<string, number>();
  private waiting: (() => void)[] = [];

  /**
   * @param trusted whether an address stands for many clients, and is not limited by itself
   * @param warn called at most once a minute for each limit, however many connections are refused
   */
  constructor(
    private readonly limits: Pick<ProxyConfig["limits"], "connectionsMax" | "connectionsPerClientMax">,
    private readonly trusted: (address: string) => boolean,
    private readonly warn: (message: string) => void,
  ) {}

  /** True if the connection may stay; else it is closed already. */
  admit(socket: Socket): boolean {
    const { connectionsMax, connectionsPerClientMax } = this.limits;
    if (this.open >= connectionsMax) return this.refuse(socket, "connectionsMax", "");
    // Undefined if the peer is gone already.
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

/** Who counts as one client: with IPv6 everybody has a whole /64 network to choose addresses from (RFC 6177). */
function clientOf(address: string): string {
  const groups = address.includes(":") ? ipv6Groups(address) : undefined;
  if (groups === undefined) return address;
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}
