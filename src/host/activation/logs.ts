import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Report } from "./report.js";
import { type Deployment, type Problem, problem, ProblemError } from "../../model/index.js";
import { ROOT } from "../asOwner/acting.js";
import { quote } from "../../render/shell.js";
import { logPaths } from "../../runtime/load/loadConfig.js";
import { systemReason } from "../../runtime/load/systemReason.js";
import { removeFile, removeLinkedIfEmpty } from "./durableFiles.js";
import { attempt } from "./execution.js";
import type { Delivered } from "./delivered.js";
import { configAt, configOf } from "./loaded.js";
import type { Store } from "./store.js";

/** Files that the proxy of a deployment logs to, as paths of the host. */
export async function logsOf(store: Store, deployment: Deployment): Promise<readonly string[]> {
  const config = await configOf(store, deployment);
  return config === undefined ? [] : logPaths(config);
}

/** Files that the proxy of a deployment will log to. */
export async function logsToBe({ deployment, contents }: Delivered): Promise<readonly string[]> {
  const delivered = deployment.files.find(({ path }) => path === deployment.config);
  const config = delivered && (await configAt(contents.get(delivered.sha256)!));
  return config === undefined ? [] : logPaths(config);
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
      await refuseLedElsewhere(directory);
      const files = await filesIn(directory);
      for (const file of files.filter((each) => paths.some((log) => isLog(each, log)))) {
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
 */
async function refuseLedElsewhere(directory: string): Promise<void> {
  let at = "/";
  let theirs = false;
  for (const name of directory.split("/")) {
    at = join(at, name);
    const found = await lstat(at).catch(() => undefined);
    if (found === undefined) return;
    if (theirs && found.isSymbolicLink()) {
      const message = "is a link that the service's user made: nothing was removed at its target";
      throw new ProblemError([problem("activation.file-failed", at, message, { fix: `rm ${quote(at)}` })]);
    }
    const real = await realpath(at).catch(() => undefined);
    if (real === undefined) return;
    at = real;
    theirs ||= ![ROOT, process.geteuid!()].includes((await stat(at)).uid);
  }
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
