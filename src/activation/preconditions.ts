import { readFileSync } from "node:fs";
import { readFile, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { actingOn, ROOT } from "../asOwner/acting.js";
import { endpoint, isIpv6, parseConfigText, type Problem, problem, ProblemError } from "../model/index.js";
import { quote } from "../render/hostScripts.js";
import { listenOwner } from "../runtime/listen/listenOwner.js";
import type { Delivered } from "./delivered.js";
import type { FileChange } from "./fileChanges.js";
import type { Step } from "./serviceSteps.js";
import type { Store } from "./store.js";

/** Causes that would make an activation fail halfway, and can be detected before anything is touched. */

/**
 * Listeners of the new config that could not be opened or reached: the host has no IPv6, or another process has the
 * port.
 */
export async function unopenable(
  { deployment, contents }: Delivered,
  steps: readonly Step[],
): Promise<Problem[]> {
  const { config: path, services } = deployment;
  const file = deployment.files.find((one) => one.path === path);
  if (steps.length === 0 || file === undefined) return [];
  const parsed = parseConfigText(await readFile(contents.get(file.sha256)!.path, "utf8"));
  if (!parsed.ok) return [];
  const { socket, service } = services.proxy;
  const opens = steps.some((step) => "unit" in step && step.unit === socket && /start/.test(step.do));
  const ending = steps.flatMap((step) => ("unit" in step && /stop|restart/.test(step.do) ? [step.unit] : []));
  // With IPv6 off, `::` can be listened on but not reached.
  const without6 = (opens || deployment.probe.enabled) && !hasIpv6();
  return parsed.value.listeners.flatMap(({ address, port }) => {
    const at = endpoint({ host: address, port });
    if (without6 && isIpv6(address))
      return [problem("activation.no-ipv6", at, "cannot be listened on: IPv6 is off on this host")];
    const owner = opens ? listenOwner(address, port) : undefined;
    if (owner === undefined || isOurs(owner, [...ending, service])) return [];
    return [problem("activation.port-in-use", at, `is taken: ${owner} listens there`)];
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
      const fix = `Deploy it below directories that only root can change; \`namei -om ${quote(path)}\` shows them.`;
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

/** Whether a process belongs to a unit that this activation stops, or is systemd with its sockets. */
function isOurs(owner: string, units: readonly string[]): boolean {
  const pid = /\(pid (\d+)\)$/.exec(owner)![1]!;
  if (pid === "1") return units.some((unit) => unit.endsWith(".socket"));
  try {
    const group = readFileSync(`/proc/${pid}/cgroup`, "utf8");
    return units.some((unit) => group.includes(`/${unit}\n`) || group.includes(`/${unit}/`));
  } catch {
    return true;
  }
}

/**
 * File systems without enough space for what will be written: contents to keep, and new files next to those they
 * replace.
 */
export async function missingRoom(
  store: Store,
  delivered: Delivered,
  files: readonly FileChange[],
): Promise<Problem[]> {
  const needs = new Map<number, { at: string; bytes: number }>();
  const need = async (path: string, source: string): Promise<void> => {
    const at = await existing(path);
    const { dev } = await stat(at);
    const sum = needs.get(dev) ?? { at, bytes: MARGIN_BYTES };
    needs.set(dev, { ...sum, bytes: sum.bytes + (await stat(source)).size });
  };
  for (const { path, to, now } of files) {
    if (now.kind === "file" && !(await store.has(now.sha256))) await need(store.at(), store.onHost(path));
    const content = to.kind === "file" ? delivered.contents.get(to.sha256)?.path : undefined;
    const changes = to.kind === "file" && !(now.kind === "file" && now.sha256 === to.sha256);
    if (content !== undefined && changes) await need(dirname(store.onHost(path)), content);
  }
  for (const [sha256, { from, path }] of delivered.contents) {
    if (from === "incoming" && !(await store.has(sha256))) await need(store.at(), path);
  }
  const problems: Problem[] = [];
  for (const { at, bytes } of needs.values()) {
    const { bavail, bsize } = await statfs(at);
    const left = bavail * bsize;
    if (left >= bytes) continue;
    const message = `is on a file system that has ${kibibytes(left)} left, and the deployment needs ${kibibytes(bytes)}`;
    problems.push(problem("activation.no-room", at, message));
  }
  return problems;
}

/** The nearest parent directory that exists. */
async function existing(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true ? path : existing(dirname(path));
}

/** For the journal, and for the file system itself. */
const MARGIN_BYTES = 1 << 15;

const kibibytes = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;
