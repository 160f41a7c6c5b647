import { applySplices, lineNumbers, lineStarts, type Splice, splitLines } from "./textEdit.js";

/** The text that a diff shows instead of a line that may contain a secret. */
export const HIDDEN = "(not shown: may hold a secret)";

/** Unchanged lines shown around a change. */
const CONTEXT = 3;

/** Lines `from` (inclusive, from 0) to `to` (exclusive) become others. */
interface LineChange {
  readonly from: number;
  readonly to: number;
  readonly lines: readonly string[];
}

/**
 * The text for users before they confirm an edit: a unified diff in which lines that may contain a secret are not
 * shown.
 *
 * @param hidden numbers of such lines before the edit, from 1
 */
export function unifiedDiff(
  path: string,
  text: string,
  splices: readonly Splice[],
  hidden: ReadonlySet<number>,
): string {
  const old = contentLines(text).map((line, i) => (hidden.has(i + 1) ? HIDDEN : line));
  const changes = changesOf(text, splices).map((change) => {
    const secret = old.slice(change.from, change.to).includes(HIDDEN);
    return secret ? { ...change, lines: change.lines.map(() => HIDDEN) } : change;
  });
  if (changes.length === 0) return "";
  let grown = 0;
  const hunks = together(changes).map((group) => {
    const shown = hunk(old, group, grown);
    grown += group.reduce((sum, c) => sum + c.lines.length - (c.to - c.from), 0);
    return shown;
  });
  return `--- ${path}\n+++ ${path}\n${hunks.join("")}`;
}

/** Changes whose surroundings touch. */
function together(changes: readonly LineChange[]): LineChange[][] {
  const groups: LineChange[][] = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (last !== undefined && change.from - last.at(-1)!.to <= 2 * CONTEXT) last.push(change);
    else groups.push([change]);
  }
  return groups;
}

function hunk(old: readonly string[], changes: readonly LineChange[], grown: number): string {
  const from = Math.max(0, changes[0]!.from - CONTEXT);
  const to = Math.min(old.length, changes.at(-1)!.to + CONTEXT);
  const lines: string[] = [];
  let at = from;
  for (const change of changes) {
    lines.push(...old.slice(at, change.from).map((line) => ` ${line}`));
    lines.push(...old.slice(change.from, change.to).map((line) => `-${line}`));
    lines.push(...change.lines.map((line) => `+${line}`));
    at = change.to;
  }
  lines.push(...old.slice(at, to).map((line) => ` ${line}`));
  const added = changes.reduce((sum, c) => sum + c.lines.length - (c.to - c.from), 0);
  const header = `@@ -${range(from, to - from)} +${range(from + grown, to - from + added)} @@`;
  return [header, ...lines].map((line) => `${line}\n`).join("");
}

/** An empty range names the line in front of it. */
function range(from: number, count: number): string {
  return `${count === 0 ? from : from + 1},${count}`;
}

/** The lines that splices touch, in the order of the text. */
function changesOf(text: string, splices: readonly Splice[]): LineChange[] {
  const starts = lineStarts(text);
  const numberOf = lineNumbers(text);
  const lineAt = (offset: number): number => numberOf(offset) - 1;
  const groups: { from: number; to: number; splices: Splice[] }[] = [];
  for (const splice of splices.toSorted((a, b) => a.from - b.from)) {
    const from = lineAt(splice.from);
    // Whole lines that come in before a line leave that one as it is.
    const inserted = splice.from === splice.to && starts[from] === splice.from && /[\r\n]$/.test(splice.text);
    const to = inserted ? from : lineAt(splice.to) + 1;
    const last = groups.at(-1);
    if (last !== undefined && from < last.to) {
      last.splices.push(splice);
      last.to = Math.max(last.to, to);
    } else {
      groups.push({ from, to, splices: [splice] });
    }
  }
  return groups.map(({ from, to, splices: inside }) => {
    const offset = starts[from]!;
    const before = text.slice(offset, starts[to]);
    const moved = inside.map((s) => ({ ...s, from: s.from - offset, to: s.to - offset }));
    return narrowed({ from, to, lines: contentLines(applySplices(before, moved)) }, contentLines(before));
  });
}

/** Removes the lines at both ends that stay as they were. */
function narrowed(change: LineChange, before: readonly string[]): LineChange {
  const { lines } = change;
  let [head, tail] = [0, 0];
  const room = Math.min(before.length, lines.length);
  while (head < room && before[head] === lines[head]) head++;
  while (tail < room - head && before.at(-1 - tail) === lines.at(-1 - tail)) tail++;
  return {
    from: change.from + head,
    to: change.from + before.length - tail,
    lines: lines.slice(head, lines.length - tail),
  };
}

function contentLines(text: string): string[] {
  const lines = splitLines(text);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
