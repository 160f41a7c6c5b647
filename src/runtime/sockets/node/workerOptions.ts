import { doWithout, uses } from "./pieces.js";

/**
 * V8's options for workers. A worker's heap is small and its processor busy: helper threads for garbage collection take
 * more time than they save. Marking stays incremental, so pauses stay short.
 */
export function workerOptions(heap?: HeapSizes): readonly string[] {
  return [...(uses.singleThreadedGc ? [SINGLE_THREADED] : []), ...heapOptions(heap)];
}

/** In MiB. */
interface HeapSizes {
  readonly oldMiB: number;
  readonly semiMiB?: number;
}

const SINGLE_THREADED = "--single-threaded-gc";

/** Sizes that an administrator gave to Node take precedence. */
function heapOptions(heap: HeapSizes | undefined): string[] {
  const given = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].join(" ").replaceAll("_", "-");
  const sizes: [option: string, mib: number | undefined][] = [
    ["--max-old-space-size", heap?.oldMiB],
    ["--max-semi-space-size", heap?.semiMiB ?? SEMI_MIB],
  ];
  return sizes.flatMap(([option, mib]) =>
    mib === undefined || given.includes(option) ? [] : [`${option}=${mib}`],
  );
}

/**
 * The young generation has two semi-spaces, for a moment three. V8 lets each grow to 32 MiB when thousands of connections
 * arrive, and keeps them. With more than this, small requests cost up to 3 % less over TLS and up to 9 % less over HTTP/2.
 */
const SEMI_MIB = 8;

/** Exit code of a Node that does not know an option (nodejs.org, "Process exit codes"). */
const BAD_OPTION = 9;

/**
 * Whether a worker that ended with this code has to be started again without these options, and then all others too.
 * They are not checked in advance, because that would cost every start a process.
 */
export function refusedOptions(code: number | null, options: readonly string[]): boolean {
  if (code !== BAD_OPTION || !options.includes(SINGLE_THREADED)) return false;
  doWithout(["singleThreadedGc"]);
  return true;
}
