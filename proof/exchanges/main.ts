import { inspect } from "node:util";
import { laboratory, numberOf, replayedBy, seedOption } from "../../testkit/laboratory.js";
import type { Timeline } from "../wire/timeline.js";
import { caseAt } from "./generate.js";
import { Proxy } from "./proxy.js";
import { playAlone, search } from "./search.js";

/** Cases that are played at the same time. */
const LANES = 48;

laboratory(
  `npm run exchanges -- [OPTIONS]: generated exchanges between scripted clients and a strict upstream

Clients over HTTP/1.1, TLS and HTTP/2 send requests whose bytes are joined and split everywhere, with bodies too long, too
short and exact, and leave when they like; the upstream responds early, late, wrongly and with everything an upgrade may get
as a response. Nothing may reach the upstream that nobody sent, and nobody may get what is not theirs.`,
  {
    count: ["200000", "exchanges"],
    seed: [undefined, "which (default: another one in each run)"],
    case: [undefined, "only the case of that number, alone, with its script; made smaller if it fails"],
    findings: ["5", "how many findings are enough"],
  },
  async (given) => {
    const seed = seedOption(given.seed);
    const only = given.case === undefined ? undefined : numberOf("case", given.case, 0);
    const proxy = await Proxy.start(only === undefined ? LANES : 1);
    try {
      if (only !== undefined) {
        const played = caseAt(seed, only);
        console.log(scriptOf(played));
        const failed = await playAlone(proxy, played);
        if (failed === undefined) return { wrong: [] };
        return { wrong: [`${failed.shown.faults.join("; ")}\n${scriptOf(failed.played)}`] };
      }
      const [enough, findingsMax] = [numberOf("count", given.count), numberOf("findings", given.findings)];
      const start = Date.now();
      const { findings, cases, exchanges, protocols } = await search(proxy, {
        seed,
        exchanges: enough,
        findingsMax,
      });
      const seconds = Math.round((Date.now() - start) / 1000);
      console.log(`${exchanges} exchanges in ${cases} cases, ${seconds} s, ${inspect(protocols)}`);
      const again = replayedBy("exchanges", seed);
      return { wrong: findings.map(({ number, faults }) => `${faults.join("; ")}\n${again(number)}`) };
    } finally {
      await proxy.stop();
    }
  },
);

const scriptOf = (played: Timeline): string => inspect(played, { depth: null, breakLength: 160 });
