import { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { handleOf, streams } from "./streamBinding.js";

/**
 * Where sockets read into. Node's default allocates 64 KiB for every read and leaves it to the garbage collector, which
 * costs more than the read. Instead all idle and lightly used sockets of a worker read into one shared buffer, whose
 * bytes are good only during the read callback, and a socket with a bulk transfer gets a large one of its own.
 *
 *     read ──> shared (64 KiB): bytes must be copied to outlive the callback ("transient")
 *          └─> own (up to 1 MiB): bytes stay until reading goes on, so they can be written as they are
 */
export class ReceiveBuffer {
  private own: Buffer | undefined = undefined;
  /** What the socket reads into now. */
  private into: Buffer = shared;
  /** Where the next read begins in an own buffer that is filled piece by piece; of another, how much it was filled. */
  private at = 0;
  /** Size that the transfer deserves. */
  private wanted = 0;

  /**
   * @param pieces true where one read of the socket is delivered in several pieces (TLS records) that are written
   *   together later: then each lands behind the one before, and the buffer is begun anew only when it is full
   */
  constructor(private readonly pieces = false) {}

  /**
   * Whether what was just read has to be copied by whoever keeps it. Told by the buffer it was read into: sizing takes
   * effect with the read after the next callback, not at once.
   */
  transient = true;

  /** The buffer for the first read. */
  get first(): Buffer {
    return this.into;
  }

  /** The buffer for the next read; undefined for the same as before. */
  next(): Buffer | undefined {
    const next = this.own === undefined ? shared : this.pieces ? this.behind(this.own) : this.own;
    if (next === this.into) return undefined;
    return (this.into = next);
  }

  /** What a read of that many bytes brought. */
  read(bytes: number): Buffer {
    this.transient = this.into === shared;
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
   */
  fit(bytes: number, filled: number): void {
    const full = this.pieces ? RECORD_BYTES_MAX : SHARED_BYTES;
    if (this.own !== undefined) return this.grow();
    if (!(bytes === -1 ? filled >= full : bytes > SHARED_BYTES)) return;
    // Pieces that wait to be written must not be overwritten: with them the buffer is never a small one.
    this.wanted = bytes === -1 || this.pieces ? OWN_BYTES_MAX : Math.min(OWN_BYTES_MAX, bytes);
    this.own = Buffer.allocUnsafeSlow(this.pieces ? this.wanted : Math.min(this.wanted, OWN_BYTES_FIRST));
    this.at = 0;
  }

  /** The whole size is for those who take what they are given: thousands of slow readers must not hold it each. */
  private grow(): void {
    if (this.own!.length < this.wanted && this.at >= GROWN_AFTER_BYTES) {
      this.own = Buffer.allocUnsafeSlow(this.wanted);
    }
  }

  /** Gives an own buffer back: not to a pool, as a write may still read from it, but to the garbage collector. */
  release(): void {
    this.own = undefined;
  }
}

/** Larger than any head and than most answers; the kernel fills it in one read when there is more. */
const SHARED_BYTES = 65_536;
/** Of pieces that wait to be written there may be half as much (`upstream/requestWriter.ts`). */
const OWN_BYTES_MAX = 1_048_576;
const OWN_BYTES_FIRST = 131_072;
const GROWN_AFTER_BYTES = 524_288;
/** Plaintext of one TLS record (RFC 8446, 5.1). */
const RECORD_BYTES_MAX = 16_384;
const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);

/** Views of the shared buffer by their length: few lengths make up most reads, and a view costs more than its bytes. */
const views: (Buffer | undefined)[] = [];
const VIEWS_MAX = 4096;

/** What Node's `onread` option takes, for a receiver of whole reads. */
export function onRead(buffer: ReceiveBuffer, receive: (chunk: Buffer) => void) {
  let read = false;
  return {
    buffer: (): Buffer => {
      // Without a read before it a handle asks for its first buffer: one for each address that is tried.
      if (!read) return buffer.first;
      read = false;
      // Anything that is no buffer means the same again.
      return buffer.next() as Buffer;
    },
    callback: (bytes: number): boolean => {
      read = true;
      receive(buffer.read(bytes));
      // Whoever wants to pause does so on the socket.
      return true;
    },
  };
}

/**
 * Has a socket that reads into `buffer` by `onRead` hand over what it reads without Node's stream machinery in between.
 * Does nothing where that cannot be done. Ends and errors go the usual way.
 */
export function readDirectly(socket: Socket, buffer: ReceiveBuffer, receive: (chunk: Buffer) => void): void {
  const handle = streams && handleOf(socket);
  if (handle === undefined) return;
  const { streamBaseState, kReadBytesOrError } = streams!;
  const { onread } = handle;
  handle.onread = function (bytes) {
    const count = streamBaseState[kReadBytesOrError]!;
    if (count <= 0 || socket.destroyed) return onread.call(this, bytes);
    receive(buffer.read(count));
    return buffer.next();
  };
}

/**
 * An accepted connection as a socket that reads into `buffer`. Node offers `onread` only to sockets that are made with
 * it, so the accepted socket's handle moves into a new one.
 */
export function adopt(accepted: Socket, buffer: ReceiveBuffer, receive: (chunk: Buffer) => void): Socket {
  const from = accepted as unknown as AcceptedSocket;
  const handle = from._handle;
  from._handle = null;
  const socket = new Socket({ handle, allowHalfOpen: true, onread: onRead(buffer, receive) } as object);
  // The server counts its connections by this field, and closes when none is left.
  (socket as unknown as AcceptedSocket)._server = from._server;
  from._server = null;
  readDirectly(socket, buffer, receive);
  return socket;
}

/**
 * Has a TLS socket read into `buffer` too. TLS sockets of a server take no `onread`, but read by the same code; its
 * settings are kept under symbols, which a probe shows. Where a Node version has others, reads are allocated as usual.
 */
export function readInto(
  socket: TLSSocket,
  buffer: ReceiveBuffer,
  receive: (chunk: Buffer) => void,
): boolean {
  const { _handle: handle } = socket as unknown as { _handle: { useUserBuffer?(into: Buffer): void } | null };
  const [kBuffer, kCallback, kGenerate] = ONREAD_SYMBOLS;
  if (handle?.useUserBuffer === undefined || !kBuffer || !kCallback || !kGenerate) return false;
  const fields = socket as unknown as Record<symbol, unknown>;
  if (!(kBuffer in fields) || !(kCallback in fields) || !(kGenerate in fields)) return false;
  const { callback, buffer: generate } = onRead(buffer, receive);
  fields[kBuffer] = generate();
  fields[kCallback] = callback;
  fields[kGenerate] = generate;
  handle.useUserBuffer(buffer.first);
  readDirectly(socket, buffer, receive);
  return true;
}

const ONREAD_SYMBOLS = ((): (symbol | undefined)[] => {
  const probe = new Socket({ onread: { buffer: Buffer.alloc(1), callback: () => true } } as object);
  const symbols = Object.getOwnPropertySymbols(probe);
  return ["kBuffer", "kBufferCb", "kBufferGen"].map((name) => symbols.find((s) => s.description === name));
})();

interface AcceptedSocket {
  _handle: unknown;
  _server: unknown;
}
