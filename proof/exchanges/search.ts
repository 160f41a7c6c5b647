import {
  least,
  type Finding as Found,
  type Played,
  search as searchCases,
  Shrinking,
  type Shown,
} from "../wire/search.js";
import { blamed } from "../wire/blamed.js";
import type { Timeline } from "../wire/timeline.js";
import { caseAt } from "./generate.js";
import type { Proxy } from "./proxy.js";
import { smaller } from "./smaller.js";

/** What a case broke. */
export interface Finding extends Found {
  readonly faults: readonly string[];
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
  /** Exchanges that are enough. */
  readonly exchanges: number;
  readonly findingsMax: number;
}

/** So many cases are played before all has to be at rest. */
const BATCH = 256;
/** So many cases that fail are enough, even if all fail in the same way: some take long. */
const FAILURES_MAX = 25;
/** Many at a time on a busy machine take this long at most; one alone is done in milliseconds. */
const PATIENCE_MS = 15_000;
const ALONE_PATIENCE_MS = 4_000;
/** Clients that have gone are waited for, and rests of bodies; then nothing is. */
const REST_MS = 10_000;
const ALONE_REST_MS = 3_000;
/** Each takes a part of a second. */
const RUNS_MAX = 150;

/** Plays cases on all lanes until there are enough exchanges or findings. */
export async function search(proxy: Proxy, options: SearchOptions): Promise<Search> {
  const { seed, findingsMax } = options;
  const protocols: Record<string, number> = {};
  let [exchanges, failures] = [0, 0];
  const playOn = (lane: Proxy["lanes"][number]) => async (number: number) => {
    const played = caseAt(seed, number);
    for (const client of played.clients) {
      exchanges += client.exchanges.length;
      protocols[client.protocol] = (protocols[client.protocol] ?? 0) + client.exchanges.length;
    }
    const faults = await lane.play(played, PATIENCE_MS);
    if (faults.length > 0) failures++;
    return findingOf(number, faults);
  };
  const look = async (first: number, next: number): Promise<Finding[]> => {
    const laws = await proxy.atRest(REST_MS);
    return laws.map((law) => findingOf(first, [`${law}, after cases ${first} to ${next - 1}`]));
  };
  const { findings, cases } = await searchCases<Finding>({
    players: proxy.lanes.map(playOn),
    from: 0,
    enough: () => exchanges >= options.exchanges || failures >= FAILURES_MAX,
    findingsMax,
    rest: { every: BATCH, look },
  });
  const logged = blamed(await proxy.errorLog(), (index) => caseAt(seed, index));
  findings.push(...logged.map(({ index, faults }) => findingOf(index, faults)));
  return { findings, cases, exchanges, protocols };
}

const findingOf = (number: number, faults: readonly string[]): Finding => ({
  number,
  faults,
  ...shownBy(faults),
});

/** Faults are of one kind if they differ only in numbers, and in bytes that are shown. */
const shownBy = (faults: readonly string[]): Shown => ({
  kinds: [...new Set(faults.map((fault) => fault.replace(/\d+(?:\.\d+)*/g, "#").replace(/".*"/s, '""')))],
});

interface Alone extends Shown {
  readonly faults: readonly string[];
}

/** Plays one case with nothing beside it; if it fails, also the least that fails in the same way. */
export async function playAlone(
  proxy: Proxy,
  played: Timeline,
): Promise<Played<Timeline, Alone> | undefined> {
  const play = async (one: Timeline): Promise<Alone> => {
    const faults = await faultsAlone(proxy, one);
    return { faults, ...shownBy(faults) };
  };
  const { failed } = await least(new Shrinking(played, smaller), 0, play, new Set(), RUNS_MAX);
  return failed;
}

/** The log is looked at as well. */
async function faultsAlone(proxy: Proxy, played: Timeline): Promise<string[]> {
  const { length } = await proxy.errorLog();
  const faults = await proxy.lanes[0]!.play(played, ALONE_PATIENCE_MS);
  if (proxy.died) return ["a worker died", ...faults];
  const laws = await proxy.atRest(ALONE_REST_MS);
  const logged = (await proxy.errorLog()).slice(length);
  return [...faults, ...laws, ...blamed(logged, () => played).flatMap((failure) => failure.faults)];
}
