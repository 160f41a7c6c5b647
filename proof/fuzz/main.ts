import { createHash } from "node:crypto";
import {
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../../build/paths.js";
import { again, laboratory, numberOf, seedOption } from "../../testkit/laboratory.js";
import { distilled, faultOf, fuzz } from "./fuzzer.js";
import { HITS, instrument } from "./instrument.js";
import type { FuzzTarget } from "./target.js";

const CORPUS = join(ROOT, "proof/fuzz/corpus");
const FINDINGS = join(ROOT, ".cache/fuzz");
/** Set in the process that fuzzes. */
const SUPERVISED = "PORTICO_FUZZ_SUPERVISED";
/** Time beside the fuzzing itself: to bundle, to run the corpus, to shrink, to choose what is kept. */
const MORE_MS = 120_000;

laboratory(
  "npm run fuzz -- [OPTIONS]: coverage-guided fuzzing of everything that takes bytes of strangers",
  {
    seconds: ["60", "for all targets"],
    seed: [undefined, "which inputs (default: others in each run)"],
    target: [undefined, "this one alone"],
    input: [undefined, "a file: only this input"],
    keep: [false, "adds what reached something new to the corpus"],
  },
  async (given) => {
    const seconds = numberOf("seconds", given.seconds);
    if (process.env[SUPERVISED] === undefined) return supervise(seconds);
    const { targets, blocks } = await loadTargets();
    const chosen = targets.filter(({ name }) => name === (given.target ?? name));
    if (chosen.length === 0)
      throw new Error(`no such target; there are ${targets.map((t) => t.name).join(", ")}`);
    if (given.input !== undefined) return { wrong: faultsOf(chosen, readFileSync(given.input)) };
    const seed = seedOption(given.seed);
    console.log(`${seconds} s for ${chosen.length} targets, ${blocks} blocks counted`);
    const wrong: string[] = [];
    for (const target of chosen) {
      const { name } = target;
      const ms = (seconds * 1000) / chosen.length;
      const run = fuzz(target, { seed, ms, corpus: corpusOf(name), about: journal(name) });
      const figures = `${run.runs} inputs, ${run.blocks} blocks reached, ${run.added.length} new ways`;
      console.log(`${name.padEnd(16)} ${figures}, slowest ${run.slowestMs.toFixed(1)} ms`);
      if (run.crash !== undefined)
        wrong.push(`${name}: ${run.crash.message}\n${saveFinding(name, run.crash.input)}`);
      if (given.keep !== undefined) keep(target, run.added);
    }
    return { wrong };
  },
);

/** Fuzzes in a process of its own: an input that never ends can only be told of from outside. */
function supervise(seconds: number): undefined {
  const { error } = again(SUPERVISED, { timeout: seconds * 1000 + MORE_MS, killSignal: "SIGKILL" });
  if (error === undefined) return;
  console.log(`${error.message}: the newest ${join(FINDINGS, "current-*")} holds the input that did not end`);
}

/** The targets with the sources below them, bundled so that each block counts its runs. */
async function loadTargets(): Promise<{ targets: readonly FuzzTarget[]; blocks: number }> {
  const folder = mkdtempSync(join(tmpdir(), "portico-fuzz-"));
  try {
    const outfile = join(folder, "targets.cjs");
    const { plugin, blocks } = instrument();
    await build({
      absWorkingDir: ROOT,
      entryPoints: ["proof/fuzz/targets.ts"],
      outfile,
      bundle: true,
      format: "cjs",
      platform: "node",
      plugins: [plugin],
      logLevel: "warning",
    });
    const count = blocks().length;
    (globalThis as unknown as Record<string, Uint8Array>)[HITS] = new Uint8Array(count);
    const { TARGETS } = (await import(outfile)) as { TARGETS: readonly FuzzTarget[] };
    return { targets: TARGETS, blocks: count };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Keeps the input that is about to run in a file. */
function journal(target: string): (input: Buffer) => void {
  mkdirSync(FINDINGS, { recursive: true });
  const file = openSync(currentInput(target), "w");
  return (input) => {
    ftruncateSync(file, input.length);
    writeSync(file, input, 0, input.length, 0);
  };
}

const currentInput = (target: string): string => join(FINDINGS, `current-${target}`);

/** Inputs of a target, one char a byte, in one file. */
const corpusFile = (target: string): string => join(CORPUS, `${target}.json`);

function corpusOf(target: string): Buffer[] {
  const file = corpusFile(target);
  if (!existsSync(file)) return [];
  return (JSON.parse(readFileSync(file, "utf8")) as string[]).map((input) => Buffer.from(input, "latin1"));
}

/** Replaces the corpus of a target by what is needed of it and of new inputs. */
function keep(target: FuzzTarget, added: readonly Buffer[]): void {
  const needed = distilled(target, [...corpusOf(target.name), ...added]);
  const inputs = needed.map((input) => input.toString("latin1")).sort();
  writeFileSync(corpusFile(target.name), `${JSON.stringify(inputs, undefined, 2)}\n`);
}

const faultsOf = (targets: readonly FuzzTarget[], input: Buffer): string[] =>
  targets.flatMap((target) => {
    const fault = faultOf(target, input);
    return fault === undefined ? [] : [`${target.name}: ${fault}`];
  });

function saveFinding(target: string, input: Buffer): string {
  const file = save(FINDINGS, input);
  return `input ${JSON.stringify(input.toString("latin1"))}\nagain: npm run fuzz -- --target ${target} --input ${file}`;
}

/** Under a name made of the content, as usual with corpora. */
function save(folder: string, input: Buffer): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, createHash("sha256").update(input).digest("hex").slice(0, 16));
  writeFileSync(file, input);
  return file;
}
