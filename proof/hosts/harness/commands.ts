import { type ChildProcess, spawn } from "node:child_process";

export interface Result {
  /** Exit status; 124 after a timeout, 128 and more after a signal. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** @default 180 */
  readonly timeoutSeconds?: number;
  /** @default - nothing */
  readonly input?: string | Buffer;
  /** @default - that of this process */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Runs a command to its end and collects what it says. Never rejects: a command that cannot start exits with 127. */
export function runCommand(argv: readonly string[], options: RunOptions = {}): Promise<Result> {
  const { timeoutSeconds = 180, input, env, cwd } = options;
  const child = startCommand(argv, { env, cwd });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout!.on("data", (data: Buffer) => stdout.push(data));
  child.stderr!.on("data", (data: Buffer) => stderr.push(data));
  child.stdin!.on("error", () => undefined);
  child.stdin!.end(input);
  return new Promise((done) => {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stopCommand(child);
    }, timeoutSeconds * 1000);
    const finish = (code: number, complaint = ""): void => {
      clearTimeout(timer);
      const text = (parts: Buffer[]): string => Buffer.concat(parts).toString("utf8");
      done({ code: late ? 124 : code, stdout: text(stdout), stderr: text(stderr) + complaint });
    };
    child.on("error", (error) => finish(127, error.message));
    child.on("close", (code, signal) => finish(code ?? (signal === null ? 1 : 128)));
  });
}

/** The same; a status other than 0 is an error that shows what the command said. */
export async function mustRun(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runCommand(argv, options);
  if (code !== 0) throw new Error(`${argv.join(" ")} exited with ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

/**
 * Starts a command that dies with this process, however that dies: the kernel sends the signal. It leads a process
 * group of its own, so that a stop reaches its children.
 */
export function startCommand(
  argv: readonly string[],
  { env, cwd }: Pick<RunOptions, "env" | "cwd"> = {},
): ChildProcess {
  return spawn("setpriv", ["--pdeathsig", "KILL", "--", ...argv], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env,
    cwd,
  });
}

export function stopCommand(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It ended between the look and the signal.
  }
}
