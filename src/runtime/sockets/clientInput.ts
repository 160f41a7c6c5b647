import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { coarseNow } from "./deadlines.js";
import { readInto, type Receiver } from "./node/reads.js";
import type { Memory } from "./memory.js";
import { reportReset } from "./node/peer.js";
import { tcpSocketOf, TlsOverhead } from "./node/tcpBelowTls.js";
import { ReceiveBuffer } from "./receiveBuffer.js";
import { PacedReader, type Taker } from "./pacedReader.js";
import { turnIsFull } from "./turn.js";

/** How often a client is checked while nothing is read from it. */
const LOOK_MS = 5_000;
/** After this time of silence the kernel checks whether the client still exists (TCP keep-alive). */
const SILENT_MS = 30_000;

/** The reading half of a client's connection: whether to read, and into which memory. */
export class ClientInput implements Receiver {
  /** Nothing is read for now. */
  paused = false;
  private readonly buffer: ReceiveBuffer;
  private lookAt = Infinity;
  private readonly overhead: TlsOverhead | undefined;

  private readonly reader: PacedReader;

  constructor(
    private readonly socket: Socket,
    secure: boolean,
    taker: Taker,
  ) {
    this.overhead = secure ? new TlsOverhead(tcpSocketOf(socket as TLSSocket)) : undefined;
    this.buffer = new ReceiveBuffer(secure);
    this.reader = new PacedReader(taker, this.buffer);
    this.reader.attach(socket);
    const direct = readInto(socket, this.buffer, this);
    // Bytes decrypted together with the end of a handshake are already in the stream.
    if (secure || !direct) socket.on("data", (chunk: Buffer) => this.arrived(chunk));
  }

  arrived(chunk: Buffer): void {
    this.overhead?.took(chunk.length);
    this.reader.arrived(chunk);
  }

  /** Whether bytes have arrived that wait. */
  get hasUnread(): boolean {
    return this.reader.hasUnread;
  }

  /** Whether the next request is for another turn. */
  hasEnough(): boolean {
    return this.reader.hasEnough();
  }

  /** Bytes that were read before there was this connection; taken when it reads on. */
  begin(read: Buffer): void {
    this.reader.begin(read);
  }

  /** Forgets bytes that wait. */
  drop(): void {
    this.reader.drop();
  }

  /** The same as {@link PacedReader.memory}. */
  get memory(): Memory {
    return this.reader.memory;
  }

  /** Whether its client sends much that is not data. */
  isFlood(): boolean {
    return this.overhead?.isFlood() === true;
  }

  pause(): void {
    this.paused = true;
    this.lookAt = coarseNow() + LOOK_MS;
    this.socket.pause();
  }

  resume(): void {
    this.paused = false;
    this.reader.readOn();
  }

  /** Sizes the buffer for a transfer; see {@link ReceiveBuffer.fit}. Reads that make much work do not get larger. */
  fit(bytes: number, filled: number): void {
    if (!turnIsFull()) this.buffer.fit(bytes, filled);
  }

  /** The transfer is over. */
  release(): void {
    this.buffer.release();
  }

  /**
   * While nothing is read, for instance because an upstream takes no more of an upload, the client could go away
   * unnoticed.
   */
  look(now: number, writePending: boolean): void {
    if (now < this.lookAt) return;
    this.lookAt = now + LOOK_MS;
    this.socket.setKeepAlive(true, SILENT_MS);
    if (!writePending) reportReset(this.socket);
  }
}
