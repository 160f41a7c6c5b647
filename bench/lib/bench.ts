import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Ability, type ProxyKind, type RunningProxy, type Setup, startProxy } from "./proxy.js";
import { freePorts } from "../../testkit/ports.js";
import { busyNanoseconds, coreNumbers, cpuNanoseconds, peakBytes, resetPeak } from "./processes.js";
import type { Site } from "./site.js";
import type { Upstreams } from "./upstreams.js";

/** What all items of work share in one run. */
export interface Bench {
  readonly site: Site;
  readonly upstreams: Upstreams;
  /** Proxies of this run that are installed. */
  readonly kinds: readonly ProxyKind[];
  readonly proxyCores: string;
  readonly loadCores: string;
  readonly workers: number;
  readonly rounds: number;
  /** Fewer rounds and shorter loads. */
  readonly quick: boolean;
  /** The large body of this run. */
  readonly bulk: Bulk;
  /** Tells what is being done now. */
  note(text: string): void;
}

export interface Bulk {
  /** Name in the media folder. */
  readonly name: string;
  readonly bytes: number;
  /** A file of that length to upload. */
  readonly upload: string;
}

/** One measurement. */
export interface Sample {
  /** What the item is about, in its unit. */
  readonly value: number;
  /** Work done a second, in the item's own measure; shown, not judged. */
  readonly throughput?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly peakBytes?: number;
  /** Part of the proxy's cores that others used meanwhile: the larger, the less exact. */
  readonly othersShare?: number;
  /** Anything else worth a remark. */
  readonly note?: string;
}

/** What one proxy did in all rounds. */
export interface Row {
  readonly proxy: string;
  readonly family: ProxyKind["family"];
  /** The row it is compared with in the table. */
  readonly reference?: string;
  /** Where on the axis it lies, if the item is a curve. */
  readonly at?: number;
  readonly samples: readonly Sample[];
  /** Why there are no samples. */
  readonly failure?: string;
}

export interface Rounds {
  readonly mode: Setup["mode"];
  readonly ability: Ability;
  /** Which proxies take part, if not all that are able to. */
  readonly families?: readonly ProxyKind["family"][];
  readonly rounds?: number;
  /** What differs in the proxies' setup. */
  readonly setup?: Partial<Setup>;
  /** Setups that are compared with one another: every proxy takes part in each. */
  readonly variants?: Readonly<Record<string, Partial<Setup>>>;
  /** Brings code and connections to working order; default: a measurement that does not count. */
  readonly warmUp?: (proxy: RunningProxy) => Promise<unknown>;
}

/** Rounds in which proxies take part that are shown, but not judged. */
const PEER_ROUNDS_MAX = 3;

/**
 * Runs the same work against every proxy in turn, round after round, so that what disturbs the machine for a while
 * disturbs all of them. Proxies start anew for every item: its result is the same whatever ran before it.
 */
export async function alternate(
  bench: Bench,
  options: Rounds,
  measure: (proxy: RunningProxy) => Promise<Sample>,
): Promise<Row[]> {
  const rounds = options.rounds ?? bench.rounds;
  const entries = entriesOf(bench, options);
  try {
    for (const entry of entries) {
      await attempt(entry, async () => {
        entry.proxy = await startKind(bench, entry.kind, options.mode, entry.setup);
        bench.note(`${entry.name}: warm-up`);
        await (options.warmUp ?? measure)(entry.proxy);
      });
    }
    for (let round = 0; round < rounds; round++) {
      // Every other round runs backwards: nobody always comes after the same one.
      for (const entry of round % 2 === 0 ? entries : [...entries].reverse()) {
        const judged = entry.kind.family === "portico" || entry.kind.family === "nginx";
        if (entry.failure !== undefined || (!judged && round >= PEER_ROUNDS_MAX)) continue;
        bench.note(`${entry.name}: round ${round + 1} of ${rounds}`);
        await attempt(entry, async () => void entry.samples.push(await measure(entry.proxy!)));
      }
    }
  } finally {
    for (const { proxy } of entries) await proxy?.stop();
  }
  return entries.map(({ name, kind, reference, samples, failure }) => {
    return { proxy: name, family: kind.family, reference, samples, failure };
  });
}

/** A row while it is being measured. */
interface Entry {
  readonly name: string;
  readonly kind: ProxyKind;
  readonly setup: Partial<Setup>;
  readonly reference: string;
  readonly samples: Sample[];
  proxy?: RunningProxy;
  failure?: string;
}

function entriesOf(bench: Bench, options: Rounds): Entry[] {
  return Object.entries(options.variants ?? { "": {} }).flatMap(([variant, changes]) => {
    const named = (name: string): string => (variant === "" ? name : `${name}, ${variant}`);
    return able(bench, options).map((kind) => ({
      name: named(kind.name),
      kind,
      setup: { ...options.setup, ...changes },
      reference: named("nginx"),
      samples: [],
    }));
  });
}

/** What does not work with one proxy is told, and does not keep the others from being measured. */
async function attempt(entry: { failure?: string }, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    entry.failure = (error as Error).message;
  }
}

export function able(bench: Bench, { ability, families }: Pick<Rounds, "ability" | "families">): ProxyKind[] {
  return bench.kinds.filter(
    (kind) => kind.abilities.includes(ability) && (families === undefined || families.includes(kind.family)),
  );
}

/** Every core of the machine, as taskset writes them. */
export const ALL_CORES = `0-${availableParallelism() - 1}`;

let launches = 0;

/** The setup of a proxy on free ports, in a folder of its own. */
export async function setupOf(
  bench: Bench,
  kind: ProxyKind,
  mode: Setup["mode"],
  changes: Partial<Setup> = {},
): Promise<Setup> {
  const [port, redirectPort] = (await freePorts(2)) as [number, number];
  return {
    mode,
    workers: bench.workers,
    cores: bench.proxyCores,
    site: bench.site,
    upstreams: bench.upstreams,
    port,
    redirectPort,
    folder: path.join(bench.site.folder, `${kind.name}-${++launches}`),
    keepAliveSeconds: 75,
    requestsPerConnection: 1000,
    ...changes,
  };
}

/** Starts a proxy; its folder goes when it stops, since logs of a minute's load are large. */
export async function startKind(
  bench: Bench,
  kind: ProxyKind,
  mode: Setup["mode"],
  changes?: Partial<Setup>,
): Promise<RunningProxy> {
  const setup = await setupOf(bench, kind, mode, changes);
  const proxy = await startProxy(kind, setup);
  const stop = async (): Promise<void> => {
    await proxy.stop();
    rmSync(setup.folder, { recursive: true, force: true });
  };
  return { ...proxy, stop };
}

export interface Cost<T> {
  readonly result: T;
  readonly cpuNs: number;
  /** What every sample tells beside its value. */
  readonly circumstances: Pick<Sample, "peakBytes" | "othersShare">;
}

/** Logs are written up to 100 ms after the request: that work counts, too. */
const SETTLE_MS = 150;

/** What a load costs the proxy. */
export async function costOf<T>(proxy: RunningProxy, load: () => Promise<T>): Promise<Cost<T>> {
  const before = proxy.pids();
  resetPeak(before);
  const [start, busy, at] = [cpuNanoseconds(before), busyNanoseconds(proxy.cores), performance.now()];
  const result = await load();
  await sleep(SETTLE_MS);
  const after = proxy.pids();
  const cpuNs = cpuNanoseconds(after) - start;
  const available = (performance.now() - at) * 1e6 * coreNumbers(proxy.cores).length;
  const othersShare = Math.max(0, busyNanoseconds(proxy.cores) - busy - cpuNs) / available;
  return { result, cpuNs, circumstances: { peakBytes: peakBytes(after), othersShare } };
}
