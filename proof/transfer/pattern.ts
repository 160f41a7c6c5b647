import { createCipheriv, createHash } from "node:crypto";
import { Readable } from "node:stream";

const BLOCK = 1 << 20;

/** `bytes` of pseudo-random data, the same every time, never all in memory: a lost or swapped block shows. */
export function pattern(bytes: number): Readable {
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16, 1), Buffer.alloc(16));
  const zeros = Buffer.alloc(BLOCK);
  let left = bytes;
  return new Readable({
    highWaterMark: 4 * BLOCK,
    read() {
      if (left === 0) return void this.push(null);
      const take = Math.min(left, BLOCK);
      left -= take;
      this.push(cipher.update(take === BLOCK ? zeros : zeros.subarray(0, take)));
    },
  });
}

/** SHA-256 of {@link pattern}. */
export async function patternHash(bytes: number): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of pattern(bytes)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
