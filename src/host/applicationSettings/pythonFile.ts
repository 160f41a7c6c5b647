import { type Problem, problem, type PythonItem } from "../../model/index.js";
import { pythonLiteral } from "../../render/index.js";
import { type Binding, bindingsOf } from "./python/bindings.js";
import { editList } from "./pythonList.js";
import { listElements, literalValue, type LiteralValue, withoutParentheses } from "./python/literal.js";
import { type Unit, unitsOf } from "./python/statements.js";
import type { Fault } from "./python/tokens.js";
import type { ItemChange, ItemFinding, SettingsEdit } from "./edit.js";
import { insertLines, isUnended, lineNumbers, lineOf, type Splice } from "./textEdit.js";

/**
 * Edits a Python module. An item is set where it is already set: in the last plain
 * assignment at the top level, because the last one counts. New items go between the secret-key item and the DATABASES
 * item. Code that may set an item later, or in another way than by a plain assignment, is refused with its line number.
 *
 * Others may have added to a list: missing elements are added, and those that an earlier edit added are removed when they
 * are no longer wanted.
 *
 * @param path for messages
 * @param ours elements of a list that an earlier edit has added
 * @param elsewhere values of names that another file sets for the application, while some installations have them here
 */
export function editPython(
  text: string,
  items: readonly PythonItem[],
  path: string,
  ours: (name: string) => readonly string[] = () => [],
  elsewhere: ReadonlyMap<string, { readonly wanted: string }> = new Map(),
): SettingsEdit {
  const parsed = unknownEncoding(text) ?? unitsOf(text);
  if ("fault" in parsed) {
    const { at, message } = parsed.fault;
    const findings = items.map(
      ({ name: item, value }) => ({ item, wanted: shown(value), state: "refused" }) as const,
    );
    const syntax = problem(
      "settings.bad-syntax",
      `${path}:${lineOf(text, at)}`,
      `cannot be read: ${message}`,
    );
    return { findings, splices: [], changes: [], problems: [syntax], notes: [] };
  }
  const file: PythonFile = { text, units: parsed.units, path, ours };
  const place = insertionPlace(file);
  const plans = items.map(({ name, value }) => planItem(file, name, value, place));
  const missing = plans.flatMap((p) => (p.finding.state === "missing" ? [p.line] : []));
  const lineEndAdded = place.at === text.length && isUnended(text);
  return {
    findings: plans.map((p) => p.finding),
    splices: [
      ...plans.flatMap((p) => p.splices ?? []),
      ...(missing.length === 0 ? [] : [insertLines(text, place.at, missing)]),
    ],
    changes: plans.flatMap(({ change }) =>
      change === undefined ? [] : change.from === null && lineEndAdded ? { ...change, lineEndAdded } : change,
    ),
    problems: merge(
      plans.flatMap((p) => p.refusal ?? []),
      file,
    ),
    notes: [...plans.flatMap((p) => p.notes), ...notesElsewhere(file, elsewhere)],
  };
}

function notesElsewhere(
  { text, units, path }: PythonFile,
  elsewhere: ReadonlyMap<string, { readonly wanted: string }>,
): string[] {
  return [...elsewhere].flatMap(([name, { wanted }]) => {
    const found = bindingsOf(units, name).findLast((b) => b.kind === "assignment");
    if (found?.kind !== "assignment" || literalValue(found.value) === wanted) return [];
    return [`${path}:${lineOf(text, found.at)}: ${name} is set here as well, and not to ${wanted}`];
  });
}

/**
 * An encoding in which a quote or a backslash may be a part of another character (GBK, Shift JIS), so that strings may
 * end somewhere else than it seems (Python reference, 2.1.4).
 */
function unknownEncoding(text: string): { fault: Fault } | undefined {
  const declared = /^(?:[^\r\n]*(?:\r\n|\n|\r))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)/.exec(text);
  const name = declared?.[1]!.toLowerCase().replaceAll("_", "-");
  if (name === undefined || /^(?:utf-?8|(?:us-)?ascii|latin-?1|iso-?8859-\d+|cp125\d)\b/.test(name))
    return undefined;
  return {
    fault: { at: declared![0].length, message: `the encoding ${name} is not known here` },
  };
}

interface PythonFile {
  readonly text: string;
  readonly units: readonly Unit[];
  readonly path: string;
  readonly ours: (name: string) => readonly string[];
}

/** Where new items go. */
interface Place {
  readonly at: number;
  /** Index of the unit that follows. */
  readonly unit: number;
}

interface Refusal {
  readonly item: string;
  readonly at: number;
  readonly what: string;
}

interface ItemPlan {
  readonly finding: ItemFinding;
  /** The item as a new line. */
  readonly line: string;
  readonly splices?: readonly Splice[];
  readonly change?: ItemChange;
  readonly refusal?: Refusal;
  readonly notes: readonly string[];
}

function planItem(file: PythonFile, item: string, wanted: LiteralValue, place: Place): ItemPlan {
  const bindings = bindingsOf(file.units, item);
  const last = bindings.findLastIndex((b) => b.kind === "assignment");
  const effective = bindings[last];
  const base = { item, wanted: shown(wanted) };
  const line = `${item} = ${pythonLiteral(wanted)}`;
  const refuse = (at: number, what: string): ItemPlan => ({
    finding: { ...base, line: lineOf(file.text, at), state: "refused" },
    line,
    refusal: { item, at, what },
    notes: [],
  });
  const later = bindings.find(
    (b, i) =>
      b.kind === "other" && (b.anytime || (effective === undefined ? b.unit >= place.unit : i > last)),
  );
  if (later?.kind === "other") return refuse(later.at, later.what);
  if (effective?.kind !== "assignment") {
    const set = bindings.find((b) => b.kind === "other" && !b.openEnded);
    if (set?.kind === "other") return refuse(set.at, set.what);
    const added = typeof wanted === "object" ? { added: wanted } : {};
    const change = { name: item, from: null, to: pythonLiteral(wanted), ...added };
    return { finding: { ...base, state: "missing" }, line, change, notes: [] };
  }
  const outcome = planValue(file, item, effective, wanted);
  if ("refused" in outcome) return refuse(effective.at, outcome.refused);
  const found = literalValue(effective.value);
  const finding: ItemFinding = {
    ...base,
    ...(found === undefined ? {} : { found: shown(found) }),
    line: lineOf(file.text, effective.at),
    state: outcome.splices === undefined ? "same" : "different",
  };
  const { change, splices } = outcome;
  const edit = change === undefined ? {} : { splices, change: { name: item, ...change } };
  return { finding, line, ...edit, notes: notesOn(file, item, bindings, effective, found) };
}

/** How an assignment's value becomes the wanted one; no splices if it already is. */
function planValue(
  { text, ours }: PythonFile,
  item: string,
  { value }: Binding & { kind: "assignment" },
  wanted: LiteralValue,
):
  | { readonly splices?: readonly Splice[]; readonly change?: Omit<ItemChange, "name"> }
  | { readonly refused: string } {
  const inner = withoutParentheses(value);
  const [from, to] = [inner[0]!.from, inner.at(-1)!.to];
  if (typeof wanted === "object") {
    const elements = listElements(inner);
    if (elements === undefined) return { refused: "a value that is not a plain list of strings" };
    const there = new Set(elements.map((e) => e.value));
    const added = wanted.filter((element) => !there.has(element));
    const removed = ours(item).filter((element) => there.has(element) && !wanted.includes(element));
    if (added.length + removed.length === 0) return {};
    const splices = editList(text, inner, elements, removed, added);
    return { splices, change: { from: text.slice(from, to), to: pythonLiteral(wanted), added, removed } };
  }
  if (value.some((t) => SUSPENDS.has(t.text))) return { refused: "an expression with `yield` or `await`" };
  if (literalValue(value) === wanted) return {};
  // If a bracket is missing, the next lines are read as a part of the value, whatever they set.
  const whole = text.slice(value[0]!.from, value.at(-1)!.to);
  if (/[\r\n]/.test(whole) && value.some((t) => t.text === "="))
    return { refused: "a value of several lines that holds an `=`" };
  const literal = pythonLiteral(wanted);
  return {
    splices: [{ from, to, text: literal }],
    change: { from: text.slice(from, to), to: literal },
  };
}

const SUSPENDS = new Set(["yield", "await"]);

function notesOn(
  { text, path }: PythonFile,
  item: string,
  bindings: readonly Binding[],
  effective: Binding,
  found: LiteralValue | undefined,
): string[] {
  const lineAt = lineNumbers(text);
  const line = lineAt(effective.at);
  const earlier = bindings.filter((b) => b.kind === "assignment" && b !== effective).map((b) => lineAt(b.at));
  const lines = `${earlier.length === 1 ? "line" : "lines"} ${earlier.join(", ")}`;
  return [
    ...(earlier.length === 0
      ? []
      : [`${path}:${line}: ${item} is set before on ${lines}; the last one wins`]),
    ...(found === undefined ? [`${path}:${line}: ${item} was an expression`] : []),
  ];
}

/**
 * The line after the secret-key item; without one, the line of the DATABASES item; otherwise the end. So it is between
 * the two, whichever comes first. Blocks are not entered: for a key in a `try`, the whole `try` counts.
 */
function insertionPlace({ text, units }: PythonFile): Place {
  const where = (item: string): number[] =>
    bindingsOf(units, item).flatMap((b) => (b.kind === "other" && b.openEnded ? [] : [b.unit]));
  const secrets = where("SECRET_KEY");
  const [databases] = where("DATABASES");
  const behind =
    databases === undefined
      ? secrets.at(-1)
      : (secrets.filter((unit) => unit < databases).at(-1) ?? databases);
  if (behind === undefined) return { at: text.length, unit: units.length };
  if (secrets.length > 0) return { at: units[behind]!.to, unit: behind + 1 };
  return { at: aboveComments(text, units, behind), unit: behind };
}

/** Start of the comment right above a unit, or of the unit itself. */
function aboveComments(text: string, units: readonly Unit[], index: number): number {
  const { from } = units[index]!;
  const previous = units[index - 1];
  // Above the first unit there may be lines that have to stay first: `#!`, the encoding.
  if (previous === undefined) return from;
  // The first piece ends the line of the previous statement.
  const [, ...lines] = text.slice(previous.to - 1, from).split(/(?<=\n|\r(?!\n))/);
  const apart = lines.findLastIndex((line) => !/^[ \t\f]*#/.test(line) || !/[\r\n]$/.test(line));
  return from - lines.slice(apart + 1).join("").length;
}

/** One problem per statement, with all the items it affects. */
function merge(refusals: readonly Refusal[], { text, path }: PythonFile): Problem[] {
  const places = [...new Set(refusals.map((r) => r.at))];
  return places.map((at) => {
    const group = refusals.filter((r) => r.at === at);
    const items = group.map((r) => r.item).join(", ");
    const { what } = group[0]!;
    return problem(
      "settings.refused",
      `${path}:${lineOf(text, at)}`,
      `${items}: ${what} cannot be edited safely`,
    );
  });
}

function shown(value: LiteralValue): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? value : value.join(", ");
}
