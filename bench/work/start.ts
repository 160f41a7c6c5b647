import { setTimeout as sleep } from "node:timers/promises";
import { rmSync } from "node:fs";
import { connect } from "node:net";
import { able, ALL_CORES, type Bench, type Row, setupOf } from "../lib/bench.js";
import { stop } from "../lib/children.js";
import { cpuNanoseconds, familyOf } from "../lib/processes.js";
import { median } from "../lib/statistics.js";
import { launch, outputOf, type ProxyKind } from "../lib/proxy.js";
import { ABSOLUTE, type Work } from "../lib/work.js";

const LIMIT_MS = 10_000;
const POLL_MS = 2;

/** From the start of the process to its first proxied response, on all cores, as on a host; master and worker share none. */
export const start: Work = {
  name: "start",
  what: "start of the process to the first 200",
  unit: "ms",
  by: "clock",
  bars: [{ to: ABSOLUTE, limit: 150 }],
  quick: true,
  run: async (bench) => {
    const kinds = able(bench, { ability: "http1" });
    const starts = new Map(kinds.map((kind) => [kind, [] as Start[]]));
    for (let round = 0; round < bench.rounds + 2; round++) {
      for (const kind of kinds) {
        bench.note(`${kind.name}: round ${round + 1}`);
        starts.get(kind)!.push(await timeToResponse(bench, kind));
      }
    }
    return kinds.map((kind) => row(kind, starts.get(kind)!));
  },
};

interface Start {
  /** Undefined if there was no response. */
  readonly ms?: number;
  readonly cpuMs: number;
}

function row({ name, family }: ProxyKind, starts: readonly Start[]): Row {
  const responded = starts.flatMap(({ ms, cpuMs }) => (ms === undefined ? [] : [{ ms, cpuMs }]));
  if (responded.length < starts.length) return { proxy: name, family, samples: [], failure: "no response" };
  const cpuMs = median(responded.map((one) => one.cpuMs));
  return {
    proxy: name,
    family,
    samples: responded.map(({ ms }) => ({ value: ms, note: `${cpuMs.toFixed(0)} ms of CPU` })),
  };
}

async function timeToResponse(bench: Bench, kind: ProxyKind): Promise<Start> {
  const setup = await setupOf(bench, kind, "plain", { cores: ALL_CORES });
  const begin = performance.now();
  const child = launch(kind, setup);
  const cpuMs = (): number => cpuNanoseconds(familyOf(child.pid!)) / 1e6;
  try {
    while (performance.now() - begin < LIMIT_MS) {
      if (await responds(setup.port)) return { ms: performance.now() - begin, cpuMs: cpuMs() };
      if (child.exitCode !== null) throw new Error(`${kind.name} does not start:\n${outputOf(setup)}`);
      await sleep(POLL_MS);
    }
    return { cpuMs: cpuMs() };
  } finally {
    await stop(child);
    rmSync(setup.folder, { recursive: true, force: true });
  }
}

/** A port that is bound before anyone accepts holds the request until it is served: that is waited for here. */
function responds(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.setTimeout(LIMIT_MS, () => socket.destroy());
    socket.once("connect", () => socket.write("GET /sync/small HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    socket.once("data", (chunk) => {
      resolve(chunk.toString("latin1").startsWith("HTTP/1.1 200"));
      socket.destroy();
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}
