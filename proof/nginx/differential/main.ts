import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { numberOption } from "../../kit/numberOption.js";
import { GENERATED_RULES } from "./deviations.js";
import { answerText } from "./generate.js";
import { startProxies } from "./proxies.js";
import { byUse, type Finding, search } from "./search.js";

/**
 * `npm run differential -- [--seed N] [--count N] [--findings N] [--case N]`: the same generated requests to nginx and
 * to Portico. What differs by no rule is shrunk and printed with the command that repeats it.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: "string" },
      count: { type: "string", default: "5000" },
      findings: { type: "string", default: "5" },
      case: { type: "string" },
    },
  });
  const seed = numberOption("--seed", values.seed ?? String(randomInt(2 ** 30)), 0);
  const only = values.case === undefined ? undefined : numberOption("--case", values.case, 0);
  const count = numberOption("--count", values.count);
  const findingsMax = numberOption("--findings", values.findings);
  if (process.env[SUPERVISED] === undefined) return supervise(seed);
  const from = only ?? 0;
  const to = only === undefined ? count : only + 1;
  console.log(`seed ${seed}, ${to - from} requests`);
  const start = Date.now();
  const proxies = await startProxies();
  try {
    const result = await search(proxies, { seed, from, to, findingsMax });
    const seconds = Math.round((Date.now() - start) / 1000);
    for (const finding of result.findings) console.log(describe(finding, seed));
    console.log(`${result.compared} requests compared in ${seconds} s`);
    for (const [channel, times] of Object.entries(result.channels)) console.log(`  ${channel}: ${times}`);
    console.log("differences that a rule allows, by rule:");
    for (const [rule, times] of byUse(result.rules))
      console.log(`  ${String(times).padStart(5)} ${rule} (${GENERATED_RULES[rule].allowedBy})`);
    console.log(`${result.findings.length} differences that no rule allows`);
    process.exitCode = result.findings.length > 0 ? 1 : 0;
  } finally {
    await proxies.stop();
  }
}

/** Set in the process that compares. */
const SUPERVISED = "PORTICO_DIFFERENTIAL_SUPERVISED";
const ATTEMPTS_MAX = 3;

/**
 * Compares in a process of its own. Among thousands of sessions Node 20 now and then aborts as it collects one of its
 * HTTP/2 client's (`current_nghttp2_memory_`, as in nodejs/node#39951): that is not a verdict, and the run starts again.
 */
function supervise(seed: number): void {
  for (let attempt = 1; ; attempt++) {
    const args = [...process.execArgv, ...process.argv.slice(1), "--seed", String(seed)];
    const { status, signal } = spawnSync(process.execPath, args, {
      env: { ...process.env, [SUPERVISED]: "yes" },
      stdio: "inherit",
    });
    process.exitCode = status ?? 1;
    if (signal !== "SIGABRT" || attempt === ATTEMPTS_MAX) return;
    console.log(`Node aborted, which says nothing of the proxies: attempt ${attempt + 1} of ${ATTEMPTS_MAX}`);
  }
}

function describe({ minimal, differences, number }: Finding, seed: number): string {
  const { channel, method, target, host, version, fields, body } = minimal;
  const pieces = body?.pieces.map((piece) => piece.slice(0, 60));
  return [
    "",
    `over ${channel}: ${JSON.stringify(`${method} ${target} ${version}`)}, host ${JSON.stringify(host)}`,
    ...fields.map(([name, value]) => `  ${JSON.stringify(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`  body by ${body.framing}: ${JSON.stringify(pieces)}`]),
    `  answered ${JSON.stringify(answerText(minimal).slice(0, 300))}`,
    differences,
    `  again: npm run differential -- --seed ${seed} --case ${number}`,
  ].join("\n");
}

void main();
