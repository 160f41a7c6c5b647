import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Report } from "./report.js";
import { problem, ProblemError } from "../../model/index.js";

/** The operation that holds the lock. */
export interface LockHolder {
  readonly what: "activation" | "deactivation" | "recovery" | "edit of settings";
  /** Which deployment it is for, if that is known: the directory of its uploads. */
  readonly incoming?: string;
}

/**
 * Runs one activation at a time; a second one reports that it waits, and fails when its time is up.
 *
 * The lock is flock(2) on an open file, so it ends with this process, however that ends. Node cannot lock: a child does
 * it, on a descriptor that it shares with us. The process that holds the lock may remove its file (a deactivation
 * removes everything), so a lock counts only while the path still leads to the file that was locked.
 */
export async function withLock<T>(
  file: string,
  holder: LockHolder,
  { lockSeconds, report }: { readonly lockSeconds: number; readonly report: Report },
  act: () => Promise<T>,
): Promise<T> {
  const handle = await acquire(file, lockSeconds, report);
  try {
    await handle.truncate();
    await handle.write(`${JSON.stringify(describe(holder))}\n`, 0);
    return await act();
  } finally {
    await handle.close();
  }
}

async function acquire(file: string, seconds: number, report: Report): Promise<FileHandle> {
  const end = performance.now() + seconds * 1000;
  let reported = false;
  for (;;) {
    await mkdir(dirname(file), { recursive: true });
    // Not accessible to others: a process that may open a file may lock it.
    const handle = await open(file, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    const left = reported ? (end - performance.now()) / 1000 : 0;
    const outcome = await lockDescriptor(handle.fd, left);
    if (outcome === "locked" && (await leadsTo(file, handle))) return handle;
    const who = outcome === "locked" ? undefined : await holderOf(handle);
    await handle.close();
    if (outcome === "locked") continue;
    if (outcome !== "busy") throw lockProblem(file, outcome);
    if (reported || seconds === 0) throw lockProblem(file, `is still held after ${seconds} s, by ${who}`);
    report(`waiting for ${who}`);
    reported = true;
  }
}

/** Waits for the lock, if there is time left; resolves with the reason if locking fails. */
function lockDescriptor(fd: number, seconds: number): Promise<"locked" | "busy" | (string & {})> {
  const wait = seconds > 0 ? ["--wait", seconds.toFixed(3)] : ["--nonblock"];
  const child = spawn("flock", ["--exclusive", ...wait, "3"], {
    stdio: ["ignore", "ignore", "pipe", fd],
    // A Ctrl-C must not reach it.
    detached: true,
  });
  let complaint = "";
  child.stderr!.on("data", (data) => (complaint += data));
  return new Promise((done) => {
    child.once("error", (error) => done(`flock cannot be started: ${error.message}`));
    child.once("close", (code) => {
      if (code === 0) done("locked");
      else done(code === 1 && complaint === "" ? "busy" : `flock: ${complaint.trim()}`);
    });
  });
}

async function leadsTo(file: string, handle: FileHandle): Promise<boolean> {
  const [there, here] = [await stat(file).catch(() => undefined), await handle.stat()];
  return there?.ino === here.ino && there.dev === here.dev;
}

interface Description extends LockHolder {
  readonly pid: number;
  readonly since: string;
  /** Address that the session came from. */
  readonly from?: string;
}

function describe(holder: LockHolder): Description {
  const from = process.env.SSH_CONNECTION?.split(" ")[0];
  const since = new Date().toISOString();
  return { pid: process.pid, since, ...holder, ...(from === undefined || from === "" ? {} : { from }) };
}

/** `the activation that process 4711 has been running since …, from 192.0.2.1, with the uploads in …` */
async function holderOf(handle: FileHandle): Promise<string> {
  try {
    const buffer = Buffer.alloc(4096);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    const { what, pid, since, from, incoming } = JSON.parse(
      buffer.toString("utf8", 0, bytesRead),
    ) as Description;
    const session = from === undefined ? "" : `, started from ${from}`;
    const uploads = incoming === undefined ? "" : `, with the uploads in ${incoming}`;
    return `the ${what} that process ${pid} has been running since ${since}${session}${uploads}`;
  } catch {
    // It has just begun, or has just ended.
    return "another activation";
  }
}

function lockProblem(file: string, message: string): ProblemError {
  return new ProblemError([problem("activation.busy", file, message)]);
}
