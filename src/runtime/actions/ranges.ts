import { randomInt } from "node:crypto";
import { isBlank, withoutBlanks } from "../../model/serving.js";

/**
 * Byte ranges (RFC 9110, 14). Where the RFC leaves a choice, we do what nginx does (decisions 6.5): a range set that
 * cannot be read or satisfied is 416, an unknown unit is ignored, members that cannot be satisfied are dropped.
 */

/** Bytes from `start` up to but without `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The ranges to send in the order asked for; `whole` for the whole file; `unsatisfiable` for 416. */
export type RangeResponse = readonly ByteRange[] | "whole" | "unsatisfiable";

/**
 * More members than this, or more bytes than the file has, and the whole file is sent: a set of many small or
 * overlapping ranges is an attack on the server's memory and the network (RFC 9110, 17.15). The rest is not read.
 */
export const RANGES_MAX = 100;

/** The parts of a file of `size` bytes that a `Range` value selects. An empty file is sent whole, as by nginx. */
export function parseRange(value: string, size: number): RangeResponse {
  const unit = UNIT.exec(value);
  if (unit === null || size === 0) return "whole";
  const ranges: ByteRange[] = [];
  let bytes = 0;
  let members = 0;
  for (let at = unit[0].length, end = at; ; at = end) {
    // RFC 9110, 5.6.1.2: empty list members are to be read and ignored.
    while (value.charCodeAt(at) === COMMA || isBlank(value.charCodeAt(at))) at++;
    if (at === value.length) break;
    const comma = value.indexOf(",", at);
    end = comma === -1 ? value.length : comma;
    const spec = withoutBlanks(value, at, end);
    if (++members > RANGES_MAX) return "whole";
    const range = parseMember(spec, size);
    if (range === undefined) return "unsatisfiable";
    if (range.start >= range.end) continue;
    ranges.push(range);
    bytes += range.end - range.start;
  }
  // A set without members is not a range set, and ignored.
  if (members === 0) return "whole";
  if (ranges.length === 0) return "unsatisfiable";
  return bytes > size ? "whole" : ranges;
}

/** The value of `Content-Range` for a part of a file. */
export function contentRange(range: ByteRange, size: number): string {
  return `bytes ${range.start}-${range.end - 1}/${size}`;
}

/** A part of a response: a range of the file, or given bytes (the delimiters of a multipart). */
export type Segment = ByteRange | Uint8Array;

export function byteLength(segments: readonly Segment[]): number {
  return segments.reduce((sum, s) => sum + ("start" in s ? s.end - s.start : s.length), 0);
}

/** Several ranges as one `multipart/byteranges` body (RFC 9110, 14.6), laid out as nginx does. */
export function multipart(
  ranges: readonly ByteRange[],
  size: number,
  contentType: string,
): { readonly type: string; readonly segments: readonly Segment[] } {
  // Must not be guessable: otherwise the author of the file could forge the borders of its parts.
  const boundary = `${digits10()}${digits10()}`;
  const segments = ranges.flatMap((range): Segment[] => {
    const where = `Content-Range: ${contentRange(range, size)}`;
    return [Buffer.from(`\r\n--${boundary}\r\nContent-Type: ${contentType}\r\n${where}\r\n\r\n`), range];
  });
  return {
    type: `multipart/byteranges; boundary=${boundary}`,
    segments: [...segments, Buffer.from(`\r\n--${boundary}--\r\n`)],
  };
}

const digits10 = (): string => String(randomInt(10 ** 10)).padStart(10, "0");

// nginx takes the unit without case, and no space before `=`.
const UNIT = /^bytes=/i;

// nginx allows spaces around the hyphen.
const MEMBER = /^(\d*)[ \t]*-[ \t]*(\d*)$/;

/** The range that a text describes, clipped to the file and perhaps empty; undefined if the text cannot be read. */
function parseMember(spec: string, size: number): ByteRange | undefined {
  const match = MEMBER.exec(spec);
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") {
    // The last N bytes.
    return last === "" ? undefined : { start: Math.max(0, size - Number(last)), end: size };
  }
  // Numbers beyond the exact integers are far beyond any file size, so the lost precision does not matter.
  return { start: Number(first), end: last === "" ? size : Math.min(size, Number(last) + 1) };
}

const COMMA = 0x2c;
