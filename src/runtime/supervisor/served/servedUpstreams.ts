import {
  addressUrl,
  hasSeveral,
  isWatched,
  type KnownAddresses,
  type KnownServer,
  knownServers,
  type Problem,
  problem,
  type ProxyConfig,
  serversOf,
  spreadUrls,
  type UpstreamConfig,
} from "../../../model/serving.js";
import type { ServerOrder } from "../../upstream/balancer.js";
import { isNews, joined, type KnownOutage, NO_OUTAGE, type OutageNews } from "../../upstream/knownOutage.js";
import type { ServerOrders } from "../../upstream/upstreamServers.js";
import type { ControlOutcome, Done } from "../control/control.js";
import type { ServerCheckState, ServerChecks } from "./serverChecks.js";
import type { DownServer } from "../../notifications/watch.js";
import { type ListedUpstream, type NamedServer, stateOf } from "../control/listedUpstreams.js";
import type { MasterLog } from "../report/masterLog.js";
import type { OrderingMaster } from "../processes/supervision.js";
import { type SpreadName, SpreadNames } from "./spreadNames.js";

/** The state of a server that gets fewer requests than others, or that refuses connections. */
interface RefusingServer {
  drained: boolean;
  down: boolean;
  /** The server's last check got a response. */
  passing: boolean;
  /** A check of it has ended. */
  checked: boolean;
  /** When it came back, by the clock of `performance`. */
  backAt: number | undefined;
  /** The URL of the config with the name, if this server is an address of that name. */
  of: string | undefined;
  /** Why it is down. */
  why: string | undefined;
  /** What workers found out about its outages, if it is the only server of an upstream. */
  outage: KnownOutage | undefined;
}

/**
 * The servers of upstreams: the master's orders to its workers about them, and the workers' reports.
 * Orders outlast a worker, an upgrade, and a reload that keeps the server.
 */
export class ServedUpstreams {
  /** The states by the upstream's name, then by URL. */
  private readonly states = new Map<string, Map<string, RefusingServer>>();

  private checks: ServerChecks | undefined;
  private names: SpreadNames | undefined;
  private stopped = false;

  constructor(
    private readonly host: OrderingMaster,
    private readonly logs: Pick<MasterLog, "write">,
  ) {}

  /** The current orders, which include how long ago a server came back. The next master continues with them. */
  get orders(): ServerOrders {
    const now = performance.now();
    const order = ({ drained, down, passing, backAt, of, why, outage }: RefusingServer): ServerOrder => ({
      drained,
      down,
      ...(passing ? { passing } : {}),
      of,
      why,
      backForMs: backAt === undefined ? undefined : now - backAt,
      outage,
    });
    return Object.fromEntries(
      [...this.states].map(([name, states]) => [
        name,
        Object.fromEntries([...states].map(([url, state]) => [url, order(state)])),
      ]),
    );
  }

  /** Continues with the orders of the previous master. */
  adopt(orders: ServerOrders): void {
    const now = performance.now();
    for (const [name, servers] of Object.entries(orders)) {
      for (const [url, order] of Object.entries(servers)) {
        const { drained, down, passing = false, backForMs, of, why, outage } = order;
        const state = this.stateOf(name, url);
        state.outage = outage;
        state.drained = drained;
        state.down = down;
        state.passing = passing;
        state.of = of;
        state.why = why;
        state.backAt = backForMs === undefined ? undefined : now - backForMs;
      }
    }
  }

  /** Forgets servers that the config no longer has, and findings of checks that it no longer has. */
  async keepOnly(config: ProxyConfig): Promise<void> {
    // Checks of the previous config would restore the states that are forgotten here; `lookAfter` begins those of this
    // config.
    this.stopLooking();
    const unchecked = config.upstreams.filter(({ health }) => health === undefined);
    const states = unchecked.flatMap(({ name }) => [...(this.states.get(name)?.values() ?? [])]);
    const freed = states.filter(({ down, passing }) => down || passing);
    for (const state of freed) {
      setDown(state, false);
      state.passing = state.checked = false;
    }
    const watched = new Set(config.upstreams.filter(isWatched).map(({ name }) => name));
    const kept = new Map(config.upstreams.map((one) => [one.name, new Set(serversOf(one).map(urlOf))]));
    const spread = new Map(config.upstreams.map((one) => [one.name, new Set(spreadUrls(one))]));
    for (const [name, states] of this.states) {
      for (const [url, { of, outage }] of states) {
        const stays = of === undefined ? kept.get(name)?.has(url) : spread.get(name)?.has(of);
        if (stays === true && watched.has(name)) continue;
        // Nobody could see or end another order.
        if (stays === true && outage !== undefined) states.set(url, { ...newState(), outage });
        else states.delete(url);
      }
      if (states.size === 0) this.states.delete(name);
    }
    // The workers of this config were started before.
    if (freed.length > 0) await this.host.supervised.orderServers(this.orders);
  }

  /** Looks up names of a config before its workers start: their first responses may bind clients to servers. */
  async lookUp(config: ProxyConfig): Promise<void> {
    const found = (name: SpreadName, addresses: readonly string[]): void => {
      const upstream = config.upstreams.find((one) => one.name === name.upstream)!;
      this.setAddresses(upstream, name.url, addresses);
    };
    const names = new SpreadNames(config, { found, failed: () => undefined });
    await names.once();
    names.stop();
  }

  /** Begins to look up names and check servers of the current config. Only a main master calls this. */
  async lookAfter(): Promise<void> {
    const wanted = this.host.loaded().config.upstreams.some(({ health }) => health !== undefined);
    const made = wanted ? await import("./serverChecks.js") : undefined;
    this.stopLooking();
    if (this.stopped) return;
    const loaded = this.host.loaded();
    this.names = new SpreadNames(loaded.config, {
      found: (name, addresses) => this.foundAddresses(name, addresses),
      failed: ({ upstream, url }, why) =>
        this.logs.write("warn", `upstream "${upstream}": the name in ${url} was not found: ${why}`),
    });
    this.names.begin();
    if (made === undefined) return;
    this.checks = new made.ServerChecks(loaded, {
      isDown: (name, url) => this.stateOf(name, url).down,
      checked: (name, url, checked) => this.found(name, url, checked),
    });
    for (const upstream of loaded.config.upstreams) this.checks.use(upstream, this.serversOf(upstream));
  }

  stop(): void {
    this.stopped = true;
    this.stopLooking();
  }

  private stopLooking(): void {
    this.checks?.stop();
    this.checks = undefined;
    this.names?.stop();
    this.names = undefined;
  }

  private foundAddresses({ upstream: name, url }: SpreadName, addresses: readonly string[]): void {
    const upstream = this.host.loaded().config.upstreams.find((one) => one.name === name)!;
    if (!this.setAddresses(upstream, url, addresses)) return;
    const servers = this.serversOf(upstream);
    const own = servers.filter(({ of }) => of === url).map(urlOf);
    this.logs.write("warn", `upstream "${name}": the servers of ${url} are now ${shortList(own)}`);
    this.checks?.use(upstream, servers);
    void this.host.supervised.orderServers(this.orders);
  }

  /** @returns whether others are servers now */
  private setAddresses(upstream: UpstreamConfig, url: string, addresses: readonly string[]): boolean {
    const states = this.states.get(upstream.name) ?? new Map<string, RefusingServer>();
    const before = [...states].filter(([, { of }]) => of === url).map(([known]) => known);
    const taken = new Set(serversOf(upstream).map(urlOf));
    // An address that another name has as well is one server.
    const free = (one: string): boolean => !taken.has(one) && (states.get(one)?.of ?? url) === url;
    const now = new Set(addresses.map((address) => addressUrl(url, address)).filter(free));
    for (const gone of before) if (!now.has(gone)) states.delete(gone);
    const come = [...now].filter((one) => !states.has(one));
    for (const one of come) {
      const state = this.stateOf(upstream.name, one);
      state.of = url;
      if (before.length > 0) state.backAt = performance.now();
    }
    return come.length > 0 || before.some((one) => !now.has(one));
  }

  private serversOf(upstream: UpstreamConfig): readonly KnownServer[] {
    const known: KnownAddresses = Object.fromEntries(this.states.get(upstream.name) ?? []);
    return knownServers(upstream, known);
  }

  /** Servers that are down, or that failed requests, although they are not drained. */
  async down(): Promise<readonly DownServer[]> {
    const { upstreams } = this.host.loaded().config;
    const listed = upstreams.some(isWatched) ? await this.listed() : [];
    return listed.flatMap(({ name, servers }) =>
      servers
        .filter((server) => !["drained", "up"].includes(stateOf(server)))
        .map(({ url, why }) => ({ upstream: name, url, why })),
    );
  }

  async list(): Promise<Done> {
    const upstreams = await this.listed();
    const message = `${upstreams.length} upstream${upstreams.length === 1 ? "" : "s"} with several servers or checks`;
    return { message, warnings: [], upstreams };
  }

  /** From now on it gets no new request, or some again; resolves when every worker knows. */
  drain(server: NamedServer, drained: boolean): Promise<ControlOutcome> {
    return this.host.changes.do(() => this.host.notNow() ?? this.drained(server, drained));
  }

  private async drained({ name, server: url }: NamedServer, drained: boolean): Promise<ControlOutcome> {
    const several = this.watched.filter(({ upstream }) => hasSeveral(upstream));
    const unknown = unknownServer(several, name, url);
    if (unknown !== undefined) return { ok: false, problems: [unknown] };
    const state = this.stateOf(name, url);
    const changed = state.drained !== drained;
    state.drained = drained;
    if (changed) state.backAt = drained ? undefined : performance.now();
    const { servers } = (await this.listed()).find((one) => one.name === name)!;
    const { inProgress } = servers.find((one) => one.url === url)!;
    const noneLeft = servers.every((one) => one.drained || one.down)
      ? `; no server is left, so requests get 503`
      : "";
    const what = drained
      ? `is drained: it gets no new request, and has ${inProgress} in progress${noneLeft}`
      : "gets requests again";
    const message = `upstream "${name}": its server ${url} ${what}`;
    if (changed) this.logs.write("info", message);
    return { ok: true, value: { message, warnings: [] } };
  }

  private found(name: string, url: string, { passing, down, why }: ServerCheckState): void {
    const state = this.stateOf(name, url);
    state.checked = true;
    if (state.down === down && state.passing === passing) return;
    state.passing = passing;
    if (state.down !== down) {
      setDown(state, down, why);
      const what = down ? `is down, by its checks: ${why}` : "is up again, by its checks";
      this.logs.write("warn", `upstream "${name}": its server ${url} ${what}`);
    }
    void this.host.supervised.orderServers(this.orders);
  }

  /** A worker found this out: the others learn it. */
  heard(news: readonly OutageNews[]): void {
    let isNew = false;
    const { upstreams } = this.host.loaded().config;
    // A worker of an earlier config may tell of an upstream that is gone.
    const isServed = ({ upstream, url }: OutageNews): boolean =>
      upstreams.some(
        (one) => one.name === upstream && serversOf(one).some((server) => urlOf(server) === url),
      );
    for (const { upstream, url, outage } of news.filter(isServed)) {
      const state = this.stateOf(upstream, url);
      const known = joined(state.outage ?? NO_OUTAGE, outage);
      if (!isNews(known, state.outage ?? NO_OUTAGE)) continue;
      state.outage = known;
      isNew = true;
    }
    if (isNew) void this.host.supervised.orderServers(this.orders);
  }

  /** The upstreams that have several servers, or checks, as all workers see them. */
  async listed(): Promise<readonly ListedUpstream[]> {
    const seen = await this.host.supervised.orderServers(this.orders);
    return this.watched.map(({ name, servers }) => ({
      name,
      servers: servers.map(({ url, backup }) => {
        const state = this.states.get(name)?.get(url);
        const each = seen.flatMap((one) => new Map(Object.entries(one)).get(name) ?? []);
        const own = each.filter((one) => one.url === url);
        const why = state?.why ?? own.find((one) => one.why !== undefined)?.why;
        return {
          url,
          backup,
          inProgress: own.reduce((sum, { inProgress }) => sum + inProgress, 0),
          drained: state?.drained === true,
          down: state?.down === true,
          checked: state?.checked === true,
          outIn: own.filter(({ out }) => out).length,
          ignoredIn: own.filter(({ ignored }) => ignored).length,
          why,
        };
      }),
    }));
  }

  /** The current config's upstreams with several servers or checks, and these servers. */
  private get watched(): readonly NamedServers[] {
    const { upstreams } = this.host.loaded().config;
    return upstreams
      .filter(isWatched)
      .map((upstream) => ({ name: upstream.name, upstream, servers: this.serversOf(upstream) }));
  }

  private stateOf(name: string, url: string): RefusingServer {
    const states = this.states.get(name) ?? new Map<string, RefusingServer>();
    this.states.set(name, states);
    const state = states.get(url) ?? newState();
    states.set(url, state);
    return state;
  }
}

const newState = (): RefusingServer => ({
  drained: false,
  down: false,
  passing: false,
  checked: false,
  backAt: undefined,
  of: undefined,
  why: undefined,
  outage: undefined,
});

function setDown(state: RefusingServer, down: boolean, why?: string): void {
  state.why = down ? why : undefined;
  if (state.down === down) return;
  state.down = down;
  state.backAt = down ? undefined : performance.now();
}

const urlOf = ({ url }: { readonly url: string }): string => url;

interface NamedServers {
  readonly name: string;
  readonly upstream: UpstreamConfig;
  readonly servers: readonly KnownServer[];
}

/** A name may have hundreds of addresses, and others with each lookup. */
const LISTED_MAX = 10;

function shortList(urls: readonly string[]): string {
  const more = urls.length - LISTED_MAX;
  return `${urls.slice(0, LISTED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function unknownServer(several: readonly NamedServers[], name: string, url: string): Problem | undefined {
  const upstream = several.find((one) => one.name === name);
  if (upstream === undefined) {
    const allowed = several.map((one) => one.name).join(", ") || "no name: no upstream has several servers";
    return problem("control.unknown-server", "NAME", "is not the name of an upstream with several servers", {
      received: name,
      allowed,
    });
  }
  const urls = upstream.servers.map(urlOf);
  if (urls.includes(url)) return undefined;
  return problem("control.unknown-server", "SERVER", `is not the URL of a server of upstream "${name}"`, {
    received: url,
    allowed: urls.join(", "),
  });
}
