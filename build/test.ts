import { spawn } from "node:child_process";

/**
 * `npm test`: everything that must hold. Jest waits for sockets and processes half of its time, so what needs no build and
 * no jest runs beside it, one after the other; its output comes when it has failed. Arguments go to jest
 * (`npm test -- __tests__/model`).
 */
const CHECKS: readonly Step[] = [
  ["types", ["tsc", "--noEmit"]],
  ["eslint", ["eslint", "."]],
  ["prettier", ["prettier", "--check", "--log-level", "warn", "."]],
  ["generated pages", ["tsx", "build/docs/main.ts", "--check"]],
  ["reliability page", ["tsx", "proof/report/main.ts", "--check"]],
];

type Step = readonly [name: string, command: readonly string[]];

const times: string[] = [];
const failed: string[] = [];

/** @param output shown at once, or only if the step fails */
async function run([name, command]: Step, output: "inherit" | "pipe"): Promise<void> {
  const start = performance.now();
  const child = spawn("npx", ["--no-install", ...command], { stdio: ["inherit", output, output] });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => chunks.push(chunk));
  const status = await new Promise((done) => child.once("close", done));
  times.push(`${name} ${((performance.now() - start) / 1000).toFixed(1)} s`);
  if (status === 0) return;
  failed.push(name);
  process.stderr.write(Buffer.concat(chunks));
}

async function main(): Promise<void> {
  await run(["build", ["tsx", "build/build.ts"]], "inherit");
  if (failed.length === 0) {
    const jest = run(["jest", ["jest", ...process.argv.slice(2)]], "inherit");
    for (const check of CHECKS) await run(check, "pipe");
    await jest;
  }
  if (failed.length > 0) {
    console.error(`${failed.join(", ")} failed (${times.join(", ")})`);
    process.exitCode = 1;
  } else console.log(times.join(", "));
}

void main();
