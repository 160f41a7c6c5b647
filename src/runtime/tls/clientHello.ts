import { isDomainName } from "../../model/serving.js";

/** The fields of a TLS client's first message that this proxy uses. */
export interface ClientHello {
  /** In lower case, without a dot at its end; empty if the client names none. */
  readonly serverName: string;
  /** Whether an authority asks for a challenge's certificate (RFC 8737): it offers that protocol, and no other. */
  readonly wantsChallenge: boolean;
}

/**
 * Reads a ClientHello. A message that is something else, is too long or comes in too many records gives no name: the TLS
 * server then decides about it.
 *
 * @returns undefined while some of it is missing
 */
export function clientHelloOf(bytes: Buffer): ClientHello | undefined {
  const message = firstMessage(bytes);
  if (message === undefined) return undefined;
  const wantsChallenge = extensionOf(message, ALPN)?.equals(ONLY_CHALLENGE) === true;
  return { serverName: serverNameOf(message), wantsChallenge };
}

/** A ClientHello without its header, put together from its records; undefined while some of it is missing. */
function firstMessage(bytes: Buffer): Buffer | undefined {
  let message = EMPTY;
  for (let at = 0, records = 0; ; records++) {
    // Each piece that arrives is read from the beginning again: a message in thousands of records would be costly.
    if (records === RECORDS_MAX) return EMPTY;
    // A client with another protocol may wait for a response after its first byte.
    if (at < bytes.length && bytes[at] !== HANDSHAKE_RECORD) return EMPTY;
    if (bytes.length - at < RECORD_HEADER) return tooLong(bytes) ? EMPTY : undefined;
    const length = bytes.readUInt16BE(at + 3);
    const next = at + RECORD_HEADER + length;
    if (length === 0) return EMPTY;
    if (next > bytes.length) return tooLong(bytes) ? EMPTY : undefined;
    message = Buffer.concat([message, bytes.subarray(at + RECORD_HEADER, next)]);
    at = next;
    if (message[0] !== CLIENT_HELLO) return EMPTY;
    if (message.length < MESSAGE_HEADER) continue;
    const end = MESSAGE_HEADER + message.readUIntBE(1, 3);
    if (message.length >= end) return message.subarray(MESSAGE_HEADER, end);
  }
}

/** `server_name` of a ClientHello (RFC 6066, 3); empty if there is none, or it is malformed. */
function serverNameOf(hello: Buffer): string {
  // A list in which only one kind of name is defined: the kind, and the name.
  const list = extensionOf(hello, SERVER_NAME) ?? EMPTY;
  if (list.length < 5 || list[2] !== HOST_NAME) return "";
  const name = list.toString("latin1", 5, 5 + list.readUInt16BE(3)).toLowerCase();
  const plain = name.endsWith(".") ? name.slice(0, -1) : name;
  return isDomainName(plain) ? plain : "";
}

/** The content of an extension of a ClientHello (RFC 8446, 4.1.2); undefined if there is none, or it is malformed. */
function extensionOf(hello: Buffer, type: number): Buffer | undefined {
  // Undefined beyond the end: positions computed from it are NaN, which ends the search.
  const byte = (at: number): number => hello[at]!;
  const number = (at: number): number => byte(at) * 256 + byte(at + 1);
  // Version and random bytes; session, ciphers and compressions are lists.
  let at = 2 + 32;
  at += 1 + byte(at);
  at += 2 + number(at);
  at += 1 + byte(at);
  // The rest is the list of extensions.
  for (at += 2; at < hello.length; at += 4 + number(at + 2)) {
    if (number(at) === type) return hello.subarray(at + 4, at + 4 + number(at + 2));
  }
  return undefined;
}

const tooLong = (bytes: Buffer): boolean => bytes.length > HELLO_BYTES_MAX;

/** A hello fits into a single record; a hello with keys that withstand quantum computers has less than 2 KiB. */
const HELLO_BYTES_MAX = 16_384;

/** Clients send one; some that avoid inspection on the way send a few. */
const RECORDS_MAX = 32;

const EMPTY = Buffer.alloc(0);
const RECORD_HEADER = 5;
const HANDSHAKE_RECORD = 22;
const MESSAGE_HEADER = 4;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const ALPN = 16;
/** The protocol by which an authority has a name proved (RFC 8737, 6.2). */
export const CHALLENGE_PROTOCOL = "acme-tls/1";
/** The length of the list, and the one item with its length (RFC 7301, 3.1). */
const ONLY_CHALLENGE = Buffer.from(`\0\x0b\x0a${CHALLENGE_PROTOCOL}`);
const HOST_NAME = 0;
