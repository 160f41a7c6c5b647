import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import {
  type Deployment,
  type DeploymentSettings,
  type Problem,
  problem,
  ProblemError,
} from "../model/index.js";
import { applyEdits, type PlannedFile, planSettings, type SettingsPlan } from "../settings/index.js";
import { readFound, removeNeedlessBackups, replaceFiles } from "../settings/settingsFiles.js";
import { applySplices, type Splice } from "../settings/textEdit.js";
import type { Store } from "./store.js";

export type SettingsFile = keyof DeploymentSettings["files"];

/**
 * An edit of one of the application's own files, told by what it changes and not by the whole text: the web
 * application's settings hold its secret key, which is copied nowhere (spec 2.1).
 */
export interface SettingsEditRecord {
  readonly file: SettingsFile;
  readonly path: string;
  /** Hash of the file before the edit. */
  readonly before: string;
  /** Hash of the file after it. */
  readonly after: string;
  /** What undoes it. */
  readonly undo: readonly Splice[];
}

/** What has to be edited in the application's files. */
export interface PlannedEdits {
  readonly edits: readonly SettingsEditRecord[];
  readonly plan: SettingsPlan;
}

/** Works out the edits that a deployment asks for; changes nothing. */
export async function planEdits(store: Store, { settings }: Deployment): Promise<PlannedEdits> {
  if (settings?.apply !== true) return { edits: [], plan: { files: [], problems: [] } };
  const plan = await planSettings(settings, store.root);
  const before = (index: number): Buffer => {
    const { file } = plan.files[index]!;
    return plan.files.slice(0, index).findLast((f) => f.file.target === file.target)?.content ?? file.content;
  };
  const edits = plan.files.map((file, i) => recordOf(file, settings.files[file.role], before(i)));
  return { edits: edits.filter((edit) => edit.before !== edit.after), plan };
}

function recordOf({ role, splices, content }: PlannedFile, path: string, before: Buffer): SettingsEditRecord {
  const undo = inverse(textOf(before), splices);
  return { file: role, path, before: hash(before), after: hash(content), undo };
}

/** Edits the files, all or none. */
export async function makeEdits({ plan }: PlannedEdits): Promise<void> {
  const outcome = await applyEdits(plan);
  if (!outcome.ok) throw new ProblemError(outcome.problems);
}

/**
 * Takes an edit back. A file that somebody changed since stays as it is, and that is the problem returned; one that has
 * not been edited as yet is fine.
 */
export async function undoEdit(store: Store, edit: SettingsEditRecord): Promise<Problem | undefined> {
  const found = await readFound(store.onHost(edit.path));
  if (!found.ok) return found.problems[0];
  const { content } = found.value;
  if (hash(content) === edit.before) return undefined;
  if (hash(content) !== edit.after) {
    return problem("activation.changed-since", edit.path, "was changed by somebody else and stays as it is");
  }
  const undone = undoneBytes(content, edit);
  if (undone === undefined) {
    return problem(
      "activation.not-restored",
      edit.path,
      "stays as it is: the edit cannot be taken back exactly",
    );
  }
  const outcome = await replaceFiles([{ file: found.value, content: undone }]);
  if (!outcome.ok) throw new ProblemError(outcome.problems);
  // The edit can be made again at any time; nothing else is lost with the copy that was kept of it.
  for (const { backup } of outcome.value) await rm(backup, { force: true });
  await removeNeedlessBackups(found.value.target);
  return undefined;
}

/** Byte for byte what was there before: the edit may have replaced what made the file be no UTF-8. */
function undoneBytes(content: Buffer, { before, undo }: SettingsEditRecord): Buffer | undefined {
  return (["utf8", "latin1"] as const)
    .map((encoding) => Buffer.from(applySplices(content.toString(encoding), undo), encoding))
    .find((bytes) => hash(bytes) === before);
}

/** What leads back: the replaced pieces, at the offsets that they have in the new text. */
function inverse(text: string, splices: readonly Splice[]): Splice[] {
  let shift = 0;
  return splices
    .toSorted((a, b) => a.from - b.from)
    .map(({ from, to, text: inserted }) => {
      const at = from + shift;
      shift += inserted.length - (to - from);
      return { from: at, to: at + inserted.length, text: text.slice(from, to) };
    });
}

/** The editors' view of a file: whatever is no UTF-8 byte by byte. */
const textOf = (bytes: Buffer): string => bytes.toString(isUtf8(bytes) ? "utf8" : "latin1");

const hash = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
