import type { Bar, Work } from "../work/work.js";
import type { Row, Sample } from "./bench.js";
import { median } from "./statistics.js";

/** One line of the table. */
export interface Line {
  readonly proxy: string;
  readonly family: Row["family"];
  /** Medians of the rounds. */
  readonly value?: number;
  readonly lowest?: number;
  readonly highest?: number;
  readonly throughput?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** Largest of the rounds. */
  readonly peakBytes?: number;
  /** The value divided by nginx's. */
  readonly ratio?: number;
  readonly rounds: number;
  readonly note?: string;
  readonly failure?: string;
}

export interface Verdict extends Bar {
  /** What was compared with the limit. */
  readonly reached?: number;
  /** Undefined if there is nothing to compare with. */
  readonly passed?: boolean;
}

export interface Result {
  readonly name: string;
  readonly what: string;
  readonly unit: string;
  readonly rate?: string;
  readonly lines: readonly Line[];
  readonly verdicts: readonly Verdict[];
  readonly failure?: string;
}

export function judge(work: Work, rows: readonly Row[]): Result {
  const { name, what, unit, rate, bars } = work;
  const reference = medianOf(rows.find((row) => row.family === "nginx")?.samples ?? [], "value");
  const lines = rows.map((row) => line(row, reference));
  return { name, what, unit, rate, lines, verdicts: bars.map((bar) => verdict(bar, lines)) };
}

function line(row: Row, reference: number | undefined): Line {
  const { proxy, family, samples, failure } = row;
  if (samples.length === 0) return { proxy, family, rounds: 0, failure };
  const values = samples.map((sample) => sample.value);
  const value = median(values);
  const peaks = samples.map((sample) => sample.peakBytes ?? 0);
  return {
    proxy,
    family,
    value,
    lowest: Math.min(...values),
    highest: Math.max(...values),
    throughput: medianOf(samples, "throughput"),
    p50Ms: medianOf(samples, "p50Ms"),
    p99Ms: medianOf(samples, "p99Ms"),
    peakBytes: Math.max(...peaks) || undefined,
    ratio: reference === undefined ? undefined : value / reference,
    rounds: samples.length,
    note: samples.at(-1)!.note,
    failure,
  };
}

function verdict(bar: Bar, lines: readonly Line[]): Verdict {
  const own = lines.find((one) => one.family === "portico")?.value;
  const other = comparedWith(bar, lines);
  if (own === undefined || other === undefined) return bar;
  const reached = own / other;
  return { ...bar, reached, passed: bar.atLeast ? reached >= bar.limit : reached <= bar.limit };
}

function comparedWith(bar: Bar, lines: readonly Line[]): number | undefined {
  if (bar.to === "absolute") return 1;
  if (bar.to === "nginx") return lines.find((one) => one.family === "nginx")?.value;
  const peers = lines.filter((one) => one.family === "node" && one.value !== undefined);
  return peers.length === 0 ? undefined : Math.min(...peers.map((one) => one.value!));
}

function medianOf(samples: readonly Sample[], field: "value" | "throughput" | "p50Ms" | "p99Ms"): number | undefined {
  const values = samples.flatMap((sample) => sample[field] ?? []);
  return values.length === 0 ? undefined : median(values);
}
