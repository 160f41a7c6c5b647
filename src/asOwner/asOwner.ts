import { spawn } from "node:child_process";
import { type Problem, problem, ProblemError } from "../model/problem.js";
import { shown } from "../runtime/actions/permissions.js";
import { type Acting, identityOf } from "./acting.js";
import { type Operation, OPERATIONS, type Operations } from "./operations.js";

/*
 * What root has to do in trees that others can change (the application's settings, its media) is done by a child
 * process. It takes the identity of the user who can change the tree before it touches anything, so it can do no more
 * than that user can. Requests and answers pass through pipes; root itself opens, changes and starts nothing there. No
 * other code may touch such paths (`__tests__/asOwner/` traces an activation).
 */

/** The program that a child runs. Tests, which run from sources, name the bundle. */
export const ownerProgram = { path: process.argv[1]! };

const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export interface Deadline {
  /** How long the child may take, its start included. */
  readonly timeoutMs: number;
}

/** What a child writes: its answer, or the problems. */
export type Answered = { readonly answer: unknown } | { readonly problems: readonly Problem[] };

/** Does something as a user. Rejects with a ProblemError. */
export async function asOwner<K extends Operation>(
  operation: K,
  request: Parameters<Operations[K]>[0],
  { uid, path }: Acting,
  { timeoutMs }: Deadline = { timeoutMs: 30_000 },
): Promise<Awaited<ReturnType<Operations[K]>>> {
  type Answer = Awaited<ReturnType<Operations[K]>>;
  if (uid === process.geteuid!()) {
    return (OPERATIONS[operation] as (given: typeof request) => Promise<Answer>)(request);
  }
  const { gid, groups } = await identityOf(uid);
  const args = ["as-owner", String(uid), String(gid), groups.join(",")];
  const outcome = await runChild(args, JSON.stringify({ operation, request }), timeoutMs);
  if ("failed" in outcome) {
    const message = `could not be reached as user ${uid}, who can change it: ${outcome.failed}`;
    throw new ProblemError([problem("files.no-answer", shown(path), message)]);
  }
  if ("problems" in outcome) throw new ProblemError(outcome.problems);
  return outcome.answer as Answer;
}

/** Waits only for the answer: a child that hangs on a file system may not even end when it is killed. */
function runChild(
  args: readonly string[],
  input: string,
  timeoutMs: number,
): Promise<Answered | { readonly failed: string }> {
  return new Promise((resolve) => {
    // A separate session, so that only this process gets a Ctrl-C. The user gets nothing of our environment. io_uring
    // would keep root's rights after setuid(2).
    const child = spawn(process.execPath, [ownerProgram.path, ...args], {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", UV_USE_IO_URING: "0" },
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    const output: Buffer[] = [];
    let [bytes, complaint] = [0, ""];
    const end = (outcome: Answered | { readonly failed: string }): void => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
      resolve(outcome);
    };
    const timer = setTimeout(() => end({ failed: `no answer within ${timeoutMs / 1000} s` }), timeoutMs);
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", (data: Buffer) => {
      bytes += data.length;
      if (bytes > ANSWER_BYTES_MAX) end({ failed: "the answer is too long" });
      else output.push(data);
    });
    child.stderr.on("data", (data: Buffer) => (complaint = (complaint + data.toString()).slice(-400)));
    child.on("error", ({ message }) => end({ failed: message }));
    child.on("close", () => end(answerOf(Buffer.concat(output).toString("utf8"), complaint)));
    child.stdin.end(input);
  });
}

function answerOf(output: string, complaint: string): Answered | { readonly failed: string } {
  try {
    return JSON.parse(output) as Answered;
  } catch {
    return { failed: complaint.trim() === "" ? "it ended without an answer" : complaint.trim() };
  }
}
