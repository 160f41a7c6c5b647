import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { actingOn, ROOT } from "../asOwner/acting.js";
import { endpoint, isIpv6, type Problem, problem, ProblemError } from "../../model/index.js";
import { quote } from "../../render/shell.js";
import { listenOwner } from "../../runtime/listen/listenOwner.js";
import type { Delivered } from "./delivered.js";
import type { FileChange } from "./fileChanges.js";
import type { ActivationStep } from "./serviceSteps.js";
import { keptFiles, type Store } from "./store.js";

/** Causes that would make an activation fail halfway, and can be detected before anything is touched. */

/**
 * Listeners of the new config that could not be opened or reached: the host has no IPv6, or another process has the
 * port.
 */
export function unopenable({ deployment, config }: Delivered, steps: readonly ActivationStep[]): Problem[] {
  // If nothing starts, no listener is opened.
  if (steps.length === 0 || config === undefined) return [];
  const { socket, service } = deployment.services.proxy;
  const opens = steps.some((step) => "unit" in step && step.unit === socket && /start/.test(step.do));
  const ending = steps.flatMap((step) => ("unit" in step && /stop|restart/.test(step.do) ? [step.unit] : []));
  // With IPv6 off, `::` can be listened on but not reached.
  const without6 = (opens || deployment.probe.enabled) && !hasIpv6();
  return config.listeners.flatMap(({ address, port }) => {
    const at = endpoint({ host: address, port });
    if (without6 && isIpv6(address))
      return [problem("activation.no-ipv6", at, "is an IPv6 address, but IPv6 is disabled on this host")];
    const owner = opens ? listenOwner(address, port) : undefined;
    if (owner === undefined || isOurs(owner.pid, [...ending, service])) return [];
    return [problem("activation.port-in-use", at, `is taken: ${owner.text} listens there`)];
  });
}

/**
 * Deployed files with a directory on their path that users other than root can change: these users could make root
 * write or remove a file of the same name elsewhere.
 */
export async function foreignDirectories(paths: readonly string[]): Promise<Problem[]> {
  const problems = await Promise.all(
    paths.map(async (path) => {
      const why = await unsafePath(dirname(path));
      const fix = `Deploy the file below directories that only root can change; \`namei -om ${quote(path)}\` shows the owners.`;
      return why === undefined ? [] : [problem("files.shared-directory", path, why, { fix })];
    }),
  );
  return problems.flat();
}

async function unsafePath(directory: string): Promise<string | undefined> {
  try {
    const { uid } = await actingOn(Buffer.from(directory, "utf8").toString("latin1"));
    return uid === ROOT ? undefined : `is below a directory of user ${uid}: root does not write there`;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const [{ path, message }] = error.problems as [Problem];
    return `is below ${path}, which ${message}`;
  }
}

/**
 * Whether IPv6 is on: then at least loopback has an address. (sysctl net.ipv6.conf.all.disable_ipv6, ipv6.disable=1)
 */
function hasIpv6(): boolean {
  try {
    return readFileSync("/proc/net/if_inet6", "utf8") !== "";
  } catch {
    return false;
  }
}

/** Whether a process belongs to a unit that this activation stops, or is systemd with its sockets; or it is gone. */
function isOurs(pid: string, units: readonly string[]): boolean {
  try {
    return isOfUnit(pid, readFileSync(`/proc/${pid}/cgroup`, "utf8"), units);
  } catch {
    return true;
  }
}

/** @param groups the process's `/proc/PID/cgroup` */
export function isOfUnit(pid: string, groups: string, units: readonly string[]): boolean {
  if (pid === "1") return units.some((unit) => unit.endsWith(".socket"));
  // A user's own manager (`user@1000.service`) takes any name for a unit.
  if (/\/user@\d+\.service\//.test(groups)) return false;
  return units.some((unit) => groups.includes(`/${unit}\n`) || groups.includes(`/${unit}/`));
}

/** The contents that the store will keep, with their current paths: those that will be replaced, and the new ones. */
export function contentsToKeep(
  store: Store,
  delivered: Delivered,
  files: readonly FileChange[],
): ReadonlyMap<string, string> {
  const replaced = files.flatMap(({ path, now }): [string, string][] =>
    now.kind === "file" ? [[now.sha256, store.onHost(path)]] : [],
  );
  const wanted = new Set(keptFiles(delivered).map(({ sha256 }) => sha256));
  for (const { to } of files) if (to.kind === "file") wanted.add(to.sha256);
  return new Map([...replaced, ...[...delivered.contents].filter(([sha256]) => wanted.has(sha256))]);
}
