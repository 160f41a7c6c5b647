import { isBlank } from "../text/blanks.js";
import { scratchBytes } from "../net/scratchBytes.js";

/** Codings that a file may have beside it, and how the encoded file's name ends. */
export const CODING_SUFFIXES = { zstd: ".zst", br: ".br", gzip: ".gz" } as const;

/** The name of a content coding (RFC 9110, 8.4.1; RFC 7932; RFC 8878). */
export type ContentCoding = keyof typeof CODING_SUFFIXES;

/**
 * The codings that a client accepts (RFC 9110, 12.5.3), by weight; codings with the same weight stay in their order.
 * Codings with a lower weight than `identity` are left out.
 *
 * A client without the field accepts every coding by the RFC, but often cannot read any: it gets none. So does one whose
 * field is malformed, and one that refuses `identity` where no encoded file is there: a client may still read it.
 */
export function acceptedCodings(
  headers: readonly string[],
  available: readonly ContentCoding[],
): readonly ContentCoding[] {
  const weights = weightsOf(headers);
  if (weights === undefined) return [];
  const given = (name: string): number | undefined => weights[KNOWN.indexOf(name)];
  const least = given("identity") ?? 0;
  const weight = (coding: ContentCoding): number =>
    given(coding) ?? (coding === "gzip" ? given("x-gzip") : undefined) ?? given("*") ?? 0;
  return available
    .filter((coding) => weight(coding) > 0 && weight(coding) >= least)
    .sort((a, b) => weight(b) - weight(a));
}

/** The weights of {@link KNOWN}, undefined for those not listed. */
type Weights = (number | undefined)[];

/** Undefined without the field, and for one that is malformed. */
function weightsOf(headers: readonly string[]): Weights | undefined {
  let weights: Weights | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== "accept-encoding") continue;
    weights ??= new Array<undefined>(KNOWN.length).fill(undefined);
    if (!readWeights(headers[i + 1]!, weights)) return undefined;
  }
  return weights;
}

/**
 * Adds the weights of the codings that are known here. One pass that makes no text, because a client may fill a head with
 * members; over bytes, because to read a char of a text takes several times as long.
 *
 * @returns false for a malformed list
 */
function readWeights(list: string, weights: Weights): boolean {
  const bytes = scratchBytes(list);
  const end = list.length;
  for (let at = 0; ;) {
    while (at < end && (bytes[at] === COMMA || isBlank(bytes[at]!))) at++;
    if (at === end) return true;
    const from = at;
    while (at < end && IS_TOKEN[bytes[at]!] === 1) at++;
    const to = at;
    at = afterBlanks(bytes, at, end);
    let weight = WEIGHT_MAX;
    if (at < end && bytes[at] === SEMICOLON) {
      const begin = afterBlanks(bytes, at + 1, end);
      at = endOfWeight(bytes, begin, end);
      // Members of a list may be empty (RFC 9110, 5.6.1.2), but not with a weight.
      if (from === to || at === -1) return false;
      weight = thousandths(bytes, begin + 2, at);
      at = afterBlanks(bytes, at, end);
    }
    if (at < end && bytes[at] !== COMMA) return false;
    if (BEGINS_KNOWN[bytes[from]!] !== 1) continue;
    for (const known of KNOWN_BY_LENGTH[to - from] ?? NONE)
      if (isAt(bytes, from, KNOWN[known]!)) weights[known] = weight;
  }
}

/** The first index from `at` to `end` that has no blank. */
function afterBlanks(bytes: Uint8Array, at: number, end: number): number {
  while (at < end && isBlank(bytes[at]!)) at++;
  return at;
}

/** The end of a weight that begins at `at`: `q=`, a digit, and up to three decimals, 1 at most; -1 if there is none. */
function endOfWeight(bytes: Uint8Array, at: number, end: number): number {
  const whole = bytes[at + 2];
  if (at + 2 >= end || (bytes[at]! | 0x20) !== Q || bytes[at + 1] !== EQUALS) return -1;
  if (whole !== ZERO && whole !== ONE) return -1;
  if (at + 3 >= end || bytes[at + 3] !== DOT) return at + 3;
  const decimalsEnd = Math.min(at + 7, end);
  for (at += 4; at < decimalsEnd && isDigit(bytes[at]!); at++)
    if (whole === ONE && bytes[at] !== ZERO) return -1;
  return at;
}

/** The weight between two indices. */
function thousandths(bytes: Uint8Array, from: number, to: number): number {
  let weight = (bytes[from]! - ZERO) * WEIGHT_MAX;
  for (let at = from + 2, unit = WEIGHT_MAX / 10; at < to; at++, unit /= 10)
    weight += (bytes[at]! - ZERO) * unit;
  return weight;
}

/** Whether a name, lower case, is at an index, in whatever case; a token has no other byte that fits. */
function isAt(bytes: Uint8Array, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) if (lower(bytes[at + i]!) !== name.charCodeAt(i)) return false;
  return true;
}

const lower = (code: number): number => (code >= 0x41 && code <= 0x5a ? code | 0x20 : code);
const isDigit = (code: number): boolean => code >= ZERO && code <= 0x39;

/** In thousandths. */
const WEIGHT_MAX = 1_000;
const KNOWN = ["*", "identity", "x-gzip", ...Object.keys(CODING_SUFFIXES)];
/** Indices of {@link KNOWN}. */
const KNOWN_BY_LENGTH = Array.from({ length: 9 }, (_, length) =>
  [...KNOWN.keys()].filter((i) => KNOWN[i]!.length === length),
);
const NONE: readonly number[] = [];
/** A flag for each byte: 1 if a known name begins with it. */
const BEGINS_KNOWN = Uint8Array.from({ length: 256 }, (_, code) =>
  KNOWN.some((name) => name.charCodeAt(0) === lower(code)) ? 1 : 0,
);
const [COMMA, SEMICOLON, DOT, ZERO, ONE, EQUALS, Q] = [0x2c, 0x3b, 0x2e, 0x30, 0x31, 0x3d, 0x71];
/** A flag for each byte: 1 if a token may have it (RFC 9110, 5.6.2). */
const IS_TOKEN = Uint8Array.from({ length: 256 }, (_, code) =>
  /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(code)) ? 1 : 0,
);
