import { parseArgs } from "node:util";
import { writeResult } from "../../reliability/results.js";
import { OPERATIONS } from "./operations.js";
import { soak, type SoakResult } from "./soak.js";

const HELP = `npm run soak -- [OPTIONS]: mixed load with aborts on both sides, for a long time

Two front ends on the deployed config get small requests, uploads, downloads, media, WebDAV, clients that leave and
upstreams that break, over HTTP/1.1, TLS and HTTP/2. One is reloaded again and again. Every answer is checked; memory,
sockets and descriptors must not grow.

  --minutes N   how long (default 20)
  --reload S    seconds between reloads of the first (default 60)
  --seed N      which operations (default: printed)
  --help        print this
`;

/**
 * What a heap may grow by between two collections, and while a generation of workers drains, and still be no leak: slope
 * times duration stays below it.
 */
const MEMORY_GROWTH_MAX = 48 * 2 ** 20;
/** More than before the load, with all clients gone. */
const IDLE_DESCRIPTORS_MORE_MAX = 4;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "20" },
      reload: { type: "string", default: "60" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const minutes = positive("--minutes", values.minutes);
  const seed = positive("--seed", values.seed);
  const reloadEverySeconds = positive("--reload", values.reload);
  console.log(`soak: ${minutes} minutes, a reload every ${reloadEverySeconds} s, seed ${seed}`);
  const results = await soak({ minutes, seed, reloadEverySeconds, progress: (line) => console.log(line) });
  const judged = results.map((result) => ({ ...result, problems: problemsOf(result, minutes) }));
  for (const result of judged) console.log(describe(result));
  const passed = judged.every(({ problems }) => problems.length === 0);
  writeResult({
    name: "soak",
    passed,
    seed,
    minutes,
    reloadEverySeconds,
    frontEnds: judged.map(figures),
    operations: Object.keys(OPERATIONS).map((operation) => ({
      operation,
      ...Object.fromEntries(judged.map(({ name, operations }) => [name, operations[operation] ?? 0])),
    })),
  });
  return passed ? 0 : 1;
}

/** What is recorded of a front end; operations are told apart from it. */
function figures({ name, reloads, failures, memory, descriptors, sockets, idle, ...rest }: JudgedResult) {
  return {
    name,
    reloads,
    operations: total(rest.operations),
    "operations that failed": failures,
    "memory, MiB a minute": Math.round((memory.slopePerMinute / 2 ** 20) * 100) / 100,
    "memory, begin to end": `${mebibytes(memory.first)} to ${mebibytes(memory.last)}`,
    "memory, peak": mebibytes(memory.peak),
    "memory, idle": `${mebibytes(idle.before.memory)} before, ${mebibytes(idle.after.memory)} after`,
    "descriptors a minute": descriptors.slopePerMinute,
    "descriptors, idle": `${idle.before.descriptors} before, ${idle.after.descriptors} after`,
    "sockets a minute": sockets.slopePerMinute,
    "sockets, idle": `${idle.before.sockets} before, ${idle.after.sockets} after`,
    ...(rest.problems.length === 0 ? {} : { problems: [...rest.problems, ...rest.failureSamples] }),
  };
}

function problemsOf(result: SoakResult, minutes: number): string[] {
  const growth = result.memory.slopePerMinute * minutes;
  const more = result.idle.after.descriptors - result.idle.before.descriptors;
  return [
    ...(result.failures > 0 ? [`${result.failures} operations went wrong`] : []),
    ...(growth > MEMORY_GROWTH_MAX ? [`memory grows by ${mebibytes(growth)} in ${minutes} minutes`] : []),
    ...(more > IDLE_DESCRIPTORS_MORE_MAX ? [`${more} descriptors stayed open after the load`] : []),
    ...(result.stderr === "" ? [] : [`it wrote to standard error: ${result.stderr.slice(0, 500)}`]),
  ];
}

type JudgedResult = SoakResult & { readonly problems: readonly string[] };

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0);

function describe(result: JudgedResult): string {
  const { memory, descriptors, sockets, idle, operations } = result;
  return [
    `${result.problems.length === 0 ? "ok  " : "FAIL"} ${result.name}: ${total(operations)} operations, ${result.reloads} reloads`,
    `     memory ${mebibytes(memory.first)} to ${mebibytes(memory.last)}, ${mebibytes(memory.slopePerMinute)} a minute, peak ${mebibytes(memory.peak)}`,
    `     descriptors ${descriptors.first} to ${descriptors.last}, sockets ${sockets.first} to ${sockets.last}`,
    `     idle: ${idle.before.descriptors} descriptors before, ${idle.after.descriptors} after; ${mebibytes(idle.before.memory)} before, ${mebibytes(idle.after.memory)} after`,
    ...result.problems.map((problem) => `     ${problem}`),
  ].join("\n");
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

function positive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`${option} needs a number above 0, not ${text}`);
  return value;
}

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`soak: ${error.message}`);
    process.exit(2);
  },
);
