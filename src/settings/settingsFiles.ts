import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, open, readdir, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { getSystemErrorMap, promisify } from "node:util";
import { type Problem, problem, type Result } from "../model/index.js";

/** One of the application's files as it was found. */
export interface FoundFile {
  /** As it was named. */
  readonly path: string;
  /** The file itself, where `path` leads through symbolic links. */
  readonly target: string;
  readonly content: Buffer;
  readonly stats: BigIntStats;
}

/** A settings file is small; what is not is something else. */
const SIZE_MAX = 4 * 1024 * 1024;

/** Backups kept of one file; older ones are removed. */
const BACKUPS_MAX = 5;

/** Reads a file that is to be edited. */
export async function readFound(path: string): Promise<Result<FoundFile>> {
  try {
    const target = await realpath(path);
    const file = await open(target, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat({ bigint: true });
      if (!stats.isFile()) return failed("files.unreadable", path, "is no file", "Give the path of a file.");
      if (stats.size > SIZE_MAX) {
        return failed(
          "files.unreadable",
          path,
          `is larger than ${SIZE_MAX} bytes`,
          "Give the path of a settings file.",
        );
      }
      return { ok: true, value: { path, target, content: await file.readFile(), stats } };
    } finally {
      await file.close();
    }
  } catch (error) {
    return failed("files.unreadable", path, `cannot be read ${reason(error)}`);
  }
}

/** A file and what it is to become. */
export interface Replacement {
  readonly file: FoundFile;
  readonly content: Buffer;
}

/** A file that was replaced, and where the one before it is kept. */
export interface Replaced {
  readonly path: string;
  readonly backup: string;
}

/**
 * Replaces files, all or none, each in one step: a reader finds the old one or the new one, whole. Owner, group, mode
 * and, by `cp`, access lists and labels are kept, in the backup as well.
 *
 * @param now for the names of the backups
 */
export async function replaceFiles(
  replacements: readonly Replacement[],
  now = new Date(),
): Promise<Result<Replaced[]>> {
  const staged = replacements.map((each) => stage(each, now));
  const begun: Staged[] = [];
  try {
    for (const each of staged) {
      begun.push(each);
      await writeLike(each.file, each.temporary, each.content);
      await writeLike(each.file, each.backup, each.file.content);
    }
    await renameAll(staged);
  } catch (error) {
    const refused = error instanceof Refused ? error : new Refused(cannotWrite("", error));
    for (const { temporary, backup } of begun) {
      await rm(temporary, { force: true });
      if (!refused.keep.includes(backup)) await rm(backup, { force: true });
    }
    return { ok: false, problems: [refused.problem] };
  }
  for (const { file, backup } of staged) await prune(file.target, basename(backup));
  return { ok: true, value: staged.map(({ file, backup }) => ({ path: file.path, backup })) };
}

interface Staged extends Replacement {
  /** The file as it will be, until it is put in place. */
  readonly temporary: string;
  readonly backup: string;
}

function stage(replacement: Replacement, now: Date): Staged {
  const { target } = replacement.file;
  const stamp = now.toISOString().replace(/[-:.]/g, "");
  const unique = randomBytes(6).toString("hex");
  const temporary = join(dirname(target), `.${basename(target)}.portico-new-${unique}`);
  return { ...replacement, temporary, backup: `${target}.portico-${stamp}` };
}

class Refused extends Error {
  /** @param keep backups that are the only copy of a file */
  constructor(
    readonly problem: Problem,
    readonly keep: readonly string[] = [],
  ) {
    super(problem.message);
  }
}

/** Goes back where one of several cannot be put in place: half of the settings is worse than none. */
async function renameAll(staged: readonly Staged[]): Promise<void> {
  const done: Staged[] = [];
  for (const each of staged) {
    const { file, temporary } = each;
    try {
      await checkUnchanged(file);
      await rename(temporary, file.target);
      done.push(each);
      await syncDirectory(dirname(file.target));
    } catch (error) {
      const lost = await putBack(done);
      const why = error instanceof Refused ? error.problem : cannotWrite(file.path, error);
      const fix = `${why.fix} Put back by hand: ${lost.join(", ")}`;
      throw new Refused(lost.length === 0 ? why : { ...why, fix }, lost);
    }
  }
}

/** The backups that could not be put in the places of their files. */
async function putBack(done: readonly Staged[]): Promise<string[]> {
  const lost: string[] = [];
  for (const { file, backup } of done) await rename(backup, file.target).catch(() => lost.push(backup));
  return lost;
}

async function checkUnchanged(file: FoundFile): Promise<void> {
  const now = await stat(file.target, { bigint: true });
  const { ino, dev, size, mtimeNs, ctimeNs } = file.stats;
  const same =
    now.ino === ino &&
    now.dev === dev &&
    now.size === size &&
    now.mtimeNs === mtimeNs &&
    now.ctimeNs === ctimeNs;
  if (!same)
    throw new Refused(
      problem("settings.changed-meanwhile", file.path, "was changed by somebody else meanwhile"),
    );
}

/** Writes a new file with the permissions of another. Nobody else can open it before they are set. */
async function writeLike(file: FoundFile, path: string, content: Buffer): Promise<void> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  try {
    const handle = await open(path, flags, 0o600);
    try {
      await copyAttributes(file, handle);
      await handle.writeFile(content);
      await handle.sync();
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(cannotWrite(file.path, error));
  }
}

async function copyAttributes(file: FoundFile, handle: FileHandle): Promise<void> {
  const { uid, gid, mode } = file.stats;
  const own = await handle.stat({ bigint: true });
  // Where that is not permitted, the look at the outcome below says so.
  if (own.uid !== uid || own.gid !== gid) await handle.chown(Number(uid), Number(gid)).catch(() => undefined);
  await handle.chmod(Number(mode & 0o7777n));
  // Access lists and labels, which Node knows nothing of. By descriptor: nobody can put another file in its place.
  const mine = `/proc/${process.pid}/fd/${handle.fd}`;
  await promisify(execFile)("cp", ["--attributes-only", "--preserve=all", "--", file.target, mine]).catch(
    () => undefined,
  );
  const now = await handle.stat({ bigint: true });
  if (now.uid === uid && now.gid === gid && now.mode === mode) return;
  throw new Refused(
    problem("settings.write-failed", file.path, "would not keep its owner and mode", {
      fix: "Run it as root.",
    }),
  );
}

/** Removes the backups of a file that hold nothing but what it holds itself by now. */
export async function removeNeedlessBackups(target: string): Promise<void> {
  const content = await readFile(target);
  for (const name of backupsOf(target, await readdir(dirname(target)))) {
    const backup = join(dirname(target), name);
    // Whoever owns the directory may have put a pipe there, which would be read for ever.
    const kept = await readFound(backup);
    if (kept.ok && content.equals(kept.value.content)) await rm(backup, { force: true });
  }
}

function backupsOf(target: string, names: readonly string[]): string[] {
  const name = basename(target);
  return names.filter(
    (n) => n.startsWith(`${name}.portico-`) && /^\d{8}T\d{9}Z$/.test(n.slice(name.length + 9)),
  );
}

/** Removes all but the last backups of a file, and what a run that was killed has left behind. */
async function prune(target: string, latest: string): Promise<void> {
  const name = basename(target);
  const names = await readdir(dirname(target));
  const old = backupsOf(target, names)
    .sort()
    .filter((n) => n !== latest)
    .slice(0, -(BACKUPS_MAX - 1));
  const stale = names.filter((n) => n.startsWith(`.${name}.portico-new-`));
  for (const each of [...old, ...stale]) await rm(join(dirname(target), each), { force: true });
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  await directory.sync().finally(() => directory.close());
}

function cannotWrite(path: string, error: unknown): Problem {
  return problem("settings.write-failed", path, `cannot be written ${reason(error)}`);
}

function failed(code: "files.unreadable", path: string, message: string, fix?: string): Result<FoundFile> {
  return { ok: false, problems: [problem(code, path, message, fix === undefined ? {} : { fix })] };
}

/** A system error without the path in it, which may be one that nobody named. */
function reason(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException;
  const words = errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
  return `(${words ?? message})`;
}
