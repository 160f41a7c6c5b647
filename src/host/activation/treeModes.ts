import { join } from "node:path";
import { imageDirectory, imageFor } from "../diagnosis/expected/imageFile.js";
import { quote } from "../../render/shell.js";
import type { Report } from "./report.js";
import type { Store } from "./store.js";
import { changeModes, checkTrees, isIn, type ModeChange, servedTrees } from "../diagnosis/treePermissions.js";
import { type Deployment, type Problem, problem, type ProxyConfig } from "../../model/index.js";
import { DIRECTORIES } from "../../model/host/rows.js";
import { shown } from "../../runtime/files/pathText.js";

/** The planned changes of permissions, and the places that could not be checked. */
export interface PlannedModes {
  readonly changes: readonly ModeChange[];
  readonly unreached: readonly Problem[];
}

/** The permissions (service 2.8) that trees lack which a deployment has made readable; changes nothing. */
export async function planModes({ trees = [] }: Deployment): Promise<PlannedModes> {
  return checkTrees(trees.filter(({ fix }) => fix));
}

/** Directories of static routes that others cannot read, which no tree has: their permissions are their owner's. */
export async function unreadable(deployment: Deployment, config: ProxyConfig): Promise<Problem[]> {
  const served = servedTrees(config, deployment.trees).filter(({ code }) => code === DIRECTORIES);
  const { violations } = await checkTrees(served);
  return violations.map(({ path, lacks, fix }) =>
    problem("files.unreadable", path, `is served, but other users have no ${lacks} permission`, { fix }),
  );
}

/** The file of a request's path; undefined where the request itself will fail: by its encoding, or as it leads elsewhere. */
function fileAt(directory: string, imagePath: string): string | undefined {
  try {
    const file = join(directory, decodeURIComponent(imagePath));
    return isIn(file, directory) ? file : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Why others cannot read the image that will be requested, so that the expected responses would fail in the end. The same
 * image in a directory that the last deployment served is not the fault of this one: how it is served is asked.
 */
export async function unreadableImage(
  store: Store,
  deployment: Deployment,
  config: ProxyConfig,
  last: Deployment | undefined,
  installed: ProxyConfig | undefined,
): Promise<Problem[]> {
  const { expect, probe, trees = [] } = deployment;
  const directory = imageDirectory(config, expect);
  if (!probe.enabled || directory === undefined) return [];
  if (installed !== undefined && imageDirectory(installed, last?.expect) === directory) return [];
  if (trees.some(({ path, fix }) => fix && isIn(directory, path))) return [];
  const { imagePath } = probe.imagePath === undefined ? await imageFor(config, expect, store.root) : probe;
  const image = imagePath === undefined ? undefined : fileAt(directory, imagePath);
  if (image === undefined) return [];
  const { violations } = await checkTrees([{ path: image, code: DIRECTORIES }]);
  return violations.slice(0, 1).map(({ path, lacks, fix }) => {
    const message = `others have no ${lacks} permission, which ${image} needs: the proxy could not send this image, which the activation requests`;
    const all = `chmod -R o+rX ${quote(directory)}`;
    const whole = isIn(path, directory) ? `${all}, or have the activation do so: \`fixMedia: true\`` : fix;
    return problem("files.unreadable", path, message, { fix: whole });
  });
}

/** Served directories, without those that the deployment's own files are in: of these every file is known. */
export function ownTrees(deployment: Deployment, config: ProxyConfig): string[] {
  return servedTrees(config, deployment.trees)
    .map(({ path }) => path)
    .filter((path) => !deployment.files.some((file) => isIn(file.path, path)));
}

/** Sets permissions; a failure shows in the expected responses. */
export async function makeModes(changes: readonly ModeChange[], report: Report): Promise<void> {
  for (const { why, ...change } of await changeModes(changes)) {
    report(`  ${formatMode(change)}${why === undefined ? "" : `: not changed, ${why}`}`);
  }
}

/** Undoes permissions that are still as they were set. */
export async function undoModes(given: readonly ModeChange[], report: Report): Promise<void> {
  const back = given.map((change) => ({ ...change, from: change.to, to: change.from }));
  for (const { why, ...change } of await changeModes(back.toReversed())) {
    report(`  ${formatMode(change)}${why === undefined ? "" : `: stays, ${why}`}`);
  }
}

/** The changes of all activations, one for each path: the mode before the first, and the mode that the last one set. */
export function mergeModes(made: readonly ModeChange[], more: readonly ModeChange[]): readonly ModeChange[] {
  const byPath = new Map(made.map((change) => [change.path, change]));
  for (const change of more) {
    const first = byPath.get(change.path);
    byPath.set(change.path, first?.to === change.from ? { ...change, from: first.from } : change);
  }
  return [...byPath.values()];
}

export function formatMode({ path, from, to }: ModeChange): string {
  return `${shown(path)}: mode ${octal(to)} instead of ${octal(from)}`;
}

const octal = (mode: number): string => mode.toString(8).padStart(4, "0");
