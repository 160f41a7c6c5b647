import { execFile, type ExecFileException } from "node:child_process";

export interface CommandResult {
  /** Exit status; 127 for a command that cannot be started, 124 for one that took too long. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end, as another user if one is given. Never rejects. */
export function run(
  command: readonly [string, ...string[]],
  seconds: number,
  environment: Readonly<Record<string, string>> = {},
  user?: { readonly uid: number; readonly gid: number },
): Promise<CommandResult> {
  const [program, ...args] = command;
  return new Promise((resolve) => {
    const options = {
      timeout: seconds * 1000,
      maxBuffer: 16 << 20,
      // This program reads the messages.
      env: { ...process.env, LC_ALL: "C.UTF-8", ...environment },
      // Another user may not be able to enter the directory of this process.
      ...(user === undefined ? {} : { ...user, cwd: "/" }),
    };
    const ended = (error: ExecFileException | null, stdout: string, stderr: string): void => {
      if (error === null) return resolve({ code: 0, stdout, stderr });
      const { code } = error as { code?: unknown };
      if (error.killed === true)
        return resolve({ code: 124, stdout, stderr: `did not end within ${seconds} s` });
      if (typeof code === "number") return resolve({ code, stdout, stderr });
      resolve({ code: 127, stdout, stderr: error.message });
    };
    try {
      execFile(program, args, options, ended).stdin?.end();
    } catch (error) {
      // Node throws for some errors of the system: a program that is a link to itself (ELOOP).
      ended(error as ExecFileException, "", "");
    }
  });
}
