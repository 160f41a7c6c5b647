import { afterBlanks, isBlank } from "../blanks.js";

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
  const least = weights.get("identity") ?? 0;
  const weight = (coding: ContentCoding): number =>
    weights.get(coding) ?? (coding === "gzip" ? weights.get("x-gzip") : undefined) ?? weights.get("*") ?? 0;
  return available
    .filter((coding) => weight(coding) > 0 && weight(coding) >= least)
    .sort((a, b) => weight(b) - weight(a));
}

/** Undefined without the field, and for one that is malformed. */
function weightsOf(headers: readonly string[]): ReadonlyMap<string, number> | undefined {
  let weights: Map<string, number> | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== "accept-encoding") continue;
    weights ??= new Map<string, number>();
    if (!readWeights(headers[i + 1]!, weights)) return undefined;
  }
  return weights;
}

/**
 * Adds the weights of the codings that are known here. One pass that makes no text, because a client may fill a head with
 * members. @returns false for a malformed list
 */
function readWeights(list: string, weights: Map<string, number>): boolean {
  for (let at = 0; ;) {
    while (at < list.length && (list.charCodeAt(at) === COMMA || isBlank(list.charCodeAt(at)))) at++;
    if (at === list.length) return true;
    const from = at;
    while (at < list.length && IS_TOKEN[list.charCodeAt(at)] === 1) at++;
    const to = at;
    at = afterBlanks(list, at);
    let weight = 1;
    if (at < list.length && list.charCodeAt(at) === SEMICOLON) {
      at = afterBlanks(list, at + 1);
      const end = endOfWeight(list, at);
      weight = end === -1 ? NaN : Number(list.slice(at + 2, end));
      // Members of a list may be empty (RFC 9110, 5.6.1.2), but not with a weight.
      if (from === to || !(weight <= 1)) return false;
      at = afterBlanks(list, end);
    }
    if (at < list.length && list.charCodeAt(at) !== COMMA) return false;
    for (const name of KNOWN_BY_LENGTH[to - from] ?? NONE)
      if (isAt(list, from, name)) weights.set(name, weight);
  }
}

/** Where a weight ends that begins at `at`: `q=`, a digit, and up to three decimals; -1 if there is none. */
function endOfWeight(list: string, at: number): number {
  const first = list.charCodeAt(at + 2);
  if ((list.charCodeAt(at) | 0x20) !== Q || list.charCodeAt(at + 1) !== EQUALS) return -1;
  if (first !== ZERO && first !== ONE) return -1;
  if (list.charCodeAt(at + 3) !== DOT) return at + 3;
  let end = at + 4;
  while (end < at + 7 && isDigit(list.charCodeAt(end))) end++;
  return end;
}

/** Whether a name, lower case, is in the text at an index, in whatever case; a token has no other byte that fits. */
function isAt(text: string, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = text.charCodeAt(at + i);
    if ((code >= 0x41 && code <= 0x5a ? code | 0x20 : code) !== name.charCodeAt(i)) return false;
  }
  return true;
}

const isDigit = (code: number): boolean => code >= ZERO && code <= 0x39;

const KNOWN = ["*", "identity", "x-gzip", ...Object.keys(CODING_SUFFIXES)];
const KNOWN_BY_LENGTH = Array.from({ length: 9 }, (_, length) =>
  KNOWN.filter((name) => name.length === length),
);
const NONE: readonly string[] = [];
const [COMMA, SEMICOLON, DOT, ZERO, ONE, EQUALS, Q] = [0x2c, 0x3b, 0x2e, 0x30, 0x31, 0x3d, 0x71];
/** By char code: 1 for those of a token (RFC 9110, 5.6.2). */
const IS_TOKEN = Uint8Array.from({ length: 256 }, (_, code) =>
  /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(code)) ? 1 : 0,
);
