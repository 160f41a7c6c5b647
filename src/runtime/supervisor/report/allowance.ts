import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import {
  connectionsWithin,
  LIMITS_BY_MEMORY,
  limitsWithin,
  MIB,
  type ProxyConfig,
  SHARED_BYTES,
  WORKER_BYTES,
  workersWithin,
} from "../../../model/serving.js";
import { type CgroupLimits, cgroupLimits } from "./cgroup.js";
import type { LoadedConfig } from "../../load/loadConfig.js";

/** How many workers there are, and how much memory each may take, so that all of them fit their control group. */

/** Processes to start for a config. */
export function workerCount({ workers }: Pick<ProxyConfig, "workers">, limits = ownLimits()): number {
  if (workers !== "auto") return workers;
  const { cpus, memoryBytes } = limits;
  // Node rounds a quota down, and half a processor more is worth a worker.
  const wanted = cpus === undefined ? availableParallelism() : Math.min(Math.ceil(cpus), allowedCpus());
  return memoryBytes === undefined ? wanted : Math.min(wanted, workersWithin(memoryBytes));
}

/** Most of V8's heap in each worker; undefined where memory has no limit: then V8 decides. */
export function heapOf(config: Pick<ProxyConfig, "workers">, limits = ownLimits()): WorkerHeap | undefined {
  const { memoryBytes } = limits;
  if (memoryBytes === undefined) return undefined;
  const share = (memoryBytes - SHARED_BYTES) / workerCount(config, limits);
  return {
    oldMiB: Math.max(OLD_MIB_MIN, Math.floor((share * HEAP_SHARE) / MIB)),
    ...(share < ROOMY_BYTES ? { semiMiB: TIGHT_SEMI_MIB } : {}),
  };
}

export interface WorkerHeap {
  readonly oldMiB: number;
  /** The size of a semi-space, where there is less room than for the usual one (`workerOptions`). */
  readonly semiMiB?: number;
}

/** The limits that were found and the resulting settings, for the log; undefined without a limit. */
export function allowanceText(
  config: Pick<ProxyConfig, "workers" | "limits">,
  limits = ownLimits(),
): string | undefined {
  const { cpus, memoryBytes } = limits;
  const number = workerCount(config, limits);
  const found = [
    ...(cpus === undefined ? [] : [`${Number(cpus.toFixed(2))} CPU${cpus === 1 ? "" : "s"}`]),
    ...(memoryBytes === undefined ? [] : [`${Math.floor(memoryBytes / MIB)} MiB of memory`]),
  ];
  if (found.length === 0) return undefined;
  const heap = heapOf(config, limits);
  const { connectionsMax, concurrentStreamsMax } = config.limits;
  const clients = `up to ${connectionsMax} connections of up to ${concurrentStreamsMax} streams`;
  const heaps = heap === undefined ? "" : `, with heaps of up to ${heap.oldMiB} MiB and ${clients}`;
  const scarce =
    memoryBytes !== undefined && memoryBytes < SHARED_BYTES + number * WORKER_BYTES
      ? `; that is little: each worker needs ${WORKER_BYTES / MIB} MiB, and everything else ${SHARED_BYTES / MIB} MiB`
      : "";
  return `the control group allows ${found.join(" and ")}: ${number} worker${number === 1 ? "" : "s"}${heaps}${scarce}`;
}

/** The rest is for buffers, which are outside of the heap. */
const HEAP_SHARE = 0.5;
const OLD_MIB_MIN = 32;
const ROOMY_BYTES = 256 * MIB;
const TIGHT_SEMI_MIB = 4;

let known: CgroupLimits | undefined;

/** Read once: heaps cannot change while processes run. */
function ownLimits(): CgroupLimits {
  return (known ??= cgroupLimits());
}

/** Processors that a process may run on, by its status (proc_pid_status(5)): a list such as `0-3,8`. */
export function allowedCpus(status = readFileSync("/proc/self/status", "latin1")): number {
  const row = status.split("\n").find((one) => one.startsWith(ALLOWED));
  const list = row?.slice(ALLOWED.length);
  if (list === undefined) return availableParallelism();
  const ranges = list.split(",").map((range) => range.split("-").map(Number));
  return ranges.reduce((sum, [from, to = from]) => sum + to! - from! + 1, 0);
}

const ALLOWED = "Cpus_allowed_list:";

// Limits of clients that follow from the memory of the control group, as a unit or a container's engine sets it.

/** A config, and those of its limits that its file sets. */
export type FromFile = Pick<LoadedConfig, "config" | "givenLimits">;

/** The config that workers serve: limits that the file does not set are those that memory has room for. */
export function withinMemory({ config, givenLimits = [] }: FromFile, group = ownLimits()): ProxyConfig {
  const { memoryBytes } = group;
  if (memoryBytes === undefined) return config;
  const number = workerCount(config, group);
  return {
    ...config,
    limits: { ...config.limits, ...limitsWithin(memoryBytes, number, config.limits, givenLimits) },
  };
}

/** A warning if clients that stay within limits of the config's own could take more memory than there is. */
export function memoryWarning(
  { config, givenLimits = [] }: FromFile,
  group = ownLimits(),
): string | undefined {
  const { memoryBytes } = group;
  const own = LIMITS_BY_MEMORY.filter((name) => givenLimits.includes(name));
  if (memoryBytes === undefined || own.length === 0) return undefined;
  const { limits } = withinMemory({ config, givenLimits }, group);
  const fit = connectionsWithin(memoryBytes, workerCount(config, group), limits);
  if (limits.connectionsMax <= fit) return undefined;
  const { connectionsMax, concurrentStreamsMax } = limits;
  return (
    `limits.connectionsMax (${connectionsMax}) and limits.concurrentStreamsMax (${concurrentStreamsMax}) let clients ` +
    `take more than the ${Math.floor(memoryBytes / MIB)} MiB of memory here, and the kernel would kill workers: ` +
    `there is room for ${fit} connections of each; lower the limits, or raise MemoryMax= in the service's unit, or the container's limit`
  );
}
