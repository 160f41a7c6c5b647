import { splitAt } from "./statements.js";
import type { Token } from "./tokens.js";

export type LiteralValue = string | boolean | readonly string[];

/**
 * The value of an expression that is only a string, a boolean or a list of strings; undefined for any other.
 *
 * @param expression never empty
 */
export function literalValue(expression: readonly Token[]): LiteralValue | undefined {
  const inner = withoutParentheses(expression);
  const first = inner[0]!.text;
  if (inner.length === 1 && first === "True") return true;
  if (inner.length === 1 && first === "False") return false;
  if (first === "[") return listElements(inner)?.map((e) => e.value);
  return stringValue(inner);
}

export interface ListElement {
  readonly value: string;
  readonly from: number;
  /** Offset after the element. */
  readonly to: number;
}

/** The elements of a list of plain strings, as it is written; undefined if it is anything else. */
export function listElements(expression: readonly Token[]): ListElement[] | undefined {
  const first = expression[0]!;
  if (first.text !== "[") return undefined;
  // If anything follows its `]`, that is in a piece, which is then not a string.
  const pieces = splitAt(expression.slice(1, -1), ",", first.depth + 1);
  // `[]`, and a comma after the last element.
  if (pieces.at(-1)!.length === 0) pieces.pop();
  const elements = pieces.flatMap((piece): ListElement[] => {
    const value = stringValue(piece);
    return value === undefined ? [] : [{ value, from: piece[0]!.from, to: piece.at(-1)!.to }];
  });
  return elements.length === pieces.length ? elements : undefined;
}

/** Removes parentheses that only group: not those of a tuple. */
export function withoutParentheses(expression: readonly Token[]): readonly Token[] {
  const first = expression[0]!;
  if (first.text !== "(") return expression;
  // If anything follows its `)`, that is as deep as the `(`.
  const inner = expression.slice(1, -1);
  const isGroup =
    inner.length > 0 &&
    inner.every((t) => t.depth > first.depth && !(t.text === "," && t.depth === first.depth + 1));
  return isGroup ? withoutParentheses(inner) : expression;
}

/** Adjacent strings are one. */
function stringValue(tokens: readonly Token[]): string | undefined {
  const parts = tokens.map((t) => (t.kind === "string" ? decodeString(t.text) : undefined));
  return parts.length === 0 || parts.includes(undefined) ? undefined : parts.join("");
}

/** The value of a string token; undefined for bytes, and for strings that contain expressions. */
function decodeString(token: string): string | undefined {
  const [, prefix, quotes] = /([a-z]*)('''|"""|'|")/i.exec(token)!;
  if (!/^(?:u|r|ur)?$/i.test(prefix!)) return undefined;
  const body = token.slice(prefix!.length + quotes!.length, -quotes!.length).replace(/\r\n?/g, "\n");
  if (prefix!.toLowerCase().includes("r")) return body;
  return body.includes("\\N") ? undefined : body.replace(ESCAPE, unescaped);
}

/** Python reference, 2.4.1.1. */
const ESCAPE = /\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|[^])/g;
const SIMPLE_ESCAPES: Readonly<Record<string, string | undefined>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

function unescaped(escape: string): string {
  const rest = escape.slice(1);
  if (/^[0-7]/.test(rest)) return String.fromCodePoint(parseInt(rest, 8));
  if (/[xuU].+/.test(rest)) return String.fromCodePoint(Math.min(parseInt(rest.slice(1), 16), 0x10ffff));
  return SIMPLE_ESCAPES[rest] ?? escape;
}
