import { coarseNow } from "../clock.js";
import type { BodySink } from "../exchange.js";
import { ReceiveWindow } from "./flowControl.js";

/** Receive window of a stream (design 5.15): the default of 64 KiB allows 1.2 MB/s at a round trip of 50 ms. */
export const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;

/** What is left of a request body after the answer is read up to here; a client that sends more is told to stop. */
const DRAINED_BYTES_MAX = 65_536;
const DRAIN_MS = 1_000;

/** What a body needs of its exchange. */
export interface BodyOwner {
  /** Milliseconds that a client may be silent; Infinity for a tunnel. */
  readonly bodyIdleMs: number;
  /** Largest body that the route takes; 0 for any. */
  readonly bodyBytesMax: number;
  /** Bytes were consumed; the stream's window grows by `increment`, if that is not 0. */
  bodyConsumed(bytes: number, increment: number): void;
  /** The body will not be taken to its end. */
  bodyFailed(status: 408 | 413): void;
  /** The rest of the body is too much, or too slow, to be waited for. */
  stopBody(): void;
}

/**
 * The body of one request: hands DATA to the sink at the sink's pace and keeps what it will not take yet, within the
 * stream's window, which opens again only as the sink consumes (RFC 9113, 5.2.2).
 */
export class RequestBody {
  /** END_STREAM came. */
  ended = false;
  /** When the client's silence has been too long, on the coarse clock. */
  deadline = Infinity;
  private received = 0;
  private readonly window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  private readonly waiting = new PieceQueue();
  private sink: BodySink | undefined = undefined;
  private paused = false;
  private delivering = false;
  private endDelivered = false;
  /** Bytes the sink was given and is not done with. */
  private inUse = 0;
  /** The answer is complete: what comes is counted and dropped. */
  private discarding = false;
  private discarded = 0;

  /** @param declared value of `content-length`; -1 without one */
  constructor(
    private readonly owner: BodyOwner,
    private readonly declared: number,
  ) {}

  attach(sink: BodySink): void {
    this.sink = sink;
    this.arm();
    // Never inside the sink's own call.
    if (this.ended || this.waiting.bytes > 0) process.nextTick(() => this.deliverWaiting());
  }

  pause(): void {
    if (this.sink === undefined || this.discarding) return;
    this.paused = true;
    this.deadline = Infinity;
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    const { inUse } = this;
    this.inUse = 0;
    this.consume(inUse);
    this.arm();
    this.deliverWaiting();
  }

  /** A DATA frame begins. @returns false if it exceeds the window */
  take(bytes: number): boolean {
    return this.window.take(bytes);
  }

  /** Bytes that were no data: padding. */
  skip(bytes: number): void {
    this.consume(bytes);
  }

  /** A piece of the body. @returns false if it exceeds the declared length (RFC 9113, 8.1.1) */
  data(chunk: Buffer, from: number, to: number): boolean {
    const bytes = to - from;
    this.received += bytes;
    if (this.discarding) this.discard(bytes);
    else if (this.tooLong) {
      this.consume(bytes);
      this.owner.bodyFailed(413);
    } else if (this.sink === undefined || this.paused || this.delivering || this.waiting.bytes > 0)
      this.waiting.push(chunk, from, to);
    else this.deliver(chunk.subarray(from, to));
    return this.declared === -1 || this.received <= this.declared;
  }

  /** END_STREAM. @returns false if the body is not as long as was declared */
  end(): boolean {
    if (this.declared !== -1 && this.received !== this.declared) return false;
    this.ended = true;
    this.deadline = Infinity;
    if (this.sink !== undefined && this.waiting.bytes === 0 && !this.delivering) this.deliverEnd();
    return true;
  }

  /** The body will never be complete: the sink hears of it and of nothing more. */
  abort(): void {
    const { sink } = this;
    this.sink = undefined;
    this.deadline = Infinity;
    if (!this.endDelivered) sink?.onAbort();
    this.endDelivered = true;
  }

  /** After the answer: reads on for a little, so that a client that is nearly done need not be told to stop. */
  discardRest(): void {
    this.sink = undefined;
    this.discarding = true;
    this.deadline = this.ended ? Infinity : coarseNow() + DRAIN_MS;
    const bytes = this.waiting.bytes;
    this.waiting.clear();
    this.consume(this.inUse);
    this.inUse = 0;
    this.discard(bytes);
  }

  /** The stream is closed. @returns bytes that were not consumed, and are dropped now */
  close(): number {
    const left = this.waiting.bytes + this.inUse;
    this.waiting.clear();
    this.inUse = 0;
    this.deadline = Infinity;
    return left;
  }

  sweep(now: number): void {
    if (now < this.deadline) return;
    this.deadline = Infinity;
    if (this.discarding) this.owner.stopBody();
    else this.owner.bodyFailed(408);
  }

  private get tooLong(): boolean {
    const max = this.owner.bodyBytesMax;
    return max !== 0 && this.received > max;
  }

  private arm(): void {
    if (!this.ended && !this.discarding) this.deadline = coarseNow() + this.owner.bodyIdleMs;
  }

  private deliver(piece: Buffer): void {
    this.arm();
    if (this.sink!.onData(piece)) return this.consume(piece.length);
    // The sink may have given the whole exchange up.
    if (this.sink === undefined) return this.consume(piece.length);
    this.inUse += piece.length;
    this.paused = true;
    this.deadline = Infinity;
  }

  private deliverWaiting(): void {
    if (this.delivering) return;
    this.delivering = true;
    while (this.sink !== undefined && !this.paused && this.waiting.bytes > 0)
      this.deliver(this.waiting.shift());
    this.delivering = false;
    if (this.sink !== undefined && this.ended && this.waiting.bytes === 0) this.deliverEnd();
  }

  private deliverEnd(): void {
    if (this.endDelivered) return;
    this.endDelivered = true;
    this.sink!.onEnd();
  }

  private discard(bytes: number): void {
    this.discarded += bytes;
    this.consume(bytes);
    if (this.discarded > DRAINED_BYTES_MAX && !this.ended) this.owner.stopBody();
  }

  private consume(bytes: number): void {
    if (bytes === 0) return;
    const increment = this.window.consumed(bytes);
    this.owner.bodyConsumed(bytes, this.ended ? 0 : increment);
  }
}

/** Pieces of a body in order. Small ones are joined, so that a window full of them takes up no more than a window. */
class PieceQueue {
  bytes = 0;
  private pieces: Buffer[] = [];
  /** Where small pieces are copied to; the last piece is its beginning, up to `blockAt`, if `blockIsLast`. */
  private block: Buffer = NO_BYTES;
  private blockFrom = 0;
  private blockAt = 0;
  private blockIsLast = false;

  push(chunk: Buffer, from: number, to: number): void {
    const bytes = to - from;
    this.bytes += bytes;
    // A slice keeps all of what it was read with.
    if (bytes * 2 >= chunk.length && bytes >= JOINED_BYTES) {
      this.blockIsLast = false;
      this.pieces.push(chunk.subarray(from, to));
      return;
    }
    if (this.block.length - this.blockAt < bytes) {
      this.block = Buffer.allocUnsafeSlow(
        Math.max(bytes, Math.min(BLOCK_BYTES_MAX, this.block.length * 2 || 1024)),
      );
      this.blockAt = 0;
      this.blockIsLast = false;
    }
    if (!this.blockIsLast) this.blockFrom = this.blockAt;
    this.blockAt += chunk.copy(this.block, this.blockAt, from, to);
    const piece = this.block.subarray(this.blockFrom, this.blockAt);
    if (this.blockIsLast) this.pieces[this.pieces.length - 1] = piece;
    else this.pieces.push(piece);
    this.blockIsLast = true;
  }

  shift(): Buffer {
    const piece = this.pieces.shift()!;
    this.bytes -= piece.length;
    if (this.pieces.length === 0) this.blockIsLast = false;
    return piece;
  }

  clear(): void {
    this.pieces = [];
    this.bytes = 0;
    this.block = NO_BYTES;
    this.blockAt = 0;
    this.blockIsLast = false;
  }
}

const NO_BYTES = Buffer.alloc(0);
const JOINED_BYTES = 2_048;
const BLOCK_BYTES_MAX = 16_384;
