import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import {
  NAMED_FIELDS,
  REQUEST_FAMILIES,
  requestFieldFate,
  RESPONSE_FAMILIES,
  responseFieldFate,
} from "../../src/model/serving.js";
import { SINGLE_FIELDS } from "../../src/runtime/codec/request.js";
import { STATIC_TABLE } from "../../src/runtime/codec/http2/hpackTables.js";

/** Heads as a hostile client would choose them: each field that the proxy may read, filled with each pattern. */

export interface HostileField {
  readonly name: string;
  readonly value: string;
  /** How often a head has the field. */
  readonly times: number;
}

const ROOT = path.resolve(__dirname, "../..");

/** A field that nothing reads: what its bytes cost is the cost of receiving and forwarding them. */
export const UNREAD = "x-harmless";
/** Parts of a request that are no fields. */
export const PATH = ":path";
export const QUERY = "?";

/**
 * Names of fields, lower case: some that nothing reads, those of the proxy's tables, and each text of the source that is
 * written like a field name with a hyphen, or that a name is compared with. Of the names that only the table of fates has,
 * one for each fate: they are all handled alike.
 */
export function fieldNames(): string[] {
  const files = ["src/model", "src/runtime"].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && path.basename(name) !== "fieldFates.ts")
      .map((name) => readFileSync(path.join(ROOT, folder, name), "utf8"))
      .filter((text) => READS_FIELDS.test(text)),
  );
  const written = [WRITTEN_NAME, COMPARED_NAME].flatMap((names) =>
    files.flatMap((text) => [...text.matchAll(names)].map(([, name]) => name!.toLowerCase())),
  );
  const read = [...SINGLE_FIELDS, ...STATIC_TABLE.map(({ name }) => name), ...written];
  const families = [...REQUEST_FAMILIES, ...RESPONSE_FAMILIES].map((begins) => `${begins}a`);
  const fates = new Map(
    [...NAMED_FIELDS, ...families].map((name) => [
      `${requestFieldFate(name)} ${responseFieldFate(name)}`,
      name,
    ]),
  );
  const fields = [...read, ...fates.values()].filter((name) => IS_FIELD_NAME.test(name));
  return [...new Set([UNREAD, PATH, QUERY, "a", "x-with_underscore", ...fields])];
}

const READS_FIELDS = /headers|HeaderList|FieldFate|Fields\b/;
const WRITTEN_NAME = /"([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+)"/g;
const COMPARED_NAME = /(?:toLowerCase\(\)|\bname|headers, ?)\s*(?:[=!]==)?\s*"([A-Za-z]+)"/g;
const IS_FIELD_NAME = /^[a-z][a-z0-9-]{1,39}$/;

/** How values begin, what fills them, and how they end. */
export const PATTERNS: readonly (readonly [begin: string, unit: string, end: string])[] = [
  ["", ",", ""],
  ["", ";", ""],
  ["", "=", ""],
  ["", '"', ""],
  ["", "\\", ""],
  ["", "%", ""],
  ["", "a", ""],
  ["", "A", ""],
  ["", ".", ""],
  ["", "0", ""],
  ["", "\x80\xff", ""],
  ["", "a,", "a"],
  ["", "a;", "a"],
  ["", "a=b; ", "a"],
  ["", "a;q=0.1,", "a"],
  ["", "text/html;q=0,", "a"],
  ["a", " ", "a"],
  ["a", "\t", "a"],
  ["a", " ,", "a"],
  ["a", " ;", "a"],
  ["gzip", ";q=0.5 ,br", ""],
  ["", "1.2.3.4, ", "1.2.3.4"],
  ["", "127.0.0.2, ", "127.0.0.2"],
  ["", "a.", "a"],
  ["", "/", ""],
  ["/", "../", "a"],
  ["/", "a/../", "a"],
  ["/", "%2e%2e/", "a"],
  ["/", "%41", ""],
  ["/feature/", "<", ""],
  ["http://127.0.0.1/", "%41/", ""],
  ["http://", "a@", "a"],
  ["bytes=", "0-0,", "0-0"],
  ["bytes=", "9", "-"],
  ["bytes=0", " ", "-x"],
  ["", '"a",', '"a"'],
  ["", 'W/"', '"'],
  ["", 'W/"a", ', '"a"'],
  ["Basic ", "/w+/", ""],
  ["5; url=", "http://127.0.0.1:1/", ""],
  ["", "portico_web=", ""],
  ["session", "=;session", "=a"],
  ["Mon, ", "01 Jan ", "GMT"],
];

/** Units that are unlike one another. */
const SAMPLED: ReadonlySet<string> = new Set([
  ...[",", ";", "\x80\xff", "a=b; ", "a;q=0.1,", "1.2.3.4, ", "a.", "/", '"a",', "portico_web="],
]);

/** Less than the defaults of `headBytesMax` and `requestLineBytesMax`, and than an HPACK table takes. */
const TARGET_CHARACTERS = 7_800;
const ENTRY_CHARACTERS = 3_900;
const FIELDS = 180;

const filled = ([begin, unit, end]: (typeof PATTERNS)[number], length: number): string =>
  begin + unit.repeat(Math.floor((length - begin.length - end.length) / unit.length)) + end;

/** Peers may send these only once, so a long value needs a long head. */
const ONCE: ReadonlySet<string> = new Set([...SINGLE_FIELDS, "host", "content-length", PATH, QUERY]);

interface Amount {
  readonly patterns: typeof PATTERNS;
  readonly characters: number;
}

/** Enough to see which names cost more than others. */
export const SAMPLE: Amount = {
  patterns: PATTERNS.filter(([begin, unit]) => begin === "" && SAMPLED.has(unit)),
  characters: 8_000,
};
/** As much as a head can have. */
export const ALL: Amount = { patterns: PATTERNS, characters: 26_000 };

/** A field of each pattern; where a name may be given more than once also as many short fields. */
export function hostileFields(name: string, version: "1.1" | "2.0", amount: Amount): HostileField[] {
  const { patterns, characters } = amount;
  const once = ONCE.has(name);
  const isTarget = name === PATH || name === QUERY;
  const long = isTarget ? TARGET_CHARACTERS : version === "1.1" ? characters : ENTRY_CHARACTERS;
  // HPACK repeats an entry of its table for one byte.
  const times = once || version === "1.1" ? 1 : Math.floor(characters / ENTRY_CHARACTERS);
  const whole = patterns.map((pattern) => ({ name, value: filled(pattern, long), times }));
  if (once || patterns !== PATTERNS) return whole;
  return [...whole, ...MANY.map((pattern) => ({ name, value: filled(pattern, 100), times: FIELDS }))];
}

const MANY = PATTERNS.filter(
  ([begin, unit]) => begin === "" && [",", ";", "a", "\x80\xff", '"a",'].includes(unit),
);

/** What the value of a field looks like, for people. */
export function described({ name, value, times }: HostileField): string {
  const count = times === 1 ? "" : `${times} × `;
  const begin = JSON.stringify(value.slice(0, 24)).replace(
    /[\x7f-\uffff]/g,
    (char) => `\\x${char.charCodeAt(0).toString(16)}`,
  );
  return `${count}${name}: ${begin}… (${value.length})`;
}
