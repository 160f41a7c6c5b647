import fc from "../../proof/kit/property.js";
import { ChunkDecoder, ChunkError } from "../../src/runtime/codec/http1/chunkDecoder.js";

/** Where chunks end means nothing (RFC 9112, 7.1), and neither does where reads do: what they cost follows the reads. */

interface Decoded {
  readonly data: string;
  /** Bytes up to the end of the message, or up to the one that breaks it; -1 if there is none of them. */
  readonly end: number;
  readonly fault: boolean;
}

interface Piece {
  readonly read: number;
  readonly from: number;
  readonly to: number;
}

const text = (bytes: Buffer): string => bytes.toString("latin1");

/** Asked for every byte; `expect` would take minutes. */
function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** What comes of the text when it is read in pieces of these sizes, the last one again and again. */
function decoded(message: string, sizes: readonly number[], pieces: Piece[] = []): Decoded {
  const decoder = new ChunkDecoder();
  let data = "";
  let at = 0;
  for (let read = 0; at < message.length; read++) {
    const size = sizes[Math.min(read, sizes.length - 1)]!;
    // Something else comes before and behind what is read.
    const bytes = Buffer.from(`<${message.slice(at, at + size)}`, "latin1");
    const before = Buffer.from(bytes);
    let last = 0;
    const onBytes = (chunk: Buffer, from: number, to: number): void => {
      demand(
        chunk === bytes && from >= Math.max(last, 1) && from < to && to <= bytes.length,
        "no such piece",
      );
      last = to;
      data += chunk.toString("latin1", from, to);
      pieces.push({ read, from: at + from - 1, to: at + to - 1 });
    };
    try {
      const next = decoder.decode(bytes, 1, { onBytes });
      // What is behind the message is not touched.
      demand(bytes.subarray(next).equals(before.subarray(next)), "bytes behind the message changed");
      if (decoder.done) return { data, end: at + next - 1, fault: false };
      demand(next === bytes.length, "bytes are left over");
    } catch (error) {
      if (!(error instanceof ChunkError)) throw error;
      return { data, end: size === 1 ? at : -1, fault: true };
    }
    at += size;
  }
  return { data, end: -1, fault: false };
}

const chunkOf = (data: string, extension = ""): string =>
  `${data.length.toString(16)}${extension}\r\n${data}\r\n`;
const END = "0\r\nT: t\r\n\r\n";

const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9_000 })), {
  minLength: 1,
  maxLength: 20,
});
const body = fc.array(
  fc.record({
    length: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 1, max: 40 }) },
      { weight: 1, arbitrary: fc.integer({ min: 2_040, max: 2_056 }) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 6_000 }) },
    ),
    extension: fc.constantFrom("", "", "", ";a=b"),
  }),
  { maxLength: 40 },
);
/** Every byte of data tells where it belongs. */
const dataOf = (length: number, at: number): string =>
  text(Buffer.from(Array.from({ length }, (_, i) => (at + i) % 251)));

function messageOf(chunks: readonly { length: number; extension: string }[]) {
  let data = "";
  let message = "";
  for (const { length, extension } of chunks) {
    const piece = dataOf(length, data.length);
    data += piece;
    message += chunkOf(piece, extension);
  }
  return { data, message: message + END };
}

test("the same body in any chunks and any reads is the same data", () => {
  fc.assert(
    fc.property(body, sizes, (chunks, reads) => {
      const { data, message } = messageOf(chunks);
      expect(decoded(`${message}NEXT`, reads)).toEqual({ data, end: message.length, fault: false });
    }),
    { numRuns: 100 },
  );
});

test("a fault is found in the same read, and the same data comes before it", () => {
  fc.assert(
    fc.property(body, fc.nat(), fc.nat(255), fc.integer({ min: 1, max: 5_000 }), (chunks, at, byte, size) => {
      const { message } = messageOf(chunks);
      const place = at % message.length;
      const broken = message.slice(0, place) + String.fromCharCode(byte) + message.slice(place + 1);
      const byByte = decoded(broken, [1]);
      const whole = decoded(broken, [broken.length]);
      const inReads = decoded(broken, [size]);
      expect([whole.data, whole.fault]).toEqual([byByte.data, byByte.fault]);
      expect([inReads.data, inReads.fault]).toEqual([byByte.data, byByte.fault]);
      if (!byByte.fault) return;
      // Up to the byte that breaks it there is no fault, in however large a read.
      expect(decoded(broken.slice(0, byByte.end), [broken.length]).fault).toBe(false);
      expect(decoded(broken.slice(0, byByte.end + 1), [broken.length]).fault).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test.each([
  ["1,000 chunks of a byte", Array(1_000).fill(1), 1],
  ["100 chunks of 2 KiB", Array(100).fill(2_048), 1],
  ["chunks of a byte around a large one", [...Array(99).fill(1), 5_000, ...Array(99).fill(1)], 3],
  ["large chunks", Array(10).fill(4_096), 10],
] as const)("%s in a read are few pieces", (_what, lengths, count) => {
  const { message } = messageOf(lengths.map((length) => ({ length, extension: "" })));
  const pieces: Piece[] = [];
  decoded(message, [message.length], pieces);
  expect(pieces).toHaveLength(count);
});

test("a large chunk stays where it was read", () => {
  const large = dataOf(4_096, 0);
  const message = chunkOf("a") + chunkOf("b") + chunkOf(large) + chunkOf("c") + END;
  const pieces: Piece[] = [];
  decoded(message, [message.length], pieces);
  const from = message.indexOf(large);
  expect(pieces[1]).toEqual({ read: 0, from, to: from + large.length });
});

test("what comes before a fault is passed on first, and once", () => {
  const seen: string[] = [];
  const decoder = new ChunkDecoder();
  const bytes = Buffer.from(`${chunkOf("a")}${chunkOf("b")}x`);
  const onBytes = (chunk: Buffer, from: number, to: number): void =>
    void seen.push(text(chunk.subarray(from, to)));
  expect(() => decoder.decode(bytes, 0, { onBytes })).toThrow(ChunkError);
  expect(seen).toEqual(["ab"]);
});
