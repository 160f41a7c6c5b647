import { Random } from "../../testkit/random.js";

/** Breeds inputs: each is one of the pool, changed in one to a few places. The same seed gives the same inputs. */
export class Mutator {
  private readonly random: Random;
  private readonly words: readonly Buffer[];

  constructor(
    seed: number,
    dictionary: readonly string[],
    private readonly bytesMax: number,
  ) {
    this.random = new Random(seed);
    this.words = dictionary.map((word) => Buffer.from(word, "latin1"));
  }

  next(pool: readonly Buffer[]): Buffer {
    let input = pool.length === 0 ? Buffer.alloc(0) : pool[this.below(pool.length)]!;
    for (let changes = 1 + this.below(4); changes > 0; changes--) input = this.change(input, pool);
    return input.subarray(0, this.bytesMax);
  }

  private change(input: Buffer, pool: readonly Buffer[]): Buffer {
    const at = this.below(input.length + 1);
    const length = Math.min(input.length - at, 1 + this.below(1 << this.below(6)));
    const part = input.subarray(at, at + length);
    switch (this.below(9)) {
      case 0:
        return replaced(input, at, length, Buffer.alloc(0));
      case 1:
        return replaced(input, at, 0, part);
      case 2:
        return replaced(input, at, 0, Buffer.of(this.below(256)));
      case 3:
        return replaced(input, at, 1, Buffer.of(this.below(256)));
      case 4:
        return replaced(input, at, 1, Buffer.of((input[at] ?? 0) ^ (1 << this.below(8))));
      case 5:
        return replaced(input, at, 0, this.word());
      case 6:
        return replaced(input, at, length, this.word());
      case 7: {
        // A part many times over: what takes longer than it should shows by that.
        const times = 1 + this.below(1 << this.below(8));
        return replaced(
          input,
          at,
          0,
          Buffer.concat(Array<Buffer>(times).fill(part)).subarray(0, this.bytesMax),
        );
      }
      default: {
        const other = pool[this.below(Math.max(1, pool.length))] ?? input;
        const from = this.below(other.length + 1);
        return replaced(input, at, length, other.subarray(from, from + 1 + this.below(64)));
      }
    }
  }

  private word(): Buffer {
    return this.words[this.below(this.words.length)] ?? Buffer.of(this.below(256));
  }

  private below(limit: number): number {
    return this.random.pick(limit);
  }
}

function replaced(input: Buffer, at: number, length: number, by: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, at), by, input.subarray(at + length)]);
}
