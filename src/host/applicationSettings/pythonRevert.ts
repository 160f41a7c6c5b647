import { type Binding, bindingsOf } from "./python/bindings.js";
import { editList } from "./pythonList.js";
import { listElements, literalValue, withoutParentheses } from "./python/literal.js";
import { unitsOf } from "./python/statements.js";
import type { ItemChange, Reverted } from "./edit.js";
import { applySplices, cut, lineOf } from "./textEdit.js";

type Assignment = Binding & { readonly kind: "assignment" };

/**
 * Undoes the edit of one item of a Python module: restores its earlier value, or removes an added item. A value that
 * was changed since stays.
 */
export function revertPython(text: string, change: ItemChange): Reverted {
  const parsed = unitsOf(text);
  if ("fault" in parsed) return { text, state: "changed", line: lineOf(text, parsed.fault.at) };
  const assignments = bindingsOf(parsed.units, change.name).filter((b) => b.kind === "assignment");
  if (change.added !== undefined || change.removed !== undefined) {
    return revertList(text, assignments, change);
  }
  const wanted = JSON.stringify(valueOf(change.to));
  // The last one was edited; one with the same value that was added since counts as ours.
  const ours = assignments.findLast(({ value }) => JSON.stringify(literalValue(value)) === wanted);
  if (ours === undefined) return leftAlone(text, assignments, change);
  if (change.from === null) return { text: withoutStatement(text, ours, change), state: "reverted" };
  const inner = withoutParentheses(ours.value);
  const isOpen = inner === ours.value && !isWholeStatement(change.from);
  const splice = {
    from: inner[0]!.from,
    to: inner.at(-1)!.to,
    text: isOpen ? `(${change.from})` : change.from,
  };
  return { text: applySplices(text, [splice]), state: "reverted" };
}

/** Whether an expression of several lines needs no parentheses around it. */
function isWholeStatement(source: string): boolean {
  const parsed = unitsOf(`_ = ${source}\n`);
  return "units" in parsed && parsed.units.length === 1;
}

/** The value of a literal as the editor writes it. */
function valueOf(source: string) {
  const parsed = unitsOf(`_ = ${source}\n`);
  const binding = "fault" in parsed ? undefined : bindingsOf(parsed.units, "_")[0];
  return binding?.kind === "assignment" ? literalValue(binding.value) : undefined;
}

function leftAlone(text: string, assignments: readonly Assignment[], { from }: ItemChange): Reverted {
  const last = assignments.at(-1);
  const inner = last === undefined ? [] : withoutParentheses(last.value);
  // As before the edit: an edit that was cut off may not have reached this file.
  const isGone = last === undefined || text.slice(inner[0]!.from, inner.at(-1)!.to) === from;
  return isGone ? { text, state: "gone" } : { text, state: "changed", line: lineOf(text, last.at) };
}

/** Element by element: others may have changed the list too. */
function revertList(text: string, assignments: readonly Assignment[], change: ItemChange): Reverted {
  const { added = [], removed = [], from } = change;
  const elementsOf = ({ value }: Assignment) => listElements(withoutParentheses(value)) ?? [];
  const ours = assignments.findLast((each) => elementsOf(each).some(({ value }) => added.includes(value)));
  const list = ours ?? (removed.length > 0 ? assignments.at(-1) : undefined);
  if (list === undefined) {
    // If our elements are gone there is nothing to undo, unless the list's content cannot be determined.
    const last = assignments.at(-1);
    const unclear = last !== undefined && listElements(withoutParentheses(last.value)) === undefined;
    return unclear ? leftAlone(text, assignments, change) : { text, state: "gone" };
  }
  const inner = withoutParentheses(list.value);
  const elements = listElements(inner);
  if (elements === undefined) return leftAlone(text, assignments, change);
  const stay = elements.filter(({ value }) => !added.includes(value)).map(({ value }) => value);
  if (from === null && stay.length + removed.length === 0) {
    return { text: withoutStatement(text, list, change), state: "reverted" };
  }
  const again = removed.filter((element) => !stay.includes(element));
  return { text: applySplices(text, editList(text, inner, elements, added, again)), state: "reverted" };
}

/** The text without an assignment; its line is removed too, unless something else is on it. */
function withoutStatement(text: string, { at, value }: Assignment, { lineEndAdded }: ItemChange): string {
  const end = value.at(-1)!.to;
  const before = /[^\r\n]*$/.exec(text.slice(0, at))![0];
  const behind = /[ \t\f]*(?:;[ \t\f]*)?/.exec(text.slice(end))![0];
  const lineEnd = /^(?:\r\n|\n|\r)/.exec(text.slice(end + behind.length))?.[0];
  const lineEnds = lineEnd !== undefined || end + behind.length === text.length;
  if (before.trim() !== "") {
    // `A = 1; ITEM = 2`: the separator before it is removed, the one after it stays for the next statement.
    const separator = /;[ \t\f]*$/.exec(before)![0].length;
    return cut(text, at - separator, end);
  }
  if (!lineEnds) return cut(text, at, end + behind.length);
  return cut(text, at, end + behind.length + (lineEnd?.length ?? 0), lineEndAdded);
}
