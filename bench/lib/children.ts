import { type ChildProcess, spawn, type SpawnOptions, spawnSync } from "node:child_process";
import { closeSync, openSync, readdirSync, rmSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";

/**
 * Every process the benchmark starts, and every folder it makes, is known here, and gone when the benchmark is: after
 * its end, a failure, Ctrl-C, and (by the kernel's parent-death signal) even after SIGKILL.
 */

export interface StartOptions {
  /** CPUs the process may use, as taskset writes them: `0`, `0,1`. */
  readonly cores?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** File that takes standard output and error; the proxies that log to standard output log there. */
  readonly output?: string;
}

const groups = new Set<ChildProcess>();
const folders = new Set<string>();

/** Starts a process in a group of its own, pinned, so that it and all it starts can be ended together. */
export function start(command: readonly string[], options: StartOptions = {}): ChildProcess {
  const argv = [...deathSignal(), ...pinning(options.cores), ...command];
  const fd = options.output === undefined ? undefined : openSync(options.output, "a");
  const spawnOptions: SpawnOptions = {
    detached: true,
    env: { ...process.env, ...options.env },
    cwd: options.cwd,
    stdio: fd === undefined ? ["ignore", "pipe", "pipe"] : ["ignore", fd, fd],
  };
  const child = spawn(argv[0]!, argv.slice(1), spawnOptions);
  if (fd !== undefined) closeSync(fd);
  groups.add(child);
  child.once("exit", () => groups.delete(child));
  // A missing program is reported by whoever waits for its output.
  child.on("error", () => groups.delete(child));
  return child;
}

/** Asks a process to end, and ends its group when it does not heed that within `patienceMs`. */
export async function stop(child: ChildProcess, patienceMs = 5_000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timer = setTimeout(() => killGroup(child), patienceMs);
  await gone;
  clearTimeout(timer);
  // What it left behind, such as workers of a master that was killed.
  killGroup(child);
}

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** Runs a program to its end; kills it when `limitMs` is over. */
export async function run(
  command: readonly string[],
  options: StartOptions & { limitMs: number },
): Promise<Output> {
  const child = start(command, options);
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    killGroup(child);
  }, options.limitMs);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  clearTimeout(timer);
  if (late) throw new Error(`${command.join(" ")}: not done within ${options.limitMs / 1000} s\n${stderr}`);
  return { stdout, stderr, code };
}

/** As {@link run}; a non-zero exit code is an error. */
export async function runChecked(
  command: readonly string[],
  options: StartOptions & { limitMs: number },
): Promise<string> {
  const { stdout, stderr, code } = await run(command, options);
  if (code !== 0) throw new Error(`${command.join(" ")}: exit code ${code}\n${stderr || stdout}`);
  return stdout;
}

/** Where a program is; undefined if it is not installed. */
export function findProgram(name: string): string | undefined {
  const extended = `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin`;
  const { stdout, status } = spawnSync("/bin/sh", ["-c", `command -v ${name}`], {
    env: { ...process.env, PATH: extended },
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** A folder that is removed with the benchmark. Its name carries the process id, so that leftovers can be told. */
export function ownFolder(below: string): string {
  removeLeftovers(below);
  const folder = path.join(below, `${FOLDER_PREFIX}${process.pid}-${folders.size}`);
  folders.add(folder);
  return folder;
}

/** Ends and removes everything at once. Idempotent. */
export function cleanUp(): void {
  for (const child of groups) {
    // nginx workers outlive a master that is killed: the group goes, not only the master.
    killGroup(child);
  }
  groups.clear();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}

/** Cleans up on every way out. */
export function cleanUpOnExit(): void {
  process.on("exit", cleanUp);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
}

const FOLDER_PREFIX = "portico-bench-";

/** Folders of benchmarks that were killed. */
function removeLeftovers(below: string): void {
  for (const name of readdirSync(below)) {
    const pid = name.startsWith(FOLDER_PREFIX) ? Number.parseInt(name.slice(FOLDER_PREFIX.length), 10) : NaN;
    if (!Number.isInteger(pid) || runs(pid)) continue;
    rmSync(path.join(below, name), { recursive: true, force: true });
  }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}

function pinning(cores: string | undefined): string[] {
  return cores === undefined ? [] : ["taskset", "-c", cores];
}

let setpriv: string | undefined | null = null;

function deathSignal(): string[] {
  if (setpriv === null) setpriv = findProgram("setpriv");
  return setpriv === undefined ? [] : [setpriv, "--pdeathsig", "TERM"];
}
