import { readResults, writeResult } from "../kit/results.js";
import { areaOf } from "./areas.js";
import type { Fault, FaultKind } from "./faults.js";
import type { NumberedFault } from "./tree.js";

/** A fault of a run, and by which seed it was chosen. */
export type ChosenFault = NumberedFault & { readonly seed: number };

type Counted = Pick<ChosenFault, "seed" | "file" | "kind">;

/** What is counted by itself. */
const TABLES = {
  "by seed": ({ seed }: Counted) => `seed ${seed}`,
  "by area": ({ file }: Counted) => areaOf(file),
  "by kind": ({ kind }: Counted): string => kind,
};
type Table = keyof typeof TABLES;
const NAMES = Object.keys(TABLES) as Table[];

/** How many faults there are of each group of a table. */
type Sizes = Readonly<Record<string, number>>;

/** A run as it was recorded: how many faults it tried, and which of them the tests did not notice. */
export interface Run {
  readonly sizes: Readonly<Record<Table, Sizes>>;
  readonly left: readonly ChosenFault[];
  /** What it found before tests were added, if only what was not noticed was tried again. */
  readonly first?: string | undefined;
}

export const runOf = (faults: readonly ChosenFault[], left: readonly ChosenFault[]): Run => ({
  sizes: tables((table) => sizesOf(faults, table)),
  left,
});

const tables = <T>(of: (table: Table) => T): Record<Table, T> =>
  Object.fromEntries(NAMES.map((table) => [table, of(table)])) as Record<Table, T>;

function sizesOf(faults: readonly ChosenFault[], table: Table): Sizes {
  const groups = faults.map(TABLES[table]).sort();
  return Object.fromEntries(groups.map((name) => [name, groups.filter((one) => one === name).length]));
}

/** A recorded run in which some faults that it did not notice are tried again. */
export interface RunAgain {
  /** Those that are still there. */
  readonly faults: readonly ChosenFault[];
  /** @param left those of them that are not noticed now either */
  readonly with: (left: readonly ChosenFault[]) => Run;
}

/**
 * @param all every fault that the sources can have
 * @param changes whether one of them changes anything
 */
export function recordedRun(
  all: readonly Fault[],
  changes: (fault: Fault) => boolean,
  folder?: string,
): RunAgain {
  const last = readResults(folder).get("mutate");
  if (last === undefined) throw new Error("--again needs a run that was recorded");
  const recorded = (last["not noticed"] as readonly string[]).map(parsed);
  const there = recorded.map(({ file, line, name, seed }) => {
    const same = all.filter((fault) => fault.file === file && nameOf(fault) === name);
    const [nearest] = same.sort((a, b) => Math.abs(a.line - line) - Math.abs(b.line - line));
    return nearest && changes(nearest) ? { ...nearest, seed } : undefined;
  });
  const faults = there.filter((fault) => fault !== undefined).map((fault, id) => ({ ...fault, id }));
  // Where the code is gone, or the fault is known to change nothing, there is nothing to be noticed.
  const gone = recorded.filter((_, i) => there[i] === undefined);
  const sizes = tables((table): Sizes => {
    const noticed = Object.entries(last[table] as Record<string, string>);
    return Object.fromEntries(
      noticed.map(([group, figure]) => {
        const all = Number(/ of (\d+)$/.exec(figure)![1]);
        return [group, all - gone.filter((one) => TABLES[table](one) === group).length];
      }),
    );
  });
  const first =
    (last["first tried"] as string | undefined) ??
    `${last["noticed"]} of ${last["faults"]}, commit ${last["commit"]}`;
  return { faults, with: (left) => ({ sizes, left, first }) };
}

export function show({ sizes, left }: Run): void {
  console.log("");
  for (const table of NAMES)
    for (const [group, figure] of Object.entries(figures(sizes, left, table)))
      console.log(`${figure}  ${group}`);
  const all = total(sizes);
  console.log(`\n${all - left.length} of ${all} were noticed; not noticed:`);
  for (const fault of left) console.log(text(fault));
}

/** Keeps it for docs/reliability.md. */
export function record({ sizes, left, first }: Run): void {
  const enough = (table: Table): boolean =>
    Object.entries(sizes[table]).every(
      ([group, all]) => left.filter((fault) => TABLES[table](fault) === group).length <= 0.05 * all,
    );
  writeResult({
    name: "mutate",
    passed: enough("by area") && enough("by kind"),
    faults: total(sizes),
    noticed: total(sizes) - left.length,
    ...(first !== undefined && { "first tried": first }),
    ...tables((table) => figures(sizes, left, table)),
    "not noticed": left.map((fault) => `seed ${fault.seed}: ${text(fault)}`),
  });
}

const total = (sizes: Run["sizes"]): number =>
  Object.values(sizes["by area"]).reduce((sum, one) => sum + one, 0);

function figures(sizes: Run["sizes"], left: readonly ChosenFault[], table: Table): Record<string, string> {
  const passed = left.map(TABLES[table]);
  return Object.fromEntries(
    Object.entries(sizes[table]).map(([group, all]) => {
      const noticed = all - passed.filter((one) => one === group).length;
      return [group, `${noticed} of ${all}`];
    }),
  );
}

export const text = (fault: Fault): string => `${fault.file}:${fault.line} ${nameOf(fault)}`;

const nameOf = ({ kind, from, to }: Fault): string =>
  `${kind}: ${short(from)} -> ${to === "" ? "(left out)" : short(to)}`;

const short = (code: string): string => {
  const line = code.replace(/\s+/g, " ");
  return line.length > 70 ? `${line.slice(0, 67)}...` : line;
};

/** What a record says of a fault that was not noticed. */
function parsed(recorded: string): Counted & { readonly line: number; readonly name: string } {
  const [, seed, file, line, name, kind] = /^seed (\d+): (.*?):(\d+) ((\w+): .*)$/.exec(recorded)!;
  return { seed: Number(seed), file: file!, line: Number(line), name: name!, kind: kind as FaultKind };
}
