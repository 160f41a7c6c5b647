import { isIP, isIPv4 } from "node:net";
import { canonicalIpv6, ipv6Groups, isPort, type ProxyVersion } from "../../model/serving.js";
import type { Endpoints } from "./clientInfo.js";

/**
 * The PROXY protocol, versions 1 and 2 (haproxy's proxy-protocol.txt): a TCP proxy names the client of a connection.
 */

/** The parsed header at the beginning of a connection. */
export type ProxyHeader =
  | {
      readonly length: number;
      /** Undefined if the sender names no client, or cannot describe it. */
      readonly endpoints: Endpoints | undefined;
    }
  | {
      /** In words that continue "the header". */
      readonly malformed: string;
    };

/** @returns undefined while some of it is missing */
export function proxyHeaderOf(bytes: Buffer): ProxyHeader | undefined {
  if (agree(bytes, SIGNATURE)) return bytes.length < FIXED_BYTES ? undefined : binaryHeader(bytes);
  if (agree(bytes, WORD)) return textHeader(bytes);
  return { malformed: "begins with other bytes" };
}

/** The header of a connection without a client, for instance a health check (version 2, LOCAL). */
export const LOCAL_HEADER = Buffer.from("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");

/**
 * The header for a connection to a server.
 *
 * @param endpoints of the client's connection; undefined for a connection without a client
 */
export function proxyHeaderFor(version: ProxyVersion, endpoints: Endpoints | undefined): Buffer {
  const ends = endpoints && plainEnds(endpoints);
  if (endpoints === undefined || ends === undefined) return version === "v1" ? UNKNOWN_HEADER : LOCAL_HEADER;
  const { port, localPort } = endpoints;
  const ipv4 = ends.every(isIPv4);
  // Both have to be of one family: an IPv4 address beside an IPv6 one is written as IPv6.
  const [from, to] = ipv4 ? ends : ends.map((one) => (isIPv4(one) ? `::ffff:${one}` : one));
  if (version === "v1")
    return Buffer.from(`PROXY ${ipv4 ? "TCP4" : "TCP6"} ${from!} ${to!} ${port} ${localPort}\r\n`);
  const bytes = [from!, to!].flatMap((one) =>
    ipv4 ? one.split(".").map(Number) : ipv6Groups(one)!.flatMap((group) => [group >> 8, group & 255]),
  );
  const after = [...bytes, port >> 8, port & 255, localPort >> 8, localPort & 255];
  const family = ((ipv4 ? 1 : 2) << 4) | STREAM;
  return Buffer.concat([SIGNATURE, Buffer.from([PROXY, family, 0, after.length, ...after])]);
}

/** The addresses without their zones; undefined if a peer is gone, and its address with it. */
function plainEnds({ address, localAddress }: Endpoints): readonly string[] | undefined {
  const ends = [address, localAddress].map((one) => one.split("%")[0]!);
  return ends.every((one) => isIP(one) !== 0) ? ends : undefined;
}

/** Whether the two are the same as far as both go. */
function agree(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
}

/** Version 1: `PROXY TCP4 SOURCE DESTINATION PORT PORT` and CRLF. */
function textHeader(bytes: Buffer): ProxyHeader | undefined {
  const end = bytes.indexOf("\r\n");
  const length = end + 2;
  if (length > LINE_BYTES_MAX || (end === -1 && bytes.length >= LINE_BYTES_MAX))
    return { malformed: `is longer than ${LINE_BYTES_MAX} bytes` };
  if (end === -1) return undefined;
  const [family, ...fields] = bytes.toString("latin1", WORD.length, end).split(" ");
  // Whatever follows it has no meaning.
  if (family === "UNKNOWN") return { length, endpoints: undefined };
  const parse = family === "TCP4" ? plainIpv4 : family === "TCP6" ? plainIpv6 : undefined;
  if (parse === undefined) return { malformed: "names a protocol other than TCP4, TCP6 or UNKNOWN" };
  const [source = "", destination = "", from = "", to = ""] = fields;
  const [address, localAddress] = [parse(source), parse(destination)];
  const valid = fields.length === 4 && address !== undefined && localAddress !== undefined;
  if (!valid || !isPortText(from) || !isPortText(to))
    return { malformed: "has malformed addresses or ports" };
  return { length, endpoints: { address, port: Number(from), localAddress, localPort: Number(to) } };
}

/** An address with leading zeros is refused: elsewhere they may mean octal numbers. */
const plainIpv4 = (text: string): string | undefined => (isIPv4(text) ? text : undefined);

function plainIpv6(text: string): string | undefined {
  const groups = text.includes("%") ? undefined : ipv6Groups(text);
  return groups && addressOf(groups);
}

const isPortText = (text: string): boolean =>
  text === "0" || (isPort(Number(text)) && String(Number(text)) === text);

/** Version 2, of which at least the fixed part is there. */
function binaryHeader(bytes: Buffer): ProxyHeader | undefined {
  const [command, family] = [bytes[12]!, bytes[13]!];
  const length = FIXED_BYTES + bytes.readUInt16BE(14);
  if (command !== LOCAL && command !== PROXY)
    return { malformed: `has ${hex(command)} in place of version and command` };
  if (length > HEADER_BYTES_MAX)
    return { malformed: `says that it has ${length} bytes, of at most ${HEADER_BYTES_MAX}` };
  if (bytes.length < length) return undefined;
  // The receiver must ignore the addresses of such a header.
  if (command === LOCAL) return { length, endpoints: undefined };
  const addressBytes = ADDRESS_BYTES[family >> 4];
  if (addressBytes === undefined || (family & 15) > DATAGRAM)
    return { malformed: `has ${hex(family)} in place of family and protocol` };
  const rest = FIXED_BYTES + 2 * addressBytes + (isInternet(family) ? 4 : 0);
  if (rest > length) return { malformed: "is shorter than its addresses" };
  const header = bytes.subarray(0, length);
  const damage = family >> 4 === UNSPECIFIED ? undefined : damageOf(header, rest);
  if (damage !== undefined) return { malformed: damage };
  // Not a connection over TCP: a Unix socket, or something the sender does not know.
  if (!isInternet(family) || (family & 15) !== STREAM) return { length, endpoints: undefined };
  const [address, localAddress] = [0, addressBytes].map((at) =>
    addressIn(header, FIXED_BYTES + at, addressBytes),
  );
  const [port, localPort] = [0, 2].map((at) => header.readUInt16BE(FIXED_BYTES + 2 * addressBytes + at));
  return {
    length,
    endpoints: { address: address!, port: port!, localAddress: localAddress!, localPort: localPort! },
  };
}

const isInternet = (family: number): boolean => family >> 4 === 1 || family >> 4 === 2;

function addressIn(header: Buffer, at: number, length: number): string {
  if (length === 4) return header.subarray(at, at + 4).join(".");
  return addressOf(Array.from({ length: 8 }, (_, i) => header.readUInt16BE(at + 2 * i)));
}

/** An IPv4 address that is written as IPv6 is that IPv4 address. */
function addressOf(groups: readonly number[]): string {
  const [high, low] = groups.slice(6) as [number, number];
  if (groups.slice(0, 6).join() === "0,0,0,0,0,65535")
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  return canonicalIpv6(groups.map((group) => group.toString(16)).join(":"))!;
}

/**
 * The fault in the fields after the addresses, if there is one. Each field is a type, two bytes of length, and a value.
 */
function damageOf(header: Buffer, rest: number): string | undefined {
  for (let at = rest; at < header.length;) {
    const value = at + 3;
    const next = value > header.length ? Infinity : value + header.readUInt16BE(at + 1);
    if (next > header.length) return "has a field that is longer than the rest of it";
    if (
      header[at] === CRC32C &&
      (next - value !== 4 || header.readUInt32BE(value) !== checksum(header, value))
    )
      return "has another CRC32C checksum than its bytes";
    at = next;
  }
  return undefined;
}

/** CRC32C (RFC 9260, Appendix A) of a header whose own four bytes of it count as zeros. */
function checksum(header: Buffer, at: number): number {
  let crc = ~0;
  for (let i = 0; i < header.length; i++) {
    crc ^= i >= at && i < at + 4 ? 0 : header[i]!;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

const hex = (byte: number): string => `0x${byte.toString(16).padStart(2, "0")}`;

const WORD = Buffer.from("PROXY ");
const LINE_BYTES_MAX = 107;
/** The header of a connection without a client, in version 1. */
const UNKNOWN_HEADER = Buffer.from("PROXY UNKNOWN\r\n");

const SIGNATURE = LOCAL_HEADER.subarray(0, 12);
const FIXED_BYTES = 16;
/** Room for a client's certificate; nginx takes 4096 bytes. */
const HEADER_BYTES_MAX = 16_384;
const LOCAL = 0x20;
const PROXY = 0x21;
const UNSPECIFIED = 0;
/** The bytes of an address, by family: unspecified, IPv4, IPv6, Unix. */
const ADDRESS_BYTES = [0, 4, 16, 108];
const STREAM = 1;
const DATAGRAM = 2;
const CRC32C = 3;
