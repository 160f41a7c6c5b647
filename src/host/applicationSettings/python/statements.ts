import { type Fault, type LogicalLine, scanPython, type Token } from "./tokens.js";

/**
 * A module's top level: simple statements, blocks (`if`, `try`, `for`, …), whose names belong to the module, and scopes
 * (`def`, `class`), whose names are local.
 */
export interface Unit {
  readonly kind: "simple" | "block" | "scope";
  readonly lines: readonly LogicalLine[];
  /** Beginning of its first line of text. */
  readonly from: number;
  /** Offset after its last line end. */
  readonly to: number;
}

/** Splits a module into the units of its top level, in their order. */
export function unitsOf(text: string): { units: Unit[] } | { fault: Fault } {
  const scanned = scanPython(text);
  if ("fault" in scanned) return scanned;
  const { lines } = scanned;
  const bare = lines.find((line, i) => isDecorator(line) && !decorates(line, lines[i + 1]));
  if (bare !== undefined) {
    return { fault: { at: bare.tokens[0]!.from, message: "decorator without a function or class" } };
  }
  const groups: LogicalLine[][] = [];
  for (const line of lines) {
    const current = groups.at(-1);
    if (current !== undefined && continues(current, line)) current.push(line);
    else if (line.indented) return { fault: { at: line.tokens[0]!.from, message: "unexpected indentation" } };
    else groups.push([line]);
  }
  const units = groups.map((lines) => ({
    kind: kindOf(lines),
    lines,
    from: lines[0]!.from,
    to: lines.at(-1)!.to,
  }));
  return { units };
}

const CLAUSE = new Set(["elif", "else", "except", "finally"]);
const BLOCK = new Set(["if", "elif", "else", "for", "while", "try", "except", "finally", "with", "async"]);
const SCOPE = new Set(["def", "class"]);

function continues(group: readonly LogicalLine[], line: LogicalLine): boolean {
  const kind = kindOf(group);
  if (line.indented) return kind !== "simple";
  return isDecorator(group.at(-1)!) || (kind === "block" && CLAUSE.has(line.tokens[0]!.text));
}

function kindOf(group: readonly LogicalLine[]): Unit["kind"] {
  const [first, second] = group[0]!.tokens;
  if (isDecorator(group[0]!) || SCOPE.has(first!.text)) return "scope";
  if (first!.text === "async" && second?.text === "def") return "scope";
  // `match` is a keyword only where a block follows.
  return BLOCK.has(first!.text) || group[0]!.tokens.at(-1)!.text === ":" ? "block" : "simple";
}

/** Whether a decorator is followed by its function or class; otherwise the next line would be read as a part of it. */
function decorates(decorator: LogicalLine, next: LogicalLine | undefined): boolean {
  if (next === undefined || next.indented !== decorator.indented) return false;
  return isDecorator(next) || DEFINITION.has(next.tokens[0]!.text);
}

const DEFINITION = new Set(["def", "class", "async"]);

function isDecorator(line: LogicalLine): boolean {
  return line.tokens[0]!.text === "@";
}

/**
 * The simple statements of a unit, split at `;`, and the headers of its blocks (`if DEBUG` of `if DEBUG: A = 1`), in
 * the order of the text.
 */
export function statementsOf(unit: Unit): (readonly Token[])[] {
  return unit.lines.flatMap((line) => {
    const header = unit.kind === "simple" ? -1 : headerEnd(line.tokens);
    const body = splitAt(line.tokens.slice(header + 1), ";");
    return (header === -1 ? body : [line.tokens.slice(0, header), ...body]).filter((s) => s.length > 0);
  });
}

/** Index of the colon that ends a header; -1 if the line has none that a statement could follow. */
function headerEnd(tokens: readonly Token[]): number {
  const first = tokens[0]!.text;
  const opens = BLOCK.has(first) || SCOPE.has(first) || first === "case";
  return opens ? tokens.findIndex((t) => t.depth === 0 && t.text === ":") : -1;
}

/** Pieces between separators that are outside brackets, or inside the enclosing ones at `depth`. */
export function splitAt(tokens: readonly Token[], separator: string, depth = 0): Token[][] {
  const pieces: Token[][] = [[]];
  for (const token of tokens) {
    if (token.text === separator && token.depth === depth) pieces.push([]);
    else pieces.at(-1)!.push(token);
  }
  return pieces;
}
