import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { isRefused } from "../../testkit/ports.js";

/** A proxy that runs as a process of its own. */
export interface RunningProcess {
  /** The shell that watches over it. */
  readonly pid: number;
  /** Tells it to stop; fails if it does not, or not cleanly. */
  stop(): Promise<void>;
}

export interface ProcessOptions {
  readonly command: readonly string[];
  /** User and group to run as; the caller's own if left out. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Ports that must accept connections before the process counts as started. */
  readonly ports: readonly number[];
  /** More to say when it does not start, such as its log. */
  readonly explain?: () => string;
}

/**
 * Ends the command when standard input ends, which happens also if the test runner is killed: no proxy survives its
 * test. What does not heed SIGTERM in time is killed with all its workers: they are a group of their own.
 */
const SUPERVISOR = `
setsid "$@" & child=$!
cat >/dev/null
kill -TERM $child
( i=0; while kill -0 $child 2>/dev/null && [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done
  kill -KILL -- -$child 2>/dev/null ) &
wait $child`;

const START_MS = 60_000;

/** Starts a process and waits until it accepts connections. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const child = spawn("/bin/sh", ["-c", SUPERVISOR, "sh", ...options.command], {
    stdio: ["pipe", "pipe", "pipe"],
    ...options.user,
  });
  let output = "";
  const collect = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-8_192));
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  let running = true;
  const exited = new Promise<number | null>((resolve) =>
    child.once("exit", (code) => {
      running = false;
      resolve(code);
    }),
  );
  // The shell may be gone before the pipe is closed.
  child.stdin.on("error", () => undefined);
  const stop = async (): Promise<void> => {
    child.stdin.end();
    const code = await exited;
    if (code !== 0) throw new Error(`${options.command.join(" ")}\nended with code ${code}:\n${output}`);
  };
  const deadline = Date.now() + START_MS;
  for (const port of options.ports) {
    while (await isRefused(port)) {
      if (running && Date.now() < deadline) {
        await sleep(20);
        continue;
      }
      await stop().catch(() => undefined);
      const said = `${output}${options.explain?.() ?? ""}`;
      throw new Error(`${options.command.join(" ")}\ndoes not accept connections on port ${port}:\n${said}`);
    }
  }
  return { pid: child.pid!, stop };
}
