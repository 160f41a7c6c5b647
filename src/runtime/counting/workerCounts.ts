import type { RouteConfig, VirtualServerConfig } from "../../model/serving.js";
import type { Counts } from "./counts.js";
import { RequestCounts } from "./requestCounts.js";
import type { FamilyKey } from "./families.js";
import { boundsOf, Slots } from "./slots.js";

/** The protocol of a client connection, by its ALPN name (RFC 7301, 6). */
export type ClientProtocol = "http/1.1" | "h2";

/** All counts of a worker; the resources that it holds at a moment are in `worker/holdings.ts`. */
export class WorkerCounts {
  private readonly slots = new Slots();
  private readonly upstreams = new Map<string, UpstreamCounts>();
  /** Places of rare counts, by family and labels. */
  private readonly places = new Map<string, number>();
  private readonly logLinesLost = this.slots.place("logLinesLost", []);
  private readonly loopDelay = this.slots.place("loopDelay", []);

  /** @param isRegistered whether a status has a meaning: all others are counted as their class */
  constructor(private readonly isRegistered: (status: number) => boolean) {}

  /** The counts of a route's requests, or, without a route, of a virtual server's requests that no route matched. */
  requestsOf(server: VirtualServerConfig, route?: RouteConfig): RequestCounts {
    return new RequestCounts(this.slots, { server: server.name, route }, this.isRegistered);
  }

  /** The counts of an upstream's server: the same object even if the address of the server changes. */
  upstream(name: string, server: string): UpstreamCounts {
    const key = `${name} ${server}`;
    let counts = this.upstreams.get(key);
    if (counts === undefined)
      this.upstreams.set(key, (counts = new UpstreamCounts(this.slots, [name, server])));
    return counts;
  }

  /** A connection of a client was accepted, and speaks this. */
  accepted(listener: string, protocol: ClientProtocol): void {
    this.add("connections", listener, protocol);
  }

  /** A TLS handshake is complete. */
  secured(listener: string, version: string, group: string, resumed: boolean): void {
    this.add("handshakes", listener, version, group, resumed ? "yes" : "no");
  }

  handshakeFailed(listener: string): void {
    this.add("handshakeFailures", listener);
  }

  /** A guard against guessing refused a log-in. */
  refusedLogIn(guard: string, reason: string): void {
    this.add("logInsRefused", guard, reason);
  }

  /** A request was refused for its client's certificate. */
  refusedCertificate(server: string, reason: string): void {
    this.add("certificatesRefused", server, reason);
  }

  /** @param lines that logs have lost since the worker began */
  lostLines(lines: number): void {
    this.slots.values[this.logLinesLost] = lines;
  }

  /** The clock was so late. */
  late(ms: number): void {
    this.slots.observe(this.loopDelay, DELAYS, ms);
  }

  /** Counts since the last call; undefined if there are none. */
  changes(): Counts | undefined {
    return this.slots.changes();
  }

  private add(family: FamilyKey, ...labels: readonly string[]): void {
    const key = `${family} ${labels.join(" ")}`;
    let at = this.places.get(key);
    if (at === undefined) this.places.set(key, (at = this.slots.place(family, labels)));
    this.slots.add(at);
  }
}

const DELAYS = boundsOf("loopDelay");

/** Counts of one server of an upstream. */
export class UpstreamCounts {
  private readonly connects: number;
  private readonly responses: number;
  /** Places of failures, by their names. */
  private readonly failures = new Map<string, number>();

  /** @param labels the names of the upstream and of the server */
  constructor(
    private readonly slots: Slots,
    readonly labels: readonly [upstream: string, server: string],
  ) {
    this.connects = slots.place("upstreamConnects", labels);
    this.responses = slots.place("upstreamResponses", labels);
  }

  connected(): void {
    this.slots.add(this.connects);
  }

  responded(): void {
    this.slots.add(this.responses);
  }

  failed(token: string): void {
    let at = this.failures.get(token);
    if (at === undefined) {
      at = this.slots.place("upstreamFailures", [...this.labels, token]);
      this.failures.set(token, at);
    }
    this.slots.add(at);
  }
}
