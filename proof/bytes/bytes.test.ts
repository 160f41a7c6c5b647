import { PIECES, WITHOUT } from "../../src/runtime/sockets/node/pieces.js";
import { SEED } from "../../testkit/random.js";
import { CELLS, CLIENTS, nameOf, smaller } from "./case.js";
import { caseAt, ROUND } from "./generate.js";
import { Pool } from "./pool.js";
import { Proxy } from "./proxy.js";
import { search } from "./search.js";
import { SIZES } from "./sizes.js";
import { Receiver } from "./transfer.js";

const casesOf = (round: number) => Array.from({ length: ROUND }, (_, i) => caseAt(SEED, round * ROUND + i));
const exchangesOf = (round: number) => casesOf(round).flatMap(({ exchanges }) => exchanges);

describe("the matrix", () => {
  test("has every way once in each round, and each way has every size in time", () => {
    const sizes = new Map<string, Set<number>>();
    for (const round of SIZES.keys()) {
      const exchanges = exchangesOf(round);
      expect(exchanges.map(nameOf).sort()).toEqual(CELLS.map(nameOf).sort());
      for (const exchange of exchanges) {
        const { up, down } = exchange;
        const seen = sizes.get(nameOf(exchange)) ?? new Set();
        sizes.set(nameOf(exchange), seen.add(up).add(down));
      }
    }
    for (const [name, seen] of sizes)
      expect([name, SIZES.filter((size) => !seen.has(size))]).toEqual([name, []]);
  });

  test("deals a case by its seed and number alone, to one kind of client", () => {
    expect(caseAt(SEED, 345)).toEqual(caseAt(SEED, 345));
    expect(caseAt(SEED + 1, 345)).not.toEqual(caseAt(SEED, 345));
    for (const { client, exchanges } of casesOf(0))
      expect(exchanges.every((exchange) => exchange.client === client)).toBe(true);
    expect(new Set(casesOf(0).map(({ client }) => client)).size).toBe(CLIENTS.length);
  });

  test("makes a case that fails smaller, to the end", () => {
    let played = { copies: 12, one: caseAt(SEED, 0) };
    for (let steps = 0; steps < 1_000; steps++) {
      const [less] = smaller(played);
      if (less === undefined) break;
      played = less;
    }
    expect([played.copies, played.one.exchanges.length, [...smaller(played)]]).toEqual([1, 1, []]);
  });
});

describe("a receiver", () => {
  const pool = new Pool(SEED);
  const received = (...chunks: Buffer[]): Receiver => {
    const receiver = new Receiver("download", pool.part(1_000, 500), 1_000, pool);
    for (const chunk of chunks) receiver.take(chunk);
    return receiver;
  };
  const ended = (receiver: Receiver): Receiver => Object.assign(receiver, { ended: true });

  test.each<[string, Receiver, string[]]>([
    ["has all", ended(received(pool.part(1_000, 200), pool.part(1_200, 300))), []],
    ["has no end", received(pool.part(1_000, 500)), ["download: all 500 bytes, but no end"]],
    ["has a part", ended(received(pool.part(1_000, 200))), ["download: cut after 200 of 500 bytes"]],
    [
      "has later bytes in place of earlier ones",
      ended(received(pool.part(1_000, 200), pool.part(1_300, 300))),
      ["download: of 500 bytes wrong from byte 200 on: bytes of its byte 300"],
    ],
    [
      "has bytes of another one",
      ended(received(pool.part(9_000, 500))),
      ["download: of 500 bytes wrong from byte 0 on: bytes of another body"],
    ],
    ["has too much", ended(received(pool.part(1_000, 501))), ["download: 501 bytes, of 500 that were sent"]],
    ["left, with a part", Object.assign(received(pool.part(1_000, 200)), { left: true }), []],
    [
      "left, with wrong bytes",
      Object.assign(received(pool.part(1_100, 200)), { left: true }),
      ["download: of 500 bytes wrong from byte 0 on: bytes of its byte 100"],
    ],
  ])("that %s", (_, receiver, faults) => {
    expect(receiver.faults).toEqual(faults);
  });
});

/** Rounds of the matrix. `npm run bytes` plays more. */
describe("every byte through the proxy is the one that was sent", () => {
  const given = process.env[WITHOUT];
  const [, ...others] = Object.keys(PIECES);
  test.each<[string, number, string | undefined]>(
    given === undefined
      ? [
          ["with all parts of Node", 3, undefined],
          ["without Node's inner parts", 1, "all"],
          // Another one in each commit.
          ["without one of them", 1, others[SEED % others.length]],
        ]
      : [[`without ${given}`, 2, undefined]],
  )("%s", async (_, rounds, without) => {
    const proxy = await Proxy.start(SEED, without);
    try {
      const exchanges = rounds * CELLS.length;
      const { findings } = await search(proxy, { seed: SEED, exchanges, findingsMax: 10 });
      expect(
        findings.map(({ number, faults }) => [`PORTICO_SEED=${SEED} --case ${number}`, ...faults]),
      ).toEqual([]);
    } finally {
      await proxy.stop();
    }
  });
});
