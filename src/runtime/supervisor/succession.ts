import type { Problem } from "../../model/serving.js";
import type { PauseOrder, SeenPauses } from "../dispatch/pauses.js";
import type { ControlOutcome } from "./control/control.js";
import { cannotHandOver, type Handover, type Program, Successor } from "./processes/handover.js";
import type { MasterLog } from "./report/masterLog.js";
import type { ServedCounts } from "./served/servedCounts.js";
import type { CertificateManager } from "./served/certificateManager.js";

import { type ServiceState, stopped } from "./serviceState.js";
import type { Supervision } from "./processes/supervision.js";

/** The interface of the master that an upgrade replaces. */
export interface ReplaceableMaster {
  readonly supervised: Pick<Supervision, "add" | "release" | "orderPauses" | "gauges">;
  readonly counts: Pick<ServedCounts, "add" | "count" | "passOn" | "keep">;
  readonly certificates: Pick<CertificateManager, "leave" | "lookAfter">;
  readonly service: ServiceState;
  readonly logs: Pick<MasterLog, "write">;
  /** The state for the new master. */
  handover(): Handover;
  /** Whether it was asked to stop: perhaps it accepts for a moment more, or it already stops accepting. */
  stops(): "no" | "soon" | "now";
  /** Leaves the control socket and the health listener to the new master. */
  giveWay(): void;
  /** Resolves when none of its workers accepts any more. */
  end(): Promise<void>;
  reopenLogs(): void;
  /** The new master is gone, and the service with it. */
  onSuccessorDied(): void;
}

/** How a master is replaced by a new one (`handover.ts`), seen from the old one. */
export class Succession {
  /** The new master, once it is the main process. */
  replacedBy: Successor | undefined;

  constructor(private readonly master: ReplaceableMaster) {}

  async upgrade(program: Program): Promise<ControlOutcome> {
    const { master } = this;
    const impossible = cannotHandOver();
    if (impossible.length > 0) return master.service.refuse(REFUSED, impossible);
    const successor: Successor = new Successor(program, master.handover(), master.service.environment, {
      drain: () => void this.retire(successor),
      stop: () => void master.end(),
      reopenLogs: () => master.reopenLogs(),
      pauses: (order: PauseOrder): Promise<readonly (SeenPauses | undefined)[]> =>
        master.supervised.orderPauses(order),
      count: (counts) => master.counts.add(counts),
      gauges: () => master.supervised.gauges(),
    });
    master.supervised.add(successor);
    const problems = await this.handOver(successor);
    if (problems.length > 0) return this.goesOn(successor, problems);
    const message = `a new master, process ${successor.pid}, has taken over`;
    master.logs.write("info", message);
    master.counts.count("upgrades", "done");
    // The stop was meant for the service.
    if (master.stops() === "soon") successor.drain(true);
    await this.retire(successor);
    return { ok: true, value: { message, warnings: [] } };
  }

  private async handOver(successor: Successor): Promise<readonly Problem[]> {
    const { master } = this;
    const notReady = await successor.ready();
    if (notReady.length > 0) return notReady;
    if (master.stops() !== "no") return [stopped("upgrade")];
    // Two masters must not order the same certificates.
    await master.certificates.leave();
    await successor.detach();
    // Before the new master reports anything, and before the end of this one could look like the end of the service.
    await master.service.notify({ MAINPID: successor.pid! });
    if (master.stops() !== "no") return [stopped("upgrade")];
    return successor.takeOver(master.counts.passOn((counts) => successor.count(counts)));
  }

  /** The new master could not take over. */
  private async goesOn(successor: Successor, problems: readonly Problem[]): Promise<ControlOutcome> {
    const { master } = this;
    if (this.replacedBy !== undefined) return { ok: false, problems };
    master.counts.count("upgrades", "refused");
    successor.drain();
    master.counts.keep();
    if (master.stops() !== "now") {
      master.service.refuse(REFUSED, problems);
      master.certificates.lookAfter();
    }
    await master.service.notify({ MAINPID: process.pid });
    return { ok: false, problems };
  }

  private retire(successor: Successor): Promise<void> {
    if (this.replacedBy !== undefined) return Promise.resolve();
    const { master } = this;
    this.replacedBy = successor;
    master.supervised.release(successor);
    successor.release();
    master.giveWay();
    void successor.gone.then(() => master.onSuccessorDied());
    return master.end();
  }
}

const REFUSED = "upgrade refused; the running portico continues";
