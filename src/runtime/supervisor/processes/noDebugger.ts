import { writeSync } from "node:fs";

/*
 * A debugger may run any code in the process that it is connected to, with all of its rights, and Node's own listens on
 * loopback, where every user of the host can connect. So no process of ours has one: `src/cli/main.ts`, which starts all of
 * them, calls `refuseDebugger` before anything else.
 */

/**
 * Keeps Node from opening its debugger on SIGUSR1, and ends the process if it was opened before: by an option, by
 * `NODE_OPTIONS`, or by a signal while Node started. Closing it is not enough: Node waits for connected debuggers.
 */
export function refuseDebugger(): void {
  // Node opens it unless there is a listener. This one stays while others come and go.
  process.on("SIGUSR1", ignore);
  if (!process.features.inspector) return;
  const inspector = process.getBuiltinModule("node:inspector");
  const look = (): void => {
    if (inspector.url() !== undefined) endAtOnce();
  };
  look();
  // A signal that came just before the listener may take a moment.
  setImmediate(look);
  setTimeout(look, LATE_MS).unref();
}

/** Whether SIGUSR1 is harmless in this process. */
export const isWithoutDebugger = (): boolean => process.listeners("SIGUSR1").includes(ignore);

const LATE_MS = 1_000;

/** A normal exit would wait for connected debuggers, and run exit handlers that they may have added. */
function endAtOnce(): void {
  writeSync(2, "portico: refuses to run with a debugger: remove --inspect options, also from NODE_OPTIONS\n");
  process.kill(process.pid, "SIGKILL");
}

function ignore(): void {
  // Nothing to do.
}

/** Node's own options for processes that this one starts (loaders, memory limits): none that opens a debugger. */
export function nodeOptions(): string[] {
  const { execArgv } = process;
  // The value of an option may be a separate argument.
  return execArgv.filter((arg, i) => !opensDebugger(arg) && !PORT.has(dashed(execArgv[i - 1] ?? "")));
}

const opensDebugger = (arg: string): boolean => /^--(?:inspect|debug)/.test(dashed(arg));
/** Node takes `_` for `-` in names of options. */
const dashed = (arg: string): string => arg.replaceAll("_", "-");
const PORT = new Set(["--inspect-port", "--debug-port", "--inspect-publish-uid"]);
