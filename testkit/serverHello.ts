import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { Duplex } from "node:stream";
import { connect, type ConnectionOptions, createSecureContext, type TLSSocket } from "node:tls";

/** Key exchange as it is on the wire: clients that keep what the server said first. */

/** Whether the OpenSSL of this process knows a group. */
export function knowsGroup(name: string): boolean {
  try {
    createSecureContext({ ca: [], ecdhCurve: name });
    return true;
  } catch {
    // Node 20 keeps the error for the next key that is read.
    createSecureContext({ ca: [] });
    return false;
  }
}

export interface SeenHandshake {
  readonly socket: TLSSocket;
  /** Number of the group in the server's `key_share` (RFC 8446, 4.2.8); undefined if there is none, as before TLS 1.3. */
  readonly group: number | undefined;
  /** Whether the server asked for another key first (RFC 8446, 4.1.4), which costs a round trip. */
  readonly asked: boolean;
}

/** A handshake with a server on this machine. */
export async function seenHandshake(port: number, options: ConnectionOptions): Promise<SeenHandshake> {
  const tcp = connectTcp(port, "127.0.0.1");
  const received: Buffer[] = [];
  const between = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => void tcp.write(chunk, done),
    destroy: (_error, done) => done(tcp.destroy() && null),
  });
  tcp.on("data", (chunk: Buffer) => {
    received.push(chunk);
    between.push(chunk);
  });
  tcp.on("error", () => undefined).on("close", () => between.push(null));
  const socket = connect({ socket: between, rejectUnauthorized: false, ...options });
  await once(socket, "secureConnect");
  const bytes = Buffer.concat(received);
  return { socket, group: keyShareOf(bytes), asked: bytes.subarray(11, 43).equals(RETRY) };
}

/** The group of a server's first message: the one of its key, or the one that it asks for. */
function keyShareOf(bytes: Buffer): number | undefined {
  // Behind the headers of record and message and the version: random bytes, session, cipher and compression.
  let at = 5 + 4 + 2 + 32;
  at += 1 + bytes[at]! + 2 + 1;
  const end = at + 2 + bytes.readUInt16BE(at);
  for (at += 2; at < end; at += 4 + bytes.readUInt16BE(at + 2))
    if (bytes.readUInt16BE(at) === KEY_SHARE) return bytes.readUInt16BE(at + 4);
  return undefined;
}

const KEY_SHARE = 51;
/** The random bytes of a HelloRetryRequest (RFC 8446, 4.1.3). */
const RETRY = Buffer.from("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c", "hex");
