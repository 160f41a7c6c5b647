import { isBodyTooLong } from "../../model/serving.js";
import { guarded, type Guarded } from "../sockets/guarded.js";
import { coarseNow } from "../sockets/deadlines.js";
import { LASTING, type Memory } from "../sockets/memory.js";
import type { BodySink } from "./exchange.js";

/** After the response, at most so much of the request body is still read; a client that sends more is told to stop. */
const DRAINED_BYTES_MAX = 65_536;

/** The interface of an exchange for its body, whichever protocol carries it. */
export interface BodyOwner extends Guarded {
  /** Milliseconds that a client may be silent; in a tunnel it may be for as long as it likes. */
  readonly bodyIdleMs: number;
  /** Longest body that the route accepts; 0 for any. */
  readonly bodyBytesMax: number;
  /** Whether the client has a reason to be silent: it waits for us to read, or for `100 Continue`. */
  readonly bodyHeldBack: boolean;
  /** No more is wanted for now, or more is wanted again. */
  bodyPaused(): void;
  bodyResumed(): void;
  /** Bytes were consumed: the client may send as many more. */
  bodyConsumed(bytes: number): void;
  /** The body will not be read to its end. */
  bodyFailed(status: 400 | 408 | 413): void;
  /** The rest of the body is too long, or too slow, to wait for. */
  stopBody(): void;
}

/**
 * The body of one request, the same over HTTP/1.1 and HTTP/2. Enforces its declared length and the route's limit, times
 * the client, passes pieces to the sink at the sink's pace, keeps those the sink does not take yet, and drops the rest.
 */
export class RequestBody implements Guarded {
  /** The client has sent all of it. */
  ended = false;
  /** When the client will have been silent for too long, on the coarse clock. */
  private deadline = Infinity;
  /** Bytes of the body that arrived; for a tunnel, including those from before it began. */
  received = 0;
  private waiting: PieceQueue | undefined = undefined;
  private sink: BodySink | undefined = undefined;
  private paused = false;
  private delivering = false;
  /** The sink was notified of the end; or there is no sink any more. */
  private settled = false;
  /** Bytes of the piece with which the sink had enough: they are consumed when it wants more. */
  private inUse = 0;
  /** It will not be read: its bytes are counted and dropped. */
  private discarding = false;
  private discarded = 0;

  /** @param declared length that the head declares; -1 without one */
  constructor(
    private readonly owner: BodyOwner,
    private readonly declared: number,
  ) {}

  /** Whether a sink is attached. */
  get attached(): boolean {
    return this.sink !== undefined;
  }

  /** Bytes that are still to come; -1 if that is not known. */
  get left(): number {
    return this.declared === -1 ? -1 : this.declared - this.received;
  }

  /** Whether only few bytes are left to read. */
  get drainable(): boolean {
    return this.ended || (this.declared !== -1 && this.left <= DRAINED_BYTES_MAX);
  }

  /** The request's route is known: from now on the client is timed, whether or not the body is read. */
  begin(): void {
    // Pieces may have arrived while the request waited.
    if (this.overLimit && !this.settled) return this.owner.bodyFailed(413);
    if (this.sink === undefined && !this.settled) this.arm();
  }

  attach(sink: BodySink): void {
    if (this.settled) return;
    this.sink = sink;
    this.arm();
    // Never inside the sink's own call.
    if (this.ended || this.waiting !== undefined) process.nextTick(guarded, this, this.deliverWaiting);
    else this.owner.bodyResumed();
  }

  pause(): void {
    if (this.sink === undefined || this.settled || this.paused) return;
    this.paused = true;
    this.deadline = Infinity;
    this.owner.bodyPaused();
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

  /**
   * A piece of the body.
   *
   * @param memory that the bytes are in
   * @returns false if it exceeds the declared length (RFC 9113, 8.1.1); then nothing of it was delivered
   */
  data(chunk: Buffer, from: number, to: number, memory: Memory): boolean {
    const bytes = to - from;
    this.received += bytes;
    // Checked before anything is delivered: bytes beyond the length could be read as another request.
    const tooLong = this.declared !== -1 && this.received > this.declared;
    if (tooLong) this.consume(bytes);
    else if (this.discarding) this.discard(bytes);
    else if (this.settled) this.consume(bytes);
    else if (this.overLimit) {
      this.consume(bytes);
      this.owner.bodyFailed(413);
    } else if (this.sink === undefined || this.paused || this.delivering || this.waiting !== undefined) {
      this.keep(chunk, from, to, memory);
    } else {
      this.deliver(from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to), memory);
    }
    return !tooLong;
  }

  /** The client sent the end. @returns false if the body is not as long as was declared */
  end(): boolean {
    if (this.declared !== -1 && this.received !== this.declared) return false;
    this.ended = true;
    this.deadline = Infinity;
    if (this.sink !== undefined && this.waiting === undefined && !this.delivering) this.deliverEnd();
    return true;
  }

  /** The body is not wanted any more: the sink gets nothing more, not even the end. */
  abandon(): void {
    if (this.discarding) return;
    this.sink = undefined;
    this.settled = true;
    this.deadline = Infinity;
  }

  /**
   * The body has no reader, or no longer has one: keeps reading for a limited time, so that a client that is nearly
   * done need not be asked to stop.
   */
  discardRest(ms: number): void {
    if (this.discarding) return;
    this.sink = undefined;
    this.settled = true;
    this.discarding = true;
    this.deadline = this.ended ? Infinity : coarseNow() + ms;
    // Bytes that have arrived need no wait: only later bytes are limited, as `drainable` promised.
    const bytes = (this.waiting?.bytes ?? 0) + this.inUse;
    this.waiting = undefined;
    this.inUse = 0;
    this.consume(bytes);
  }

  /** The request's stream is closed. @returns bytes that were not consumed, which are now dropped */
  close(): number {
    const left = (this.waiting?.bytes ?? 0) + this.inUse;
    this.waiting = undefined;
    this.inUse = 0;
    this.deadline = Infinity;
    return left;
  }

  sweep(now: number): void {
    if (now < this.deadline) return;
    // A sink that does not read has its own deadlines.
    const heldBack = this.sink === undefined && !this.discarding && this.owner.bodyHeldBack;
    this.deadline = heldBack ? now + this.owner.bodyIdleMs : Infinity;
    if (heldBack) return;
    if (this.discarding) this.owner.stopBody();
    else this.owner.bodyFailed(408);
  }

  /** An exception in the sink ends this exchange, and no other of its connection. */
  onFault(error: unknown): void {
    this.owner.onFault(error);
  }

  private get overLimit(): boolean {
    return isBodyTooLong(this.received, this.owner.bodyBytesMax);
  }

  private arm(): void {
    if (!this.ended && !this.discarding) this.deadline = coarseNow() + this.owner.bodyIdleMs;
  }

  private keep(chunk: Buffer, from: number, to: number, memory: Memory): void {
    (this.waiting ??= new PieceQueue()).push(chunk, from, to, memory);
    if (this.sink === undefined) this.owner.bodyPaused();
  }

  private deliver(piece: Buffer, memory: Memory): void {
    this.arm();
    if (this.taken(piece, memory)) return this.consume(piece.length);
    // The sink may have given up the whole exchange.
    if (this.sink === undefined) return this.consume(piece.length);
    this.inUse += piece.length;
    this.pause();
  }

  private taken(piece: Buffer, memory: Memory): boolean {
    try {
      return this.sink!.onData(piece, memory);
    } catch (error) {
      this.onFault(error);
      return true;
    }
  }

  private deliverWaiting(): void {
    if (this.delivering) return;
    this.delivering = true;
    while (this.sink !== undefined && !this.paused && this.waiting !== undefined) {
      const piece = this.waiting.shift();
      if (this.waiting.bytes === 0) this.waiting = undefined;
      this.deliver(piece, LASTING);
    }
    this.delivering = false;
    if (this.sink === undefined || this.waiting !== undefined) return;
    if (this.ended) this.deliverEnd();
    if (!this.paused) this.owner.bodyResumed();
  }

  private deliverEnd(): void {
    if (this.settled) return;
    this.settled = true;
    try {
      this.sink!.onEnd();
    } catch (error) {
      this.onFault(error);
    }
  }

  private discard(bytes: number): void {
    this.discarded += bytes;
    this.consume(bytes);
    if (this.discarded > DRAINED_BYTES_MAX && !this.ended) this.owner.stopBody();
  }

  private consume(bytes: number): void {
    if (bytes !== 0) this.owner.bodyConsumed(bytes);
  }
}

/** Pieces of a body in order. Small ones are joined, so that a window full of them takes up no more than a window. */
export class PieceQueue {
  bytes = 0;
  private readonly pieces: Buffer[] = [];
  /** Small pieces are copied here; if `blockIsLast`, the last piece is the part from `blockFrom` to `blockAt`. */
  private block: Buffer = NO_BYTES;
  private blockFrom = 0;
  private blockAt = 0;
  private blockIsLast = false;

  /** @param memory that the chunk is in; a piece that may be overwritten is copied */
  push(chunk: Buffer, from: number, to: number, memory: Memory): void {
    const bytes = to - from;
    this.bytes += bytes;
    // A slice keeps the whole chunk in memory.
    if (memory === LASTING && bytes * 2 >= chunk.length && bytes >= JOINED_BYTES) {
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
}

const NO_BYTES = Buffer.alloc(0);
const JOINED_BYTES = 2_048;
const BLOCK_BYTES_MAX = 16_384;
