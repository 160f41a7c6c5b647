import { connect } from "node:net";
import { rmSync } from "node:fs";
import { able, type Bench, type Row, setupOf } from "../lib/bench.js";
import { stop } from "../lib/children.js";
import { median } from "../lib/statistics.js";
import { launch, outputOf, type ProxyKind, type Setup } from "../proxies/proxy.js";
import { ABSOLUTE, type Work } from "./work.js";

const LIMIT_MS = 10_000;
const POLL_MS = 2;

/** From the start of the process to the end of the first proxied answer, TLS files not yet in play. */
export const start: Work = {
  name: "start",
  what: "start of the process to the first 200",
  unit: "ms",
  bars: [{ to: ABSOLUTE, limit: 250, by: "clock" }],
  quick: true,
  run: async (bench) => {
    const kinds = able(bench, { ability: "http1" });
    const times = new Map(kinds.map((kind) => [kind, [] as number[]]));
    for (let round = 0; round < bench.rounds + 2; round++) {
      for (const kind of kinds) {
        bench.note(`${kind.name}: round ${round + 1}`);
        times.get(kind)!.push(await timeToAnswer(bench, kind));
      }
    }
    return kinds.map((kind) => row(kind, times.get(kind)!));
  },
};

function row(kind: ProxyKind, times: readonly number[]): Row {
  const samples = times.filter((ms) => !Number.isNaN(ms)).map((value) => ({ value }));
  if (!Number.isNaN(median(times))) return { proxy: kind.name, family: kind.family, samples };
  return { proxy: kind.name, family: kind.family, samples: [], failure: "no answer" };
}

async function timeToAnswer(bench: Bench, kind: ProxyKind): Promise<number> {
  const setup: Setup = await setupOf(bench, kind, "plain");
  const begin = performance.now();
  const child = launch(kind, setup);
  try {
    while (performance.now() - begin < LIMIT_MS) {
      if (await answers(setup.port)) return performance.now() - begin;
      if (child.exitCode !== null) throw new Error(`${kind.name} does not start:\n${outputOf(setup)}`);
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
    return NaN;
  } finally {
    await stop(child);
    rmSync(setup.folder, { recursive: true, force: true });
  }
}

/** A port that is bound before anyone accepts holds the request until it is served: that is waited for here. */
function answers(port: number): Promise<boolean> {
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
