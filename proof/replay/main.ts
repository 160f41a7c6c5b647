import { inspect } from "node:util";
import { laboratory, numberOf, replayedBy, seedOption } from "../../testkit/laboratory.js";
import { replayedAgainstTruth } from "./truth.js";

laboratory(
  `npm run replay-truth -- [OPTIONS]: is what \`portico replay\` says what is served?

Requests are served by the runtime with an old and with a new config, over HTTP/1.1, TLS and HTTP/2; the old one's log is replayed.`,
  {
    count: ["100000", "requests"],
    seed: [undefined, "which (default: another one in each run)"],
  },
  async (given) => {
    const seed = seedOption(given.seed);
    const start = Date.now();
    const { requests, changed, actions, wrong } = await replayedAgainstTruth(
      seed,
      numberOf("count", given.count),
    );
    const seconds = Math.round((Date.now() - start) / 1000);
    console.log(`${requests} requests, ${changed} change, ${seconds} s, ${inspect(actions)}`);
    return { wrong: wrong.map((one) => `${one}\n${replayedBy("replay-truth", seed)()}`) };
  },
);
