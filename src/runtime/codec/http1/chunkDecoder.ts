import { COLON, CR, HTAB, IS_TOKEN, IS_VALUE, LF, SP } from "./syntax.js";

/** The receiver of decoded bytes. */
export interface ChunkSink {
  /** Bytes of body: `chunk[from..to)`. Small chunks of one read come together: where chunks end means nothing. */
  onBytes(chunk: Buffer, from: number, to: number): void;
}

/** The chunked coding is broken; nothing after it can be trusted. */
export class ChunkError extends Error {}

const enum State {
  Size,
  SizeBlank,
  SizeExtension,
  SizeLf,
  Data,
  DataCr,
  DataLf,
  TrailerStart,
  TrailerName,
  TrailerValue,
  TrailerLf,
  EndLf,
  Done,
}

/** Bytes allowed in one chunk line with its extensions, and in all trailers (CVE-2024-22019). */
const LINE_BYTES_MAX = 4096;
const TRAILER_BYTES_MAX = 16_384;
/** Bytes of chunk lines that may exceed the data they frame: a body of 1-byte chunks with extensions is an attack. */
const OVERHEAD_BYTES_MAX = 16_777_216;
/**
 * Data of a chunk up to this size is moved next to the data before it. Passing on each chunk separately would cost
 * more: one write and one outgoing chunk for every byte, if a peer sends chunks of one byte.
 */
const MOVED_BYTES_MAX = 2_048;
/** So few bytes are moved faster one by one. */
const LOOPED_BYTES_MAX = 32;
/** Pieces of data in one step, which takes 0.1 ms at most. Only a read of small chunks has more of them. */
const STEP_PIECES_MAX = 1_024;

/**
 * Decodes `chunked` (RFC 9112, 7.1), strictly: CRLF only, hex sizes without sign, bounded extensions. Trailers are checked
 * and dropped (decisions 4.3).
 */
export class ChunkDecoder {
  private state: State = State.Size;
  private remaining = 0;
  private digits = 0;
  private lineBytes = 0;
  private trailerBytes = 0;
  private extensionBytes = 0;
  /** Bytes of the last step that were framing. */
  framingBytes = 0;
  /** Data of the current read that is not passed on yet: its small chunks, moved together. */
  private runFrom = 0;
  private runTo = 0;

  /** @param blanks whether blanks may follow a size, as some servers send them (decisions 3.2) */
  constructor(private readonly blanks = false) {}

  get done(): boolean {
    return this.state === State.Done;
  }

  /**
   * Takes a step: decodes `chunk[from..]` up to the end of the message, or as many chunks as a step has. Data is moved
   * within the chunk, over lines that were read. Data before a fault is passed on before the error is thrown.
   * @returns index of the first byte that was not decoded
   * @throws ChunkError
   */
  decode(chunk: Buffer, from: number, sink: ChunkSink): number {
    try {
      return this.read(chunk, from, sink);
    } finally {
      this.passOn(chunk, sink);
    }
  }

  private read(chunk: Buffer, from: number, sink: ChunkSink): number {
    let at = from;
    let pieces = 0;
    const end = chunk.length;
    this.framingBytes = 0;
    while (at < end && this.state !== State.Done && pieces < STEP_PIECES_MAX) {
      if (this.state === State.Data) {
        at = this.data(chunk, at, sink);
        pieces++;
      } else if (this.state === State.SizeExtension) at = this.extension(chunk, at);
      else this.step(chunk[at++]!);
    }
    this.framingBytes += at - from;
    return at;
  }

  private data(chunk: Buffer, from: number, sink: ChunkSink): number {
    const to = Math.min(chunk.length, from + this.remaining);
    const bytes = to - from;
    this.remaining -= bytes;
    this.framingBytes -= bytes;
    if (this.remaining === 0) this.state = State.DataCr;
    if (bytes > MOVED_BYTES_MAX) {
      this.passOn(chunk, sink);
      sink.onBytes(chunk, from, to);
    } else if (this.runFrom === this.runTo) {
      this.runFrom = from;
      this.runTo = to;
    } else this.move(chunk, from, to);
    return to;
  }

  private move(chunk: Buffer, from: number, to: number): void {
    let at = this.runTo;
    if (to - from > LOOPED_BYTES_MAX) at += chunk.copy(chunk, at, from, to);
    else while (from < to) chunk[at++] = chunk[from++]!;
    this.runTo = at;
  }

  private passOn(chunk: Buffer, sink: ChunkSink): void {
    const { runFrom, runTo } = this;
    if (runFrom === runTo) return;
    this.runFrom = this.runTo = 0;
    sink.onBytes(chunk, runFrom, runTo);
  }

  private step(byte: number): void {
    switch (this.state) {
      case State.Size:
      case State.SizeBlank:
        return this.size(byte);
      case State.SizeLf:
        expect(byte, LF);
        this.lineBytes = 0;
        this.state = this.remaining === 0 ? State.TrailerStart : State.Data;
        return;
      case State.DataCr:
        expect(byte, CR);
        this.state = State.DataLf;
        return;
      case State.DataLf:
        expect(byte, LF);
        this.digits = 0;
        this.state = State.Size;
        return;
      case State.TrailerStart:
        if (byte === CR) this.state = State.EndLf;
        else this.trailer(byte, IS_TOKEN[byte] === 1 ? State.TrailerName : undefined);
        return;
      case State.TrailerName:
        return this.trailer(
          byte,
          byte === COLON ? State.TrailerValue : IS_TOKEN[byte] === 1 ? State.TrailerName : undefined,
        );
      case State.TrailerValue:
        return this.trailer(
          byte,
          byte === CR ? State.TrailerLf : IS_VALUE[byte] === 1 ? State.TrailerValue : undefined,
        );
      case State.TrailerLf:
        expect(byte, LF);
        this.state = State.TrailerStart;
        return;
      default:
        expect(byte, LF);
        this.state = State.Done;
    }
  }

  private size(byte: number): void {
    const value = hexValue(byte);
    if (value !== -1 && this.state === State.Size) {
      // 13 hex digits stay below 2^53.
      if (++this.digits > 13) throw new ChunkError("chunk size too large");
      this.remaining = this.remaining * 16 + value;
      return;
    }
    if (this.digits === 0) throw new ChunkError("chunk size is not a hex number");
    if (byte === CR) this.state = State.SizeLf;
    else if (byte === 0x3b) this.state = State.SizeExtension;
    else if (this.blanks && (byte === SP || byte === HTAB)) this.blank();
    else throw new ChunkError("chunk size is not a hex number");
  }

  /** Counts as an extension does. */
  private blank(): void {
    if (++this.lineBytes > LINE_BYTES_MAX || ++this.extensionBytes > OVERHEAD_BYTES_MAX)
      throw new ChunkError("chunk extensions too long");
    this.state = State.SizeBlank;
  }

  /** Takes as much of the extensions as has arrived, in one loop: a peer may send megabytes of them. */
  private extension(chunk: Buffer, from: number): number {
    const room = Math.min(LINE_BYTES_MAX - this.lineBytes, OVERHEAD_BYTES_MAX - this.extensionBytes);
    const end = Math.min(chunk.length, from + room);
    let at = from;
    while (at < end && IS_VALUE[chunk[at]!] === 1) at++;
    if (at < end) {
      if (chunk[at++] !== CR) throw new ChunkError("control byte in a chunk extension");
      this.state = State.SizeLf;
    } else if (at < chunk.length) throw new ChunkError("chunk extensions too long");
    this.lineBytes += at - from;
    this.extensionBytes += at - from;
    return at;
  }

  /** Trailers are field lines (RFC 9112, 7.1.2): anything else could be data, or a request, to another peer. */
  private trailer(byte: number, next: State | undefined): void {
    if (++this.trailerBytes > TRAILER_BYTES_MAX) throw new ChunkError("trailers too long");
    if (next === undefined) throw new ChunkError(`byte ${byte} is not allowed in a trailer`);
    this.state = next;
  }
}

function expect(byte: number, wanted: number): void {
  if (byte !== wanted) throw new ChunkError("bad line end in the chunked coding");
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
