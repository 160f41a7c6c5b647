import { proxyHeaderFor, proxyHeaderOf } from "../../src/runtime/listen/proxyHeader.js";
import { seeded } from "../../testkit/random.js";

/** Headers of the PROXY protocol, as bytes, and what they say. */

const SIGNATURE = "\r\n\r\n\0\r\nQUIT\n";
const PROXY = 0x21;

/** Version 2: signature, command, family, length and what follows, which is text or numbers of one byte. */
function binary(
  command: number,
  family: number,
  rest: readonly (number | string)[] = [],
  length?: number,
): Buffer {
  const body = Buffer.concat(
    rest.map((part) => (typeof part === "number" ? Buffer.from([part]) : latin1(part))),
  );
  const size = Buffer.alloc(2);
  size.writeUInt16BE(length ?? body.length);
  return Buffer.concat([latin1(SIGNATURE), Buffer.from([command, family]), size, body]);
}

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const FROM_IPV4 = [192, 0, 2, 1, 198, 51, 100, 2, 0xd9, 0x03, 1, 0xbb];
const FROM_IPV6 = [
  ...[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
  ...[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8],
  ...[0xd9, 0x03, 1, 0xbb],
];
const MAPPED = [
  ...[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1],
  ...[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 2],
  ...[0xd9, 0x03, 1, 0xbb],
];
const noop = (bytes: number): (number | string)[] => [4, bytes >> 8, bytes & 255, "x".repeat(bytes)];
/** As haproxy's `proxy-v2-options crc32c` writes it for the addresses of FROM_IPV4; by another implementation. */
const CHECKSUM = [3, 0, 4, 0x9a, 0xf9, 0xdf, 0xf7];

/** What a header says: `ADDRESS PORT > ADDRESS PORT`, `own`, or what is wrong with it. */
function said(bytes: Buffer): string | undefined {
  const header = proxyHeaderOf(bytes);
  if (header === undefined) return undefined;
  if ("malformed" in header) return header.malformed;
  const { endpoints } = header;
  return endpoints === undefined
    ? "own"
    : `${endpoints.address} ${endpoints.port} > ${endpoints.localAddress} ${endpoints.localPort}`;
}

const IPV4 = "192.0.2.1 55555 > 198.51.100.2 443";
const IPV6 = "2001:db8::7 55555 > 2001:db8::8 443";
const VALID: readonly [what: string, header: Buffer, message: string][] = [
  ["IPv4", latin1("PROXY TCP4 192.0.2.1 198.51.100.2 55555 443\r\n"), IPV4],
  ["IPv6", latin1("PROXY TCP6 2001:db8::7 2001:db8::8 55555 443\r\n"), IPV6],
  [
    "IPv6 in capitals, not shortened",
    latin1("PROXY TCP6 2001:DB8:0:0:0:0:0:7 2001:DB8::8 55555 443\r\n"),
    IPV6,
  ],
  ["IPv4 written as IPv6", latin1("PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 55555 443\r\n"), IPV4],
  ["the same in groups", latin1("PROXY TCP6 ::FFFF:c000:201 ::ffff:c633:6402 55555 443\r\n"), IPV4],
  ["port 0", latin1("PROXY TCP4 192.0.2.1 198.51.100.2 0 0\r\n"), "192.0.2.1 0 > 198.51.100.2 0"],
  ["unknown", latin1("PROXY UNKNOWN\r\n"), "own"],
  ["unknown with addresses", latin1("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), "own"],
  ["unknown with anything", latin1("PROXY UNKNOWN \n\r\0  x\r\n"), "own"],
  ["unknown, as long as possible", latin1(`PROXY UNKNOWN ${"x".repeat(91)}\r\n`), "own"],
  ["version 2, IPv4", binary(PROXY, 0x11, FROM_IPV4), IPV4],
  ["version 2, IPv6", binary(PROXY, 0x21, FROM_IPV6), IPV6],
  ["version 2, IPv4 written as IPv6", binary(PROXY, 0x21, MAPPED), IPV4],
  [
    "fields that mean nothing",
    binary(PROXY, 0x11, [...FROM_IPV4, ...noop(0), 0xe0, 0, 1, "x", 2, 0, 3, "abc"]),
    IPV4,
  ],
  ["as many as there may be", binary(PROXY, 0x11, [...FROM_IPV4, ...noop(16_384 - 16 - 12 - 3)]), IPV4],
  ["a checksum", binary(PROXY, 0x11, [...FROM_IPV4, ...CHECKSUM]), IPV4],
  [
    "a checksum before another field",
    binary(PROXY, 0x11, [...FROM_IPV4, 3, 0, 4, 0x8b, 0xaa, 0x9b, 0xf4, 4, 0, 1, 7]),
    IPV4,
  ],
  ["an empty field at its end", binary(PROXY, 0x11, [...FROM_IPV4, 0xe0, 0, 0]), IPV4],
  ["LOCAL", binary(0x20, 0), "own"],
  ["LOCAL with an address", binary(0x20, 0x11, FROM_IPV4), "own"],
  ["LOCAL with anything", binary(0x20, 0xff, ["x".repeat(300)]), "own"],
  ["no family", binary(PROXY, 0), "own"],
  ["no family, with bytes", binary(PROXY, 0, ["xx"]), "own"],
  ["a Unix socket", binary(PROXY, 0x31, ["/".repeat(216)]), "own"],
  ["a datagram", binary(PROXY, 0x12, FROM_IPV4), "own"],
  ["IPv6 without a protocol", binary(PROXY, 0x20, FROM_IPV6), "own"],
];

const ADDRESSES = "has malformed addresses or ports";
const OTHER = "begins with other bytes";
const MALFORMED: readonly [what: string, bytes: Buffer, why: string][] = [
  ["a request", latin1("GET / HTTP/1.1\r\n"), OTHER],
  ["one byte of a TLS record", latin1("\x16"), OTHER],
  ["an empty line and a request", latin1("\r\nG"), OTHER],
  ["small letters", latin1("proxy"), OTHER],
  ["a tab", latin1("PROXY\tTCP4"), OTHER],
  ["no more than the word", latin1("PROXY\r\n"), OTHER],
  [
    "two spaces",
    latin1("PROXY  TCP4 192.0.2.1 198.51.100.2 1 2\r\n"),
    "names a protocol other than TCP4, TCP6 or UNKNOWN",
  ],
  [
    "UDP",
    latin1("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n"),
    "names a protocol other than TCP4, TCP6 or UNKNOWN",
  ],
  ["unknown and more", latin1("PROXY UNKNOWNX\r\n"), "names a protocol other than TCP4, TCP6 or UNKNOWN"],
  ["a line feed only", latin1("PROXY TCP4 192.0.2.1 198.51.100.2 1 2\nHost: a\r\n"), ADDRESSES],
  ["no addresses", latin1("PROXY TCP4\r\n"), ADDRESSES],
  ["a port too few", latin1("PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n"), ADDRESSES],
  ["a port too many", latin1("PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n"), ADDRESSES],
  ["a space at the end", latin1("PROXY TCP4 192.0.2.1 198.51.100.2 1 2 \r\n"), ADDRESSES],
  ["IPv6 as TCP4", latin1("PROXY TCP4 2001:db8::7 2001:db8::8 1 2\r\n"), ADDRESSES],
  ["IPv4 as TCP6", latin1("PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n"), ADDRESSES],
  ["a zone", latin1("PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n"), ADDRESSES],
  ["brackets", latin1("PROXY TCP6 [::1] [::2] 1 2\r\n"), ADDRESSES],
  ["an octal octet", latin1("PROXY TCP4 192.0.02.1 198.51.100.2 1 2\r\n"), ADDRESSES],
  ["an octet of 256", latin1("PROXY TCP4 256.0.2.1 198.51.100.2 1 2\r\n"), ADDRESSES],
  ["a bad destination", latin1("PROXY TCP4 192.0.2.1 x 1 2\r\n"), ADDRESSES],
  ...["65536", "-1", "-0", "01", "00", "1.5", "1e3", "0x1", "+1", "", "NaN", "Infinity", "\x001"].map(
    (port): [string, Buffer, string] => [
      `port "${port}"`,
      latin1(`PROXY TCP4 192.0.2.1 198.51.100.2 ${port} 2\r\n`),
      ADDRESSES,
    ],
  ),
  ["a line without an end", latin1(`PROXY UNKNOWN ${"x".repeat(93)}`), "is longer than 107 bytes"],
  ["a line of 108 bytes", latin1(`PROXY UNKNOWN ${"x".repeat(92)}\r\n`), "is longer than 107 bytes"],
  ["another signature", latin1("\r\n\r\n\0\r\nQUIT\r"), OTHER],
  ["version 1 in version 2", binary(0x11, 0x11, FROM_IPV4), "has 0x11 in place of version and command"],
  ["version 0", binary(1, 0x11, FROM_IPV4), "has 0x01 in place of version and command"],
  ["version 3", binary(0x31, 0x11, FROM_IPV4), "has 0x31 in place of version and command"],
  ["an unknown command", binary(0x22, 0x11, FROM_IPV4), "has 0x22 in place of version and command"],
  ["an unknown family", binary(PROXY, 0x41, FROM_IPV4), "has 0x41 in place of family and protocol"],
  ["an unknown protocol", binary(PROXY, 0x13, FROM_IPV4), "has 0x13 in place of family and protocol"],
  [
    "a length beyond the limit",
    binary(PROXY, 0x11, [], 16_369),
    "says that it has 16385 bytes, of at most 16384",
  ],
  ["the largest length", binary(0x20, 0, [], 65_535), "says that it has 65551 bytes, of at most 16384"],
  ["addresses that are cut off", binary(PROXY, 0x11, FROM_IPV4.slice(1)), "is shorter than its addresses"],
  ["IPv6 of the length of IPv4", binary(PROXY, 0x21, FROM_IPV4), "is shorter than its addresses"],
  ["no addresses, version 2", binary(PROXY, 0x11), "is shorter than its addresses"],
  ["a short path", binary(PROXY, 0x31, ["/run/x"]), "is shorter than its addresses"],
  [
    "a field of one byte",
    binary(PROXY, 0x11, [...FROM_IPV4, 4]),
    "has a field that is longer than the rest of it",
  ],
  [
    "a long field",
    binary(PROXY, 0x11, [...FROM_IPV4, 4, 0, 2, 1]),
    "has a field that is longer than the rest of it",
  ],
  [
    "a wrong checksum",
    binary(PROXY, 0x11, [...FROM_IPV4, 3, 0, 4, 1, 2, 3, 4]),
    "has another CRC32C checksum than its bytes",
  ],
  [
    "a short checksum",
    binary(PROXY, 0x11, [...FROM_IPV4, 3, 0, 2, 1, 2]),
    "has another CRC32C checksum than its bytes",
  ],
  [
    "a checksum of other bytes",
    binary(PROXY, 0x11, [...FROM_IPV4.with(3, 2), ...CHECKSUM]),
    "has another CRC32C checksum than its bytes",
  ],
];

const NEXT = latin1("\x16\x03\x01 GET / PROXY \r\n\0");

describe("a valid header", () => {
  test.each(VALID)("%s", (_what, header, message) => {
    expect(said(header)).toBe(message);
    const followed = proxyHeaderOf(Buffer.concat([header, NEXT]));
    // What follows is not a part of it, whatever it is.
    expect(followed).toEqual({ ...proxyHeaderOf(header), length: header.length });
  });

  test.each(VALID)("%s says nothing before it is whole", (_what, header) => {
    for (let end = 1; end < header.length; end++) expect(said(header.subarray(0, end))).toBeUndefined();
  });
});

test.each(MALFORMED)("malformed: %s", (_what, bytes, why) => {
  expect(said(bytes)).toBe(why);
  expect(said(Buffer.concat([bytes, NEXT]))).toBe(why);
});

test(
  "whatever comes, a header is malformed, missing something, or as long as what came at most",
  seeded((random) => {
    for (let i = 0; i < 4_000; i++) {
      const header = VALID[random.pick(VALID.length)]![1];
      const bytes = Buffer.concat([header, random.bytes(random.pick(8))]);
      for (let changes = random.pick(4); changes > 0; changes--)
        bytes[random.pick(bytes.length)] = random.pick(256);
      const whole = proxyHeaderOf(bytes);
      if (whole === undefined) continue;
      if ("length" in whole) expect(whole.length).toBeLessThanOrEqual(bytes.length);
      // Once something is said, more bytes do not change it.
      expect(proxyHeaderOf(Buffer.concat([bytes, random.bytes(20)]))).toEqual(whole);
      // And fewer bytes never say the opposite.
      const part = proxyHeaderOf(bytes.subarray(0, 1 + random.pick(bytes.length)));
      if (part !== undefined) expect("malformed" in part).toBe("malformed" in whole);
    }
  }),
);

const ends = (address: string, localAddress: string, port = 55_555) => ({
  address,
  port,
  localAddress,
  localPort: 443,
});

test.each<[what: string, from: string, to: string, message: string]>([
  ["IPv4", "192.0.2.1", "198.51.100.2", IPV4],
  ["IPv6", "2001:db8::7", "2001:db8::8", IPV6],
  ["a zone", "fe80::7%eth0", "fe80::8", "fe80::7 55555 > fe80::8 443"],
  // Behind a proxy that names its clients, the two can be of different families.
  ["both", "192.0.2.1", "2001:db8::8", "192.0.2.1 55555 > 2001:db8::8 443"],
  ["a peer that is gone", "", "", "own"],
])("what is sent is what is read: %s", (_, from, to, message) => {
  for (const version of ["v1", "v2"] as const)
    expect(said(proxyHeaderFor(version, ends(from, to)))).toBe(message);
});

test("headers are those of the specification, of a connection of its own too", () => {
  expect(proxyHeaderFor("v1", ends("192.0.2.1", "198.51.100.2")).toString()).toBe(
    "PROXY TCP4 192.0.2.1 198.51.100.2 55555 443\r\n",
  );
  expect(proxyHeaderFor("v2", ends("192.0.2.1", "198.51.100.2"))).toEqual(binary(PROXY, 0x11, FROM_IPV4));
  expect(proxyHeaderFor("v2", ends("2001:db8::7", "2001:db8::8"))).toEqual(binary(PROXY, 0x21, FROM_IPV6));
  expect(proxyHeaderFor("v1", undefined).toString()).toBe("PROXY UNKNOWN\r\n");
  expect(proxyHeaderFor("v2", undefined)).toEqual(binary(0x20, 0));
  // A client that a trusted proxy named.
  expect(said(proxyHeaderFor("v1", ends("192.0.2.1", "198.51.100.2", 0)))).toBe(
    "192.0.2.1 0 > 198.51.100.2 443",
  );
});
