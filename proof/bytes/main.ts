import { inspect } from "node:util";
import { laboratory, numberOf, replayedBy, seedOption } from "../../testkit/laboratory.js";
import { caseAt } from "./generate.js";
import { Proxy } from "./proxy.js";
import { playAlone, search } from "./search.js";

laboratory(
  `npm run bytes -- [OPTIONS]: every way in which bytes pass the proxy

Clients over HTTP/1.1, TLS and HTTP/2, before upstreams over TCP, TLS and Unix sockets, and before files: downloads, uploads,
both at once and tunnels, in each framing, of sizes at which a buffer is full, written and read in every way. All bytes are
random, and each that arrives has to be the one that was sent there.`,
  {
    count: ["3000", "exchanges; each round of 348 has every way once"],
    seed: [undefined, "which (default: another one in each run)"],
    case: [undefined, "only the case of that number, some times at once; made smaller if it fails"],
    findings: ["20", "how many findings are enough"],
  },
  async (given) => {
    const seed = seedOption(given.seed);
    const proxy = await Proxy.start(seed);
    try {
      if (given.case !== undefined) {
        const number = numberOf("case", given.case, 0);
        console.log(scriptOf(caseAt(seed, number)));
        const failed = await playAlone(proxy, seed, number);
        if (failed === undefined) return { wrong: [] };
        return { wrong: [`${failed.shown.faults.join("\n")}\n${scriptOf(failed.played)}`] };
      }
      const start = Date.now();
      const { findings, cases, exchanges, bytes, failed } = await search(proxy, {
        seed,
        exchanges: numberOf("count", given.count),
        findingsMax: numberOf("findings", given.findings),
      });
      const [seconds, mebibytes] = [Math.round((Date.now() - start) / 1000), Math.round(bytes / 2 ** 20)];
      for (const [name, count] of [...failed].sort()) console.log(`${count} failed: ${name}`);
      console.log(`${exchanges} exchanges in ${cases} cases, ${mebibytes} MiB, ${seconds} s`);
      const again = replayedBy("bytes", seed);
      return { wrong: findings.map(({ number, faults }) => `${faults.join("\n")}\n${again(number)}`) };
    } finally {
      await proxy.stop();
    }
  },
);

const scriptOf = (played: object): string => inspect(played, { depth: null, breakLength: 160 });
