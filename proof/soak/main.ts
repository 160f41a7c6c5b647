import { parseArgs } from "node:util";
import { BEYOND_LIMIT } from "../kit/exitCodes.js";
import { numberOption } from "../kit/numberOption.js";
import { judge, mebibytes } from "./judge.js";
import { soak, type SoakResult } from "./soak.js";

const HELP = `npm run soak -- [OPTIONS]: mixed load with aborts on both sides, for a long time

Two front ends on the deployed config get small requests, uploads, downloads, media, WebDAV, clients that leave and
upstreams that break, over HTTP/1.1, TLS and HTTP/2. One is reloaded again and again. Every answer is checked; memory,
sockets and descriptors must not grow. Every minute all clients leave, and nothing may be held that was not before.

  --minutes N   how long (default 20)
  --reload S    seconds between reloads of the first (default 60)
  --seed N      which operations (default: printed)
  --help        print this
`;

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
  const judged = frontEnds.map((result) => {
    const verdict = judge(result, minutes);
    return { ...result, ...verdict, problems: [...verdict.wrong, ...verdict.beyondLimit] };
  });
  for (const result of judged) console.log(describe(result));
  if (halfBodiesTaken > 0)
    console.log(`FAIL the upstream took ${halfBodiesTaken} halves of uploads for whole`);
  const right = halfBodiesTaken === 0 && judged.every(({ wrong }) => wrong.length === 0);
  const passed = right && judged.every(({ beyondLimit }) => beyondLimit.length === 0);
  return passed ? 0 : right ? BEYOND_LIMIT : 1;
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

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`soak: ${error.message}`);
    process.exit(2);
  },
);
