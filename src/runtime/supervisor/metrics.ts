import { type MetricsListenerConfig, withinRanges } from "../../model/serving.js";
import type { Counts } from "../counting/counts.js";
import type { MasterLog } from "./masterLog.js";
import { OwnListener } from "./ownListener.js";
import type { Answer, Asked } from "./ownServer.js";

/** What answers a path of the metrics listener. */
export type MetricsPage = (asked: Asked) => Answer | Promise<Answer>;

/** The metrics listener: a table of paths. */
export class Metrics extends OwnListener<MetricsListenerConfig> {
  private readonly pages = new Map<string, MetricsPage>();

  /** @param counts all that is counted by now */
  constructor(counts: () => Promise<Counts>, logs: Pick<MasterLog, "warn">) {
    super("metricsListener", logs);
    this.add("/metrics", async ({ accept }) => {
      const { exposition } = await import("../counting/exposition.js");
      return exposition(await counts(), accept);
    });
  }

  /** Answers a path by this. */
  add(path: string, page: MetricsPage): void {
    this.pages.set(path, page);
  }

  override settle(at: MetricsListenerConfig | undefined): Promise<void> {
    const allow = at !== undefined && "allow" in at ? at.allow : [];
    this.admits = allow.length === 0 ? () => true : withinRanges(allow);
    return super.settle(at);
  }

  protected override answer(asked: Asked): Answer | undefined | Promise<Answer> {
    return this.pages.get(asked.path)?.(asked);
  }
}
