import { parseArgs } from "node:util";
import { BEYOND_LIMIT } from "../kit/exitCodes.js";
import { numberOption } from "../kit/numberOption.js";
import { writeResult } from "../kit/results.js";
import { OPERATIONS } from "./operations.js";
import { soak, type SoakResult } from "./soak.js";

/**
 * What resident memory may grow by, from the begin to the end of the load and outside the heap of V8. Both vary without a
 * leak: V8 takes 32 MiB for young objects and gives them back when it sees fit, the allocator keeps freed buffers (40 to
 * 63 MiB seen in one worker), and a generation of workers drains beside the next.
 */
const RESIDENT_GROWTH_MAX = 64 * 2 ** 20;
/** More living objects than before the load, all garbage collected: what was compiled later, and nothing else. */
const LIVE_GROWTH_MAX = 6 * 2 ** 20;
/** What the number of descriptors and sockets under load may grow by: slope times duration. */
const NUMBER_GROWTH_MAX = 8;
/** More than before the load, with all clients gone. */
const IDLE_NUMBER_MORE_MAX = 4;
/** A shorter run is judged, but not recorded. */
const FULL_MINUTES = 20;

const HELP = `npm run soak -- [OPTIONS]: mixed load with aborts on both sides, for a long time

Two front ends on the deployed config get small requests, uploads, downloads, media, WebDAV, clients that leave and
upstreams that break, over HTTP/1.1, TLS and HTTP/2. One is reloaded again and again. Every answer is checked; memory,
sockets and descriptors must not grow.

  --minutes N   how long (default ${FULL_MINUTES}; shorter runs are not recorded)
  --reload S    seconds between reloads of the first (default 60)
  --seed N      which operations (default: printed)
  --help        print this
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: String(FULL_MINUTES) },
      reload: { type: "string", default: "60" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const minutes = numberOption("--minutes", values.minutes, undefined);
  const seed = numberOption("--seed", values.seed);
  const reloadEverySeconds = numberOption("--reload", values.reload, undefined);
  console.log(`soak: ${minutes} minutes, a reload every ${reloadEverySeconds} s, seed ${seed}`);
  const { frontEnds, halfBodiesTaken } = await soak({
    minutes,
    seed,
    reloadEverySeconds,
    progress: (line) => console.log(line),
  });
  const judged = frontEnds.map((result) => ({
    ...result,
    problems: [...wrongs(result, minutes), ...memoryProblems(result)],
  }));
  for (const result of judged) console.log(describe(result));
  if (halfBodiesTaken > 0)
    console.log(`FAIL the upstream took ${halfBodiesTaken} halves of uploads for whole`);
  const right = halfBodiesTaken === 0 && frontEnds.every((result) => wrongs(result, minutes).length === 0);
  const passed = right && frontEnds.every((result) => memoryProblems(result).length === 0);
  const code = passed ? 0 : right ? BEYOND_LIMIT : 1;
  if (minutes < FULL_MINUTES) return code;
  writeResult({
    name: "soak",
    passed,
    seed,
    minutes,
    reloadEverySeconds,
    "halves of uploads taken for whole": halfBodiesTaken,
    frontEnds: judged.map(figures),
    operations: Object.keys(OPERATIONS).map((operation) => ({
      operation,
      ...Object.fromEntries(judged.map(({ name, operations }) => [name, operations[operation] ?? 0])),
    })),
  });
  return code;
}

/** What is recorded of a front end; operations are told apart from it. */
function figures({ name, reloads, failures, memory, descriptors, sockets, idle, ...rest }: JudgedResult) {
  return {
    name,
    reloads: reloads.done,
    operations: total(rest.operations),
    "operations that failed": failures,
    "memory, MiB a minute": Math.round((memory.slopePerMinute / 2 ** 20) * 100) / 100,
    "memory, begin to end": `${mebibytes(memory.first)} to ${mebibytes(memory.last)}`,
    "memory, peak": mebibytes(memory.peak),
    "living objects, idle": `${mebibytes(idle.before.live)} before, ${mebibytes(idle.after.live)} after`,
    "memory outside the heap, idle": `${mebibytes(idle.before.outsideHeap)} before, ${mebibytes(idle.after.outsideHeap)} after`,
    "descriptors a minute": descriptors.slopePerMinute,
    "descriptors, idle": `${idle.before.descriptors} before, ${idle.after.descriptors} after`,
    "sockets a minute": sockets.slopePerMinute,
    "sockets, idle": `${idle.before.sockets} before, ${idle.after.sockets} after`,
    ...(rest.problems.length === 0 ? {} : { problems: [...rest.problems, ...rest.failureSamples] }),
  };
}

/** What other work on the machine is no reason for. */
function wrongs(result: SoakResult, minutes: number): string[] {
  const { descriptors, sockets, idle, reloads, failures, stderr } = result;
  return [
    ...(failures > 0 ? [`${failures} operations went wrong`] : []),
    ...(reloads.done === reloads.ordered ? [] : [`${reloads.done} of ${reloads.ordered} reloads were done`]),
    ...grown(
      "descriptors",
      descriptors.slopePerMinute * minutes,
      idle.after.descriptors - idle.before.descriptors,
    ),
    ...grown("sockets", sockets.slopePerMinute * minutes, idle.after.sockets - idle.before.sockets),
    ...(stderr === "" ? [] : [`it wrote to standard error: ${stderr.slice(0, 500)}`]),
  ];
}

function memoryProblems({ memory, idle }: SoakResult): string[] {
  const growth = memory.last - memory.first;
  const live = idle.after.live - idle.before.live;
  const outsideHeap = idle.after.outsideHeap - idle.before.outsideHeap;
  return [
    ...(growth > RESIDENT_GROWTH_MAX ? [`memory grows by ${mebibytes(growth)} under load`] : []),
    ...(live > LIVE_GROWTH_MAX ? [`${mebibytes(live)} more of objects stayed after the load`] : []),
    ...(outsideHeap > RESIDENT_GROWTH_MAX
      ? [`${mebibytes(outsideHeap)} more memory outside the heap stayed after the load`]
      : []),
  ];
}

function grown(what: string, underLoad: number, idle: number): string[] {
  return [
    ...(underLoad > NUMBER_GROWTH_MAX ? [`${what} grow by ${underLoad.toFixed(1)} under load`] : []),
    ...(idle > IDLE_NUMBER_MORE_MAX ? [`${idle} ${what} stayed open after the load`] : []),
  ];
}

type JudgedResult = SoakResult & { readonly problems: readonly string[] };

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0);

function describe(result: JudgedResult): string {
  const { memory, descriptors, sockets, idle, operations } = result;
  return [
    `${result.problems.length === 0 ? "ok  " : "FAIL"} ${result.name}: ${total(operations)} operations, ${result.reloads.done} reloads`,
    `     memory ${mebibytes(memory.first)} to ${mebibytes(memory.last)}, ${mebibytes(memory.slopePerMinute)} a minute, peak ${mebibytes(memory.peak)}`,
    `     descriptors ${descriptors.first} to ${descriptors.last}, sockets ${sockets.first} to ${sockets.last}`,
    `     idle: ${idle.before.descriptors} descriptors before, ${idle.after.descriptors} after; ${mebibytes(idle.before.live)} of objects before, ${mebibytes(idle.after.live)} after; ${mebibytes(idle.before.outsideHeap)} outside the heap before, ${mebibytes(idle.after.outsideHeap)} after`,
    ...result.problems.map((problem) => `     ${problem}`),
  ].join("\n");
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`soak: ${error.message}`);
    process.exit(2);
  },
);
