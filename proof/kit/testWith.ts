import { spawnSync } from "node:child_process";

/** `test`, where these programs are here. Elsewhere it is skipped, and CI, where nothing may be, runs it all the same. */
export const testWith = (...programs: readonly string[]): typeof test =>
  process.env["CI"] !== undefined || programs.every(isHere) ? test : test.skip;

const isHere = (program: string): boolean =>
  spawnSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" }).status === 0;
