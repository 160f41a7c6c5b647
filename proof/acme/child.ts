import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import type { OrderedCertificate } from "../../src/runtime/acme/acmeHost.js";
import type { Challenge } from "../../src/runtime/dispatch/challenge.js";
import type { CertificateContents } from "../../src/runtime/tls/tlsContents.js";
import type { Responder } from "./responder.js";

/** `killedProcess.ts` as one file. */
export async function buildProgram(): Promise<{ file: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), "portico-acme-child-"));
  const file = join(folder, "child.cjs");
  await build({
    entryPoints: [join(__dirname, "killedProcess.ts")],
    outfile: file,
    bundle: true,
    // Node starts it faster than a module, and dozens of it are started.
    format: "cjs",
    platform: "node",
    target: "node20",
  });
  return { file, remove: () => rmSync(folder, { recursive: true }) };
}

interface Message {
  readonly challenges?: readonly Challenge[];
  readonly issued?: CertificateContents;
  readonly line?: string;
}

export interface Child {
  readonly process: ChildProcess;
  /** Resolves when it is gone. */
  readonly gone: Promise<unknown>;
  kill(): Promise<unknown>;
}

export function startChild(
  file: string,
  host: Responder,
  order: { state: string; wanted: OrderedCertificate; dieAt?: { change: number; when: "before" | "after" } },
): Child {
  const child = spawn(process.execPath, [file, JSON.stringify(order)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const gone = once(child, "exit");
  child.on("error", () => undefined);
  child.on("message", ({ challenges, issued, line }: Message) => {
    if (line !== undefined) host.lines.push(line);
    if (issued !== undefined) host.install(issued);
    if (challenges !== undefined)
      void host
        .respondToChallenges(challenges)
        .then(() => child.connected && child.send("responded", () => undefined));
  });
  return {
    process: child,
    gone,
    kill: () => {
      child.kill("SIGKILL");
      return gone;
    },
  };
}
