import { spawn } from "node:child_process";
import { NATIVE_TSC, NATIVE_TSC_ENVIRONMENT } from "./paths.js";

/**
 * `npm test`: everything that must hold. Building keeps one processor busy, and jest waits for sockets and processes half
 * of its time, so what needs neither runs beside both, one after the other; its output comes when it has failed.
 * Arguments go to jest (`npm test -- __tests__/model`).
 */
const CHECKS: readonly Step[] = [
  // Four checkers, its default, take a third more: each of them checks much of what the others do.
  ["types", [process.execPath, NATIVE_TSC, "--noEmit", "--checkers", "1"], NATIVE_TSC_ENVIRONMENT],
  ["oxlint", ["oxlint"]],
  ["oxfmt", ["oxfmt", "--check"]],
  ["generated pages", [process.execPath, "--require", "tsx/cjs", "build/docs/main.ts", "--check"]],
  ["reliability page", [process.execPath, "--require", "tsx/cjs", "proof/report/main.ts", "--check"]],
];

type Step = readonly [
  name: string,
  command: readonly [program: string, ...args: string[]],
  environment?: NodeJS.ProcessEnv,
];

const times: string[] = [];
const failed: string[] = [];

/**
 * @param output shown at once, or only if the step fails
 * @returns whether it passed
 */
async function run([name, [program, ...args], more]: Step, output: "inherit" | "pipe"): Promise<boolean> {
  const start = performance.now();
  // npm has put the programs of its packages on the path.
  const env = { ...process.env, ...more };
  const child = spawn(program, args, { env, stdio: ["inherit", output, output] });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => chunks.push(chunk));
  const status = await new Promise((done) => child.once("close", done));
  times.push(`${name} ${((performance.now() - start) / 1000).toFixed(1)} s`);
  if (status === 0) return true;
  failed.push(name);
  process.stderr.write(Buffer.concat(chunks));
  return false;
}

async function main(): Promise<void> {
  const checked = (async () => {
    for (const check of CHECKS) await run(check, "pipe");
  })();
  const build = await run(["build", ["tsx", "build/build.ts"]], "inherit");
  if (build) await run(["jest", ["jest", ...process.argv.slice(2)]], "inherit");
  await checked;
  if (failed.length > 0) {
    console.error(`${failed.join(", ")} failed (${times.join(", ")})`);
    process.exitCode = 1;
  } else console.log(times.join(", "));
}

void main();
