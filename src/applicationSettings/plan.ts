import { isUtf8 } from "node:buffer";
import { join } from "node:path";
import { type DeploymentSettings, type Problem, problem, type Result } from "../model/index.js";
import { printableValue } from "../model/printable.js";
import type { ApplicationSettingsValues } from "../render/index.js";
import { editIni, fileServerItems, networkDaemonItems } from "./iniFile.js";
import { revertIni } from "./iniRevert.js";
import { secretIniLines, secretPythonLines } from "./secretLines.js";
import type { ItemChange, ItemFinding, Reverted, SettingsEdit } from "./edit.js";
import { type FoundFile, readFound, replaceFiles } from "./files.js";
import { applySplices, type Splice } from "./textEdit.js";
import { unifiedDiff } from "./diff.js";
import { editWebApplication } from "./webApplicationFile.js";
import { revertWebApplication } from "./webApplicationRevert.js";

/** Which of the application's files. */
export type SettingsRole = keyof DeploymentSettings["files"];

/** What is wanted, and where. */
export type SettingsSource = Pick<DeploymentSettings, "values" | "files">;

/** One of the application's files: its content, and the content it should have. */
export interface PlannedFile {
  readonly role: SettingsRole;
  readonly path: string;
  readonly findings: readonly ItemFinding[];
  /** Notes that users should know and that need no action. */
  readonly notes: readonly string[];
  readonly changed: boolean;
  /** Unified diff without the lines that may contain a secret; empty if nothing changes. */
  readonly diff: string;
  readonly file: FoundFile;
  /**
   * What is replaced in the text, by offsets into the text that earlier roles left; in UTF-8, or in bytes if it is not
   * UTF-8.
   */
  readonly splices: readonly Splice[];
  /** What they change, item by item. */
  readonly changes: readonly ItemChange[];
  /** The whole file after the edit. */
  readonly content: Buffer;
}

/** Everything an edit of the settings would do. If there are problems, nothing may be done. */
export interface SettingsPlan {
  /** Files that could be read. */
  readonly files: readonly PlannedFile[];
  readonly problems: readonly Problem[];
}

interface Editor {
  edit(text: string, values: ApplicationSettingsValues, path: string, ours: readonly string[]): SettingsEdit;
  revert(text: string, change: ItemChange): Reverted;
}

const EDITORS: Readonly<Record<SettingsRole, Editor>> = {
  networkDaemon: iniEditor(networkDaemonItems),
  webApplication: { edit: editWebApplication, revert: revertWebApplication },
  fileServer: iniEditor(fileServerItems),
};

function iniEditor(itemsOf: typeof networkDaemonItems): Editor {
  const names = itemsOf({} as ApplicationSettingsValues);
  return {
    edit: (text, values, path) => editIni(text, itemsOf(values), path),
    revert: (text, change) =>
      revertIni(
        text,
        names.find(({ name }) => name === change.item)!,
        change,
      ),
  };
}

/** Every role, in the order of the table of service 2.1. */
const ROLES = ["networkDaemon", "webApplication", "fileServer"] as const;

/**
 * Reads the application's files and works out what has to change; writes nothing.
 *
 * @param root folder that stands for the host's `/`
 * @param ours trusted origins that an earlier edit has added
 */
export async function planSettings(
  source: SettingsSource,
  root = "/",
  ours: readonly string[] = [],
): Promise<SettingsPlan> {
  const bad = valueProblems(source.values);
  if (bad.length > 0) return { files: [], problems: bad };
  const read = await Promise.all(
    ROLES.map(async (role) => ({ role, found: await readFound(join(root, source.files[role])) })),
  );
  const files: PlannedFile[] = [];
  const problems: Problem[] = [];
  for (const { role, found } of read) {
    if (!found.ok) {
      problems.push(...found.problems);
      continue;
    }
    // Two roles may be in one file: the second continues with the result of the first.
    const before = files.findLast((f) => isSameFile(f.file, found.value))?.content;
    const edit = planFile(role, found.value, before ?? found.value.content, source.values, ours);
    files.push(edit.planned);
    problems.push(...edit.problems);
  }
  return { files, problems };
}

/** Puts a plan into effect: all files or none. A plan with problems is refused, one without changes writes nothing. */
export async function applyEdits(plan: SettingsPlan): Promise<Result<null>> {
  if (plan.problems.length > 0) return { ok: false, problems: plan.problems };
  const changed = plan.files.filter((file) => file.changed);
  const last = changed.filter((f, i) => changed.findLastIndex((o) => isSameFile(o.file, f.file)) === i);
  return replaceFiles(last);
}

/** Where a file really is, is the word of the user who read it: it counts for files of the same user only. */
const isSameFile = (a: FoundFile, b: FoundFile): boolean =>
  a.target === b.target && a.acting.uid === b.acting.uid;

/** A file after its changes were undone, the last one first; what stays is reported. */
export function revertChanges(
  file: FoundFile,
  changes: readonly (ItemChange & { readonly role: SettingsRole })[],
): { readonly content: Buffer; readonly problems: readonly Problem[] } {
  // The edit may have replaced the part of the file that was not UTF-8.
  const wasBytes = changes.some((change) => change.encoding === "latin1");
  const encoding = isUtf8(file.content) && !wasBytes ? "utf8" : "latin1";
  let text = file.content.toString(encoding);
  const problems: Problem[] = [];
  for (const change of changes.toReversed()) {
    const reverted = EDITORS[change.role].revert(text, change);
    text = reverted.text;
    if (reverted.state !== "changed") continue;
    const was = change.from === null ? "it was not set" : `it was ${printableValue(change.from)}`;
    const message = `${change.item} was changed by somebody else and stays as it is; before the first deployment ${was}`;
    problems.push(problem("activation.changed-since", `${file.path}:${reverted.line}`, message));
  }
  return { content: Buffer.from(text, encoding), problems };
}

function planFile(
  role: SettingsRole,
  file: FoundFile,
  before: Buffer,
  values: ApplicationSettingsValues,
  ours: readonly string[],
): { planned: PlannedFile; problems: readonly Problem[] } {
  // Any encoding other than UTF-8 is handled byte by byte, so that all bytes are kept.
  const encoding = isUtf8(before) ? "utf8" : "latin1";
  const text = before.toString(encoding);
  const { path } = file;
  const {
    findings,
    splices,
    changes,
    problems: refused,
    notes,
  } = EDITORS[role].edit(text, values, path, ours);
  const locked = splices.length > 0 && file.notReplaceable !== undefined ? [file.notReplaceable] : [];
  const problems = [...refused, ...locked];
  const hidden = role === "webApplication" ? secretPythonLines(text) : secretIniLines(text);
  const changed = splices.length > 0 && problems.length === 0;
  const links =
    changed && file.links > 1 ? [`${path}: other hard links to the file keep the old content`] : [];
  const planned: PlannedFile = {
    role,
    path,
    findings,
    notes: [...notes, ...links],
    changed,
    diff: changed ? unifiedDiff(path, text, splices, hidden) : "",
    file,
    splices: changed ? splices : [],
    changes: !changed ? [] : changes.map((each) => (encoding === "utf8" ? each : { ...each, encoding })),
    content: changed ? Buffer.from(applySplices(text, splices), encoding) : before,
  };
  return { planned, problems };
}

/** Values that cannot be quoted safely for every reader of these files. */
function valueProblems(values: ApplicationSettingsValues): Problem[] {
  return Object.entries(values).flatMap(([name, value]: [string, unknown]) => {
    const texts = [value].flat().map(String);
    if (texts.every((text) => /^[!-~]+$/.test(text) && !/["'\\%#;]/.test(text))) return [];
    const message = "cannot be written into settings";
    return [problem("settings.bad-value", `settings.values.${name}`, message, { received: value })];
  });
}
