import { setTimeout as sleep } from "node:timers/promises";
import { collected } from "../../testkit/collected.js";
import { treeOf, usageOf } from "../../testkit/processes.js";

/** What a front end keeps when nobody asks anything of it and all garbage is collected. */
export interface Idle {
  readonly descriptors: number;
  readonly sockets: number;
  /** Bytes of living objects, and of memory outside the heap that V8 knows they own. */
  readonly live: number;
  /** Resident bytes besides the heap: code, buffers, TLS, what the allocator keeps. */
  readonly outsideHeap: number;
}

/** Until connections of clients and idle ones to the upstream are gone. */
const QUIET_MS = 4_000;

/** @param pid the master of a front end started with {@link COLLECT_OPTIONS} */
export async function idleUsageOf(pid: number): Promise<Idle> {
  await sleep(QUIET_MS);
  const heaps = await Promise.all(treeOf(pid).map(collected));
  const sum = (of: (heap: NodeJS.MemoryUsage) => number): number =>
    heaps.reduce((total, heap) => total + of(heap), 0);
  const { memory, descriptors, sockets } = usageOf(pid);
  return {
    descriptors,
    sockets,
    live: sum(({ heapUsed, external }) => heapUsed + external),
    outsideHeap: memory - sum(({ heapTotal }) => heapTotal),
  };
}
