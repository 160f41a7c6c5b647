import { again, laboratory, numberOf, replayedBy, seedOption } from "../../../testkit/laboratory.js";
import { GENERATED_RULES } from "./deviations.js";
import { responseText } from "./generate.js";
import { startProxies } from "./proxies.js";
import { byUse, type Finding, search } from "./search.js";

/** Set in the process that compares. */
const SUPERVISED = "PORTICO_DIFFERENTIAL_SUPERVISED";
const ATTEMPTS_MAX = 3;

laboratory(
  `npm run differential -- [OPTIONS]: the same generated requests to nginx and to Portico

What differs by no rule is made smaller and printed with the command that repeats it.`,
  {
    seed: [undefined, "which (default: another one in each run)"],
    count: ["5000", "requests"],
    findings: ["5", "how many findings are enough"],
    case: [undefined, "only the request of that number"],
  },
  async (given) => {
    if (process.env[SUPERVISED] === undefined) return supervise(given.seed);
    const seed = seedOption(given.seed);
    const from = given.case === undefined ? 0 : numberOf("case", given.case, 0);
    const to = given.case === undefined ? numberOf("count", given.count) : from + 1;
    const findingsMax = numberOf("findings", given.findings);
    const start = Date.now();
    const proxies = await startProxies();
    try {
      const result = await search(proxies, { seed, from, to, findingsMax });
      const seconds = Math.round((Date.now() - start) / 1000);
      console.log(`${result.compared} requests compared in ${seconds} s`);
      for (const [channel, times] of Object.entries(result.channels)) console.log(`  ${channel}: ${times}`);
      console.log("differences that a rule allows, by rule:");
      for (const [rule, times] of byUse(result.rules))
        console.log(`  ${String(times).padStart(5)} ${rule} (${GENERATED_RULES[rule].allowedBy})`);
      return { wrong: result.findings.map((finding) => describe(finding, seed)) };
    } finally {
      await proxies.stop();
    }
  },
);

/**
 * Compares in a process of its own. Among thousands of sessions Node 20 now and then aborts as it collects one of its
 * HTTP/2 client's (`current_nghttp2_memory_`, as in nodejs/node#39951): that is not a verdict, and the run starts again.
 */
function supervise(given: string | undefined): undefined {
  const more = given === undefined ? ["--seed", String(seedOption(given))] : [];
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    if (again(SUPERVISED, { more }).signal !== "SIGABRT") return;
    console.log(`Node aborted, which says nothing of the proxies, at attempt ${attempt} of ${ATTEMPTS_MAX}`);
  }
}

function describe({ minimal, differences, number }: Finding, seed: number): string {
  const { channel, method, target, host, version, fields, body } = minimal;
  const pieces = body?.pieces.map((piece) => piece.slice(0, 60));
  return [
    `over ${channel}: ${JSON.stringify(`${method} ${target} ${version}`)}, host ${JSON.stringify(host)}`,
    ...fields.map(([name, value]) => `  ${JSON.stringify(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`  body by ${body.framing}: ${JSON.stringify(pieces)}`]),
    `  response ${JSON.stringify(responseText(minimal).slice(0, 300))}`,
    differences,
    replayedBy("differential", seed)(number),
  ].join("\n");
}
