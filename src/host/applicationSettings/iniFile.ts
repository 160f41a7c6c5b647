import { type IniItem, itemLabel, type Problem, problem } from "../../model/index.js";
import type { ItemChange, ItemFinding, ItemPlan, Reverted, SettingsEdit } from "./edit.js";
import { applySplices, cut, insertLines, isUnended, lineOf, type Splice } from "./textEdit.js";

/**
 * Edits an INI file. It may have two kinds of reader: GLib's GKeyFile, which is case-sensitive and has neither `:` nor
 * continuation lines, and Python's configparser, which is the opposite. Anything that the two would read differently is
 * refused, with its line number.
 *
 * An item is set where it is already set (at the last place if there are several, because that one counts); others are
 * added at the end of their section, and a missing section at the end of the file.
 *
 * @param path for messages
 */
export function editIni(text: string, items: readonly IniItem[], path: string): SettingsEdit {
  const stray = strayProblem(text, path);
  if (stray !== undefined) {
    return { findings: items.map(refused), splices: [], changes: [], problems: [stray], notes: [] };
  }
  const lines = readLines(text);
  const plans = items.map((item) => planItem(lines, item, path));
  const missing = items.filter((_, i) => plans[i]!.finding.state === "missing");
  const added = [...new Set(missing.map((item) => item.section))].map((section) =>
    addToSection(
      text,
      lines,
      section,
      missing.filter((item) => item.section === section),
      path,
    ),
  );
  return {
    findings: plans.map((p) => p.finding),
    splices: [...plans, ...added].flatMap((p) => p.splice ?? []),
    changes: [...plans.flatMap((p) => p.change ?? []), ...added.flatMap((a) => a.changes ?? [])],
    problems: [...plans, ...added].flatMap((p) => p.problem ?? []),
    notes: plans.flatMap((p) => p.note ?? []),
  };
}

/** A character that is the end of a line, or of the file, for some readers. */
export function strayProblem(text: string, path: string): Problem | undefined {
  const stray = text.search(/\r(?!\n)|\0/);
  if (stray === -1) return undefined;
  const found = text[stray] === "\r" ? "a carriage return without line feed" : "a NUL character";
  return problem("settings.bad-syntax", `${path}:${lineOf(text, stray)}`, `has ${found}`);
}

export interface IniLine {
  readonly number: number;
  /** Undefined for a key, and for a line that no reader understands. */
  readonly kind?: "header" | "comment" | "blank";
  /** Section it is in; for a header, the one it begins. Undefined before the first. */
  readonly section: string | undefined;
  /** Number of leading blanks. */
  readonly indent: number;
  /** Whether configparser reads it as a part of the value above, because it is indented further. */
  readonly continues: boolean;
  readonly from: number;
  /** Offset after the line end. */
  readonly to: number;
  readonly key?: string;
  readonly separator?: "=" | ":";
  readonly value?: Splice;
  /** The rest of a header's line. */
  readonly rest?: string;
}

const LINE = /([^\n]*?)(\r?\n|$)/y;
const HEADER = /^\[(.+)\](.*)/s;
const KEY = /^([^=:]*)([=:])[ \t]*/;

/** @internal The lines of a file as both readers see them. */
export function readLines(text: string): IniLine[] {
  const lines: IniLine[] = [];
  let section: string | undefined;
  /** Indentation of the key whose value may continue; undefined after a header. */
  let keyIndent: number | undefined;
  for (let at = text.startsWith("\ufeff") ? 1 : 0; at < text.length;) {
    LINE.lastIndex = at;
    const [whole, content] = LINE.exec(text)!;
    const place = { number: lines.length + 1, section, from: at, to: at + whole.length };
    const line = readLine(content!, at, place, keyIndent);
    if (isText(line) && !line.continues) keyIndent = line.kind === "header" ? undefined : line.indent;
    section = line.section;
    lines.push(line);
    at = line.to;
  }
  return lines;
}

function readLine(
  content: string,
  at: number,
  place: Pick<IniLine, "number" | "section" | "from" | "to">,
  keyIndent: number | undefined,
): IniLine {
  const bare = content.trim();
  const indent = content.length - content.trimStart().length;
  const continues = keyIndent !== undefined && indent > keyIndent;
  const base = { ...place, indent, continues };
  if (bare === "") return { ...base, kind: "blank" };
  if (/^[#;]/.test(bare)) return { ...base, kind: "comment" };
  const header = HEADER.exec(bare);
  if (header !== null) return { ...base, kind: "header", section: header[1]!, rest: header[2]! };
  const match = KEY.exec(bare);
  if (match === null) return base;
  const from = at + indent;
  // GKeyFile reads blanks at the end as a part of the value.
  const [valueFrom, to] = [from + match[0].length, at + content.length];
  const value = { from: valueFrom, to, text: content.slice(valueFrom - at) };
  return { ...base, key: withoutBlanksAtEnd(match[1]!), separator: match[2] as "=" | ":", value };
}

/** Removes blanks and tabs only, in one pass: configparser and GKeyFile differ about other space. */
function withoutBlanksAtEnd(text: string): string {
  let to = text.length;
  while (text[to - 1] === " " || text[to - 1] === "\t") to--;
  return text.slice(0, to);
}

export const isText = (line: IniLine): boolean => line.kind !== "blank" && line.kind !== "comment";

const refused = (item: IniItem): ItemFinding => ({ ...named(item), state: "refused" });

const named = (item: IniItem) => ({ item: itemLabel(item), wanted: String(item.value) });

function planItem(lines: readonly IniLine[], item: IniItem, path: string): ItemPlan {
  const base = named(item);
  const { item: label, wanted } = base;
  const inSection = lines.filter((line) => line.section === item.section);
  const same = inSection.filter((line) => line.key?.toLowerCase() === item.name.toLowerCase());
  const obstacle = same
    .map((line) => [line, whyUnsafe(lines, line, item)] as const)
    .find(([, why]) => why !== undefined);
  if (obstacle !== undefined) {
    const [{ number }, why] = obstacle;
    const unsafe = problem("settings.refused", `${path}:${number}`, `${label}: ${why}`, FIX);
    return { finding: { ...refused(item), line: number }, problem: unsafe };
  }
  const last = same.at(-1);
  if (last === undefined) return { finding: { ...base, state: "missing" } };
  const value = last.value!;
  const state = value.text === wanted ? "same" : "different";
  const earlier = same.slice(0, -1).map((line) => line.number);
  const note = `${path}:${last.number}: ${label} is set before on line ${earlier.join(", ")}; the last one wins`;
  return {
    finding: { ...base, found: value.text, line: last.number, state },
    ...(state === "same"
      ? {}
      : {
          splice: { ...value, text: wanted },
          change: { section: item.section, name: item.name, from: value.text, to: wanted },
        }),
    ...(earlier.length === 0 ? {} : { note }),
  };
}

const FIX = {
  fix: "Write every item of the section as `key = value` on a separate line that is not indented.",
};

/** A message about a difference between the two readers. */
function whyUnsafe(lines: readonly IniLine[], line: IniLine, item: IniItem): string | undefined {
  if (line.key !== item.name)
    return `is written \`${line.key}\`, which not every program reads as the same key`;
  if (line.separator !== "=") return "is set with `:`, which not every program understands";
  if (line.continues) return "is indented, so that some programs read it as part of the value above";
  if (nextText(lines, line)?.continues === true)
    return "has a value of several lines, which not every reader understands";
  return undefined;
}

/** The next line that is neither blank nor a comment. */
function nextText(lines: readonly IniLine[], { number }: IniLine): IniLine | undefined {
  return lines.slice(number).find(isText);
}

function addToSection(
  text: string,
  lines: readonly IniLine[],
  section: string,
  items: readonly IniItem[],
  path: string,
): { splice?: Splice; changes?: readonly ItemChange[]; problem?: Problem } {
  const names = items.map(itemLabel).join(", ");
  const refuse = (line: IniLine, why: string): { problem: Problem } => ({
    problem: problem("settings.refused", `${path}:${line.number}`, `${names}: ${why}`, FIX),
  });
  const added = items.map((item) => `${item.name} = ${item.value}`);
  const changesOf = (how: Pick<ItemChange, "header">, at: number): ItemChange[] =>
    items.map((item) => ({
      section,
      name: item.name,
      from: null,
      to: String(item.value),
      ...how,
      ...(at === text.length && isUnended(text) ? { lineEndAdded: true } : {}),
    }));
  const inSection = lines.filter((line) => line.section === section && isText(line));
  const odd = inSection.find((line) => line.kind === "header" && (line.rest !== "" || line.continues));
  if (odd !== undefined) return refuse(odd, "not every program understands the header of the section");
  const last = inSection.at(-1);
  if (last === undefined) {
    const apart = lines.length === 0 || lines.at(-1)!.kind === "blank" ? [] : [""];
    return {
      splice: insertLines(text, text.length, [...apart, `[${section}]`, ...added]),
      changes: changesOf({ header: apart.length === 0 ? "added" : "added apart" }, text.length),
    };
  }
  const next = nextText(lines, last);
  if (next !== undefined && next.indent > 0) {
    return refuse(
      next,
      "would have to be above an indented line, which some programs read as part of the value",
    );
  }
  return { splice: insertLines(text, last.to, added), changes: changesOf({}, last.to) };
}

/** Undoes the edit of one item of an ini file; a value that was changed since stays. */
export function revertIni(text: string, change: ItemChange): Reverted {
  const { section, name } = change;
  const lines = readLines(text);
  const same = lines.filter((line) => line.section === section && line.key === name);
  const ours = same.findLast((line) => line.value!.text.trimEnd() === change.to);
  if (ours === undefined) {
    const last = same.at(-1);
    // The value may be as before the edit: an edit that was cut off may not have reached this file.
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
