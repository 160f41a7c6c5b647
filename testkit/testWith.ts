import { spawnSync } from "node:child_process";

/**
 * `test`, where what it needs is here: programs, and `root` for its rights. Elsewhere it is skipped, and CI, where nothing
 * may be, runs it all the same.
 */
export const testWith = (...needs: readonly string[]): typeof test =>
  process.env["CI"] !== undefined || needs.every(isHere) ? test : test.skip;

export const isHere = (need: string): boolean =>
  need === "root"
    ? process.geteuid!() === 0
    : spawnSync("sh", ["-c", `command -v ${need}`], { stdio: "ignore" }).status === 0;
