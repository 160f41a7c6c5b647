import { existsSync, mkdtempSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";

/** A control group with a limit of memory, in which a proxy runs as in a small machine. */
export interface MemoryGroup {
  /** `cgroup v2`, for remarks. */
  readonly kind: string;
  /** A command that runs another one in the group, in the same process. */
  readonly under: readonly string[];
  /** Removes the group; its processes have ended. */
  remove(): void;
}

/** A group of that many bytes without swap; undefined where this user may not make one. */
export function memoryGroup(bytes: number): MemoryGroup | undefined {
  const isV1 = existsSync(path.join(V1, "memory.limit_in_bytes"));
  if (!isV1 && !/\bmemory\b/.test(textOf(path.join(V2, "cgroup.subtree_control")))) return undefined;
  let group: string;
  try {
    group = mkdtempSync(path.join(isV1 ? V1 : V2, "portico-bench-"));
  } catch {
    return undefined;
  }
  writeFileSync(path.join(group, isV1 ? "memory.limit_in_bytes" : "memory.max"), String(bytes));
  const swap = path.join(group, isV1 ? "memory.swappiness" : "memory.swap.max");
  if (existsSync(swap)) writeFileSync(swap, "0");
  return {
    kind: isV1 ? "cgroup v1" : "cgroup v2",
    under: ["sh", "-c", 'echo $$ > "$0" && exec "$@"', path.join(group, "cgroup.procs")],
    remove: () => rmdirSync(group),
  };
}

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "latin1") : "";
}
