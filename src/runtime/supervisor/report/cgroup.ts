import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join } from "node:path";

/** The limits of this process's control group (cgroups(7)), as a container's engine or systemd sets them. */
export interface CgroupLimits {
  /** Processors' worth of time, as `1.5`; undefined for no limit. */
  readonly cpus: number | undefined;
  /** Bytes; undefined for no limit below the machine's memory. */
  readonly memoryBytes: number | undefined;
}

/**
 * Reads the limits of either version of cgroups. A group is also held by the limits of those above it, so the lowest
 * one counts.
 *
 * @param proc directory of the process in procfs
 */
export function cgroupLimits(proc = "/proc/self"): CgroupLimits {
  const cpus = directoriesOf("cpu", proc).flatMap(cpusOf);
  const bytes = directoriesOf("memory", proc).flatMap(memoryOf);
  // Version 1 writes a huge number for no limit.
  const limited = bytes.filter((limit) => limit < totalmem());
  return { cpus: lowest(cpus), memoryBytes: lowest(limited) };
}

/** How many processes of a process's group the kernel has killed for want of memory, since there is that group. */
export function memoryKills(proc: string): number {
  const [group] = directoriesOf("memory", proc);
  if (group === undefined) return 0;
  const events = read(join(group, "memory.events")) ?? read(join(group, "memory.oom_control")) ?? "";
  return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
}

/** Tells which children the kernel has killed for want of memory: each kill that the group counts is of one of them. */
export class MemoryKills {
  private taken = memoryKills("/proc/self");

  /** Whether there was one more kill than was taken before. */
  take(): boolean {
    if (memoryKills("/proc/self") <= this.taken) return false;
    this.taken++;
    return true;
  }
}

const lowest = (limits: readonly number[]): number | undefined =>
  limits.length === 0 ? undefined : Math.min(...limits);

/** A mounted hierarchy; `root` is the group that is seen there. */
interface Mount {
  readonly root: string;
  readonly point: string;
  readonly type: string;
  /** In version 1 the controllers are among them. */
  readonly options: readonly string[];
}

/** A row of proc_pid_mountinfo(5): six fields and optional ones, a dash, then type, source and options. */
function mountOf(row: string): Mount {
  const [before = "", after = ""] = row.split(" - ");
  const [, , , root = "/", point = "/"] = before.split(" ");
  const [type = "", , options = ""] = after.split(" ");
  return { root, point, type, options: options.split(",") };
}

/** The directories of this process's group and of all above it, as far as they are mounted. */
function directoriesOf(controller: string, proc: string): string[] {
  const mounts = rowsOf(join(proc, "mountinfo")).map(mountOf);
  const groups = rowsOf(join(proc, "cgroup")).map((row) => row.split(":"));
  const first = mounts.find(({ type, options }) => type === "cgroup" && options.includes(controller));
  const mount = first ?? mounts.find(({ type }) => type === "cgroup2");
  const group = groups.find(([, names = ""]) =>
    first === undefined ? names === "" : names.split(",").includes(controller),
  );
  if (mount === undefined || group === undefined) return [];
  const path = group.slice(2).join(":");
  const { root, point } = mount;
  // A container that has no namespace of cgroups sees its group from outside, but only that one is mounted.
  const below = root === "/" ? path : path.startsWith(root) ? path.slice(root.length) : "";
  const found: string[] = [];
  for (let at = join(point, below); at.startsWith(point); at = dirname(at)) {
    found.push(at);
    if (at === "/") break;
  }
  return found;
}

function cpusOf(directory: string): number[] {
  const [quota, period] =
    read(join(directory, "cpu.max"))?.split(" ") ??
    ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map((name) => read(join(directory, name)));
  const cpus = Number(quota) / Number(period);
  // `max` and -1 are no limit.
  return cpus > 0 ? [cpus] : [];
}

function memoryOf(directory: string): number[] {
  const bytes = Number(read(join(directory, "memory.max")) ?? read(join(directory, "memory.limit_in_bytes")));
  return bytes > 0 ? [bytes] : [];
}

const rowsOf = (file: string): string[] => (read(file) ?? "").split("\n");

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1").trim();
  } catch {
    return undefined;
  }
}
