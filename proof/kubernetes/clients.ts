import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../build/paths.js";
import type { LoadOptions, LoadReport } from "../../testkit/load/steadyLoad.js";

/** Programs in the clients' network: their packets come to the node from outside, as those of real clients do. */
const IN_CLIENTS = ["nsenter", "--net=/run/netns/clients"] as const;

/** Addresses of clients in it. */
export const CLIENT_ADDRESSES = ["10.99.0.11", "10.99.0.12"] as const;
/** What is in front of the cluster in it, where something is. */
export const BALANCER_ADDRESS = "10.99.0.254";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

/** Runs a program to its end. */
export async function runAsClient(command: string, ...args: readonly string[]): Promise<Ran> {
  const [enter, ...into] = IN_CLIENTS;
  const ran = promisify(execFile)(enter, [...into, command, ...args], { maxBuffer: 16 << 20 });
  return ran.then(
    ({ stdout, stderr }) => ({ code: 0, out: stdout, errors: stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      out: stdout,
      errors: stderr,
    }),
  );
}

/** Starts a program that runs until it is ended. */
export function startAsClient(command: string, ...args: readonly string[]): ChildProcess {
  const [enter, ...into] = IN_CLIENTS;
  return spawn(enter, [...into, command, ...args], { stdio: ["pipe", "pipe", "inherit"] });
}

/** The text at a URL, as a client with an address gets it. */
export async function fetchAsClient(url: string, ...options: readonly string[]): Promise<string> {
  const { code, out, errors } = await runAsClient("curl", "-sSk", "--max-time", "10", ...options, url);
  if (code !== 0) throw new Error(`${url}: ${errors.trim()}`);
  return out;
}

/** A busy day (`testkit/load`), as a process in the clients' network. */
export class Load {
  private constructor(private readonly child: ChildProcess) {}

  /** Resolves once every kind of request had a response. */
  static async start(options: LoadOptions): Promise<Load> {
    const main = join(ROOT, "testkit/load/main.ts");
    const node = [process.execPath, "--import", "tsx", main, "load", JSON.stringify(options)] as const;
    const child = startAsClient(...node);
    const [said] = (await Promise.race([once(child.stdout!, "data"), once(child, "exit")])) as [unknown];
    if (!String(said).startsWith("loading")) throw new Error(`the load ended: ${String(said)}`);
    return new Load(child);
  }

  /** Waits for what is under way. */
  async stop(): Promise<LoadReport> {
    let text = "";
    this.child.stdout!.on("data", (chunk: Buffer) => (text += chunk.toString()));
    this.child.stdin!.end();
    await once(this.child, "close");
    return JSON.parse(text) as LoadReport;
  }
}
