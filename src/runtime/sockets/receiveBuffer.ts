import { LASTING, type Memory, spent, TRANSIENT } from "./memory.js";

/** A reader that waits where the memory for the next read is kept. */
export interface WaitingReader {
  /** {@link ReceiveBuffer.isKept} is no longer true. */
  readOn(): void;
}

/**
 * The memory that sockets read into. Node's default allocates 64 KiB for every read and leaves it to the garbage collector,
 * which costs more than the read. Instead all idle and lightly used sockets of a worker read into one shared buffer, whose
 * bytes are valid only during the read callback, and a socket with a bulk transfer gets its own large buffer, of which
 * receivers may keep pieces (`memory.ts`).
 *
 *     read ──> shared (64 KiB): whoever keeps bytes copies them
 *          └─> own (as large as its receiver's pace allows, `sendPace.ts`): from its start, or behind pieces that are
 *              kept; where too little room is left, a second own buffer; while that is kept too, the shared one
 */
export class ReceiveBuffer {
  /** The memory of the bytes just read; before the first read here they come from memory of their own. */
  memory: Memory = LASTING;
  /** Reads on when a kept buffer that it waits for is free. */
  reader: WaitingReader | undefined = undefined;
  private own: OwnMemory | undefined = undefined;
  /** Takes turns with `own` while receivers keep pieces: a paused socket has its buffer for the next read already. */
  private second: OwnMemory | undefined = undefined;
  /** The buffer that the socket reads into now, and the own memory that it is part of. */
  private into: Buffer = shared;
  private intoOwn: OwnMemory | undefined = undefined;
  /** The same, where reading starts again when nothing of it is kept. */
  private awaited: OwnMemory | undefined = undefined;
  /** The shared buffer, or as much of its beginning as one read may fill. */
  private common: Buffer = shared;
  /** Bytes that were read into own memory. */
  private filled = 0;
  /** Size that suits the transfer. */
  private wanted = 0;

  /**
   * @param pieces true where one read of the socket is delivered in several pieces (TLS records) that are written
   *   together later, one behind the other
   */
  constructor(private readonly pieces = false) {}

  /** The buffer for the first read. */
  get first(): Buffer {
    return this.into;
  }

  /**
   * The buffer for the next read, when the last one was received; undefined for the same as before.
   *
   * @param stopped whether there is no such read before {@link PacedReader} starts reading again
   */
  next(stopped = false): Buffer | undefined {
    if (this.intoOwn === undefined) spent(this.into);
    const next = this.free(stopped && !this.pieces) ?? this.common;
    if (next === this.into) return undefined;
    return (this.into = next);
  }

  /** Whether nothing may be read: the buffer for the next read is kept. */
  get isKept(): boolean {
    return this.awaited !== undefined && this.awaited.isKept;
  }

  /** Own memory that may be read into; undefined if there is none. */
  private free(stopped: boolean): Buffer | undefined {
    this.intoOwn = this.awaited = undefined;
    const { own } = this;
    if (own === undefined) return undefined;
    if (stopped && own.isKept) {
      this.intoOwn = this.awaited = own;
      return own.whole(this.reader);
    }
    const least = this.pieces ? RECORD_BYTES_MAX : own.bytes / 2;
    let room = own.room(least);
    if (room === undefined) {
      this.own = this.second ?? new OwnMemory(own.bytes);
      this.second = own;
      room = this.own.room(least);
    }
    if (room !== undefined) this.intoOwn = this.own;
    return room;
  }

  /** The bytes of a read of that length. */
  read(bytes: number): Buffer {
    const { intoOwn } = this;
    this.awaited = undefined;
    if (intoOwn === undefined) {
      this.memory = TRANSIENT;
      return bytes < VIEWS_MAX ? (views[bytes] ??= shared.subarray(0, bytes)) : this.into.subarray(0, bytes);
    }
    this.memory = intoOwn;
    this.filled += bytes;
    intoOwn.at += bytes;
    return this.into.subarray(0, bytes);
  }

  /**
   * Sizes the buffer for a transfer.
   * @param bytes still to come; -1 if that is not known, then it grows once a read has filled the shared buffer
   * @param filled how much the last read brought
   * @param most how much one read may bring, by its receiver's pace (`sendPace.ts`); by default more once half a
   * megabyte was read, so that thousands of slow receivers do not each hold the whole size
   */
  fit(bytes: number, filled: number, most = this.mostByDefault()): void {
    if (this.own === undefined) {
      const full = this.pieces ? RECORD_BYTES_MAX : Math.min(SHARED_BYTES, most);
      if (!(bytes === -1 ? filled >= full : bytes > full)) {
        this.common = partOf(most);
        return;
      }
      // Pieces gather behind one another until they are written, so with pieces the buffer is never small.
      this.wanted = bytes === -1 || this.pieces ? OWN_BYTES_MAX : Math.min(OWN_BYTES_MAX, bytes);
    }
    const size = Math.min(this.wanted, most);
    if (this.own?.bytes === size) return;
    this.own = new OwnMemory(size);
    this.second = undefined;
  }

  private mostByDefault(): number {
    return this.pieces || this.filled >= GROWN_AFTER_BYTES ? OWN_BYTES_MAX : OWN_BYTES_FIRST;
  }

  /** The transfer is over: reads go into the shared buffer again. */
  release(): void {
    this.own = undefined;
    this.second = undefined;
    this.common = shared;
    this.filled = 0;
  }
}

/** Memory of one transfer; the garbage collector has it when neither the transfer nor a receiver needs it. */
class OwnMemory implements Memory {
  readonly copies = false;
  /** The position of the next read. */
  at = 0;
  /** Pieces that are kept: no read begins before the end of the last one. */
  private kept = 0;
  private reader: WaitingReader | undefined = undefined;
  private readonly buffer: Buffer;

  constructor(readonly bytes: number) {
    this.buffer = Buffer.allocUnsafeSlow(bytes);
  }

  /** What may be read into; undefined if that is less than `least` bytes. */
  room(least: number): Buffer | undefined {
    if (this.kept === 0) this.restart();
    if (this.at === 0) return this.buffer;
    return this.bytes - this.at < least ? undefined : this.buffer.subarray(this.at);
  }

  get isKept(): boolean {
    return this.kept > 0;
  }

  /** All of it, to be read into once nothing of it is kept. */
  whole(reader: WaitingReader | undefined): Buffer {
    this.reader = reader;
    return this.buffer;
  }

  keep(bytes: Buffer): Buffer {
    this.kept++;
    return bytes;
  }

  giveBack(): void {
    if (--this.kept > 0 || this.reader === undefined) return;
    const { reader } = this;
    this.reader = undefined;
    this.restart();
    reader.readOn();
  }

  private restart(): void {
    spent(this.buffer, this.at);
    this.at = 0;
  }
}

/** Larger than any head and than most responses; the kernel fills it in one read when there is more. */
const SHARED_BYTES = 65_536;
const OWN_BYTES_MAX = 1_048_576;
const OWN_BYTES_FIRST = 131_072;
const GROWN_AFTER_BYTES = 524_288;
/** Plaintext of one TLS record (RFC 8446, 5.1). */
const RECORD_BYTES_MAX = 16_384;
const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);

/** Views of the shared buffer by their length: few lengths make up most reads, and a view costs more than its bytes. */
const views: (Buffer | undefined)[] = [];
const VIEWS_MAX = 4096;

/** The first bytes of the shared buffer, by how many kibibytes. */
const parts: (Buffer | undefined)[] = [];

function partOf(bytes: number): Buffer {
  return bytes >= SHARED_BYTES ? shared : (parts[bytes >>> 10] ??= shared.subarray(0, bytes));
}
