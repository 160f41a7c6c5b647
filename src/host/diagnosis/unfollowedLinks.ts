import { posix } from "node:path";
import { actingOn } from "../asOwner/acting.js";
import { asOwner } from "../asOwner/asOwner.js";
import type { ProxyConfig } from "../../model/index.js";
import { shown } from "../../runtime/files/pathText.js";

/** A directory of a static route that the proxy does not serve, because a user's link is on its path. */
export interface UnfollowedLink {
  /** The directory as the config names it. */
  readonly directory: string;
  readonly uid: number;
  /** The link's target, by that user's word. */
  readonly target: string;
}

/**
 * Finds links of users other than root on the paths of served directories: the proxy follows none (`openToOthers.ts`). From
 * the directory that another user can change, that user's own process follows the path.
 */
export async function unfollowedLinks({
  virtualServers,
}: Pick<ProxyConfig, "virtualServers">): Promise<readonly UnfollowedLink[]> {
  const actions = virtualServers.flatMap(({ routes }) => routes.map(({ action }) => action));
  const directories = new Set(
    actions.flatMap((action) =>
      action.type === "staticFiles" && action.symlinks !== "anywhere" ? [action.directory] : [],
    ),
  );
  const found = await Promise.all([...directories].map((directory) => linkOn(directory).catch(() => [])));
  return found.flat();
}

async function linkOn(directory: string): Promise<UnfollowedLink[]> {
  const acting = await actingOn(Buffer.from(directory).toString("latin1"));
  const { uid } = acting;
  if (uid === process.geteuid!()) return [];
  const path = posix.join(acting.path, ".").replace(/(?<=.)\/$/, "");
  const real = await asOwner("realPath", { path }, acting);
  return real === null || real === path ? [] : [{ directory, uid, target: shown(real) }];
}
