/**
 * A scanner for Python source, as deep as editing a settings file needs: strings, comments, brackets and continuation
 * lines (Python reference, 2: lexical analysis). It does not know any other grammar.
 */

export interface Token {
  readonly kind: "name" | "string" | "number" | "operator";
  readonly text: string;
  readonly from: number;
  /** Offset after the last character. */
  readonly to: number;
  /** How many brackets are open around it; a bracket itself counts as outside. */
  readonly depth: number;
}

/** One logical line: it ends at a line end outside brackets and strings. */
export interface LogicalLine {
  readonly tokens: readonly Token[];
  readonly indented: boolean;
  /** Beginning of its first line of text. */
  readonly from: number;
  /** Offset after its line end, a trailing comment included. */
  readonly to: number;
}

/** Where scanning could not continue, and why. */
export interface Fault {
  readonly at: number;
  readonly message: string;
}

/** Every logical line with a token in it, which excludes blank lines and comments. */
export function scanPython(text: string): { lines: LogicalLine[] } | { fault: Fault } {
  try {
    return { lines: new Scanner(text).scan() };
  } catch (error) {
    if (error instanceof ScanFault) return { fault: error.fault };
    throw error;
  }
}

class ScanFault extends Error {
  constructor(readonly fault: Fault) {
    super(fault.message);
  }
}

function fail(at: number, message: string): never {
  throw new ScanFault({ at, message });
}

/** Every character beyond ASCII counts as a letter: Python allows it nowhere else outside strings and comments. */
const NAME = /[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*/y;
const NUMBER = /\.?\d[\w.]*/y;
const STRING_BEGIN = /([rbuft]|br|rb|fr|rf|tr|rt|ur)?('''|"""|'|")/iy;
const OPERATOR = /\*\*=|\/\/=|>>=|<<=|\.\.\.|:=|->|[=!<>+\-*/%&|^@]=|\*\*|\/\/|<<|>>|<>|[^]/y;
/** Python also treats a lone carriage return as a line end. */
const LINE_END = /\r\n|\n|\r/y;
const COMMENT = /#[^\r\n]*/y;
const BLANK = /[ \t\f]+/y;
const CONTINUATION = /\\(?:\r\n|\n|\r)/y;

const CLOSES: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };

class Scanner {
  private at = 0;
  private tokens: Token[] = [];
  private readonly lines: LogicalLine[] = [];
  private readonly open: Token[] = [];
  private lineFrom = 0;

  constructor(private readonly text: string) {}

  scan(): LogicalLine[] {
    if (this.text.startsWith("\ufeff")) this.at = this.lineFrom = 1;
    const nul = this.text.indexOf("\0");
    if (nul !== -1) fail(nul, "a NUL character");
    while (this.at < this.text.length) this.step();
    const unclosed = this.open.at(-1);
    if (unclosed !== undefined) fail(unclosed.from, `\`${unclosed.text}\` is never closed`);
    this.endLine();
    return this.lines;
  }

  private step(): void {
    if (this.skip(BLANK) || this.skip(COMMENT)) return;
    if (this.skip(LINE_END)) {
      if (this.open.length === 0) this.endLine();
    } else if (this.text[this.at] === "\\") {
      const from = this.at;
      // The backslash would belong to nothing, and the next line would not begin a statement.
      if (this.tokens.length === 0) fail(from, "a backslash with nothing in front of it");
      if (!this.skip(CONTINUATION)) fail(from, "a backslash that does not end the line");
      if (this.at === this.text.length) fail(from, "the file ends after a backslash");
    } else {
      this.token();
    }
  }

  private skip(pattern: RegExp): boolean {
    const end = matchAt(pattern, this.text, this.at);
    if (end === undefined) return false;
    this.at = end;
    return true;
  }

  private token(): void {
    const from = this.at;
    const begin = stringBegin(this.text, from);
    if (begin !== undefined) return this.push("string", from, endOfString(this.text, begin));
    const name = matchAt(NAME, this.text, from);
    if (name !== undefined) return this.push("name", from, name);
    const number = matchAt(NUMBER, this.text, from);
    if (number !== undefined) return this.push("number", from, number);
    this.operator(from, matchAt(OPERATOR, this.text, from)!);
  }

  private operator(from: number, to: number): void {
    const text = this.text.slice(from, to);
    if (")]}".includes(text)) {
      const opening = this.open.pop();
      if (opening === undefined || CLOSES[opening.text] !== text)
        fail(from, `a \`${text}\` that closes nothing`);
    }
    this.push("operator", from, to);
    if (!(text in CLOSES)) return;
    if (this.open.length === BRACKET_LEVELS_MAX) fail(from, "brackets that are nested too deeply");
    this.open.push(this.tokens.at(-1)!);
  }

  private push(kind: Token["kind"], from: number, to: number): void {
    const source = this.text.slice(from, to);
    // Python compares names in this form (reference, 2.3).
    const text = kind === "name" ? source.normalize("NFKC") : source;
    this.tokens.push({ kind, text, from, to, depth: this.open.length });
    this.at = to;
  }

  private endLine(): void {
    const first = this.tokens[0];
    if (first !== undefined) {
      const lead = this.text.slice(this.lineFrom, first.from);
      // A form feed restarts the count of the indentation.
      const indented = lead.slice(lead.lastIndexOf("\f") + 1) !== "";
      this.lines.push({ tokens: this.tokens, indented, from: this.lineFrom, to: this.at });
    }
    this.tokens = [];
    this.lineFrom = this.at;
  }
}

interface StringBegin {
  readonly from: number;
  /** Offset after the opening quotes. */
  readonly at: number;
  readonly quotes: string;
  /** Whether `{` begins an expression. */
  readonly formatted: boolean;
}

function stringBegin(text: string, from: number): StringBegin | undefined {
  STRING_BEGIN.lastIndex = from;
  const match = STRING_BEGIN.exec(text);
  if (match === null) return undefined;
  const prefix = (match[1] ?? "").toLowerCase();
  const at = from + match[0].length;
  return { from, at, quotes: match[2]!, formatted: /[ft]/.test(prefix) };
}

function endOfString(text: string, begin: StringBegin, level = 0): number {
  const { quotes, formatted } = begin;
  for (let at = begin.at; at < text.length;) {
    if (text.startsWith(quotes, at)) return at + quotes.length;
    const c = text[at]!;
    if (c === "\\") {
      at = endOfEscape(text, at, formatted);
    } else if (isLineEnd(c) && quotes.length === 1) {
      break;
    } else if (formatted && c === "{") {
      at = text[at + 1] === "{" ? at + 2 : endOfField(text, at + 1, begin, level + 1);
    } else {
      at++;
    }
  }
  return fail(begin.from, "a string that is never closed");
}

/**
 * A backslash escapes the next character, in raw strings as well; but not `{`. The name in `\N{BULLET}` may be read as a
 * field: it ends at the same place.
 */
function endOfEscape(text: string, at: number, formatted: boolean): number {
  if (formatted && text.startsWith("{", at + 1)) return at + 1;
  return text.startsWith("\\\r\n", at) ? at + 3 : at + 2;
}

/**
 * Offset after the `}` of a replacement field. Since Python 3.12 it may contain strings in the same quotes as the whole
 * (PEP 701); a field that older versions accept ends at the same place by this rule.
 */
function endOfField(text: string, from: number, string: StringBegin, level: number): number {
  if (level > FIELD_LEVELS_MAX) fail(string.from, "a string whose fields are nested too deeply");
  let depth = 0;
  for (let at = from; at < text.length;) {
    const inner = stringBegin(text, at);
    const c = text[at]!;
    if (inner !== undefined) at = endOfString(text, inner, level);
    else if (c === "}" && depth === 0) return at + 1;
    else if (c === ":" && depth === 0) return endOfFormat(text, at + 1, string, level);
    else if (c === "#") at = matchAt(COMMENT, text, at)!;
    else {
      if ("([{".includes(c)) depth++;
      else if (")]}".includes(c)) depth--;
      at = matchAt(NAME, text, at) ?? at + 1;
    }
  }
  return fail(string.from, "a string that is never closed");
}

/** Offset after the `}` that ends a format specification; `{` in it begins another field. */
function endOfFormat(text: string, from: number, string: StringBegin, level: number): number {
  for (let at = from; at < text.length;) {
    const c = text[at]!;
    if (c === "}") return at + 1;
    if (text.startsWith(string.quotes, at) || (isLineEnd(c) && string.quotes.length === 1)) break;
    at = c === "{" ? endOfField(text, at + 1, string, level + 1) : at + 1;
  }
  return fail(string.from, "a string that is never closed");
}

/** Python's own limit. */
const BRACKET_LEVELS_MAX = 200;

/** More than any Python reads: its own limit for f-strings in each other is 150, and a format has fields of one level. */
const FIELD_LEVELS_MAX = 150;

function isLineEnd(c: string): boolean {
  return c === "\n" || c === "\r";
}

function matchAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
