import { randomInt } from "node:crypto";

/** Seed of all that is random in tests: `PORTICO_SEED` (CI sets it), or one of chance. */
export const SEED = Number(process.env["PORTICO_SEED"] ?? randomInt(1, 2 ** 31));

/** Numbers that look random: from the same seed the same ones (mulberry32). */
export class Random {
  private state: number;

  constructor(seed = SEED) {
    this.state = seed | 0;
  }

  /** An integer from 0 to below `count`. */
  pick(count: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * count);
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.pick(256)));
  }
}

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
