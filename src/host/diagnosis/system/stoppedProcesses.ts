import { readdirSync, readFileSync } from "node:fs";

/** Processes of a control group, and of the groups below it, that a signal has stopped (SIGSTOP): they do nothing. */
export function stoppedProcesses(group: string): number[] {
  return group === "" || group === "/" ? [] : processesOf(group).filter(isStopped);
}

/** The places of systemd's control groups: version 2, or beside version 1. */
const ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];

/** Processes of a control group, and of the groups below it. */
export function processesOf(group: string): number[] {
  for (const root of ROOTS) {
    const found = listed(`${root}${group}`);
    if (found !== undefined) return found;
  }
  return [];
}

function listed(directory: string): number[] | undefined {
  try {
    const own = readFileSync(`${directory}/cgroup.procs`, "utf8").split("\n").filter(Boolean).map(Number);
    const below = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...own, ...below.flatMap(({ name }) => listed(`${directory}/${name}`) ?? [])];
  } catch {
    // It ended meanwhile, or the groups are elsewhere.
    return undefined;
  }
}

function isStopped(pid: number): boolean {
  try {
    // The name, in brackets, may contain anything.
    return /\) [Tt] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
