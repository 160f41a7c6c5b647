import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { uses } from "./pieces.js";
import { handleOf, streams } from "./streamHandles.js";
import { tcpSocketOf } from "./tcpBelowTls.js";
import { getSystemErrorName } from "node:util";

/** Information about the peer of a connection. */

/**
 * Emits `error` on the socket if its peer is known to have reset the connection. A connection that is neither read nor
 * written shows nothing; a write of zero bytes brings the kernel's error, and it bypasses TLS, which would
 * hide it. Nothing may be waiting to be written.
 */
export function reportReset(socket: Socket): void {
  const tcp = tcpSocketOf(socket as TLSSocket) ?? socket;
  const handle = uses.directWrites ? handleOf(tcp) : undefined;
  if (handle === undefined) {
    tcp.write("", "latin1", (error) => void (error != null && socket.destroy()));
    return;
  }
  const status = handle.writeLatin1String(new streams!.WriteWrap(), "");
  if (status !== 0) socket.emit("error", writeError(status));
}

/**
 * Bytes that TLS and the kernel have not taken yet; Node itself watches writes by this number. 0 if Node does not show
 * it: then writes must be so small that the end of each shows enough progress.
 */
export function unsentBytes(socket: TLSSocket): number {
  if (!uses.unsentBytes) return 0;
  const { _handle } = socket as unknown as HasQueue;
  const below = tcpSocketOf(socket) as unknown as HasQueue | undefined;
  return (_handle?.writeQueueSize ?? 0) + (below?._handle?.writeQueueSize ?? 0);
}

interface HasQueue {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

type WriteDone = (error?: Error | null) => void;

/**
 * Node destroys a socket when a write fails, and with it a response that is already in the receive buffer: the 413 of an
 * upstream that closed early would become 502 (nodejs/node#54366). Here the stream does not see the failure: the error
 * is emitted, the write counts as done, and reading continues.
 */
export function keepReadableAfterWriteErrors(socket: Socket): void {
  const { _write, _writev } = socket;
  const reporting =
    (done: WriteDone): WriteDone =>
    (error) => {
      if (error == null || (error as NodeJS.ErrnoException).syscall !== "write") return done(error);
      socket.emit("error", error);
      done();
    };
  // The method that every writable stream implements (stream.Writable, "Implementing a writable stream").
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, reporting(done));
  socket._writev = (chunks, done) => _writev!.call(socket, chunks, reporting(done));
}

/** Makes the error that Node reports for a failed write, for a write that bypassed Node's streams. */
export function writeError(errno: number): Error {
  const code = getSystemErrorName(errno);
  return Object.assign(new Error(`write ${code}`), { errno, code, syscall: "write" });
}
