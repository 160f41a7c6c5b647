import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { randomFrom } from "../kit/randomFrom.js";
import { areaOf } from "./areas.js";
import { equivalence } from "./equivalents.js";
import { type Fault, faultsOf } from "./faults.js";
import { HELP, type MutateOptions, parseOptions } from "./options.js";
import { Progress } from "./progress.js";
import { Reach, within } from "./reach.js";
import { sideBySide } from "./sideBySide.js";
import { sourceFiles } from "./sources.js";
import { apart } from "./switches.js";
import { type ChosenFault, record, recordedRun, runOf, show, text } from "./tables.js";
import { type AskedTests, type FailedTest, MutatedTree, type NumberedFault } from "./tree.js";

/** `npm run mutate` */
async function main(options: MutateOptions): Promise<void> {
  const { seeds, near } = options;
  const all = everyFault(options.area);
  const changes = (fault: Fault): boolean => equivalence(fault) === undefined;
  const again = options.again ? recordedRun(all, changes) : undefined;
  const faults = again?.faults ?? choose(all.filter(changes), options.count, seeds);
  console.log(`${again ? "once more" : `seed ${seeds.join(",")}`}, ${faults.length} faults`);
  const progress = new Progress(options.progress, faults);
  const trees: MutatedTree[] = [];
  const remove = (): void => trees.forEach((tree) => tree.remove());
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      remove();
      process.exit(1);
    });
  try {
    for (let lane = 0; lane < options.lanes; lane++) trees.push(new MutatedTree(faults));
    const survivors = await tried(trees, faults, { near, among: options.tests, progress });
    const run = again?.with(survivors) ?? runOf(faults, survivors);
    show(run);
    if (options.record) record(run);
  } finally {
    remove();
  }
}

/** Those of the sources, or of one area of them. */
const everyFault = (area: string | undefined): Fault[] =>
  sourceFiles()
    .filter((file) => area === undefined || areaOf(file) === area)
    .flatMap((file) => faultsOf(file, readFileSync(join(ROOT, file), "utf8")));

/** Faults chosen at random, each as likely as any other; one that touches a fault of an earlier seed gives way to the next. */
function choose(all: readonly Fault[], count: number, seeds: readonly number[]): ChosenFault[] {
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
  faults: readonly ChosenFault[],
  { near, among, progress }: { near: boolean; among: RegExp; progress: Progress },
): Promise<ChosenFault[]> {
  const reach = await Reach.of(trees, among, progress);
  const left: ChosenFault[] = [];
  await sideBySide(trees, faults, async (tree, fault) => {
    const tests = reach.testsOf(fault);
    const by = await progress.noticed("near", fault, () => noticedBy(tree, fault, within(tests, NEAR_MS)));
    const verdict = tests.length === 0 ? `not reached ${text(fault)}` : `passed ${text(fault)}`;
    console.log(by === undefined ? verdict : `noticed ${text(fault)} by ${by}`);
    if (by === undefined) left.push(fault);
  });
  return near ? left : againstTheRest(trees, left, reach, progress);
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
  tests: readonly AskedTests[],
): Promise<string | undefined> {
  for (let asked = tests; asked.length > 0;) {
    const [first] = await failing(tree, [fault], asked);
    if (first === undefined) return undefined;
    if ((await failsAgain(tree, [fault], first)) && (await passes(tree, first))) return first.file;
    asked = asked.slice(asked.findIndex(({ file }) => file === first.file) + 1);
  }
  return undefined;
}

/** Without a fault; each test is asked once. */
function passes(tree: MutatedTree, test: FailedTest): Promise<boolean> {
  const key = `${test.file} ${test.name}`;
  const known = passing.get(key) ?? failsAgain(tree, [], test).then((fails) => !fails);
  passing.set(key, known);
  return known;
}

const passing = new Map<string, Promise<boolean>>();

/** By itself, or else with those before it in its file, on which it may depend. */
async function failsAgain(
  tree: MutatedTree,
  faults: readonly NumberedFault[],
  { file, name }: FailedTest,
): Promise<boolean> {
  const fails = async (asked: AskedTests): Promise<boolean> =>
    (await failing(tree, faults, [asked])).length > 0;
  const byItself = name !== undefined && (await fails({ file, names: [name] }));
  return byItself === faults.length > 0 ? byItself : fails({ file });
}

/** @returns the first test that fails with these faults, or with `all` the first of every file */
async function failing(
  tree: MutatedTree,
  faults: readonly NumberedFault[],
  tests: readonly AskedTests[],
  all = false,
): Promise<readonly FailedTest[]> {
  if (tests.length === 0) return [];
  tree.switchOn(faults);
  const failed = await tree.test(tests, all);
  tree.switchOn([]);
  return failed;
}

/** Several faults at once against every test that reaches one; who failed is then asked about each fault by itself. */
async function againstTheRest(
  trees: readonly MutatedTree[],
  left: readonly ChosenFault[],
  reach: Reach,
  progress: Progress,
): Promise<ChosenFault[]> {
  const [tree] = trees as [MutatedTree];
  const survivors: ChosenFault[] = [];
  for (let at = 0; at < left.length; at += TOGETHER) {
    const together = left.slice(at, at + TOGETHER);
    let found: Promise<readonly string[]> | undefined;
    await sideBySide(trees, together, async (lane, fault) => {
      const by = await progress.noticed("rest", fault, async () => {
        const suspects = await (found ??= suspectsOf(tree, together, reach));
        // Whole files: processes that live long do not say of every test that it reached a fault.
        const files = reach.testsOf(fault).map(({ file }) => ({ file }));
        return noticedBy(
          lane,
          fault,
          files.filter(({ file }) => suspects.includes(file)),
        );
      });
      console.log(by === undefined ? `survived ${text(fault)}` : `noticed ${text(fault)} by ${by}`);
      if (by === undefined) survivors.push(fault);
    });
  }
  return survivors;
}

/** Test files that fail with these faults together. */
async function suspectsOf(
  tree: MutatedTree,
  together: readonly ChosenFault[],
  reach: Reach,
): Promise<readonly string[]> {
  const files = [...new Set(together.flatMap((fault) => reach.testsOf(fault).map(({ file }) => file)))];
  const asked = files.map((file) => ({ file }));
  return (await failing(tree, together, asked, true)).map(({ file }) => file);
}

/** So long the nearest tests of one fault may take by themselves. */
const NEAR_MS = 60_000;
const TOGETHER = 24;

try {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) console.log(HELP);
  else void main(options);
} catch (error) {
  console.error(`mutate: ${(error as Error).message}`);
  process.exitCode = 2;
}
