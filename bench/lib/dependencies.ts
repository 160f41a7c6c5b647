import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

const BENCH = path.resolve(__dirname, "..");

/** Installs the peers of `bench/package.json` if that was not done; without them the rest can still be measured. */
export function installPeers(): void {
  // npm writes this file last.
  if (existsSync(path.join(BENCH, "node_modules/.package-lock.json"))) return;
  console.error("installing the Node peers (npm ci --prefix bench)");
  const { status } = spawnSync(
    "npm",
    ["ci", "--prefix", BENCH, "--no-audit", "--no-fund", "--ignore-scripts"],
    {
      stdio: ["ignore", "ignore", "inherit"],
      timeout: 180_000,
    },
  );
  if (status !== 0) console.error("they could not be installed; they are left out");
}
