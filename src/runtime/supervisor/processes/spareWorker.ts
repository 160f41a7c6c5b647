import { type ChildProcess, spawn } from "node:child_process";
import { workerOptions } from "../../sockets/node/workerOptions.js";
import { heapOf } from "../report/allowance.js";
import { nodeOptions } from "./noDebugger.js";

/**
 * A worker that starts together with its master: Node needs as long for one as the master for its config. It waits for
 * what every worker gets, its start message, and ends with its master.
 */
let spare: Spare | undefined;

interface Spare {
  readonly child: ChildProcess;
  readonly args: readonly string[];
}

/** Arguments to Node that start a worker. @param options V8's */
export const workerArguments = (options: readonly string[], command: readonly string[]): string[] => [
  ...nodeOptions(),
  ...options,
  ...command,
];

/** The command that starts a worker of this program. */
export const ownWorkerCommand = (): string[] => [process.argv[1]!, "worker"];

/** Starts a worker for the config that most hosts have: as many workers as the host has room for. */
export function prepareWorker(): void {
  const args = workerArguments(workerOptions(heapOf({ workers: "auto" })), ownWorkerCommand());
  try {
    const child = startWorker(args);
    // A worker that did not start, or is gone, is no longer connected when it is wanted.
    child.on("error", () => undefined);
    child.unref();
    child.channel?.unref();
    spare = { child, args };
  } catch {
    // The first worker that is wanted reports it.
  }
}

/**
 * The prepared worker, if it has these arguments; it can be taken once, and ends if it is not wanted.
 *
 * @param args undefined if no prepared worker is of use
 * @returns undefined if there is none
 */
export function takePrepared(args: readonly string[] | undefined): ChildProcess | undefined {
  const taken = spare;
  spare = undefined;
  if (taken === undefined) return undefined;
  const { child } = taken;
  if (!child.connected || child.exitCode !== null || child.signalCode !== null) return undefined;
  if (taken.args.join("\0") !== args?.join("\0")) {
    child.disconnect();
    return undefined;
  }
  child.removeAllListeners("error");
  child.ref();
  child.channel?.ref();
  return child;
}

/** @param fds descriptors of listening sockets, which the worker inherits */
export function startWorker(args: readonly string[], fds: readonly number[] = []): ChildProcess {
  return spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc", ...fds] });
}
