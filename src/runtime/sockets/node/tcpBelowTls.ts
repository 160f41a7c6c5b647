import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import type { Server, TLSSocket } from "node:tls";
import { coarseNow, SWEEP_MS } from "../deadlines.js";
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

/**
 * What a peer sends that is neither data nor the frame around it. OpenSSL takes any number of messages between data
 * (KeyUpdate and tickets, RFC 8446, 4.6; attempts to renegotiate, RFC 5246, 7.4.1.1), and Node says nothing of them. Each
 * costs more time than its bytes show, and most get a response: the responses of a client that does not read fill the
 * memory. No honest peer needs more than a few.
 */
export class TlsOverhead {
  /** Bytes of the connection that were looked at. */
  private seen: number;
  /** Bytes that data explains, since then. */
  private explained = 0;
  private unexplained = 0;
  /** When some were forgiven last. */
  private forgivenAt = -Infinity;

  /**
   * @param tcp of a connection whose handshake is over; nothing is known of one without it
   * @param forgiven bytes that are forgiven a few times a second; with 0, a connection has its limit once, and a machine
   * that is slow to read is no excuse
   */
  constructor(
    private readonly tcp: Socket | undefined,
    private readonly forgiven = FREE_BYTES,
  ) {
    this.seen = this.tcp?.bytesRead ?? 0;
  }

  /** A record's data was taken. */
  took(bytes: number): void {
    this.explained += bytes + RECORD_BYTES;
  }

  /** Whether there is too much of it, as long as no received bytes wait to be decrypted. */
  isFlood(): boolean {
    const now = this.tcp?.bytesRead ?? 0;
    const free = coarseNow() - this.forgivenAt >= SWEEP_MS / 2 ? this.forgiven : 0;
    if (free > 0) this.forgivenAt = coarseNow();
    this.unexplained = Math.max(0, this.unexplained + now - this.seen - this.explained - free);
    this.seen = now;
    this.explained = 0;
    return this.unexplained > FLOOD_BYTES;
  }
}

/** Why a connection of a client is ended, for the error log. */
export const TLS_FLOOD = "client sends too many TLS messages without data";

/** Head, vector, code and padding of a record, by the cipher that needs most. */
const RECORD_BYTES = 96;
/** Forgiven a few times a second: more than a client can need that has its records padded, as RFC 8446, 5.4, allows. */
const FREE_BYTES = 16_384;
/** Some thousands of the smallest messages. */
const FLOOD_BYTES = 131_072;
