import { randomBytes } from "node:crypto";
import fc from "../../testkit/property.js";
import { keptPieces, Loans } from "../../src/runtime/sockets/memory.js";
import { ReceiveBuffer } from "../../src/runtime/sockets/receiveBuffer.js";

/**
 * A socket and its receivers, in any order: reads of any length, of which receivers keep some for any time, while the
 * transfer changes its size, ends and begins again. What a receiver keeps never changes.
 */

type Step =
  | { readonly type: "read"; readonly share: number; readonly keeps: boolean; readonly stopped: boolean }
  | { readonly type: "fit"; readonly bytes: number; readonly most: number }
  | { readonly type: "giveBack"; readonly receiver: number }
  | { readonly type: "release" };

const SIZES = [1, 20_000, 32_768, 65_536, 131_072, 1_048_576];
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("read" as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      keeps: fc.boolean(),
      stopped: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("fit" as const),
      bytes: fc.constantFrom(-1, 10_000, 200_000, 1 << 24),
      most: fc.constantFrom(...SIZES.slice(2)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("giveBack" as const), receiver: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("release" as const) }) },
);

interface Piece {
  readonly kept: Buffer;
  readonly sent: Buffer;
}

test.each([false, true])("no read overwrites what a receiver keeps (pieces: %j)", (pieces) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const before = keptPieces();
      const buffer = new ReceiveBuffer(pieces);
      const receivers = [0, 1].map(() => ({ loans: new Loans(), pieces: [] as Piece[] }));
      let into = buffer.first;
      let turn = 0;
      for (const step of steps) {
        if (step.type === "read") {
          // Whoever reads waits for that.
          if (buffer.isKept) continue;
          const sent = randomBytes(1 + Math.floor(step.share * (into.length - 1)));
          sent.copy(into);
          const chunk = buffer.read(sent.length);
          expect(chunk.equals(sent)).toBe(true);
          const { loans, pieces } = receivers[turn++ % 2]!;
          if (step.keeps) pieces.push({ kept: loans.keep(chunk, buffer.memory), sent });
          into = buffer.next(step.stopped) ?? into;
          expect(into.length).toBeGreaterThanOrEqual(16_384);
        } else if (step.type === "fit") buffer.fit(step.bytes, 65_536, step.most);
        else if (step.type === "release") buffer.release();
        else {
          const { loans, pieces } = receivers[step.receiver]!;
          loans.giveBack();
          pieces.length = 0;
        }
        for (const { pieces } of receivers)
          for (const { kept, sent } of pieces) expect(kept.equals(sent)).toBe(true);
      }
      for (const { loans } of receivers) loans.giveBack();
      expect(keptPieces()).toBe(before);
    }),
    { numRuns: 200 },
  );
});
