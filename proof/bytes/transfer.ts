import type { Readable, Writable } from "node:stream";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../testkit/random.js";
import type { Pieces, Reader } from "./case.js";
import type { Pool } from "./pool.js";

/** One direction of an exchange: compares what arrives with what was sent, as it arrives. */
export class Receiver {
  bytes = 0;
  /** The sender has ended it in order. */
  ended = false;
  /** The reader has left. */
  left = false;
  private wrong: string | undefined;

  constructor(
    private readonly what: string,
    readonly expected: Buffer,
    private readonly at: number,
    private readonly pool: Pool,
  ) {}

  get whole(): boolean {
    return this.bytes >= this.expected.length;
  }

  take(chunk: Buffer): void {
    const { bytes: from, expected } = this;
    this.bytes += chunk.length;
    if (this.wrong !== undefined || expected.subarray(from, this.bytes).equals(chunk)) return;
    if (this.bytes > expected.length) {
      this.wrong = `${this.bytes} bytes, of ${expected.length} that were sent`;
      return;
    }
    const off = chunk.findIndex((byte, i) => byte !== expected[from + i]);
    this.wrong = `of ${expected.length} bytes wrong from byte ${from + off} on: ${this.described(chunk.subarray(off))}`;
  }

  /** What is wrong with what came, once nothing more comes. */
  get faults(): string[] {
    const { what, wrong, left, ended, bytes, expected } = this;
    if (wrong !== undefined) return [`${what}: ${wrong}`];
    if (left) return [];
    if (bytes < expected.length) return [`${what}: cut after ${bytes} of ${expected.length} bytes`];
    return ended ? [] : [`${what}: all ${bytes} bytes, but no end`];
  }

  private described(bytes: Buffer): string {
    const found = this.pool.find(bytes);
    if (found === undefined) return `bytes of no body: ${bytes.toString("hex", 0, 16)}`;
    const own = found - this.at;
    return own >= 0 && own < this.expected.length ? `bytes of its byte ${own}` : "bytes of another body";
  }
}

/** Reads at most so much between two pauses. */
const SLOW_BYTES = 16_384;
const SLOW_MS = 1;
const PAUSE_MS = 40;

/**
 * Reads a stream as its reader does.
 * @param leave closes the connection; the reader calls it once that part of the bytes is there
 */
export function readBy(
  reader: Reader,
  stream: Readable,
  receiver: Receiver,
  leavesAt: number,
  leave: () => void,
): void {
  const size = receiver.expected.length;
  let next = reader === "slow" ? SLOW_BYTES : reader === "pausing" ? size >> 1 : Infinity;
  const rest = (ms: number): void => {
    stream.pause();
    void sleep(ms).then(() => stream.resume());
  };
  const go = (): void => {
    receiver.left = true;
    leave();
  };
  stream.on("data", (chunk: Buffer) => {
    if (receiver.left) return;
    receiver.take(chunk);
    if (reader === "leaving" && receiver.bytes >= leavesAt * size) return go();
    if (receiver.bytes < next) return;
    next = reader === "slow" ? receiver.bytes + SLOW_BYTES : Infinity;
    rest(reader === "slow" ? SLOW_MS : PAUSE_MS);
  });
  stream.on("end", () => (receiver.ended = true));
  if (reader === "pausing") rest(PAUSE_MS);
  if (reader === "leaving" && leavesAt * size === 0) go();
}

/**
 * Writes bytes in pieces, until the stream is closed.
 * @param lastWaits for what the last piece waits
 */
export async function send(
  stream: Writable,
  bytes: Buffer,
  { kind, bytes: size }: Pieces,
  lastWaits?: Promise<unknown>,
): Promise<void> {
  const closed = new Promise<void>((resolve) => stream.once("close", resolve));
  const chance = new Random(size + bytes.length);
  for (let at = 0; at < bytes.length && !stream.destroyed;) {
    const length = kind === "whole" ? bytes.length : kind === "mixed" ? 1 + chance.upTo(size * 2) : size;
    const piece = bytes.subarray(at, at + length);
    at += piece.length;
    if (at >= bytes.length && lastWaits !== undefined) await Promise.race([lastWaits, closed]);
    if (stream.destroyed) return;
    const written = new Promise<void>((resolve) => stream.write(piece, () => resolve()));
    if (kind === "apart") await Promise.race([written, closed]);
    else if (kind === "mixed" && chance.is(0.3)) await setImmediate();
  }
  if (bytes.length === 0 && lastWaits !== undefined) await Promise.race([lastWaits, closed]);
}
