import { alternate, type Bench, costOf, type Row, type Sample, startKind } from "../lib/bench.js";
import { stop } from "../lib/children.js";
import { startHelper } from "../lib/helpers.js";
import { wrk } from "../lib/loads.js";
import type { RunningProxy } from "../lib/proxy.js";
import type { Work } from "../lib/work.js";

const SECONDS = 4;
const CONNECTIONS = 128;
/** Where nginx itself is not there. */
const DEFAULT_RATE = 10_000;

/** Latency of a proxy that is busy, but not too busy: half of what nginx can do at most. */
export const latency: Work = {
  name: "latency",
  what: "99th percentile of latency at half of nginx's peak rate, HTTP/1.1",
  unit: "ms",
  rate: "requests/s",
  by: "clock",
  bars: [{ to: "nginx", limit: 1.5 }],
  run: measureAll,
};

async function measureAll(bench: Bench): Promise<Row[]> {
  const rate = await halfOfPeak(bench);
  return alternate(
    bench,
    {
      mode: "plain",
      ability: "http1",
      // The peers on Node do not reach this rate.
      families: ["portico", "nginx", "native"],
      setup: { requestsPerConnection: 1e9 },
    },
    (proxy) => atRate(bench, proxy, rate),
  );
}

async function halfOfPeak(bench: Bench): Promise<number> {
  const nginx = bench.kinds.find((kind) => kind.family === "nginx");
  if (nginx === undefined) return DEFAULT_RATE;
  const proxy = await startKind(bench, nginx, "plain");
  try {
    const { throughput } = await wrk(bench, proxy, "/sync/small", { seconds: 3 });
    return Math.round(throughput! / 2);
  } finally {
    await proxy.stop();
  }
}

async function atRate(bench: Bench, proxy: RunningProxy, rate: number): Promise<Sample> {
  const args = [proxy.port, "/sync/small", rate, CONNECTIONS, SECONDS];
  const client = startHelper("constantRate", args, bench.loadCores);
  try {
    const { result, circumstances } = await costOf(proxy, () => client.next((SECONDS + 20) * 1000));
    if (result["failed"] !== 0) throw new Error(`${result["failed"]} connections of ${proxy.name} failed`);
    const { p50, p99 } = result as { p50: number; p99: number };
    return { value: p99, throughput: result["rate"], p50Ms: p50, p99Ms: p99, ...circumstances };
  } finally {
    await stop(client.child);
  }
}
