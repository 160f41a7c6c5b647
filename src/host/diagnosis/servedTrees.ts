import { directoriesOf } from "../../model/actions/table.js";
import type { ProxyConfig, Tree } from "../../model/index.js";
import { DIRECTORIES } from "../../model/rows.js";

/**
 * What others have to be able to read: the trees of a deployment, and before them, since one inside another comes after
 * it, directories that static routes serve and that are in none of these.
 */
export function servedTrees(
  { virtualServers }: Pick<ProxyConfig, "virtualServers">,
  trees: readonly Tree[] = [],
): readonly Tree[] {
  const actions = virtualServers.flatMap(({ routes }) => routes.map(({ action }) => action));
  const served = new Set(actions.flatMap((action) => directoriesOf(action).map(({ value }) => value)));
  const untold = [...served].filter((path) => !trees.some((tree) => isIn(path, tree.path))).sort();
  return [...untold.map((path) => ({ path, code: DIRECTORIES, says: UNREADABLE, fix: false })), ...trees];
}

const UNREADABLE = "a file that a static route serves, or a directory on its way, is not readable by others";

/** Whether a path is that of a directory, or below it. */
export const isIn = (path: string, directory: string): boolean =>
  withSlash(path).startsWith(withSlash(directory));

const withSlash = (path: string): string => (path.endsWith("/") ? path : `${path}/`);
