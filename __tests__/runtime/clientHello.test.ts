import { clientHelloOf } from "../../src/runtime/tls/clientHello.js";

/** What the first message of a TLS client asks for, read from messages made by hand (RFC 8446, 4.1.2 and 5.1). */

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const number = (bytes: 1 | 2 | 3, value: number): Buffer => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
};
/** A list with its length in front. */
const list = (bytes: 1 | 2 | 3, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts);
  return Buffer.concat([number(bytes, content.length), content]);
};
const extension = (type: number, ...parts: readonly Buffer[]): Buffer =>
  Buffer.concat([number(2, type), list(2, ...parts)]);
const serverName = (name: string, type = 0): Buffer =>
  extension(0, list(2, number(1, type), list(2, latin1(name))));
const protocols = (...names: readonly string[]): Buffer =>
  extension(16, list(2, ...names.map((name) => list(1, latin1(name)))));
/** As long as two bytes of length need. */
const LONG = extension(0x0110, Buffer.alloc(300, 1));

function message(
  extensions: readonly Buffer[],
  { session = 32, ciphers = 300, compressions = 1, type = 1 } = {},
): Buffer {
  const body = Buffer.concat([
    Buffer.alloc(2 + 32, 3),
    list(1, Buffer.alloc(session, 0)),
    list(2, Buffer.alloc(ciphers, 16)),
    list(1, Buffer.alloc(compressions)),
    list(2, ...extensions),
  ]);
  return Buffer.concat([number(1, type), list(3, body)]);
}

const record = (content: Buffer, type = 22): Buffer =>
  Buffer.concat([number(1, type), number(2, 0x0301), list(2, content)]);
const hello = (...extensions: readonly Buffer[]): Buffer => record(message(extensions));
const NAMED = serverName("app.example.org");
const PROOF = protocols("acme-tls/1");
const NONE = { serverName: "", wantsChallenge: false };
const APP = { serverName: "app.example.org", wantsChallenge: false };

test.each<[what: string, bytes: Buffer, message: typeof NONE]>([
  ["a name", hello(NAMED), APP],
  ["a name behind others", hello(LONG, NAMED), APP],
  ["a name before others", hello(NAMED, LONG), APP],
  ["no session", record(message([NAMED], { session: 0 })), APP],
  ["few ciphers", record(message([NAMED], { ciphers: 2 })), APP],
  ["two compressions", record(message([NAMED], { compressions: 2 })), APP],
  ["no extensions", hello(), NONE],
  ["capitals, and a dot at the end", hello(serverName("App.EXAMPLE.org.")), APP],
  ["a name of one letter", hello(serverName("a")), { ...NONE, serverName: "a" }],
  ["a name of no letter", hello(serverName("")), NONE],
  ["a dot in front", hello(serverName(".example.org")), NONE],
  ["no name of a domain", hello(serverName("a b")), NONE],
  ["a letter that is not ASCII", hello(serverName("\xe4.example.org")), NONE],
  ["a name of another kind", hello(serverName("app.example.org", 1)), NONE],
  ["a list that is too short for a name", hello(extension(0, latin1("\0\x02\0\0"))), NONE],
  ["an empty list of names", hello(extension(0)), NONE],
  ["a second name, which has no meaning", hello(NAMED, serverName("other.example.org")), APP],
  [
    "bytes after the name",
    hello(extension(0, list(2, number(1, 0), list(2, latin1("app.example.org")), latin1("\0\0\x01x")))),
    APP,
  ],
  ["protocols", hello(NAMED, protocols("h2", "http/1.1")), APP],
  ["the protocol of challenges", hello(NAMED, PROOF), { ...APP, wantsChallenge: true }],
  ["the protocol of challenges before others", hello(PROOF, LONG), { ...NONE, wantsChallenge: true }],
  ["the protocol of challenges without a name", hello(PROOF), { ...NONE, wantsChallenge: true }],
  ["that protocol among others", hello(NAMED, protocols("acme-tls/1", "h2")), APP],
  ["another protocol of its length", hello(NAMED, protocols("acme-tls/2")), APP],
  ["another message behind it", record(Buffer.concat([message([NAMED]), latin1("\x0b\0\0\0")])), APP],
  ["another record behind it", Buffer.concat([hello(NAMED), latin1("GET /")]), APP],
  ["another message", record(message([NAMED], { type: 2 })), NONE],
  ["another record", record(message([NAMED]), 23), NONE],
  ["a message without a session", record(Buffer.concat([number(1, 1), list(3, Buffer.alloc(34))])), NONE],
  ["an empty message", record(latin1("\x01\0\0\0")), NONE],
  ["a request", latin1("GET / HTTP/1.1\r\n\r\n"), NONE],
])("%s", (_what, bytes, message) => expect(clientHelloOf(bytes)).toEqual(message));

/** The message in so many records, all but the last of the same length. */
function inRecords(count: number, first?: number): Buffer {
  const whole = message([LONG, NAMED]);
  if (first !== undefined)
    return Buffer.concat([record(whole.subarray(0, first)), record(whole.subarray(first))]);
  const each = Math.floor(whole.length / count);
  const cuts = Array.from({ length: count }, (_, i) =>
    record(whole.subarray(i * each, i === count - 1 ? whole.length : (i + 1) * each)),
  );
  return Buffer.concat(cuts);
}

test.each([1, 2, 3, 4, 5, 50])(
  "a message whose first record has %i bytes says nothing before it is whole",
  (first) => {
    const bytes = inRecords(2, first);
    for (let end = 0; end < bytes.length; end++)
      expect(clientHelloOf(bytes.subarray(0, end))).toBeUndefined();
    expect(clientHelloOf(bytes)).toEqual(APP);
  },
);

test("a message in 32 records is read, and none in more", () => {
  expect([clientHelloOf(inRecords(32)), clientHelloOf(inRecords(33))]).toEqual([APP, NONE]);
});

test("what is not the beginning of one says so at once", () => {
  const empty = Buffer.from([22, 3, 1, 0, 0]);
  for (const bytes of [
    latin1("G"),
    empty,
    Buffer.concat([inRecords(2, 3).subarray(0, 8), empty]),
    record(latin1("\x02")),
  ])
    expect(clientHelloOf(bytes)).toEqual(NONE);
  const second = inRecords(2, 50).subarray(0, 56);
  second[55] = 23;
  expect(clientHelloOf(second)).toEqual(NONE);
});

test("16 KiB are waited for, and no more", () => {
  const long = Buffer.concat([Buffer.from([22, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff]), Buffer.alloc(20_000)]);
  expect(clientHelloOf(long.subarray(0, 16_384))).toBeUndefined();
  expect(clientHelloOf(long.subarray(0, 16_385))).toEqual(NONE);
  // Where the next record has not begun.
  const cut = (bytes: number): Buffer =>
    record(Buffer.concat([Buffer.from([1, 0, 0xff, 0xff]), Buffer.alloc(bytes - 9)]));
  expect(clientHelloOf(cut(16_384))).toBeUndefined();
  expect(clientHelloOf(cut(16_385))).toEqual(NONE);
});
