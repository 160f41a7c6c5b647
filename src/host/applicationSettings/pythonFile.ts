import { type Problem, problem, type PythonItem } from "../../model/index.js";
import type { ItemFinding, ItemPlan, SettingsEdit } from "./edit.js";
import {
  addLines,
  type Block,
  blockSource,
  findBlock,
  literalValue,
  type LiteralValue,
  replaceLine,
  valueInBlock,
} from "./pythonBlock.js";
import { type UnreadableText, type PythonLine, readPython } from "./pythonLines.js";
import { isUnended, lineNumbers, lineOf } from "./textEdit.js";

/**
 * Edits a Python module: items that do not have their values yet get them in one block of lines between the secret-key
 * item and the DATABASES item. The last assignment counts, so the block wins over everything above it. Everything else
 * stays as it is: a line below the block that may set an item again is refused with its line number.
 *
 * When in doubt a line may set an item: every mention counts that is not evidently a use of the value. Assignments that
 * do not mention the name (by an alias of the list or of the module, by code of other modules) are not found.
 *
 * @param path for messages
 * @param elsewhere values of names that another file sets for the application, while some installations have them here
 */
export function editPython(
  text: string,
  items: readonly PythonItem[],
  path: string,
  elsewhere: ReadonlyMap<string, { readonly wanted: string }> = new Map(),
): SettingsEdit {
  const refusal = (
    code: "settings.bad-syntax" | "settings.refused",
    { fault }: UnreadableText,
  ): SettingsEdit => {
    const message = code === "settings.refused" ? fault.message : `cannot be read: ${fault.message}`;
    const fix = code === "settings.refused" ? { fix: FIX_BLOCK } : {};
    return {
      findings: items.map((item) => ({ ...named(item), state: "refused" })),
      splices: [],
      changes: [],
      problems: [problem(code, `${path}:${lineOf(text, fault.at)}`, message, fix)],
      notes: [],
    };
  };
  const read = unknownEncoding(text) ?? readPython(text);
  if ("fault" in read) return refusal("settings.bad-syntax", read);
  const block = findBlock(text, read);
  if (block !== undefined && "fault" in block) return refusal("settings.refused", block);
  const lines = read.lines.filter(
    ({ from, to }) => block === undefined || to <= block.from || from >= block.to,
  );
  const at = block?.end ?? insertionPlace(text, lines);
  const file: PythonFile = { lines, block, at, path, lineAt: lineNumbers(text), text };
  const plans = items.map((item) => planItem(file, item));
  const added = plans.flatMap(({ line }) => line ?? []);
  return {
    findings: plans.map(({ finding }) => finding),
    splices: [
      ...plans.flatMap(({ splice }) => splice ?? []),
      ...(added.length === 0 ? [] : [addLines(text, block, at, added)]),
    ],
    changes: plans.flatMap(({ change }) => change ?? []),
    problems: merged(
      plans.flatMap(({ refused }) => refused ?? []),
      file,
    ),
    notes: [...plans.flatMap(({ note }) => note ?? []), ...notesElsewhere(file, elsewhere)],
  };
}

const FIX_BLOCK =
  "Move your own lines out of the block, or remove the block with its comments: Portico then writes it again.";

/**
 * An encoding in which a quote or a backslash may be a part of another character (GBK, Shift JIS), so that strings may
 * end somewhere else than it seems (Python reference, 2.1.4).
 */
function unknownEncoding(text: string): UnreadableText | undefined {
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
  /** The lines outside the block. */
  readonly lines: readonly PythonLine[];
  readonly block: Block | undefined;
  /** The offset at which new lines are added. */
  readonly at: number;
  readonly path: string;
  readonly lineAt: (at: number) => number;
}

interface RefusedItem extends Obstacle {
  readonly item: string;
}

interface PythonItemPlan extends Omit<ItemPlan, "problem"> {
  /** The item as a new line of the block. */
  readonly line?: string;
  readonly refused?: RefusedItem;
}

const named = ({ name: item, value }: PythonItem) => ({ item, wanted: shown(value) });

function planItem(file: PythonFile, item: PythonItem): PythonItemPlan {
  const { lines, block, at, path, lineAt, text } = file;
  const { name, value } = item;
  const own = block?.items.get(name);
  const place = own?.line.from ?? at;
  const setting = lines.filter((line) => maySet(line, name));
  const last = setting.at(-1);
  const inForce = own !== undefined && (last === undefined || last.from < place) ? own.line : last;
  const isOwn = inForce === own?.line;
  const isAbove = ({ from }: PythonLine): boolean => from < place;
  const source = blockSource(name, value, setting.concat(lines.filter(isOpen)).some(isAbove));
  const found = isOwn ? own && valueInBlock(name, own.source) : plainValue(inForce!, name);
  const base: Omit<ItemFinding, "state"> = {
    ...named(item),
    ...(found === undefined ? {} : { found: shown(found) }),
    ...(inForce === undefined ? {} : { line: lineAt(inForce.from) }),
  };
  const isWanted = isOwn ? own?.source === source : contains(found, value);
  if (isWanted && obstacleTo(lines, name, inForce!.to) === undefined)
    return { finding: { ...base, state: "same" } };
  const obstacle = obstacleTo(lines, name, place);
  if (obstacle !== undefined) {
    const isUnclear = found === undefined || isWanted;
    const state = isUnclear
      ? ({ line: lineAt(obstacle.line.from), state: "refused" } as const)
      : ({ state: "different" } as const);
    return { finding: { ...base, ...state }, refused: { item: name, ...obstacle } };
  }
  const line = `${name} = ${source}`;
  const lineEndAdded = block === undefined && at === text.length && isUnended(text);
  const change = {
    name,
    from: own?.source ?? null,
    to: source,
    ...(lineEndAdded ? { lineEndAdded } : {}),
  };
  if (own !== undefined)
    return { finding: { ...base, state: "different" }, change, splice: replaceLine(text, own.line, line) };
  if (inForce === undefined) return { finding: { ...base, state: "missing" }, change, line };
  const note = `${path}:${base.line}: ${name} is set here as well; the lines of Portico further down have priority`;
  return {
    finding: { ...base, state: "different" },
    change,
    line,
    ...(typeof value === "object" ? {} : { note }),
  };
}

const contains = (found: LiteralValue | undefined, wanted: LiteralValue): boolean =>
  typeof wanted === "object" && typeof found === "object"
    ? wanted.every((element) => found.includes(element))
    : found === wanted;

/** Whether a line mentions a name and is not evidently the assignment of its value to another name. */
function maySet({ code }: PythonLine, name: string): boolean {
  const mention = new RegExp(`(?<![\\w.\\u0080-\\uffff])${name}(?![\\w\\u0080-\\uffff])`);
  if (!mention.test(code)) return false;
  const [, other = name] = /^(\w+) ?=[^=;]*$/.exec(code) ?? [];
  return other === name;
}

/** Words for all names of a module, whatever they are. */
const OPEN =
  /\bimport ?\(? ?\*|\b(?:globals|locals|exec|execfile|setattr)\b|\bvars\b(?! ?\( ?[^ )])|\bsys ?\. ?modules\b/;

function openIn({ code }: PythonLine): string | undefined {
  return OPEN.exec(code)?.[0] ?? (/\bimport\b/.test(code) ? /\bmodules\b/.exec(code)?.[0] : undefined);
}

const isOpen = (line: PythonLine): boolean => openIn(line) !== undefined;

/** A line that may set an item after the lines of Portico. */
interface Obstacle {
  readonly line: PythonLine;
  readonly what: string;
}

function obstacleTo(lines: readonly PythonLine[], name: string, place: number): Obstacle | undefined {
  for (const line of lines) {
    const { from, indented, code } = line;
    const isBelow = from >= place;
    // What a function does happens when it is called.
    if (maySet(line, name) && (isBelow || /\bglobal\b/.test(code))) return { line, what: "the line" };
    const open = openIn(line);
    if (open !== undefined && (isBelow || indented || /\b(?:def|lambda)\b/.test(code)))
      return { line, what: `\`${open}\`` };
  }
  return undefined;
}

/** The value of `NAME = value` or `NAME: type = value`, unless it is an expression. */
function plainValue({ source, indented }: PythonLine, name: string): LiteralValue | undefined {
  const [, own, value] = /^(\w+)\s*(?::[^=]*)?=(?!=)(.*)$/s.exec(source) ?? [];
  return value === undefined || indented || own !== name ? undefined : literalValue(value);
}

function notesElsewhere(
  { lines, path, lineAt }: PythonFile,
  elsewhere: ReadonlyMap<string, { readonly wanted: string }>,
): string[] {
  return [...elsewhere].flatMap(([name, { wanted }]) => {
    const last = lines.findLast((line) => maySet(line, name));
    if (last === undefined || plainValue(last, name) === wanted) return [];
    return [`${path}:${lineAt(last.from)}: ${name} is set here as well, and not to ${wanted}`];
  });
}

/**
 * Between the secret-key item and the DATABASES item, and there as far down as possible, because the lines above have no
 * effect then: above the second of the two, whichever that is. Above the DATABASES item if there is no other, otherwise
 * at the end. A block such as `try` is not entered: the place is above it.
 */
function insertionPlace(text: string, lines: readonly PythonLine[]): number {
  const databases = lines.findIndex(({ code }) => /(?:^|; ?)DATABASES\b/.test(code));
  if (databases === -1) return text.length;
  const key = lines.findIndex(({ code }) => /(?<![\w.])SECRET_KEY ?[:=](?!=)/.test(code));
  let first = Math.max(databases, key);
  while (first > 0 && !beginsStatement(lines, first)) first--;
  // Above the first line there may be comments that have to stay first: `#!`, the encoding.
  return first > 0 ? lines[first - 1]!.to : lines[0]!.from;
}

/** Whether the line begins a statement of the module, so that others may stand above it. */
function beginsStatement(lines: readonly PythonLine[], i: number): boolean {
  const { indented, code } = lines[i]!;
  return (
    !indented && !/^(?:elif|else|except|finally)\b/.test(code) && lines[i - 1]?.code.startsWith("@") !== true
  );
}

/** Makes a problem for each line, with all the items it affects. */
function merged(refused: readonly RefusedItem[], { path, lineAt, block, at }: PythonFile): Problem[] {
  const found = [...new Set(refused.map(({ line }) => line))];
  const begin = `line ${lineAt(block?.from ?? at)}, where the lines of Portico ${block === undefined ? "go" : "begin"}`;
  return found.map((line) => {
    const group = refused.filter((one) => one.line === line);
    const names = group.map(({ item }) => item).join(", ");
    const [when, fix] =
      line.from < at
        ? ["at any time", "Remove the line, or replace it with plain assignments."]
        : ["after the lines of Portico", `Remove the line, or move it above ${begin}.`];
    const message = `${names}: ${group[0]!.what} may set another value ${when}`;
    return problem("settings.refused", `${path}:${lineAt(line.from)}`, message, { fix });
  });
}

function shown(value: LiteralValue): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? value : value.join(", ");
}
