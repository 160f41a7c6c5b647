import { withBareNode } from "../proxies/bareNode.js";
import { alternate, type Bench, costOf, type Rounds, type Sample } from "../lib/bench.js";
import { runChecked } from "../lib/children.js";
import type { RunningProxy } from "../lib/proxy.js";
import { cpuBar, type Work } from "../lib/work.js";

/** Handshakes of the front end's policy: TLS 1.2, ECDHE on secp384r1, an RSA key of 2048 bits. */

const TLS: Rounds = { mode: "tls", ability: "tls" };

export const tlsFull: Work = {
  name: "tls-full",
  what: "full TLS handshakes, one after the other",
  unit: "µs/handshake",
  rate: "handshakes/s",
  by: "cpu",
  bars: [],
  isDetailed: true,
  run: (bench) => alternate(withBareNode(bench), TLS, (proxy) => handshakes(bench, proxy, "-new")),
};

export const tlsResumed: Work = {
  name: "tls-resumed",
  what: "resumed TLS handshakes, one after the other",
  unit: "µs/handshake",
  rate: "handshakes/s",
  by: "cpu",
  bars: [cpuBar(1.5)],
  isDetailed: true,
  run: (bench) => alternate(withBareNode(bench), TLS, (proxy) => handshakes(bench, proxy, "-reuse")),
};

const SECONDS = 2;
/** The first handshake of a resumed series is a full one, and a ticket may be renewed. */
const RESUMED_PART_MIN = 0.95;

async function handshakes(bench: Bench, proxy: RunningProxy, kind: "-new" | "-reuse"): Promise<Sample> {
  const { result, cpuNs, circumstances } = await costOf(proxy, () =>
    runChecked(
      ["openssl", "s_time", "-connect", `127.0.0.1:${proxy.port}`, kind, "-tls1_2", "-time", String(SECONDS)],
      { cores: bench.loadCores, limitMs: 30_000 },
    ),
  );
  const [, count, seconds] = /(\d+) connections in (\d+) real seconds/.exec(result)?.map(Number) ?? [];
  if (count === undefined || count < 10) throw new Error(`openssl s_time against ${proxy.name}: ${result}`);
  // It prints a letter for each: `r` for resumed.
  const resumed = (/^[r*t]+$/m.exec(result)?.[0].match(/r/g)?.length ?? 0) / count;
  if (kind === "-reuse" && resumed < RESUMED_PART_MIN) {
    throw new Error(`${proxy.name} resumed only ${Math.round(resumed * 100)} % of the sessions`);
  }
  return { value: cpuNs / 1000 / count, throughput: count / seconds!, ...circumstances };
}
