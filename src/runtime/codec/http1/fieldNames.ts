import {
  RESPONSE_FAMILIES,
  responseFieldFate,
  type FieldFate,
  NAMED_FIELDS,
  REQUEST_FAMILIES,
  requestFieldFate,
} from "../../../model/serving.js";
import { SINGLE_FIELDS } from "../request.js";

/**
 * Field names distinguished by their bytes, so that most never become strings. Those that have a meaning here have a
 * number; all others are {@link OTHER}.
 */
export const OTHER = 0;
/** Numbers of the names that {@link note} and the access log use. */
export const HOST = 1;
export const EXPECT = 2;
export const UPGRADE = 3;
export const CONNECTION = 4;
export const CONTENT_LENGTH = 5;
export const TRANSFER_ENCODING = 6;
export const REFERER = 7;
export const USER_AGENT = 8;
export const AUTHORIZATION = 9;
export const WWW_AUTHENTICATE = 10;
export const PROXY_AUTHENTICATE = 11;
export const PERSISTENT_AUTH = 12;
export const PROXY_SUPPORT = 13;

const NOTED = [
  "host",
  "expect",
  "upgrade",
  "connection",
  "content-length",
  "transfer-encoding",
  "referer",
  "user-agent",
  "authorization",
  "www-authenticate",
  "proxy-authenticate",
  "persistent-auth",
  "proxy-support",
];
export const NAMES: readonly string[] = ["", ...new Set([...NOTED, ...SINGLE_FIELDS, ...NAMED_FIELDS])];

/** The bits by number: a separate bit for each field that a request may have only once, 0 for every other field. */
export const SINGLE_BITS = Uint32Array.from(NAMES, (field) =>
  SINGLE_FIELDS.includes(field) ? 1 << SINGLE_FIELDS.indexOf(field) : 0,
);

/** How the fields of a message are handled, by the numbers of their names. */
export interface Fates {
  /** Whether the message is a response: some of them are less strict than any request may be (decisions 3.2). */
  readonly response: boolean;
  readonly byNumber: readonly FieldFate[];
  /** The fate of names that have no number. */
  readonly of: (name: string) => FieldFate;
  /** The flags by {@link beginning}: 1 if a name without a number that begins like this may need its own rule. */
  readonly families: Uint8Array;
}

export const REQUEST_FATES = fates(requestFieldFate, REQUEST_FAMILIES, false);
export const RESPONSE_FATES = fates(responseFieldFate, RESPONSE_FAMILIES, true);

function fates(of: (name: string) => FieldFate, beginnings: readonly string[], response: boolean): Fates {
  const families = new Uint8Array(1024);
  for (const begins of beginnings) families[beginning(begins.charCodeAt(0), begins.charCodeAt(1))] = 1;
  return { response, byNumber: NAMES.map(of), of, families };
}

/** Two letters are enough to tell families from nearly every name of a usual request; their case does not matter. */
export function beginning(first: number, second: number): number {
  return ((first & 0x1f) << 5) | (second & 0x1f);
}

/** Number of the name `bytes[from..to)`, upper or lower case. The bytes must be token bytes. */
export function nameNumber(bytes: Uint8Array, from: number, to: number): number {
  let number = firstBySlot[slot(to - from, bytes[from]!, bytes[to - 1]!)]!;
  while (number !== OTHER && !isNamed(number, bytes, from, to)) number = nextInSlot[number]!;
  return number;
}

function isNamed(number: number, bytes: Uint8Array, from: number, to: number): boolean {
  const codes = codesOf[number]!;
  if (codes.length !== to - from) return false;
  // Among token bytes, setting this bit makes letters lower case, and turns `^` and `_` into bytes that no name here
  // has.
  for (let i = 0; i < codes.length; i++) if ((bytes[from + i]! | 0x20) !== codes[i]) return false;
  return true;
}

const SLOTS = 256;

/** Length, first and last letter distinguish nearly all names. */
function slot(length: number, first: number, last: number): number {
  const mixed = length * 67 + (first & 0x1f) * 7 + (last & 0x1f);
  return mixed & (SLOTS - 1);
}

const codesOf = NAMES.map((name) => Uint8Array.from(name, (char) => char.charCodeAt(0)));
const firstBySlot = new Uint8Array(SLOTS);
const nextInSlot = new Uint8Array(NAMES.length);
// `OTHER` ends every chain.
for (let number = HOST; number < NAMES.length; number++) {
  const codes = codesOf[number]!;
  const at = slot(codes.length, codes[0]!, codes.at(-1)!);
  nextInSlot[number] = firstBySlot[at]!;
  firstBySlot[at] = number;
}
