import type * as z from "zod";
import { CONFIG_VERSION, configSchema, type ProxyConfig } from "./config.js";
import { crossCheck } from "./crossChecks.js";
import { expectation } from "../host/expect.js";
import { badValueFix } from "../text/notSupported.js";
import { type Problem, type ProblemCode, problem, type Result } from "../text/problem.js";
import { unknownNameFix } from "./unknownNames.js";
import { allowedAt, excludedBy, fieldNamesAt, typeInWords } from "./schema.js";

/**
 * Parses a value of unknown type as a config. Returns the frozen config with defaults, or all problems at once. Never
 * throws. Rules across fields are checked once each field is valid.
 */
export function parseConfig(input: unknown): Result<ProxyConfig> {
  return parseDocument(input, { version: CONFIG_VERSION, schema: configSchema, crossCheck });
}

/** Parses JSON text in the same way as {@link parseConfig}; a syntax error names line and column. */
export function parseConfigText(text: string): Result<ProxyConfig> {
  return fromJson(text, parseConfig);
}

/** A kind of document: its version, its fields, and the rules that span them. */
export interface DocumentKind<T> {
  readonly version: number;
  readonly schema: z.ZodType<T>;
  crossCheck(document: T): Problem[];
}

/** Unknown input → frozen document with defaults, or every problem at once. Never throws. */
export function parseDocument<T>(input: unknown, kind: DocumentKind<T>): Result<T> {
  const version = unsupportedVersion(input, kind.version);
  if (version !== undefined) return { ok: false, problems: [version] };
  const parsed = kind.schema.safeParse(input, {
    reportInput: true,
    // Compiled functions pay off only for many documents, and most processes read one.
    jitless: true,
  });
  if (!parsed.success) {
    return {
      ok: false,
      problems: parsed.error.issues.flatMap((issue) => toProblems(issue, kind.schema, input)),
    };
  }
  const problems = kind.crossCheck(parsed.data);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: deepFreeze(parsed.data) };
}

/** Problems of expected responses as users write them: one, or a list. */
export function expectationProblems(input: unknown): Problem[] {
  const schema = Array.isArray(input) ? expectation.array().min(1).max(20) : expectation;
  const parsed = schema.safeParse(input, { reportInput: true, jitless: true });
  return parsed.success ? [] : parsed.error.issues.flatMap((issue) => toProblems(issue, schema, input));
}

/** Reads JSON text and parses its value; a syntax error names line and column. */
export function fromJson<T>(text: string, parse: (input: unknown) => Result<T>): Result<T> {
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch (error) {
    const message = (error as Error).message;
    return {
      ok: false,
      problems: [problem("config.not-json", "", `is not JSON: ${syntaxErrorIn(text, message)}`)],
    };
  }
  const parsed = parse(input);
  const repeated = repeatedFields(text).map((path) =>
    problem("config.repeated-field", formatPath(path), "is in the same object twice"),
  );
  if (repeated.length === 0) return parsed;
  return { ok: false, problems: parsed.ok ? repeated : [...repeated, ...parsed.problems] };
}

/** A newer format would hide its one real problem among unknown fields, so it is reported alone. */
function unsupportedVersion(input: unknown, supported: number): Problem | undefined {
  if (typeof input !== "object" || input === null || !("version" in input)) return undefined;
  const { version } = input;
  if (typeof version !== "number" || version === supported) return undefined;
  return problem("config.unsupported-version", "version", "is a version that this release does not read", {
    received: version,
    allowed: String(supported),
  });
}

type Issue = z.core.$ZodIssue;

function toProblems(issue: Issue, schema: z.ZodType, document: unknown): Problem[] {
  const path = formatPath(issue.path);
  if (issue.code === "unrecognized_keys") {
    const known = fieldNamesAt(schema, issue.path, issue.input, document);
    return issue.keys.map((key) => {
      const at = path === "" ? key : `${path}.${key}`;
      if (!known.includes(key)) {
        const more = { allowed: known.join(", "), ...unknownNameFix(key, { names: known }) };
        return problem("config.unknown-field", at, "is not a known field", more);
      }
      const others = excludedBy(key, schema, issue.path, issue.input, document).map((name) => `\`${name}\``);
      return problem("config.unknown-field", at, `does not go together with ${others.join(" and ")}`, {
        fix: `Remove \`${key}\`, or remove ${others.join(" and ")}.`,
      });
    });
  }
  if (issue.code === "invalid_union") return unionProblems(issue, path, schema, document);
  if (issue.code === "invalid_key")
    return issue.issues.flatMap((inner) => toProblems({ ...inner, path: issue.path }, schema, document));
  const { code, message, allowed, fix } = explain(issue, schema, document);
  const received = issue.input === undefined ? {} : { received: issue.input };
  const more = {
    allowed,
    fix,
    ...badValueFix(code, issue.input),
  };
  return [problem(code, path, message, { ...received, ...more })];
}

/** A union failed: reports the branch with the fewest mistakes, else the values that the whole field accepts. */
function unionProblems(
  issue: z.core.$ZodIssueInvalidUnion,
  path: string,
  schema: z.ZodType,
  document: unknown,
): Problem[] {
  const branches = issue.errors.filter((errors) => errors.every(isWithin));
  // Nothing says which branch was meant.
  if (branches.length > 1 && branches.flat().every(isMissing)) {
    const names = branches.map((errors) => errors.map((e) => `\`${e.path.join(".")}\``).join(" and "));
    const more = { allowed: names.join(", or "), fix: "Add the fields of one kind." };
    return [problem("config.missing-field", path, "has none of the fields that it needs", more)];
  }
  const [meant] = branches.sort((one, other) => one.length - other.length);
  if (meant !== undefined)
    return meant.flatMap((e) => toProblems({ ...e, path: [...issue.path, ...e.path] }, schema, document));
  const allowed = allowedAt(schema, issue.path, document);
  const received = receivedIn(issue);
  if (received === undefined) return [problem("config.missing-field", path, "is missing", { allowed })];
  const message = "is not one of the allowed values";
  return [problem("config.not-one-of", path, message, { received, allowed })];
}

/** The received value; for an object whose kind is unknown, the field that names the kind: the path leads to it. */
function receivedIn({ input, discriminator }: z.core.$ZodIssueInvalidUnion): unknown {
  if (discriminator === undefined || typeof input !== "object" || input === null) return input;
  return (input as Readonly<Record<string, unknown>>)[discriminator];
}

/** Whether something in a value is wrong, and not the value as a whole. */
function isWithin(issue: Issue): boolean {
  return issue.path.length > 0 || issue.code === "unrecognized_keys";
}

const isMissing = ({ code, input }: Issue): boolean => code === "invalid_type" && input === undefined;

interface Explained {
  readonly code: ProblemCode;
  readonly message: string;
  readonly allowed?: string;
  readonly fix?: string;
}

function explain(issue: Issue, schema: z.ZodType, document: unknown): Explained {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) {
        return {
          code: "config.missing-field",
          message: "is missing",
          allowed: allowedAt(schema, issue.path, document),
        };
      }
      return {
        code: "config.wrong-type",
        message: `is not ${typeInWords(issue.expected)}`,
        allowed:
          issue.expected === "object" ? allowedAt(schema, issue.path, document) : typeInWords(issue.expected),
      };
    case "too_small":
      return { ...tooLittle(issue.origin, Number(issue.minimum)), code: "config.out-of-range" };
    case "too_big":
      return { ...tooMuch(issue.origin, Number(issue.maximum)), code: "config.out-of-range" };
    case "invalid_value":
      if (issue.input === undefined) {
        return {
          code: "config.missing-field",
          message: "is missing",
          allowed: issue.values.map(String).join(", "),
        };
      }
      return {
        code: "config.not-one-of",
        message: "is not one of the allowed values",
        allowed: issue.values.map(String).join(", "),
      };
    case "custom":
      return { code: issue.params!.code, message: issue.message, allowed: issue.params!.allowed };
    default:
      // Not the library's own words.
      return {
        code: "config.not-one-of",
        message: "is not one of the allowed values",
        allowed: allowedAt(schema, issue.path, document),
      };
  }
}

type Excess = Omit<Explained, "code">;

function tooLittle(origin: string, minimum: number): Excess {
  const plural = minimum === 1 ? "" : "s";
  switch (origin) {
    case "array":
      return {
        message: "has too few items",
        allowed: `at least ${minimum} item${plural}`,
        fix: "Add items to the list.",
      };
    case "string":
      return { message: "is too short", allowed: `at least ${minimum} character${plural}` };
    default:
      return { message: "is too small", allowed: `at least ${minimum}` };
  }
}

function tooMuch(origin: string, maximum: number): Excess {
  switch (origin) {
    case "array":
      return {
        message: "has too many items",
        allowed: `at most ${maximum} items`,
        fix: "Remove items from the list.",
      };
    case "string":
      return { message: "is too long", allowed: `at most ${maximum} characters`, fix: "Shorten the text." };
    default:
      return { message: "is too large", allowed: `at most ${maximum}` };
  }
}

/** `["listeners", 0, "port"]` → `listeners[0].port`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((step, i) => (typeof step === "number" ? `[${step}]` : `${i === 0 ? "" : "."}${String(step)}`))
    .join("");
}

function deepFreeze<T>(value: T): T {
  // A value that is not an object counts as frozen.
  if (!Object.isFrozen(value)) {
    Object.values(value as object).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

/**
 * The error in a text that is not JSON, on one line, with its line and column. Engines report an offset, line and
 * column, or, for an unexpected token, a piece of the text around it, which may have several lines and contain a
 * secret.
 */
function syntaxErrorIn(text: string, message: string): string {
  if (message.startsWith(TOKEN)) {
    const quote = message.indexOf("'", TOKEN.length + 2);
    return `${message.slice(0, quote + 1)}${placeOf(text, tokenOffset(text))}`;
  }
  if (message === "Unexpected end of JSON input") return `${message}${placeOf(text, text.length)}`;
  const offset = / at position (\d+)$/.exec(message);
  return offset === null ? message : `${message}${placeOf(text, Number(offset[1]))}`;
}

const TOKEN = "Unexpected token ";

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return ` (line ${before.length} column ${before.at(-1)!.length + 1})`;
}

/** Every beginning of the text that has the token fails by it, and no shorter one does. */
function tokenOffset(text: string): number {
  let [without, having] = [0, text.length];
  while (having - without > 1) {
    const middle = Math.floor((without + having) / 2);
    if (failsByToken(text.slice(0, middle))) having = middle;
    else without = middle;
  }
  return without;
}

function failsByToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return (error as Error).message.startsWith(TOKEN);
  }
}
/**
 * Fields that an object of a JSON text has more than once. `JSON.parse` uses the last one and says nothing; whoever reads
 * the text may see the first one (RFC 8259, 4).
 *
 * @param text JSON without syntax errors
 * @returns paths, each as long as the field is deep
 */
function repeatedFields(text: string): readonly (readonly PropertyKey[])[] {
  const found: PropertyKey[][] = [];
  const within: Frame[] = [];
  for (const [token] of text.matchAll(TOKENS)) {
    const top = within.at(-1);
    if (token === "{") within.push({ at: "", names: new Set(), awaitsName: true });
    else if (token === "[") within.push({ at: 0, names: undefined, awaitsName: false });
    else if (token === "}" || token === "]") within.pop();
    else if (token === ",") next(top!);
    else if (top?.awaitsName === true) {
      top.at = JSON.parse(token) as string;
      top.awaitsName = false;
      if (top.names!.has(top.at)) found.push(within.map(({ at }) => at));
      top.names!.add(top.at);
    }
  }
  return found;
}

/** An object or array that is not over. */
interface Frame {
  /** Name or index of the present item. */
  at: string | number;
  /** Undefined for an array. */
  readonly names: Set<string> | undefined;
  awaitsName: boolean;
}

/** Strings, and what separates; numbers and words in between are of no interest. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;

function next(frame: Frame): void {
  if (typeof frame.at === "number") frame.at++;
  else frame.awaitsName = true;
}
