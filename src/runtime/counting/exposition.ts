// The part of prom-client that writes: its main module loads packages for functions that are not used here.
import AggregatorRegistry from "prom-client/lib/cluster.js";
import type { Counts, Series } from "./counts.js";
import { FAMILIES, type Family, type FamilyKey, sizeOf } from "./families.js";

/** Counts as Prometheus reads them. */
export interface Exposition {
  readonly status: 200;
  readonly type: string;
  readonly body: string;
}

/** @param accept the `Accept` field: OpenMetrics 1.0 if it names that format, otherwise the text format 0.0.4 */
export async function exposition(counts: Counts, accept: string): Promise<Exposition> {
  const open = accept.includes("application/openmetrics-text");
  const type = AggregatorRegistry[open ? "OPENMETRICS_CONTENT_TYPE" : "PROMETHEUS_CONTENT_TYPE"];
  const metrics = (Object.keys(FAMILIES) as FamilyKey[]).flatMap((key) => {
    const series = counts[key] ?? [];
    return series.length === 0 ? [] : [metricOf(key, FAMILIES[key], series, open)];
  });
  const registry = AggregatorRegistry.aggregate([metrics]);
  registry.setContentType(type);
  return { status: 200, type, body: await registry.metrics() };
}

/** A metric in prom-client's JSON form. In OpenMetrics a counter has its suffix only in its samples. */
function metricOf(key: FamilyKey, family: Family, series: readonly Series[], open: boolean): object {
  const { help, type, labels, bounds } = family;
  const name = open && type === "counter" ? family.name.replace(/_total$/, "") : family.name;
  const scale = family.scale ?? 1;
  const values = series
    // Another release may have other bounds.
    .filter((one) => one.values.length === sizeOf(key))
    .flatMap((one): readonly MetricSample[] => {
      const named = namedLabels(labels, one);
      return bounds === undefined
        ? [{ metricName: undefined, labels: named, value: one.values[0]! / scale }]
        : histogram(name, named, one.values, bounds, scale);
    });
  return { name, help, type, values, aggregator: "first" };
}

interface MetricSample {
  /** Undefined for the name of the metric. */
  readonly metricName: string | undefined;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

function histogram(
  name: string,
  labels: Readonly<Record<string, string>>,
  values: readonly number[],
  bounds: readonly number[],
  scale: number,
): MetricSample[] {
  let count = 0;
  const buckets = [...bounds, Infinity].map((bound, i) => {
    count += values[i]!;
    const le = bound === Infinity ? "+Inf" : bound / scale;
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: values[bounds.length + 1]! / scale },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

/** A label without a value is left out. */
const namedLabels = (names: readonly string[], { labels }: Series): Readonly<Record<string, string>> =>
  Object.fromEntries(
    names.flatMap((name, i) => {
      const value = labels[i] ?? "";
      return value === "" ? [] : [[name, value]];
    }),
  );
