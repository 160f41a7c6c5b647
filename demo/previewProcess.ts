import { type ChildProcess, spawn } from "node:child_process";
import net from "node:net";
import { BUNDLE } from "../build/paths.js";

/** A `portico preview` that was started. */
export interface Preview {
  readonly pid: number | undefined;
  /** Resolves once it accepts connections; rejects with its last words if it does not come to that. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when the process has ended. */
  readonly died: Promise<string>;
  /** Shows what it logs from now on. */
  follow(): void;
  /** Ends it and everything it started. */
  stop(): Promise<void>;
}

const READY_MS_MAX = 20_000;
const STOP_MS_MAX = 3_000;

/** Starts the bundled proxy on loopback. */
export function startPreview(
  hostRoot: string,
  portOffset: number,
  upstreams: Readonly<Record<string, string>>,
  statusPort: number,
): Preview {
  const overrides = Object.entries(upstreams).flatMap(([name, url]) => ["--upstream", `${name}=${url}`]);
  const status = ["--status-port", String(statusPort)];
  const args = [
    BUNDLE,
    "preview",
    "--root",
    hostRoot,
    "--port-offset",
    String(portOffset),
    ...status,
    ...overrides,
  ];
  // A group of its own: Ctrl-C then reaches only the demo, which stops its parts in order.
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const log = new Log(child);
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
  });
  const died = exited.then((why) => `portico preview ${why}:\n${log.tail()}`);
  return {
    pid: child.pid,
    ready: becomesReady(child, died),
    died,
    follow: () => log.follow(),
    stop: () => stop(child, exited),
  };
}

const FIRST_OFFSET = 10_000;

/** The smallest of a few offsets that leaves every port free on loopback. */
export async function freePortOffset(ports: readonly number[]): Promise<number> {
  for (let offset = FIRST_OFFSET; offset <= 60_000; offset += 1_000) {
    const free = await Promise.all(ports.map((port) => isFree(port + offset)));
    if (free.every(Boolean)) return offset;
  }
  throw new Error(`no free ports for the listeners ${ports.join(", ")} between ${FIRST_OFFSET} and 65535`);
}

async function becomesReady(child: ChildProcess, died: Promise<string>): Promise<void> {
  const timeout = timer(READY_MS_MAX);
  const late = timeout.expired.then(() => `portico preview is not ready after ${READY_MS_MAX / 1000} s`);
  const failure = await Promise.race([saysReady(child), died, late]);
  timeout.clear();
  if (failure !== undefined) throw new Error(failure);
}

function saysReady(child: ChildProcess): Promise<undefined> {
  return new Promise((resolve) => {
    let text = "";
    child.stdout!.on("data", (chunk: Buffer) => {
      text += String(chunk);
      // The last line of what `preview` prints once it serves.
      if (text.includes("Ctrl-C")) resolve(undefined);
    });
  });
}

/** What the proxy logs: the last lines are kept for the case that it fails. */
class Log {
  private lines: string[] = [];
  private following = false;

  constructor(child: ChildProcess) {
    child.stderr!.setEncoding("utf8");
    child.stderr!.on("data", (chunk: string) => {
      if (this.following) process.stderr.write(chunk);
      this.lines = [...this.lines, ...chunk.split("\n").filter((line) => line !== "")].slice(-30);
    });
  }

  follow(): void {
    this.following = true;
  }

  tail(): string {
    return this.lines.map((line) => `  ${line}`).join("\n");
  }
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill("SIGTERM");
  const timeout = timer(STOP_MS_MAX);
  const late = await Promise.race([exited.then(() => false), timeout.expired.then(() => true)]);
  timeout.clear();
  // Somebody still downloads: a demo does not wait for that.
  const running = child.exitCode === null && child.signalCode === null;
  if (late && running) process.kill(-child.pid!, "SIGKILL");
  await exited;
}

function timer(ms: number): { expired: Promise<void>; clear(): void } {
  let handle: NodeJS.Timeout;
  const expired = new Promise<void>((resolve) => (handle = setTimeout(resolve, ms)));
  return { expired, clear: () => clearTimeout(handle) };
}

function isFree(port: number): Promise<boolean> {
  if (port > 65_535) return Promise.resolve(false);
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
