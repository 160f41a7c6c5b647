import { Socket } from "node:net";

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

  /** Whether what was just read has to be copied by whoever keeps it. */
  get transient(): boolean {
    return this.own === undefined;
  }

  /** The buffer for the next read; handed to Node as `onread.buffer`. */
  readonly next = (): Buffer => this.own ?? shared;

  /**
   * Sizes the buffer for a transfer.
   * @param bytes still to come; -1 if that is not known, then it grows once a read has filled the shared buffer
   * @param filled how much the last read brought
   */
  fit(bytes: number, filled: number): void {
    const bulk = bytes === -1 ? filled >= SHARED_BYTES : bytes > SHARED_BYTES;
    if (bulk)
      this.own ??= Buffer.allocUnsafeSlow(bytes === -1 ? OWN_BYTES_MAX : Math.min(OWN_BYTES_MAX, bytes));
  }

  /** Gives an own buffer back: not to a pool, as a write may still read from it, but to the garbage collector. */
  release(): void {
    this.own = undefined;
  }
}

/** Larger than any head and than most answers; the kernel fills it in one read when there is more. */
const SHARED_BYTES = 65_536;
const OWN_BYTES_MAX = 1_048_576;
const shared = Buffer.allocUnsafeSlow(SHARED_BYTES);

/** What Node's `onread` option takes, for a receiver of whole reads. */
export function onRead(buffer: ReceiveBuffer, receive: (chunk: Buffer) => void) {
  return {
    buffer: buffer.next,
    callback: (bytes: number, into: Uint8Array): boolean => {
      receive((into as Buffer).subarray(0, bytes));
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

interface AcceptedSocket {
  _handle: unknown;
  _server: unknown;
}
