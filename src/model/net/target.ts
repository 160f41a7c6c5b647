/**
 * Request targets: routed by a normalised copy, forwarded raw (decisions 1.3, 1.4 and 2.1).
 * Nothing here uses `new URL()`, which rewrites, resolves and re-encodes.
 */

import { scratchBytes } from "./scratchBytes.js";

/** The path as routes see it: percent-decoded to bytes (one char a byte), dot segments resolved, `//` merged. */
export type NormalisedPath = string;

const SLASH = 0x2f;
const PERCENT = 0x25;
const DOT = 0x2e;

/**
 * Normalises the path part of an origin-form target. Undefined if the target is malformed (no leading `/`, a raw `#`,
 * bad percent-encoding, an encoded NUL) or climbs above the root: the caller responds with 400 (decisions 1.3).
 *
 * @param target path and optional query, one char a byte (latin1)
 */
export function normalisePath(target: string): NormalisedPath | undefined {
  // A target has no fragment (RFC 9112, 3.2): peers differ in whether a `#` ends its path, its query or nothing.
  if (target.charCodeAt(0) !== SLASH || target.includes("#")) return undefined;
  const query = endOfPath(target);
  const path = query === target.length ? target : target.slice(0, query);
  if (!NEEDS_WORK.test(path)) return path;
  return resolved(path);
}

/** The parts of a target in absolute-form (RFC 9112, 3.2.2), the second one in origin-form; undefined if it is not. */
export function splitAbsolute(
  target: string,
): { readonly authority: string; readonly target: string } | undefined {
  const [, authority, rest] = ABSOLUTE.exec(target) ?? [];
  if (authority === undefined || rest === undefined) return undefined;
  return { authority, target: rest.charCodeAt(0) === SLASH ? rest : `/${rest}` };
}

const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)/is;

/** Index of the `?` that begins the query, or the length. */
export function endOfPath(target: string): number {
  const query = target.indexOf("?");
  return query === -1 ? target.length : query;
}

// Most targets are plain; only these need decoding, merging or resolving.
const NEEDS_WORK = /%|\/\/|\/\./;

/**
 * The decoded path without dot and empty segments, in one pass: a segment is looked at when the next slash ends it.
 * Undefined for bad percent-encoding, an encoded NUL, and a path that climbs above the root.
 */
function resolved(path: string): string | undefined {
  // In place: what is decoded is not longer. To read a char of a text takes several times as long as to read a byte.
  const bytes = scratchBytes(path);
  // The beginning of the last segment, and its end so far.
  let [begin, end] = [1, 1];
  for (let at = 1; at <= path.length; at++) {
    let byte = at === path.length ? SLASH : bytes[at]!;
    if (byte === PERCENT) {
      byte = at + 2 < path.length ? hexByte(bytes, at + 1) : -1;
      if (byte <= 0) return undefined;
      at += 2;
    }
    if (byte !== SLASH) {
      bytes[end++] = byte;
      continue;
    }
    const dots = end - begin <= 2 && (end === begin || bytes[begin] === DOT) ? end - begin : -1;
    if (dots === 1 || (dots === 2 && bytes[begin + 1] === DOT)) {
      end = begin;
      if (dots === 2) {
        if (begin === 1) return undefined;
        do end--;
        while (bytes[end - 1] !== SLASH);
        begin = end;
      }
    } else if (end > begin && at < path.length) {
      bytes[end++] = SLASH;
      begin = end;
    }
  }
  return bytes.toString("latin1", 0, end);
}

/** The byte written as two hex digits at `at`; below 0 if these are not hex digits. */
function hexByte(bytes: Uint8Array, at: number): number {
  return HEX_DIGITS[bytes[at]!]! * 16 + HEX_DIGITS[bytes[at + 1]!]!;
}

const HEX_DIGITS = Int16Array.from({ length: 256 }, (_, code) =>
  /[0-9a-f]/i.test(String.fromCharCode(code)) ? parseInt(String.fromCharCode(code), 16) : -256,
);

/** How a proxied route cuts its prefix: not at all, from the raw target, or as nginx's rewrite does. */
export type Strip = "none" | "raw" | "nginx";

/**
 * The target that goes upstream.
 *
 * `raw`: the literal prefix is cut, the rest stays byte for byte, an empty rest is `/`. Where the raw target does
 * not literally begin with the prefix (it did only after normalisation), or the prefix was left again by dot
 * segments, the normalised path is stripped and re-encoded. `nginx`: always the latter (decisions 2.1).
 *
 * @param into path that takes the place of the prefix
 */
export function upstreamTarget(
  strip: Strip,
  prefix: string,
  target: string,
  path: NormalisedPath,
  into = "/",
): string {
  if (strip === "none") return target;
  const base = into.endsWith("/") ? into.slice(0, -1) : into;
  const cut = prefix.endsWith("/") ? prefix.length - 1 : prefix.length;
  const end = endOfPath(target);
  if (strip === "raw" && target.startsWith(prefix) && isLiteralRest(target, cut, end)) {
    return base + target.slice(cut);
  }
  const encoded = encodePath(path.slice(cut));
  const query = target.slice(end);
  const rooted = (encoded.charCodeAt(0) === SLASH ? base : into) + encoded;
  // nginx drops an empty query when it rebuilds a URI.
  return strip === "nginx" && query === "?" ? rooted : rooted + query;
}

/**
 * The rest may be forwarded raw if it begins a segment and no dot segment in it climbs out of the prefix that was cut.
 */
function isLiteralRest(target: string, cut: number, end: number): boolean {
  if (target.charCodeAt(cut) !== SLASH) return false;
  const rest = target.slice(cut, end);
  return !MAY_CLIMB.test(rest) || normalisePath(rest) !== undefined;
}

const MAY_CLIMB = /\.\.|%2e/i;

/**
 * The public path with a slash added, as the client wrote it and with its query. nginx uses the internal path and port
 * here, which leads nowhere. A raw path that begins with two slashes would name another host (RFC 3986, 4.2; browsers
 * read `\` as a slash), so then the normalised path is sent.
 */
export function withSlash(target: string, path: string): string {
  const end = endOfPath(target);
  const namesHost = /^[/\\]{2}/.test(target);
  return `${namesHost ? encodePath(path) : target.slice(0, end)}/${target.slice(end)}`;
}

/** Percent-encodes what nginx encodes in a URI it rebuilt: controls, space, `" # % < > ? \ ^ ` { | }` and >= 0x7f. */
export function encodePath(path: NormalisedPath): string {
  if (!NEEDS_ENCODING.test(path)) return path;
  const out = Buffer.allocUnsafe(path.length * 3);
  let end = 0;
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    if (IS_ENCODED[code] !== 1) out[end++] = code;
    else {
      out[end++] = PERCENT;
      out[end++] = HEX.charCodeAt(code >> 4);
      out[end++] = HEX.charCodeAt(code & 0xf);
    }
  }
  return out.toString("latin1", 0, end);
}

const NEEDS_ENCODING = /[^!$&-;=@-[\]_a-z~]/;
const IS_ENCODED = Uint8Array.from({ length: 256 }, (_, code) =>
  NEEDS_ENCODING.test(String.fromCharCode(code)) ? 1 : 0,
);
const HEX = "0123456789ABCDEF";
