import { spawn } from "node:child_process";

/**
 * Runs a program whose output is worth reading only if it fails: then it is the error's message.
 *
 * @param options as of `spawn`: where it runs, and with which environment
 */
export async function runUnseen(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly timeout?: number } = {},
): Promise<void> {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const end = await new Promise<Error | number | NodeJS.Signals | null>((resolve) => {
    child.once("error", resolve);
    child.once("close", (status, signal) => resolve(status ?? signal));
  });
  if (end === 0) return;
  const why = end instanceof Error ? end.message : `${program} ended with ${end}`;
  throw new Error([...output.trim().split("\n").slice(-OUTPUT_LINES_MAX), why].join("\n"));
}

/** The end of an output says why it ended. */
const OUTPUT_LINES_MAX = 40;
