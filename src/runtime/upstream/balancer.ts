import {
  hashOf,
  scoreOf,
  serversOf,
  type UpstreamConfig,
  type UpstreamServerConfig,
} from "../../model/serving.js";
import type { KnownOutage } from "./knownOutage.js";

/** The properties of a request that affect the choice of its server. */
export interface RequestFacts {
  /** The client: IPv4 address or IPv6 /48 network. */
  readonly client: string;
  /** The application's session; undefined without one, or where sessions bind nothing. */
  readonly session?: string | undefined;
  /** The server that the proxy's cookie names. */
  readonly bound?: number | undefined;
  /** Whether it may be sent again if the server gives no response. */
  readonly repeatable: boolean;
  /** Only a server at which nothing failed, and no backup; by default any that is left. */
  readonly surely?: boolean | undefined;
}

/** The master's order about a server. */
export interface ServerOrder {
  readonly drained: boolean;
  /** The server's checks fail. */
  readonly down: boolean;
  /** The server's last check got a response: requests that get none do not put it out. */
  readonly passing?: boolean | undefined;
  /** What workers found out about outages of the only server of an upstream. */
  readonly outage?: KnownOutage | undefined;
  /** How long ago it came back, from being down or drained; undefined if it never was. */
  readonly backForMs?: number | undefined;
  /** The URL of the config with the name, if the server is an address of a name that is looked up. */
  readonly of?: string | undefined;
  /** Why it is down, for people. */
  readonly why?: string | undefined;
}

/** The state of a server, seen from one worker. */
interface BalancedServer {
  readonly url: string;
  readonly hash: number;
  weight: number;
  backup: boolean;
  /** No longer one of the servers: it only finishes its requests. */
  gone: boolean;
  order: ServerOrder;
  /** Requests that it has, tunnels among them. */
  inProgress: number;
  /** Requests in a row without a response of it. */
  failures: number;
  /** Requests failed there, and none got a response since: it is left out, unless something outweighs that. */
  suspect: boolean;
  /** It accepted the connection of the request that made it suspect: a request that tries it may be lost. */
  silent: boolean;
  /** A request tries whether it is back, in its turn or because no other server is left for the request. */
  tried: undefined | "inTurn" | "lastResort";
  /** While it is suspect: when the next request may try it. */
  tryAt: number;
  /** How long it was left out the last time. */
  outMs: number;
  /** Since when its share grows. */
  backSince: number;
  /** The server's place in the turns (smooth weighted round robin). */
  turn: number;
}

/**
 * Chooses the server of each request of an upstream that has several, from the master's orders and the outcomes of
 * requests. Pure: time is an argument, and nothing is sent.
 *
 *     up ──a failed connect, or 3 requests without a response──> suspect: out for 1 s, 2 s, … 10 s
 *                                                                  └──one request may try it: a response──> up, slow start
 *                                       any, if it refused a connection: no request is lost by that; if it was silent, one that
 *                                       may be repeated, or any if none comes
 *     up ──order of the master: down, or drained──> out ──order──> up, slow start
 *
 * A connect that fails is a fact about the server. A missing response is not: its client may have sent a request that
 * every server fails. So a missing response does not count while the checks of the server get responses; and where
 * failed requests would leave out every server that the master leaves in, they leave out none.
 *
 * A backup is chosen only where no other server can be. A server that failed a request is not chosen for it again.
 */
export class Balancer {
  /** The servers by their places: those of a config come first, in its order. */
  private readonly servers: BalancedServer[];
  /** How many are not gone. */
  private present: number;

  constructor(private readonly config: UpstreamConfig) {
    this.servers = serversOf(config).map(newState);
    this.present = this.servers.length;
  }

  /**
   * Replaces the list of servers. A server that stays, or comes back before its last request ended, keeps its state;
   * the place of a removed server without requests is free for another.
   *
   * @returns the place of each
   */
  setServers(servers: readonly UpstreamServerConfig[]): readonly number[] {
    const urls = new Set(servers.map(({ url }) => url));
    for (const state of this.servers) state.gone = !urls.has(state.url);
    this.present = servers.length;
    return servers.map((server) => {
      const at = this.servers.findIndex(({ url, gone }) => !gone && url === server.url);
      if (at !== -1) {
        const { weight, backup } = server;
        Object.assign(this.servers[at]!, { weight, backup });
        return at;
      }
      const free = this.servers.findIndex(({ gone, inProgress }) => gone && inProgress === 0);
      const place = free === -1 ? this.servers.length : free;
      this.servers[place] = newState(server);
      return place;
    });
  }

  /** Whether there is no other server. */
  get isAlone(): boolean {
    return this.present === 1;
  }

  /** Applies the master's orders, by place. */
  order(orders: readonly ServerOrder[], now: number): void {
    for (const [i, server] of this.servers.entries()) {
      const order = orders[i] ?? UP;
      server.order = order;
      if (order.backForMs === undefined) continue;
      server.backSince = Math.max(server.backSince, now - order.backForMs);
    }
  }

  /**
   * The server of a request; -1 if there is none for it. The caller calls `begun`, and later `ended`.
   *
   * @param passedOver servers to which the request was sent without success
   */
  choose(facts: RequestFacts, passedOver: ReadonlySet<number> | undefined, now: number): number {
    for (const risk of facts.repeatable ? OF_REPEATABLE : OF_OTHERS) {
      const chosen = this.chooseAt(risk, facts, passedOver, now);
      if (chosen === -1) continue;
      const server = this.servers[chosen]!;
      if (server.suspect && risk === Risk.Any) server.tried ??= "lastResort";
      else if (server.suspect) [server.tried, server.tryAt] = ["inTurn", now + TRIAL_MS];
      return chosen;
    }
    return -1;
  }

  private chooseAt(
    risk: Risk,
    facts: RequestFacts,
    passedOver: ReadonlySet<number> | undefined,
    now: number,
  ): number {
    const { bound, surely = false } = facts;
    const may = (i: number): boolean =>
      passedOver?.has(i) !== true &&
      this.isUsable(this.servers[i]!, risk, now) &&
      !(surely && this.servers[i]!.suspect);
    if (bound !== undefined && may(bound)) return bound;
    for (const backup of surely ? [false] : [false, true]) {
      const candidates = this.servers.flatMap((server, i) => (server.backup === backup && may(i) ? [i] : []));
      if (candidates.length > 0) return this.among(candidates, facts, now);
    }
    return -1;
  }

  begun(i: number): void {
    this.servers[i]!.inProgress++;
  }

  ended(i: number): void {
    this.servers[i]!.inProgress--;
  }

  /** @returns whether it was out until now */
  responded(i: number, now: number): boolean {
    const server = this.servers[i]!;
    server.failures = 0;
    // A response to an older request does not show that the server is back: a server that stops still finishes its
    // requests.
    if (!server.suspect || server.tried === undefined) return false;
    server.suspect = false;
    server.tried = undefined;
    server.outMs = 0;
    server.backSince = now;
    return true;
  }

  /**
   * A request to it failed.
   *
   * @param connected whether a connection was made
   * @returns for how long it is left out now, unless `ignores`; 0 if nothing changed
   */
  failed(i: number, connected: boolean, now: number): number {
    const server = this.servers[i]!;
    server.failures++;
    const { suspect, tried } = server;
    // Requests that were in progress when it failed, or that had no other server, are not counted as further failures.
    if (suspect && tried !== "inTurn") return 0;
    const outweighed = connected && server.order.passing === true;
    if (!suspect && connected && (outweighed || server.failures < FAILURES_MAX)) return 0;
    server.suspect = true;
    server.silent = connected;
    server.tried = undefined;
    if (outweighed) return 0;
    server.outMs = Math.min(Math.max(server.outMs * 2, OUT_MIN_MS), OUT_MAX_MS);
    server.tryAt = now + server.outMs;
    return server.outMs;
  }

  /** Whether failed requests would leave out every server, and so leave out none. */
  get ignores(): boolean {
    return this.servers.every((server) => !isLeftIn(server) || isFailing(server));
  }

  /** The state of a server, for people. */
  seen(i: number): { readonly inProgress: number; readonly out: boolean; readonly ignored: boolean } {
    const server = this.servers[i]!;
    const { inProgress } = server;
    const [failing, ignored] = [isFailing(server), this.ignores];
    return { inProgress, out: failing && !ignored, ignored: failing && ignored };
  }

  private isUsable(server: BalancedServer, risk: Risk, now: number): boolean {
    if (!isLeftIn(server)) return false;
    if (risk === Risk.Any || !isFailing(server)) return true;
    const { silent, tryAt } = server;
    return now >= (risk === Risk.Repeated || !silent ? tryAt : tryAt + PATIENCE_MS);
  }

  private among(candidates: readonly number[], { client, session }: RequestFacts, now: number): number {
    if (candidates.length < 2) return candidates[0] ?? -1;
    if (session !== undefined) return this.byHash(candidates, session);
    switch (this.config.balance) {
      case "clientAddress":
        return this.byHash(candidates, client);
      case "roundRobin":
        return this.inTurns(candidates, now);
      case "leastConnections": {
        const loads = candidates.map(
          (i) => (this.servers[i]!.inProgress + 1) / this.share(this.servers[i]!, now),
        );
        const least = Math.min(...loads);
        return this.inTurns(
          candidates.filter((_, at) => loads[at] === least),
          now,
        );
      }
    }
  }

  /** The whole weight, also while a share grows: otherwise sessions would move there one by one. */
  private byHash(candidates: readonly number[], key: string): number {
    const hash = hashOf(key);
    let [best, highest] = [-1, -Infinity];
    for (const i of candidates) {
      const server = this.servers[i]!;
      const score = scoreOf(hash, server.hash, server.weight);
      if (score > highest) [best, highest] = [i, score];
    }
    return best;
  }

  /** Smooth weighted round robin: 2 to 1 becomes a, b, a and not a, a, b. */
  private inTurns(candidates: readonly number[], now: number): number {
    let [best, highest, all] = [-1, -Infinity, 0];
    for (const i of candidates) {
      const server = this.servers[i]!;
      const share = this.share(server, now);
      server.turn += share;
      all += share;
      if (server.turn > highest) [best, highest] = [i, server.turn];
    }
    this.servers[best]!.turn -= all;
    return best;
  }

  private share({ weight, backSince }: BalancedServer, now: number): number {
    const { slowStartMs } = this.config;
    const age = now - backSince;
    return age >= slowStartMs ? weight : weight * Math.max(age / slowStartMs, SHARE_MIN);
  }
}

const newState = ({ url, weight, backup }: UpstreamServerConfig): BalancedServer => ({
  url,
  hash: hashOf(url),
  weight,
  backup,
  gone: false,
  order: UP,
  inProgress: 0,
  failures: 0,
  suspect: false,
  silent: false,
  tried: undefined,
  tryAt: 0,
  outMs: 0,
  backSince: -Infinity,
  turn: 0,
});

/** Whether the master leaves it in. */
const isLeftIn = ({ gone, order }: BalancedServer): boolean => !gone && !order.drained && !order.down;

/** Whether failed requests count against it. */
const isFailing = ({ suspect, silent, order }: BalancedServer): boolean =>
  suspect && !(silent && order.passing === true);

/** Which of the servers a request may have that requests failed at. */
enum Risk {
  /** The servers that the request is likely to survive. */
  Small,
  /** The servers that the request survives if it may be repeated. */
  Repeated,
  /** All: no other is left for it. */
  Any,
}

const OF_REPEATABLE = [Risk.Repeated, Risk.Any];
const OF_OTHERS = [Risk.Small, Risk.Repeated, Risk.Any];

const UP: ServerOrder = { drained: false, down: false };

/**
 * In a row. A single failed connect is enough to leave a server out, because no request is lost: it goes to the next
 * server.
 */
const FAILURES_MAX = 3;
const OUT_MIN_MS = 1_000;
const OUT_MAX_MS = 10_000;
/** How long a request that tries a server keeps others from it. */
const TRIAL_MS = 5_000;
/** How much longer a silent server waits for a request that may be repeated: an upstream for uploads gets none. */
const PATIENCE_MS = 10_000;
const SHARE_MIN = 0.1;
