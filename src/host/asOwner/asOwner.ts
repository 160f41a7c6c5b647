import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import * as z from "zod";
import { problem, ProblemError } from "../../model/text/problem.js";
import { Untrusted } from "../../model/text/untrusted.js";
import { shown } from "../../runtime/files/pathText.js";
import { type Acting, identityOf } from "./acting.js";
import { type OwnerResponse, RESPONSES, REFUSAL } from "./responses.js";
import { type Operation, OPERATIONS, type Operations } from "./operations.js";
import { type OwnerRefusal, OwnerRefused } from "./refused.js";

/**
 * A child process does root's work in trees that other users can change (the application's settings, served files). It
 * takes the identity of the user who can change the tree before it touches anything, so it can do no more than that
 * user can. Requests and responses pass through pipes; root itself opens, changes and starts nothing there. No other
 * code may touch such paths (`proof/asOwner/` traces an activation). The user controls the response: nothing is used
 * except values that the schemas in `responses.ts` allow.
 */

/** The program that a child runs. Tests, which run from sources, name the bundle. */
export const ownerProgram = { path: process.argv[1]! };

export interface Deadline {
  /** How long the child may take, its start included. */
  readonly timeoutMs: number;
}

/** What a child writes: its response, or why there is none. */
export type ChildOutput = { readonly response: unknown } | { readonly refused: OwnerRefusal };

/** Does something as a user. Rejects with a ProblemError. */
export async function asOwner<K extends Operation>(
  operation: K,
  request: Parameters<Operations[K]>[0],
  { uid, path }: Acting,
  { timeoutMs }: Deadline = { timeoutMs: 30_000 },
): Promise<OwnerResponse<K>> {
  if (uid === process.geteuid!()) {
    return (OPERATIONS[operation] as (given: typeof request) => Promise<OwnerResponse<K>>)(request);
  }
  const { gid, groups } = await identityOf(uid);
  const { schema, bytesMax, valuesMax } = RESPONSES[operation](request);
  const outcome = await runChild({
    args: ["as-owner", String(uid), String(gid), groups.join(",")],
    input: JSON.stringify({ operation, request }),
    timeoutMs: silent.has(uid) ? Math.min(timeoutMs, AGAIN_MS) : timeoutMs,
    bytesMax,
  });
  if ("failed" in outcome) {
    if (outcome.isLate) silent.add(uid);
    throw noResponse(uid, path, outcome.failed);
  }
  silent.delete(uid);
  const told = outcome.told.opened(
    z.union([z.strictObject({ response: schema }), z.strictObject({ refused: REFUSAL })]),
    valuesMax,
  );
  if (told === undefined) throw noResponse(uid, path, "the response does not match the request");
  if ("response" in told) return told.response as OwnerResponse<K>;
  const { label } = request as { readonly label?: string };
  throw new OwnerRefused(told.refused, operation === "replace" ? "write" : "read", label ?? shown(path), uid);
}

/** Users whose child did not respond in time. They could hold up each of a hundred questions. */
const silent = new Set<number>();
/** How long they have the next time. */
const AGAIN_MS = 5_000;

function noResponse(uid: number, path: string, why: string): ProblemError {
  const message = `could not be accessed as user ${uid}, who may change it: ${why}`;
  const fix = `Processes of user ${uid} can block the access: end them (ps -o pid,stat,args -u ${uid} lists them), and try again.`;
  return new ProblemError([problem("files.no-response", shown(path), message, { fix })]);
}

interface Run {
  readonly args: readonly string[];
  readonly input: string;
  readonly timeoutMs: number;
  readonly bytesMax: number;
}

type Ran = { readonly told: Untrusted } | { readonly failed: string; readonly isLate?: boolean };

/** Waits only for the response: a child that hangs on a file system may not even end when it is killed. */
function runChild({ args, input, timeoutMs, bytesMax }: Run): Promise<Ran> {
  return new Promise((resolve) => {
    // A separate session, so that only this process gets a Ctrl-C. The user gets nothing of our environment. io_uring
    // would keep root's rights after setuid(2). Its other output is ignored, because the user controls it.
    const child = spawn(process.execPath, [ownerProgram.path, ...args], {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", UV_USE_IO_URING: "0" },
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    const output: Buffer[] = [];
    let bytes = 0;
    const end = (outcome: Ran): void => {
      clearTimeout(timer);
      clearInterval(looks);
      child.kill("SIGKILL");
      for (const stream of [child.stdin, child.stdout]) stream.destroy();
      child.unref();
      resolve(outcome);
    };
    const late = (failed: string): void => end({ failed, isLate: true });
    const timer = setTimeout(() => late(`no response within ${timeoutMs / 1000} s`), timeoutMs);
    // Only the user would suspend the child (SIGSTOP), so there is no need to wait for the timeout.
    const looks = setInterval(() => {
      if (isStopped(child.pid)) late(`Portico's child process ${child.pid} was stopped`);
    }, LOOK_MS);
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", (data: Buffer) => {
      bytes += data.length;
      if (bytes > bytesMax) end({ failed: "the response is too long" });
      else output.push(data);
    });
    child.on("error", ({ message }) => end({ failed: message }));
    child.on("close", (code, signal) => {
      if (bytes > 0) end({ told: new Untrusted(Buffer.concat(output)) });
      else end({ failed: `it ended without a response (${signal ?? `exit code ${code}`})` });
    });
    child.stdin.end(input);
  });
}

const LOOK_MS = 2_000;

/** Whether a process has got a SIGSTOP (proc(5), stat). */
function isStopped(pid: number | undefined): boolean {
  try {
    return /\) [Tt] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
