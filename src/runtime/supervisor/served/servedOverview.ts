import {
  hasSeveral,
  type Problem,
  type ProxyConfig,
  serversOfSite,
  serversWithName,
  serversWithUpstream,
  shownSites,
  siteNotIn,
} from "../../../model/serving.js";
import { VERSION } from "../../../model/text/version.js";
import { type Counts, numberOf, totalOf } from "../../counting/counts.js";
import type { PauseOrder } from "../../dispatch/pauses.js";
import { type SeenTransfers, TRANSFERS_MAX } from "../../dispatch/transfers.js";
import { type AskedStatus, partOfQuery, STATUS_POLICY, type StatusResponse } from "../../status/asked.js";
import { keyOf } from "../../listen/sockets.js";
import type { ListedTransfer, Overview, OverviewUpstream } from "../../status/overview.js";
import { timeText } from "../../../model/numberTexts.js";
import { certificateState, type ListedCertificate } from "../control/certificateList.js";
import type { MasterLog } from "../report/masterLog.js";
import type { ServedUpstreams } from "./servedUpstreams.js";
import type { Supervision } from "../processes/supervision.js";
import type { Metrics } from "../listeners/metrics.js";
import { type OwnServerResponse, textResponse } from "../listeners/ownServer.js";
import type { ServedCounts } from "./servedCounts.js";
import { upstreamStates } from "./serverStates.js";
import { EVERY_MS, routeKey, TrafficSamples, trafficTotals } from "./trafficHistory.js";

/** The parts of a master that the overview is made from. */
export interface OverviewSources {
  readonly supervised: Pick<Supervision, "transfers">;
  readonly upstreams: Pick<ServedUpstreams, "list">;
  readonly pauses: { readonly order: PauseOrder };
  readonly certificates: {
    list(): { readonly certificates?: readonly ListedCertificate[] };
    clientAuthorities(at: number): NonNullable<Overview["clientAuthorities"]>;
  };
  readonly counts: Pick<ServedCounts, "now" | "outcomes">;
}

/** The state of a master. */
export interface OverviewState {
  readonly config: ProxyConfig;
  readonly generation: number;
  /** Whether it only finishes requests in progress. */
  readonly isStopping: boolean;
}

/**
 * The overview of a master: takes samples of the traffic while it serves, and makes the rest on request. Requests soon
 * after each other get the same result, so that many readers cost no more than one.
 */
export class ServedOverview {
  private readonly samples = new TrafficSamples();
  private readonly since = Date.now();
  private timer: NodeJS.Timeout | undefined;
  private made: CachedOverview | undefined;

  constructor(
    private readonly sources: OverviewSources,
    private readonly logs: Pick<MasterLog, "recent">,
    private readonly state: () => OverviewState,
  ) {}

  /** Takes samples from now on. */
  begin(): void {
    const sample = async (): Promise<void> => {
      this.samples.add(trafficTotals(await this.sources.counts.now()), performance.now());
    };
    // A sample that fails is left out.
    const take = (): void => void sample().catch(() => undefined);
    this.timer ??= setInterval(take, EVERY_MS).unref();
    take();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** The overview as of now or a moment ago. */
  now(): Promise<Overview> {
    return this.fresh().overview;
  }

  /** The same of one site; traffic, topology and events are those of all. */
  async ofSite(site: string | undefined): Promise<Overview | Problem> {
    const { config } = this.state();
    const unknown = siteNotIn(config, site);
    if (unknown !== undefined) return unknown;
    const all = await this.now();
    if (site === undefined) return all;
    const own = serversOfSite(config, site);
    const isOf = (servers: readonly { readonly name: string }[]): boolean =>
      servers.some(({ name }) => own.has(name));
    return {
      ...all,
      transfers: all.transfers.filter(({ server }) => own.has(server)),
      upstreams: all.upstreams.filter(({ name }) => isOf(serversWithUpstream(config, name))),
      certificates: all.certificates.filter(({ names }) => isOf(serversWithName(config, names))),
    };
  }

  /** What a client gets to see. */
  respond(asked: AskedStatus): Promise<StatusResponse> {
    const { overview, responses } = this.fresh();
    const key = `${asked.part} ${asked.addresses} ${asked.fileNames}`;
    const known = responses.get(key);
    if (known !== undefined) return known;
    // Loaded only when the status is requested.
    const response = import("../../status/site.js").then(({ statusResponse }) =>
      statusResponse(asked, () => overview),
    );
    responses.set(key, response);
    return response;
  }

  private fresh(): CachedOverview {
    const now = performance.now();
    if (this.made === undefined || now - this.made.at > FRESH_MS) {
      const overview = this.make();
      // A caller that waits gets the error. A request for a static part does not wait for the overview, so the
      // rejection would be unhandled.
      overview.catch(() => undefined);
      this.made = { at: now, overview, responses: new Map() };
    }
    return this.made;
  }

  /** Shows the page on the metrics listener, and its data as `/status.json`. */
  showOn(metrics: Pick<Metrics, "add">): void {
    const page = async (query: string, fileNames: boolean): Promise<OwnServerResponse> => {
      // The listener is opened before a config is in service.
      if (this.timer === undefined) return textResponse(503, "it starts", "Retry-After: 1\r\n");
      const part = partOfQuery(query);
      if (part === undefined) return textResponse(404, "not found");
      const { contentType: type, body } = await this.respond({ part, addresses: "shortened", fileNames });
      return { status: 200, type, body, fields: `Content-Security-Policy: ${STATUS_POLICY}\r\n` };
    };
    // Every user of the host reaches a port, and so does every program that fetches URLs: file names are for the
    // socket.
    metrics.add("/status", ({ query }, bySocket) => page(query, bySocket));
    metrics.add("/status.json", (_, bySocket) => page("json", bySocket));
  }

  private async make(): Promise<Overview> {
    const { sources } = this;
    const { config, generation, isStopping } = this.state();
    const [counts, seen, { upstreams: several = [] }, { topologyOf }] = await Promise.all([
      sources.counts.now(),
      sources.supervised.transfers(),
      sources.upstreams.list(),
      import("./servedTopology.js"),
    ]);
    const at = Date.now();
    const totals = trafficTotals(counts);
    const rates = this.samples.recent(totals, performance.now());
    const states = upstreamStates(config, several, sources.counts.outcomes);
    const upstreams = states.map(({ upstream, servers }): OverviewUpstream => {
      const { name } = upstream;
      const sites = sitesIn(config, serversWithUpstream(config, name));
      // Requests are counted by route: which of several servers they went to is not.
      if (hasSeveral(upstream))
        return { name, ...sites, servers: servers.map((one) => ({ ...one, failures: 0 })) };
      const failed = [...this.samples.failures(totals, routesTo(config, name))];
      const failures = failed.reduce((sum, [, count]) => sum + count, 0);
      const [most] = failed.sort(([, a], [, b]) => b - a);
      const why = most === undefined ? {} : { why: most[0] };
      return { name, ...sites, servers: servers.map((one) => ({ ...why, ...one, failures })) };
    });
    const clientAuthorities = sources.certificates.clientAuthorities(at);
    const { transfers, more } = mostActive(
      seen.flatMap(([pid, one]) => (one === undefined ? [] : [{ pid, ...one }])),
    );
    return {
      version: VERSION,
      at,
      since: this.since,
      generation,
      state: isStopping ? "stopping" : "serving",
      workers: { running: seen.length, silent: seen.filter(([, one]) => one === undefined).length },
      listeners: config.listeners.map(({ protocol, address, port }) => `${protocol} ${keyOf(address, port)}`),
      traffic: {
        requests: rates.requests,
        bytesIn: rates.bytesIn,
        bytesOut: rates.bytesOut,
        connections: totalOf(counts, "connectionsOpen"),
        history: this.samples.history,
      },
      transfers: transfers.map((one) => {
        const servers = config.virtualServers.filter(({ name }) => name === one.server);
        const [site] = shownSites(config, servers);
        return site === undefined ? one : { ...one, site };
      }),
      moreTransfers: more,
      upstreams,
      certificates: (sources.certificates.list().certificates ?? []).map((one) => ({
        ...certificateState(one, at, config.notifications?.certificateDays),
        ...sitesIn(config, serversWithName(config, one.names)),
      })),
      ...(clientAuthorities.length === 0 ? {} : { clientAuthorities }),
      ...refusedCertificates(counts),
      pauses: pausesOf(sources.pauses.order),
      events: this.logs.recent.list,
      topology: topologyOf(config, rates, upstreams),
    };
  }
}

interface CachedOverview {
  readonly at: number;
  readonly overview: Promise<Overview>;
  /** Responses made from the overview, by request. */
  readonly responses: Map<string, Promise<StatusResponse>>;
}

/** The overview is made no more often than this. */
const FRESH_MS = 500;

/** Nothing where no certificate was refused. */
function refusedCertificates(counts: Counts): Pick<Overview, "refusedCertificates"> {
  const all = (counts.certificatesRefused ?? []).map((series) => {
    const [server = "", reason = ""] = series.labels;
    return { server, reason, count: numberOf("certificatesRefused", series) };
  });
  return all.length === 0 ? {} : { refusedCertificates: all };
}

/** Nothing where the config names none. */
function sitesIn(...of: Parameters<typeof shownSites>): { readonly sites?: readonly string[] } {
  const sites = shownSites(...of);
  return sites.length === 0 ? {} : { sites };
}

const routesTo = ({ virtualServers }: ProxyConfig, upstream: string): readonly string[] =>
  virtualServers.flatMap(({ name, routes }) =>
    routes
      .filter(({ action }) => action.type === "proxy" && action.upstream === upstream)
      .map((route) => routeKey(name, route.name)),
  );

interface SeenBy extends SeenTransfers {
  readonly pid: number;
}

/** The most active requests of all workers, since each worker names only its own. */
function mostActive(seen: readonly SeenBy[]): {
  readonly transfers: readonly ListedTransfer[];
  readonly more: number;
} {
  const all = seen.flatMap(({ pid, transfers }) => transfers.map((one): ListedTransfer => ({ pid, ...one })));
  const bytes = ({ bytesIn, bytesOut }: ListedTransfer): number => bytesIn + bytesOut;
  const shown = [...all].sort((a, b) => bytes(b) - bytes(a) || b.ageMs - a.ageMs).slice(0, SHOWN_MAX);
  const others = seen.reduce((sum, { more }) => sum + more, all.length - shown.length);
  return { transfers: shown.sort((a, b) => b.ageMs - a.ageMs), more: others };
}

const SHOWN_MAX = 2 * TRANSFERS_MAX;

function pausesOf({ maintenance, quiesce }: PauseOrder): string[] {
  return [
    ...maintenance.map(({ site, until, message }) => {
      const who = site === undefined ? "Every site" : `Site ${site}`;
      const end = until === undefined ? "`portico maintenance off`" : timeText(until);
      return `${who} is in maintenance until ${end}${message === undefined ? "" : `: ${message}`}`;
    }),
    ...(quiesce?.refuses !== true
      ? []
      : [
          `${quiesce.reads ? "All requests" : "Requests that write"}${quiesce.site === undefined ? "" : ` to site ${quiesce.site}`} are refused while a command runs`,
        ]),
  ];
}
