import type { BodySink, Exchange } from "../../../src/runtime/exchange/exchange.js";
import { HeldBody } from "../../../src/runtime/logIns/heldBody.js";
import { TRANSIENT } from "../../../src/runtime/sockets/memory.js";

/** A client chooses the pieces in which a body comes, and over HTTP/2 a piece may have one byte. */

const PIECES = 16_000;
const BODIES = 100;

test("bodies in pieces of one byte take no more memory than in one", () => {
  const piece = Buffer.from("x");
  const before = process.memoryUsage();
  const held = Array.from({ length: BODIES }, () => {
    let sink: BodySink | undefined;
    const exchange = { hold: () => true, readBody: (reader: BodySink) => (sink = reader) };
    new HeldBody(exchange as unknown as Exchange, () => undefined).begin();
    for (let i = 0; i < PIECES; i++) sink!.onData(piece, TRANSIENT);
    return sink;
  });
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const bytes = heapUsed - before.heapUsed + (arrayBuffers - before.arrayBuffers);
  expect(held).toHaveLength(BODIES);
  // As objects of their own they took 100 bytes each.
  expect(bytes).toBeLessThan(BODIES * PIECES * 20);
});
