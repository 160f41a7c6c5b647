import type { Socket } from "node:net";
import type { Guarded } from "../sockets/guarded.js";
import { Loans, type Memory } from "../sockets/memory.js";
import { latin1 } from "../codec/http1/syntax.js";
import { TextWriter } from "../sockets/node/textWriter.js";
import { HELD_UP_BYTES, SendPace } from "../sockets/sendPace.js";
import { batch } from "../sockets/writeBatch.js";
import { MessageFraming } from "../codec/http1/framing.js";

/** Body pieces up to the first size are copied after what is held, as text; those that could stay where they are up to the second. */
const JOINED_BYTES_MAX = 16_384;
const JOINED_KEPT_BYTES_MAX = 2_048;
/** Size of a piece for a client that has not shown yet that it reads; over TLS the encrypted copy is as long. */
const PIECE_BYTES = 65_536;
const SECURE_PIECE_BYTES = 32_768;
/** Responses of one turn that are held back to go out together. */
const BATCHED_TEXT_MAX = 65_536;

/** Is notified of writes. */
export interface WriteListener extends Guarded {
  /** Bytes were handed to the socket, which may still hold some. */
  onWrite(): void;
  /** Pending data was written, or could not be. */
  onWritten(): void;
}

/** Writes responses to a client's socket in as few system calls as their pieces allow, framed as their heads announce. */
export class ResponseWriter implements Guarded {
  readonly framing = new MessageFraming();
  /** Head and small pieces that wait for `flush`, one char a byte. */
  private held = "";
  /** Text that was flushed in this turn. */
  private batched = "";
  private readonly text: TextWriter;
  private readonly loans = new Loans();
  private pace: SendPace | undefined = undefined;
  private secure = true;

  constructor(
    private readonly socket: Socket,
    private readonly listener: WriteListener,
  ) {
    this.text = new TextWriter(socket, this.written);
  }

  /** Allows writes past Node's streams; for a socket without TLS. */
  direct(): void {
    this.text.direct();
    this.secure = false;
  }

  /** How much of a body should be sent in one piece (`Exchange.pieceBytesMax`). */
  get pieceBytesMax(): number {
    this.pace ??= this.secure ? new SendPace(SECURE_PIECE_BYTES, 2) : new SendPace(PIECE_BYTES, 1);
    return this.pace.pieceBytesMax;
  }

  /** True while bytes that were written have not all reached the kernel. */
  get pending(): boolean {
    return this.text.pending;
  }

  /** Holds back a final head, to be sent with the data after it. Its framing has begun. */
  head(text: string): void {
    this.pace?.begin();
    this.held = text;
  }

  /** Whether the client has not read so much that nothing should wait behind it that can be left out. */
  get heldUp(): boolean {
    return this.socket.writableLength > HELD_UP_BYTES;
  }

  /** Sends an interim head at the end of the turn. */
  interim(text: string): void {
    this.write(text);
  }

  /**
   * Sends a piece of the response's body.
   *
   * @param memory that the bytes are in
   * @returns false to send no more until all is written
   * @throws FramingError if the response must not be that long; then nothing of the piece is sent
   */
  body(bytes: Buffer, memory: Memory): boolean {
    const { framing } = this;
    framing.count(bytes.length);
    const [start, end] = [framing.pieceStart(bytes.length), framing.pieceEnd];
    const joins = memory.copies || bytes.length <= JOINED_KEPT_BYTES_MAX;
    if (joins && bytes.length + this.held.length <= JOINED_BYTES_MAX) {
      this.held += start + latin1(bytes, 0, bytes.length) + end;
      return !this.pending;
    }
    const before = this.held + start;
    this.held = "";
    this.writeAround(before, this.loans.keep(bytes, memory), end);
    if (this.pending) return false;
    this.loans.giveBack();
    return true;
  }

  /** The response is complete. @throws FramingError if its body is not */
  end(): void {
    this.held += this.framing.end();
    this.flush();
  }

  /** The exchange is over, however it ended. */
  rest(): void {
    this.pace?.rest();
  }

  /** The connection is closed. */
  close(): void {
    this.loans.giveBack();
    this.pace?.close();
  }

  /** Sends data that was held back, at the end of the turn. */
  flush(): void {
    if (this.held === "") return;
    const text = this.held;
    this.held = "";
    this.write(text);
  }

  writeBatched(): void {
    const text = this.batched;
    if (text === "") return;
    this.batched = "";
    this.text.write(text);
    this.listener.onWrite();
  }

  onFault(error: unknown): void {
    this.listener.onFault(error);
  }

  private write(text: string): void {
    if (this.batched === "") batch(this);
    this.batched += text;
    if (this.batched.length > BATCHED_TEXT_MAX) this.writeBatched();
  }

  /** Writes text, bytes and text in one system call where the platform allows it. */
  private writeAround(before: string, bytes: Buffer, after: string): void {
    const { socket } = this;
    this.writeBatched();
    if (before === "" && after === "") socket.write(bytes, this.written);
    else {
      socket.cork();
      if (before !== "") socket.write(before, "latin1");
      socket.write(bytes, after === "" ? this.written : undefined);
      if (after !== "") socket.write(after, "latin1", this.written);
      socket.uncork();
    }
    this.pace?.wrote(bytes.length, this.pending);
    this.listener.onWrite();
  }

  private readonly written = (): void => {
    try {
      // The connection is gone, although its close has not been reported yet: nothing more is written to it.
      if (this.socket.destroyed) return;
      if (!this.pending) {
        this.loans.giveBack();
        this.pace?.written();
      }
      this.listener.onWritten();
    } catch (error) {
      this.listener.onFault(error);
    }
  };
}
