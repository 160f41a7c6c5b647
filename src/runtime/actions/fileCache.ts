import type { BigIntStats } from "node:fs";
import { lookup as mimeType } from "mrmime";
import { type ActionOf, CODING_SUFFIXES, type ContentCoding, onePiece } from "../../model/serving.js";
import type { HeaderList } from "../exchange/exchange.js";
import { fsPath } from "../files/pathText.js";

/** A file as it was when it was last checked: the data for its responses, and its content if that is small. */
export interface StaticFile {
  /** The file's path, one character a byte. */
  readonly path: string;
  /** The same as the file system takes it. */
  readonly diskPath: Buffer;
  readonly size: number;
  readonly etag: string;
  /** Seconds since the epoch; conditions are compared with it. */
  readonly modifiedSecond: number;
  readonly contentType: string;
  /** `Content-Encoding`, of an encoded file: also sent with a 206. */
  readonly encodingHeaders: HeaderList;
  /** `ETag`, `Last-Modified`, `Cache-Control`, `Vary`: also sent with a 304. Shared, never to be changed. */
  readonly validatorHeaders: HeaderList;
  /** The whole list of a 200. Shared, never to be changed. */
  readonly headers: HeaderList;
  /** The content of a file of up to {@link CONTENT_BYTES_MAX}. */
  readonly content: Buffer | undefined;
  /** The state that all of this was taken from. */
  readonly stats: BigIntStats;
  /**
   * False if the file changed so shortly before it was checked that another change might not show in `stats`. The
   * description is then for one response only.
   */
  readonly settled: boolean;
  /** When the path to it was last checked; milliseconds since the epoch. */
  checkedAt: number;
  /** Whether it was requested since the cache last looked for something to drop. */
  used: boolean;
}

/** Files up to this size, which are read in one piece in any case, are kept in memory. */
export const CONTENT_BYTES_MAX = 512 * 1024;

/**
 * Describes a file. Name and content belong to the moment of `stats`.
 *
 * The entity tag is strong: inode and time of the last change, which no program can set back, distinguish all contents
 * except those within one tick of the file system's clock, and during that tick each check gets its own tag. Dates
 * distinguish only seconds. So a date never names a second that is not over, by the file system's clock, which lags behind
 * by a tick: no client can then have one for a content that was replaced within that second (RFC 9110, 8.8.2.2).
 */
export function describeFile(
  path: string,
  stats: BigIntStats,
  content: Buffer | undefined,
  { cacheControl, precompressed = [] }: Pick<ActionOf<"staticFiles">, "cacheControl" | "precompressed">,
  checkedAt: number,
  coding?: ContentCoding,
): StaticFile {
  const modifiedSecond = Math.floor(Number(stats.mtimeMs) / 1000);
  const lastFullSecond = Math.floor((checkedAt - tickMs(stats)) / 1000) - 1;
  const named = new Date(Math.min(modifiedSecond, lastFullSecond) * 1000).toUTCString();
  const ticked = checkedAt - Number(stats.ctimeMs) > tickMs(stats);
  const settled = ticked && (modifiedSecond <= lastFullSecond || Number(stats.mtimeMs) > checkedAt);
  const parts = [stats.ctimeNs, stats.size, stats.ino];
  if (!settled) parts.push(process.hrtime.bigint());
  // The encoded file may be a link to the same inode, but its response has different content.
  const tag = parts.map((part) => part.toString(16)).concat(coding ?? []);
  const etag = `"${tag.join("-")}"`;
  const validators = ["Last-Modified", named, "ETag", etag];
  if (cacheControl !== undefined) validators.push("Cache-Control", cacheControl);
  if (precompressed.length > 0) validators.push("Vary", "Accept-Encoding");
  const original = coding === undefined ? path : path.slice(0, -CODING_SUFFIXES[coding].length);
  const contentType = contentTypeOf(original);
  const encodingHeaders = coding === undefined ? [] : ["Content-Encoding", coding];
  return {
    path,
    diskPath: fsPath(path),
    size: Number(stats.size),
    etag,
    modifiedSecond,
    contentType,
    encodingHeaders,
    validatorHeaders: Object.freeze(validators) as HeaderList,
    headers: Object.freeze([
      "Content-Type",
      contentType,
      ...encodingHeaders,
      ...validators,
      "Accept-Ranges",
      "bytes",
    ]) as HeaderList,
    content,
    stats,
    settled,
    checkedAt,
    used: true,
  };
}

/**
 * How far apart two changes must be to differ in their time: a few ticks of the kernel, or 2 s where times are in
 * seconds.
 */
function tickMs(stats: BigIntStats): number {
  return stats.ctimeNs % 1_000_000_000n === 0n ? 2_000 : 100;
}

/** True if nothing about the file changed between two checks: its place, content or permissions. */
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
 * The recently requested files of one route, within a limit of memory: by request path, and encoded ones by a key that
 * is no path.
 *
 * The clock algorithm (second chance) decides which file is dropped when there is no room: a hit only sets a mark,
 * whereas a strict least-recently-used order would cost two map operations.
 */
export class FileCache {
  private readonly files = new Map<string, StaticFile>();
  private bytes = 0;

  constructor(private readonly bytesMax = CACHE_BYTES_MAX) {}

  /** The file of a request path, or an encoded one, as it was. */
  get(key: string): StaticFile | undefined {
    const file = this.files.get(key);
    if (file !== undefined) file.used = true;
    return file;
  }

  set(key: string, file: StaticFile): void {
    this.delete(key);
    // A slice of a request head would keep the whole head alive.
    const kept = onePiece(key);
    this.files.set(kept, file);
    this.bytes += weight(kept, file);
    if (this.bytes > this.bytesMax) this.shrink();
  }

  delete(key: string): void {
    const file = this.files.get(key);
    if (file === undefined) return;
    this.files.delete(key);
    this.bytes -= weight(key, file);
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

const CACHE_BYTES_MAX = 16 * 1024 * 1024;

/** Approximate size of headers, stats and map entry. */
const ENTRY_BYTES = 2_048;

function weight(key: string, file: StaticFile): number {
  return ENTRY_BYTES + 2 * key.length + (file.content?.length ?? 0);
}

/** The type of the extension, without case (decisions 6.6); no charset is given, because it is not known. */
function contentTypeOf(path: string): string {
  // If the file's name has no dot, this has a slash, and so has no type.
  const extension = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  const type: unknown = MORE_TYPES[extension] ?? mimeType(extension);
  // The table is a plain object: `constructor` is in it, but is not a type.
  return typeof type === "string" ? type : "application/octet-stream";
}

/** Types of files that sites have and the library's table lacks, as in nginx's mime.types. */
const MORE_TYPES: Readonly<Record<string, string | undefined>> = Object.assign(Object.create(null), {
  ico: "image/x-icon",
  eot: "application/vnd.ms-fontobject",
});
