import type { Bench, Row } from "./bench.js";

/** One item of the table. */
export interface Work {
  /** What `--only` calls it. */
  readonly name: string;
  /** What is done. */
  readonly what: string;
  /** Unit of the value. */
  readonly unit: string;
  /** Unit of the throughput, if there is one. */
  readonly rate?: string;
  /**
   * What the value is measured by. Other work on the machine can only add to CPU time, so of a proxy's rounds the
   * cheapest tells what the work costs; time by the clock and memory vary by themselves, and are told by their median.
   */
  readonly by: "cpu" | "clock" | "memory";
  readonly bars: readonly Bar[];
  /** Whether the README shows every proxy's line, and not only what the summary has room for. */
  readonly isDetailed?: boolean;
  /** What changes from row to row of a curve (`at` of a row). */
  readonly axis?: "connections" | "bytes";
  /** Whether `--quick` runs it. */
  readonly quick?: boolean;
  run(bench: Bench): Promise<Row[]>;
}

/** What a row's value has to reach. */
export interface Bar {
  /** Name of the row; default `portico`. */
  readonly row?: string;
  /** Name of the row it is compared with, or one of the two below. */
  readonly to: string;
  readonly limit: number;
  /** Whether the limit is the least (throughput) and not the most (cost). */
  readonly atLeast?: boolean;
  /**
   * Highest ratio to nginx that the same code was seen at on any kind of machine: where the kernel copies fast, nginx's
   * small buffers gain more than our large ones. A quick run fails beyond this, not beyond the limit.
   */
  readonly worst?: number;
}

/** The limit is in the item's unit. */
export const ABSOLUTE = "absolute";
/** The cheapest of the peers that run on Node. */
export const BEST_NODE_PEER = "best Node peer";

/** The row of a server that is Node and nothing else, on the Node that runs Portico. */
export const BARE = "bare Node";

/** The row of an earlier build (`--before`), and how much more the build of the sources may cost: noise of one run. */
export const BEFORE = "portico-before";
export const NO_SLOWER: Bar = { to: BEFORE, limit: 1.05 };

export const cpuBar = (limit: number, to = "nginx"): Bar => ({ to, limit });
/** The same for what `--quick` judges. */
export const quickBar = (limit: number, worst: number): Bar => ({ to: "nginx", limit, worst });
