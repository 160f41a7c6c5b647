import {
  ConnectionError,
  ErrorCode,
  Flag,
  FRAME_BYTES_MAX,
  FRAME_HEAD_BYTES,
  FrameType,
} from "./protocol.js";

/** Receives the frames of a {@link FrameReader}. Any method may throw a ConnectionError. */
export interface FrameSink {
  /** A DATA frame begins; `length` counts for flow control, including padding (RFC 9113, 6.1). */
  onDataBegin(stream: number, length: number): void;
  /** A piece of its data, in the buffer that was read. */
  onDataPiece(chunk: Buffer, from: number, to: number): void;
  onDataEnd(flags: number): void;
  /** Any other frame, whole; its payload is in `bytes` only until this returns. */
  onFrame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void;
}

/**
 * Cuts a client's bytes into frames (RFC 9113, 4.1). DATA is passed on piece by piece as it arrives, so that no frame
 * waits for its end; other frames are read in place, and copied only if they arrive split.
 */
export class FrameReader {
  /** Set to discard the rest of the input. */
  stopped = false;
  private prefaceAt = 0;
  /** A frame that arrived in part, other than DATA. */
  private partial: Buffer | undefined = undefined;
  private held = 0;
  private readonly head = Buffer.alloc(FRAME_HEAD_BYTES);
  /** The current DATA frame: payload still to come, padding at its end, and flags. */
  private left = 0;
  private padding = 0;
  private paddingKnown = true;
  private dataFlags = 0;

  constructor(private readonly sink: FrameSink) {}

  /** Whether a part of a frame has come. */
  get isWithin(): boolean {
    return this.held > 0 || this.left > 0;
  }

  /**
   * Reads a chunk frame by frame.
   *
   * @param hasEnough asked after each frame, or piece of one: whether the rest is for another call
   * @returns index of the first byte that was not read
   * @throws ConnectionError if the bytes are not HTTP/2, and any error of the sink
   */
  read(chunk: Buffer, hasEnough: () => boolean = never): number {
    let at = this.prefaceAt < PREFACE.length ? this.readPreface(chunk) : 0;
    while (at < chunk.length) {
      if (this.stopped) return chunk.length;
      if (this.left > 0) at = this.readData(chunk, at);
      else if (this.held > 0 || chunk.length - at < FRAME_HEAD_BYTES) at = this.readSplit(chunk, at);
      else at = this.readFrame(chunk, at);
      if (hasEnough()) break;
    }
    return at;
  }

  private readPreface(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && this.prefaceAt < PREFACE.length)
      if (chunk[at++] !== PREFACE[this.prefaceAt++])
        throw new ConnectionError(ErrorCode.ProtocolError, "invalid connection preface");
    return at;
  }

  /** A frame whose head is in the chunk. */
  private readFrame(chunk: Buffer, at: number): number {
    const length = frameLength(chunk, at);
    const from = at + FRAME_HEAD_BYTES;
    const flags = chunk[at + 4]!;
    const type = chunk[at + 3]!;
    if (type === FrameType.Data) {
      this.beginData(chunk, at, length);
      return from;
    }
    const to = from + length;
    if (to > chunk.length) {
      this.partial = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
      this.held = chunk.copy(this.partial, 0, at);
      return chunk.length;
    }
    this.sink.onFrame(type, flags, streamOf(chunk, at), chunk, from, to);
    return to;
  }

  /** Continues a frame that arrived in part, or begins one whose head is split. */
  private readSplit(chunk: Buffer, at: number): number {
    if (this.partial === undefined) {
      const taken = Math.min(FRAME_HEAD_BYTES - this.held, chunk.length - at);
      chunk.copy(this.head, this.held, at, at + taken);
      this.held += taken;
      if (this.held < FRAME_HEAD_BYTES) return chunk.length;
      const length = frameLength(this.head, 0);
      if (this.head[3] === FrameType.Data) {
        this.held = 0;
        this.beginData(this.head, 0, length);
        return at + taken;
      }
      this.partial = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
      this.head.copy(this.partial);
      at += taken;
    }
    const { partial } = this;
    const taken = Math.min(partial.length - this.held, chunk.length - at);
    chunk.copy(partial, this.held, at, at + taken);
    this.held += taken;
    if (this.held === partial.length) {
      this.held = 0;
      this.partial = undefined;
      this.sink.onFrame(
        partial[3]!,
        partial[4]!,
        streamOf(partial, 0),
        partial,
        FRAME_HEAD_BYTES,
        partial.length,
      );
    }
    return at + taken;
  }

  private beginData(bytes: Buffer, at: number, length: number): void {
    this.dataFlags = bytes[at + 4]!;
    this.left = length;
    this.padding = 0;
    this.paddingKnown = (this.dataFlags & Flag.Padded) === 0;
    if (!this.paddingKnown && length === 0)
      throw new ConnectionError(ErrorCode.FrameSizeError, "padded DATA frame without a pad length");
    this.sink.onDataBegin(streamOf(bytes, at), length);
    if (length === 0) this.sink.onDataEnd(this.dataFlags);
  }

  private readData(chunk: Buffer, at: number): number {
    if (!this.paddingKnown) {
      this.paddingKnown = true;
      this.padding = chunk[at++]!;
      this.left--;
      if (this.padding > this.left)
        throw new ConnectionError(ErrorCode.ProtocolError, "DATA frame with more padding than payload");
    }
    const to = Math.min(chunk.length, at + this.left);
    const dataTo = Math.min(to, at + this.left - this.padding);
    this.left -= to - at;
    if (dataTo > at) this.sink.onDataPiece(chunk, at, dataTo);
    if (this.left === 0) this.sink.onDataEnd(this.dataFlags);
    return to;
  }
}

const never = (): boolean => false;

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

function frameLength(bytes: Buffer, at: number): number {
  const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length > FRAME_BYTES_MAX) throw new ConnectionError(ErrorCode.FrameSizeError, "frame too long");
  return length;
}

/** The reserved bit is ignored (RFC 9113, 4.1). */
function streamOf(bytes: Buffer, at: number): number {
  return uint31(bytes, at + 5);
}

/** A 32-bit number without its highest bit, as stream ids and window increments are. */
export function uint31(bytes: Buffer, at: number): number {
  return ((bytes[at]! & 0x7f) << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

export function uint32(bytes: Buffer, at: number): number {
  return uint31(bytes, at) + (bytes[at]! >= 0x80 ? 0x8000_0000 : 0);
}

export function writeFrameHead(
  into: Buffer,
  at: number,
  length: number,
  type: FrameType,
  flags: number,
  stream: number,
): void {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = type;
  into[at + 4] = flags;
  into[at + 5] = stream >>> 24;
  into[at + 6] = stream >>> 16;
  into[at + 7] = stream >>> 8;
  into[at + 8] = stream;
}

/** CONTINUATION frames of one block; honest clients need one for every 16 KiB of a head. */
const CONTINUATIONS_MAX = 32;

/** A field block that is sent in several frames (RFC 9113, 4.3): nothing else may come between them. */
export class FieldBlock {
  /** Stream of the block that is open; 0 if none is. */
  stream = 0;
  flags = 0;
  private bytes = Buffer.alloc(0);
  private length = 0;
  private continuations = 0;

  /** @param bytesMax longest block that is kept; a longer one, or too many frames of one, end the connection */
  constructor(private readonly bytesMax: number) {}

  begin(stream: number, flags: number, bytes: Buffer, from: number, to: number): void {
    this.stream = stream;
    this.flags = flags;
    this.length = 0;
    this.continuations = 0;
    this.append(bytes, from, to);
  }

  /** CVE-2024-27316 and similar attacks: endless frames that never complete a head. */
  append(bytes: Buffer, from: number, to: number): void {
    if (++this.continuations > CONTINUATIONS_MAX || this.length + to - from > this.bytesMax)
      throw new ConnectionError(ErrorCode.EnhanceYourCalm, "field block is too long");
    if (this.length + to - from > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow((this.length + to - from) * 2);
      this.bytes.copy(grown, 0, 0, this.length);
      this.bytes = grown;
    }
    this.length += bytes.copy(this.bytes, this.length, from, to);
  }

  /** The block is complete; its bytes are valid until the next one begins. */
  end(): Buffer {
    const block = this.bytes.subarray(0, this.length);
    this.stream = 0;
    this.bytes = Buffer.alloc(0);
    return block;
  }
}
