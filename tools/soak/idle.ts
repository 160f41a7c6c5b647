import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { treeOf, usageOf } from "../frontEnd/processes.js";

/** What a front end keeps when nobody asks anything of it and all garbage is collected. */
export interface Idle {
  readonly descriptors: number;
  readonly sockets: number;
  /** Bytes of living objects, and of memory outside the heap that V8 knows they own. */
  readonly live: number;
  /** Resident bytes besides the heap: code, buffers, TLS, what the allocator keeps. */
  readonly outsideHeap: number;
}

/** Node's options for a front end whose idle state is asked for. */
export const NODE_OPTIONS = ["--import", join(__dirname, "collect.mjs")];

/** Until connections of clients and idle ones to the upstream are gone. */
const QUIET_MS = 4_000;
const COLLECTED_MS = 10_000;

/** @param pid the master of a front end started with {@link NODE_OPTIONS} */
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

async function collected(pid: number): Promise<NodeJS.MemoryUsage> {
  const file = join(tmpdir(), `portico-collected-${pid}.json`);
  rmSync(file, { force: true });
  process.kill(pid, "SIGPWR");
  for (const end = performance.now() + COLLECTED_MS; !existsSync(file); await sleep(50)) {
    if (performance.now() > end) throw new Error(`process ${pid} did not say what memory it holds`);
  }
  const usage = JSON.parse(readFileSync(file, "utf8")) as NodeJS.MemoryUsage;
  rmSync(file);
  return usage;
}
