import { spawn } from "node:child_process";
import { problem, ProblemError } from "../model/index.js";

/**
 * Runs one activation at a time; a second one waits, and fails when its time is up.
 *
 * Node has no flock(2), so the lock is held by a child, which lets go when its input ends: with this process, however
 * that ends. It leads a session of its own, so that a Ctrl-C does not free the lock while we are still rolling back.
 */
export async function withLock<T>(file: string, waitSeconds: number, act: () => Promise<T>): Promise<T> {
  const release = await acquire(file, waitSeconds);
  try {
    return await act();
  } finally {
    await release();
  }
}

async function acquire(file: string, waitSeconds: number): Promise<() => Promise<void>> {
  const args = ["--exclusive", "--wait", String(waitSeconds), file, "sh", "-c", "echo; exec cat"];
  const child = spawn("flock", args, { stdio: ["pipe", "pipe", "pipe"], detached: true });
  let complaint = "";
  child.stderr.on("data", (data) => (complaint += data));
  child.stdin.on("error", () => undefined);
  const ended = new Promise<void>((done) => {
    child.once("close", () => done());
    child.once("error", () => done());
  });
  await new Promise<void>((held, failed) => {
    child.stdout.once("data", () => held());
    child.once("error", (error) => failed(lockProblem(file, `flock cannot be started: ${error.message}`)));
    child.once("close", (code) => {
      const late = `is held by another activation, still after ${waitSeconds} s`;
      failed(lockProblem(file, code === 1 && complaint === "" ? late : `flock: ${complaint.trim()}`));
    });
  });
  return () => {
    child.stdin.end();
    return ended;
  };
}

function lockProblem(file: string, message: string): ProblemError {
  return new ProblemError([problem("activation.busy", file, message)]);
}
