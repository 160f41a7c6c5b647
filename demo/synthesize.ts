import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../build/paths.js";

export type Mode = "plain" | "tls";

/** A deployment as `main.ts` synthesizes it. */
export interface Synthesized {
  readonly mode: Mode;
  readonly stackFile: string;
  /** Folder that takes the place of `/`. */
  readonly hostRoot: string;
}

const run = promisify(execFile);

/**
 * Runs `main.ts` as `cdktf synth` would, for a host on loopback whose files lie below a folder. Each mode has an
 * output folder of its own, so that the two can be compared.
 */
export async function synthesize(
  modes: readonly Mode[],
  address: string,
  out: string,
): Promise<Synthesized[]> {
  // cdktf creates the last folder of the path only.
  await mkdir(out, { recursive: true });
  const places = modes.map((mode) => ({
    mode,
    hostRoot: path.join(out, mode === "tls" ? "host" : "host-plain"),
    outdir: path.join(out, mode === "tls" ? "cdktf" : "cdktf-plain"),
  }));
  const variables = places.map(({ mode, hostRoot, outdir }) => ({
    PORTICO_ADDRESS: address,
    PORTICO_MODE: mode,
    PORTICO_ROOT: hostRoot,
    CDKTF_OUTDIR: outdir,
  }));
  // No calls home: the demo works without a network.
  const env = { ...process.env, CHECKPOINT_DISABLE: "1", DISABLE_VERSION_CHECK: "1" };
  const args = ["--require", "tsx/cjs", "demo/runMain.ts", JSON.stringify(variables)];
  try {
    await run(process.execPath, args, { cwd: ROOT, env });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    const words = (stderr?.trim() || message).split("\n").slice(0, 20).join("\n");
    throw new Error(`main.ts failed:\n${words}`);
  }
  return places.map(({ mode, hostRoot, outdir }) => ({
    mode,
    hostRoot,
    stackFile: path.join(outdir, "stacks", "portico", "cdk.tf.json"),
  }));
}
