import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { uses } from "./pieces.js";
import { handleOf, streams } from "./streams.js";
import { tcpSocketOf } from "./tcpBelowTls.js";
import { writeError } from "./writeErrors.js";

/** What a connection shows about its peer. */

/**
 * Emits `error` on the socket if its peer is known to have reset the connection. A connection that is neither read nor
 * written shows nothing by itself; a write of zero bytes brings the kernel's error, and it bypasses TLS, which would
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
