/** How a figure went over time. */
export interface Trend {
  /** Median of the first quarter after the warm-up, and of the last quarter. */
  readonly first: number;
  readonly last: number;
  readonly peak: number;
  /** Per minute, after the warm-up, by Theil and Sen: the median of the slopes between all pairs of samples. */
  readonly slopePerMinute: number;
}

/** The first part of a run, in which caches fill and code is compiled, is not part of the trend. */
const WARM_UP = 0.3;

/** @param samples minutes and values, in order of time */
export function trendOf(samples: readonly (readonly [number, number])[]): Trend {
  const warm = samples.slice(Math.floor(samples.length * WARM_UP));
  const quarter = Math.max(1, Math.floor(warm.length / 4));
  const values = warm.map(([, value]) => value);
  return {
    first: median(values.slice(0, quarter)),
    last: median(values.slice(-quarter)),
    peak: Math.max(0, ...samples.map(([, value]) => value)),
    slopePerMinute: median(slopes(warm)),
  };
}

function slopes(samples: readonly (readonly [number, number])[]): number[] {
  return samples.flatMap(([x1, y1], i) => samples.slice(i + 1).map(([x2, y2]) => (y2 - y1) / (x2 - x1)));
}

function median(values: readonly number[]): number {
  if (values.length === 0) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}
