import { type EnvItem, problem } from "../../model/index.js";
import { envLine } from "../../render/index.js";
import type { ItemChange, ItemPlan, Reverted, SettingsEdit } from "./edit.js";
import { type EnvText, readEnv, valueAt } from "./envLines.js";
import { strayProblem } from "./iniFile.js";
import { applySplices, cut, insertLines, isUnended, lineNumbers, lineOf } from "./textEdit.js";

/**
 * Edits a file of environment variables. Docker Compose, `docker run` and systemd may read the file: an item that they
 * would read differently is refused, with its line number. Quotes around a value count as none, though `docker run`
 * takes them as a part of it.
 *
 * An item is set where it is already set (at the last place if there are several, because that one counts); others are
 * added at the end.
 *
 * @param path for messages
 */
export function editEnv(text: string, items: readonly EnvItem[], path: string): SettingsEdit {
  const stray = strayProblem(text, path);
  if (stray !== undefined) {
    const findings = items.map((item) => ({ ...named(item), state: "refused" as const }));
    return { findings, splices: [], changes: [], problems: [stray], notes: [] };
  }
  const file = { env: readEnv(text), path, lineAt: lineNumbers(text) };
  const plans = items.map((item) => planItem(file, item));
  const missing = items.filter((_, i) => plans[i]!.finding.state === "missing");
  const lineEndAdded = isUnended(text) ? { lineEndAdded: true } : {};
  const added = missing.map(({ name, value }) => ({ name, from: null, to: String(value), ...lineEndAdded }));
  const insertion = missing.length === 0 ? [] : [insertLines(text, text.length, missing.map(envLine))];
  return {
    findings: plans.map((p) => p.finding),
    splices: [...plans.flatMap((p) => p.splice ?? []), ...insertion],
    changes: [...plans.flatMap((p) => p.change ?? []), ...added],
    problems: plans.flatMap((p) => p.problem ?? []),
    notes: plans.flatMap((p) => p.note ?? []),
  };
}

interface EnvFile {
  readonly env: EnvText;
  readonly path: string;
  readonly lineAt: (at: number) => number;
}

const named = ({ name, value }: EnvItem) => ({ item: name, wanted: String(value) });

function planItem({ env, path, lineAt }: EnvFile, item: EnvItem): ItemPlan {
  const base = named(item);
  const { name } = item;
  const refuse = (at: number, why: string): ItemPlan => {
    const line = lineAt(at);
    const unsafe = problem("settings.refused", `${path}:${line}`, `${name}: ${why}`, FIX);
    return { finding: { ...base, line, state: "refused" }, problem: unsafe };
  };
  const places = env.placesOf(name);
  const last = places.at(-1);
  if (!env.agreed.has(last ?? env.end)) return refuse(...disagreement(env, last));
  if (last === undefined) return { finding: { ...base, state: "missing" } };
  const found = valueAt(env, last);
  if (typeof found === "string") return refuse(last, found);
  const line = lineAt(last);
  const state = found.value === base.wanted ? "same" : "different";
  const { from, to, text } = found;
  const earlier = [...new Set(places.slice(0, -1).map(lineAt))];
  const note = `${path}:${line}: ${name} is set before on line ${earlier.join(", ")}; the last one wins`;
  return {
    finding: { ...base, found: found.value, line, state },
    ...(state === "same"
      ? {}
      : { splice: { from, to, text: base.wanted }, change: { name, from: text, to: base.wanted } }),
    ...(earlier.length === 0 ? {} : { note }),
  };
}

const FIX = {
  fix: "Write every item as `NAME=value` on a separate line, and close the quotes in the lines above it; no line above it may end in a backslash.",
};

/** The first line where readers disagree about a place, or about an addition at the end, with the reason. */
function disagreement({ agreed, end }: EnvText, at: number | undefined): [at: number, why: string] {
  const before = [...agreed].findLast((start) => start < (at ?? end));
  if (before === undefined) {
    return [0, "follows a byte order mark, which some programs read as part of a name"];
  }
  return at === undefined
    ? [before, "would follow a line that some programs consider unfinished"]
    : [at, "is a part of the value above for some readers"];
}

/** Undoes the edit of one item of a file of environment variables; a value that was changed since stays. */
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
    // The value may be as before the edit: an edit that was cut off may not have reached this file.
    const isGone = last === undefined || (values.at(-1)?.line === last && values.at(-1)?.text === from);
    return isGone ? { text, state: "gone" } : { text, state: "changed", line: lineOf(text, last) };
  }
  const without = (): string => cut(text, ours.line, Math.min(ours.next, text.length), lineEndAdded);
  const reverted = from === null ? without() : applySplices(text, [{ ...ours, text: from }]);
  return { text: reverted, state: "reverted" };
}
