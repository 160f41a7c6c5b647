import fs from "node:fs";
import { promisify } from "node:util";
import type { ErrorLevel } from "../exchange/exchange.js";
import { type ActionOf, belowDirectory, CODING_SUFFIXES, type ContentCoding } from "../../model/serving.js";
import { closedToOthers, followOwnLinks, linkText } from "../files/openToOthers.js";
import { fsPath, shown } from "../files/pathText.js";
import { systemError, systemReason } from "../files/systemReason.js";
import { CONTENT_BYTES_MAX, describeFile, isSameState, type StaticFile } from "./fileCache.js";
import { explainDenial } from "../files/permissions.js";

/** The target of a path: a file, a directory that was requested without its slash, or the reason for neither. */
export type LookupResult = LookupFile | { readonly kind: "directory" } | LookupFailure;

export interface LookupFile {
  readonly kind: "file";
  readonly file: StaticFile;
}

export interface LookupFailure {
  readonly kind: "failure";
  readonly status: 403 | 404 | 500 | 503;
  readonly level: ErrorLevel;
  /** The text for the error log. */
  readonly message: string;
}

/** Closes a descriptor whatever happens, from the moment that its file is open. */
export interface DescriptorOwner {
  own(fd: number): void;
}

/**
 * Finds files below a directory that others may read (`openToOthers.ts`). Nothing is opened by name twice: an opened file
 * is judged by its descriptor, so swapping a link between a check and its use achieves nothing.
 */
export class FileLookup {
  private readonly directory: string;

  constructor(private readonly config: ActionOf<"staticFiles">) {
    this.directory = belowDirectory(Buffer.from(config.directory).toString("latin1"));
  }

  /** @param rest path below the directory, empty or with `/` first, one char a byte; never throws */
  async find(rest: string): Promise<LookupResult> {
    if (!rest.endsWith("/")) return this.open(rest);
    for (const name of this.config.index) {
      const found = await this.open(rest + name);
      if (found.kind === "file" || (found.kind === "failure" && found.status !== 404)) return found;
    }
    const directory = await this.open(rest);
    if (directory.kind !== "directory") return directory;
    const { index } = this.config;
    const lacks = index.length === 0 ? "the route has no `index`" : `it has no file ${index.join(" or ")}`;
    const at = shown(this.directory + rest);
    return failure(403, "error", `directory index of "${at}" is forbidden: ${lacks}`);
  }

  /** The file beside it that has its content encoded. */
  findEncoded(file: StaticFile, coding: ContentCoding): Promise<LookupResult> {
    return this.open(file.path.slice(this.directory.length) + CODING_SUFFIXES[coding], coding);
  }

  /** Whether there is anything by that name. */
  hasEncoded(file: StaticFile, coding: ContentCoding): boolean {
    try {
      return fs.statSync(fsPath(file.path + CODING_SUFFIXES[coding]), NO_ERROR) !== undefined;
    } catch (error) {
      systemError(error);
      return false;
    }
  }

  /**
   * Whether a file is still the same as when it was described. The check costs about as much as the response's head, so
   * every response can afford it. A file that was removed, replaced or made unreadable is noticed at once. If a directory
   * on the path was moved out of reach and replaced with a link that leads to the same file, that is noticed within
   * {@link WAY_CHECK_MS}, and so is a directory that was closed to others.
   *
   * @param key path that it was found for, or what the cache has an encoded one by
   */
  isCurrent(file: StaticFile, key: string): boolean {
    const age = Date.now() - file.checkedAt;
    if (!file.settled || age < 0 || age >= WAY_CHECK_MS || !this.isFirst(file, key)) return false;
    try {
      const stats = fs.statSync(file.diskPath, NO_ERROR);
      return stats !== undefined && isSameState(stats, file.stats);
    } catch (error) {
      systemError(error);
      return false;
    }
  }

  /** Like {@link isCurrent}; also checks that the path to the file is still allowed. */
  async isUnchanged(file: StaticFile, key: string): Promise<boolean> {
    if (!file.settled || !this.isFirst(file, key)) return false;
    try {
      const fd = await this.reopen(file);
      if (fd === undefined) return false;
      try {
        const rest = file.path.slice(this.directory.length);
        const root = await this.root();
        if (typeof root === "object") return false;
        const real = await pathOfDescriptor(fd, file.path, file.stats);
        return (
          real !== undefined && (await this.refusal(real, file.stats, file.path, rest, root)) === undefined
        );
      } finally {
        fs.close(fd, ignore);
      }
    } catch (error) {
      systemError(error);
      return false;
    }
  }

  /** With several index files, one with priority may have been added; the state of the other does not show that. */
  private isFirst(file: StaticFile, key: string): boolean {
    return !key.endsWith("/") || file.path.endsWith(`/${this.config.index[0]!}`);
  }

  /**
   * A descriptor of the file, if it is still in the state described; otherwise undefined. The caller closes it. Its
   * place was checked when it was described, and the same inode is still there.
   */
  async reopen(file: StaticFile): Promise<number | undefined> {
    const fd = await open(fsPath(file.path), READ);
    let isSame: boolean | undefined;
    try {
      isSame = isSameState(await fstat(fd, BIGINT), file.stats);
    } finally {
      if (!isSame) fs.close(fd, ignore);
    }
    return isSame ? fd : undefined;
  }

  /** The same for a response: the descriptor goes to its owner. @returns why there is no descriptor */
  async openDescribed(file: StaticFile, owner: DescriptorOwner): Promise<LookupFailure | undefined> {
    try {
      const fd = await this.reopen(file);
      if (fd === undefined) return keepsBeingReplaced(file.path);
      owner.own(fd);
      return undefined;
    } catch (error) {
      return openFailure(file.path, systemError(error));
    }
  }

  /**
   * If the directory is a link, the whole lookup is in the one directory that it leads to: a link that is switched in
   * the meantime mixes nothing.
   */
  private async open(
    rest: string,
    coding?: ContentCoding,
    attempts = ATTEMPTS_MAX,
    refused = false,
  ): Promise<LookupResult> {
    const path = this.directory + rest;
    const checkedAt = Date.now();
    let root: Awaited<ReturnType<typeof this.root>>;
    let fd: number;
    try {
      root = await this.root();
      if (typeof root === "object") return root;
      const at = root === undefined ? path : belowDirectory(root) + rest;
      fd = await open(fsPath(at === "" ? "/" : at), READ);
    } catch (error) {
      const failed = systemError(error);
      // The directory may be a different one now.
      const moved = (await this.root().catch(ignore)) !== root;
      return moved && attempts > 0 ? this.open(rest, coding, attempts - 1) : openFailure(path, failed);
    }
    let found: LookupResult | undefined;
    try {
      found = await this.judge(fd, path, rest, checkedAt, root, coding);
    } catch (error) {
      const message = `read() "${shown(path)}" failed ${systemReason(systemError(error))}`;
      return failure(500, "crit", message);
    } finally {
      fs.close(fd, ignore);
    }
    // A path may only seem refused because it was renamed under the open file: the next attempt decides.
    const isRefused = found?.kind === "failure";
    if (found !== undefined && (!isRefused || refused)) return found;
    if (attempts > 0) return this.open(rest, coding, attempts - 1, isRefused);
    return keepsBeingReplaced(path);
  }

  /**
   * The response for an open file; undefined if it was replaced in the meantime by another.
   *
   * @param root where the directory is; undefined if links may lead anywhere
   */
  private async judge(
    fd: number,
    path: string,
    rest: string,
    checkedAt: number,
    root: string | undefined,
    coding: ContentCoding | undefined,
  ): Promise<LookupResult | undefined> {
    const stats = await fstat(fd, BIGINT);
    const real = await pathOfDescriptor(fd, path, stats);
    if (real === undefined) return undefined;
    // A pipe by way of another descriptor has no path.
    if (!real.startsWith("/")) return notRegular(path);
    const refused = await this.refusal(real, stats, path, rest, root);
    if (refused !== undefined) return refused === "moved" ? undefined : refused;
    if (stats.isDirectory()) return { kind: "directory" };
    // nginx responds with 404 for anything else: a device, a FIFO, a socket.
    if (!stats.isFile()) return notRegular(path);
    const small = stats.size <= CONTENT_BYTES_MAX;
    const content = small ? await readWhole(fd, Number(stats.size)) : undefined;
    // A file that changed while it was read is sent from the disk, which notices a change in the middle.
    const whole = content !== undefined && isSameState(await fstat(fd, BIGINT), stats) ? content : undefined;
    return { kind: "file", file: describeFile(path, stats, whole, this.config, checkedAt, coding) };
  }

  /** Why an open file may not be sent; `moved` if it is no longer at that path. */
  private async refusal(
    real: string,
    stats: fs.BigIntStats,
    path: string,
    rest: string,
    root: string | undefined,
  ): Promise<LookupFailure | "moved" | undefined> {
    const straight = belowDirectory(root ?? this.directory) + rest.replace(/\/$/, "");
    const isStraight = real === straight || (straight === "" && real === "/");
    const refused = isStraight || root === undefined ? undefined : this.linkRefusal(real, path, root);
    if (refused !== undefined) return refused;
    const from = root ?? (isStraight && this.directory !== "" ? this.directory : "/");
    const closed = await closedToOthers(real, stats, isStraight ? "straight" : "link", from);
    if (closed === undefined || closed === "moved") return closed;
    return failure(403, "error", `"${shown(path)}" is not open to others: ${closed.why}`);
  }

  /** Why a path through links is not allowed, by the route's rule for symbolic links. */
  private linkRefusal(real: string, path: string, root: string): LookupFailure | undefined {
    if (this.config.symlinks === "never")
      return failure(403, "error", `"${shown(path)}" leads through a symbolic link, and symlinks is "never"`);
    if (real === root || real.startsWith(`${belowDirectory(root)}/`)) return undefined;
    const target = `is a symbolic link to "${shown(real)}", outside "${shown(root)}"`;
    return failure(403, "error", `"${shown(path)}" ${target}; allow it with symlinks "anywhere"`);
  }

  /** The real path of the directory, without links; undefined if links may lead anywhere. */
  private async root(): Promise<string | undefined | LookupFailure> {
    if (this.config.symlinks === "anywhere") return undefined;
    const followed = await followOwnLinks(this.directory === "" ? "/" : this.directory);
    if ("real" in followed) return followed.real;
    return failure(403, "error", `${linkText(followed.link)}; or allow it with symlinks "anywhere"`);
  }
}

/** How long a check of the path to a file is valid. */
const WAY_CHECK_MS = 1_000;

/** How often a file may be replaced between its opening and the check. */
const ATTEMPTS_MAX = 5;

/** O_NONBLOCK: opening a FIFO must not wait for its writer. */
const READ = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY;
const BIGINT = { bigint: true } as const;
const NO_ERROR = { bigint: true, throwIfNoEntry: false } as const;

const open = promisify(fs.open);
const stat = promisify(fs.stat) as (path: Buffer, options: typeof BIGINT) => Promise<fs.BigIntStats>;
const fstat = promisify(fs.fstat) as (fd: number, options: typeof BIGINT) => Promise<fs.BigIntStats>;
const read = promisify(fs.read);
const readlink = promisify(fs.readlink);
const ignore = (): void => undefined;

const realPath = async (path: string): Promise<string> =>
  (await fs.promises.realpath(fsPath(path), "buffer")).toString("latin1");

/** The kernel knows by which path an open file is reached, links resolved; only Linux shows it. */
const DESCRIPTOR_LINKS = fs.existsSync("/proc/self/fd");

/** Undefined if the file is gone or was moved. */
export async function pathOfDescriptor(
  fd: number,
  path: string,
  stats: fs.BigIntStats,
): Promise<string | undefined> {
  if (!DESCRIPTOR_LINKS) return pathOfFile(path, stats);
  const link = (await readlink(`/proc/self/fd/${fd}`, "buffer")).toString("latin1");
  // Some file systems in user space count no links of files that exist.
  return stats.nlink === 0n && link.endsWith(" (deleted)") ? undefined : link;
}

/** The same, as far as names can show it. */
export async function pathOfFile(path: string, stats: fs.BigIntStats): Promise<string | undefined> {
  const real = await realPath(path);
  const there = await stat(fsPath(real), BIGINT);
  return there.ino === stats.ino && there.dev === stats.dev ? real : undefined;
}

/** The bytes of a small file; undefined if one read does not bring `size` of them, as when it has fewer by now. */
async function readWhole(fd: number, size: number): Promise<Buffer | undefined> {
  const content = Buffer.allocUnsafeSlow(size);
  const { bytesRead } = await read(fd, content, 0, size, 0);
  return bytesRead === size ? content : undefined;
}

/** The response for a device, a FIFO, a socket. */
function notRegular(path: string): LookupFailure {
  return failure(404, "crit", `"${shown(path)}" is not a regular file`);
}

/** The response for a file that is another one each time it is looked at: a client may try again. */
function keepsBeingReplaced(path: string): LookupFailure {
  return failure(503, "crit", `"${shown(path)}" keeps being replaced`);
}

/** The response for a file that cannot be opened. */
export async function openFailure(path: string, error: NodeJS.ErrnoException): Promise<LookupFailure> {
  const message = `open() "${shown(path)}" failed ${systemReason(error)}`;
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
    case "ENAMETOOLONG":
      return failure(404, "error", message);
    case "EACCES":
    case "EPERM":
      return failure(403, "error", `${message}: ${await explainDenial(path)}`);
    case "ELOOP":
      return failure(403, "error", message);
    // A socket, or a device without a driver.
    case "ENXIO":
    case "ENODEV":
      return failure(404, "crit", `${message}: not a regular file`);
    // Out of descriptors or memory: another attempt later may succeed.
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
      return failure(503, "crit", message);
    default:
      return failure(500, "crit", message);
  }
}

function failure(status: LookupFailure["status"], level: ErrorLevel, message: string): LookupFailure {
  return { kind: "failure", status, level, message };
}
