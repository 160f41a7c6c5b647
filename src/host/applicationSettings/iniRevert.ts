import { readLines } from "./iniFile.js";
import type { ItemChange, Reverted } from "./edit.js";
import { applySplices, cut } from "./textEdit.js";

/** Undoes what an edit did to one item of an ini file; a value that was changed since stays. */
export function revertIni(text: string, change: ItemChange): Reverted {
  const { section, name } = change;
  const lines = readLines(text);
  const same = lines.filter((line) => line.section === section && line.key === name);
  const ours = same.findLast((line) => line.value!.text.trimEnd() === change.to);
  if (ours === undefined) {
    const last = same.at(-1);
    // As before the edit: an edit that was cut off may not have reached this file.
    const isGone = last === undefined || last.value!.text.trimEnd() === change.from?.trimEnd();
    return isGone ? { text, state: "gone" } : { text, state: "changed", line: last.number };
  }
  if (change.from !== null) {
    return { text: applySplices(text, [{ ...ours.value!, text: change.from }]), state: "reverted" };
  }
  const without = cut(text, ours.from, ours.to, change.lineEndAdded);
  const tidy = change.header === undefined ? without : withoutEmptySection(without, change);
  return { text: tidy, state: "reverted" };
}

/** A section that was added is removed with the last of its items, unless something else is in it now. */
function withoutEmptySection(text: string, { section, header: how, lineEndAdded }: ItemChange): string {
  const lines = readLines(text);
  const inSection = lines.filter((line) => line.section === section && line.kind !== "blank");
  const [header] = inSection;
  if (header === undefined || inSection.length > 1) return text;
  const above = lines[header.number - 2];
  const apart = how === "added apart" && above?.kind === "blank";
  return cut(text, (apart ? above : header).from, header.to, lineEndAdded);
}
