import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Node's options for a process that {@link collected} is asked of, and for those that it starts. */
export const COLLECT_OPTIONS = ["--require", join(__dirname, "collect.js")];

const COLLECTED_MS = 10_000;

/** What a process holds once all its garbage is collected. @param pid started with {@link COLLECT_OPTIONS} */
export async function collected(pid: number): Promise<NodeJS.MemoryUsage> {
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
