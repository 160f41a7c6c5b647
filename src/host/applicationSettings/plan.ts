import { isUtf8 } from "node:buffer";
import { join } from "node:path";
import {
  type DeploymentSettings,
  itemLabel,
  type Problem,
  problem,
  type Result,
  type SettingsFile,
  storedItems,
} from "../../model/index.js";
import { printableValue } from "../../model/text/printable.js";
import type { ItemChange, ItemFinding, SettingsEdit } from "./edit.js";
import { type SettingsFileState, readFound, replaceFiles } from "./files.js";
import { kindOf, kindProblem } from "./kinds.js";
import { applySplices, type Splice } from "./textEdit.js";
import { unifiedDiff } from "./diff.js";

/** The wanted settings, by file. */
export type SettingsSource = Pick<DeploymentSettings, "files">;

/** A file of the application: its content, and the content it should have. */
export interface PlannedFile {
  /** The file's wanted settings. */
  readonly source: SettingsFile;
  readonly path: string;
  /** The findings of the items, in the items' order. */
  readonly findings: readonly ItemFinding[];
  /** Notes that users should know and that need no action. */
  readonly notes: readonly string[];
  readonly changed: boolean;
  /** Unified diff without the lines that may contain a secret; empty if nothing changes. */
  readonly diff: string;
  readonly file: SettingsFileState;
  /**
   * Replacements, by offsets into the text after the changes for earlier files; in UTF-8, or in bytes if it is not
   * UTF-8.
   */
  readonly splices: readonly Splice[];
  /** Their changes, item by item. */
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

/**
 * Reads the application's files and plans the changes; writes nothing.
 *
 * @param root folder that stands for the host's `/`
 */
export async function planSettings(source: SettingsSource, root = "/"): Promise<SettingsPlan> {
  const read = await Promise.all(
    source.files.map(async (wanted) => ({ wanted, found: await readFound(join(root, wanted.path)) })),
  );
  const files: PlannedFile[] = [];
  const problems: Problem[] = [];
  for (const { wanted, found } of read) {
    if (!found.ok) {
      problems.push(...found.problems);
      continue;
    }
    // Two paths may lead to one file: the second continues with the result of the first.
    const before = files.findLast((f) => isSameFile(f.file, found.value))?.content;
    const edit = planFile(wanted, found.value, before ?? found.value.content, (text, path) => {
      const others = storedItems({ files: source.files.filter((file) => file !== wanted) });
      return kindOf(wanted.kind).edit(text, wanted.items, path, others);
    });
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

/** The real path of a file comes from the user who read it, so it is compared only between files of the same user. */
const isSameFile = (a: SettingsFileState, b: SettingsFileState): boolean =>
  a.target === b.target && a.acting.uid === b.acting.uid;

/** A file after its changes were undone, the last one first; changes that stay are reported. */
export function revertChanges(
  file: SettingsFileState,
  changes: readonly (ItemChange & Pick<SettingsFile, "kind">)[],
): { readonly content: Buffer; readonly problems: readonly Problem[] } {
  // The edit may have replaced the part of the file that was not UTF-8.
  const wasBytes = changes.some((change) => change.encoding === "latin1");
  const encoding = isUtf8(file.content) && !wasBytes ? "utf8" : "latin1";
  let text = file.content.toString(encoding);
  const problems: Problem[] = [];
  for (const change of changes.toReversed()) {
    const reverted = kindOf(change.kind).revert(text, change);
    text = reverted.text;
    if (reverted.state !== "changed") continue;
    const was = change.from === null ? "the line was not there" : `it was ${printableValue(change.from)}`;
    const message = `${itemLabel(change)} was changed by another program or person, so the new value stays; before the first deployment ${was}`;
    problems.push(problem("activation.changed-since", `${file.path}:${reverted.line}`, message));
  }
  return { content: Buffer.from(text, encoding), problems };
}

function planFile(
  source: SettingsFile,
  file: SettingsFileState,
  before: Buffer,
  editText: (text: string, path: string) => SettingsEdit,
): { planned: PlannedFile; problems: readonly Problem[] } {
  // Any encoding other than UTF-8 is handled byte by byte, so that all bytes are kept.
  const encoding = isUtf8(before) ? "utf8" : "latin1";
  const text = before.toString(encoding);
  const { path } = file;
  const wrong = kindProblem(text, path, source);
  const edit = editText(text, path);
  const {
    findings,
    splices,
    changes,
    problems: refused,
    notes,
  } = wrong === undefined ? edit : refusedAll(edit, wrong);
  const locked = splices.length > 0 && file.notReplaceable !== undefined ? [file.notReplaceable] : [];
  const problems = [...refused, ...locked];
  const hidden = kindOf(source.kind).secretLines(text);
  const changed = splices.length > 0 && problems.length === 0;
  const links =
    changed && file.links > 1 ? [`${path}: other hard links to the file keep the old content`] : [];
  const planned: PlannedFile = {
    source,
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

/** The values of a file that is of another kind are not findings. */
function refusedAll({ findings }: SettingsEdit, wrong: Problem): SettingsEdit {
  const refused = findings.map(({ item, wanted }) => ({ item, wanted, state: "refused" as const }));
  return { findings: refused, splices: [], changes: [], problems: [wrong], notes: [] };
}
