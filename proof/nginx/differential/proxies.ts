import { MODE_OF } from "../../wire/case.js";
import type { Difference } from "../case.js";
import { compareBy } from "../compare.js";
import type { Case } from "../deviations.js";
import { startPairs } from "../pairs.js";
import { observe } from "../run.js";
import { type GeneratedRuleName, rulesFor } from "./deviations.js";
import { responseText, type GeneratedCase, requestOf } from "./generate.js";

/** Both proxies, which get the same request. */
export interface Proxies {
  compare(generated: GeneratedCase): Promise<Outcome>;
  stop(): Promise<void>;
}

/** What came of one request. */
export interface Outcome {
  readonly unexplained: readonly Difference[];
  readonly used: ReadonlySet<GeneratedRuleName>;
}

/** Long enough for any response on this machine, short enough for the cases that get none. */
const PATIENCE_MS = 2_000;

export async function startProxies(): Promise<Proxies> {
  const pairs = await startPairs();
  const compare = async (generated: GeneratedCase): Promise<Outcome> => {
    const { channel, response } = generated;
    const then = response.framing === "close" ? ({ then: "close" } as const) : {};
    const row: Case = {
      name: "generated",
      send: requestOf(generated),
      response: { pieces: [responseText(generated)], ...then },
      status: 0,
      patienceMs: PATIENCE_MS,
    };
    const { nginx, portico } = pairs[MODE_OF[channel]];
    const [theirs, ours] = await Promise.all([observe(row, channel, nginx), observe(row, channel, portico)]);
    return compareBy({ row, channel, nginx: theirs.facts, portico: ours.facts }, rulesFor(generated));
  };
  return { compare, stop: () => pairs.stop() };
}
