import type { Socket } from "node:net";
import type { Guarded } from "./guarded.js";
import type { ReceiveBuffer } from "./receiveBuffer.js";
import { beginSlice, rest, sliceIsFull, turnIsFull } from "./turn.js";

/** What takes the bytes of a connection. */
export interface Taker extends Guarded {
  /** Whether nothing is to be read for now. */
  readonly inputPaused: boolean;
  /**
   * Takes bytes until {@link PacedReader.hasEnough}.
   *
   * @returns index of the first byte that it did not take
   */
  take(chunk: Buffer): number;
}

/**
 * Reads a connection step by step (a head, a frame), and keeps what its taker, or this turn of the event loop, has no room
 * for. What was kept is taken before anything else is read.
 */
export class PacedReader {
  private unread: Buffer | undefined = undefined;
  /** Waits for the next turn. */
  private resting = false;
  private slice = 0;
  private socket!: Socket;

  /** @param buffer that the socket reads into, if it is one that is used again */
  constructor(
    private readonly taker: Taker,
    private readonly buffer?: ReceiveBuffer,
  ) {
    if (buffer !== undefined) buffer.onFree = () => this.readOn();
  }

  /** Before the first read. @param socket whose reads are {@link arrived} */
  attach(socket: Socket): void {
    this.socket = socket;
  }

  /** Whether bytes have arrived that were not taken. */
  get hasUnread(): boolean {
    return this.unread !== undefined;
  }

  /** Bytes were read; those that are not taken are copied. TLS delivers the rest of a read although it is to rest. */
  readonly arrived = (chunk: Buffer): void => {
    if (this.unread !== undefined) this.unread = Buffer.concat([this.unread, chunk]);
    else this.take(chunk, false);
  };

  /** Takes these bytes before others, when it reads on. */
  begin(read: Buffer): void {
    this.unread = read;
  }

  /** Reads on, unless its input is paused or its connection is closed; if it rests, in the next turn. */
  readOn(): void {
    if (this.resting || this.taker.inputPaused) return;
    // Nobody would give back what a request holds that begins when its connection is closed.
    if (this.socket.destroyed) return this.drop();
    const { unread } = this;
    this.unread = undefined;
    if (unread !== undefined) this.take(unread, true);
    if (!this.resting && !this.taker.inputPaused && this.buffer?.isKept !== true) this.socket.resume();
  }

  /** Forgets what was not taken. */
  drop(): void {
    this.unread = undefined;
  }

  /** Whether the taker should leave the rest for another turn; asked between two steps. */
  hasEnough(): boolean {
    return sliceIsFull(this.slice);
  }

  /** @param lasting whether the chunk is in memory of its own */
  private take(chunk: Buffer, lasting: boolean): void {
    this.slice = beginSlice();
    const at = this.taken(chunk);
    if (at < chunk.length) {
      const left = chunk.subarray(at);
      this.unread = lasting ? left : Buffer.from(left);
    }
    if (this.taker.inputPaused) this.socket.pause();
    else if (this.unread !== undefined || turnIsFull()) this.rest();
  }

  /** What a fault leaves is of no use. */
  private taken(chunk: Buffer): number {
    try {
      return this.taker.take(chunk);
    } catch (error) {
      this.taker.onFault(error);
      return chunk.length;
    }
  }

  private rest(): void {
    if (this.resting) return;
    this.resting = true;
    rest(this.socket, this.goOn);
  }

  private readonly goOn = (): void => {
    this.resting = false;
    this.readOn();
  };
}
