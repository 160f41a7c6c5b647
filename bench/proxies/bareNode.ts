import type { Bench } from "../lib/bench.js";
import type { ProxyKind } from "../lib/proxy.js";
import { BARE } from "../lib/work.js";
import { peer } from "./nodePeers.js";
import { porticoCommand } from "./portico.js";

/**
 * A server of `node:net` or `node:tls` and nothing else, on the Node that runs Portico: how far Node itself goes. It
 * is no proxy, so it takes part only in items that ask for it.
 */
const bareNode: ProxyKind = {
  ...peer("bare", undefined, () => porticoCommand()[0]!),
  name: BARE,
  family: "bare",
};

/** The bench with the bare server beside Portico. */
export function withBareNode(bench: Bench): Bench {
  const runsPortico = bench.kinds.some(({ family }) => family === "portico");
  return runsPortico ? { ...bench, kinds: [...bench.kinds, bareNode] } : bench;
}
