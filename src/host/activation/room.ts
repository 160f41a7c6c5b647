import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { SettingsPlan } from "../applicationSettings/index.js";
import { type Problem, problem } from "../../model/index.js";
import { DEFAULT_HOST_PATHS } from "../../render/hostPaths.js";
import type { Delivered } from "./delivered.js";
import { RECORDS } from "./detached.js";
import { type FileChange, missingDirectories } from "./fileChanges.js";
import { sameState } from "./fileState.js";
import { logsOf } from "./logs.js";
import { contentsToKeep } from "./preconditions.js";
import { changesServices, type Store } from "./store.js";

/** The space that is needed on one file system. */
interface Need {
  readonly at: string;
  readonly bytes: number;
  readonly files: number;
}

/**
 * File systems without enough space or inodes for the files that will be written: contents to keep, new files next to
 * those they replace, the application's settings, the records of this run, credentials for a reload, and logs.
 */
export async function missingRoom(
  store: Store,
  delivered: Delivered,
  files: readonly FileChange[],
  settings: SettingsPlan,
): Promise<Problem[]> {
  const needs = new Map<number, Need>();
  const need = async (path: string, bytes: number, made: number): Promise<void> => {
    const at = await existing(path);
    const { dev } = await stat(at);
    const sum = needs.get(dev) ?? { at, ...MARGIN };
    needs.set(dev, { ...sum, bytes: sum.bytes + bytes, files: sum.files + made });
  };
  for (const [sha256, path] of contentsToKeep(store, delivered, files))
    if (!(await store.has(sha256))) await need(store.at(), await sizeOf(path), 1);
  for (const { path, to, now } of files) {
    const content = to.kind === "file" ? delivered.contents.get(to.sha256) : undefined;
    if (content === undefined || sameState(now, to)) continue;
    await need(dirname(store.onHost(path)), await sizeOf(content), now.kind === "file" ? 0 : 1);
  }
  const written = files.filter(({ to }) => to.kind !== "absent").map(({ path }) => path);
  for (const directory of missingDirectories(store, written)) await need(store.onHost(directory), 0, 1);
  // Only the free space of the file system is read, so a path that its owner has replaced does no harm.
  for (const { file, changed, content } of settings.files)
    if (changed) await need(dirname(file.path), content.length, 0);
  for (const log of await deliveredLogs(store, delivered)) await need(dirname(log), 0, 0);
  if (changesServices(store.root)) {
    await need(RECORDS, await handedOver(delivered), 0);
    await need(DEFAULT_HOST_PATHS.unitDirectory, 0, 0);
  }
  return (await Promise.all([...needs.values()].map(lacking))).flat();
}

/** Why a run could not record its progress: without records its outcome would be lost. */
export const missingRecordRoom = async (): Promise<Problem[]> =>
  lacking({ at: await existing(RECORDS), ...MARGIN });

/** Log files of the config that is delivered, as paths here; a terminal, a FIFO or `/dev/null` holds none. */
async function deliveredLogs(store: Store, { config }: Delivered): Promise<string[]> {
  const logs = logsOf(config).map((path) => store.onHost(path));
  const found = await Promise.all(logs.map((path) => stat(path).catch(() => undefined)));
  return logs.filter((_, i) => found[i]?.isFile() ?? true);
}

/** Keys and certificates, which a reload copies to `/run`. */
async function handedOver({ deployment, contents }: Delivered): Promise<number> {
  const sizes = deployment.files
    .filter(({ role }) => role === "tls")
    .map(({ sha256 }) => sizeOf(contents.get(sha256)!));
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function lacking({ at, bytes, files }: Need): Promise<Problem[]> {
  const { bavail, bsize, files: all, ffree } = await statfs(at);
  const left = bavail * bsize;
  if (left < bytes) {
    const message = `is on a file system that has ${kibibytes(left)} left, but the deployment needs ${kibibytes(bytes)}`;
    return [problem("activation.no-room", at, message)];
  }
  // Some file systems, such as btrfs, have no number of files that they can hold.
  if (all === 0 || ffree >= files) return [];
  const message = `is on a file system that can hold ${ffree} more files, but the deployment needs ${files}`;
  const fix = `Remove files there: du --inodes -xh --max-depth=2 ${at} | sort -h`;
  return [problem("activation.no-room", at, message, { fix })];
}

const sizeOf = async (path: string): Promise<number> => (await stat(path)).size;

/** The nearest parent directory that exists. */
async function existing(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true ? path : existing(dirname(path));
}

/** Room for journal and records, for drafts that are then renamed, and for the file system itself. */
const MARGIN = { bytes: 1 << 15, files: 2 };

const kibibytes = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;
