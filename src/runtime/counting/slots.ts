import type { Counts, Series } from "./counts.js";
import { type FamilyKey, familyOf, sizeOf } from "./families.js";

/**
 * A worker's counts: numbers in one array. Code that counts asks for a place once, and then adds to the number there.
 */
export class Slots {
  /** The array is replaced as it grows: places stay, so hold a place, and not the array. */
  values = new Float64Array(INITIAL);
  private said = new Float64Array(INITIAL);
  private readonly series: PlacedSeries[] = [];
  private used = 0;

  /** The place of the first number of a new series. */
  place(family: FamilyKey, labels: readonly string[]): number {
    const at = this.used;
    this.used += sizeOf(family);
    while (this.used > this.values.length) this.grow();
    this.series.push({ family, labels, at, fresh: true });
    return at;
  }

  add(at: number, n = 1): void {
    this.values[at]! += n;
  }

  /** Counts a value into a histogram. @param bounds those of its family */
  observe(at: number, bounds: readonly number[], value: number): void {
    const { values } = this;
    let i = 0;
    while (i < bounds.length && value > bounds[i]!) i++;
    values[at + i]! += 1;
    values[at + bounds.length + 1]! += value;
  }

  /** Counts since the last call; a new series is included once, even if all its counts are zero. */
  changes(): Counts | undefined {
    const { values, said } = this;
    const changed: { [family in FamilyKey]?: Series[] } = {};
    for (const one of this.series) {
      const { family, labels, at } = one;
      const end = at + sizeOf(family);
      let first = at;
      while (first < end && values[first] === said[first]) first++;
      if (first === end && !one.fresh) continue;
      one.fresh = false;
      const more = Array.from(values.subarray(at, end), (value, i) => value - said[at + i]!);
      (changed[family] ??= []).push({ labels, values: more });
    }
    said.set(values);
    return Object.keys(changed).length === 0 ? undefined : changed;
  }

  private grow(): void {
    const [values, said] = [
      new Float64Array(this.values.length * 2),
      new Float64Array(this.values.length * 2),
    ];
    values.set(this.values);
    said.set(this.said);
    this.values = values;
    this.said = said;
  }
}

const INITIAL = 512;

interface PlacedSeries {
  readonly family: FamilyKey;
  readonly labels: readonly string[];
  readonly at: number;
  /** The series was not reported yet. */
  fresh: boolean;
}

export const boundsOf = (family: FamilyKey): readonly number[] => familyOf(family).bounds!;
