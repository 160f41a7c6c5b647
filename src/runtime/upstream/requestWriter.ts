import type { Socket } from "node:net";
import { guarded, type Guarded } from "../sockets/guarded.js";
import { MessageFraming } from "../codec/http1/framing.js";
import { latin1 } from "../codec/http1/syntax.js";
import { TextWriter } from "../sockets/node/textWriter.js";
import { Loans, type Memory } from "../sockets/memory.js";
import { batch } from "../sockets/writeBatch.js";

/** Body pieces up to this size wait for the end of the turn, to be written with others. */
const SMALL_PIECE_BYTES_MAX = 16_384;
/** Pieces up to this size are copied as text, whether they have to be copied or not. */
const JOINED_BYTES_MAX = 2_048;
/** Gathered pieces are written before the end of the turn when they reach this size. */
const GATHERED_BYTES_MAX = 491_520;
/** The same for their number: each is up to three buffers of a system call, which takes 1,024 at once (IOV_MAX). */
const GATHERED_PIECES_MAX = 340;

/** Is notified of writes. */
export interface RequestWriteListener extends Guarded {
  /** Bytes were handed to the socket, which may still hold some. */
  onWrite(): void;
  /** Everything reached the kernel. */
  onWritten(): void;
  /** Not all gathered data could be written: send no more until `onWritten`. */
  onStall(): void;
}

/**
 * Writes requests to an upstream's socket in as few system calls as their pieces allow, and no byte beyond what their
 * heads announce.
 */
export class RequestWriter implements Guarded {
  readonly framing = new MessageFraming();
  /** After a failed write: nothing more is sent, but a response may still be read. */
  failed = false;
  /** The head, waiting for the first bytes of the body or for the end of the turn. */
  private head = "";
  /** Text that waits for the end of this turn. */
  private joined = "";
  /** The socket is corked until the end of this turn. */
  private gathering = false;
  private pieces = 0;
  private readonly text: TextWriter;
  private readonly loans = new Loans();

  constructor(
    private readonly socket: Socket,
    private readonly listener: RequestWriteListener,
  ) {
    this.text = new TextWriter(socket, (error) => this.written(error));
  }

  /** True while bytes that were written have not all reached the kernel. */
  get pending(): boolean {
    return this.text.pending;
  }

  /** True while nothing of the request that was begun has been sent. */
  get unsent(): boolean {
    return this.head !== "";
  }

  /** The connection is established. */
  connected(): void {
    this.text.direct();
  }

  begin(head: string): void {
    this.head = head;
  }

  /** Sends the head at the end of this turn, unless it is sent with the body before that. */
  flush(): void {
    if (this.head !== "") batch(this);
  }

  writeBatched(): void {
    if (this.socket.destroyed) return;
    if (this.head !== "") this.write("");
    else if (!this.writeGathered()) this.listener.onStall();
  }

  /** Whether the last request was sent to its end, so that another may follow. */
  get complete(): boolean {
    return this.framing.atBoundary && !this.pending && !this.failed;
  }

  /**
   * Sends a piece of the request's body, or of a tunnel.
   *
   * @param memory that the bytes are in
   * @returns false to send no more until `onWritten`
   * @throws FramingError if the request must not be that long; then nothing of the piece is sent
   */
  body(bytes: Buffer, memory: Memory): boolean {
    const { framing } = this;
    framing.count(bytes.length);
    return this.writeAround(framing.pieceStart(bytes.length), bytes, framing.pieceEnd, memory);
  }

  /**
   * The request is complete.
   *
   * @throws FramingError if its body is not
   */
  end(): void {
    const text = this.framing.end();
    if (text !== "") this.write(text);
    this.writeGathered();
    this.flush();
  }

  private write(text: string): void {
    if (this.failed) return;
    this.writeGathered();
    this.text.write(this.takeHead() + text);
    this.listener.onWrite();
  }

  /** Sends text, bytes and text in one system call where the platform allows. */
  private writeAround(text: string, bytes: Buffer, after: string, memory: Memory): boolean {
    if (this.failed) return true;
    const before = this.takeHead() + text;
    if (bytes.length <= SMALL_PIECE_BYTES_MAX) {
      // Few bytes are sent fastest as text, which is also a copy.
      if (memory.copies || bytes.length <= JOINED_BYTES_MAX)
        return this.join(before + latin1(bytes, 0, bytes.length) + after);
      return this.gather(before, bytes, after, memory);
    }
    this.writeGathered();
    const { socket } = this;
    const kept = this.loans.keep(bytes, memory);
    if (before === "" && after === "") socket.write(kept, this.written);
    else {
      socket.cork();
      if (before !== "") socket.write(before, "latin1");
      socket.write(kept, after === "" ? this.written : undefined);
      if (after !== "") socket.write(after, "latin1", this.written);
      socket.uncork();
    }
    return this.notifyListener();
  }

  onFault(error: unknown): void {
    this.listener.onFault(error);
  }

  /** @returns false if not all gathered data could be written at once */
  writeGathered(): boolean {
    if (this.failed) return true;
    if (this.joined !== "") {
      const text = this.joined;
      this.joined = "";
      this.text.write(text);
      return this.notifyListener();
    }
    if (!this.gathering) return true;
    this.gathering = false;
    this.socket.uncork();
    const taken = this.notifyListener();
    if (!taken) this.socket.write("", "latin1", this.written);
    return taken;
  }

  /** Postpones text to the end of the turn, to be sent together with other data of the turn. */
  private join(text: string): boolean {
    if (this.gathering) {
      this.socket.write(text, "latin1");
      return this.gathered();
    }
    if (this.joined === "") batch(this);
    this.joined += text;
    return this.joined.length < GATHERED_BYTES_MAX || this.writeGathered();
  }

  /**
   * Postpones a small piece to the end of the turn, to go out with others in one system call: a read often brings
   * several TLS records or HTTP/2 frames.
   */
  private gather(before: string, bytes: Buffer, after: string, memory: Memory): boolean {
    const { socket } = this;
    if (this.joined !== "") this.writeGathered();
    if (!this.gathering) {
      this.gathering = true;
      this.pieces = 0;
      socket.cork();
      batch(this);
    }
    if (before !== "") socket.write(before, "latin1");
    socket.write(this.loans.keep(bytes, memory));
    if (after !== "") socket.write(after, "latin1");
    return this.gathered();
  }

  private gathered(): boolean {
    const more = ++this.pieces < GATHERED_PIECES_MAX && this.socket.writableLength < GATHERED_BYTES_MAX;
    return more || this.writeGathered();
  }

  /** @returns whether everything reached the kernel */
  private notifyListener(): boolean {
    this.listener.onWrite();
    if (this.pending) return false;
    this.loans.giveBack();
    return true;
  }

  /** The socket is closed: nothing of its writes is needed. */
  close(): void {
    this.loans.giveBack();
  }

  private takeHead(): string {
    const { head } = this;
    this.head = "";
    return head;
  }

  private readonly written = (error?: Error | null): void => {
    if (this.pending) return;
    this.loans.giveBack();
    if (error == null && !this.failed) guarded(this.listener, this.listener.onWritten);
  };
}
