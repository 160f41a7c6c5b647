import {
  FRAME_BYTES_MAX,
  FRAME_HEAD_BYTES,
  FrameType,
  Flag,
  INITIAL_WINDOW_BYTES,
  WINDOW_BYTES_MAX,
} from "../codec/http2/protocol.js";
import { CONNECTION_WINDOW_BYTES, CONNECTION_WINDOW_BYTES_MAX } from "../codec/http2/settings.js";
import type { Outbox } from "./outbox.js";

/** How much a peer may still send, and how much to give back for consumed bytes (RFC 9113, 5.2 and 6.9). */
export class ReceiveWindow {
  private left: number;
  private owed = 0;

  /** @param size the window once everything is consumed */
  constructor(protected size: number) {
    this.left = size;
  }

  /** True if the peer has used all of it up. */
  get exhausted(): boolean {
    return this.left <= 0;
  }

  /** Makes it larger. @returns the increment to send; 0 if it is already that large */
  widen(size: number): number {
    const increment = Math.max(0, size - this.size);
    this.size += increment;
    this.left += increment;
    return increment;
  }

  /** @returns false if the peer sent more than it may */
  take(bytes: number): boolean {
    this.left -= bytes;
    return this.left >= 0;
  }

  /**
   * Bytes were consumed: only then are they given back, so that a peer cannot make this side keep more than the window.
   * @returns the increment to send now; 0 while it is too small to be worth a frame
   */
  consumed(bytes: number): number {
    this.owed += bytes;
    if (this.owed * 4 < this.size) return 0;
    const increment = this.owed;
    this.owed = 0;
    this.left += increment;
    return increment;
  }
}

/** How much more than their first windows the connections of a worker may still allow their clients together. */
export class WindowLender {
  private left: number;

  constructor(private readonly all: number) {
    this.left = all;
  }

  /** Bytes on loan. */
  get lent(): number {
    return this.all - this.left;
  }

  /** Whether half of it would still be left. */
  hasPlenty(bytes: number): boolean {
    return (this.left - bytes) * 2 >= this.all;
  }

  /** @returns how much of it there is */
  lend(bytes: number): number {
    const lent = Math.min(bytes, this.left);
    this.left -= lent;
    return lent;
  }

  giveBack(bytes: number): void {
    this.left += bytes;
  }
}

/**
 * The window of a connection. It is small until the client sends a body. Then it grows to the maximum, while there is
 * plenty to lend; with less, it grows fourfold each time the client has sent a quarter of it. The growth is on loan
 * until the connection is closed, as a window cannot be made smaller (RFC 9113, 6.9). When nothing is left to lend,
 * windows stay as they are.
 */
export class ConnectionWindow extends ReceiveWindow {
  private received = 0;

  constructor(private readonly lender: WindowLender) {
    super(CONNECTION_WINDOW_BYTES);
  }

  /** Bytes arrived. @returns the increment to send; 0 if it stays as it is */
  grow(bytes: number): number {
    const more = CONNECTION_WINDOW_BYTES_MAX - this.size;
    if (more === 0) return 0;
    this.received += bytes;
    if (this.received < BODY_BYTES) return 0;
    const plenty = this.lender.hasPlenty(more);
    if (!plenty && this.received * 4 < this.size) return 0;
    this.received = 0;
    return this.widen(this.size + this.lender.lend(plenty ? more : Math.min(3 * this.size, more)));
  }

  close(): void {
    this.lender.giveBack(this.size - CONNECTION_WINDOW_BYTES);
    this.size = CONNECTION_WINDOW_BYTES;
  }
}

/** Larger than most request bodies; an uploading client can send this before it waits for any window. */
const BODY_BYTES = 16_384;

/** The sending half of a stream, as far as the scheduler needs it. */
export interface SendingStream {
  readonly id: number;
  sendWindow: number;
  /** Among the scheduler's ready ones. */
  queued: boolean;
  /** Bytes that wait; empty if there are none. */
  readonly waiting: Buffer[];
  /** How much of the first of them went out. */
  waitingAt: number;
  /** The response ends after them. */
  readonly endsAfter: boolean;
  /** The position of its last frame's flags in the outbox, and the outbox's generation then. */
  flagsAt: number;
  generation: number;
  /** Some of the waiting data was sent. */
  onProgress(): void;
  /** All waiting data was sent. */
  onSent(): void;
}

/**
 * Sends DATA within the peer's windows. Streams that have bytes waiting take turns, one frame each, so that a large
 * download leaves room for the others of its connection.
 */
export class SendScheduler {
  /** The connection's own window. */
  window = INITIAL_WINDOW_BYTES;
  /** Streams with bytes waiting and a window to send them in. */
  private ready: SendingStream[] = [];

  constructor(private readonly outbox: Outbox) {}

  /**
   * Puts as much of `bytes` into DATA frames as may be sent now.
   * @returns how many bytes that was
   */
  send(stream: SendingStream, bytes: Uint8Array): number {
    // Streams that already wait come first.
    if (this.ready.length > 0) return 0;
    let sent = 0;
    for (let size; (size = this.frameSize(stream, bytes.length - sent)) > 0; sent += size)
      this.put(stream, bytes, sent, size, 0);
    return sent;
  }

  /** A stream has bytes waiting, or a window again. */
  wake(stream: SendingStream): void {
    if (stream.queued || stream.waiting.length === 0 || stream.sendWindow <= 0) return;
    stream.queued = true;
    this.ready.push(stream);
  }

  /** The connection's window grew. @returns false if it exceeds the largest window allowed */
  grant(increment: number): boolean {
    this.window += increment;
    return this.window <= WINDOW_BYTES_MAX;
  }

  /** Sends waiting data, as far as windows and outbox allow. */
  pump(): void {
    while (this.ready.length > 0 && this.window > 0 && this.outbox.room(FRAME_BYTES_MAX) !== 0) {
      const stream = this.ready.shift()!;
      stream.queued = false;
      this.sendOne(stream);
    }
  }

  forget(stream: SendingStream): void {
    if (!stream.queued) return;
    stream.queued = false;
    this.ready = this.ready.filter((other) => other !== stream);
  }

  private sendOne(stream: SendingStream): void {
    const { waiting } = stream;
    const bytes = waiting[0]!;
    const from = stream.waitingAt;
    const size = this.frameSize(stream, bytes.length - from);
    if (size === 0) return;
    const whole = from + size === bytes.length;
    const last = whole && waiting.length === 1;
    this.put(stream, bytes, from, size, last && stream.endsAfter ? Flag.EndStream : 0);
    if (whole) waiting.shift();
    stream.waitingAt = whole ? 0 : from + size;
    this.wake(stream);
    if (last) stream.onSent();
    else stream.onProgress();
  }

  private frameSize(stream: SendingStream, bytes: number): number {
    const size = Math.min(bytes, FRAME_BYTES_MAX, stream.sendWindow, this.window);
    return size <= 0 ? 0 : this.outbox.room(size);
  }

  private put(stream: SendingStream, bytes: Uint8Array, from: number, size: number, flags: number): void {
    const { outbox } = this;
    outbox.reserve(FRAME_HEAD_BYTES + size);
    stream.flagsAt = outbox.at + 4;
    stream.generation = outbox.generation;
    outbox.frameHead(size, FrameType.Data, flags, stream.id);
    const { buffer } = outbox;
    if (size <= BYTEWISE_MAX) for (let i = 0; i < size; i++) buffer[outbox.at + i] = bytes[from + i]!;
    else
      buffer.set(from === 0 && size === bytes.length ? bytes : bytes.subarray(from, from + size), outbox.at);
    outbox.at += size;
    stream.sendWindow -= size;
    this.window -= size;
  }
}

/** Up to this length a loop costs less than a call into the engine. */
const BYTEWISE_MAX = 48;
