import { isIn, type ModeChange, servedTrees } from "../diagnosis/treePermissions.js";
import type { Deployment, Problem, ProxyConfig } from "../../model/index.js";
import { attempt, perform } from "./execution.js";
import { removeDirectories } from "./fileChanges.js";
import { programsOf } from "./programs.js";
import type { Report } from "./report.js";
import { undoAllEdits } from "./rollBack.js";
import { settingsReaders, type WantedUnit } from "./serviceSteps.js";
import { editedPaths } from "./settingsEdits.js";
import { changesServices, type GoodState, type Leaving, type Store } from "./store.js";
import type { UnitStatus } from "./systemctl.js";
import { statusOf } from "./transition.js";
import { undoModes } from "./treeModes.js";

/**
 * What deployments did to the application's own files, and a deployment no longer wants: its site was removed, or the program
 * no longer names the file. It is undone once the new deployment serves, because a roll-back needs the files as they are.
 * If something cuts that off, the next activation or boot continues.
 */

/**
 * What leaves with a deployment, of all that was done so far. Undefined if nothing does.
 * @param units every unit in question, as it is; daemons that neither run nor are wanted stay as they are
 */
export function leavingFor(
  deployment: Deployment,
  config: ProxyConfig | undefined,
  last: GoodState | undefined,
  units: ReadonlyMap<string, UnitStatus>,
  wanted: ReadonlyMap<string, WantedUnit>,
): Leaving | undefined {
  if (last === undefined) return undefined;
  const { leaving: before } = last;
  const staying = new Set(deployment.settings?.files.map(({ path }) => path));
  // Others were edited by `portico settings` alone, with files that a user named.
  const ours = new Set(
    [...(last.deployment.settings?.files ?? []), ...(before?.settings ?? [])].map(({ path }) => path),
  );
  const settings = editsOf(last).filter(({ path }) => ours.has(path) && !staying.has(path));
  const modes =
    config === undefined ? [] : modesOf(last).filter((change) => !isServed(change, deployment, config));
  if (settings.length + modes.length === 0) return undefined;
  const files = last.deployment.settings?.files.filter(({ path }) =>
    settings.some((edit) => edit.path === path),
  );
  const readers = settingsReaders(last.deployment.services, new Set(files?.map(({ name }) => name)));
  const daemons = [...new Set([...(before?.daemons ?? []), ...readers])];
  const runs = (unit: string): boolean => wanted.get(unit)?.active ?? units.get(unit)?.active === true;
  return { settings, modes, daemons: daemons.filter(runs) };
}

/** All edits of the application's own files that stand, or may stand. */
export const editsOf = (last: GoodState | undefined): GoodState["settings"] =>
  last === undefined ? [] : [...last.settings, ...(last.leaving?.settings ?? [])];

/** All permissions that are as they were set, or may be. */
export const modesOf = (last: GoodState | undefined): readonly ModeChange[] =>
  last === undefined ? [] : [...(last.modes ?? []), ...(last.leaving?.modes ?? [])];

/** Whether something that is still served needs it: a file of a tree, or a directory above. */
function isServed({ path }: ModeChange, { trees }: Deployment, config: ProxyConfig): boolean {
  return servedTrees(config, trees).some((tree) => {
    const served = Buffer.from(tree.path).toString("latin1");
    return isIn(path, served) || isIn(served, path);
  });
}

/** What the undoing does to services, as lines of a preview. */
export const leavingPreview = ({ daemons = [] }: Partial<Leaving> = {}): string[] =>
  daemons.map((unit) => `will restart ${unit}, which interrupts its work: ${NO_LONGER}`);

/** What is undone, as lines of a plan. */
export const formatLeaving = (leaving: Leaving | undefined): string[] =>
  leaving === undefined
    ? []
    : [
        "undo what is no longer deployed",
        ...editedPaths(leaving.settings).map((path) => `  ${path}: ${NO_LONGER}`),
      ];

const NO_LONGER = "its settings are no longer deployed";

/**
 * Finishes an activation whose deployment serves: what has left is undone, empty directories go, and the journal is closed.
 * Until then, whatever ends the process, the next activation or boot finishes it. Never fails: the deployment serves.
 */
export async function finish(store: Store, state: GoodState, report: Report): Promise<void> {
  const problems: Problem[] = [];
  await attempt(problems, async () => {
    // The programs that run may be uploads.
    if (changesServices(store.root)) await store.writeCommand(programsOf(state.deployment));
    const leaving = await undoLeaving(store, state.leaving, report);
    const directories = await removeDirectories(store, state.directories);
    if (leaving !== state.leaving || directories.length < state.directories.length)
      await store.writeState({ ...state, leaving, directories });
  });
  await attempt(problems, () => store.closeJournal());
  for (const { path, message } of problems) report(`cleanup failed: ${path} ${message}`);
}

/**
 * Undoes what has left. Daemons stop before the edits, as before those of an activation, and start again. @returns what is
 * left to the next activation: all, if a file cannot be written
 */
async function undoLeaving(
  store: Store,
  leaving: Leaving | undefined,
  report: Report,
): Promise<Leaving | undefined> {
  if (leaving === undefined) return undefined;
  report("undoing what is no longer deployed");
  const [problems, unwritten]: [Problem[], Problem[]] = [[], []];
  const status = await statusOf(leaving.daemons, changesServices(store.root));
  const running = leaving.daemons.filter((unit) => status.get(unit)?.active === true);
  for (const unit of running.toReversed()) await attempt(problems, () => perform({ do: "stop", unit }));
  await undoAllEdits(store, leaving.settings, report, unwritten);
  await undoModes(leaving.modes, report);
  // Also those that an undoing has stopped which was cut off.
  for (const unit of leaving.daemons) await attempt(problems, () => perform({ do: "start", unit }));
  for (const { path, message } of [...unwritten, ...problems]) report(`  ${path}: ${message}`);
  return unwritten.length === 0 ? undefined : leaving;
}
