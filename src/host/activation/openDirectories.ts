import { lstatSync } from "node:fs";
import { dirname } from "node:path";
import { closedPaths, userOfProcess, type User } from "../diagnosis/system/closedPaths.js";
import type { ModeChange } from "../diagnosis/treePermissions.js";
import type { DeployedFile, Deployment } from "../../model/index.js";
import { PROXY_ROLES } from "./serviceSteps.js";

/**
 * Delivered files that the proxy's user reads itself. systemd reads the TLS files, as root, and passes them on.
 */
export const readByProxy = ({ files }: Deployment): readonly DeployedFile[] =>
  files.filter(({ role }) => role !== "tls" && PROXY_ROLES.includes(role));

/** What the proxy's user cannot enter or read. */
export function closedToProxy(deployment: Deployment, user: User): Promise<string[]> {
  return closedPaths(
    readByProxy(deployment).map(({ path }) => path),
    user,
  );
}

/**
 * Changes that open directories for the proxy's user: those that the deployment made, and those that files which the
 * proxy reads are directly in. All others belong to the host. A deployment that was seen to serve needed them open, so
 * nothing undoes this.
 */
export function openings(
  closed: readonly string[],
  deployment: Deployment,
  made: readonly string[],
): ModeChange[] {
  const own = new Set([...made, ...readByProxy(deployment).map(({ path }) => dirname(path))]);
  return closed.flatMap((path) => {
    const found = own.has(path) ? lstatSync(path) : undefined;
    if (found?.isDirectory() !== true || found.uid !== 0) return [];
    const from = found.mode & 0o777;
    return [{ path: Buffer.from(path).toString("latin1"), from, to: from | 0o755 }];
  });
}

/** The same before an activation, whose services may not run. */
export async function planOpenings(deployment: Deployment, made: readonly string[]): Promise<ModeChange[]> {
  return openings(await closedToProxy(deployment, userOfProcess(0)), deployment, made);
}
