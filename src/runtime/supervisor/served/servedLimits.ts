import type { ProxyConfig } from "../../../model/serving.js";
import { type LimitNews, type LimitReport } from "../../rates/limitNews.js";
import { SharedLimits } from "../../rates/sharedLimits.js";
import type { Supervision } from "../processes/supervision.js";
import type { WorkerHandle } from "../processes/workerHandle.js";

/**
 * What clients have asked of routes with limits: each worker tells the master, and gets what all have told. The counts
 * outlast a worker and a reload, but not an upgrade.
 */
export class ServedLimits {
  private readonly shared = new SharedLimits<WorkerHandle>();

  constructor(private readonly supervised: Pick<Supervision, "tellLimits">) {}

  /** Everything, for a worker that starts. */
  get all(): LimitNews {
    return this.shared.all;
  }

  /** The workers of this config are about to start. */
  add(config: ProxyConfig): void {
    this.shared.add(config);
  }

  /** This config is in service, and no other will be. */
  keepOnly(config: ProxyConfig): void {
    this.shared.keepOnly(config);
  }

  heard(worker: WorkerHandle, report: LimitReport): void {
    this.supervised.tellLimits(this.shared.heard(worker, report));
  }

  gone(worker: WorkerHandle): void {
    this.supervised.tellLimits(this.shared.gone(worker));
  }
}
