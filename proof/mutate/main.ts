import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../../build/paths.js";
import { randomFrom } from "../kit/randomFrom.js";
import { writeResult } from "../kit/results.js";
import { areaOf, AREAS } from "./areas.js";
import { equivalence } from "./equivalents.js";
import { type Fault, faultsOf } from "./faults.js";
import { Reach } from "./reach.js";
import { sideBySide } from "./sideBySide.js";
import { sourceFiles } from "./sources.js";
import { apart } from "./switches.js";
import { MutatedTree, type NumberedFault } from "./tree.js";

/**
 * `npm run mutate -- [--count N] [--seed S[,S...]] [--area NAME] [--near]`: gives `src` single faults chosen at random, and
 * counts those that the tests notice. Each test runs once without a fault, which shows what it reaches. Then each fault
 * meets those that reach it, nearest first; what they let pass is tried together against all others that reach it.
 *
 *   --count N    how many faults of each seed (default 100)
 *   --seed S     which; several with commas share one run (default: one, printed)
 *   --area NAME  only of this area
 *   --near       only the nearest tests of each fault: what they let pass may be noticed by others
 *   --lanes N    how many faults are tried side by side (default: one more than there are cores, as tests wait a lot)
 *   --record     keeps the table for docs/reliability.md
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      count: { type: "string", default: "100" },
      seed: { type: "string", default: String(randomInt(1, 2 ** 31)) },
      area: { type: "string" },
      near: { type: "boolean", default: false },
      lanes: { type: "string", default: String(availableParallelism() + 1) },
      record: { type: "boolean", default: false },
    },
  });
  if (values.near && values.record) throw new Error("--record keeps runs against all tests, not --near");
  const faults = choose(Number(values.count), values.seed.split(",").map(Number), values.area);
  console.log(`seed ${values.seed}, ${faults.length} faults`);
  const trees: MutatedTree[] = [];
  const remove = (): void => trees.forEach((tree) => tree.remove());
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      remove();
      process.exit(1);
    });
  try {
    for (let lane = 0; lane < Number(values.lanes); lane++) trees.push(new MutatedTree(faults));
    const survivors = await tried(trees, faults, values.near);
    report(faults, survivors, values.record);
  } finally {
    remove();
  }
}

interface ChosenFault extends NumberedFault {
  readonly seed: number;
}

/** Faults chosen at random, each as likely as any other; one that touches a fault of an earlier seed gives way to the next. */
function choose(count: number, seeds: readonly number[], area: string | undefined): ChosenFault[] {
  if (area !== undefined && !AREAS.some(([name]) => name === area))
    throw new Error(`--area is one of ${AREAS.map(([name]) => name).join(", ")}, not ${area}`);
  const all = sourceFiles()
    .filter((file) => area === undefined || areaOf(file) === area)
    .flatMap((file) => faultsOf(file, readFileSync(join(ROOT, file), "utf8")))
    .filter((fault) => equivalence(fault) === undefined);
  let chosen: (Fault & { readonly seed: number })[] = [];
  for (const seed of seeds) {
    const next = randomFrom(seed);
    const order = all.map((fault) => ({ fault, at: next() })).sort((a, b) => a.at - b.at);
    // Twice as many as are wanted: few touch each other.
    const more = order.slice(0, 2 * count).map(({ fault }) => ({ ...fault, seed }));
    chosen = apart([...chosen, ...more]).slice(0, chosen.length + count);
  }
  return chosen.map((fault, id) => ({ ...fault, id }));
}

/** @returns the faults that no test noticed */
async function tried(
  trees: readonly MutatedTree[],
  faults: readonly NumberedFault[],
  near: boolean,
): Promise<NumberedFault[]> {
  const reach = await Reach.of(trees);
  const left: NumberedFault[] = [];
  await sideBySide(trees, faults, async (tree, fault) => {
    const tests = reach.testsOf(fault);
    const by = await noticedBy(tree, fault, reach.within(tests, NEAR_MS));
    const verdict = tests.length === 0 ? `not reached ${text(fault)}` : `passed ${text(fault)}`;
    console.log(by === undefined ? verdict : `noticed ${text(fault)} by ${by}`);
    if (by === undefined) left.push(fault);
  });
  return near ? left : againstTheRest(trees, left, reach);
}

/**
 * A test counts if it fails with the fault, fails with it once more, and passes without: a test that now and then fails
 * has noticed nothing.
 *
 * @returns the test that noticed
 */
async function noticedBy(
  tree: MutatedTree,
  fault: NumberedFault,
  tests: readonly string[],
): Promise<string | undefined> {
  for (let asked = tests; asked.length > 0;) {
    const [test] = await failing(tree, [fault], asked);
    if (test === undefined) return undefined;
    const again = (await failing(tree, [fault], [test])).length > 0;
    if (again && (await failing(tree, [], [test])).length === 0) return test;
    asked = asked.slice(asked.indexOf(test) + 1);
  }
  return undefined;
}

/** @returns the first test that fails with these faults, or with `all` every one */
async function failing(
  tree: MutatedTree,
  faults: readonly NumberedFault[],
  tests: readonly string[],
  all = false,
): Promise<readonly string[]> {
  if (tests.length === 0) return [];
  tree.switchOn(faults);
  const { failed } = await tree.test(tests, { bail: !all, ms: all ? SUITE_MS : TEST_MS });
  tree.switchOn([]);
  if (failed !== undefined) return failed;
  if (all || tests.length === 1) return tests;
  // It is not known which of them came to no end.
  for (const test of tests) if ((await failing(tree, faults, [test])).length > 0) return [test];
  return [];
}

/** Several faults at once against every test that reaches one; who failed is then asked about each fault by itself. */
async function againstTheRest(
  trees: readonly MutatedTree[],
  left: readonly NumberedFault[],
  reach: Reach,
): Promise<NumberedFault[]> {
  const [tree] = trees as [MutatedTree];
  const survivors: NumberedFault[] = [];
  for (let at = 0; at < left.length; at += TOGETHER) {
    const together = left.slice(at, at + TOGETHER);
    const failed = new Set(
      await failing(tree, together, [...new Set(together.flatMap((fault) => reach.testsOf(fault)))], true),
    );
    await sideBySide(trees, together, async (lane, fault) => {
      const by = await noticedBy(
        lane,
        fault,
        reach.testsOf(fault).filter((test) => failed.has(test)),
      );
      console.log(by === undefined ? `survived ${text(fault)}` : `noticed ${text(fault)} by ${by}`);
      if (by === undefined) survivors.push(fault);
    });
  }
  return survivors;
}

/** So long the nearest tests of one fault may take by themselves. */
const NEAR_MS = 60_000;
const TEST_MS = 300_000;
const SUITE_MS = 1_800_000;
const TOGETHER = 12;

const text = ({ file, line, kind, from, to }: Fault): string =>
  `${file}:${line} ${kind}: ${short(from)} -> ${to === "" ? "(left out)" : short(to)}`;

const short = (code: string): string => {
  const line = code.replace(/\s+/g, " ");
  return line.length > 70 ? `${line.slice(0, 67)}...` : line;
};

function report(faults: readonly ChosenFault[], survivors: readonly NumberedFault[], isKept: boolean): void {
  const rows = count(faults, survivors, ({ file }) => areaOf(file));
  const kinds = count(faults, survivors, ({ kind }) => kind);
  const seeds = count(faults, survivors, ({ seed }) => `seed ${seed}`);
  console.log("");
  for (const [name, noticed, all] of [...rows, ...kinds, ...seeds])
    console.log(`${noticed} of ${all}  ${name}`);
  console.log(`\n${faults.length - survivors.length} of ${faults.length} were noticed; not noticed:`);
  for (const fault of survivors) console.log(text(fault));
  if (!isKept) return;
  const noticed = (counted: readonly Count[]): Record<string, string> =>
    Object.fromEntries(counted.map(([name, some, all]) => [name, `${some} of ${all}`]));
  writeResult({
    name: "mutate",
    passed: rows.every(([, some, all]) => some >= 0.95 * all),
    faults: faults.length,
    noticed: faults.length - survivors.length,
    "by seed": noticed(seeds),
    "by area": noticed(rows),
    "by kind": noticed(kinds),
    "not noticed": survivors.map(text),
  });
}

type Count = readonly [name: string, noticed: number, all: number];

function count(
  faults: readonly ChosenFault[],
  survivors: readonly NumberedFault[],
  by: (fault: ChosenFault) => string,
): Count[] {
  const names = [...new Set(faults.map(by))].sort();
  return names.map((name) => {
    const all = faults.filter((fault) => by(fault) === name);
    return [name, all.filter((fault) => !survivors.includes(fault)).length, all.length];
  });
}

void main();
