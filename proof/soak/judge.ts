import type { Verdict } from "../../testkit/laboratory.js";
import type { SoakResult } from "./soak.js";

/**
 * What resident memory may grow by, from the begin to the end of the load and outside the heap of V8. Both vary without a
 * leak: V8 takes 32 MiB for young objects and gives them back when it sees fit, the allocator keeps freed buffers (40 to
 * 63 MiB seen in one worker), and a generation of workers drains beside the next.
 */
const RESIDENT_GROWTH_MAX = 64 * 2 ** 20;
/** More living objects than before the load, all garbage collected: what was compiled later, and nothing else. */
const LIVE_GROWTH_MAX = 6 * 2 ** 20;
/**
 * What the number of descriptors and sockets under load may grow by: slope times duration. Within half a minute the number
 * that a dozen clients happen to have open varies by as many; what stays open shows when they have gone.
 */
const NUMBER_GROWTH_MAX = 8;
/** More than before the load, with all clients gone. */
const IDLE_NUMBER_MORE_MAX = 4;

export const judge = (result: SoakResult, minutes: number): Required<Verdict> => ({
  wrong: wrongs(result),
  beyondLimit: [...memoryProblems(result), ...numberProblems(result, minutes)],
});

function wrongs({ idle, reloads, failures, stderr, kept }: SoakResult): string[] {
  return [
    ...(failures > 0 ? [`${failures} operations went wrong`] : []),
    ...kept,
    ...(reloads.done === reloads.ordered ? [] : [`${reloads.done} of ${reloads.ordered} reloads were done`]),
    ...stayed("descriptors", idle.after.descriptors - idle.before.descriptors),
    ...stayed("sockets", idle.after.sockets - idle.before.sockets),
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

const stayed = (what: string, more: number): string[] =>
  more > IDLE_NUMBER_MORE_MAX ? [`${more} ${what} stayed open after the load`] : [];

const numberProblems = ({ descriptors, sockets }: SoakResult, minutes: number): string[] =>
  Object.entries({ descriptors, sockets })
    .map(([what, { slopePerMinute }]) => ({ what, growth: slopePerMinute * minutes }))
    .filter(({ growth }) => growth > NUMBER_GROWTH_MAX)
    .map(({ what, growth }) => `${what} grow by ${growth.toFixed(1)} under load`);

export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
