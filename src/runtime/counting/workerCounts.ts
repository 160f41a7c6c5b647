import type { RouteConfig, VirtualServerConfig } from "../../model/serving.js";
import type { Counts } from "./counts.js";
import { RequestCounts } from "./requestCounts.js";
import { Slots } from "./slots.js";

/** What a client connection speaks, by its ALPN name (RFC 7301, 6). */
export type ClientProtocol = "http/1.1" | "h2";

/** Everything that a worker counts; what it holds at a moment is in `worker/gauges.ts`. */
export class WorkerCounts {
  private readonly slots = new Slots();
  private readonly connections = new Map<string, number>();

  /** @param isRegistered whether a status has a meaning: all others are counted as their class */
  constructor(private readonly isRegistered: (status: number) => boolean) {}

  /** Who counts the requests of a route, or, without one, those of a virtual server that none of its routes matched. */
  requestsOf(server: VirtualServerConfig, route?: RouteConfig): RequestCounts {
    return new RequestCounts(this.slots, { server: server.name, route }, this.isRegistered);
  }

  /** A connection of a client was accepted, and speaks this. */
  accepted(listener: string, protocol: ClientProtocol): void {
    const key = `${listener} ${protocol}`;
    let at = this.connections.get(key);
    if (at === undefined) {
      at = this.slots.place("connections", [listener, protocol]);
      this.connections.set(key, at);
    }
    this.slots.add(at);
  }

  /** What was counted since this was called last; undefined if it is nothing. */
  changes(): Counts | undefined {
    return this.slots.changes();
  }
}
