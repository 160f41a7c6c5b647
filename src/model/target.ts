/**
 * Request targets: routed by a normalised copy, forwarded raw (decisions 1.3, 1.4 and 2.1).
 * Nothing here uses `new URL()`, which rewrites, resolves and re-encodes.
 */

/** The path as routes see it: percent-decoded to bytes (one char a byte), dot segments resolved, `//` merged. */
export type NormalisedPath = string;

const SLASH = 0x2f;
const PERCENT = 0x25;

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
  const decoded = percentDecode(path);
  return decoded === undefined ? undefined : resolveDotSegments(decoded);
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

function percentDecode(path: string): string | undefined {
  let out = "";
  let from = 0;
  for (let at = path.indexOf("%"); at !== -1; at = path.indexOf("%", from)) {
    const byte = hexByte(path, at + 1);
    if (!(byte > 0)) return undefined;
    out += path.slice(from, at) + String.fromCharCode(byte);
    from = at + 3;
  }
  return out + path.slice(from);
}

/** The byte written as two hex digits at `at`; NaN if these are not hex digits. */
function hexByte(text: string, at: number): number {
  return hexDigit(text.charCodeAt(at)) * 16 + hexDigit(text.charCodeAt(at + 1));
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : NaN;
}

function resolveDotSegments(path: string): string | undefined {
  const out: string[] = [];
  const segments = path.split("/");
  const last = segments.length - 1;
  for (let i = 1; i <= last; i++) {
    const segment = segments[i]!;
    if (segment === "..") {
      if (out.length === 0) return undefined;
      out.pop();
      if (i === last) out.push("");
    } else if (segment === "." || segment === "") {
      if (i === last) out.push("");
    } else out.push(segment);
  }
  return `/${out.join("/")}`;
}

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

/** Percent-encodes what nginx encodes in a URI it rebuilt: controls, space, `" # % < > ? \ ^ ` { | }` and >= 0x7f. */
export function encodePath(path: NormalisedPath): string {
  let out = "";
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    out += code <= 0x20 || code >= 0x7f || ENCODED.has(code) ? percentEncode(code) : path[i]!;
  }
  return out;
}

const ENCODED = new Set([...'"#<>?\\^`{|}'].map((c) => c.charCodeAt(0)).concat(PERCENT));

function percentEncode(code: number): string {
  return `%${code < 16 ? "0" : ""}${code.toString(16).toUpperCase()}`;
}
