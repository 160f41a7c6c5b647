import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { coarseNow } from "../exchange/clock.js";
import { adopt, readInto } from "../node/reads.js";
import { reportReset } from "../node/peer.js";
import { ReceiveBuffer } from "../exchange/receiveBuffer.js";

/** How often a client is looked after while nothing is read from it. */
const LOOK_MS = 5_000;
/** A client that vanished is asked for by the kernel (TCP keep-alive) after this time without a word. */
const SILENT_MS = 30_000;

/** The reading half of a client's connection: into which memory, and whether at all. */
export class ClientInput {
  readonly socket: Socket;
  /** Nothing is read for now. */
  paused = false;
  private readonly buffer: ReceiveBuffer;
  /** Whether reads go into `buffer`, and not into memory of their own. */
  private readonly reused: boolean;
  private lookAt = Infinity;

  /** @param receive called with every read */
  constructor(accepted: Socket, secure: boolean, receive: (chunk: Buffer) => void) {
    this.buffer = new ReceiveBuffer(secure);
    const moved = secure ? undefined : adopt(accepted, this.buffer, receive);
    this.socket = moved ?? accepted;
    this.reused = moved !== undefined || (secure && readInto(accepted as TLSSocket, this.buffer, receive));
    // What was decrypted together with the end of a handshake is in the stream already.
    if (moved === undefined) accepted.on("data", receive);
    // Whoever counts connections listens on the socket that was accepted, which has nothing left to close.
    else moved.on("close", () => accepted.destroy());
  }

  /** Whether bytes just read are good only during the read; those of a stash or a TLS socket are ours to keep. */
  get transient(): boolean {
    return this.buffer.transient && this.reused;
  }

  pause(): void {
    this.paused = true;
    this.lookAt = coarseNow() + LOOK_MS;
    this.socket.pause();
  }

  resume(): void {
    this.paused = false;
    this.socket.resume();
  }

  /** Sizes the buffer for a transfer; see {@link ReceiveBuffer.fit}. */
  fit(bytes: number, filled: number): void {
    this.buffer.fit(bytes, filled);
  }

  /** The transfer is over. */
  release(): void {
    this.buffer.release();
  }

  /**
   * While nothing is read, as when an upstream takes no more of an upload, the client may go away without anybody
   * noticing.
   */
  look(now: number, writePending: boolean): void {
    if (now < this.lookAt) return;
    this.lookAt = now + LOOK_MS;
    this.socket.setKeepAlive(true, SILENT_MS);
    if (!writePending) reportReset(this.socket);
  }
}
