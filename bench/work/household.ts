import { setTimeout as sleep } from "node:timers/promises";
import { able, type Bench, costOf, type Row, type Sample, startKind } from "../lib/bench.js";
import { stop } from "../lib/children.js";
import { startHelper } from "../lib/helpers.js";
import { memoryGroup } from "../lib/memoryGroup.js";
import { proportionalBytes } from "../lib/processes.js";
import type { ProxyKind, RunningProxy } from "../lib/proxy.js";
import { HOST } from "../lib/site.js";
import { ABSOLUTE, type Work } from "../lib/work.js";

const MIB = 2 ** 20;
const MEMORY_MIB = 256;
const SECONDS = 20;
/** The first site has the address; these two have names. */
const FURTHER_SITES = ["photos.example.org", "films.example.org"];

/** A small machine at home: what matters is that it suffices, and that pages do not wait for films and uploads. */
export const household: Work = {
  name: "household",
  what: `memory of one worker with ${MEMORY_MIB} MiB and three sites, while 50 clients synchronize, browse and stream over TLS; times are those of the browsers`,
  unit: "MiB",
  rate: "requests/s",
  by: "memory",
  bars: [{ to: ABSOLUTE, limit: MEMORY_MIB }],
  isDetailed: true,
  run: async (bench) => {
    const rows: Row[] = [];
    for (const kind of able(bench, { ability: "static", families: ["portico", "nginx", "native"] })) {
      bench.note(kind.name);
      rows.push(await row(bench, kind));
    }
    return rows;
  },
};

async function row(bench: Bench, kind: ProxyKind): Promise<Row> {
  const group = memoryGroup(MEMORY_MIB * MIB);
  const base = { proxy: kind.name, family: kind.family };
  let proxy: RunningProxy | undefined;
  try {
    const setup = { workers: 1, furtherSites: FURTHER_SITES, under: group?.under };
    proxy = await startKind(bench, kind, "tls", setup);
    const sample = await live(bench, proxy);
    const limit = group === undefined ? "no limit could be set" : `limited by ${group.kind}`;
    return { ...base, samples: [{ ...sample, note: `${sample.note}; ${limit}` }] };
  } catch (error) {
    return { ...base, samples: [], failure: (error as Error).message };
  } finally {
    await proxy?.stop();
    group?.remove();
  }
}

/** The most memory that is seen, once a second: a look at it costs the proxy some of its time. */
async function live(bench: Bench, proxy: RunningProxy): Promise<Sample> {
  const args = [proxy.port, SECONDS, `/synchttp/${bench.bulk.name}`, HOST, ...FURTHER_SITES];
  const clients = startHelper("household", args, bench.loadCores);
  let [isOver, most] = [false, 0];
  const watch = (async () => {
    while (!isOver) {
      most = Math.max(most, proportionalBytes(proxy.pids()));
      await sleep(1_000);
    }
  })();
  try {
    const { result, circumstances } = await costOf(proxy, () => clients.next((SECONDS + 60) * 1000));
    const { p50, p99, requests, failed, streamed } = result as Record<string, number>;
    if (failed !== 0) {
      const all = requests! + failed!;
      throw new Error(`${failed} of ${all} requests failed; the first: ${clients.errors().split("\n")[0]}`);
    }
    const note = `${requests!.toLocaleString("en-US")} requests, none failed; ${(streamed! / MIB).toFixed(0)} MiB streamed`;
    return {
      value: most / MIB,
      throughput: requests! / SECONDS,
      p50Ms: p50,
      p99Ms: p99,
      note,
      ...circumstances,
    };
  } finally {
    isOver = true;
    await watch;
    await stop(clients.child);
  }
}
