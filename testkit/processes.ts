import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** What `/proc` tells of a process and everything it started. */
export interface Usage {
  readonly processes: number;
  /** Proportional set size in bytes: pages that processes share are counted once. */
  readonly memory: number;
  readonly descriptors: number;
  readonly sockets: number;
}

/** Process ids of a process's children. */
export function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => procFile(child, "stat").split(") ")[1]?.split(" ")[1] === String(pid));
}

/** A process and all below it. */
export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

/** Usage of a process and all below it, now. */
export function usageOf(pid: number): Usage {
  const tree = treeOf(pid);
  const descriptors = tree.flatMap(descriptorsOf);
  return {
    processes: tree.length,
    memory: sum(tree, (one) => Number(/^Pss:\s+(\d+)/m.exec(procFile(one, "smaps_rollup"))?.[1] ?? 0) * 1024),
    descriptors: descriptors.length,
    sockets: descriptors.filter((target) => target.startsWith("socket:")).length,
  };
}

/** Resident memory of processes, in bytes. */
export const resident = (pids: readonly number[]): number =>
  sum(pids, (pid) => Number(/VmRSS:\s+(\d+)/.exec(procFile(pid, "status"))?.[1] ?? 0) * 1024);

/** What processes wrote to disk so far, in bytes. */
export const written = (pids: readonly number[]): number =>
  sum(pids, (pid) => Number(/^write_bytes: (\d+)/m.exec(procFile(pid, "io"))?.[1] ?? 0));

const sum = (pids: readonly number[], value: (pid: number) => number): number =>
  pids.reduce((total, pid) => total + value(pid), 0);

/** What each descriptor of a process is open on, such as a path or `socket:[123]`; none of a process that is gone. */
export function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return (existsSync(folder) ? readdirSync(folder) : []).flatMap((fd) => {
    try {
      return [readlinkSync(`${folder}/${fd}`)];
    } catch {
      // It was closed meanwhile, as the one of the list itself.
      return [];
    }
  });
}

/** A file of a process; empty if that is gone. */
export function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}
