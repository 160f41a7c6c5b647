import type { TLSSocket } from "node:tls";
import { writeFrameHead } from "../codec/http2/frames.js";
import { uses } from "../sockets/node/pieces.js";
import { HELD_UP_BYTES, LARGE_BYTES as LARGE_PIECE_BYTES, SendPace } from "../sockets/sendPace.js";
import { spent } from "../sockets/memory.js";
import { batch, type Batched } from "../sockets/writeBatch.js";
import { Flag, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FrameType } from "../codec/http2/protocol.js";

/**
 * DATA is put in up to this size; the rest waits at its stream. Measured as the best of 64 to 512 KiB for a download:
 * one TLS write of this size stays in a core's cache.
 */
const OUTBOX_DATA_BYTES = 131_072;

const SMALL_BYTES = 16_384;
/** The same for a client that has not shown yet that it reads: with some other frames it fits a small buffer. */
const SLOW_DATA_BYTES = SMALL_BYTES - 512;
/** Size of a piece for such a client: two frames. */
const PIECE_BYTES = 2 * FRAME_BYTES_MAX;
/** A frame is not split into pieces smaller than this. */
const CUT_BYTES_MIN = 2_048;
const LARGE_BYTES = OUTBOX_DATA_BYTES + 2 * SMALL_BYTES;
/** A large write, plain and encrypted, and as much again that waits or is being put together. */
const TRIAL_BYTES = 4 * OUTBOX_DATA_BYTES;

/**
 * The frames that wait to be written to one connection. Everything of one turn of the event loop goes out in one write;
 * meanwhile the next one collects. Buffers come from a pool of the worker and go back once they are written.
 */
export class Outbox implements Batched {
  buffer: Buffer = NONE;
  /** The position of the next frame, which is how many bytes wait. */
  at = 0;
  /** Counts writes: a frame may be amended until this changes after the frame was added. */
  generation = 0;
  /** How fast the client reads. Data is in memory twice, because TLS encrypts it. */
  readonly pace: SendPace;
  /** Whether large writes are allowed: not if only the end of a write shows progress. */
  private readonly large = uses.unsentBytes;
  /** True while the last write is in progress. */
  writing = false;
  private scheduled = false;
  private inFlight: Buffer = NONE;

  /**
   * @param onWritten called when a write is done, before the next
   * @param onFault called with the exception of a write at the end of the turn
   */
  constructor(
    private readonly socket: TLSSocket,
    private readonly onWritten: () => void,
    readonly onFault: (error: unknown) => void,
  ) {
    this.pace = new SendPace(SMALL_BYTES, 2, this.large ? TRIAL_BYTES : 0);
  }

  /**
   * How much of a body each of this many streams may send at once (`Exchange.pieceBytesMax`): together about one piece.
   */
  pieceBytesMax(streams: number): number {
    if (!this.writesLarge) return PIECE_BYTES;
    const all = this.pace.fast ? LARGE_PIECE_BYTES : OUTBOX_DATA_BYTES;
    return Math.max(PIECE_BYTES, Math.floor(all / streams));
  }

  /** How many of these bytes of DATA fit into a frame now; 0 until a write is done. */
  room(bytes: number): number {
    if (this.writesLarge) return this.at < OUTBOX_DATA_BYTES ? bytes : 0;
    const left = SLOW_DATA_BYTES - FRAME_HEAD_BYTES - this.at;
    if (bytes <= left) return bytes;
    return left < CUT_BYTES_MIN ? 0 : left;
  }

  /** Whether the client has not read so much that nothing should wait behind it that can be left out. */
  get heldUp(): boolean {
    return this.writing && this.at > HELD_UP_BYTES;
  }

  private get writesLarge(): boolean {
    return (this.pace.fast || this.pace.onTrial) && this.large;
  }

  /** Makes room for this many bytes at `at`, to be written at the end of this turn. */
  reserve(bytes: number): void {
    if (this.at + bytes > this.buffer.length) this.grow(this.at + bytes);
    if (this.scheduled) return;
    this.scheduled = true;
    batch(this);
  }

  /** Puts in the head of a frame and moves on to its payload; room must be reserved. */
  frameHead(length: number, type: FrameType, flags: number, stream: number): void {
    writeFrameHead(this.buffer, this.at, length, type, flags, stream);
    this.at += FRAME_HEAD_BYTES;
  }

  /** A whole frame with a payload of 32-bit numbers. */
  numbers(type: FrameType, flags: number, stream: number, ...numbers: number[]): void {
    this.reserve(FRAME_HEAD_BYTES + numbers.length * 4);
    this.frameHead(numbers.length * 4, type, flags, stream);
    for (const number of numbers) this.at = this.buffer.writeUInt32BE(number >>> 0, this.at);
  }

  /** A whole frame with the given payload. */
  frame(type: FrameType, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    this.reserve(FRAME_HEAD_BYTES + to - from);
    this.frameHead(to - from, type, flags, stream);
    this.at += bytes.copy(this.buffer, this.at, from, to);
  }

  /** Splits a head at `from` that is longer than a frame into CONTINUATION frames (RFC 9113, 6.10). */
  splitHead(stream: number, from: number, length: number): void {
    const start = from + FRAME_HEAD_BYTES;
    const block = Buffer.from(this.buffer.subarray(start, start + length));
    this.at = from;
    for (let at = 0; at < length; at += FRAME_BYTES_MAX) {
      const to = Math.min(length, at + FRAME_BYTES_MAX);
      const type = at === 0 ? FrameType.Headers : FrameType.Continuation;
      this.frame(type, to === length ? Flag.EndHeaders : 0, stream, block, at, to);
    }
  }

  writeBatched(): void {
    this.scheduled = false;
    this.flush();
  }

  /** Writes waiting frames; if a write is in progress, after that write. */
  flush(): void {
    if (this.writing || this.at === 0) return;
    const { buffer, at } = this;
    this.inFlight = buffer;
    this.buffer = NONE;
    this.at = 0;
    this.generation++;
    this.writing = true;
    this.pace.wrote(at, true);
    this.socket.write(buffer.subarray(0, at), this.written);
  }

  /** Writes waiting frames at once, as nothing more will follow. */
  finish(): void {
    const { buffer, at } = this;
    this.buffer = NONE;
    this.at = 0;
    this.generation++;
    if (at > 0) this.socket.write(buffer.subarray(0, at));
  }

  /** Nothing more is written; buffers that no write can be reading go back. */
  close(): void {
    give(this.buffer);
    this.buffer = NONE;
    this.at = 0;
    this.pace.close();
  }

  private readonly written = (error?: Error | null): void => {
    this.writing = false;
    this.pace.written();
    give(this.inFlight);
    this.inFlight = NONE;
    if (error != null) return;
    this.flush();
    this.onWritten();
  };

  private grow(bytes: number): void {
    const buffer = take(bytes);
    this.buffer.copy(buffer, 0, 0, this.at);
    give(this.buffer);
    this.buffer = buffer;
  }
}

const NONE = Buffer.alloc(0);
const pools = [
  { size: SMALL_BYTES, free: [] as Buffer[], max: 256 },
  { size: LARGE_BYTES, free: [] as Buffer[], max: 8 },
];

function take(bytes: number): Buffer {
  const pool = pools.find(({ size }) => bytes <= size);
  return pool?.free.pop() ?? Buffer.allocUnsafeSlow(pool?.size ?? bytes * 2);
}

function give(buffer: Buffer): void {
  spent(buffer);
  const pool = pools.find(({ size }) => buffer.length === size);
  if (pool !== undefined && pool.free.length < pool.max) pool.free.push(buffer);
}
