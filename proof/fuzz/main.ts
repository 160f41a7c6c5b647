import { spawnSync } from "node:child_process";
import { createHash, randomInt } from "node:crypto";
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
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { ROOT } from "../../build/paths.js";
import { numberOption } from "../kit/numberOption.js";
import { distilled, faultOf, fuzz, type FuzzRun } from "./fuzzer.js";
import { HITS, instrument } from "./instrument.js";
import type { FuzzTarget } from "./target.js";

/**
 * `npm run fuzz -- [--seconds N] [--seed N] [--target NAME] [--input FILE] [--keep]`: coverage-guided fuzzing of
 * everything that takes bytes of strangers. `--input` repeats one input; `--keep` adds what reached something new to
 * the corpus.
 */
const CORPUS = join(ROOT, "proof/fuzz/corpus");
const FINDINGS = join(ROOT, ".cache/fuzz");
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "60" },
      seed: { type: "string" },
      target: { type: "string" },
      input: { type: "string" },
      keep: { type: "boolean", default: false },
    },
  });
  const seconds = numberOption("--seconds", values.seconds);
  const seed = numberOption("--seed", values.seed ?? String(randomInt(1, 2 ** 31)), 0);
  if (process.env[SUPERVISED] === undefined) return supervise(seconds);
  const { targets, blocks } = await loadTargets();
  const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target);
  if (chosen.length === 0)
    throw new Error(`no such target; there are ${targets.map((t) => t.name).join(", ")}`);
  if (values.input !== undefined) return repeat(chosen, readFileSync(values.input));
  console.log(`seed ${seed}, ${seconds} s for ${chosen.length} targets, ${blocks} blocks counted`);
  let crashed = false;
  for (const target of chosen) {
    const ms = (seconds * 1000) / chosen.length;
    const run = fuzz(target, { seed, ms, corpus: corpusOf(target.name), about: journal(target.name) });
    crashed ||= run.crash !== undefined;
    console.log(describe(target.name, run));
    if (run.crash !== undefined) console.log(saveFinding(target.name, run.crash.input));
    if (values.keep) keep(target, run.added);
  }
  process.exitCode = crashed ? 1 : 0;
}

/** Set in the process that fuzzes. */
const SUPERVISED = "PORTICO_FUZZ_SUPERVISED";
/** Time beside the fuzzing itself: to bundle, to run the corpus, to shrink, to choose what is kept. */
const MORE_MS = 120_000;

/** Fuzzes in a process of its own: an input that never ends can only be told of from outside. */
function supervise(seconds: number): void {
  const { status, error } = spawnSync(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    env: { ...process.env, [SUPERVISED]: "yes" },
    stdio: "inherit",
    timeout: seconds * 1000 + MORE_MS,
    killSignal: "SIGKILL",
  });
  process.exitCode = status ?? 1;
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

function repeat(targets: readonly FuzzTarget[], input: Buffer): void {
  for (const target of targets) {
    const fault = faultOf(target, input);
    console.log(`${target.name}: ${fault ?? "holds"}`);
    if (fault !== undefined) process.exitCode = 1;
  }
}

function describe(name: string, { runs, added, blocks, slowestMs, crash }: FuzzRun): string {
  const figures = `${runs} inputs, ${blocks} blocks reached, ${added.length} new ways, slowest ${slowestMs.toFixed(1)} ms`;
  return `${crash === undefined ? "ok  " : "FAIL"} ${name.padEnd(16)} ${figures}${crash === undefined ? "" : `\n${crash.message}`}`;
}

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

void main();
