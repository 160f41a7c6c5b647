import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import type { Server, TLSSocket } from "node:tls";
import { uses } from "./pieces.js";

/** Makes a TLS server do the handshake on a connection that it did not accept itself. */
export function shakeHands(server: Server, tcp: Socket): void {
  if (uses.tcpBelowTls) server.emit("connection", tcp);
  else (handshake ??= new AsyncLocalStorage()).run({ tcp }, () => server.emit("connection", tcp));
}

/**
 * The TCP socket below a TLS socket; undefined if that cannot be determined. With public names it is known only during
 * the callbacks for its connection, so it is remembered then.
 */
export function tcpSocketOf(socket: TLSSocket): Socket | undefined {
  if (uses.tcpBelowTls) return (socket as unknown as { _parent?: Socket })._parent;
  const store = handshake?.getStore();
  if (store?.tcp !== undefined) {
    tcpSockets.set(socket, store.tcp);
    // Everything started from here inherits the context, but does not belong to the handshake.
    store.tcp = undefined;
  }
  return tcpSockets.get(socket);
}

/**
 * The connection that Node's current callback is for. Made only if it is needed, because it slows down every callback.
 */
let handshake: AsyncLocalStorage<{ tcp: Socket | undefined }> | undefined = undefined;
const tcpSockets = new WeakMap<TLSSocket, Socket>();
