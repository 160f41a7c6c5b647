import type { HeaderList } from "../exchange/exchange.js";

/** Conditional requests (RFC 9110, 13), for a representation that exists. */

/** The validators of a representation. */
export interface Validators {
  /** A strong entity tag, quotes included. */
  readonly etag: string;
  /** Seconds since the epoch, as `Last-Modified` says. */
  readonly modifiedSecond: number;
}

/** The fields that make a request conditional or partial; absent ones are undefined. */
export interface Conditions {
  ifMatch?: string;
  ifUnmodifiedSince?: string;
  ifNoneMatch?: string;
  ifModifiedSince?: string;
  ifRange?: string;
  range?: string;
}

/** Reads the condition fields of a request; undefined if it has none, as most have. */
export function readConditions(headers: HeaderList): Conditions | undefined {
  let found: Conditions | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    // Cheap test first: `i` or `r`, either case.
    const initial = name.charCodeAt(0) | 0x20;
    if (initial !== 0x69 && initial !== 0x72) continue;
    const key = FIELDS[name.toLowerCase()];
    if (key === undefined) continue;
    found ??= {};
    const earlier = found[key];
    // Lines of one field are one list (RFC 9110, 5.3); a date given twice is then not a date, and ignored.
    found[key] = earlier === undefined ? headers[i + 1]! : `${earlier}, ${headers[i + 1]!}`;
  }
  return found;
}

const FIELDS: Readonly<Record<string, keyof Conditions | undefined>> = Object.assign(Object.create(null), {
  "if-match": "ifMatch",
  "if-unmodified-since": "ifUnmodifiedSince",
  "if-none-match": "ifNoneMatch",
  "if-modified-since": "ifModifiedSince",
  "if-range": "ifRange",
  range: "range",
});

/** The result for a GET or HEAD, in the order of RFC 9110, 13.2.2; ranges come after it. */
export function evaluateConditions(asked: Conditions, current: Validators): "proceed" | 304 | 412 {
  if (asked.ifMatch !== undefined) {
    if (!matches(asked.ifMatch, current.etag, { weakly: false })) return 412;
  } else if (asked.ifUnmodifiedSince !== undefined) {
    const since = parseHttpDate(asked.ifUnmodifiedSince);
    if (since !== undefined && current.modifiedSecond > since) return 412;
  }
  if (asked.ifNoneMatch !== undefined) {
    if (matches(asked.ifNoneMatch, current.etag, { weakly: true })) return 304;
  } else if (asked.ifModifiedSince !== undefined) {
    const since = parseHttpDate(asked.ifModifiedSince);
    if (since !== undefined && current.modifiedSecond <= since) return 304;
  }
  return "proceed";
}

/**
 * Whether a range may be sent: without `If-Range`, or if it has the strong tag or the exact date of the current
 * representation (RFC 9110, 13.1.5). Otherwise the whole representation is sent.
 */
export function rangeMaySend(ifRange: string | undefined, current: Validators): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.includes('"')) return ifRange === current.etag;
  return parseHttpDate(ifRange) === current.modifiedSecond;
}

/** Whether a list of entity tags, or `*`, names the current one. Text that is not an entity tag matches nothing. */
function matches(list: string, etag: string, { weakly }: { weakly: boolean }): boolean {
  if (list === "*") return true;
  // An opaque tag may contain commas, so the list is scanned, not split. One pass: a client may fill a head with tags.
  let open = -1;
  for (let i = 0; i < list.length; i++) {
    const code = list.charCodeAt(i);
    if (code !== QUOTE) {
      // No tag contains this byte: the next quote begins one.
      if (code <= SP || code === DEL) open = -1;
    } else if (open === -1) open = i;
    else {
      const isSame = i - open === etag.length - 1 && list.startsWith(etag, open);
      if (isSame && (weakly || !list.startsWith("W/", open - 2))) return true;
      open = -1;
    }
  }
  return false;
}

const [QUOTE, SP, DEL] = [0x22, 0x20, 0x7f];

/**
 * A date in one of the three formats that recipients must read (RFC 9110, 5.6.7), as seconds since the epoch;
 * undefined for anything else.
 */
export function parseHttpDate(value: string, now = Date.now()): number | undefined {
  for (const format of DATE_FORMATS) {
    const parts = format.exec(value)?.groups;
    if (parts !== undefined) return secondsOf(parts, now);
  }
  return undefined;
}

const MONTH = "(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const TIME = "(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)";
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";

const DATE_FORMATS = [
  // IMF-fixdate, RFC 850, asctime
  new RegExp(`^${DAY}, (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^${LONG_DAY}, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT$`),
  new RegExp(`^${DAY} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";

function secondsOf(parts: Record<string, string>, now: number): number | undefined {
  const [day, hour, minute, second] = [parts["day"], parts["hour"], parts["minute"], parts["second"]].map(
    Number,
  );
  const month = MONTHS.indexOf(parts["month"]!) / 3;
  const year = parts["year"]!.length === 2 ? fullYear(Number(parts["year"]), now) : Number(parts["year"]);
  // 60 is a leap second.
  if (hour! > 23 || minute! > 59 || second! > 60) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month, day!);
  // `31 Feb` would roll over into March.
  if (date.getUTCDate() !== day) return undefined;
  return date.setUTCHours(hour!, minute!, second!) / 1000;
}

/** A two-digit year that seems more than 50 years ahead is the latest past year with these digits. */
function fullYear(digits: number, now: number): number {
  const current = new Date(now).getUTCFullYear();
  const year = current - (current % 100) + digits;
  if (year > current + 50) return year - 100;
  return year <= current - 50 ? year + 100 : year;
}
