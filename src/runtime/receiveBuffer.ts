import { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

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
  /** Where the next read begins in an own buffer that is filled piece by piece. */
  private at = 0;

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

  /** The buffer for the next read; handed to Node as `onread.buffer`. */
  readonly next = (): Buffer => {
    if (this.own === undefined) return shared;
    if (!this.pieces) return this.own;
    if (this.own.length - this.at < RECORD_BYTES_MAX) this.at = 0;
    return this.own.subarray(this.at);
  };

  /** Notes that a read brought that many bytes. */
  advance(bytes: number): void {
    if (!this.transient) this.at += bytes;
  }

  /**
   * Sizes the buffer for a transfer.
   * @param bytes still to come; -1 if that is not known, then it grows once a read has filled the shared buffer
   * @param filled how much the last read brought
   */
  fit(bytes: number, filled: number): void {
    const full = this.pieces ? RECORD_BYTES_MAX : SHARED_BYTES;
    if (this.own !== undefined || !(bytes === -1 ? filled >= full : bytes > SHARED_BYTES)) return;
    // Pieces that wait to be written must not be overwritten: with them the buffer is never a small one.
    const size = bytes === -1 || this.pieces ? OWN_BYTES_MAX : Math.min(OWN_BYTES_MAX, bytes);
    this.own = Buffer.allocUnsafeSlow(size);
    this.at = 0;
  }

  /** Gives an own buffer back: not to a pool, as a write may still read from it, but to the garbage collector. */
  release(): void {
    this.own = undefined;
  }
}

/** Larger than any head and than most answers; the kernel fills it in one read when there is more. */
const SHARED_BYTES = 65_536;
const OWN_BYTES_MAX = 1_048_576;
/** Plaintext of one TLS record (RFC 8446, 5.1). */
const RECORD_BYTES_MAX = 16_384;
const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);

/** What Node's `onread` option takes, for a receiver of whole reads. */
export function onRead(buffer: ReceiveBuffer, receive: (chunk: Buffer) => void) {
  return {
    buffer: buffer.next,
    callback: (bytes: number, into: Uint8Array): boolean => {
      buffer.transient = into.buffer === shared.buffer;
      receive((into as Buffer).subarray(0, bytes));
      buffer.advance(bytes);
      // Whoever wants to pause does so on the socket.
      return true;
    },
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
  fields[kBuffer] = buffer.next();
  fields[kCallback] = onRead(buffer, receive).callback;
  fields[kGenerate] = buffer.next;
  handle.useUserBuffer(buffer.next());
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
