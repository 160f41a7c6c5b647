import type { ProxyConfig, Result } from "../../model/serving.js";
import { type ListenSocket, ListenSockets } from "../listen/sockets.js";
import type { Handover } from "./handover.js";
import type { MasterLog } from "./masterLog.js";
import { Health, type NotReady } from "./health.js";

/** Everything that a master listens on: the sockets of the listeners, for its workers, and the health listener's. */
export class MasterSockets {
  readonly listeners = new ListenSockets();
  private readonly health: Health;

  constructor(notReady: () => NotReady | undefined, logs: Pick<MasterLog, "warn">) {
    this.health = new Health(notReady, logs);
  }

  adopt({ sockets, health }: Handover): void {
    this.listeners.adopt(sockets);
    this.health.adopt(health);
  }

  get passable(): Pick<Handover, "sockets" | "health"> {
    return { sockets: this.listeners.passable(), health: this.health.passable };
  }

  /** Opens what a config needs besides what another one has; on failure nothing has changed. */
  async acquire(
    config: ProxyConfig,
    before: ProxyConfig | undefined,
  ): Promise<Result<Map<string, ListenSocket>>> {
    const sockets = this.listeners.acquire(config.listeners);
    const problems = sockets.ok ? await this.health.open(config.healthListener) : [];
    if (problems.length === 0) return sockets;
    this.listeners.keepOnly(before?.listeners ?? []);
    return { ok: false, problems };
  }

  /**
   * Closes everything that this config does not need.
   *
   * @param isMain whether this is the main process: before that the previous master answers on its health listener
   */
  async keepOnly(config: ProxyConfig | undefined, isMain: boolean): Promise<void> {
    this.listeners.keepOnly(config?.listeners ?? []);
    if (isMain) await this.answerHealth(config);
  }

  /** From now on health is answered where this config says, and nowhere else. */
  async answerHealth(config: ProxyConfig | undefined): Promise<void> {
    await this.health.settle(config?.healthListener);
  }

  async closeAll(): Promise<void> {
    this.listeners.closeAll();
    await this.health.settle(undefined);
  }
}
