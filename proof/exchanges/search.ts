import { setTimeout as sleep } from "node:timers/promises";
import type { Case } from "./case.js";
import { caseAt } from "./generate.js";
import { faultsOf } from "./judge.js";
import type { Lane } from "./lane.js";
import { least } from "./shrink.js";

/** What cases are played on. */
export interface Subject {
  readonly lanes: readonly Pick<Lane, "play">[];
  /** Process ids of the workers. */
  workers(): string;
  /** The whole error log, once all that was logged so far is in it. */
  errorLog(): Promise<string>;
}

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
}

export interface SearchOptions {
  readonly seed: number;
  /** Number of the first case. */
  readonly from: number;
  /** Exchanges that are enough. */
  readonly exchanges: number;
  readonly findingsMax: number;
  /** Told of each finding as it is shrunk. */
  readonly found: (finding: Finding) => void;
}

interface Failure {
  readonly index: number;
  readonly faults: readonly string[];
}

/** Many at a time on a busy machine take this long at most; one alone is done in milliseconds. */
const PATIENCE_MS = 30_000;
const ALONE_PATIENCE_MS = 4_000;
/** A worker that died is followed by another, later each time. */
const RESTART_MS = 15_000;
const SHRINK_MS = 120_000;
const WORKER_DIED = "a worker died";

/** Plays cases on all lanes until there are enough exchanges or failures; what failed is played again alone, and shrunk. */
export async function search(subject: Subject, options: SearchOptions): Promise<Search> {
  const { seed, from, findingsMax } = options;
  const failures: Failure[] = [];
  const protocols: Record<string, number> = {};
  const workers = subject.workers();
  let exchanges = 0;
  let index = from;
  const playAll = async (lane: Subject["lanes"][number]): Promise<void> => {
    while (exchanges < options.exchanges && failures.length < findingsMax) {
      const played = caseAt(seed, index++);
      for (const client of played.clients) {
        exchanges += client.exchanges.length;
        protocols[client.protocol] = (protocols[client.protocol] ?? 0) + client.exchanges.length;
      }
      const faults = await lane.play(played, PATIENCE_MS);
      if (faults.length > 0) failures.push({ index: played.index, faults });
    }
  };
  await Promise.all(subject.lanes.map(playAll));
  const died = subject.workers() !== workers;
  failures.push(...blamed(await subject.errorLog(), (index) => caseAt(seed, index)));
  const findings: Finding[] = [];
  const add = (finding: Finding): void => {
    findings.push(finding);
    options.found(finding);
  };
  for (const { index, faults: before } of failures) {
    if (findings.length >= findingsMax) break;
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
  return { findings, cases: index - from, exchanges, protocols };
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
  const workers = subject.workers();
  const { length } = await subject.errorLog();
  const faults = await subject.lanes[0]!.play(played, ALONE_PATIENCE_MS);
  if (subject.workers() !== workers) {
    await restarted(subject);
    return [WORKER_DIED, ...faults];
  }
  if (faults.length > 0) return faults;
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

/** Lines of the error log that a script does not explain: trouble of ours, or somebody blamed who did nothing wrong. */
export function blamed(log: string, caseOf: (index: number) => Case | undefined): Failure[] {
  return log.split("\n").flatMap((line): Failure[] => {
    const [, level, message] = /\[(\w+)\] [^:]*: (.*)/.exec(line) ?? [];
    if (level === undefined || message === undefined) return [];
    const [, index, client, exchange] = /request: "\S+ \/[em]\d+\/(\d+)\.(\d+)\.(\d+) /.exec(line) ?? [];
    const played = index === undefined ? undefined : caseOf(Number(index));
    const fault = { index: Number(index ?? 0), faults: [`log: ${level}: ${message}`] };
    if (level === "crit" || level === "alert" || level === "emerg") return [fault];
    const script = played?.clients[Number(client)];
    const exchanged = script?.exchanges[Number(exchange)];
    if (played === undefined || script === undefined || exchanged === undefined) return [];
    const faults = faultsOf(played, script, exchanged);
    const blamesClient = /^(?:\*\d+ )?client /.test(message);
    return (blamesClient ? faults.client : faults.upstream || faults.client) ? [] : [fault];
  });
}

const kindOf = (fault: string): string =>
  fault
    .replace(/^[\d.]+: /, "")
    .replace(/".*/, "")
    .replace(/\d[\d.]*/g, "#");

/** Whether a case failed in the way that another one did first of all. */
const alike = ([first]: readonly string[], faults: readonly string[]): boolean =>
  first !== undefined && faults.some((fault) => kindOf(fault) === kindOf(first));
