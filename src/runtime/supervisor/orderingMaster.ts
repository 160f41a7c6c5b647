import type { LoadedConfig } from "../load/loadConfig.js";
import type { Queue } from "../queue.js";
import type { ControlOutcome } from "./control.js";
import type { Supervision } from "./supervision.js";

/** What those need of a master who give its workers orders by command. */
export interface OrderingMaster {
  /** What is in service now. */
  loaded(): LoadedConfig;
  readonly supervised: Pick<Supervision, "orderServers" | "orderPauses">;
  /** Operations of the master that must not overlap. */
  readonly changes: Queue;
  /** Why nothing can be changed, if so. */
  notNow(): Promise<ControlOutcome> | undefined;
}
