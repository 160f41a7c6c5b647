import { ABSOLUTE, type Bar, BEST_NODE_PEER, type Work } from "./work.js";
import type { Row, Sample } from "./bench.js";
import { median } from "./statistics.js";

/** One line of the table. */
export interface Line {
  readonly proxy: string;
  readonly family: Row["family"];
  /** The row its ratio refers to. */
  readonly reference?: string;
  /** Where on the axis it lies, if the result is a curve. */
  readonly at?: number;
  /** What is compared: the lowest of the rounds where CPU time is measured, else their median. */
  readonly value?: number;
  readonly lowest?: number;
  readonly median?: number;
  readonly highest?: number;
  readonly throughput?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** Largest of the rounds. */
  readonly peakBytes?: number;
  /** Part of the proxy's cores that other processes used; median. */
  readonly othersShare?: number;
  /** The value divided by nginx's. */
  readonly ratio?: number;
  readonly rounds: number;
  readonly note?: string;
  readonly failure?: string;
}

/** The line of another proxy for the same variant (`portico, 1 worker` and `nginx, 1 worker`). */
export const lineBeside = (own: Line, proxy: string, lines: readonly Line[]): Line | undefined =>
  lines.find((line) => line.proxy === proxy + own.proxy.slice("portico".length));

export interface Verdict extends Bar {
  /** What was compared with the limit. */
  readonly reached?: number;
  /** The same by the medians of the rounds. */
  readonly median?: number;
  /** Undefined if there is nothing to compare with. */
  readonly passed?: boolean;
}

export interface Result {
  readonly name: string;
  readonly what: string;
  readonly unit: string;
  readonly rate?: string;
  readonly by: Work["by"];
  readonly isDetailed?: boolean;
  readonly axis?: Work["axis"];
  readonly lines: readonly Line[];
  readonly verdicts: readonly Verdict[];
  readonly failure?: string;
}

export function judge(work: Work, rows: readonly Row[]): Result {
  const { bars, run: _run, quick: _quick, ...described } = work;
  const estimate = work.by === "cpu" ? (values: readonly number[]) => Math.min(...values) : median;
  const lines = rows.map((row) => line(row, referenceOf(row, rows), estimate));
  return { ...described, lines, verdicts: bars.map((bar) => verdict(bar, lines)) };
}

/** What a row is compared with. */
function referenceOf({ reference = "nginx" }: Row, rows: readonly Row[]): readonly Sample[] {
  return rows.find(({ proxy }) => proxy === reference)?.samples ?? [];
}

function line(row: Row, reference: readonly Sample[], estimate: (values: readonly number[]) => number): Line {
  const { proxy, family, reference: name, at, samples, failure } = row;
  if (samples.length === 0) return { proxy, family, at, rounds: 0, failure };
  const values = samples.map((sample) => sample.value);
  const value = estimate(values);
  const peaks = samples.map((sample) => sample.peakBytes ?? 0);
  return {
    proxy,
    family,
    reference: name,
    at,
    value,
    lowest: Math.min(...values),
    median: median(values),
    highest: Math.max(...values),
    throughput: medianOf(samples, "throughput"),
    p50Ms: medianOf(samples, "p50Ms"),
    p99Ms: medianOf(samples, "p99Ms"),
    peakBytes: Math.max(...peaks) || undefined,
    othersShare: medianOf(samples, "othersShare"),
    ratio: reference.length === 0 ? undefined : value / estimate(reference.map((sample) => sample.value)),
    rounds: samples.length,
    note: samples.at(-1)!.note,
    failure,
  };
}

function verdict(bar: Bar, lines: readonly Line[]): Verdict {
  const reached = compared(bar, lines, ({ value }) => value);
  if (reached === undefined) return bar;
  const passed = bar.atLeast ? reached >= bar.limit : reached <= bar.limit;
  return { ...bar, reached, passed, median: compared(bar, lines, (one) => one.median) };
}

type Figure = (line: Line) => number | undefined;

function compared(bar: Bar, lines: readonly Line[], figure: Figure): number | undefined {
  const named = (name: string): number | undefined => {
    const found = lines.find(({ proxy }) => proxy === name);
    return found && figure(found);
  };
  const own = named(bar.row ?? "portico");
  const other =
    bar.to === ABSOLUTE ? 1 : bar.to === BEST_NODE_PEER ? bestNodePeer(lines, figure) : named(bar.to);
  return own === undefined || other === undefined ? undefined : own / other;
}

function bestNodePeer(lines: readonly Line[], figure: Figure): number | undefined {
  const peers = lines.filter(({ family }) => family === "node").flatMap((one) => figure(one) ?? []);
  return peers.length === 0 ? undefined : Math.min(...peers);
}

function medianOf(
  samples: readonly Sample[],
  field: "throughput" | "p50Ms" | "p99Ms" | "othersShare",
): number | undefined {
  const values = samples.flatMap((sample) => sample[field] ?? []);
  return values.length === 0 ? undefined : median(values);
}
