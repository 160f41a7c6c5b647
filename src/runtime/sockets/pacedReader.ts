import type { Socket } from "node:net";
import type { Guarded } from "./guarded.js";
import { LASTING, type Memory, spent, TRANSIENT } from "./memory.js";
import type { ReceiveBuffer, WaitingReader } from "./receiveBuffer.js";
import type { Receiver } from "./node/reads.js";
import { beginSlice, rest, type Resting, sliceIsFull, turnIsFull } from "./turn.js";

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
export class PacedReader implements Receiver, Resting, WaitingReader {
  private unread: Buffer | undefined = undefined;
  private room: Room | undefined = undefined;
  private takesUnread = false;
  /** Waits for the next turn. */
  private resting = false;
  private slice = 0;
  private socket!: Socket;

  /** @param buffer that the socket reads into, if it is one that is used again */
  constructor(
    private readonly taker: Taker,
    private readonly buffer?: ReceiveBuffer,
  ) {
    if (buffer !== undefined) buffer.reader = this;
  }

  /** Before the first read. @param socket whose reads are {@link arrived} */
  attach(socket: Socket): void {
    this.socket = socket;
  }

  /** Whether bytes have arrived that were not taken. */
  get hasUnread(): boolean {
    return this.unread !== undefined;
  }

  /** The memory of the bytes that the taker takes now. */
  get memory(): Memory {
    if (this.buffer === undefined) return LASTING;
    return this.takesUnread ? TRANSIENT : this.buffer.memory;
  }

  /** Bytes were read. TLS delivers the rest of a read although it is to rest. */
  arrived(chunk: Buffer): void {
    if (this.unread !== undefined) this.unread = (this.room ??= new Room()).join(this.unread, chunk);
    else this.take(chunk);
  }

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
    if (unread !== undefined) this.takeUnread(unread);
    if (!this.resting && !this.taker.inputPaused && this.buffer?.isKept !== true) this.socket.resume();
  }

  /** Forgets what was not taken. */
  drop(): void {
    this.unread = undefined;
    this.room?.forget();
  }

  /** Whether the taker should leave the rest for another turn; asked between two steps. */
  hasEnough(): boolean {
    return sliceIsFull(this.slice);
  }

  private takeUnread(unread: Buffer): void {
    this.takesUnread = true;
    this.take(unread);
    this.takesUnread = false;
    if (this.unread === undefined) this.room?.free();
  }

  private take(chunk: Buffer): void {
    this.slice = beginSlice();
    const at = this.taken(chunk);
    if (at < chunk.length) {
      const left = chunk.subarray(at);
      this.unread =
        this.takesUnread || this.buffer === undefined ? left : (this.room ??= new Room()).copy(left);
      // A read that is too much work for one turn is not made larger, as those of a transfer are.
      this.buffer?.release();
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
    rest(this.socket, this);
  }

  goOn(): void {
    this.resting = false;
    this.readOn();
  }
}

/** Keeps bytes that were not taken: large ones in memory that is used again, or a flood would leave as much garbage. */
class Room {
  private memory: Buffer | undefined = undefined;

  copy(bytes: Buffer): Buffer {
    if (bytes.length < ROOM_BYTES / 8 || bytes.length > ROOM_BYTES) return Buffer.from(bytes);
    const memory = (this.memory = rooms.pop() ?? Buffer.allocUnsafeSlow(ROOM_BYTES));
    bytes.copy(memory);
    return memory.subarray(0, bytes.length);
  }

  /** @param first that {@link copy} or this method returned, without bytes of its beginning that were taken */
  join(first: Buffer, second: Buffer): Buffer {
    const { memory } = this;
    const begin = first.byteOffset;
    const end = begin + first.length;
    if (memory !== undefined && end + second.length <= ROOM_BYTES) {
      second.copy(memory, end);
      return memory.subarray(begin, end + second.length);
    }
    const both = Buffer.concat([first, second]);
    this.free();
    return both;
  }

  /** Nobody needs them any more. */
  free(): void {
    const { memory } = this;
    if (memory === undefined) return;
    this.memory = undefined;
    spent(memory);
    if (rooms.length < ROOMS_MAX) rooms.push(memory);
  }

  /** The bytes may still be read for a moment. */
  forget(): void {
    this.memory = undefined;
  }
}

/** A read brings at most this much. */
const ROOM_BYTES = 65_536;
const ROOMS_MAX = 32;
const rooms: Buffer[] = [];
