import type { TLSSocket } from "node:tls";
import { values } from "./der.js";

/**
 * The key exchange group of a client's connection, by its OpenSSL name; undefined if there is none, as with
 * Diffie-Hellman parameters. A resumed session of TLS 1.2 has the group of its first handshake; TLS 1.3 exchanges keys
 * again.
 *
 * Node does not report it to servers (`getEphemeralKeyInfo` is for clients), but gives OpenSSL's own encoding of the
 * session (i2d_SSL_SESSION(3)), which has the group in its field 19.
 */
export function tlsGroup(socket: TLSSocket): string | undefined {
  const session = socket.getSession();
  if (session === undefined || session === null) return undefined;
  const [whole] = values(session);
  const field = whole && values(whole.content).find(({ tag }) => tag === GROUP_FIELD);
  const number = field && values(field.content)[0]?.content;
  const group = number === undefined ? 0 : number.readUIntBE(0, number.length);
  // The session also has the secret of the connection.
  session.fill(0);
  return group === 0 ? undefined : (NAMES[group] ?? `0x${group.toString(16).padStart(4, "0")}`);
}

/** `[19]`, around an integer. */
const GROUP_FIELD = 0xb3;

/** TLS Supported Groups (IANA) as policies name them; all others by their numbers, as nginx shows them. */
const NAMES: Readonly<Record<number, string>> = {
  0x0017: "prime256v1",
  0x0018: "secp384r1",
  0x0019: "secp521r1",
  0x001d: "X25519",
  0x001e: "X448",
  0x0100: "ffdhe2048",
  0x0101: "ffdhe3072",
  0x0102: "ffdhe4096",
  0x0103: "ffdhe6144",
  0x0104: "ffdhe8192",
  0x11eb: "SecP256r1MLKEM768",
  0x11ec: "X25519MLKEM768",
  0x11ed: "SecP384r1MLKEM1024",
};
