import { randomFrom } from "../kit/randomFrom.js";

/** Neighbouring numbers and seeds share nothing. */
export const mixed = (seed: number, index: number): number =>
  Math.imul(Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) ^ index, 0x85ebca6b) ^ (index >>> 13);

/** Choices from a seed. */
export class Chance {
  private readonly next: () => number;

  constructor(seed: number) {
    this.next = randomFrom(seed);
  }

  upTo(max: number): number {
    return Math.floor(this.next() * (max + 1));
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  of<T>(...values: readonly T[]): T {
    return values[this.upTo(values.length - 1)]!;
  }

  part(): number {
    return this.next();
  }
}
