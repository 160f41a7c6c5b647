import fs from "node:fs";
import { guarded, type Guarded } from "../sockets/guarded.js";
import { spent } from "../sockets/memory.js";
import type { Exchange, ExchangeHolder } from "../exchange/exchange.js";
import { tally } from "../exchange/tally.js";
import type { DescriptorOwner, LookupFailure } from "./fileLookup.js";
import type { ByteRange, Segment } from "./ranges.js";

/**
 * Sends parts of an open file as a response's body, at the client's pace, and closes the file whatever happens.
 *
 *     fs.read ──> buffer ──sendData──> client
 *
 * The next part is read only when the last one was taken: the kernel reads files ahead and keeps sockets filled, so a
 * second buffer would save no time, and would push the first out of the processor's cache. The client's pace
 * (`sendPace.ts`) decides how much is read at once: thousands of clients that do not read cost little.
 */
export class FileTransfer implements ExchangeHolder, DescriptorOwner, Guarded {
  /** Undefined before it is open and after it is closed. */
  private fd: number | undefined = undefined;
  private index = 0;
  /** Bytes of the current segment that were read. */
  private offset = 0;
  private buffer: Buffer = NONE;
  /** Bytes of the longest segment: more is never read at once. */
  private readonly longest: number;
  private reading = false;
  /** True while the exchange still uses the last buffer. */
  private blocked = false;
  private over = false;

  /**
   * @param sendHead called once, right before the first bytes
   * @param onFailure called if the file cannot be opened, or not be read to its end, when nothing is held any more
   */
  constructor(
    private readonly exchange: Exchange,
    private readonly segments: readonly Segment[],
    private sendHead: (() => void) | undefined,
    private readonly onFailure: (failure: LookupFailure | Error) => void,
  ) {
    this.longest = segments.reduce((most, s) => ("start" in s ? Math.max(most, s.end - s.start) : most), 0);
  }

  /** @param open opens the file and gives it to its owner, or says why that cannot be done */
  start(open: (owner: DescriptorOwner) => Promise<LookupFailure | undefined>): void {
    if (!this.exchange.hold(this)) return;
    open(this).then(
      (failure) => guarded(this, () => this.opened(failure)),
      (error: unknown) => this.onFault(error),
    );
  }

  own(fd: number): void {
    tally.filesOpened++;
    this.fd = fd;
    if (this.over) this.close();
  }

  private opened(failure: LookupFailure | undefined): void {
    if (this.over) return;
    if (failure === undefined) this.advance();
    else this.fail(failure);
  }

  /** Continues until there is something to wait for. */
  private advance(): void {
    for (; !this.blocked && !this.over; this.index++, this.offset = 0) {
      const segment = this.segments[this.index];
      if (segment === undefined) return this.finish();
      if ("start" in segment) {
        if (segment.start + this.offset < segment.end) return this.read(segment);
      } else this.send(segment);
    }
  }

  private read(segment: ByteRange): void {
    const at = segment.start + this.offset;
    const size = Math.min(this.longest, this.exchange.pieceBytesMax, CHUNK_BYTES);
    if (this.buffer.length !== bufferSize(size)) {
      giveBack(this.buffer);
      this.buffer = takeBuffer(size);
    }
    this.reading = true;
    spent(this.buffer);
    fs.read(this.fd!, this.buffer, 0, Math.min(this.buffer.length, segment.end - at), at, (error, count) => {
      this.reading = false;
      if (this.over) {
        tally.bytesForNobody += count;
        return this.close();
      }
      guarded(this, () => this.wasRead(error, count));
    });
  }

  private wasRead(error: Error | null, count: number): void {
    if (error !== null) return this.fail(error);
    // The length is already announced: the client can only be shown that the response is incomplete.
    if (count === 0) return this.fail(new Error("the file was truncated while it was sent"));
    this.offset += count;
    this.send(this.buffer.subarray(0, count));
    this.advance();
  }

  private send(chunk: Uint8Array): void {
    this.sendHead?.();
    this.sendHead = undefined;
    if (!this.exchange.sendData(chunk)) this.blocked = true;
  }

  onDrain(): void {
    this.blocked = false;
    if (!this.reading) this.advance();
  }

  onReleased(): void {
    this.stop();
  }

  /** An exception is an internal fault: it ends this exchange. */
  onFault(error: unknown): void {
    this.exchange.onFault(error);
  }

  private finish(): void {
    this.stop();
    this.exchange.end();
  }

  private fail(failure: LookupFailure | Error): void {
    this.stop();
    this.onFailure(failure);
  }

  private stop(): void {
    if (this.over) return;
    this.over = true;
    this.exchange.letGo(this);
    if (!this.reading) this.close();
  }

  private close(): void {
    if (this.fd === undefined) return;
    fs.close(this.fd, () => undefined);
    this.fd = undefined;
    tally.filesClosed++;
    // A buffer that the exchange still uses is left to the garbage collector.
    if (!this.blocked) giveBack(this.buffer);
  }
}

const NONE = Buffer.alloc(0);

/** Measured as the best of 64 KiB to 1 MiB: stays in a core's cache between read and write, with few calls. */
const CHUNK_BYTES = 512 * 1024;

/** Large buffers that no transfer uses; the worker keeps up to {@link POOL_MAX} of them. */
const pool: Buffer[] = [];
const POOL_MAX = 16;

/** Short files get a buffer of their length: with many transfers at once, full-size buffers would add up. */
const bufferSize = (bytes: number): number => (bytes < CHUNK_BYTES / 2 ? bytes : CHUNK_BYTES);

function takeBuffer(bytes: number): Buffer {
  const size = bufferSize(bytes);
  return (size === CHUNK_BYTES ? pool.pop() : undefined) ?? Buffer.allocUnsafeSlow(size);
}

function giveBack(buffer: Buffer): void {
  spent(buffer);
  if (buffer.length === CHUNK_BYTES && pool.length < POOL_MAX) pool.push(buffer);
}
