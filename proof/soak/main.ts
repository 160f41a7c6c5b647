import { laboratory, numberOf, seedOption } from "../../testkit/laboratory.js";
import { judge, mebibytes } from "./judge.js";
import { soak, type SoakResult } from "./soak.js";

laboratory(
  `npm run soak -- [OPTIONS]: mixed load with aborts on both sides, for a long time

Two front ends on the deployed config get small requests, uploads, downloads, media, WebDAV, clients that leave and
upstreams that break, over HTTP/1.1, TLS and HTTP/2. One is reloaded again and again. Every response is checked; memory,
sockets and descriptors must not grow. Every minute all clients leave, and nothing may be held that was not before.`,
  {
    minutes: ["20", "how long"],
    reload: ["60", "seconds between reloads of the first"],
    seed: [undefined, "which operations (default: others in each run)"],
  },
  async (given) => {
    const minutes = numberOf("minutes", given.minutes, "part");
    const reloadEverySeconds = numberOf("reload", given.reload, "part");
    const seed = seedOption(given.seed);
    const progress = (line: string): void => console.log(line);
    const { frontEnds, halfBodiesTaken } = await soak({ minutes, seed, reloadEverySeconds, progress });
    for (const result of frontEnds) console.log(describe(result));
    const verdicts = frontEnds.map((result) => judge(result, minutes));
    const halves = `the upstream took ${halfBodiesTaken} halves of uploads for whole`;
    return {
      wrong: [...(halfBodiesTaken > 0 ? [halves] : []), ...verdicts.flatMap(({ wrong }) => wrong)],
      beyondLimit: verdicts.flatMap(({ beyondLimit }) => beyondLimit),
    };
  },
);

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0);

function describe(result: SoakResult): string {
  const { memory, descriptors, sockets, idle, operations } = result;
  return [
    `${result.name}: ${total(operations)} operations, ${result.reloads.done} reloads`,
    `     memory ${mebibytes(memory.first)} to ${mebibytes(memory.last)}, ${mebibytes(memory.slopePerMinute)} a minute, peak ${mebibytes(memory.peak)}`,
    `     descriptors ${descriptors.first} to ${descriptors.last}, sockets ${sockets.first} to ${sockets.last}`,
    `     idle: ${idle.before.descriptors} descriptors before, ${idle.after.descriptors} after; ${mebibytes(idle.before.live)} of objects before, ${mebibytes(idle.after.live)} after; ${mebibytes(idle.before.outsideHeap)} outside the heap before, ${mebibytes(idle.after.outsideHeap)} after`,
  ].join("\n");
}
