import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import type { Server, TLSSocket } from "node:tls";
import { uses } from "./pieces.js";

/** Has a TLS server shake hands on a connection that it did not accept itself. */
export function shakeHands(server: Server, tcp: Socket): void {
  if (uses.tcpBelowTls) server.emit("connection", tcp);
  else (handshake ??= new AsyncLocalStorage()).run({ tcp }, () => server.emit("connection", tcp));
}

/**
 * The TCP socket below one of TLS; undefined where that cannot be found out. By its public names it is known only while
 * Node calls back on account of it: then it is remembered.
 */
export function tcpSocketOf(socket: TLSSocket): Socket | undefined {
  if (uses.tcpBelowTls) return (socket as unknown as { _parent?: Socket })._parent;
  const store = handshake?.getStore();
  if (store?.tcp !== undefined) {
    tcpSockets.set(socket, store.tcp);
    // Whatever begins from here on inherits the context, and is another matter.
    store.tcp = undefined;
  }
  return tcpSockets.get(socket);
}

/** On account of which connection Node calls back. Made only where it is needed: to have it costs every callback. */
let handshake: AsyncLocalStorage<{ tcp: Socket | undefined }> | undefined = undefined;
const tcpSockets = new WeakMap<TLSSocket, Socket>();
