import { setTimeout as sleep } from "node:timers/promises";
import { withBareNode } from "../proxies/bareNode.js";
import { able, type Bench, type Row, startKind } from "../lib/bench.js";
import { runChecked, stop } from "../lib/children.js";
import { startHelper } from "../lib/helpers.js";
import { proportionalBytes, writtenBytes } from "../lib/processes.js";
import type { ProxyKind, RunningProxy, Setup } from "../lib/proxy.js";
import type { Sample } from "../lib/bench.js";
import { ABSOLUTE, BARE, type Bar, type Work } from "../lib/work.js";

/** Memory is proportional set size: pages that processes share are split between them. Kernel buffers are not in it. */

const MIB = 2 ** 20;
const IDLE_CONNECTIONS = 10_000;
const SLOW_READERS = 100;
/** Bytes a second that a client reads, and how long it is watched. */
interface Reading {
  readonly rate: number;
  readonly seconds: number;
}
/** Buffers grow with what a client takes, and the allocator's share of them after that: half a minute in, nothing may. */
const SLOW: Reading = { rate: 1_000_000, seconds: 40 };
/** A client that takes nothing fills all buffers at once. */
const STUCK: Reading = { rate: 0, seconds: 15 };
/** nginx spools what a slow client does not take, up to 1 GiB each: enough is seen before a disk is full. */
const SPOOLED_BYTES_MAX = 4 * 2 ** 30;
/** Access logs and the like. */
const WRITTEN_BYTES_MAX = 16 * MIB;

export const memory: readonly Work[] = [
  idle("idle-plain", "plain", [{ to: ABSOLUTE, limit: 60 }]),
  // What one TLS connection takes is mostly OpenSSL's and Node's, and another figure on each Node.
  idle("idle-tls", "tls", [{ to: BARE, limit: 1.1 }]),
  readers("slow-readers", "slow clients", "plain", SLOW, 4),
  readers("slow-readers-tls", "slow clients", "tls", SLOW, 4),
  readers("stuck-readers", "clients that take nothing", "plain", STUCK, 1 / 8),
  readers("stuck-readers-tls", "clients that take nothing", "tls", STUCK, 1 / 8),
];

function idle(name: string, mode: Setup["mode"], bars: readonly Bar[]): Work {
  return {
    name,
    what: `memory of ${IDLE_CONNECTIONS.toLocaleString("en-US")} idle keep-alive connections, ${mode === "tls" ? "TLS" : mode}`,
    unit: "MiB",
    by: "memory",
    bars,
    isDetailed: true,
    run: (bench) => once(withBareNode(bench), mode, idleConnections),
  };
}

function readers(name: string, whose: string, mode: Setup["mode"], reading: Reading, limit: number): Work {
  return {
    name,
    what: `memory of ${SLOW_READERS} downloads of 1 GiB to ${whose}, ${mode === "tls" ? "TLS" : mode}`,
    unit: "MiB/transfer",
    by: "memory",
    bars: [{ to: ABSOLUTE, limit }],
    run: (bench) => once(bench, mode, (run, proxy) => slowReaders(run, proxy, reading)),
  };
}

/** Memory does not depend on what else the machine does: one measurement of a fresh process each. */
async function once(
  bench: Bench,
  mode: Setup["mode"],
  measure: (bench: Bench, proxy: RunningProxy) => Promise<Sample>,
): Promise<Row[]> {
  const rows: Row[] = [];
  const ability = mode === "tls" ? "tls" : "http1";
  for (const kind of able(bench, { ability, families: ["portico", "nginx", "native", "bare"] })) {
    bench.note(kind.name);
    rows.push(await row(bench, kind, mode, measure));
  }
  return rows;
}

async function row(
  bench: Bench,
  kind: ProxyKind,
  mode: Setup["mode"],
  measure: (bench: Bench, proxy: RunningProxy) => Promise<Sample>,
): Promise<Row> {
  // Ten minutes, so that the first connections are still there when the last one is.
  const proxy = await startKind(bench, kind, mode, { keepAliveSeconds: 600 });
  try {
    const url = `${proxy.origin}/sync/small`;
    await runChecked(["curl", "-sSk", "--http1.1", "-o", "/dev/null", url], { limitMs: 10_000 });
    await sleep(1_000);
    return { proxy: kind.name, family: kind.family, samples: [await measure(bench, proxy)] };
  } catch (error) {
    return { proxy: kind.name, family: kind.family, samples: [], failure: (error as Error).message };
  } finally {
    await proxy.stop();
  }
}

async function idleConnections(bench: Bench, proxy: RunningProxy): Promise<Sample> {
  const before = proportionalBytes(proxy.pids());
  const clients = startHelper("idle", [proxy.port, proxy.mode, IDLE_CONNECTIONS], bench.loadCores);
  try {
    await clients.next(240_000);
    await sleep(3_000);
    const after = proportionalBytes(proxy.pids());
    clients.child.kill("SIGUSR2");
    const { open } = await clients.next(10_000);
    if (open !== IDLE_CONNECTIONS) throw new Error(`${open} of ${IDLE_CONNECTIONS} connections were left`);
    return { value: (after - before) / MIB, note: `${(before / MIB).toFixed(0)} MiB before` };
  } finally {
    await stop(clients.child);
  }
}

async function slowReaders(bench: Bench, proxy: RunningProxy, { rate, seconds }: Reading): Promise<Sample> {
  const pids = proxy.pids();
  const before = { memory: proportionalBytes(pids), written: writtenBytes(pids) };
  const args = [proxy.port, proxy.mode, SLOW_READERS, "/synchttp/1g.bin", rate];
  const clients = startHelper("slowReaders", args, bench.loadCores);
  try {
    const taken: number[] = [];
    let [written, received] = [0, 0];
    for (let second = 0; second < seconds && written < SPOOLED_BYTES_MAX; second++) {
      const seen = await clients.next(15_000);
      if (seen["ended"] !== 0) throw new Error(`${seen["ended"]} downloads ended early`);
      received = seen["received"]!;
      taken.push(proportionalBytes(pids) - before.memory);
      written = writtenBytes(pids) - before.written;
    }
    if (proxy.family === "portico" && written > WRITTEN_BYTES_MAX) {
      throw new Error(`${written} bytes were written to disk: transfers are spooled`);
    }
    if (proxy.family === "portico") requireFlat(taken);
    const note = `${(received / MIB).toFixed(0)} MiB read, ${(written / MIB).toFixed(0)} MiB spooled`;
    return { value: Math.max(...taken) / MIB / SLOW_READERS, note };
  } finally {
    await stop(clients.child);
  }
}

/** What a transfer takes, it takes at its beginning: the second half must not need more than the first. */
function requireFlat(taken: readonly number[]): void {
  const half = Math.ceil(taken.length / 2);
  const [first, second] = [Math.max(...taken.slice(0, half)), Math.max(...taken.slice(half))];
  if (second <= first * 1.25 + 16 * MIB) return;
  throw new Error(`memory grows: ${(first / MIB).toFixed(0)} MiB, then ${(second / MIB).toFixed(0)} MiB`);
}
