import { statfs } from "node:fs/promises";
import type { Finding } from "./evidence.js";
import { statsOf } from "./logState.js";

/** Less than this is not enough for a deployment, or for a day of logs. */
const FREE_BYTES_MIN = 32 << 20;
const FREE_FILES_MIN = 500;

/** File systems with little space left, each reported once, with the first directory on it. */
export async function scarceSpace(directories: readonly string[]): Promise<Finding[]> {
  const seen = new Set<number>();
  const findings: Finding[] = [];
  for (const at of directories) {
    const found = statsOf(at);
    if (found === undefined || seen.has(found.dev)) continue;
    seen.add(found.dev);
    const { bavail, bsize, files, ffree } = await statfs(at);
    const fix = `Free space; this shows large directories: du -xh --max-depth=2 ${at} | sort -h`;
    const megabytes = Math.floor((bavail * bsize) / 2 ** 20);
    if (bavail * bsize < FREE_BYTES_MIN) findings.push({ at, what: `${megabytes} MiB are left`, fix });
    else if (files > 0 && ffree < FREE_FILES_MIN)
      findings.push({ at, what: `${ffree} more files can be created`, fix });
  }
  return findings;
}
