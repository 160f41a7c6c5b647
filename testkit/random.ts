import { createCipheriv } from "node:crypto";
import { randomFrom } from "./randomFrom.js";

/** Seed of all that is random in tests: `PORTICO_SEED`, which `jest.config.js` sets and prints. */
export const SEED = Number(process.env["PORTICO_SEED"]);

/** What tests choose at random: from the same seed the same. */
export class Random {
  private readonly next: () => number;

  constructor(seed = SEED) {
    this.next = randomFrom(seed);
  }

  /** An integer from 0 to below `count`. */
  pick(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** An integer from 0 to `max`. */
  upTo(max: number): number {
    return this.pick(max + 1);
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  of<T>(...values: readonly T[]): T {
    return values[this.pick(values.length)]!;
  }

  /** The same values in another order. */
  shuffled<T>(values: readonly T[]): T[] {
    const all = [...values];
    for (let left = all.length; left > 1; left--) {
      const at = this.pick(left);
      [all[left - 1], all[at]] = [all[at]!, all[left - 1]!];
    }
    return all;
  }

  /** A number from 0 to below 1. */
  part(): number {
    return this.next();
  }

  /** Megabytes take milliseconds: a cipher makes them. */
  bytes(length: number): Buffer {
    const key = Buffer.from(Uint32Array.from({ length: 4 }, () => this.pick(2 ** 32)).buffer);
    return createCipheriv("aes-128-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(length));
  }
}

const bodies = new Random();

/** A body of random bytes, another one at each call: bytes at the wrong place are wrong bytes. */
export const randomBody = (length: number): Buffer => bodies.bytes(length);

/** The same of letters, digits, `-` and `_`. */
export const randomText = (length: number): string =>
  bodies
    .bytes(Math.ceil((length * 3) / 4))
    .toString("base64url")
    .slice(0, length);

/** A seed for a number of a run: neighbouring numbers and seeds share nothing. */
export const seedOf = (seed: number, index: number): number =>
  Math.imul(Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) ^ index, 0x85ebca6b) ^ (index >>> 13);

/** A test's function that gets random numbers of the seed; a failure names it. */
export function seeded(run: (random: Random) => void | Promise<void>): () => Promise<void> {
  return async () => {
    try {
      await run(new Random());
    } catch (error) {
      throw new Error(`with PORTICO_SEED=${SEED}`, { cause: error });
    }
  };
}
