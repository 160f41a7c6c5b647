import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { isWithoutDebugger } from "../../runtime/supervisor/processes/noDebugger.js";
import type { ChildOutput } from "./asOwner.js";
import { type Operation, OPERATIONS } from "./operations.js";
import { OwnerRefused } from "./refused.js";

/** A child of `asOwner`: becomes the user that its arguments name, and responds to the one request on standard input. */
export async function runAsOwner([uid, gid, groups = ""]: readonly string[]): Promise<void> {
  become(
    Number(uid),
    Number(gid),
    groups
      .split(",")
      .filter((each) => each !== "")
      .map(Number),
  );
  const { operation, request } = JSON.parse(await text(process.stdin)) as {
    operation: Operation;
    request: never;
  };
  process.stdout.write(JSON.stringify(await outputOf(() => OPERATIONS[operation](request))));
}

/** Gives up root's rights for good, and verifies that. */
function become(uid: number, gid: number, groups: readonly number[]): void {
  if (!Number.isInteger(uid) || uid <= 0 || !Number.isInteger(gid)) throw new Error("no user was named");
  // From here on the user can signal this process.
  if (!isWithoutDebugger()) throw new Error("SIGUSR1 would open a debugger");
  process.umask(0o077);
  process.setgroups!([...groups]);
  process.setgid!(gid);
  process.setuid!(uid);
  const status = new Set(readFileSync("/proc/self/status", "utf8").split("\n"));
  const dropped = [
    `Uid:\t${uid}\t${uid}\t${uid}\t${uid}`,
    `Gid:\t${gid}\t${gid}\t${gid}\t${gid}`,
    `CapPrm:\t${NO_CAPABILITIES}`,
    `CapEff:\t${NO_CAPABILITIES}`,
  ];
  if (!dropped.every((line) => status.has(line))) throw new Error(`could not become user ${uid}`);
}

/** No capabilities, in the form of /proc/[pid]/status (proc(5)): 64 bits in hexadecimal. */
const NO_CAPABILITIES = "0".repeat(16);

async function outputOf(act: () => Promise<unknown>): Promise<ChildOutput> {
  try {
    return { response: await act() };
  } catch (error) {
    if (error instanceof OwnerRefused) return { refused: error.refusal };
    throw error;
  }
}
