import { existsSync } from "node:fs";
import { lstat, readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Report } from "./report.js";
import { type Deployment, type Problem, problem, ProblemError, type ProxyConfig } from "../../model/index.js";
import { ROOT } from "../asOwner/acting.js";
import { accepting } from "../../model/text/textRule.js";
import {
  FORMER_ROTATION_FILE,
  keptDaysIn,
  renderFormerLogRotation,
  ROTATION_DIRECTORY,
} from "../../render/logRotation.js";
import { UNIT_PATH } from "../../render/proxyUnits.js";
import { quote } from "../../render/shell.js";
import { logPaths } from "../../runtime/load/loadConfig.js";
import { systemReason } from "../../runtime/files/systemReason.js";
import { currentUser, placeBytes, removeFile, removeLinkedIfEmpty } from "./durableFiles.js";
import { attempt } from "./execution.js";
import type { Store } from "./store.js";

/** Files that the proxy of a config logs to, as paths of the host. */
export const logsOf = (config: ProxyConfig | undefined): readonly string[] =>
  config === undefined ? [] : logPaths(config);

/** Remembers logs before a proxy may write them: whatever ends an activation, they are rotated and can be removed. */
export async function rememberLogs(store: Store, config: ProxyConfig | undefined): Promise<void> {
  const known = await store.readLogs();
  const all = [...new Set([...known, ...logsOf(config)])];
  if (all.length > known.length) await store.writeLogs(all);
}

/**
 * Has logrotate(8) remove logs that no proxy of this host writes any more, after the days of the deployment's own
 * rotation; without such a rotation logs are for others to rotate. Forgets logs of which nothing is left.
 * @param by the deployment whose rotation says how long logs are kept
 * @param serving the config that the host has now
 */
export async function settleLogs(
  store: Store,
  by: Deployment,
  serving: ProxyConfig | undefined,
): Promise<void> {
  const current = logsOf(serving);
  const known = await store.readLogs();
  const former: string[] = [];
  const left = new Set<string>();
  for (const log of known.filter((one) => !current.includes(one))) {
    const directory = dirname(log);
    const found = await filesOfLogs(store.onHost(directory), [store.onHost(log)]).catch(() => undefined);
    if (found?.files.length === 0) continue;
    left.add(log);
    // If the service's user could lead logrotate elsewhere later, the log is not sent.
    if (found === undefined || found.isTheirs) continue;
    // The log itself may be between two names.
    former.push(log, ...found.files.map((file) => join(directory, basename(file))));
  }
  const kept = known.filter((log) => current.includes(log) || left.has(log));
  if (kept.length < known.length) await store.writeLogs(kept);
  const days = await keptDays(store, by);
  const files = [...new Set(former)].filter((file) => isPlainPath(file) && !current.includes(file)).sort();
  const target = store.onHost(FORMER_ROTATION_FILE);
  if (days === undefined || files.length === 0 || !existsSync(dirname(target))) return removeFile(target);
  const text = Buffer.from(renderFormerLogRotation(files, days));
  if (!(await readFile(target).catch(() => Buffer.alloc(0))).equals(text))
    await placeBytes(target, text, { mode: "0644", ...currentUser() });
}

/** A name that logrotate takes as it is. */
const isPlainPath = accepting(UNIT_PATH);

/** How many days a deployment keeps its logs; undefined if it does not rotate them. */
async function keptDays(store: Store, { files }: Deployment): Promise<number | undefined> {
  const rotation = files.find(({ path }) => path.startsWith(ROTATION_DIRECTORY));
  if (rotation === undefined) return undefined;
  return keptDaysIn(await readFile(store.blob(rotation.sha256), "utf8").catch(() => ""));
}

/** Logs of a directory with their rotated files. */
async function filesOfLogs(
  directory: string,
  logs: readonly string[],
): Promise<{ readonly files: readonly string[]; readonly isTheirs: boolean }> {
  const isTheirs = await refuseLedElsewhere(directory);
  return {
    files: (await filesIn(directory)).filter((file) => logs.some((log) => isLog(file, log))),
    isTheirs,
  };
}

/**
 * Removes logs, including rotated ones, and their directories if nothing else is in them. Anything at such a path that
 * is not a regular file (`/dev/null`, a FIFO of another daemon) stays. @returns problems of logs that could not be
 * removed
 */
export async function removeLogs(
  store: Store,
  logs: readonly string[],
  report: Report,
): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  const paths = logs.map((log) => store.onHost(log));
  for (const directory of new Set(paths.map((path) => dirname(path)))) {
    await attempt(problems, async () => {
      for (const file of (await filesOfLogs(directory, paths)).files) {
        await attempt(problems, async () => {
          await removeFile(file);
          report(`  ${file}: removed`);
        });
      }
      await removeLinkedIfEmpty(directory);
    });
  }
  return problems;
}

/**
 * Refuses a directory below one of the service's user that he has made a link, which leads to others' files of the same
 * names. Systemd's own link to a directory of his is root's.
 * @returns whether he could make it a link
 */
async function refuseLedElsewhere(directory: string): Promise<boolean> {
  let at = "/";
  let [theirs, isBelow] = [false, false];
  for (const name of directory.split("/")) {
    at = join(at, name);
    const found = await lstat(at).catch(() => undefined);
    if (found === undefined) return isBelow;
    isBelow = theirs;
    if (theirs && found.isSymbolicLink()) {
      const message = "is a link that the service's user made: nothing was removed at its target";
      throw new ProblemError([problem("activation.file-failed", at, message, { fix: `rm ${quote(at)}` })]);
    }
    const real = await realpath(at).catch(() => undefined);
    if (real === undefined) return isBelow;
    at = real;
    theirs ||= ![ROOT, process.geteuid!()].includes((await stat(at)).uid);
  }
  return isBelow;
}

/** Regular files, links not followed; none if the directory does not exist. */
async function filesIn(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => join(directory, name));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    const message = `cannot be read ${systemReason(error as Error)}`;
    throw new ProblemError([problem("activation.file-failed", directory, message)]);
  }
}

/** Whether a file is the log itself or a rotated one: `access.log.1`, `access.log-20260101.gz`. */
function isLog(file: string, log: string): boolean {
  return file === log || (file.startsWith(log) && ROTATED.test(file.slice(log.length)));
}

const ROTATED = /^[.-]\d[\d.-]*(?:\.(?:gz|xz|zst|bz2))?$/;
