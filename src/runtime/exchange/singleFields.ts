import type { HeaderList } from "./exchange.js";

/** Fields that a request may have only once: peers differ in which of two they read. nginx refuses the same ones. */
export const SINGLE_FIELDS = [
  "authorization",
  "content-range",
  "expect",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
];
/** A bit for each of their lengths, modulo 32, so that most names cost no comparison. */
const LENGTHS = SINGLE_FIELDS.reduce((bits, { length }) => bits | (1 << length), 0);

/** The name of a field that occurs twice and must not; undefined if none does. HTTP/1.1 notes it as it parses. */
export function repeatedField(headers: HeaderList): string | undefined {
  let seen = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (((LENGTHS >>> name.length) & 1) === 0) continue;
    const at = SINGLE_FIELDS.indexOf(name.toLowerCase());
    if (at === -1) continue;
    if ((seen & (1 << at)) !== 0) return SINGLE_FIELDS[at];
    seen |= 1 << at;
  }
  return undefined;
}
