import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { numberOption } from "../kit/numberOption.js";
import { describe } from "./describe.js";
import { caseAt } from "./generate.js";
import { Proxy } from "./proxy.js";
import { type Finding, playAlone, search } from "./search.js";

const USUAL_COUNT = 200_000;
/** Cases that are played at the same time. */
const LANES = 48;

const HELP = `npm run exchanges -- [OPTIONS]: generated exchanges between scripted clients and a strict upstream

Clients over HTTP/1.1, TLS and HTTP/2 send requests whose bytes are joined and split everywhere, with bodies too long, too
short and exact, and leave when they like; the upstream answers early, late, wrongly and with everything an upgrade may be
answered with. Nothing may reach the upstream that nobody sent, and nobody may get what is not theirs.

  --count N      exchanges (default ${USUAL_COUNT})
  --seed N       which (default: printed)
  --only N       only the case of that number, alone, with its script
  --findings N   how many findings are enough (default 5)
  --help         print this
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      count: { type: "string", default: String(USUAL_COUNT) },
      seed: { type: "string" },
      only: { type: "string" },
      findings: { type: "string", default: "5" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const seed = numberOption("--seed", values.seed ?? String(randomInt(2 ** 30)), 0);
  const count = numberOption("--count", values.count);
  const only = values.only === undefined ? undefined : numberOption("--only", values.only, 0);
  const findingsMax = numberOption("--findings", values.findings);
  const proxy = await Proxy.start(only === undefined ? LANES : 1);
  try {
    if (only !== undefined) return await one(proxy, seed, only);
    console.log(`seed ${seed}, ${count} exchanges`);
    const start = Date.now();
    const result = await search(proxy, {
      seed,
      from: 0,
      exchanges: count,
      findingsMax,
      seen: ({ index, faults }) => console.log(`seen: case ${index}: ${faults.join("; ")}`),
      found: (finding) => console.log(report(finding, seed)),
    });
    const seconds = Math.round((Date.now() - start) / 1000);
    const protocols = Object.entries(result.protocols).map(([name, times]) => `${name} ${times}`);
    console.log(
      `${result.exchanges} exchanges in ${result.cases} cases, ${seconds} s (${protocols.join(", ")})`,
    );
    console.log(`the event loop stood still for ${Math.round(result.heldMs)} ms at most`);
    for (const law of result.broken) console.log(`FAIL ${law}`);
    const found = result.findings.length + result.broken.length;
    console.log(`${found} findings`);
    process.exitCode = found > 0 ? 1 : 0;
  } finally {
    await proxy.stop();
  }
}

async function one(proxy: Proxy, seed: number, index: number): Promise<void> {
  const played = caseAt(seed, index);
  console.log(describe(played));
  const faults = await playAlone(proxy, played);
  console.log(faults.length === 0 ? "holds" : faults.map((fault) => `FAIL ${fault}`).join("\n"));
  process.exitCode = faults.length === 0 ? 0 : 1;
}

function report({ index, faults, least, alone }: Finding, seed: number): string {
  return [
    `FAIL case ${index}${alone ? "" : " (did not fail again alone)"}`,
    ...faults.map((fault) => `  ${fault}`),
    alone ? "the least case that fails alike:" : "the case:",
    describe(least),
    `again: npm run exchanges -- --seed ${seed} --only ${index}`,
    "",
  ].join("\n");
}

void main();
