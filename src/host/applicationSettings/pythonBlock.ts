import { pythonLiteral } from "../../render/index.js";
import type { ItemChange, Reverted } from "./edit.js";
import { type UnreadableText, type PythonLine, type PythonText, readPython } from "./pythonLines.js";
import { applySplices, insertLines, lineOf, type Splice } from "./textEdit.js";

export type LiteralValue = string | boolean | readonly string[];

/** The lines that Portico has written into a module, between two comments. */
export interface Block {
  readonly from: number;
  /** Offset after its last line. */
  readonly to: number;
  /** The offset of its last line. */
  readonly end: number;
  /** The block's items, by their names. */
  readonly items: ReadonlyMap<string, { readonly line: PythonLine; readonly source: string }>;
}

const BEGIN = "# BEGIN Portico (do not edit these lines: the deployment sets them)";
const END = "# END Portico";
const MARKER = /^# (BEGIN|END) Portico\b/;

/** The block of a module; undefined if it has none. Text in strings and within statements is no marker. */
export function findBlock(text: string, { lines, comments }: PythonText): Block | UnreadableText | undefined {
  const markers = comments.flatMap(({ from, text: comment }) => {
    const kind = MARKER.exec(comment)?.[1];
    return kind === undefined ? [] : [{ from, kind }];
  });
  const [begin, end] = markers;
  if (begin === undefined) return undefined;
  if (begin.kind === "END" || end?.kind !== "END" || markers.length > 2) {
    const message =
      "the comments around the lines of Portico are not one `# BEGIN Portico` and one `# END Portico`";
    return { fault: { at: markers.length > 2 ? markers[2]!.from : begin.from, message } };
  }
  const items = new Map<string, { line: PythonLine; source: string }>();
  for (const line of lines.filter(({ from }) => from > begin.from && from < end.from)) {
    const [, name, source] = /^(\w+) = (.+)$/s.exec(line.source.trimEnd()) ?? [];
    if (name === undefined || line.indented || items.has(name) || valueInBlock(name, source!) === undefined)
      return {
        fault: { at: line.from, message: "the line is between those of Portico and not one of them" },
      };
    items.set(name, { line, source: source! });
  }
  const to = end.from + /^[^\r\n]*(?:\r\n|\r|\n)?/.exec(text.slice(end.from))![0].length;
  return { from: begin.from, to, end: end.from, items };
}

/** Adds lines to the block, or a block with them. */
export function addLines(
  text: string,
  block: Block | undefined,
  at: number,
  lines: readonly string[],
): Splice {
  return block === undefined
    ? insertLines(text, at, [BEGIN, ...lines, END])
    : insertLines(text, block.end, lines);
}

/** Replaces a line of the block, but not its line end. */
export function replaceLine(text: string, { from, to }: PythonLine, by: string): Splice {
  const [end] = /(?:\r\n|\r|\n)?$/.exec(text.slice(from, to))!;
  return { from, to: to - end.length, text: by };
}

/**
 * An item's value in the block.
 *
 * @param theirs whether the module may set the item above: elements of others in a list stay
 */
export function blockSource(name: string, value: LiteralValue, theirs: boolean): string {
  const literal = pythonLiteral(value);
  return typeof value === "object" && theirs ? `[${theirsIn(name)}${literal.slice(1)}` : literal;
}

const theirsIn = (name: string): string => `*(globals().get('${name}') or ()), `;

export function valueInBlock(name: string, source: string): LiteralValue | undefined {
  return literalValue(source.replace(theirsIn(name), ""));
}

const STRING = /^u?(?:'[^'\\\r\n]*'|"[^"\\\r\n]*")$/i;

/** The value of a string without backslashes, a boolean, or a list of such strings; undefined for any other expression. */
export function literalValue(source: string): LiteralValue | undefined {
  const whole = source.trim();
  if (whole === "True" || whole === "False") return whole === "True";
  const pieces = whole.match(/u?(?:'[^'\\\r\n]*'|"[^"\\\r\n]*")|\S/gi) ?? [];
  const strings = pieces.map((piece) => (STRING.test(piece) ? piece.replace(/^u?.|.$/gi, "") : undefined));
  if (pieces.length === 1) return strings[0];
  if (pieces[0] !== "[" || pieces.at(-1) !== "]") return undefined;
  const elements = strings.slice(1, pieces.at(-2) === "," ? -2 : -1);
  const isList = elements.every((one, i) => (i % 2 === 0 ? one !== undefined : pieces[i + 1] === ","));
  return isList ? elements.filter((one) => one !== undefined) : undefined;
}

/**
 * Undoes the edit of one item of a Python module: its line in the block goes, or becomes the earlier one, and the block
 * goes with its last line. A line that was changed since stays.
 */
export function revertPython(text: string, { name, from, to, lineEndAdded }: ItemChange): Reverted {
  const read = readPython(text);
  const block = "fault" in read ? read : findBlock(text, read);
  if (block === undefined) return { text, state: "gone" };
  if ("fault" in block) return { text, state: "changed", line: lineOf(text, block.fault.at) };
  const own = block.items.get(name);
  // The value may be as before the edit: an edit that was cut off may not have reached this file.
  if (own === undefined || own.source === from) return { text, state: "gone" };
  const { line } = own;
  if (own.source !== to) return { text, state: "changed", line: lineOf(text, line.from) };
  const reverted = (...splices: Splice[]): Reverted => ({
    text: applySplices(text, splices),
    state: "reverted",
  });
  if (from !== null) return reverted(replaceLine(text, line, `${name} = ${from}`));
  const without = (piece: Pick<Splice, "from" | "to">): Splice => ({ ...piece, text: "" });
  if (block.items.size > 1) return reverted(without(line));
  const begun = block.from + /^[^\r\n]*(?:\r\n|\r|\n)/.exec(text.slice(block.from))![0].length;
  // The line end that was added to the last line.
  const lineEnd = /(?:\r\n|\r|\n)$/.exec(text.slice(0, block.from))?.[0].length ?? 0;
  const added = lineEndAdded === true && block.to === text.length ? lineEnd : 0;
  return reverted(
    without({ from: block.from - added, to: begun }),
    without(line),
    without({ from: block.end, to: block.to }),
  );
}
