import { Random } from "../../testkit/random.js";

/**
 * Random bytes that all bodies are parts of, each from another place on: bytes at the wrong place are wrong bytes, and show
 * where they belong.
 */
export class Pool {
  private readonly bytes: Buffer;

  constructor(seed: number) {
    this.bytes = new Random(seed).bytes(POOL_BYTES);
  }

  part(at: number, bytes: number): Buffer {
    return this.bytes.subarray(at, at + bytes);
  }

  /** Where such bytes are; undefined if nowhere, or if they are too few to be sure. */
  find(bytes: Buffer): number | undefined {
    const at = bytes.length < SURE_BYTES ? -1 : this.bytes.indexOf(bytes.subarray(0, SURE_BYTES));
    return at === -1 ? undefined : at;
  }
}

export const POOL_BYTES = 16 * 1_048_576;
const SURE_BYTES = 8;
