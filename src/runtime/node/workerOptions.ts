import { doWithout, uses } from "./pieces.js";

/**
 * V8's options for workers. A worker's heap is small and its processor busy: helper threads for garbage collection take
 * more time than they save. Marking stays incremental, so pauses stay short.
 */
export function workerOptions(): readonly string[] {
  return uses.singleThreadedGc ? ["--single-threaded-gc"] : [];
}

/** Exit code of a Node that does not know an option (nodejs.org, "Process exit codes"). */
const BAD_OPTION = 9;

/**
 * Whether a worker that ended with this code has to be started again without these options, and then all others too.
 * They are not checked in advance, because that would cost every start a process.
 */
export function refusedOptions(code: number | null, options: readonly string[]): boolean {
  if (code !== BAD_OPTION || options.length === 0) return false;
  doWithout(["singleThreadedGc"]);
  return true;
}
