import { spawnSync } from "node:child_process";

/**
 * `npm test`: everything that must hold, cheapest first, each step timed. Arguments go to jest
 * (`npm test -- __tests__/model`).
 */
const STEPS: readonly (readonly [string, readonly string[]])[] = [
  ["build", ["tsx", "build/build.ts"]],
  ["types", ["tsc", "--noEmit"]],
  ["eslint", ["eslint", "."]],
  ["prettier", ["prettier", "--check", "--log-level", "warn", "."]],
  ["reliability page", ["tsx", "reliability/main.ts", "--check"]],
  ["jest", ["jest", ...process.argv.slice(2)]],
];

const times: string[] = [];
for (const [name, [command, ...args]] of STEPS) {
  const start = performance.now();
  const { status } = spawnSync("npx", ["--no-install", command!, ...args], { stdio: "inherit" });
  times.push(`${name} ${((performance.now() - start) / 1000).toFixed(1)} s`);
  if (status !== 0) {
    console.error(`${name} failed (${times.join(", ")})`);
    process.exit(1);
  }
}
console.log(times.join(", "));
