import type { Problem, ProxyConfig, Result } from "../../model/serving.js";
import type { Counts } from "../counting/counts.js";
import { type ListenSocket, ListenSockets } from "../listen/sockets.js";
import type { Handover } from "./processes/handover.js";
import type { MasterLog } from "./report/masterLog.js";
import { Health, type NotReady } from "./listeners/health.js";
import { Metrics } from "./listeners/metrics.js";

/** Everything that a master listens on: the sockets of the listeners, for its workers, and its own. */
export class MasterSockets {
  readonly listeners = new ListenSockets();
  readonly metrics: Metrics;
  private readonly health: Health;

  /** @param counts all that is counted by now */
  constructor(
    notReady: () => NotReady | undefined,
    counts: () => Promise<Counts>,
    logs: Pick<MasterLog, "warn">,
  ) {
    this.health = new Health(notReady, logs);
    this.metrics = new Metrics(counts, logs);
  }

  adopt({ sockets, health, metrics }: Handover): void {
    this.listeners.adopt(sockets);
    this.health.adopt(health);
    this.metrics.adopt(metrics);
  }

  get passable(): Pick<Handover, "sockets" | "health" | "metrics"> {
    const { listeners, health, metrics } = this;
    return { sockets: listeners.passable(), health: health.passable, metrics: metrics.passable };
  }

  /**
   * Opens the sockets that a config needs in addition to those of another config; on failure nothing has changed.
   *
   * @param isMain as of {@link keepOnly}
   */
  async acquire(
    config: ProxyConfig,
    before: ProxyConfig | undefined,
    isMain: boolean,
  ): Promise<Result<Map<string, ListenSocket>>> {
    const sockets = this.listeners.acquire(config.listeners);
    const problems = sockets.ok ? await this.openOwn(config) : [];
    if (problems.length === 0) return sockets;
    await this.keepOnly(before, isMain);
    return { ok: false, problems };
  }

  /**
   * Closes everything that this config does not need.
   *
   * @param isMain whether this is the main process: before that the previous master responds on its own listeners
   */
  async keepOnly(config: ProxyConfig | undefined, isMain: boolean): Promise<void> {
    this.listeners.keepOnly(config?.listeners ?? []);
    if (isMain) await this.serveOwn(config);
  }

  /** From now on the master responds where this config says, and nowhere else. */
  async serveOwn(config: ProxyConfig | undefined): Promise<void> {
    await this.health.settle(config?.healthListener);
    this.metrics.serverNames = config?.virtualServers.flatMap(({ serverNames }) => serverNames) ?? [];
    await this.metrics.settle(config?.metricsListener);
  }

  private async openOwn({ healthListener, metricsListener }: ProxyConfig): Promise<readonly Problem[]> {
    return [...(await this.health.open(healthListener)), ...(await this.metrics.open(metricsListener))];
  }

  async closeAll(): Promise<void> {
    this.listeners.closeAll();
    await this.serveOwn(undefined);
  }
}
