import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { removeIfEmpty } from "./durableFiles.js";
import type { Programs } from "./programs.js";
import { run } from "../diagnosis/system/command.js";
import { nodeOptions } from "../../runtime/supervisor/processes/noDebugger.js";
import { systemdIsHere } from "./systemctl.js";

/**
 * A command that continues to its end whatever happens to the terminal, the connection and the calling process: it runs
 * as a separate unit (without systemd-run, as a separate session) and writes its output into a record. The calling
 * process follows the record. If none followed a record to its end, the next run shows it.
 */

/**
 * A process that changes a host is the last that the kernel kills for lack of memory, because a kill would leave the
 * host between two states. (The proxy's workers, the database and the application have 0.)
 */
export const OOM_SCORE_ADJUST = -900;

/** The folder of records is in memory, so that a full disk loses none; they end with a reboot, as the commands do. */
export const RECORDS = "/run/portico-activation";

/** A line of a record. */
type RecordLine =
  | { readonly pid: number; readonly command: string; readonly since: string }
  | { readonly out: string }
  | { readonly err: string }
  | { readonly exit: number };

export interface Streams {
  out(text: string): void;
  err(text: string): void;
}

/** Writes a record, and the same to the journal; a record that cannot be written must not end the command. */
export class RecordWriter implements Streams {
  constructor(
    private readonly file: string,
    private readonly journal: Streams,
  ) {
    const since = new Date().toISOString();
    this.append({ pid: process.pid, command: process.argv.slice(2, 3).join(), since });
  }

  out(text: string): void {
    this.append({ out: text });
    this.journal.out(text);
  }

  err(text: string): void {
    this.append({ err: text });
    this.journal.err(text);
  }

  exit(code: number): void {
    this.append({ exit: code });
  }

  private append(entry: RecordLine): void {
    try {
      appendFileSync(this.file, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
    } catch {
      // Then it cannot be read either.
    }
  }
}

/** Whether a run changes this host itself; files below a folder are laid out by the process that was asked. */
export function canDetach(root: string): boolean {
  return root === "/" && process.geteuid!() === 0 && systemdIsHere();
}

/**
 * Runs a command of this program detached, and follows it.
 * @param programs Node and the runtime that run it, also after a kill
 * @param args the arguments of the program; `--record FILE` joins them
 * @returns its exit code
 */
export async function runDetached(
  [node, runtime]: Programs,
  args: readonly string[],
  streams: Streams,
): Promise<number> {
  const id = randomUUID();
  // The name shows which process follows it.
  const file = join(RECORDS, `${process.pid}-${id}.record`);
  const command = [node, ...nodeOptions(), runtime, ...args, "--record", file];
  mkdirSync(RECORDS, { recursive: true, mode: 0o700 });
  // At once: a deactivation that ends removes the directory if it is empty.
  closeSync(openSync(file, "a", 0o600));
  await showUnwatched(streams);
  const isAlive = await start(`portico-activation-${id}`, command);
  const leave = (): never => {
    streams.err("it continues without this terminal; the next `portico activate` shows how it ended\n");
    process.exit(INTERRUPTED);
  };
  process.once("SIGINT", leave).once("SIGTERM", leave);
  try {
    return await follow(file, isAlive, streams);
  } finally {
    process.off("SIGINT", leave).off("SIGTERM", leave);
    if (args[0] === "deactivate") await removeIfEmpty(RECORDS);
  }
}

/** Starts it; the result shows whether it still runs. */
async function start(unit: string, command: readonly string[]): Promise<() => Promise<boolean>> {
  const session = process.env.SSH_CONNECTION;
  const outcome = await run(
    [
      "systemd-run",
      "--quiet",
      `--unit=${unit}`,
      "--description=portico changes this host",
      // A stop or a shutdown signals portico only, which rolls back; processes that it has started end with it.
      "--property=KillMode=mixed",
      `--property=TimeoutStopSec=${STOP_SECONDS}`,
      // A unit with default dependencies stops before the sockets do. At a shutdown a roll-back that stops the proxy's
      // socket would wait for the shutdown, and the shutdown for the roll-back.
      "--property=DefaultDependencies=no",
      "--property=After=sysinit.target",
      "--property=Conflicts=shutdown.target",
      "--property=Before=shutdown.target",
      // If it is killed, it is started again, and first finishes or undoes the interrupted run.
      "--property=Restart=on-abnormal",
      "--property=RestartSec=1",
      // However often: if systemd gave up, daemons would stay stopped.
      "--property=StartLimitIntervalSec=0",
      `--property=OOMScoreAdjust=${OOM_SCORE_ADJUST}`,
      // The caller gets the status of a refused or rolled-back deployment. Any other end stays in `systemctl --failed`.
      "--property=SuccessExitStatus=1",
      ...(session === undefined ? [] : [`--setenv=SSH_CONNECTION=${session}`]),
      "--",
      ...command,
    ],
    START_SECONDS,
  );
  if (outcome.code === 0) {
    return async () => {
      const shown = await run(
        ["systemctl", "show", "--property=ActiveState", "--value", unit],
        START_SECONDS,
      );
      return /^(?:active|activating|deactivating|reloading)/.test(shown.stdout);
    };
  }
  const [program, ...args] = command;
  const child = spawn(program!, args, { detached: true, stdio: "ignore" });
  child.on("error", () => undefined);
  child.unref();
  return async () => child.exitCode === null && child.signalCode === null;
}

/** Repeats a record as it grows, until the command has ended. */
async function follow(file: string, isAlive: () => Promise<boolean>, streams: Streams): Promise<number> {
  const record = new RecordReader(file);
  for (let asks = 1; ; asks++) {
    // Checked before reading, so that its last output is always read.
    const alive = asks % ASKS_PER_LOOK !== 0 || (await isAlive());
    const exit = repeat(record.read(), streams);
    if (exit !== undefined || !alive) {
      record.close();
      rmSync(file, { force: true });
      if (exit === undefined)
        streams.err("it ended without any output: see `journalctl -u 'portico-activation-*'`\n");
      return exit ?? 1;
    }
    await sleep(POLL_MS);
  }
}

/** Repeats the output of commands whose callers were gone; for commands that still run, up to their end. */
async function showUnwatched(streams: Streams): Promise<void> {
  const names = readdirSync(RECORDS).filter((name) => name.endsWith(".record") && !isRunning(parseInt(name)));
  for (const name of names) {
    const file = join(RECORDS, name);
    const record = new RecordReader(file);
    const entries = record.read();
    record.close();
    const begun = entries.find((entry) => "pid" in entry);
    const ended = entries.some((entry) => "exit" in entry);
    // A run in progress holds the lock, which reports it; its record is shown once it has ended.
    if (begun === undefined || (!ended && isRunning(begun.pid))) continue;
    streams.err(`complete output of the ${begun.command} that began at ${begun.since}:\n`);
    const exit = repeat(entries, { out: (text) => streams.err(text), err: (text) => streams.err(text) });
    streams.err(exit === undefined ? "it was cut off\n" : `it ended with status ${exit}\n`);
    rmSync(file, { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Repeats entries; the exit code if the command has ended. */
function repeat(entries: readonly RecordLine[], streams: Streams): number | undefined {
  for (const entry of entries) {
    if ("out" in entry) streams.out(entry.out);
    else if ("err" in entry) streams.err(entry.err);
    else if ("exit" in entry) return entry.exit;
  }
  return undefined;
}

class RecordReader {
  private readonly fd: number;
  private at = 0;

  constructor(file: string) {
    this.fd = openSync(file, "r");
  }

  /** The complete lines that came since. */
  read(): RecordLine[] {
    const { size } = fstatSync(this.fd);
    const buffer = Buffer.alloc(size - this.at);
    const read = readSync(this.fd, buffer, 0, buffer.length, this.at);
    const end = buffer.subarray(0, read).lastIndexOf("\n") + 1;
    this.at += end;
    const lines = buffer.toString("utf8", 0, end).split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as RecordLine);
  }

  close(): void {
    closeSync(this.fd);
  }
}

/** The status a shell gives for a command that SIGINT ended. */
const INTERRUPTED = 130;
const POLL_MS = 100;
const ASKS_PER_LOOK = 10;
const START_SECONDS = 30;
/** A roll-back stops and starts units, and waits until the host serves again. */
const STOP_SECONDS = 900;
