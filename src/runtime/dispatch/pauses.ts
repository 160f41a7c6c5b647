import { isWrite, PageTemplate, type ProxyConfig, withinRanges } from "../../model/serving.js";
import { respondPaused } from "./errorPages.js";
import type { Exchange, RouteRuntime, RunningExchange } from "../exchange/exchange.js";

/** A master's order to its workers to refuse requests for now. All of it is JSON. */
export interface PauseOrder {
  readonly maintenance: readonly MaintenanceOrder[];
  readonly quiesce?: QuiesceOrder | undefined;
}

/** Requests to one virtual server, or to all, get 503. */
export interface MaintenanceOrder {
  /** Name of the virtual server; undefined for all. */
  readonly server?: string | undefined;
  /** When it is planned to end, in milliseconds since 1970. */
  readonly until?: number | undefined;
  /** Shown to clients that are refused. */
  readonly message?: string | undefined;
  /** Whether the grace of WebSockets is over. */
  readonly closesTunnels: boolean;
}

/** Requests that write get 503 while a command runs. */
export interface QuiesceOrder {
  /** Whether requests that read get 503, too. */
  readonly reads: boolean;
}

/** A worker's report about an order. */
export interface SeenPauses {
  /** Requests in progress that such an order would refuse now. */
  readonly writes: number;
}

export const NO_PAUSES: PauseOrder = { maintenance: [] };

/** The requests that a worker refuses by order, and those in progress that the order waits for. */
export class Pauses {
  /** Whether any order is in force; checked for each request. */
  active = false;
  private order = NO_PAUSES;
  private readonly isAllowed: (address: string) => boolean;

  private readonly page: PageTemplate | undefined;

  constructor({ maintenance: { allow, page } }: Pick<ProxyConfig, "maintenance">) {
    this.isAllowed = withinRanges(allow);
    this.page = page === undefined ? undefined : new PageTemplate(page);
  }

  set(order: PauseOrder): void {
    this.order = order;
    this.active = order.maintenance.length > 0 || order.quiesce !== undefined;
  }

  /** @returns whether it refused the request */
  refuses(exchange: Exchange, { config }: RouteRuntime): boolean {
    // The target of a redirect is refused itself, or is another site.
    if (config.action.type === "redirect") return false;
    const maintenance = this.maintenanceOf(exchange);
    if (maintenance === undefined && !this.waitsFor(exchange)) return false;
    exchange.errorToken = "http_request_denied";
    if (maintenance !== undefined) {
      const { until, message } = maintenance;
      respondPaused(exchange, {
        seconds: retryAfter(until),
        message: message ?? IN_MAINTENANCE,
        page: this.page,
      });
      return true;
    }
    respondPaused(exchange, { seconds: QUIESCE_RETRY_SECONDS, message: QUIESCED, page: undefined });
    return true;
  }

  /**
   * Closes the tunnels that the order ends.
   *
   * @param running the requests in progress
   */
  carryOut(running: Iterable<RunningExchange>): SeenPauses {
    let writes = 0;
    for (const exchange of running) {
      const waits = this.waitsFor(exchange);
      if (waits) writes++;
      if (waits || this.maintenanceOf(exchange)?.closesTunnels === true) exchange.closeTunnel();
    }
    return { writes };
  }

  private maintenanceOf({ server, client }: Exchange): MaintenanceOrder | undefined {
    const order = this.order.maintenance.find(
      (one) => one.server === undefined || one.server === server.name,
    );
    return order === undefined || this.isAllowed(client.address) ? undefined : order;
  }

  private waitsFor({ route, request }: Exchange): boolean {
    const { quiesce } = this.order;
    if (quiesce === undefined || route?.config.action.type !== "proxy") return false;
    return quiesce.reads || isWrite(route.config, request.method, request.upgrade !== undefined);
  }
}

function retryAfter(until: number | undefined): number {
  if (until === undefined) return UNKNOWN_RETRY_SECONDS;
  return Math.min(RETRY_SECONDS_MAX, Math.max(1, Math.ceil((until - Date.now()) / 1_000)));
}

const IN_MAINTENANCE = "The service is being maintained.";
const QUIESCED = "Changes are not possible at the moment.";
/** Where the end is not known. */
const UNKNOWN_RETRY_SECONDS = 60;
/** A maintenance may end early: no client should be told to wait for a whole day. */
const RETRY_SECONDS_MAX = 3_600;
const QUIESCE_RETRY_SECONDS = 10;
