import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { BAN_FILTER, renderBanFilter, watchedServers } from "../../src/render/index.js";

/** The addresses of failed log-ins that Debian's fail2ban finds in the lines of a log, by our filter for the first server. */
export function failuresIn(config: ProxyConfigInput, log: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "portico-fail2ban-"));
  try {
    cpSync("/etc/fail2ban", folder, { recursive: true });
    writeFileSync(join(folder, `filter.d/${BAN_FILTER}.conf`), renderBanFilter(watchedServers(config)));
    const file = join(folder, "access.log");
    writeFileSync(file, log, "latin1");
    const filter = `${BAN_FILTER}[server=1]`;
    const args = ["-c", folder, "--usedns", "no", "-o", "<ip> <time>", file, filter];
    const found = execFileSync("fail2ban-regex", args, { encoding: "utf8" });
    const now = Date.now() / 1000;
    return found
      .split("\n")
      .filter(Boolean)
      .map((line) => {
        const [address, at] = line.split(" ");
        if (Math.abs(Number(at) - now) > 600) throw new Error(`another time: ${line}`);
        return address!;
      });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
