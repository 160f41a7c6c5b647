import v8 from "node:v8";
import { HOP_BY_HOP } from "../../src/model/net/hopByHop.js";
import { HpackDecoder, huffmanDecode } from "../../src/runtime/codec/http2/hpackDecoder.js";
import { type ResponseHead, HpackEncoder } from "../../src/runtime/codec/http2/hpackEncoder.js";
import { Outbox } from "../../src/runtime/server/outbox.js";
import { ConnectionError, ErrorCode } from "../../src/runtime/codec/http2/protocol.js";
import { seeded } from "../../testkit/random.js";

/** Field compression against the examples of RFC 7541 and against itself. */

const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/ /g, ""), "hex");

/** Decodes a block from the middle of a buffer: what is around it is no part of it. */
function decode(decoder: HpackDecoder, block: Buffer): string[] {
  const around = Buffer.alloc(200);
  decoder.decode(Buffer.concat([around, block, around]), around.length, around.length + block.length);
  return decoder.fields.flatMap(({ name, value }) => [name, value]);
}

v8.setFlagsFromString("--expose-gc");

function encode(encoder: HpackEncoder, head: ResponseHead): Buffer {
  const outbox = new Outbox(
    { write: () => true } as never,
    () => undefined,
    () => undefined,
  );
  encoder.encode(head, outbox);
  return Buffer.from(outbox.buffer.subarray(0, outbox.at));
}

// The tables are made for the first string, and serve all the others.
beforeAll(() => void huffmanDecode(bytes("f8"), 0, 1, Buffer.alloc(2)));

test("requests with Huffman coding and a dynamic table (RFC 7541, C.4)", () => {
  const decoder = new HpackDecoder(65_536);
  const common = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "www.example.com"];
  expect(decode(decoder, bytes("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"))).toEqual(common);
  expect(decode(decoder, bytes("8286 84be 5886 a8eb 1064 9cbf"))).toEqual([
    ...common,
    "cache-control",
    "no-cache",
  ]);
  expect(decode(decoder, bytes("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"))).toEqual([
    ...[":method", "GET", ":scheme", "https", ":path", "/index.html", ":authority", "www.example.com"],
    ...["custom-key", "custom-value"],
  ]);
});

test.each([
  ["index 0", "80", "index 0"],
  ["index 0, and what would be a literal", "80 01 61 01 62", "index 0"],
  ["a table size that is cut off", "3f 80", "integer is cut off"],
  ["an index beyond the table", "be", "index beyond the table"],
  ["an integer without end", "ff ff ff ff ff ff ff ff ff ff 01", "integer is too large"],
  ["an integer that is cut off", "ff 80", "integer is cut off"],
  ["a string that is cut off", "00 05 61 62", "string is cut off"],
  ["a literal without a value", "00 01 61", "string is cut off"],
  ["a table size beyond the setting", "3f e2 1f", "table size beyond the setting"],
  ["a table size update after a field", "82 20", "table size update after a field"],
  ["Huffman padding longer than 7 bits", "00 82 1f ff 00", "invalid Huffman code"],
  ["Huffman padding of zeros", "00 81 18 00", "invalid Huffman code"],
  ["the Huffman code for the end", "00 84 ff ff ff ff 00", "invalid Huffman code"],
  [
    "the Huffman code for the end, over in the first half of an octet",
    "00 85 1f ff ff ff ff 00",
    "invalid Huffman code",
  ],
  ["Huffman padding of eight ones", "00 82 f8 ff 00", "invalid Huffman code"],
  ["an integer of five octets after its prefix", "00 7f 80 80 80 80 00", "integer is too large"],
])("%s is an error", (_what, hex, reason) => {
  const error = new ConnectionError(ErrorCode.CompressionError, `invalid field block: ${reason}`);
  expect(() => decode(new HpackDecoder(65_536), bytes(hex))).toThrow(error);
});

/** An integer as RFC 7541, 5.1 writes it, after a prefix of so many bits. */
function integer(first: number, prefixBits: number, value: number): Buffer {
  const most = (1 << prefixBits) - 1;
  if (value < most) return Buffer.from([first | value]);
  const octets = [first | most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) octets.push((rest % 128) + 128);
  return Buffer.from([...octets, rest]);
}

/** A field that goes into the table. */
const inserted = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.from([0x40]),
    ...[name, value].flatMap((text) => [integer(0, 7, text.length), Buffer.from(text)]),
  ]);
const index = (at: number): Buffer => integer(0x80, 7, at);

test.each([
  ["Huffman coding without padding", "00 81 f8 00", ["&", ""]],
  ["a value with a comma of the table", "90", ["accept-encoding", "gzip, deflate"]],
  ["a field that is not indexed, with a name of the table", "0f 0d 01 35", ["content-length", "5"]],
  ["a field that must not be indexed, with a name of the table", "14 01 2f", [":path", "/"]],
  ["Huffman coding with seven bits of padding", "00 83 1a cb 7f 01 78", ["a--", "x"]],
  [
    "an integer of four octets after its prefix",
    `00 01 61 7f 80 80 80 00 ${"62".repeat(127)}`,
    ["a", "b".repeat(127)],
  ],
])("%s is read", (_what, hex, fields) => {
  expect(decode(new HpackDecoder(65_536), bytes(hex))).toEqual(fields);
});

/** RFC 7541, appendix A: the names from 1 on, those that follow one another once, each with what values it has. */
const STATIC: readonly (readonly [name: string, ...values: string[]])[] = [
  [":authority", ""],
  [":method", "GET", "POST"],
  [":path", "/", "/index.html"],
  [":scheme", "http", "https"],
  [":status", "200", "204", "206", "304", "400", "404", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ...(
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control " +
    "content-disposition content-encoding content-language content-length content-location content-range " +
    "content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range " +
    "if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range " +
    "referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary " +
    "via www-authenticate"
  )
    .split(" ")
    .map((name) => [name, ""] as const),
];

test("every index of the static table is the field of RFC 7541, appendix A", () => {
  const fields = STATIC.flatMap(([name, ...values]) => values.map((value) => [name, value]));
  expect(fields).toHaveLength(61);
  for (const [i, field] of fields.entries()) {
    const decoder = new HpackDecoder(65_536);
    expect([i + 1, ...decode(decoder, index(i + 1))]).toEqual([i + 1, ...field]);
    // As the name of a literal.
    const literal = Buffer.concat([integer(0, 4, i + 1), bytes("01 61")]);
    expect([i + 1, ...decode(decoder, literal)]).toEqual([i + 1, field[0], "a"]);
  }
});

test("a long string with Huffman coding is read whole", () => {
  // `0` is five bits, all of them zero.
  const block = Buffer.concat([Buffer.from([0, 1, 0x61]), integer(0x80, 7, 25_000), Buffer.alloc(25_000)]);
  expect(decode(new HpackDecoder(65_536), block)[1]).toBe("0".repeat(40_000));
});

describe("the table", () => {
  let decoder: HpackDecoder;
  beforeEach(() => (decoder = new HpackDecoder(65_536)));
  const names = (...indices: number[]): string[] =>
    indices.flatMap((at) => decode(decoder, index(at))).filter((_, i) => i % 2 === 0);

  test("is filled to its last byte, newest first", () => {
    decode(decoder, inserted("a", "v".repeat(4_063)));
    expect(names(62)).toEqual(["a"]);
    decode(decoder, Buffer.concat([inserted("b", "v".repeat(2_015)), inserted("c", "v".repeat(2_015))]));
    expect(names(62, 63)).toEqual(["c", "b"]);
    expect(() => names(64)).toThrow(ConnectionError);
  });

  test("is emptied by what does not fit, and goes on", () => {
    decode(decoder, Buffer.concat([inserted("a", ""), inserted("b", "v".repeat(4_064))]));
    expect(() => names(62)).toThrow(ConnectionError);
    decode(decoder, inserted("c", ""));
    expect(names(62)).toEqual(["c"]);
  });

  test("holds 128 entries of the least size", () => {
    for (let i = 0; i < 130; i++) decode(decoder, inserted("", ""));
    expect(names(62, 189)).toEqual(["", ""]);
    expect(() => names(190)).toThrow(ConnectionError);
  });

  test("made smaller keeps what fits, and what fits no more is gone when it is made larger", () => {
    for (const name of ["a", "b", "c"]) decode(decoder, inserted(name, "v"));
    expect(decode(decoder, Buffer.concat([integer(0x20, 5, 68), index(63)]))).toEqual(["b", "v"]);
    expect(() => names(64)).toThrow(ConnectionError);
    decode(decoder, inserted("d", "v"));
    expect(names(62, 63)).toEqual(["d", "c"]);
    expect(() => names(64)).toThrow(ConnectionError);
    decode(decoder, Buffer.concat([integer(0x20, 5, 67), integer(0x20, 5, 4_096)]));
    expect(names(62)).toEqual(["d"]);
    expect(() => names(63)).toThrow(ConnectionError);
  });
});

test.each([
  [68, true],
  [67, false],
])("two fields of 34 bytes in a list of %i: %j", (listBytesMax, fits) => {
  const block = Buffer.concat([inserted("a", "b"), inserted("c", "d")]);
  expect(new HpackDecoder(listBytesMax).decode(block, 0, block.length)).toBe(fits);
});

describe("what the encoder sends is", () => {
  const head = { status: 200, server: "s", date: "d", headers: [], length: -1 };
  const sent = (encoder: HpackEncoder, changes: Partial<ResponseHead>): string =>
    encode(encoder, { ...head, ...changes }).toString("hex");
  const BARE = { server: undefined, date: "" };
  const long = (bytes: number): string[] => ["x-b", "v".repeat(bytes - 35)];

  type Row = [what: string, changes: Partial<ResponseHead>, hex: string];
  test.each<Row>([
    ...[200, 204, 206, 304, 400, 404, 500].map((status, i): Row => [
      `${status}, which the table has`,
      { status },
      (0x88 + i).toString(16),
    ]),
    ["another status", { status: 299 }, "08 03323939"],
    ["a length", { length: 5 }, "88 0f0d0135"],
    ["a length of nothing", { length: 0 }, "88 0f0d0130"],
    ["a date alone", { date: "d" }, "88 610164"],
    ["a field of no known name", { headers: ["X-A", "b"] }, "88 4003782d610162"],
    ...[
      ["Age", "06"],
      ["Content-Range", "0f"],
      ["ETag", "13"],
      ["Expires", "15"],
      ["Last-Modified", "1d"],
      ["Location", "1f"],
    ].map(([name, index]): Row => [
      `a field that hardly recurs: ${name}`,
      { headers: [name!, "b"] },
      `88 0f${index}0162`,
    ]),
    ["a field that must not be indexed", { headers: ["Set-Cookie", "b"] }, "88 1f280162"],
    ["no field of the connection", { headers: HOP_BY_HOP.flatMap((name) => [name, "b"]) }, "88"],
    ["nothing else in place of its own fields", { headers: ["Date", "b", "Server", "c"] }, "88"],
    [
      "a field of a quarter of the table",
      { headers: long(1_024) },
      `88 4003782d62 7fde06${"76".repeat(989)}`,
    ],
    ["a longer field", { headers: long(1_025) }, `88 0003782d62 7fdf06${"76".repeat(990)}`],
  ])("%s", (_what, changes, hex) => {
    expect(sent(new HpackEncoder(), { ...BARE, ...changes })).toBe(hex.replace(/ /g, ""));
  });

  test("indices of what was sent before", () => {
    const encoder = new HpackEncoder();
    expect(sent(encoder, {})).toBe("88760173610164");
    for (let again = 0; again < 3; again++) expect(sent(encoder, { status: 404 })).toBe("8dbfbe");
    expect(sent(encoder, { server: "t", length: 5 })).toBe("88760174bf0f0d0135");
  });

  test.each([
    [[65_536], ""],
    [[4_096], ""],
    [[0], "20"],
    [[30], "3e"],
    [[100, 4_096], "3f45 3fe11f"],
    [[50, 30, 60], "3e 3f1d"],
    [[50, 60, 30], "3e"],
  ])("sizes of its table, the smallest in between and the last: %j", (sizes, hex) => {
    const encoder = new HpackEncoder();
    for (const size of sizes) encoder.limitTable(size);
    const announced = hex.replace(/ /g, "");
    expect(sent(encoder, BARE)).toBe(`${announced}88`);
    expect(sent(encoder, BARE)).toBe("88");
  });

  test("anew where a name differs, and without sizes that were announced before", () => {
    const encoder = new HpackEncoder();
    const dated = { server: undefined, headers: ["ETag", "a"] };
    expect(sent(encoder, dated)).toBe("88610164" + "0f130161");
    for (let again = 0; again < 2; again++) expect(sent(encoder, dated)).toBe("88be" + "0f130161");
    expect(sent(encoder, { ...dated, headers: ["Age", "a"] })).toBe("88be" + "0f060161");
    encoder.limitTable(100);
    expect(sent(encoder, dated)).toBe("3f4588be" + "0f130161");
    for (let again = 0; again < 2; again++) expect(sent(encoder, dated)).toBe("88be" + "0f130161");
    encoder.limitTable(36);
    expect(sent(encoder, dated)).toBe("3f0588" + "0f120164" + "0f130161");
  });

  test("an index of two octets where there are many entries", () => {
    const encoder = new HpackEncoder();
    const headers = Array.from({ length: 70 }, (_, i) => [`x-${i}`, "v"]).flat();
    sent(encoder, { ...BARE, headers });
    expect(sent(encoder, { ...BARE, headers: ["X-0", "v", "X-0", "w"] })).toBe("88ff04" + "7f440177");
  });

  test.each<[headers: string[], fault: string | undefined]>([
    [["X-A", "b", "X-C", "d"], undefined],
    [["X-A", "b", "X C", "d"], "invalid field name"],
    [["X-A", "b", "X-C", "d\r"], "invalid value of X-C"],
  ])("nothing of %j: %j", (headers, fault) => {
    expect(new HpackEncoder().check({ ...head, headers })).toBe(fault);
  });
});

test("a list that is too long leaves the table correct", () => {
  const decoder = new HpackDecoder(100);
  const block = bytes("40 01 61 01 62 40 01 63 01 64 40 01 65 01 66");
  expect(decoder.decode(block, 0, block.length)).toBe(false);
  expect(decode(decoder, bytes("be c0"))).toEqual(["e", "f", "a", "b"]);
});

test(
  "what the encoder sends is what the decoder reads, also when tables fill up and change size",
  seeded((random) => {
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder(1_000_000);
    for (let round = 0; round < 5_000; round++) {
      if (random.pick(200) === 0) encoder.limitTable([0, 100, 1_000, 4_096, 65_536][random.pick(5)]!);
      const headers = Array.from({ length: random.pick(8) }, () => [
        ["Content-Type", "ETag", "Set-Cookie", "X-A", "x-b", `x-${random.pick(400)}`][random.pick(6)]!,
        random.pick(30) === 0 ? "v".repeat(random.pick(3_000)) : `value-${random.pick(5)}`,
      ]).flat();
      const head = {
        status: [200, 206, 301, 404, 502][random.pick(5)]!,
        server: ["portico", "portico/1"][random.pick(2)]!,
        date: `d${round >> 6}`,
        headers,
        length: random.pick(3) - 1,
      };
      // The same head again is the block that is kept.
      for (let again = 0; again < 3; again++) {
        const expected = [
          ...[":status", String(head.status), "server", head.server, "date", head.date],
          ...headers.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text)),
          ...(head.length >= 0 ? ["content-length", String(head.length)] : []),
        ];
        const unfit = encoder.check(head);
        const fields = decode(decoder, encode(encoder, head));
        // To compare is cheap, to expect is not: fifteen thousand times.
        if (unfit !== undefined || fields.join("\0") !== expected.join("\0"))
          expect({ unfit, fields }).toEqual({ fields: expected });
      }
    }
  }),
);

test(
  "random bytes are a list of fields or an error, nothing else",
  seeded((random) => {
    const into = Buffer.alloc(200);
    for (let i = 0; i < 20_000; i++) {
      const decoder = new HpackDecoder(10_000);
      const block = random.bytes(1 + (i % 60));
      try {
        decoder.decode(block, 0, block.length);
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error;
      }
      huffmanDecode(block, 0, block.length, into);
    }
  }),
);
