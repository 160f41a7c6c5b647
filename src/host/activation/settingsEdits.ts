import { isDeepStrictEqual } from "node:util";
import { type Deployment, itemLabel, type Problem, ProblemError, type Result } from "../../model/index.js";
import {
  applyEdits,
  planSettings,
  readFound,
  replaceFiles,
  revertChanges,
  type SettingsEditRecord,
  type SettingsPlan,
  type SettingsSource,
  sweepBeside,
} from "../applicationSettings/index.js";
import { withLock } from "./lock.js";
import { type GoodState, Store } from "./store.js";

/** The planned edits of the application's files. */
export interface PlannedEdits {
  readonly edits: readonly SettingsEditRecord[];
  readonly plan: SettingsPlan;
  /** Files that were not looked at. */
  readonly unreached: readonly Problem[];
}

const NONE: PlannedEdits = { edits: [], plan: { files: [], problems: [] }, unreached: [] };

/**
 * Plans the edits that a deployment asks for; changes nothing. A user who suspends our child process cannot block a
 * deployment that changes nothing in these files.
 */
export async function planEdits(
  store: Store,
  { settings }: Deployment,
  last: Pick<GoodState, "deployment" | "settings"> | undefined,
): Promise<PlannedEdits> {
  if (settings?.apply !== true) return NONE;
  const planned = await planFor(store, settings);
  const { problems } = planned.plan;
  const unreached = problems.filter(({ code }) => code === "files.no-response");
  const isNew = !isDeepStrictEqual(settings, last?.deployment.settings);
  return isNew || unreached.length === 0 || unreached.length < problems.length
    ? planned
    : { ...NONE, unreached };
}

async function planFor(store: Store, source: SettingsSource): Promise<PlannedEdits> {
  const plan = await planSettings(source, store.root);
  const edits = plan.files.flatMap(({ source: { name: file, path, kind }, changes }) =>
    changes.map((change) => ({ file, path, kind, ...change })),
  );
  return { edits, plan, unreached: [] };
}

/** Edits the files, all or none. */
export async function makeEdits({ plan }: PlannedEdits): Promise<void> {
  const outcome = await applyEdits(plan);
  if (!outcome.ok) throw new ProblemError(outcome.problems);
}

/**
 * The edits of all activations, one for each item: the value before the first, and the value that the last one wrote.
 */
export function mergeEdits(
  made: readonly SettingsEditRecord[],
  more: readonly SettingsEditRecord[],
): readonly SettingsEditRecord[] {
  const byItem = new Map(made.map((edit) => [keyOf(edit), edit]));
  for (const edit of more) {
    const first = byItem.get(keyOf(edit));
    byItem.set(keyOf(edit), first === undefined ? edit : { ...edit, ...originOf(first) });
  }
  return [...byItem.values()];
}

const keyOf = (edit: SettingsEditRecord): string => `${edit.kind} ${edit.path} ${itemLabel(edit)}`;

/** The state before the first edit, and the lines that were added with the item. */
function originOf({ from, header, lineEndAdded, encoding }: SettingsEditRecord): Partial<SettingsEditRecord> {
  return { from, header, lineEndAdded, encoding };
}

/** Files with edits to undo, in the order in which they are reported. */
export function editedPaths(edits: readonly SettingsEditRecord[]): string[] {
  return [...new Set(edits.toReversed().map(({ path }) => path))];
}

/**
 * Undoes the edits of a file. Items changed since then stay as they are and are returned; throws if the file cannot be
 * written.
 */
export async function undoEdits(
  store: Store,
  path: string,
  edits: readonly SettingsEditRecord[],
): Promise<readonly Problem[]> {
  const onHost = store.onHost(path);
  await sweepBeside(onHost);
  const found = await readFound(onHost);
  if (!found.ok) return found.problems;
  const file = found.value;
  const { content, problems } = revertChanges(
    file,
    edits.filter((edit) => edit.path === path),
  );
  if (content.equals(file.content)) return problems;
  const outcome = await replaceFiles([{ file, content }]);
  if (!outcome.ok) throw new ProblemError(outcome.problems);
  return problems;
}

/** Plans the edits of `portico settings`, which are undone like those of activations. */
export function planByHand(root: string, source: SettingsSource): Promise<PlannedEdits> {
  return planFor(new Store(root), source);
}

/** Makes and records them on their own, because nothing else on the host changes. */
export async function editByHand(root: string, planned: PlannedEdits): Promise<Result<null>> {
  const store = new Store(root);
  if ((await stateIfSeen(store)) === undefined) return applyEdits(planned.plan);
  const waiting = { lockSeconds: LOCK_SECONDS, report: () => undefined };
  return withLock(store.lock, { what: "edit of settings" }, waiting, async () => {
    const outcome = await applyEdits(planned.plan);
    const state = await store.readState();
    if (outcome.ok && state !== undefined && planned.edits.length > 0) {
      await store.writeState({ ...state, settings: mergeEdits(state.settings, planned.edits) });
    }
    return outcome;
  });
}

const LOCK_SECONDS = 60;

/** A user other than root cannot read the state. An owner of the files may still edit them, without a record. */
async function stateIfSeen(store: Store): Promise<GoodState | undefined> {
  return store.readState().catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EACCES") return undefined;
    throw error;
  });
}
