import { createHmac } from "node:crypto";
import { clientNetwork, cookieOf, serverConfigsOf, type UpstreamConfig } from "../../model/serving.js";
import { coarseNow } from "../sockets/deadlines.js";
import type { ClientInfo, HeaderList } from "../exchange/exchange.js";
import type { Faults } from "../exchange/workerContext.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";
import { Balancer, type ServerOrder } from "./balancer.js";
import { UpstreamPool } from "./pool.js";

/** A request that needs a server. */
export interface Asking {
  readonly client: Pick<ClientInfo, "address">;
  readonly headers: HeaderList;
  readonly repeatable: boolean;
}

/** What a worker knows of one server. */
export interface SeenServer {
  readonly url: string;
  /** Requests that it has at the moment, tunnels among them. */
  readonly inProgress: number;
  /** Whether it gets no request at the moment because of what requests met. */
  readonly out: boolean;
}

/** The same of all upstreams that have several servers, by name. */
export type SeenServers = Readonly<Record<string, readonly SeenServer[]>>;

/** What the master says of them: by the upstream's name, then by the server's URL. */
export type ServerOrders = Readonly<Record<string, Readonly<Record<string, ServerOrder>>>>;

/** The servers of an upstream that has several, each with the connections to it. */
export class UpstreamServers {
  readonly pools: readonly UpstreamPool[];
  private readonly balancer: Balancer;
  /** The values of the proxy's cookie, in the order of the servers. */
  private readonly tokens: readonly string[];

  /**
   * @param warn writes to the error log what concerns the upstream as a whole
   * @param key of the proxy's cookies: who does not have it learns no address from them
   */
  constructor(
    readonly config: UpstreamConfig,
    faults: Faults,
    private readonly warn: (message: string) => void,
    tlsContents: UpstreamTlsContents | undefined,
    key: string,
  ) {
    const servers = serverConfigsOf(config);
    this.pools = servers.map((server) => new UpstreamPool(server, faults, warn, tlsContents));
    this.balancer = new Balancer(config);
    this.tokens = servers.map(({ name, url }) =>
      createHmac("sha256", key).update(`${name}\n${url}`).digest("base64url").slice(0, TOKEN_CHARACTERS),
    );
  }

  /** @returns the index of a server; -1 if there is none */
  choose({ client, headers, repeatable }: Asking, passedOver?: ReadonlySet<number>): number {
    const { balance, sticky } = this.config;
    const { applicationCookie, cookie } = sticky ?? {};
    const session = applicationCookie === undefined ? undefined : cookieOf(headers, applicationCookie);
    const token = cookie === undefined ? undefined : cookieOf(headers, cookie);
    const bound = token === undefined ? -1 : this.tokens.indexOf(token);
    const facts = {
      client: balance === "clientAddress" ? clientNetwork(client.address) : "",
      session,
      bound: bound === -1 ? undefined : bound,
      repeatable,
    };
    return this.balancer.choose(facts, passedOver, coarseNow());
  }

  /** What binds a client to a server from now on; undefined if nothing has to. */
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

  answered(i: number): void {
    if (this.balancer.answered(i, coarseNow())) this.warn(`${this.named(i)} answers again`);
  }

  /** A request met no answer there. @param connected whether a connection was made */
  failed(i: number, connected: boolean, reason: string): void {
    const outMs = this.balancer.failed(i, connected, coarseNow());
    if (outMs > 0) this.warn(`${this.named(i)} is left out for ${outMs / 1_000} s: ${reason}`);
  }

  order(orders: Readonly<Record<string, ServerOrder>>): void {
    const inOrder = this.pools.map(({ config }) => orders[config.url] ?? { drained: false, down: false });
    this.balancer.order(inOrder, coarseNow());
  }

  seen(): readonly SeenServer[] {
    return this.pools.map(({ config }, i) => ({ url: config.url, ...this.balancer.seen(i) }));
  }

  private named(i: number): string {
    return `upstream "${this.config.name}": its server ${this.pools[i]!.config.url}`;
  }
}

/** 128 bits. */
const TOKEN_CHARACTERS = 22;
