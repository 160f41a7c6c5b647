import { alternate, type Bench, type Row, type Sample } from "../lib/bench.js";
import { type Attack, ATTACKS } from "../lib/attacks.js";
import { stop } from "../lib/children.js";
import { startHelper } from "../lib/helpers.js";
import type { RunningProxy } from "../lib/proxy.js";
import type { Work } from "../lib/work.js";

const SECONDS = 3;
const RATE = 500;
const CONNECTIONS = 16;
const ROUNDS = 3;

/** What others notice of one client or upstream that asks for as much work as it can (docs/limits.md). */
export const victims: Work = {
  name: "victims",
  what: "99th percentile of a client's latency beside an attack, one worker, HTTP/1.1 over TLS",
  unit: "ms",
  rate: "requests/s",
  by: "clock",
  bars: [],
  run: async (bench) => {
    const upstream = startHelper("hostileUpstream", [], bench.loadCores);
    try {
      const { port } = await upstream.next(15_000);
      const rows: Row[] = [];
      for (const attack of Object.keys(ATTACKS) as Attack[])
        rows.push(...(await beside(bench, attack, port!)));
      return rows;
    } finally {
      await stop(upstream.child);
    }
  },
};

async function beside(bench: Bench, attack: Attack, files: number): Promise<Row[]> {
  const rows = await alternate(
    bench,
    {
      mode: "tls",
      ability: "http2",
      families: ["portico", "nginx"],
      rounds: Math.min(ROUNDS, bench.rounds),
      setup: { upstreams: { ...bench.upstreams, files } },
    },
    (proxy) => victim(bench, proxy, attack),
  );
  const name = (proxy: string): string => `${proxy}: ${ATTACKS[attack]}`;
  return rows.map((row) => ({ ...row, proxy: name(row.proxy), reference: name("nginx") }));
}

async function victim(bench: Bench, proxy: RunningProxy, attack: Attack): Promise<Sample> {
  const attacker = startHelper("attacker", [attack, proxy.port], bench.loadCores, ["nice", "-n19"]);
  try {
    await attacker.next(15_000);
    const args = [proxy.port, "/sync/small", RATE, CONNECTIONS, SECONDS, "tls"];
    const client = startHelper("constantRate", args, bench.loadCores);
    try {
      const { p50, p99, rate } = await client.next((SECONDS + 30) * 1000);
      return { value: p99!, throughput: rate, p50Ms: p50, p99Ms: p99 };
    } finally {
      await stop(client.child);
    }
  } finally {
    await stop(attacker.child);
  }
}
