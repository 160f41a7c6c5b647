import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** What the kernel says of processes. */

/** A process and all that descend from it. */
export function familyOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // The command's name may hold blanks and parentheses; the parent is the second field after the last one.
    const parent = Number(/.*\) \S (\d+)/s.exec(read(Number(name), "stat"))?.[1] ?? NaN);
    if (!Number.isNaN(parent)) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const family: number[] = [];
  for (const next = [pid]; next.length > 0;) {
    const one = next.pop()!;
    family.push(one);
    next.push(...(children.get(one) ?? []));
  }
  return family;
}

/**
 * CPU nanoseconds, user and system, that the processes' threads have run. From `schedstat`, which the scheduler
 * keeps exactly: the ticks of `/proc/PID/stat` are samples, and miss what sleeps and wakes in step with them.
 */
export function cpuNanoseconds(pids: readonly number[]): number {
  return sum(pids, (pid) => {
    const threads = list(`/proc/${pid}/task`);
    return sum(threads, (thread) => Number(read(pid, `task/${thread}/schedstat`).split(" ")[0] || 0));
  });
}

/** Resident memory, bytes; pages that processes share count in each. */
export function residentBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => kilobytes(read(pid, "status"), "VmRSS"));
}

/** Proportional memory, bytes: shared pages are split between those that share them. */
export function proportionalBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => kilobytes(read(pid, "smaps_rollup"), "Pss"));
}

/** Highest resident memory since {@link resetPeak}, bytes. */
export function peakBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => kilobytes(read(pid, "status"), "VmHWM"));
}

/** Lets the peak begin anew. */
export function resetPeak(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      writeFileSync(`/proc/${pid}/clear_refs`, "5");
    } catch {
      // Gone, or not ours to reset: then the peak is that of its whole life.
    }
  }
}

/** Bytes that the processes caused to be written to disk. */
export function writtenBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => Number(/^write_bytes: (\d+)/m.exec(read(pid, "io"))?.[1] ?? 0));
}

/** Nanoseconds that CPUs were busy, with whatever; from ticks, so only a hint. */
export function busyNanoseconds(cores: string): number {
  const wanted = coreNumbers(cores).map((core) => `cpu${core}`);
  const lines = readFileSync("/proc/stat", "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  return sum(
    lines.filter(([name]) => wanted.includes(name!)),
    // user nice system idle iowait irq softirq steal
    ([, ...ticks]) => sum([0, 1, 2, 5, 6, 7], (i) => Number(ticks[i])) * TICK_NS,
  );
}

/** How many CPUs a list such as `0-1,3` names. */
export function coreNumbers(cores: string): number[] {
  return cores.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number) as [number, number?];
    return Array.from({ length: last! - first + 1 }, (_, i) => first + i);
  });
}

/** Linux shows ticks of 10 ms to programs, whatever it uses itself. */
const TICK_NS = 10_000_000;

function kilobytes(text: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}
