import { FAMILIES, type FamilyKey, familyOf } from "./families.js";

/** Counts as JSON: a worker sends changes, a master has the totals. Another release may have other families. */
export type Counts = { readonly [family in FamilyKey]?: readonly Series[] };

/** The numbers of one combination of labels. */
export interface Series {
  /** Values of the family's labels, in their order; an empty value means no label. */
  readonly labels: readonly string[];
  /** A single number; for a histogram the count of each bucket alone, and then the sum of all values. */
  readonly values: readonly number[];
}

/** Values of labels, by their names. */
export type Labels = Readonly<Record<string, string>>;

/** Adds counts up: by family, then by labels. */
export class Totals {
  private readonly families = new Map<
    FamilyKey,
    Map<string, { labels: readonly string[]; values: number[] }>
  >();

  constructor(...counts: readonly Counts[]) {
    for (const one of counts) this.add(one);
  }

  add(counts: Counts): void {
    for (const [key, all] of Object.entries(counts) as [FamilyKey, readonly Series[]][]) {
      let family = this.families.get(key);
      if (family === undefined) this.families.set(key, (family = new Map()));
      for (const { labels, values } of all) {
        const name = JSON.stringify(labels);
        const sum = family.get(name);
        if (sum === undefined) family.set(name, { labels, values: [...values] });
        else values.forEach((value, i) => (sum.values[i] = (sum.values[i] ?? 0) + value));
      }
    }
  }

  /** A copy of the current counts. */
  get counts(): Counts {
    const copies = [...this.families].map(
      ([key, all]) =>
        [key, [...all.values()].map(({ labels, values }) => ({ labels, values: [...values] }))] as const,
    );
    return Object.fromEntries(copies);
  }
}

/**
 * The total of all series that have these labels: of a histogram, how many values it has.
 *
 * @param where values that labels must have, by their names; default: any
 */
export function totalOf(counts: Counts, key: FamilyKey, where: Labels = {}): number {
  const { labels } = FAMILIES[key];
  const wanted = Object.entries(where).map(
    ([name, value]) => [labels.indexOf(name as never), value] as const,
  );
  return (counts[key] ?? [])
    .filter((series) => wanted.every(([i, value]) => series.labels[i] === value))
    .reduce((sum, series) => sum + numberOf(key, series), 0);
}

/** The number of a counter or a gauge; of a histogram, how many values it has. */
export function numberOf(key: FamilyKey, { values }: Series): number {
  if (familyOf(key).bounds === undefined) return values[0] ?? 0;
  return values.slice(0, -1).reduce((sum, value) => sum + value, 0);
}
