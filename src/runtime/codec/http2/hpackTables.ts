import { CONNECTION_FIELDS, isBlank } from "../../../model/serving.js";
import { IS_TARGET, IS_TOKEN, IS_VALUE } from "../http1/syntax.js";

/** The kind of a request's field; determined once for a field that stays in a table. */
export const enum FieldKind {
  Plain,
  /** No request may contain it (RFC 9113, 8.2 and 8.3). */
  Malformed,
  Method,
  Scheme,
  Path,
  Authority,
  Protocol,
  Cookie,
  Host,
  ContentLength,
  Expect,
  Authorization,
}

export interface HpackField {
  readonly name: string;
  readonly value: string;
  /** RFC 7541, 4.1. */
  readonly size: number;
  readonly kind: FieldKind;
}

/** Overhead of a field in tables and in SETTINGS_MAX_HEADER_LIST_SIZE (RFC 7541, 4.1; RFC 9113, 6.5.2). */
export const FIELD_OVERHEAD = 32;
/** The default of SETTINGS_HEADER_TABLE_SIZE; neither side of this engine uses more. */
export const TABLE_BYTES_MAX = 4096;
/** Entries that fit such a table at most; a power of two. */
export const TABLE_ENTRIES_MAX = TABLE_BYTES_MAX / FIELD_OVERHEAD;
export const STATIC_ENTRIES = 61;

/** @param name and value one char a byte */
export function hpackField(name: string, value: string): HpackField {
  return { name, value, size: name.length + value.length + FIELD_OVERHEAD, kind: kindOf(name, value) };
}

const KINDS: ReadonlyMap<string, FieldKind> = new Map([
  [":method", FieldKind.Method],
  [":scheme", FieldKind.Scheme],
  [":path", FieldKind.Path],
  [":authority", FieldKind.Authority],
  [":protocol", FieldKind.Protocol],
  ["cookie", FieldKind.Cookie],
  ["host", FieldKind.Host],
  ["content-length", FieldKind.ContentLength],
  ["expect", FieldKind.Expect],
  ["authorization", FieldKind.Authorization],
  ...CONNECTION_FIELDS.map((name) => [name, FieldKind.Malformed] as const),
]);

const COLON = 0x3a;

function kindOf(name: string, value: string): FieldKind {
  const kind = KINDS.get(name) ?? FieldKind.Plain;
  if (kind === FieldKind.Plain) {
    if (!isLowerToken(name)) return FieldKind.Malformed;
    if (name === "te" && value.toLowerCase() !== "trailers") return FieldKind.Malformed;
  }
  if (!isFieldValue(value)) return FieldKind.Malformed;
  const fits =
    kind === FieldKind.Method || kind === FieldKind.Protocol
      ? isEvery(value, TOKEN)
      : kind === FieldKind.Path
        ? isPath(value)
        : kind === FieldKind.Authority || kind === FieldKind.Scheme
          ? isEvery(value, TARGET)
          : kind !== FieldKind.ContentLength || isDigits(value);
  return fits ? kind : FieldKind.Malformed;
}

/** Names are lower case (RFC 9113, 8.2); a colon begins pseudo-fields only, and those that exist are known. */
export function isLowerToken(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (IS_TOKEN[code] !== 1 || (code >= 0x41 && code <= 0x5a)) return false;
  }
  return name.length > 0;
}

/** No control byte but HTAB, and no blank at either end (RFC 9113, 8.2.1). */
export function isFieldValue(value: string): boolean {
  if (value === "") return true;
  return (
    isEvery(value, VALUE) && !isBlank(value.charCodeAt(0)) && !isBlank(value.charCodeAt(value.length - 1))
  );
}

/** A pattern begins later than a loop, and takes a fraction of its time for each char: it is for long values. */
function isEvery(value: string, { table, pattern }: CharClass): boolean {
  if (value.length > LOOPED_CHARACTERS_MAX) return pattern.test(value);
  for (let i = 0; i < value.length; i++) if (table[value.charCodeAt(i)] !== 1) return false;
  return value.length > 0;
}

const LOOPED_CHARACTERS_MAX = 128;

interface CharClass {
  readonly table: Uint8Array;
  /** Fits texts of nothing but these chars. */
  readonly pattern: RegExp;
}

function charClass(table: Uint8Array): CharClass {
  const chars = [...table.keys()].filter((code) => table[code] === 1);
  const escapes = chars.map((code) => `\\x${code.toString(16).padStart(2, "0")}`).join("");
  return { table, pattern: new RegExp(`^[${escapes}]+$`) };
}

const [VALUE, TARGET, TOKEN] = [IS_VALUE, IS_TARGET, IS_TOKEN].map(charClass) as [
  CharClass,
  CharClass,
  CharClass,
];

/** Origin-form, or the asterisk (RFC 9113, 8.3.1). */
const isPath = (value: string): boolean =>
  value === "*" || (value.charCodeAt(0) === 0x2f && isEvery(value, TARGET));

const isDigits = (value: string): boolean => /^\d+$/.test(value);

export const isPseudo = (name: string): boolean => name.charCodeAt(0) === COLON;

/** RFC 7541, appendix A; index 0 stands for none. */
export const STATIC_TABLE: readonly HpackField[] =
  `,|:authority,|:method,GET|:method,POST|:path,/|:path,/index.html|:scheme,http|:scheme,https|:status,200|:status,204|
:status,206|:status,304|:status,400|:status,404|:status,500|accept-charset,|accept-encoding,gzip, deflate|
accept-language,|accept-ranges,|accept,|access-control-allow-origin,|age,|allow,|authorization,|cache-control,|
content-disposition,|content-encoding,|content-language,|content-length,|content-location,|content-range,|
content-type,|cookie,|date,|etag,|expect,|expires,|from,|host,|if-match,|if-modified-since,|if-none-match,|if-range,|
if-unmodified-since,|last-modified,|link,|location,|max-forwards,|proxy-authenticate,|proxy-authorization,|range,|
referer,|refresh,|retry-after,|server,|set-cookie,|strict-transport-security,|transfer-encoding,|user-agent,|vary,|
via,|www-authenticate,`
    .replace(/\n/g, "")
    .split("|")
    .map((entry) => {
      const comma = entry.indexOf(",");
      return hpackField(entry.slice(0, comma), entry.slice(comma + 1));
    });
