import { isIn, type ModeChange, servedTrees } from "../diagnosis/treePermissions.js";
import type { Deployment, Problem, ProxyConfig } from "../../model/index.js";
import { attempt, perform } from "./execution.js";
import type { Report } from "./report.js";
import { undoAllEdits } from "./rollBack.js";
import { settingsReaders } from "./serviceSteps.js";
import { editedPaths } from "./settingsEdits.js";
import { changesServices, type GoodState, type Leaving, type Store } from "./store.js";
import type { UnitStatus } from "./systemctl.js";
import { statusOf } from "./transition.js";
import { undoModes } from "./treeModes.js";

/**
 * What deployments did to the application's own files, and a deployment no longer wants: its site was removed, or the program
 * no longer names the file. It is undone once the new deployment serves, because a roll-back needs the files as they are.
 * If something cuts that off, the next activation continues.
 */

/** What leaves with a deployment, of all that was done so far. Undefined if nothing does. */
export function leavingFor(
  deployment: Deployment,
  config: ProxyConfig | undefined,
  last: GoodState | undefined,
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
  return { settings, modes, daemons: [...new Set([...(before?.daemons ?? []), ...readers])] };
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
export const leavingPreview = (
  leaving: Leaving | undefined,
  units: ReadonlyMap<string, UnitStatus>,
): string[] =>
  (leaving?.daemons ?? [])
    .filter((unit) => units.get(unit)?.active === true)
    .map((unit) => `will restart ${unit}, which interrupts its work: ${NO_LONGER}`);

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
 * Undoes what has left, and forgets it. Daemons that run stop before the edits, as before those of an activation, and start
 * again. Files that cannot be written are left to the next activation.
 */
export async function undoLeaving(store: Store, state: GoodState, report: Report): Promise<void> {
  const { leaving, ...rest } = state;
  if (leaving === undefined) return;
  report("undoing what is no longer deployed");
  const [problems, unwritten]: [Problem[], Problem[]] = [[], []];
  const status = await statusOf(leaving.daemons, changesServices(store.root));
  const running = leaving.daemons.filter((unit) => status.get(unit)?.active === true);
  for (const unit of running.toReversed()) await attempt(problems, () => perform({ do: "stop", unit }));
  await undoAllEdits(store, leaving.settings, report, unwritten);
  await undoModes(leaving.modes, report);
  for (const unit of running) await attempt(problems, () => perform({ do: "start", unit }));
  for (const { path, message } of [...unwritten, ...problems]) report(`  ${path}: ${message}`);
  if (unwritten.length === 0) await store.writeState(rest);
}
