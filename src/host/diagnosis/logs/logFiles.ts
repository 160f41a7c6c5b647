import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Log files, read from their ends: only as much as is wanted, however long they are. */

const PIECE_BYTES = 262_144;
/** A longer line is not a log line: it is passed on cut. */
const LINE_BYTES_MAX = 1_048_576;

/**
 * Opens a regular file for reading; the service's user can put a pipe in its place, which must not block the reader.
 *
 * @returns undefined if there is no regular file, or it may not be read
 */
export function openLog(path: string): number | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (fstatSync(fd).isFile()) return fd;
  } catch {
    return undefined;
  }
  closeSync(fd);
  return undefined;
}

/**
 * The lines of a file, the last one first, one char a byte.
 *
 * @param end where to begin; the end of the file without it
 * @param bytesMax how much is read at most
 */
export function* linesBackwards(path: string, end?: number, bytesMax = Infinity): Generator<string> {
  const fd = openLog(path);
  if (fd === undefined) return;
  try {
    let at = Math.min(end ?? Infinity, fstatSync(fd).size);
    const from = Math.max(0, at - bytesMax);
    let rest = "";
    while (at > from) {
      const bytes = Math.min(PIECE_BYTES, at - from);
      const piece = Buffer.allocUnsafe(bytes);
      const read = readSync(fd, piece, 0, bytes, at - bytes);
      at -= bytes;
      const lines = (piece.toString("latin1", 0, read) + rest).split("\n");
      // The first may begin in the piece before.
      rest = lines.shift()!.slice(0, LINE_BYTES_MAX);
      for (let i = lines.length - 1; i >= 0; i--) if (lines[i] !== "") yield lines[i]!;
    }
    if (rest !== "" && from === 0) yield rest;
  } finally {
    closeSync(fd);
  }
}

/** A file that a log was moved to when it was rotated. */
export interface RotatedLog {
  readonly path: string;
  /** When it was written last, in milliseconds since 1970. */
  readonly until: number;
  readonly compressed: boolean;
}

/** The rotated files of a log (`access.log.1`, `access.log-20261126.gz`), the latest first. */
export function rotatedLogs(path: string): readonly RotatedLog[] {
  const [folder, name] = [dirname(path), basename(path)];
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names
    .filter((one) => one.startsWith(name) && ROTATED.test(one.slice(name.length)))
    .flatMap((one) => {
      const file = join(folder, one);
      try {
        return [{ path: file, until: statSync(file).mtimeMs, compressed: one.endsWith(".gz") }];
      } catch {
        return [];
      }
    })
    .sort((a, b) => b.until - a.until);
}

const ROTATED = /^[.-]\d[\d.T:-]{0,30}(?:\.gz)?$/;

/**
 * Follows a log through rotations: by a rename, after which the old file is still written until the proxy opens the new
 * one, and by a copy and a truncation.
 */
export class LogTail {
  /** The file that is followed, and those that it replaced. */
  private files: { readonly fd: number; readonly ino: number; at: number; rest: string; grownAt: number }[] =
    [];
  private opened = false;

  constructor(
    readonly path: string,
    private readonly take: (line: string) => void,
  ) {}

  /** Begins at the current end of the file. @returns that end; undefined if there is no file yet */
  begin(): number | undefined {
    this.open(true);
    return this.files[0]?.at;
  }

  /** Reads lines that were written since the last call. */
  poll(now = Date.now()): void {
    this.open(!this.opened);
    for (const file of this.files) this.read(file, now);
    // A replaced file is done when nothing was written to it for some time.
    const [current] = this.files;
    this.files = this.files.filter((file) => {
      if (file === current || now - file.grownAt < REPLACED_MS) return true;
      closeSync(file.fd);
      return false;
    });
  }

  close(): void {
    for (const { fd } of this.files.splice(0)) closeSync(fd);
  }

  private open(atEnd: boolean): void {
    this.opened = true;
    const fd = openLog(this.path);
    if (fd === undefined) return;
    const { ino, size } = fstatSync(fd);
    if (this.files.some((file) => file.ino === ino)) return closeSync(fd);
    this.files.unshift({ fd, ino, at: atEnd ? size : 0, rest: "", grownAt: Date.now() });
  }

  private read(file: (typeof this.files)[number], now: number): void {
    const { size } = fstatSync(file.fd);
    if (size < file.at) [file.at, file.rest] = [0, ""];
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    for (let pieces = 0; pieces < PIECES_MAX; pieces++) {
      const read = readSync(file.fd, piece, 0, PIECE_BYTES, file.at);
      if (read === 0) return;
      file.at += read;
      file.grownAt = now;
      const lines = (file.rest + piece.toString("latin1", 0, read)).split("\n");
      file.rest = lines.pop()!.slice(0, LINE_BYTES_MAX);
      for (const line of lines) if (line !== "") this.take(line);
    }
  }
}

/** How long a file that was replaced may still be written: a rotation opens the new one within seconds. */
const REPLACED_MS = 60_000;
/** At once, so that the others get their turn. */
const PIECES_MAX = 64;
