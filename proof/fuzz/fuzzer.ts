import type { FuzzTarget } from "./target.js";
import { Mutator } from "./mutator.js";
import { HITS } from "./instrument.js";
import { leastBytes } from "../wire/search.js";

/** An input that broke something. */
export interface Crash {
  readonly input: Buffer;
  readonly message: string;
}

export interface FuzzOptions {
  readonly seed: number;
  readonly ms: number;
  readonly corpus: readonly Buffer[];
  /** Told of each input before it runs: one that never ends cannot be told of afterwards. */
  readonly about: (input: Buffer) => void;
}

export interface FuzzRun {
  readonly runs: number;
  /** Inputs of this run that reached something new; those of the corpus aside. */
  readonly added: readonly Buffer[];
  /** Blocks of the sources that were reached. */
  readonly blocks: number;
  readonly slowestMs: number;
  readonly crash: Crash | undefined;
}

/** No input may take more time of a processor; the longest there are have a few KiB. */
const INPUT_MS_MAX = 250;
const INPUT_BYTES_MAX = 4_096;
/** Inputs that are run between two looks at the clock. */
const BATCH = 64;

/** Runs a target on inputs that it bred from those which reached new blocks, or ran them more often than before. */
export function fuzz(target: FuzzTarget, options: FuzzOptions): FuzzRun {
  const hits = (globalThis as unknown as Record<string, Uint8Array>)[HITS]!;
  const coverage = new Coverage(hits);
  const mutator = new Mutator(options.seed, target.dictionary, INPUT_BYTES_MAX);
  const pool = [...options.corpus];
  const added: Buffer[] = [];
  let runs = 0;
  let slowestMs = 0;
  const attempt = (input: Buffer): Crash | undefined => {
    hits.fill(0);
    runs++;
    options.about(input);
    const from = cpuMs();
    const fault = faultOf(target, input);
    const ms = cpuMs() - from;
    slowestMs = Math.max(slowestMs, ms);
    if (fault !== undefined) return { input, message: fault };
    if (ms < INPUT_MS_MAX) return undefined;
    // Once may be the garbage collector's fault.
    const again = cpuMs();
    faultOf(target, input);
    const slow = cpuMs() - again;
    return slow < INPUT_MS_MAX ? undefined : { input, message: `slow: takes ${slow.toFixed(0)} ms` };
  };
  for (const input of options.corpus) {
    const crash = attempt(input);
    if (crash !== undefined) return { runs, added, blocks: coverage.blocks, slowestMs, crash };
    coverage.isNew();
  }
  const deadline = Date.now() + options.ms;
  while (Date.now() < deadline) {
    for (let i = 0; i < BATCH; i++) {
      const input = mutator.next(pool);
      const crash = attempt(input);
      if (crash !== undefined)
        return {
          runs,
          added,
          blocks: coverage.blocks,
          slowestMs,
          crash: { ...crash, input: least(target, crash) },
        };
      if (!coverage.isNew()) continue;
      pool.push(input);
      added.push(input);
    }
  }
  return { runs, added, blocks: coverage.blocks, slowestMs, crash: undefined };
}

/** The fewest and shortest inputs that together reach every block that all of them reach. */
export function distilled(target: FuzzTarget, inputs: readonly Buffer[]): Buffer[] {
  const hits = (globalThis as unknown as Record<string, Uint8Array>)[HITS]!;
  const coverage = new Coverage(hits);
  return inputs
    .toSorted((a, b) => a.length - b.length)
    .filter((input) => {
      hits.fill(0);
      const { blocks } = coverage;
      faultOf(target, input);
      coverage.isNew();
      return coverage.blocks > blocks;
    });
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What an input breaks; undefined if nothing. */
export function faultOf(target: FuzzTarget, input: Buffer): string | undefined {
  try {
    // A copy: what a target keeps must not change with the next input.
    target.run(Buffer.from(input));
    return undefined;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}` : String(error);
  }
}

/** Which blocks were reached how often, roughly: once, twice, a few times, many times. */
class Coverage {
  blocks = 0;
  private readonly seen: Uint8Array;

  constructor(private readonly hits: Uint8Array) {
    this.seen = new Uint8Array(hits.length);
  }

  /** Whether the last run reached something new, which it has not any more. */
  isNew(): boolean {
    let fresh = false;
    const { hits, seen } = this;
    for (let i = 0; i < hits.length; i++) {
      const count = hits[i]!;
      if (count === 0) continue;
      const bucket = BUCKETS[count]!;
      if ((seen[i]! & bucket) !== 0) continue;
      if (seen[i] === 0) this.blocks++;
      seen[i]! |= bucket;
      fresh = true;
    }
    return fresh;
  }
}

const BUCKETS = Uint8Array.from({ length: 256 }, (_, count) => {
  if (count <= 3) return [0, 1, 2, 4][count]!;
  if (count <= 7) return 8;
  if (count <= 15) return 16;
  if (count <= 31) return 32;
  return count <= 127 ? 64 : 128;
});

const SHRINK_MS = 10_000;

/** The shortest input found that breaks the same thing. */
export function least(target: FuzzTarget, { input, message }: Crash): Buffer {
  const kind = message.split(":", 2).join(":");
  return leastBytes(input, (shorter) => faultOf(target, shorter)?.startsWith(kind) === true, SHRINK_MS);
}
