import { blamed, type Failure } from "./blamed.js";
import { caseAt } from "./generate.js";
import type { Proxy } from "./proxy.js";

export interface Search {
  readonly failures: readonly Failure[];
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
/** Many at a time on a busy machine take this long at most; one alone is done in milliseconds. */
const PATIENCE_MS = 15_000;
const ALONE_PATIENCE_MS = 4_000;
/** Clients that have gone are waited for, and rests of bodies; then nothing is. */
const REST_MS = 10_000;
const ALONE_REST_MS = 3_000;

/** Plays cases on all lanes until there are enough exchanges or failures. */
export async function search(proxy: Proxy, options: SearchOptions): Promise<Search> {
  const { seed, findingsMax } = options;
  const failures: Failure[] = [];
  const protocols: Record<string, number> = {};
  let [next, exchanges] = [0, 0];
  const isOver = (): boolean => exchanges >= options.exchanges || failures.length >= findingsMax;
  const failed = (index: number, faults: readonly string[]): void => {
    if (faults.length > 0) failures.push({ index, faults });
  };
  while (!isOver()) {
    const first = next;
    const workers = proxy.workers();
    const playAll = async (lane: Proxy["lanes"][number]): Promise<void> => {
      while (next < first + BATCH && !isOver()) {
        const played = caseAt(seed, next++);
        for (const client of played.clients) {
          exchanges += client.exchanges.length;
          protocols[client.protocol] = (protocols[client.protocol] ?? 0) + client.exchanges.length;
        }
        failed(played.index, await lane.play(played, PATIENCE_MS));
      }
    };
    await Promise.all(proxy.lanes.map(playAll));
    if (proxy.workers() !== workers) failed(first, ["a worker died"]);
    const kept = await proxy.atRest(REST_MS);
    failed(
      first,
      kept.map((law) => `${law}, after cases ${first} to ${next - 1}`),
    );
  }
  failures.push(...blamed(await proxy.errorLog(), (index) => caseAt(seed, index)));
  return { failures, cases: next, exchanges, protocols };
}

/** Plays one case with nothing beside it; the log is looked at as well. */
export async function playAlone(proxy: Proxy, seed: number, index: number): Promise<string[]> {
  const workers = proxy.workers();
  const { length } = await proxy.errorLog();
  const played = caseAt(seed, index);
  const faults = await proxy.lanes[0]!.play(played, ALONE_PATIENCE_MS);
  if (proxy.workers() !== workers) return ["a worker died", ...faults];
  const laws = await proxy.atRest(ALONE_REST_MS);
  const logged = (await proxy.errorLog()).slice(length);
  return [...faults, ...laws, ...blamed(logged, () => played).flatMap((failure) => failure.faults)];
}
