import { WebSocketFrames } from "../../src/runtime/actions/tunnel.js";
import fc from "../../testkit/property.js";

/** Frames as RFC 6455, 5.2 writes them, cut into pieces anywhere: where one ends is known at each byte. */

interface Framed {
  readonly bytes: number;
  readonly masked: boolean;
}

function frame({ bytes, masked }: Framed): Buffer {
  const mask = masked ? 0x80 : 0;
  const head =
    bytes < 126
      ? Buffer.from([0x82, mask | bytes])
      : bytes < 65_536
        ? Buffer.from([0x82, mask | 126, bytes >> 8, bytes & 0xff])
        : Buffer.from([0x82, mask | 127, 0, 0, 0, 0, 0, bytes >> 16, (bytes >> 8) & 0xff, bytes & 0xff]);
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0, 0xff), Buffer.alloc(bytes, 0x81)]);
}

const frames = fc.array(
  fc.record({
    bytes: fc.oneof(
      fc.nat(300),
      fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536, 70_000),
      fc.integer({ min: 65_000, max: 66_000 }),
    ),
    masked: fc.boolean(),
  }),
  { maxLength: 6 },
);

/** Lengths of pieces, of which the last takes the rest. */
const cuts = fc.array(fc.oneof(fc.constantFrom(1, 2, 3), fc.nat(80_000)), { maxLength: 30 });

test("it is between two frames exactly where one has ended", () => {
  fc.assert(
    fc.property(frames, cuts, (framed, pieces) => {
      const all = framed.map(frame);
      const text = Buffer.concat(all);
      let end = 0;
      const ends = new Set([0, ...all.map(({ length }) => (end += length))]);
      const followed = new WebSocketFrames();
      let at = 0;
      for (const piece of [...pieces, text.length]) {
        followed.advance(text.subarray(at, at + piece));
        at = Math.min(text.length, at + piece);
        expect([at, followed.between]).toEqual([at, ends.has(at)]);
      }
    }),
  );
});

test("the end of a frame is found in the piece that has it", () => {
  fc.assert(
    fc.property(frames, cuts, fc.nat(200_000), (framed, pieces, from) => {
      const all = framed.map(frame);
      const text = Buffer.concat(all);
      const start = Math.min(from, text.length);
      let end = 0;
      const next = [0, ...all.map(({ length }) => (end += length))].find((one) => one >= start)!;
      const followed = new WebSocketFrames();
      followed.advance(text.subarray(0, start));
      let at = start;
      for (const piece of [...pieces, text.length]) {
        const found = followed.advanceToEnd(text.subarray(at, at + piece));
        if (found !== -1) return expect(at + found).toBe(next);
        at = Math.min(text.length, at + piece);
      }
      throw new Error("no end was found");
    }),
  );
});
