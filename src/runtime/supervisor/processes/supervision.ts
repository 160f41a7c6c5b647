import type { Counts } from "../../counting/counts.js";
import type { Challenge } from "../../dispatch/challenge.js";
import type { PauseOrder, SeenPauses } from "../../dispatch/pauses.js";
import type { SeenTransfers } from "../../dispatch/transfers.js";
import type { Supervised } from "./handover.js";
import type { ControlOutcome } from "../control/control.js";
import type { WorkerHoldings } from "../../worker/holdings.js";
import type { SeenServers, ServerOrders } from "../../upstream/upstreamServers.js";
import type { MasterMessage } from "../../worker/ipc.js";
import type { LimitNews } from "../../rates/limitNews.js";
import type { WorkerHandle } from "./workerHandle.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import type { Queue } from "../../queue.js";

/** Everything that runs for a master: generations that have workers, the previous master, the next master. */
export class Supervision {
  /** What authorities ask for at present: workers that start respond to it too. */
  challenges: readonly Challenge[] = [];
  private readonly all = new Set<Supervised>();

  /** @param onGone is called whenever one of them has ended */
  constructor(private readonly onGone: () => void) {}

  get size(): number {
    return this.all.size;
  }

  /** Stops it with this master, which waits for it. */
  add(each: Supervised): void {
    if (this.all.has(each)) return;
    this.all.add(each);
    void each.gone.then(() => {
      this.all.delete(each);
      this.onGone();
    });
  }

  /** It continues without this master. */
  release(each: Supervised): void {
    this.all.delete(each);
  }

  /** Resolves when none is left; a reload in progress may still add some. */
  async allGone(): Promise<void> {
    while (this.all.size > 0) await Promise.all([...this.all].map(({ gone }) => gone));
  }

  broadcast(message: MasterMessage): void {
    for (const each of this.all) each.broadcast(message);
  }

  /** Tells each worker of this master what clients have asked of routes with limits. */
  tellLimits(newsFor: (worker: WorkerHandle) => LimitNews): void {
    for (const each of this.all) each.tellLimits?.(newsFor);
  }

  /** Resolves when every worker that accepts responds to these challenges, those of a reload under way among them. */
  async respondToChallenges(challenges: readonly Challenge[]): Promise<void> {
    this.challenges = challenges;
    await Promise.all([...this.all].map((each) => each.respondToChallenges?.(challenges)));
  }

  /** The holdings of this master's workers, including draining ones. */
  async holdings(): Promise<readonly WorkerHoldings[]> {
    return (await Promise.all([...this.all].map((each) => each.holdings?.() ?? []))).flat();
  }

  /** Has the workers of this master act on these orders; resolves with their reports about the servers. */
  async orderServers(orders: ServerOrders): Promise<readonly SeenServers[]> {
    return (await Promise.all([...this.all].map((each) => each.orderServers?.(orders) ?? []))).flat();
  }

  /** The same for a pause order; includes workers of the previous master. Undefined for a worker without response. */
  async orderPauses(order: PauseOrder): Promise<readonly (SeenPauses | undefined)[]> {
    return (await Promise.all([...this.all].map((each) => each.orderPauses?.(order) ?? []))).flat();
  }

  /** The current gauges of all workers; their counts up to then are added before this resolves. */
  async gauges(): Promise<readonly Counts[]> {
    return (await Promise.all([...this.all].map((each) => each.gauges?.() ?? []))).flat();
  }

  /** Requests in progress of this master's workers, by process; undefined for a worker that does not respond. */
  async transfers(): Promise<readonly (readonly [pid: number, seen: SeenTransfers | undefined])[]> {
    return (await Promise.all([...this.all].map((each) => each.transfers?.() ?? []))).flat();
  }

  async drain(): Promise<void> {
    await Promise.all([...this.all].map((each) => each.drain()));
  }

  stop(): void {
    for (const each of this.all) each.stop();
  }
}

/** The interface of a master for commands that give its workers orders. */
export interface OrderingMaster {
  /** The config in service, with its files. */
  loaded(): LoadedConfig;
  readonly supervised: Pick<Supervision, "orderServers" | "orderPauses">;
  /** Operations of the master that must not overlap. */
  readonly changes: Queue;
  /** Why nothing can be changed, if so. */
  notNow(): Promise<ControlOutcome> | undefined;
}
