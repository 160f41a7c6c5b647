import { setTimeout as sleep } from "node:timers/promises";
import { able, type Bench, type Row, startKind } from "../lib/bench.js";
import { runChecked } from "../lib/children.js";
import { proportionalBytes } from "../lib/processes.js";
import type { ProxyKind, RunningProxy } from "../lib/proxy.js";
import { ABSOLUTE, type Work } from "../lib/work.js";
import { withBareNode } from "../proxies/bareNode.js";

const MIB = 2 ** 20;
const WORKERS = [1, 2];
/** After the first request: V8 gives back what a start leaves behind within some twenty seconds. */
const REST_MS = 25_000;

/**
 * Memory of a proxy that has nothing to do, with all of its processes. The bare servers are as many as Portico has
 * processes: a master and its workers.
 */
export const atRest: Work = {
  name: "at-rest",
  what: "memory of all processes that have nothing to do, after one request",
  unit: "MiB",
  by: "memory",
  bars: [
    { row: "portico, 1 worker", to: ABSOLUTE, limit: 60 },
    { row: "portico, 2 workers", to: ABSOLUTE, limit: 80 },
  ],
  isDetailed: true,
  run: async (bench) => {
    const families = ["portico", "nginx", "native", "bare"] as const;
    const rows: Row[] = [];
    for (const workers of WORKERS) {
      for (const kind of able(withBareNode(bench), { ability: "http1", families })) {
        bench.note(`${kind.name}, ${workers}`);
        rows.push(await row(bench, kind, workers));
      }
    }
    return rows;
  },
};

async function row(bench: Bench, kind: ProxyKind, workers: number): Promise<Row> {
  const count = kind.family === "bare" ? workers + 1 : 1;
  const suffix =
    kind.family === "bare" ? `${count} processes` : workers === 1 ? "1 worker" : `${workers} workers`;
  const reference = workers === 1 ? "nginx, 1 worker" : `nginx, ${workers} workers`;
  const base = { proxy: `${kind.name}, ${suffix}`, family: kind.family, reference };
  const running: RunningProxy[] = [];
  try {
    for (let i = 0; i < count; i++) running.push(await startKind(bench, kind, "plain", { workers }));
    for (const { origin } of running) {
      await runChecked(["curl", "-sS", "-o", "/dev/null", `${origin}/sync/small`], { limitMs: 10_000 });
    }
    await sleep(REST_MS);
    const pids = running.flatMap((one) => one.pids());
    const note = pids.length === 1 ? "1 process" : `${pids.length} processes`;
    return { ...base, samples: [{ value: proportionalBytes(pids) / MIB, note }] };
  } catch (error) {
    return { ...base, samples: [], failure: (error as Error).message };
  } finally {
    for (const one of running) await one.stop();
  }
}
