import { createHmac } from "node:crypto";
import {
  clientNetwork,
  cookieOf,
  type KnownServer,
  knownServers,
  serverConfig,
  type UpstreamConfig,
} from "../../model/serving.js";
import type { WorkerCounts } from "../counting/workerCounts.js";
import { coarseNow } from "../sockets/deadlines.js";
import type { ClientInfo, HeaderList } from "../exchange/exchange.js";
import type { Faults } from "../dispatch/workerContext.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";
import { Balancer, type RequestFacts, type ServerOrder } from "./balancer.js";
import { UpstreamPool } from "./pool.js";

/** A request that needs a server. */
export interface Asking extends Pick<RequestFacts, "repeatable" | "surely"> {
  readonly client: ClientInfo;
  readonly headers: HeaderList;
}

/** A worker's report about one server. */
export interface SeenServer {
  readonly url: string;
  /** Requests that it has at the moment, tunnels among them. */
  readonly inProgress: number;
  /** Whether it gets no requests at the moment because requests failed. */
  readonly out: boolean;
  /** Whether it gets requests only because requests failed at all others, too. */
  readonly ignored: boolean;
  /** Why the last of them failed, if it is one of the two. */
  readonly why?: string;
}

/** The same of all upstreams, by name. */
export type SeenServers = Readonly<Record<string, readonly SeenServer[]>>;

/** The master's orders: by the upstream's name, then by the server's URL. */
export type ServerOrders = Readonly<Record<string, Readonly<Record<string, ServerOrder>>>>;

/** The servers of an upstream that has several, each with the connections to it, by their places. */
export class UpstreamServers {
  private readonly balancer: Balancer;
  private readonly byPlace: UpstreamPool[] = [];
  /** The values of the proxy's cookie, by place. */
  private readonly tokens: string[] = [];
  /** Why each was left out the last time, by place. */
  private readonly reasons: string[] = [];
  /** The places that are in use, in the order of the config. */
  private places: readonly number[] = [];
  /** The servers that are gone, and may still have requests. */
  private readonly leaving = new Set<UpstreamPool>();

  /**
   * @param warn writes messages about the upstream as a whole to the error log
   * @param key of the proxy's cookies: without it no address can be read from them
   */
  constructor(
    readonly config: UpstreamConfig,
    private readonly faults: Faults,
    private readonly warn: (message: string) => void,
    private readonly tlsContents: UpstreamTlsContents | undefined,
    private readonly key: string,
    private readonly counts: WorkerCounts,
  ) {
    this.balancer = new Balancer(config);
    this.setServers(knownServers(config, {}));
  }

  /** All that may have connections. */
  get pools(): readonly UpstreamPool[] {
    for (const pool of this.leaving) {
      const { connections, queued } = pool.holdings();
      if (connections + queued === 0) this.leaving.delete(pool);
    }
    return [...this.places.map((place) => this.byPlace[place]!), ...this.leaving];
  }

  /** Whether there is one server only: what it responds, or that it does not, is the truth. */
  get isSingle(): boolean {
    return this.balancer.isAlone;
  }

  /** The first of the config. */
  get first(): UpstreamPool {
    return this.byPlace[this.places[0]!]!;
  }

  pool(i: number): UpstreamPool {
    return this.byPlace[i]!;
  }

  /** @returns the place of a server; -1 if there is none */
  choose({ client, headers, repeatable, surely }: Asking, passedOver?: ReadonlySet<number>): number {
    const { balance, sticky } = this.config;
    const { applicationCookie, cookie } = sticky ?? {};
    const session = applicationCookie === undefined ? undefined : cookieOf(headers, applicationCookie);
    const token = cookie === undefined ? undefined : cookieOf(headers, cookie);
    // A log-in on a connection to a server outweighs a cookie: any other server would ask for it again.
    const keeping = this.places.find((i) => this.byPlace[i]!.keepsFor(client));
    const named = token === undefined ? undefined : this.places.find((i) => this.tokens[i] === token);
    const bound = keeping ?? named;
    const facts = {
      client: balance === "clientAddress" ? clientNetwork(client.address) : "",
      session,
      bound,
      repeatable,
      surely,
    };
    return this.balancer.choose(facts, passedOver, coarseNow());
  }

  /** The cookie that binds a client to a server; undefined if none is needed. */
  cookieFor(i: number, headers: HeaderList, scheme: "http" | "https"): string | undefined {
    const cookie = this.config.sticky?.cookie;
    if (cookie === undefined || cookieOf(headers, cookie) === this.tokens[i]) return undefined;
    return `${cookie}=${this.tokens[i]}; Path=/; HttpOnly; SameSite=Lax${scheme === "https" ? "; Secure" : ""}`;
  }

  begun(i: number): void {
    this.balancer.begun(i);
  }

  ended(i: number): void {
    this.balancer.ended(i);
  }

  responded(i: number): void {
    if (this.balancer.responded(i, coarseNow())) this.warn(`${this.named(i)} responds again`);
  }

  /** A request met no response there. @param connected whether a connection was made */
  failed(i: number, connected: boolean, reason: string): void {
    const outMs = this.balancer.failed(i, connected, coarseNow());
    if (outMs === 0) return;
    this.reasons[i] = reason;
    // The request's own line says all there is to say.
    if (this.isSingle) return;
    const what = this.balancer.ignores
      ? "failed as all others did, so none is left out"
      : `is left out for ${outMs / 1_000} s`;
    this.warn(`${this.named(i)} ${what}: ${reason}`);
  }

  order(orders: Readonly<Record<string, ServerOrder>>): void {
    if (this.config.spread) this.setServers(knownServers(this.config, orders));
    const byPlace = this.byPlace.map(({ config }) => orders[config.url] ?? { drained: false, down: false });
    this.balancer.order(byPlace, coarseNow());
  }

  seen(): readonly SeenServer[] {
    return this.places.map((i) => {
      const seen = { url: this.byPlace[i]!.config.url, ...this.balancer.seen(i) };
      return seen.out || seen.ignored ? { ...seen, why: this.reasons[i]! } : seen;
    });
  }

  private setServers(servers: readonly KnownServer[]): void {
    const before = new Set(this.pools);
    const places = this.balancer.setServers(servers);
    for (const [at, server] of servers.entries()) {
      const place = places[at]!;
      const pool = this.byPlace[place];
      if (pool?.config.url === server.url && before.has(pool) && !this.leaving.has(pool)) continue;
      const config = serverConfig(this.config, server);
      const counts = this.counts.upstream(config.name, server.of ?? server.url);
      this.byPlace[place] = new UpstreamPool(config, this.faults, this.warn, counts, this.tlsContents);
      this.tokens[place] = this.tokenOf(server);
    }
    this.places = places;
    const kept = new Set(places.map((place) => this.byPlace[place]!));
    for (const pool of before) {
      if (kept.has(pool) || this.leaving.has(pool)) continue;
      pool.close();
      this.leaving.add(pool);
    }
  }

  private tokenOf({ url }: KnownServer): string {
    const hmac = createHmac("sha256", this.key).update(`${this.config.name}\n${url}`);
    return hmac.digest("base64url").slice(0, TOKEN_CHARACTERS);
  }

  private named(i: number): string {
    return `upstream "${this.config.name}": its server ${this.byPlace[i]!.config.url}`;
  }
}

/** 128 bits. */
const TOKEN_CHARACTERS = 22;
