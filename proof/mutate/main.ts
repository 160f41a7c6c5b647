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
import { sourceFiles } from "./sources.js";
import { apart } from "./switches.js";
import { MutatedTree, type NumberedFault } from "./tree.js";

/**
 * `npm run mutate -- [--count N] [--seed S] [--area NAME] [--near N]`: gives `src` single faults chosen at random, and
 * counts those that the tests notice. First come the tests that reach a fault, nearest first; what they let pass is tried
 * together against the rest.
 *
 *   --count N    how many faults (default 100)
 *   --seed S     which (default: printed)
 *   --area NAME  only of this area
 *   --near N     only the N nearest test files of each fault: what they let pass may be noticed by others
 *   --lanes N    how many faults are tried side by side (default: one more than there are cores, as tests wait a lot)
 *   --record     keeps the table for docs/reliability.md
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      count: { type: "string", default: "100" },
      seed: { type: "string" },
      area: { type: "string" },
      near: { type: "string" },
      lanes: { type: "string", default: String(availableParallelism() + 1) },
      record: { type: "boolean", default: false },
    },
  });
  const near = values.near === undefined ? undefined : Number(values.near);
  if (near !== undefined && values.record)
    throw new Error("--record keeps runs against all tests, not --near");
  const seed = Number(values.seed ?? randomInt(1, 2 ** 31));
  const faults = choose(Number(values.count), seed, values.area);
  const tests = near === undefined ? "all tests" : `only the ${near} nearest test files of each`;
  console.log(`seed ${seed}, ${faults.length} faults, ${tests}`);
  const trees: MutatedTree[] = [];
  const remove = (): void => trees.forEach((tree) => tree.remove());
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      remove();
      process.exit(1);
    });
  try {
    for (let lane = 0; lane < Number(values.lanes); lane++) trees.push(new MutatedTree(faults));
    const survivors = await tried(trees, faults, near);
    report(faults, survivors, values.record ? seed : undefined);
  } finally {
    remove();
  }
}

/** Faults chosen at random, each as likely as any other. */
function choose(count: number, seed: number, area: string | undefined): NumberedFault[] {
  if (area !== undefined && !AREAS.some(([name]) => name === area))
    throw new Error(`--area is one of ${AREAS.map(([name]) => name).join(", ")}, not ${area}`);
  const all = sourceFiles()
    .filter((file) => area === undefined || areaOf(file) === area)
    .flatMap((file) => faultsOf(file, readFileSync(join(ROOT, file), "utf8")))
    .filter((fault) => equivalence(fault) === undefined);
  const next = randomFrom(seed);
  const order = all.map((fault) => ({ fault, at: next() })).sort((a, b) => a.at - b.at);
  return apart(order.map(({ fault }) => fault))
    .slice(0, count)
    .map((fault, id) => ({ ...fault, id }));
}

/** @returns the faults that no test noticed */
async function tried(
  trees: readonly MutatedTree[],
  faults: readonly NumberedFault[],
  only: number | undefined,
): Promise<NumberedFault[]> {
  const [tree] = trees as [MutatedTree];
  const reach = new Reach(tree.root);
  const near = new Map(faults.map(({ file }) => [file, reach.testsOf(file).slice(0, only ?? NEAR_MAX)]));
  if ((await failing(tree, [], [SOUND], true)).length > 0)
    throw new Error(`${SOUND} fails in a tree without a fault: so would all tests`);
  const unsound = new Set<string>();
  const left: NumberedFault[] = [];
  await sideBySide(trees, faults, async (lane, fault) => {
    const by = await noticedBy(lane, fault, near.get(fault.file)!, unsound);
    console.log(by === undefined ? `passed  ${text(fault)}` : `noticed ${text(fault)} by ${by}`);
    if (by === undefined) left.push(fault);
  });
  return only === undefined ? againstTheRest(trees, left, reach.tests, unsound) : left;
}

/** Each tree takes the next fault when it is done with one. */
async function sideBySide(
  trees: readonly MutatedTree[],
  faults: readonly NumberedFault[],
  act: (tree: MutatedTree, fault: NumberedFault) => Promise<void>,
): Promise<void> {
  const waiting = [...faults];
  const lane = async (tree: MutatedTree): Promise<void> => {
    for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift()) await act(tree, fault);
  };
  await Promise.all(trees.map(lane));
}

/**
 * A test counts if it fails with the fault, fails with it once more, and passes without: neither a test that now and then
 * fails nor one that reads the sources themselves has noticed anything.
 *
 * @param unsound tests that fail without a fault; those found are added
 * @returns the test that noticed
 */
async function noticedBy(
  tree: MutatedTree,
  fault: NumberedFault,
  tests: readonly string[],
  unsound: Set<string>,
): Promise<string | undefined> {
  let asked = tests.filter((test) => !unsound.has(test));
  while (asked.length > 0) {
    const [test] = await failing(tree, [fault], asked, true);
    if (test === undefined) return undefined;
    const again = await failing(tree, [fault], [test], true);
    if (again.length > 0 && (await failing(tree, [], [test], true)).length === 0) return test;
    if (again.length > 0) {
      unsound.add(test);
      console.log(`left out, as it fails without a fault: ${test}`);
    }
    asked = asked.slice(asked.indexOf(test) + 1);
  }
  return undefined;
}

/** @returns the tests that fail with these faults: the first of them, or all */
async function failing(
  tree: MutatedTree,
  faults: readonly NumberedFault[],
  tests: readonly string[],
  bail: boolean,
): Promise<readonly string[]> {
  tree.switchOn(faults);
  const { failed } = await tree.test(tests, { bail, ms: bail ? NEAR_MS : SUITE_MS });
  tree.switchOn([]);
  if (failed === undefined && tests.length > 1 && bail) {
    // It is not known which of them came to no end.
    for (const test of tests) if ((await failing(tree, faults, [test], true)).length > 0) return [test];
    return [];
  }
  return failed ?? tests;
}

/** Several faults at once against every test; who failed is then asked about each fault by itself. */
async function againstTheRest(
  trees: readonly MutatedTree[],
  left: readonly NumberedFault[],
  tests: readonly string[],
  unsound: Set<string>,
): Promise<NumberedFault[]> {
  const [tree] = trees as [MutatedTree];
  const survivors: NumberedFault[] = [];
  for (let at = 0; at < left.length; at += TOGETHER) {
    const together = left.slice(at, at + TOGETHER);
    const failed = await failing(
      tree,
      together,
      tests.filter((test) => !unsound.has(test)),
      false,
    );
    await sideBySide(trees, together, async (lane, fault) => {
      const by = await noticedBy(lane, fault, failed, unsound);
      console.log(by === undefined ? `survived ${text(fault)}` : `noticed  ${text(fault)} by ${by}`);
      if (by === undefined) survivors.push(fault);
    });
  }
  return survivors;
}

/** A test that cannot fail here unless jest itself does. */
const SOUND = "proof/mutate/faults.test.ts";
/** Test files that are asked about one fault by itself. */
const NEAR_MAX = 12;
const NEAR_MS = 300_000;
const SUITE_MS = 1_800_000;
const TOGETHER = 8;

const text = ({ file, line, kind, from, to }: Fault): string =>
  `${file}:${line} ${kind}: ${short(from)} -> ${to === "" ? "(left out)" : short(to)}`;

const short = (code: string): string => {
  const line = code.replace(/\s+/g, " ");
  return line.length > 70 ? `${line.slice(0, 67)}...` : line;
};

function report(
  faults: readonly NumberedFault[],
  survivors: readonly NumberedFault[],
  seed: number | undefined,
): void {
  const rows = count(faults, survivors, ({ file }) => areaOf(file));
  const kinds = count(faults, survivors, ({ kind }) => kind);
  console.log("");
  for (const [name, noticed, all] of [...rows, ...kinds]) console.log(`${noticed} of ${all}  ${name}`);
  console.log(`\n${faults.length - survivors.length} of ${faults.length} were noticed; not noticed:`);
  for (const fault of survivors) console.log(text(fault));
  if (seed === undefined) return;
  const noticed = (counted: readonly Count[]): Record<string, string> =>
    Object.fromEntries(counted.map(([name, some, all]) => [name, `${some} of ${all}`]));
  writeResult({
    name: "mutate",
    passed: rows.every(([, some, all]) => some >= 0.95 * all),
    seed,
    faults: faults.length,
    noticed: faults.length - survivors.length,
    "by area": noticed(rows),
    "by kind": noticed(kinds),
    "not noticed": survivors.map(text),
  });
}

type Count = readonly [name: string, noticed: number, all: number];

function count(
  faults: readonly NumberedFault[],
  survivors: readonly NumberedFault[],
  by: (fault: Fault) => string,
): Count[] {
  const names = [...new Set(faults.map(by))].sort();
  return names.map((name) => {
    const all = faults.filter((fault) => by(fault) === name);
    return [name, all.filter((fault) => !survivors.includes(fault)).length, all.length];
  });
}

void main();
