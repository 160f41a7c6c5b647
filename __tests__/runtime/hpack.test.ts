import { huffmanDecode } from "../../src/runtime/http2/huffman.js";
import { HpackDecoder } from "../../src/runtime/http2/hpackDecoder.js";
import { type AnswerHead, HpackEncoder } from "../../src/runtime/http2/hpackEncoder.js";
import { Outbox } from "../../src/runtime/http2/outbox.js";
import { ConnectionError } from "../../src/runtime/http2/protocol.js";
import { seeded } from "../../proof/kit/random.js";

/** Field compression against the examples of RFC 7541 and against itself. */

const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/ /g, ""), "hex");

function decode(decoder: HpackDecoder, block: Buffer): string[] {
  decoder.decode(block, 0, block.length);
  return decoder.fields.flatMap(({ name, value }) => [name, value]);
}

function encode(encoder: HpackEncoder, head: AnswerHead): Buffer {
  const outbox = new Outbox(
    { write: () => true } as never,
    () => undefined,
    () => undefined,
  );
  encoder.encode(head, outbox);
  return Buffer.from(outbox.buffer.subarray(0, outbox.at));
}

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
  ["index 0", "80"],
  ["an index beyond the table", "be"],
  ["an integer without end", "ff ff ff ff ff ff ff ff ff ff 01"],
  ["an integer that is cut off", "ff 80"],
  ["a string that is cut off", "00 05 61 62"],
  ["a literal without a value", "00 01 61"],
  ["a table size beyond the setting", "3f e2 1f"],
  ["a table size update after a field", "82 20"],
  ["Huffman padding longer than 7 bits", "00 82 1f ff 00"],
  ["Huffman padding of zeros", "00 81 18 00"],
  ["the Huffman code for the end", "00 84 ff ff ff ff 00"],
])("%s is an error", (_what, hex) => {
  expect(() => decode(new HpackDecoder(65_536), bytes(hex))).toThrow(ConnectionError);
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
        server: "portico",
        date: `d${round >> 6}`,
        headers,
        length: random.pick(3) - 1,
      };
      // The same head again is the block that is kept.
      for (let again = 0; again < 3; again++) {
        expect(encoder.check(head)).toBeUndefined();
        const fields = decode(decoder, encode(encoder, head));
        expect(fields).toEqual([
          ...[":status", String(head.status), "server", "portico", "date", head.date],
          ...headers.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text)),
          ...(head.length >= 0 ? ["content-length", String(head.length)] : []),
        ]);
      }
    }
  }),
);

test(
  "random bytes are a list of fields or an error, nothing else",
  seeded((random) => {
    for (let i = 0; i < 20_000; i++) {
      const decoder = new HpackDecoder(10_000);
      const block = random.bytes(1 + (i % 60));
      try {
        decoder.decode(block, 0, block.length);
      } catch (error) {
        expect(error).toBeInstanceOf(ConnectionError);
      }
      huffmanDecode(block, 0, block.length, Buffer.alloc(200));
    }
  }),
);
