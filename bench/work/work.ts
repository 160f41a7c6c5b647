import type { Bench, Row } from "../lib/bench.js";

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
  readonly bars: readonly Bar[];
  /** Whether `--quick` runs it. */
  readonly quick?: boolean;
  run(bench: Bench): Promise<Row[]>;
}

/** What Portico's median has to reach. */
export interface Bar {
  /** What it is compared with: nginx, the best peer on Node, a row of another name, or nothing. */
  readonly to: "nginx" | "best Node peer" | "itself" | "absolute";
  readonly limit: number;
  /** Whether the limit is the least (throughput) and not the most (cost). */
  readonly atLeast?: boolean;
  /** `cpu` holds on a busy machine as well; the rest depends on the clock and is judged by it. */
  readonly by: "cpu" | "clock" | "memory";
}

export const cpuBar = (limit: number, to: Bar["to"] = "nginx"): Bar => ({ to, limit, by: "cpu" });
