/** A piece of a text to be replaced; everything around it stays as it is. */
export interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** Applies splices that do not overlap, in any order. */
export function applySplices(text: string, splices: readonly Splice[]): string {
  const ordered = splices.toSorted((a, b) => a.from - b.from);
  let at = 0;
  const pieces = ordered.flatMap((splice) => {
    const kept = text.slice(at, splice.from);
    at = splice.to;
    return [kept, splice.text];
  });
  return [...pieces, text.slice(at)].join("");
}

/**
 * Adds whole lines at the beginning of a line or at the end of the text, with the line end that the text uses there.
 */
export function insertLines(text: string, at: number, lines: readonly string[]): Splice {
  const end = lineEndBefore(text, at);
  const unended = at > 0 && !/[\r\n\ufeff]/.test(text[at - 1]!);
  const block = lines.join(end);
  return { from: at, to: at, text: unended ? end + block : block + end };
}

/** The line end before an offset; if there is none, the first in the text. */
function lineEndBefore(text: string, at: number): string {
  const before = /(?:\r\n|\n|\r)$/.exec(text.slice(0, at));
  return (before ?? /\r\n|\n|\r/.exec(text))?.[0] ?? "\n";
}

/** Whether a text ends in the middle of a line, which `insertLines` at its end completes. */
export function isUnended(text: string): boolean {
  return text !== "" && !/[\r\n\ufeff]$/.test(text);
}

/**
 * Removes a piece of a text.
 *
 * @param lineEndAdded whether the text got a line end when the piece was added to its end; it is removed too
 */
export function cut(text: string, from: number, to: number, lineEndAdded = false): string {
  const rest = text.slice(0, from) + text.slice(to);
  return lineEndAdded && to === text.length ? rest.replace(/(?:\r\n|\n|\r)$/, "") : rest;
}

/** Line number of an offset, from 1. For many of them: {@link lineNumbers}. */
export function lineOf(text: string, at: number): number {
  return splitLines(text.slice(0, at)).length;
}

/** Offsets at which lines begin; one more than there are line ends. */
export function lineStarts(text: string): number[] {
  return [0, ...Array.from(text.matchAll(LINE_END), ({ index, 0: end }) => index + end.length)];
}

/** Says the line number of each offset, from 1, without reading the text anew. */
export function lineNumbers(text: string): (at: number) => number {
  const starts = lineStarts(text);
  return (at) => {
    let [from, to] = [0, starts.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (starts[middle]! <= at) from = middle + 1;
      else to = middle;
    }
    return from;
  };
}

/** Lines without their ends; one more than there are line ends. */
export function splitLines(text: string): string[] {
  return text.split(LINE_END);
}

const LINE_END = /\r\n|\n|\r/g;
