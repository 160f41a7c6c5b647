import { spawn } from "node:child_process";
import { NATIVE_TSC, NATIVE_TSC_ENVIRONMENT } from "./paths.js";

/**
 * `npm test`: everything that must hold. Building keeps one processor busy, and jest waits for sockets and processes half
 * of its time, so what needs neither runs beside both, one after the other; its output comes when it has failed. What
 * takes longer to get or to compile than a test may is made ready before the first one (proof/prepare.ts).
 * Arguments go to jest (`npm test -- __tests__/model`); the proofs run where one names them (`npm test -- proof/`).
 */
const CHECKS: readonly Step[] = [
  // Four checkers, its default, take a third more: each of them checks much of what the others do.
  ["types", [process.execPath, NATIVE_TSC, "--noEmit", "--checkers", "1"], NATIVE_TSC_ENVIRONMENT],
  ["oxlint", ["oxlint"]],
  ["oxfmt", ["oxfmt", "--check"]],
];
/** Its examples of errors deliver what is built. */
const PAGES: Step = [
  "generated pages",
  [process.execPath, "--require", "tsx/cjs", "build/docs/main.ts", "--check"],
];

type Step = readonly [
  name: string,
  command: readonly [program: string, ...args: string[]],
  environment?: NodeJS.ProcessEnv,
];

const times: string[] = [];
const failed: string[] = [];

/**
 * @param show its output: at once, only if the step fails, or what it says of its progress, while what it prints is for us
 * @returns whether it passed, and what it printed, unless that was shown at once
 */
async function run(
  [name, [program, ...args], more]: Step,
  show: "inherit" | "pipe" | "printed",
): Promise<{ readonly passed: boolean; readonly output: string }> {
  const start = performance.now();
  // npm has put the programs of its packages on the path.
  const env = { ...process.env, ...more };
  const streams = show === "printed" ? (["pipe", "inherit"] as const) : [show, show];
  const child = spawn(program, args, { env, stdio: ["inherit", ...streams] });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => chunks.push(chunk));
  const status = await new Promise((done) => child.once("close", done));
  times.push(`${name} ${((performance.now() - start) / 1000).toFixed(1)} s`);
  const output = Buffer.concat(chunks);
  const passed = status === 0;
  if (!passed) {
    failed.push(name);
    process.stderr.write(output);
  }
  return { passed, output: output.toString() };
}

async function main(): Promise<void> {
  const building = run(["build", ["tsx", "build/build.ts"]], "inherit");
  const checked = (async () => {
    for (const check of CHECKS) await run(check, "pipe");
    await building;
    await run(PAGES, "pipe");
  })();
  const args = process.argv.slice(2);
  const [built, { output: leftOut }] = await Promise.all([
    building,
    run(["preparation", ["tsx", "proof/prepare.ts", ...args]], "printed"),
  ]);
  // Where something could not be made ready, only the tests that need it fail.
  if (built.passed) await run(["jest", ["jest", ...args], { PORTICO_LEFT_OUT: leftOut }], "inherit");
  await checked;
  if (failed.length > 0) {
    console.error(`${failed.join(", ")} failed (${times.join(", ")})`);
    process.exitCode = 1;
  } else console.log(times.join(", "));
}

void main();
