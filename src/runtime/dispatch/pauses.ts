import { isWrite, PageTemplate, type ProxyConfig, siteOf, withinRanges } from "../../model/serving.js";
import { respondPaused } from "./errorPages.js";
import { expectedMs, PACE_WINDOW_MS, Paces } from "./paces.js";
import { isTunnel, type Transfer } from "./transfers.js";
import type { Exchange, RouteRuntime, RunningExchange } from "../exchange/exchange.js";

/** A master's order to its workers to refuse requests for now. All of it is JSON. */
export interface PauseOrder {
  readonly maintenance: readonly MaintenanceOrder[];
  readonly quiesce?: QuiesceOrder | undefined;
}

/** Requests to one site, or to all, get 503. */
export interface MaintenanceOrder {
  /** Name of the site; undefined for all. */
  readonly site?: string | undefined;
  /** When it is planned to end, in milliseconds since 1970. */
  readonly until?: number | undefined;
  /** Shown to clients that are refused. */
  readonly message?: string | undefined;
  /** Whether the grace of WebSockets is over. */
  readonly closesTunnels: boolean;
}

/** What a user wants of a quiesce. */
export interface QuiesceTerms {
  /** Whether it is about requests that read, too. */
  readonly reads: boolean;
  /** Name of the only site that it is about; undefined for all. */
  readonly site?: string | undefined;
  /** Bytes a second; a client that sends fewer of a body is slow. 0: none is. */
  readonly minimumRate: number;
  /** Whether requests of slow clients are ended. */
  readonly cutsSlow: boolean;
  /** How long new requests may be refused before the command runs. */
  readonly refuseMs: number;
}

/** A command waits for requests that write to end, or runs. */
export interface QuiesceOrder extends QuiesceTerms {
  /** Whether new ones get 503 by now. */
  readonly refuses: boolean;
}

/** A worker's report about an order. */
export interface SeenPauses {
  /** Requests in progress that a quiesce waits for. */
  readonly writes: number;
  /** How many of them are not expected to end while new ones are refused. */
  readonly lasting: number;
  /** How many of them have a slow client. */
  readonly slow: number;
  /** The oldest of them; if some have a slow client, the oldest of these. */
  readonly transfers: readonly Transfer[];
}

export const NOTHING_SEEN: SeenPauses = { writes: 0, lasting: 0, slow: 0, transfers: [] };

export const NO_PAUSES: PauseOrder = { maintenance: [] };

/** The requests that a worker refuses by order, and those in progress that the order waits for. */
export class Pauses {
  /** Whether any order is in force; checked for each request. */
  active = false;
  private order = NO_PAUSES;
  private paces = new Paces();
  private readonly isAllowed: (address: string) => boolean;

  private readonly page: PageTemplate | undefined;
  /** Sites of virtual servers. */
  private readonly sites: ReadonlyMap<string, string>;

  constructor({
    maintenance: { allow, page },
    virtualServers,
  }: Pick<ProxyConfig, "maintenance" | "virtualServers">) {
    this.sites = new Map(virtualServers.map((server) => [server.name, siteOf(server)]));
    this.isAllowed = withinRanges(allow);
    this.page = page === undefined ? undefined : new PageTemplate(page);
  }

  set(order: PauseOrder): void {
    this.order = order;
    this.active = order.maintenance.length > 0 || order.quiesce?.refuses === true;
    // A later quiesce judges clients anew.
    if (order.quiesce === undefined) this.paces = new Paces();
  }

  /** @returns whether it refused the request */
  refuses(exchange: Exchange, { config }: RouteRuntime): boolean {
    // The target of a redirect is refused itself, or is another site.
    if (config.action.type === "redirect") return false;
    const maintenance = this.maintenanceOf(exchange);
    if (maintenance !== undefined) {
      exchange.errorToken = "http_request_denied";
      const { until, message } = maintenance;
      respondPaused(exchange, {
        seconds: retryAfter(until),
        message: message ?? IN_MAINTENANCE,
        page: this.page,
      });
      return true;
    }
    if (this.order.quiesce?.refuses !== true || !this.waitsFor(exchange)) return false;
    respondQuiesced(exchange);
    return true;
  }

  /**
   * Closes the tunnels that the order ends, and ends requests whose clients are too slow for it.
   *
   * @param running the requests in progress
   */
  carryOut(running: Iterable<RunningExchange>): SeenWrites {
    const { quiesce } = this.order;
    const seen: SeenWrite[] = [];
    for (const exchange of running) {
      const waits = this.waitsFor(exchange);
      const closes = waits && quiesce!.refuses;
      if (closes || this.maintenanceOf(exchange)?.closesTunnels === true) exchange.closeTunnel();
      if (waits) seen.push(this.look(exchange, quiesce!));
    }
    const [lasting, slow] = [seen.filter((one) => one.lasts), seen.filter((one) => one.slow)];
    if (quiesce?.cutsSlow === true) for (const { exchange } of slow) cut(exchange, quiesce.minimumRate);
    const named = [...(slow.length > 0 ? slow : seen)].sort(
      (a, b) => a.exchange.request.receivedAt - b.exchange.request.receivedAt,
    );
    return {
      ...{ writes: seen.length, lasting: lasting.length, slow: slow.length },
      worst: named.slice(0, NAMED_MAX).map(({ exchange }) => exchange),
    };
  }

  private look(exchange: RunningExchange, { minimumRate, refuseMs }: QuiesceOrder): SeenWrite {
    // A tunnel ends when new requests are refused, and only then.
    if (isTunnel(exchange)) return { exchange, lasts: false, slow: false };
    const slow = this.paces.isSlow(exchange, minimumRate);
    return { exchange, lasts: expectedMs(exchange) > refuseMs, slow };
  }

  private maintenanceOf({ server, client }: Exchange): MaintenanceOrder | undefined {
    const order = this.order.maintenance.find(({ site }) => this.isOf(site, server.name));
    return order === undefined || this.isAllowed(client.address) ? undefined : order;
  }

  private isOf(site: string | undefined, server: string): boolean {
    return site === undefined || site === this.sites.get(server);
  }

  private waitsFor({ route, request, server }: Exchange): boolean {
    const { quiesce } = this.order;
    if (quiesce === undefined || route?.config.action.type !== "proxy") return false;
    if (!this.isOf(quiesce.site, server.name)) return false;
    return quiesce.reads || isWrite(route.config, request.method, request.upgrade !== undefined);
  }
}

/** The requests in progress that a quiesce waits for. */
export interface SeenWrites extends Omit<SeenPauses, "transfers"> {
  /** The requests that are named. */
  readonly worst: readonly RunningExchange[];
}

interface SeenWrite {
  readonly exchange: RunningExchange;
  readonly lasts: boolean;
  readonly slow: boolean;
}

function respondQuiesced(exchange: Exchange): void {
  exchange.errorToken = "http_request_denied";
  respondPaused(exchange, { seconds: QUIESCE_RETRY_SECONDS, message: QUIESCED, page: undefined });
}

/** Ends a request so that its client sees that, and sends the request again; the upstream never gets the end of it. */
function cut(exchange: RunningExchange, minimumRate: number): void {
  const pace = `less than ${minimumRate} bytes a second for ${PACE_WINDOW_MS / 1_000} s`;
  exchange.route?.errorLog.write("warn", `ended for portico quiesce: its client sent ${pace}`, exchange);
  if (!exchange.headSent) return respondQuiesced(exchange);
  exchange.errorToken = "http_request_denied";
  exchange.abort();
}

function retryAfter(until: number | undefined): number {
  if (until === undefined) return UNKNOWN_RETRY_SECONDS;
  return Math.min(RETRY_SECONDS_MAX, Math.max(1, Math.ceil((until - Date.now()) / 1_000)));
}

const IN_MAINTENANCE = "The service is being maintained.";
const QUIESCED = "Changes are not possible at the moment.";
/** The time to retry after if the end is not known. */
const UNKNOWN_RETRY_SECONDS = 60;
/** A maintenance may end early: no client should be told to wait for a whole day. */
const RETRY_SECONDS_MAX = 3_600;
const QUIESCE_RETRY_SECONDS = 10;
/** How many requests a worker names: enough to see who it is. */
const NAMED_MAX = 3;
