import type { Problem, SettingsFile } from "../../model/index.js";
import type { Splice } from "./textEdit.js";

/** The state of an item in its file, and the wanted state. */
export interface ItemFinding {
  /** The item's label. */
  readonly item: string;
  readonly wanted: string;
  /** The value in force; undefined if the item is not set, or set by something other than a literal. */
  readonly found?: string;
  /** Line of the value in force. */
  readonly line?: number;
  /** `refused`: it cannot be read, or not be set safely; a problem has the reason. */
  readonly state: "same" | "different" | "missing" | "refused";
}

/**
 * The change of one item by an edit, with enough data to undo it, however the rest of the file changes in the meantime.
 */
export interface ItemChange {
  /** In an INI file. */
  readonly section?: string;
  readonly name: string;
  /** Source text of the value before; null if the line was not there, and was added. */
  readonly from: string | null;
  /** Source text of the value after. */
  readonly to: string;
  /** Whether the header of an added item's section was added too, and (`apart`) with an empty line above it. */
  readonly header?: "added" | "added apart";
  /** How the file was read, if it was not UTF-8. */
  readonly encoding?: "latin1";
  /** Whether the file did not end with a line end, and got one when the item was added. */
  readonly lineEndAdded?: boolean;
}

/** The state of one item, and the planned edit of its lines. */
export interface ItemPlan {
  readonly finding: ItemFinding;
  readonly splice?: Splice;
  readonly change?: ItemChange;
  readonly problem?: Problem;
  readonly note?: string;
}

/**
 * An edit of one item in one of the application's own files. It is undone item by item, so that every other line stays
 * as its owner last wrote it. It contains nothing else from the file, whose secret key is never copied (service 2.3).
 */
export interface SettingsEditRecord extends ItemChange {
  /** Name of the file in the deployment that asked for it; a later one may have others. */
  readonly file: string;
  readonly kind: SettingsFile["kind"];
  /** The path that the deployment gives. */
  readonly path: string;
}

/** The result of undoing a change. */
export interface Reverted {
  readonly text: string;
  /** `gone`: nothing of it is left; `changed`: the value was changed since, and stays. */
  readonly state: "reverted" | "gone" | "changed";
  /** Line of the value that stays. */
  readonly line?: number;
}

/** The items of a file, and their planned changes. If there are problems, nothing may be changed. */
export interface SettingsEdit {
  readonly findings: readonly ItemFinding[];
  readonly splices: readonly Splice[];
  /** The changes of the splices, by items. */
  readonly changes: readonly ItemChange[];
  readonly problems: readonly Problem[];
  /** Notes that users should know and that need no action. */
  readonly notes: readonly string[];
}
