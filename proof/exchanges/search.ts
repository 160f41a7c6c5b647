import { setTimeout as sleep } from "node:timers/promises";
import { blamed, type Failure } from "./blamed.js";
import type { Case } from "./case.js";
import { caseAt, RELOADS_FROM } from "./generate.js";
import { least } from "./shrink.js";
import type { Subject } from "./subject.js";

export interface Finding {
  readonly index: number;
  readonly faults: readonly string[];
  /** The least case that fails alike; the case itself where it did not fail again. */
  readonly least: Case;
  /** False where the case failed among others only. */
  readonly alone: boolean;
}

export interface Search {
  readonly findings: readonly Finding[];
  readonly cases: number;
  readonly exchanges: number;
  /** Exchanges by protocol. */
  readonly protocols: Readonly<Record<string, number>>;
  /** What was broken beside all cases. */
  readonly broken: readonly string[];
  /** The longest time that the event loop stood still among many cases, in milliseconds. */
  readonly heldMs: number;
}

export interface SearchOptions {
  readonly seed: number;
  /** Number of the first case. */
  readonly from: number;
  /** Exchanges that are enough. */
  readonly exchanges: number;
  readonly findingsMax: number;
  /** Told of each failure as it is seen. */
  readonly seen: (failure: Failure) => void;
  /** Told of each finding as it is shrunk. */
  readonly found: (finding: Finding) => void;
}

/** So many cases are played before all has to be at rest, and so many of them during a reload. */
const BATCH = 256;
const RELOADS = 8;
/** Many at a time on a busy machine take this long at most; one alone is done in milliseconds. */
const PATIENCE_MS = 15_000;
const ALONE_PATIENCE_MS = 4_000;
/** Clients that have gone are waited for, and rests of bodies; then nothing is. */
const REST_MS = 10_000;
const ALONE_REST_MS = 3_000;
/** For so long the event loop may not stand still: among many cases, and in one that is played alone. */
const HELD_MS = 400;
const ALONE_HELD_MS = 100;
const HELD_TIMES = 4;
/** A worker that died is followed by another, later each time. */
const RESTART_MS = 15_000;
const SHRINK_MS = 120_000;
/** Failures of one kind that are looked into: not each shows again alone. */
const TIMES_MAX = 3;
const WORKER_DIED = "a worker died";

/** Plays cases on all lanes until there are enough exchanges or failures; what failed is played again alone, and shrunk. */
export async function search(subject: Subject, options: SearchOptions): Promise<Search> {
  const { seed, from, findingsMax } = options;
  const run = new Run(subject, options);
  for (let first = from; !run.isOver; first += BATCH) await run.batch(first);
  const { failures, died } = run;
  failures.push(...blamed(await subject.errorLog(), (index) => caseAt(seed, index)));
  const findings: Finding[] = [];
  const add = (finding: Finding): void => {
    findings.push(finding);
    options.found(finding);
  };
  for (const { index, faults: before } of failures) {
    if (findings.length >= findingsMax) break;
    if (findings.some((known) => known.alone && alike(known.faults, before))) continue;
    const played = caseAt(seed, index);
    const faults = await playAlone(subject, played);
    if (faults.length > 0) {
      if (findings.some((known) => alike(known.faults, faults))) continue;
      add({ index, faults, least: await shrunk(subject, played, faults), alone: true });
      // Whoever was served by a worker as it died is not a finding, but who ended it is.
    } else if (!died) add({ index, faults: before, least: played, alone: false });
  }
  if (died && findings.length === 0)
    add({ index: from, faults: [WORKER_DIED], least: caseAt(seed, from), alone: false });
  const { cases, exchanges, protocols, heldMs } = run;
  return { findings, cases, exchanges, protocols, heldMs, broken: [...run.broken] };
}

/** What was played so far, and what failed. */
class Run {
  readonly failures: Failure[] = [];
  readonly protocols: Record<string, number> = {};
  cases = 0;
  exchanges = 0;
  heldMs = 0;
  died = false;
  readonly broken = new Set<string>();
  /** How often each kind of failure was seen. */
  private readonly times = new Map<string, number>();

  constructor(
    private readonly subject: Subject,
    private readonly options: SearchOptions,
  ) {}

  get isOver(): boolean {
    return this.exchanges >= this.options.exchanges || this.hasEnough;
  }

  private get hasEnough(): boolean {
    return this.times.size >= this.options.findingsMax;
  }

  /** Plays cases from a number on, and some during a reload; then all of them have to be over for the proxy as well. */
  async batch(first: number): Promise<void> {
    const { subject } = this;
    const reloads = RELOADS_FROM + Math.floor(first / BATCH) * RELOADS;
    const played = await this.reloading(reloads);
    const workers = subject.workers();
    for (const law of await subject.unfair()) {
      if (!this.broken.has(law)) this.options.seen({ index: first, faults: [law] });
      this.broken.add(law);
    }
    const endWatch = subject.watch();
    let next = first;
    const playAll = async (lane: Subject["lanes"][number]): Promise<void> => {
      while (next < first + BATCH && !this.isOver) {
        const index = next++;
        played.push(index);
        this.failed(index, await lane.play(this.take(index), PATIENCE_MS));
      }
    };
    await Promise.all(subject.lanes.map(playAll));
    const heldMs = await endWatch();
    this.heldMs = Math.max(this.heldMs, heldMs);
    this.died ||= subject.workers() !== workers;
    const kept = await subject.atRest(REST_MS);
    if (kept.length > 0 || heldMs > HELD_MS) await this.examine(played, kept);
  }

  private async reloading(from: number): Promise<number[]> {
    const { subject } = this;
    const lanes = subject.lanes.slice(0, RELOADS);
    const playing = lanes.map(async (lane, i) => {
      this.failed(from + i, await lane.play(this.take(from + i), PATIENCE_MS));
    });
    await Promise.all(lanes.map((lane) => lane.underWay()));
    this.failed(from, await subject.reload());
    await Promise.all(playing);
    await subject.reloaded();
    return lanes.map((_, i) => from + i);
  }

  /** Looks for the case that left something behind, or held everything up: each is played alone. */
  private async examine(played: readonly number[], kept: readonly string[]): Promise<void> {
    const { subject, options } = this;
    const before = this.failures.length;
    for (const index of played) {
      if (this.hasEnough) return;
      const laws = await lawsBroken(subject, caseAt(options.seed, index), ALONE_PATIENCE_MS);
      if (!this.failures.slice(before).some(({ faults }) => alike(faults, laws))) this.failed(index, laws);
    }
    if (this.failures.length === before) this.failed(played[0]!, kept);
  }

  private failed(index: number, faults: readonly string[]): void {
    if (faults.length === 0) return;
    const kind = kindOf(faults[0]!);
    const times = (this.times.get(kind) ?? 0) + 1;
    this.times.set(kind, times);
    if (times > TIMES_MAX) return;
    this.failures.push({ index, faults });
    this.options.seen({ index, faults });
  }

  private take(index: number): Case {
    const played = caseAt(this.options.seed, index);
    this.cases++;
    for (const { protocol, exchanges } of played.clients) {
      this.exchanges += exchanges.length;
      this.protocols[protocol] = (this.protocols[protocol] ?? 0) + exchanges.length;
    }
    return played;
  }
}

/** Plays one case with nothing beside it. @returns what it broke for others, whatever its clients got */
async function lawsBroken(subject: Subject, played: Case, patienceMs: number): Promise<string[]> {
  const { laws } = await playOnce(subject, played, patienceMs);
  return laws;
}

async function playOnce(
  subject: Subject,
  played: Case,
  patienceMs: number,
): Promise<{ faults: string[]; laws: string[] }> {
  const once = await playedOnce(subject, played, patienceMs);
  // A busy machine stands still as well, but not each time.
  for (let i = 1; i < HELD_TIMES && once.heldMs > ALONE_HELD_MS; i++)
    once.heldMs = Math.min(once.heldMs, (await playedOnce(subject, played, patienceMs)).heldMs);
  if (once.heldMs > ALONE_HELD_MS)
    once.laws.push(`law: the event loop stood still for ${Math.round(once.heldMs)} ms`);
  return once;
}

async function playedOnce(
  subject: Subject,
  played: Case,
  patienceMs: number,
): Promise<{ faults: string[]; laws: string[]; heldMs: number }> {
  const [lane] = subject.lanes;
  const endWatch = played.reloads ? async () => 0 : subject.watch();
  const playing = lane!.play(played, patienceMs);
  if (played.reloads) await lane!.underWay();
  const reload = played.reloads ? await subject.reload() : [];
  const faults = [...(await playing), ...reload];
  if (played.reloads) await subject.reloaded();
  const heldMs = await endWatch();
  const laws = await subject.atRest(ALONE_REST_MS);
  return { faults, laws, heldMs };
}

async function shrunk(subject: Subject, played: Case, faults: readonly string[]): Promise<Case> {
  const until = Date.now() + SHRINK_MS;
  return least(
    played,
    async (simpler) => Date.now() < until && alike(faults, await playAlone(subject, simpler)),
  );
}

/** Plays one case with nothing beside it; the log is looked at as well. */
export async function playAlone(subject: Subject, played: Case): Promise<string[]> {
  const before = subject.workers();
  const { length } = await subject.errorLog();
  const { faults, laws } = await playOnce(subject, played, ALONE_PATIENCE_MS);
  const died = played.reloads ? subject.workers() === "" : subject.workers() !== before;
  if (died) {
    await restarted(subject);
    return [WORKER_DIED, ...faults];
  }
  if (faults.length + laws.length > 0) return [...faults, ...laws];
  const logged = (await subject.errorLog()).slice(length);
  return blamed(logged, (index) => (index === played.index ? played : undefined)).flatMap(
    (failure) => failure.faults,
  );
}

async function restarted(subject: Subject): Promise<void> {
  const until = Date.now() + RESTART_MS;
  while (subject.workers() === "" && Date.now() < until) await sleep(50);
  // It listens a moment later.
  await sleep(500);
}

const kindOf = (fault: string): string =>
  fault
    .replace(/^[\d.]+: /, "")
    .replace(/".*/, "")
    .replace(/\d[\d.]*/g, "#");

/** Whether a case failed in the way that another one did first of all. */
const alike = ([first]: readonly string[], faults: readonly string[]): boolean =>
  first !== undefined && faults.some((fault) => kindOf(fault) === kindOf(first));
