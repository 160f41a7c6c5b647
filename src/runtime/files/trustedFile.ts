import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { access, type FileHandle, open, stat } from "node:fs/promises";
import { posix } from "node:path";
import { printableValue } from "../../model/text/printable.js";
import type { ProblemCode } from "../../model/text/problem.js";
import { fsPath } from "./pathText.js";
import { isTrusted, type ResolvedWay, wayTo, wayToSync } from "./trustedPath.js";

/**
 * Opens every file that a config, a deployment or a state directory names. Nothing else in the processes with secrets
 * opens such a file (`__tests__/tidy/opened.ts` lists the few other places).
 *
 * - Only regular files are opened, never with a wait, and at most 16 MiB are read: a FIFO, a device or an endless file
 *   is an error at once.
 * - Root opens a file, and any process starts a program, only if no other user can change a component of the path.
 * - A process without root's rights follows no link of another user's: it reads there only what that user put there.
 *   Pods and containers need this: volumes there belong to others, or everyone may write to their directories.
 *
 * The file itself may belong to another user: then that user decides about its content, but not which file it is.
 */

/**
 * How a path is judged. `named`: by a config, a deployment or a unit. `operator`: given to a command by the user that
 * runs the command, who could read the file by other means; only kind and size are checked.
 */
export type PathSource = "named" | "operator";

/** Why a file is not used. The message continues the path. */
export class FileRefused extends Error {
  constructor(
    readonly code: ProblemCode & `files.${string}`,
    message: string,
    readonly fix: string,
    readonly allowed?: string,
  ) {
    super(message);
    this.name = "FileRefused";
  }
}

/** A chain has up to a megabyte, and so have the roots of a system. */
export const FILE_BYTES_MAX = 16 * 1024 * 1024;

export interface ReadOptions {
  /** @default "named" */
  readonly by?: PathSource;
  /** @default FILE_BYTES_MAX */
  readonly bytesMax?: number;
}

/** A file's content, and its owner and mode when it was read. */
export interface ReadFile {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/**
 * Reads a file.
 *
 * @throws FileRefused, or the system's error
 */
export async function readTrusted(path: string, options: ReadOptions = {}): Promise<ReadFile> {
  const { by = "named", bytesMax = FILE_BYTES_MAX } = options;
  for (let attempt = 1; ; attempt++) {
    const way = by === "named" ? await wayTo(bytesOf(path)) : await operatorsWay(path);
    refuse(way, isRoot());
    // If a file is missing, the system says why.
    const file = await open(fsPath(way.path), by === "named" ? READ : READ & ~constants.O_NOFOLLOW).catch(
      (error: Error) => unlessReplaced(way, error),
    );
    try {
      const stats = await file?.stat();
      if (stats !== undefined && isSame(way, stats))
        return { bytes: await contentOf(file!, stats.size, bytesMax), stats };
    } finally {
      await file?.close();
    }
    if (attempt === ATTEMPTS) throw moved();
  }
}

/** The same for code that cannot wait: small files of the service's own state. */
export function readTrustedSync(path: string): Buffer {
  const way = wayToSync(bytesOf(path));
  refuse(way, isRoot());
  const fd = openSync(fsPath(way.path), READ);
  try {
    const stats = fstatSync(fd);
    if (!isSame(way, stats)) throw moved();
    refuseSize(stats.size, FILE_BYTES_MAX);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Opens a log for appending: a regular file, or a FIFO that has a reader. Missing files are made.
 *
 * @param make how a missing file is made, at a path without links
 * @returns the descriptor
 */
export function openLog(path: string, make: (path: Buffer) => number): number {
  for (let attempt = 1; ; attempt++) {
    const way = wayToSync(bytesOf(path));
    if (way.stopped) throw untrusted(way);
    const fd = openedLog(way, make);
    // A directory of the path may have been replaced by a link in between.
    if (fd !== undefined && isSame(wayToSync(bytesOf(path)), fstatSync(fd))) return fd;
    if (fd !== undefined) closeSync(fd);
    if (attempt === ATTEMPTS) throw moved();
  }
}

/** Undefined if it was rotated, or if another worker was faster. */
function openedLog(way: ResolvedWay, make: (path: Buffer) => number): number | undefined {
  const path = fsPath(way.path);
  try {
    return openSync(path, APPEND);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT") return unlessReplaced(way, error as Error);
  }
  try {
    return make(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

/** Why a log is not opened; undefined if nothing is known against it. */
export async function logRefusal(path: string): Promise<FileRefused | undefined> {
  // Directories that may not be entered have other reports.
  const way = await wayTo(bytesOf(path)).catch(() => undefined);
  return way?.stopped === true ? untrusted(way) : undefined;
}

/**
 * Checks a program that this process is about to start: only root and this process's user may change it, and it runs as
 * no other user.
 *
 * @throws FileRefused, or the system's error
 */
export async function checkProgram(path: string): Promise<void> {
  const way = await wayTo(bytesOf(path));
  refuse(way, true);
  await access(fsPath(way.path), constants.X_OK);
  if (way.found === undefined) throw moved();
  const { uid, mode } = way.found;
  const shown = printableValue(path);
  if (!isTrusted(uid) || (mode & 0o022) !== 0) {
    const who = isTrusted(uid) ? "other users than its owner" : `user ${uid}`;
    const message = `can be changed by ${who} (${ownerAndMode(uid, mode)})`;
    const fix = `${isTrusted(uid) ? "" : `chown root: ${shown} && `}chmod go-w ${shown}`;
    throw new FileRefused("files.untrusted-path", message, fix);
  }
  if ((mode & 0o6000) !== 0) {
    const message = `would run as another user or group (${ownerAndMode(uid, mode)})`;
    throw new FileRefused("files.untrusted-path", message, `chmod ug-s ${shown}`);
  }
}

/** Checks that root may let others open a path as root: systemd opens credentials without any of these checks. */
export async function checkForRoot(path: string): Promise<void> {
  refuse(await wayTo(bytesOf(path)), true);
}

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** A FIFO without a reader is an error at once instead of a process that hangs. */
export const APPEND = constants.O_WRONLY | constants.O_APPEND | (READ & ~constants.O_RDONLY);
/** A renewal or a rotation may replace the file between two steps. */
const ATTEMPTS = 5;

const bytesOf = (path: string): string => Buffer.from(posix.resolve(path), "utf8").toString("latin1");

const isRoot = (): boolean => process.geteuid?.() === 0;

const operatorsWay = async (path: string): Promise<ResolvedWay> => ({
  path: bytesOf(path),
  found: await stat(path),
  stopped: false,
});

/** Nothing if a file was there, and is not any more. */
function unlessReplaced({ found }: ResolvedWay, error: NodeJS.ErrnoException): undefined {
  if (found === undefined || !["ENOENT", "ELOOP"].includes(error.code!)) throw error;
  return undefined;
}

/** Whether the file that was opened is the one at the end of the way. */
const isSame = ({ found }: ResolvedWay, { dev, ino, uid }: Stats): boolean =>
  found?.dev === dev && found.ino === ino && found.uid === uid;

const moved = (): FileRefused =>
  new FileRefused(
    "files.untrusted-path",
    "was replaced each time that it was opened",
    "Stop the program that replaces the file.",
  );

/** The whole content, whatever size the file reports: files of the kernel report none. */
async function contentOf(file: FileHandle, size: number, bytesMax: number): Promise<Buffer> {
  refuseSize(size, bytesMax);
  const pieces: Buffer[] = [];
  for (let length = 0; ;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.max(size + 1 - length, 4096)));
    if (bytesRead === 0) return Buffer.concat(pieces);
    length += bytesRead;
    refuseSize(length, bytesMax);
    pieces.push(buffer.subarray(0, bytesRead));
  }
}

function refuseSize(size: number, bytesMax: number): void {
  if (size <= bytesMax) return;
  const allowed = `up to ${bytesMax} bytes`;
  throw new FileRefused("files.too-large", `has ${size} bytes`, "Use a smaller file.", allowed);
}

function refuseKind(found: Stats): void {
  if (!found.isFile())
    throw new FileRefused("files.not-a-file", kindOf(found), "Use the path of a regular file.");
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return "is a directory";
  if (found.isFIFO()) return "is a FIFO";
  return found.isSocket() ? "is a socket" : "is a device";
}

/** @param strictly whether another user may change no component; otherwise only links of others are refused */
function refuse(way: ResolvedWay, strictly: boolean): void {
  const { change, found, missingIn, stopped } = way;
  if (stopped || (strictly && change !== undefined)) throw untrusted(way);
  if (strictly && missingIn !== undefined) {
    const message = `does not exist, and every user may create it in ${shownPath(missingIn)}`;
    throw new FileRefused("files.untrusted-path", message, ELSEWHERE);
  }
  if (found !== undefined) refuseKind(found);
}

function untrusted({ change }: ResolvedWay): FileRefused {
  const { at, owner, mode, why, by } = change!;
  const component = shownPath(at);
  const seen = ownerAndMode(owner, mode);
  const [message, fix] = {
    owner: [`is at or below ${component} (${seen}), which user ${by} can change`, `chown root: ${component}`],
    shared: [
      `is below ${component} (${seen}), which other users than its owner can change`,
      `chmod go-w ${component}`,
    ],
    link: [`is behind the link ${component} (${seen}), which user ${by} made`, `chown -h root: ${component}`],
    mount: [`is at or below ${component}, a file system that user ${by} provides`, `umount ${component}`],
  }[why] as [string, string];
  return new FileRefused("files.untrusted-path", message, `${ELSEWHERE} Or let only root change it: ${fix}`);
}

const ELSEWHERE = "Put the file below a directory that only root can change, such as /etc/portico.";

const ownerAndMode = (owner: number, mode: number): string =>
  `owner ${owner}, mode ${(mode & 0o7777).toString(8).padStart(4, "0")}`;

const shownPath = (path: string): string => printableValue(fsPath(path).toString("utf8"));
