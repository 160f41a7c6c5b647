import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { tcpSocketOf } from "./tcpBelowTls.js";

/**
 * What a client sends that is neither data nor the frame around it. OpenSSL takes any number of messages between data
 * (KeyUpdate, RFC 8446, 4.6.3; attempts to renegotiate, RFC 5246, 7.4.1.1), and Node says nothing of them. Each costs
 * more time than its bytes show, and most are answered: the answers of a client that does not read fill the memory. No
 * honest client needs more than a few.
 */
export class TlsOverhead {
  private readonly tcp: Socket | undefined;
  /** Bytes of the connection that were looked at. */
  private seen: number;
  /** Bytes that data explains, since then. */
  private explained = 0;
  private unexplained = 0;

  /** @param socket whose handshake is over; nothing is known of one whose TCP socket is not */
  constructor(socket: TLSSocket) {
    this.tcp = tcpSocketOf(socket);
    this.seen = this.tcp?.bytesRead ?? 0;
  }

  /** One record's data. */
  took(bytes: number): void {
    this.explained += bytes + RECORD_BYTES;
  }

  /** Whether there is too much of it; asked a few times a second. */
  isFlood(): boolean {
    const now = this.tcp?.bytesRead ?? 0;
    this.unexplained = Math.max(0, this.unexplained + now - this.seen - this.explained - FREE_BYTES);
    this.seen = now;
    this.explained = 0;
    return this.unexplained > FLOOD_BYTES;
  }
}

/** Why a connection is ended, for the error log. */
export const TLS_FLOOD = "client sends too many TLS messages without data";

/** Head, vector, code and padding of a record, by the cipher that needs most. */
const RECORD_BYTES = 96;
/** Forgiven with each look: more than a client can need that has its records padded, as RFC 8446, 5.4, allows. */
const FREE_BYTES = 16_384;
/** Some thousands of the smallest messages. */
const FLOOD_BYTES = 131_072;
