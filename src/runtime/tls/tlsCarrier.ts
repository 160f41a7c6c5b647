import { connect, type NetConnectOpts, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { keepReadableAfterWriteErrors } from "../sockets/node/peer.js";
import { TlsOverhead } from "../sockets/node/tcpBelowTls.js";
import { rest, type Resting } from "../sockets/turn.js";

/**
 * The TCP connection below TLS of a client. Its bytes pass through here, and not directly between Node's handles, which show
 * too little of it:
 *
 *     tcp ──bytes, then its end or error──> carrier ──> TLS ──data──> reader
 *
 * Messages without data never reach a reader, and are counted here. Both ends are alike behind TLS: only their order shows
 * whether the server ended what it sent (`close_notify`; RFC 8446, 6.1), or it was cut off. And a reset comes behind the
 * bytes that arrived before it, however long a reader pauses.
 */
export class TlsCarrier extends Duplex implements Resting {
  readonly tcp: Socket;
  /** Why TCP ended, if not in order. */
  failure: Error | undefined = undefined;
  /** Whether the server ended TLS before TCP. */
  endedInOrder = false;
  private readonly overhead: TlsOverhead;
  private socket: TLSSocket | undefined = undefined;
  private secured = false;
  /** The end of TCP is the next thing that TLS is told. */
  private tcpEnded = false;
  /** What TLS is given is complete, though it may not have read all of it. */
  private isWhole = false;
  private resting = false;

  /** @param inTurns whether others have their turn after each read, whatever it costs */
  constructor(
    options: NetConnectOpts,
    private readonly inTurns: boolean,
  ) {
    super();
    const callback = (bytes: number): boolean => this.received(wire.subarray(0, bytes));
    this.tcp = connect({ ...options, onread: { buffer: wire, callback } });
    // A server that answers a few short requests needs no padding that would have to be forgiven.
    this.overhead = new TlsOverhead(this.tcp, inTurns ? 0 : undefined);
    keepReadableAfterWriteErrors(this.tcp);
    this.tcp.on("end", () => this.complete());
    this.tcp.on("error", (error: NodeJS.ErrnoException) => this.failed(error));
    // Otherwise TLS still has to read what came before.
    this.tcp.on("close", () => this.isWhole || this.socket?.destroy());
    // Before TLS learns of this end: what came before it has then passed TLS, however long that took.
    this.on("end", () => (this.tcpEnded = true));
  }

  /** @param socket TLS over this */
  begin(socket: TLSSocket): void {
    this.socket = socket;
    socket.once("secureConnect", () => (this.secured = true));
    // The order is judged where both ends enter TLS: behind it, and while its reader pauses, either may be late. Only a
    // flowing stream shows its end to a reader, so the end is seen where it is pushed.
    const push = socket.push.bind(socket);
    socket.push = (chunk: Buffer | null, encoding) => {
      if (chunk === null) this.endedInOrder = !this.tcpEnded;
      else this.took(chunk);
      return push(chunk, encoding);
    };
  }

  /** Data that TLS delivers without the stream. */
  took({ length }: Buffer): void {
    this.overhead.took(length);
  }

  private received(chunk: Buffer): boolean {
    // A flowing stream decrypts the bytes at once; a paused stream keeps them, so they are copied out of the shared
    // buffer.
    const flows = this.readableFlowing === true && this.readableLength === 0;
    if (!this.push(flows ? chunk : Buffer.from(chunk))) this.tcp.pause();
    else if (flows && this.overhead.isFlood()) this.socket?.destroy(new TlsFlood());
    else if (this.inTurns) this.rest();
    return true;
  }

  private rest(): void {
    this.resting = true;
    rest(this.tcp, this);
  }

  goOn(): void {
    this.resting = false;
    this.tcp.resume();
  }

  private failed(error: NodeJS.ErrnoException): void {
    if (!this.secured || error.syscall !== "read") return void this.socket?.emit("error", error);
    this.failure = error;
    this.complete();
  }

  private complete(): void {
    this.isWhole = true;
    this.push(null);
  }

  override _read(): void {
    if (!this.resting) this.tcp.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    // What was received before a reset is still to be read.
    if (this.tcp.destroyed) done();
    else this.tcp.write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    if (this.tcp.destroyed) return done();
    this.tcp.cork();
    chunks.forEach(({ chunk }, i) => this.tcp.write(chunk, i === chunks.length - 1 ? done : undefined));
    this.tcp.uncork();
  }

  override _final(done: () => void): void {
    if (this.tcp.destroyed) done();
    else this.tcp.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.tcp.destroy();
    done(error);
  }
}

/** A server could otherwise keep this process busy with a response that never goes on. */
class TlsFlood extends Error {
  readonly code = "ERR_TLS_FLOOD";
  constructor() {
    super("it sends too many TLS messages without data");
  }
}

/** Encrypted bytes of the current read, shared by all connections. */
const wire = Buffer.allocUnsafeSlow(65_536);
