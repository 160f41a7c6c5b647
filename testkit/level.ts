import { setTimeout as sleep } from "node:timers/promises";
import { askMaster } from "../src/runtime/supervisor/control/askMaster.js";
import type { Holdings } from "../src/runtime/worker/holdings.js";
import { childrenOf, descriptorsOf } from "./processes.js";

/**
 * What a front end holds, seen from outside and as it says itself. At rest, with all clients gone and all deadlines
 * passed, it is what it was before: nothing that a client or an upstream does may change it.
 */
export interface Level {
  readonly workers: readonly number[];
  /** Of master and workers, by what they are open on. */
  readonly descriptors: readonly string[];
  /** Sums over the workers, draining ones too. */
  readonly holdings: Readonly<Record<keyof Holdings, number>>;
}

/** Where it can be asked. */
export interface Asked {
  readonly process: { readonly pid?: number | undefined };
  /** Path of its control socket. */
  readonly control: string;
}

export async function levelOf({ process, control }: Asked): Promise<Level> {
  const outcome = await askMaster(control, { command: "holdings" }, RESPONSE_MS);
  if (!outcome.ok) throw new Error(`a master does not say what it holds: ${outcome.problems[0]?.message}`);
  const workers = outcome.value.workers ?? [];
  const holdings: Record<string, number> = {};
  for (const one of workers)
    for (const [name, count] of Object.entries(one.holdings ?? {}))
      holdings[name] = (holdings[name] ?? 0) + (count as number);
  const pids = workers.map(({ pid }) => pid);
  const descriptors = [process.pid!, ...pids].flatMap(descriptorsOf).map(kindOf);
  return { workers: pids, descriptors, holdings: holdings as Level["holdings"] };
}

const RESPONSE_MS = 30_000;

/** Numbers of sockets, pipes and processes tell nothing; the control socket's own connection comes and goes. */
const kindOf = (descriptor: string): string => descriptor.replace(/\d+/g, "#");

/** They count since the start. */
const COUNTERS: ReadonlySet<string> = new Set(["exchangesBegun", "exchangesOver", "bytesForNobody"]);

/** What may have been read for a client when it goes away. */
const PIECE_BYTES_MAX = 1_048_576;

/** What is there that was not before, in words; empty if nothing. */
export function more(now: Level, before: Level): string[] {
  const { holdings } = now;
  const kept = Object.entries(holdings).flatMap(([name, count]) => {
    const was = before.holdings[name as keyof Holdings];
    if (COUNTERS.has(name)) return [];
    if (count < 0) return [`law: less than none: ${name} ${count}`];
    return count > was ? [`law: kept: ${name} ${count}, before ${was}`] : [];
  });
  const lost = holdings.exchangesBegun - holdings.exchangesOver;
  // Since the start of the workers: others may have taken their places.
  const { exchangesOver: over, bytesForNobody: unread } = holdings;
  return [
    ...kept,
    ...(lost === 0 ? [] : [`law: of the requests that began, not over: ${lost}`]),
    ...(unread <= over * PIECE_BYTES_MAX
      ? []
      : [`law: bytes read for nobody: ${unread}, of ${over} requests`]),
    ...moreDescriptors(now.descriptors, before.descriptors),
    ...(now.workers.length > before.workers.length
      ? [`law: kept: workers ${now.workers.length}, before ${before.workers.length}`]
      : []),
  ];
}

function moreDescriptors(now: readonly string[], before: readonly string[]): string[] {
  const left = [...before];
  const added = now.filter((kind) => {
    const at = left.indexOf(kind);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
  // As many others are gone: one kind stands for another.
  if (added.length <= left.length) return [];
  return [`law: kept: descriptors ${now.length}, before ${before.length}: ${[...new Set(added)].join(", ")}`];
}

/**
 * Waits until nothing is there that was not before.
 * @returns what still is, once that has taken too long; and how it stands now
 */
export async function comeToRest(
  asked: Asked,
  before: Level,
  patienceMs: number,
): Promise<{ readonly kept: readonly string[]; readonly level: Level }> {
  const until = Date.now() + patienceMs;
  for (let pauseMs = 2; ; pauseMs = Math.min(100, pauseMs * 2)) {
    const level = await levelOf(asked);
    const kept = more(level, before);
    if (kept.length === 0 || Date.now() >= until) return { kept, level };
    await sleep(pauseMs);
  }
}

/** How it stands once it has stood still for a moment. */
export async function levelAtRest(asked: Asked): Promise<Level> {
  let level = await levelOf(asked);
  for (let same = 0; same < STILL_LOOKS;) {
    await sleep(STILL_MS);
    const now = await levelOf(asked);
    same = more(now, level).length === 0 && more(level, now).length === 0 ? same + 1 : 0;
    level = now;
  }
  return level;
}

const STILL_LOOKS = 5;
const STILL_MS = 40;

/** A front end whose level is known, and is to be the same again whenever it is at rest. */
export class Watched {
  private running: string;

  private constructor(
    private readonly asked: Asked,
    private level: Level,
  ) {
    this.running = workers(asked);
  }

  static async start(asked: Asked): Promise<Watched> {
    return new Watched(asked, await levelAtRest(asked));
  }

  /** Whether another worker has taken the place of one, since this or {@link atRest} was called. */
  get died(): boolean {
    const before = this.running;
    this.running = workers(this.asked);
    return this.running !== before;
  }

  /** Waits until it holds nothing that it did not hold at first. @returns what it still does after that time */
  async atRest(patienceMs: number): Promise<string[]> {
    const died = this.died ? ["a worker died"] : [];
    const { kept, level } = await comeToRest(this.asked, this.level, patienceMs);
    // What is kept is kept for ever: it is not to be found again.
    if (kept.length > 0) this.level = level;
    return [...died, ...kept];
  }
}

/** Process ids of the workers. */
const workers = ({ process }: Asked): string => childrenOf(process.pid!).join(" ");
