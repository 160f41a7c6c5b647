import type { BigIntStats } from "node:fs";
import { lookup as mimeType } from "mrmime";
import { onePiece } from "../../model/serving.js";
import type { HeaderList } from "../exchange.js";

/** A file as it was at its last check: what every answer about it needs, and its content if that is small. */
export interface StaticFile {
  /** Where it is, one char a byte. */
  readonly path: string;
  readonly size: number;
  readonly etag: string;
  readonly modifiedSecond: number;
  readonly contentType: string;
  /** `ETag`, `Last-Modified`, `Cache-Control`: what a 304 carries too. Shared, never to be changed. */
  readonly validatorHeaders: HeaderList;
  /** The whole list of a 200. Shared, never to be changed. */
  readonly headers: HeaderList;
  /** The content of a file of up to {@link CONTENT_BYTES_MAX}. */
  readonly content: Buffer | undefined;
  /** The state that all of this was taken from. */
  readonly stats: BigIntStats;
  /**
   * False if the file changed so shortly before it was read that another change might not show: clocks of file
   * systems tick in up to 2 s. Such content is read again at the next check.
   */
  readonly settled: boolean;
  /** When the last check began; milliseconds since the epoch. */
  checkedAt: number;
  /** Whether it was asked for since the cache last looked for something to drop. */
  used: boolean;
}

/** Files up to this size, which are read in one piece in any case, are kept in memory. */
export const CONTENT_BYTES_MAX = 512 * 1024;

/** Describes a file. Name and content belong to the moment of `stats`. */
export function describeFile(
  path: string,
  stats: BigIntStats,
  content: Buffer | undefined,
  cacheControl: string | undefined,
  checkedAt: number,
): StaticFile {
  // RFC 9110, 8.8.2.1: Last-Modified never lies in the future.
  const modifiedSecond = Math.min(Math.floor(Number(stats.mtimeMs) / 1000), Math.floor(checkedAt / 1000));
  const etag = `"${(stats.mtimeMs / 1000n).toString(16)}-${stats.size.toString(16)}"`;
  const validators = ["Last-Modified", new Date(modifiedSecond * 1000).toUTCString(), "ETag", etag];
  if (cacheControl !== undefined) validators.push("Cache-Control", cacheControl);
  const contentType = contentTypeOf(path);
  return {
    path,
    size: Number(stats.size),
    etag,
    modifiedSecond,
    contentType,
    validatorHeaders: Object.freeze(validators) as HeaderList,
    headers: Object.freeze([
      "Content-Type",
      contentType,
      ...validators,
      "Accept-Ranges",
      "bytes",
    ]) as HeaderList,
    content,
    stats,
    settled: checkedAt - Number(stats.ctimeMs) > SETTLED_MS,
    checkedAt,
    used: true,
  };
}

/** True if nothing about the file changed between two looks at it: its place, content or permissions. */
export function isSameState(a: BigIntStats, b: BigIntStats): boolean {
  return (
    a.ino === b.ino &&
    a.dev === b.dev &&
    a.size === b.size &&
    a.mtimeNs === b.mtimeNs &&
    a.ctimeNs === b.ctimeNs
  );
}

/**
 * The files of one route that were asked for lately, within a bound of memory.
 *
 * Which file goes when there is no room is decided by the clock algorithm (second chance): a hit only sets a mark,
 * where a strict least-recently-used order would cost two map operations.
 */
export class FileCache {
  private readonly files = new Map<string, StaticFile>();
  private bytes = 0;

  constructor(private readonly bytesMax = CACHE_BYTES_MAX) {}

  /** The file behind a request path; whether it may be used unchecked is {@link isFresh}. */
  get(requestPath: string): StaticFile | undefined {
    const file = this.files.get(requestPath);
    if (file !== undefined) file.used = true;
    return file;
  }

  set(requestPath: string, file: StaticFile): void {
    this.delete(requestPath);
    // A slice of a request head would keep the whole head alive.
    const key = onePiece(requestPath);
    this.files.set(key, file);
    this.bytes += weight(key, file);
    if (this.bytes > this.bytesMax) this.shrink();
  }

  delete(requestPath: string): void {
    const file = this.files.get(requestPath);
    if (file === undefined) return;
    this.files.delete(requestPath);
    this.bytes -= weight(requestPath, file);
  }

  private shrink(): void {
    // A map iterates in order of insertion and comes to the entries that are put back here after all others.
    for (const [key, file] of this.files) {
      this.delete(key);
      if (file.used) {
        file.used = false;
        this.files.set(key, file);
        this.bytes += weight(key, file);
      }
      if (this.bytes <= this.bytesMax) return;
    }
  }
}

/** How long a file is served without another look at it. */
export const CHECK_MS = 1_000;

/** Whether a file was checked so lately that it may be served as it is; a clock set back makes it stale. */
export function isFresh(file: StaticFile): boolean {
  const age = Date.now() - file.checkedAt;
  return age >= 0 && age < CHECK_MS;
}

const CACHE_BYTES_MAX = 16 * 1024 * 1024;
const SETTLED_MS = 2_000;

/** Roughly what headers, stats and map entry take. */
const ENTRY_BYTES = 2_048;

function weight(key: string, file: StaticFile): number {
  return ENTRY_BYTES + 2 * key.length + (file.content?.length ?? 0);
}

/** By the extension, without case (nginx-semantics H); no charset is claimed, for nobody knows it. */
function contentTypeOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  const extension = dot === -1 ? "" : name.slice(dot + 1).toLowerCase();
  const type: unknown = MORE_TYPES[extension] ?? mimeType(extension);
  // The table is a plain object: `constructor` is in it, but is no type.
  return typeof type === "string" ? type : "application/octet-stream";
}

/** Types of files that sites have and the library's table lacks, as in nginx's mime.types. */
const MORE_TYPES: Readonly<Record<string, string | undefined>> = Object.assign(Object.create(null), {
  ico: "image/x-icon",
  eot: "application/vnd.ms-fontobject",
});
