import { statementsOf, type Unit } from "./statements.js";
import type { Token } from "./tokens.js";

/** A statement that gives a name of a module its value. */
export type Binding =
  | {
      readonly kind: "assignment";
      readonly unit: number;
      /** Offset of the name. */
      readonly at: number;
      /** The expression after the `=`; never empty. */
      readonly value: readonly Token[];
    }
  | {
      /** Anything else that may set, change or remove it, or whose effect cannot be known. */
      readonly kind: "other";
      readonly unit: number;
      readonly at: number;
      /** Description of the code, for a message. */
      readonly what: string;
      /** Inside a function: it may run at any time. */
      readonly anytime: boolean;
      /** It does not mention the name; it may bind any. */
      readonly openEnded: boolean;
    };

/**
 * Everything in a module that may bind a name, in the order of the text. When in doubt it is a binding: `d[NAME] = 1`
 * counts, although it only reads NAME. Bindings that tokens do not show (`sys.modules` under another name, code of
 * other modules) are not found.
 */
export function bindingsOf(units: readonly Unit[], name: string): Binding[] {
  return units.flatMap((unit, index) => {
    const statements = statementsOf(unit);
    if (unit.kind === "scope") return scopeBindings(statements, name, index);
    return statements.flatMap((statement) => {
      const value = unit.kind === "simple" ? assignedValue(statement, name) : undefined;
      if (value !== undefined) {
        return [{ kind: "assignment", unit: index, at: statement[0]!.from, value } as const];
      }
      const found = otherBinding(statement, name) ?? openEnded(statement);
      return found === undefined ? [] : [other(found, index, { inBlock: unit.kind === "block" })];
    });
  });
}

interface Found {
  readonly at: number;
  readonly what: string;
  readonly openEnded?: boolean;
}

function other(found: Found, unit: number, place: { inBlock?: boolean; anytime?: boolean } = {}): Binding {
  const what = place.inBlock === true ? `${found.what} in a block` : found.what;
  const openEnded = found.openEnded === true;
  return { kind: "other", unit, at: found.at, what, anytime: place.anytime === true, openEnded };
}

/** A function's names are local, unless it has `global` or accesses the module's names. */
function scopeBindings(statements: (readonly Token[])[], name: string, unit: number): Binding[] {
  return statements.flatMap((statement, i) => {
    const [first] = statement;
    // Decorators, defaults, annotations and bases are evaluated at the definition.
    const walrus = assignedInside(statement, name);
    if (walrus !== undefined) return [other(walrus, unit)];
    const global = first!.text === "global" ? statement.find((t) => t.text === name) : undefined;
    if (global !== undefined) return [other({ at: global.from, what: "`global`" }, unit, { anytime: true })];
    const dynamic = openEnded(statement);
    if (dynamic !== undefined) return [other(dynamic, unit, { anytime: true })];
    const defined = i === 0 || statements[i - 1]![0]!.text === "@" ? definedName(statement, name) : undefined;
    return defined === undefined ? [] : [other(defined, unit)];
  });
}

function definedName(statement: readonly Token[], name: string): Found | undefined {
  // A decorator defines no name, and neither does a statement after a `;`.
  const keyword = statement.findIndex((t) => t.text === "def" || t.text === "class");
  const token = statement[keyword + 1];
  if (keyword === -1 || token?.text !== name) return undefined;
  return { at: token.from, what: `a \`${statement[keyword]!.text}\`` };
}

const ASSIGNS = new Set([
  "=",
  "+=",
  "-=",
  "*=",
  "/=",
  "//=",
  "%=",
  "@=",
  "&=",
  "|=",
  "^=",
  ">>=",
  "<<=",
  "**=",
]);

function isAssigning(token: Token): boolean {
  return token.depth === 0 && ASSIGNS.has(token.text);
}

/** The value of `NAME = value` or `NAME: type = value`; undefined for every other statement. */
function assignedValue(statement: readonly Token[], name: string): readonly Token[] | undefined {
  const [first, second] = statement;
  if (first!.text !== name) return undefined;
  if (second?.text !== "=" && second?.text !== ":") return undefined;
  const equals = statement.findIndex(isAssigning);
  if (equals === -1 || statement[equals]!.text !== "=") return undefined;
  const value = statement.slice(equals + 1);
  const rebinds = value.some((t) => t.text === ":=" || isAssigning(t));
  return value.length === 0 || rebinds ? undefined : value;
}

/** Statements that bind every name they mention. */
const BINDING_STATEMENTS = new Set(["del", "import", "from", "global", "case"]);

function otherBinding(statement: readonly Token[], name: string): Found | undefined {
  const [first, second] = statement;
  const lastAssigning = statement.findLastIndex(isAssigning);
  const loopTargets = statement.findIndex((t) => t.text === "in" && t.depth === 0);
  const keyword = first!.text === "async" ? second!.text : first!.text;
  const firstAs = statement.findIndex((t) => t.text === "as");
  const walrus = assignedInside(statement, name);
  if (walrus !== undefined) return walrus;
  for (const [i, token] of statement.entries()) {
    const previous = statement[i - 1]?.text;
    const next = statement[i + 1]?.text;
    if (token.text !== name || previous === ".") continue;
    const found = (what: string): Found => ({ at: token.from, what });
    if (i < lastAssigning) return found(assignmentWords(statement));
    // A list that is appended to, an element that is set.
    if (i === 0 && (next === "." || next === "[")) return found("a change of its content");
    if (BINDING_STATEMENTS.has(keyword)) return found(`\`${keyword}\``);
    if (keyword === "for" && i < loopTargets) return found("a loop variable");
    if (firstAs !== -1 && firstAs < i) return found("`as`");
    if (previous === "def" || previous === "class") return found(`\`${previous}\``);
  }
  return undefined;
}

/** `NAME := value` somewhere in a statement, in the fields of its f-strings too. */
function assignedInside(statement: readonly Token[], name: string): Found | undefined {
  const token = statement.find((t, i) => {
    if (t.kind === "name") return t.text === name && statement[i + 1]?.text === ":=";
    const fields = fieldsOf(t);
    return fields !== "" && new RegExp(`(?<![\\w.])${name}\\s*:=`).test(fields.normalize("NFKC"));
  });
  return token === undefined ? undefined : { at: token.from, what: "`:=`" };
}

/** The parts of an f-string or template string that may be expressions; nothing that could be one for any other token. */
function fieldsOf({ kind, text }: Token): string {
  if (kind !== "string" || !/^[a-z]*[ft][a-z]*['"]/i.test(text)) return "";
  const whole = text.replaceAll("{{", "");
  // Without a field, the closing quote.
  return whole.slice(whole.indexOf("{"));
}

function assignmentWords(statement: readonly Token[]): string {
  const operators = statement.filter(isAssigning).map((t) => t.text);
  if (operators.length > 1) return "a chained assignment";
  return operators[0] === "=" ? "an assignment" : `an assignment with \`${operators[0]}\``;
}

/** A statement that may bind names it does not mention. */
function openEnded(statement: readonly Token[]): Found | undefined {
  const [first] = statement;
  if (first!.text === "from" && statement.some((t) => t.text === "*")) {
    return { at: first!.from, what: "`from … import *`", openEnded: true };
  }
  for (const [i, token] of statement.entries()) {
    const around = [statement[i - 1]?.text, statement[i + 1]?.text, statement[i + 2]?.text] as const;
    const fields = fieldsOf(token);
    const inField = fields === "" ? undefined : ANY_NAME_IN_FIELD.exec(fields.normalize("NFKC"))?.[0];
    const what = reachesForNames(token.text, ...around) ? token.text : inField;
    if (what !== undefined) return { at: token.from, what: `\`${what}\``, openEnded: true };
  }
  return undefined;
}

/** Whether a name gives access to the module's names, or becomes an alias that does (`g = globals`). */
function reachesForNames(text: string, previous?: string, next?: string, closing?: string): boolean {
  if (text === "modules") return previous === "." || previous === "import" || previous === ",";
  // `vars(thing)` is about the thing; without an argument, or without a call, it is not.
  if (text === "locals" || text === "vars") {
    return next !== "=" && previous !== "." && (next !== "(" || closing === ")");
  }
  return ANY_NAME.has(text) && next !== "=";
}

const ANY_NAME = new Set(["globals", "exec", "execfile", "setattr"]);
const ANY_NAME_IN_FIELD = /\b(?:globals|locals|vars|exec|execfile|setattr|modules)\b/;
