import { type MetricsListenerConfig, withinRanges } from "../../../model/serving.js";
import type { Counts } from "../../counting/counts.js";
import type { MasterLog } from "../report/masterLog.js";
import { isOwnHost, OTHER_HOST } from "../../status/ownHost.js";
import { OwnListener } from "./ownListener.js";
import { type OwnServerResponse, type OwnRequest, textResponse } from "./ownServer.js";

/** What responds at a path of the metrics listener. @param bySocket whether a directory decides who gets there */
export type MetricsPage = (
  asked: OwnRequest,
  bySocket: boolean,
) => OwnServerResponse | Promise<OwnServerResponse>;

/** The metrics listener: a table of paths. */
export class Metrics extends OwnListener<MetricsListenerConfig> {
  private readonly pages = new Map<string, MetricsPage>();
  /** The names of the virtual servers of the config in service. */
  serverNames: readonly string[] = [];
  private readonly ranges = new WeakMap<MetricsListenerConfig, (address: string) => boolean>();

  /** @param counts all that is counted by now */
  constructor(counts: () => Promise<Counts>, logs: Pick<MasterLog, "warn">) {
    super("metricsListener", logs);
    const make = async (accept: string): Promise<OwnServerResponse> => {
      const { exposition } = await import("../../counting/exposition.js");
      return exposition(await counts(), accept);
    };
    const [text, open] = ["", OPEN_METRICS].map((accept) => together(() => make(accept))) as [Asks, Asks];
    this.add("/metrics", ({ accept }) => (accept.includes(OPEN_METRICS) ? open() : text()));
  }

  /** Requests for a path get its response. */
  add(path: string, page: MetricsPage): void {
    this.pages.set(path, page);
  }

  protected override readonly admits = (address: string, at: MetricsListenerConfig): boolean => {
    if (!("allow" in at) || at.allow.length === 0) return true;
    let admits = this.ranges.get(at);
    if (admits === undefined) this.ranges.set(at, (admits = withinRanges(at.allow)));
    return admits(address);
  };

  protected override respond(
    asked: OwnRequest,
    at: MetricsListenerConfig,
  ): OwnServerResponse | Promise<OwnServerResponse> {
    if ("port" in at && !isOwnHost(asked.host, this.serverNames)) return textResponse(421, OTHER_HOST);
    const page = this.pages.get(asked.path);
    if (page === undefined)
      return textResponse(404, `not found; there are ${[...this.pages.keys()].join(", ")}`);
    return page(asked, "path" in at);
  }
}

const OPEN_METRICS = "application/openmetrics-text";

type Asks = () => Promise<OwnServerResponse>;

/**
 * Makes one response at a time, and another for all requests that arrive meanwhile: each run asks the workers, and a client
 * that scrapes in a loop must not keep them busy.
 */
function together(make: Asks): Asks {
  let [running, next]: (Promise<OwnServerResponse> | undefined)[] = [];
  const begin: Asks = () => (running = make().finally(() => (running = undefined)));
  return () => {
    if (running === undefined) return begin();
    const again = (): Promise<OwnServerResponse> => {
      next = undefined;
      return begin();
    };
    return (next ??= running.then(again, again));
  };
}
