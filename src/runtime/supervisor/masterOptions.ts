import type { Result } from "../../model/serving.js";
import type { FindIssued, LoadedForMaster } from "../load/loadConfig.js";
import type { Predecessor } from "./predecessor.js";

export interface MasterOptions {
  /** Reads the config; called at the start and for every reload. */
  load(expiry: "problem" | "warning", issued: FindIssued): Promise<Result<LoadedForMaster>>;
  /** Arguments to Node that start a worker; default: this script with `worker`. */
  readonly workerCommand?: readonly string[];
  readonly logToStderr?: boolean;
  readonly onReady?: () => void;
  /** Path of the control socket (`control.ts`); default: none. */
  readonly control?: string | undefined;
  /** Directory for certificates by ACME; default: none is requested. */
  readonly acmeDirectory?: string | undefined;
  /** The master that this one takes over from. */
  readonly predecessor?: Predecessor | undefined;
}
