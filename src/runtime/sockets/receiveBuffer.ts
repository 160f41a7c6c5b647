/**
 * Where sockets read into. Node's default allocates 64 KiB for every read and leaves it to the garbage collector, which
 * costs more than the read. Instead all idle and lightly used sockets of a worker read into one shared buffer, whose
 * bytes are valid only during the read callback, and a socket with a bulk transfer gets its own large buffer.
 *
 *     read ──> shared (64 KiB): bytes must be copied to outlive the callback ("transient")
 *          └─> own (as large as its receiver's pace allows, `sendPace.ts`): bytes stay until the next read, so
 *              that they can be written as they are
 */
export class ReceiveBuffer {
  /**
   * Whether bytes just read must be copied to be kept. This depends on the buffer they were read into: a new size takes
   * effect with the read after the next callback, not at once.
   */
  transient = true;
  private own: Buffer | undefined = undefined;
  /** The buffer that the socket reads into now. */
  private into: Buffer = shared;
  private intoOwn = false;
  /** The shared buffer, or as much of its beginning as one read may fill. */
  private common: Buffer = shared;
  /** Where the next read begins in an own buffer that is filled piece by piece; of another, how much it was filled. */
  private at = 0;
  /** Size that suits the transfer. */
  private wanted = 0;

  /**
   * @param pieces true where one read of the socket is delivered in several pieces (TLS records) that are written
   *   together later: then each is put after the one before, and the buffer is started again only when it is full
   */
  constructor(private readonly pieces = false) {}

  /** The buffer for the first read. */
  get first(): Buffer {
    return this.into;
  }

  /** The buffer for the next read; undefined for the same as before. */
  next(): Buffer | undefined {
    this.intoOwn = this.own !== undefined;
    const next = this.own === undefined ? this.common : this.pieces ? this.behind(this.own) : this.own;
    if (next === this.into) return undefined;
    return (this.into = next);
  }

  /** The bytes of a read of that length. */
  read(bytes: number): Buffer {
    this.transient = !this.intoOwn;
    if (!this.transient) this.at += bytes;
    else if (bytes < VIEWS_MAX) return (views[bytes] ??= shared.subarray(0, bytes));
    return this.into.subarray(0, bytes);
  }

  private behind(own: Buffer): Buffer {
    if (own.length - this.at < RECORD_BYTES_MAX) this.at = 0;
    return own.subarray(this.at);
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
      // Pieces that wait to be written must not be overwritten, so with pieces the buffer is never small.
      this.wanted = bytes === -1 || this.pieces ? OWN_BYTES_MAX : Math.min(OWN_BYTES_MAX, bytes);
    }
    const size = Math.min(this.wanted, most);
    // A write may still read from the one before.
    if (this.own?.length !== size) this.own = Buffer.allocUnsafeSlow(size);
  }

  private mostByDefault(): number {
    return this.pieces || this.at >= GROWN_AFTER_BYTES ? OWN_BYTES_MAX : OWN_BYTES_FIRST;
  }

  /** Gives an own buffer back: not to a pool, as a write may still read from it, but to the garbage collector. */
  release(): void {
    this.own = undefined;
    this.common = shared;
    this.at = 0;
  }
}

/** Larger than any head and than most responses; the kernel fills it in one read when there is more. */
const SHARED_BYTES = 65_536;
/** Pieces that wait to be written may be nearly half of it (`upstream/requestWriter.ts`). */
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
