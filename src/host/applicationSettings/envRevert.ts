import type { ItemChange, Reverted } from "./edit.js";
import { readEnv, valueAt } from "./envLines.js";
import { applySplices, cut, lineOf } from "./textEdit.js";

/** Undoes what an edit did to one item of a file of environment variables; a value that was changed since stays. */
export function revertEnv(text: string, { name, from, to, lineEndAdded }: ItemChange): Reverted {
  const env = readEnv(text);
  const places = env.placesOf(name);
  const values = places.flatMap((at) => {
    const found = env.agreed.has(at) ? valueAt(env, at) : "";
    return typeof found === "string" ? [] : [found];
  });
  const ours = values.findLast(({ value }) => value.trimEnd() === to);
  if (ours === undefined) {
    const last = places.at(-1);
    // As before the edit: an edit that was cut off may not have reached this file.
    const isGone = last === undefined || (values.at(-1)?.line === last && values.at(-1)?.text === from);
    return isGone ? { text, state: "gone" } : { text, state: "changed", line: lineOf(text, last) };
  }
  const without = (): string => cut(text, ours.line, Math.min(ours.next, text.length), lineEndAdded);
  const reverted = from === null ? without() : applySplices(text, [{ ...ours, text: from }]);
  return { text: reverted, state: "reverted" };
}
