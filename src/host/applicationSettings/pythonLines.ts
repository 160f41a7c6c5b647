/**
 * This module finds the beginnings and ends of the statements of a Python module: as much of the language as a block of
 * lines needs to stand between two statements (Python reference, 2: lexical analysis).
 */

/** A logical line: it ends at a line end outside brackets and strings. */
export interface PythonLine {
  /** Beginning of its first line of text. */
  readonly from: number;
  /** Offset after its line end, a trailing comment included. */
  readonly to: number;
  readonly indented: boolean;
  /** The text of the logical line on a single line, without comments. */
  readonly source: string;
  /** The same with single blanks, and without the contents of strings that contain no expressions. */
  readonly code: string;
}

export interface PythonText {
  readonly lines: readonly PythonLine[];
  /** Comments at the beginning of a line that no statement continues. */
  readonly comments: readonly { readonly from: number; readonly text: string }[];
}

/** The offset at which a text cannot be read, and why. */
export interface UnreadableText {
  readonly fault: { readonly at: number; readonly message: string };
}

/** A word may have any letter beyond ASCII: Python allows such letters nowhere else outside strings and comments. */
const PIECE =
  /(?:(?<prefix>[rbuft]{0,2})(?<quotes>"""|'''|["'])|#[^\r\n]*|\\?(?:\r\n|\r|\n)|[ \t\f]+|[\w\u0080-\uffff]+|[^])/iy;

export function readPython(text: string): PythonText | UnreadableText {
  const lines: PythonLine[] = [];
  const comments: { from: number; text: string }[] = [];
  const open: number[] = [];
  let begin = text.startsWith("\ufeff") ? 1 : 0;
  let line: { from: number; indented: boolean; source: string[]; code: string[] } | undefined;
  let last = "";
  for (let from = begin, to = from; from < text.length; from = to) {
    PIECE.lastIndex = from;
    const { 0: piece, groups } = PIECE.exec(text)!;
    const { prefix, quotes } = groups!;
    to = from + piece.length;
    last = piece;
    const isEnd = /[\r\n]$/.test(piece);
    if (isEnd && open.length === 0 && !piece.startsWith("\\")) {
      if (line !== undefined) lines.push(ended(line, to));
      line = undefined;
      begin = to;
    } else if (piece.startsWith("#")) {
      if (line === undefined && from === begin) comments.push({ from, text: piece });
    } else if (line === undefined && /^[ \t\f]/.test(piece)) {
      continue;
    } else if (piece === "\0" || piece === "\\" || (isEnd && line === undefined)) {
      return fault(from, piece === "\0" ? "a NUL character" : "a backslash that continues nothing");
    } else {
      // A form feed restarts the count of the indentation.
      line ??= { from: begin, indented: /[^\f]$/.test(text.slice(begin, from)), source: [], code: [] };
      if (quotes !== undefined) {
        const end = endOfString(text, to, quotes);
        if (end === undefined) return fault(from, "a string that is never closed");
        to = end;
        const whole = text.slice(from, to);
        const isFormatted = /[ft]/i.test(prefix!);
        if (isFormatted && !hasWholeFields(whole)) return fault(from, "quotes in a field of an f-string");
        line.source.push(whole);
        line.code.push(isFormatted ? whole : "''");
        continue;
      }
      if ("([{".includes(piece)) open.push(from);
      if (")]}".includes(piece) && open.pop() === undefined)
        return fault(from, `a \`${piece}\` that closes nothing`);
      line.source.push(isEnd ? " " : piece);
      line.code.push(isEnd ? " " : piece);
    }
  }
  if (open.length > 0) return fault(open.at(-1)!, `\`${text[open.at(-1)!]}\` is never closed`);
  if (last.startsWith("\\")) return fault(text.length - last.length, "the file ends after a backslash");
  if (line !== undefined) lines.push(ended(line, text.length));
  return { lines, comments };
}

const fault = (at: number, message: string): UnreadableText => ({ fault: { at, message } });

function ended(
  { from, indented, source, code }: { from: number; indented: boolean; source: string[]; code: string[] },
  to: number,
): PythonLine {
  // Python compares names in this form (reference, 2.3).
  return {
    from,
    to,
    indented,
    source: source.join(""),
    code: code.join("").normalize("NFKC").replace(/\s+/g, " "),
  };
}

/** Offset after the closing quotes. A backslash escapes the next character, in raw strings as well. */
function endOfString(text: string, at: number, quotes: string): number | undefined {
  const lineEnds = quotes.length === 1 ? "|[\\r\\n]" : "";
  const stop = new RegExp(`\\\\(?:\\r\\n|[^])|${quotes}${lineEnds}`, "g");
  stop.lastIndex = at;
  for (let found = stop.exec(text); found !== null; found = stop.exec(text)) {
    if (!found[0].startsWith("\\")) return found[0] === quotes ? stop.lastIndex : undefined;
  }
  return undefined;
}

/**
 * Whether each field of an f-string is closed in it. If not, a field has a string with the quotes of the whole, as Python
 * 3.12 allows, and the string ends somewhere else.
 */
function hasWholeFields(string: string): boolean {
  let open = 0;
  for (const [brace] of string.matchAll(/\{\{|[{}]/g)) {
    if (brace === "{{") open += open > 0 ? 2 : 0;
    else open = Math.max(0, open + (brace === "{" ? 1 : -1));
  }
  return open === 0;
}
