import type { Problem } from "../model/index.js";
import type { Splice } from "./textEdit.js";

/** One of the spec's configuration items (2.1), as one file has it and as it should be. */
export interface ItemFinding {
  readonly item: string;
  readonly wanted: string;
  /** The value in force; undefined if the item is not set, or set by something other than a literal. */
  readonly found?: string;
  /** Line of the value in force. */
  readonly line?: number;
  /** `refused`: it cannot be told, or not be set safely; a problem says why. */
  readonly state: "same" | "different" | "missing" | "refused";
}

/** What stands in a file, and what has to be done to it. Nothing is to be done where there are problems. */
export interface SettingsEdit {
  readonly findings: readonly ItemFinding[];
  readonly splices: readonly Splice[];
  readonly problems: readonly Problem[];
  /** What a person should know and nothing has to be done about. */
  readonly notes: readonly string[];
}
