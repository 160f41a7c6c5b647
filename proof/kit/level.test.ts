import { type Level, more } from "./level.js";

/** What a law of conservation says of two looks at a front end. */
const NONE = {
  clientConnections: 0,
  clients: 0,
  exchanges: 0,
  exchangesBegun: 5,
  exchangesOver: 5,
  bytesForNobody: 100,
  http2Streams: 0,
  upstreamConnections: 0,
  upstreamConnectionsInUse: 0,
  queuedRequests: 0,
  openFiles: 0,
  lentBytes: 0,
  lentWindowBytes: 0,
  sweptItems: 3,
  resources: 4,
};
const before: Level = { workers: [7], descriptors: ["socket:[#]", "/log", "/log"], holdings: NONE };
const held = (holdings: Partial<typeof NONE>): Level => ({ ...before, holdings: { ...NONE, ...holdings } });

test.each<[string, Level, readonly unknown[]]>([
  ["the same", before, []],
  ["more that was counted, and is over", held({ exchangesBegun: 9, exchangesOver: 9 }), []],
  ["less", { ...held({ sweptItems: 2 }), descriptors: ["/log"] }, []],
  ["another worker in place of one", { ...before, workers: [8] }, []],
  ["another descriptor in place of one", { ...before, descriptors: ["/a", "/log", "/log"] }, []],
  ["a place in a queue", held({ queuedRequests: 1 }), ["law: kept: queuedRequests 1, before 0"]],
  ["a file that was closed twice", held({ openFiles: -1 }), ["law: less than none: openFiles -1"]],
  [
    "a request that is not over",
    held({ exchangesBegun: 6 }),
    ["law: of the requests that began, not over: 1"],
  ],
  [
    "a piece for each client that left",
    held({ exchangesBegun: 7, exchangesOver: 7, bytesForNobody: 7 * 1_048_576 }),
    [],
  ],
  [
    "a file that was read on",
    held({ exchangesBegun: 7, exchangesOver: 7, bytesForNobody: 7 * 1_048_576 + 1 }),
    ["law: bytes read for nobody: 7340033, of 7 requests"],
  ],
  ["an old worker", { ...before, workers: [7, 8] }, ["law: kept: workers 2, before 1"]],
  [
    "a descriptor",
    { ...before, descriptors: [...before.descriptors, "/file"] },
    ["law: kept: descriptors 4, before 3: /file"],
  ],
])("%s", (_what, now, expected) => {
  expect(more(now, before)).toEqual(expected);
});
