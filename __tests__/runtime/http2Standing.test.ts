import {
  ACK,
  describeFrame,
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  GET,
  hpack,
  PADDED,
  RawClient,
  cancel,
  uint32,
  windowUpdate,
} from "../../testkit/http2RawClient.js";
import { type Http2Server, KeepingSink, respond, startHttp2Server } from "../../testkit/http2Server.js";

/**
 * Every frame on streams that are not open, in every state of the connection (RFC 9113, 5.1 and 6.8): what it may end
 * is the stream, the connection, or nothing.
 */

/** Drains each of its connections from the start: as long as the client does not acknowledge its PING, all is served. */
let draining: Http2Server;
let serving: Http2Server;

beforeAll(async () => {
  [serving, draining] = (await Promise.all([0, 1].map(() => startHttp2Server({ actions })))) as [
    Http2Server,
    Http2Server,
  ];
  draining.connections.drain();
});
afterAll(() => Promise.all([serving.close(), draining.close()]));

const actions: Parameters<typeof startHttp2Server>[0]["actions"] = {
  "/": (exchange) => {
    if (exchange.request.method === "GET") return respond(exchange, 200);
    const sink = new KeepingSink();
    sink.onDone = () => respond(exchange, 200, sink.body);
    exchange.readBody(sink);
  },
};

const PRIORITY_UPDATE = 0x10;
const UNKNOWN = 0x42;
const put = hpack(GET.map(([name, value]) => [name, name === ":method" ? "PUT" : value] as const));
const priority = (dependency: number): Buffer => Buffer.concat([uint32(dependency), Buffer.of(1)]);
const headers = (stream: number, block: Buffer, flags = 0): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | flags, stream, block);
const data = (stream: number, bytes: string, flags = 0): Buffer => frame(Frame.DATA, flags, stream, bytes);

/** The upload that runs all the time, and what came before the frame in question. */
const RUNNING = 1;
const RESET = 3;
const ENDED = 5;
const SKIPPED = 7;
const LAST = 9;
const LATER = 11;
const OURS = 2;
const HISTORY = [
  headers(RUNNING, put),
  headers(RESET, hpack(GET.slice(1)), END_STREAM),
  headers(ENDED, hpack(GET), END_STREAM),
  headers(LAST, hpack(GET), END_STREAM),
];
const TOLD_BEFORE = ["RST PROTOCOL_ERROR 3", "200 5", "200 9"];

const STATES = ["open", "draining", "closing"] as const;
type State = (typeof STATES)[number];
const serverOf = (state: State): Http2Server => (state === "open" ? serving : draining);

/** A client with that history, on a connection in that state. */
async function connected(state: State): Promise<RawClient> {
  const client = await RawClient.connect(serverOf(state).port);
  client.socket.write(Buffer.concat(HISTORY));
  if (state !== "open") {
    const { payload } = (await client.next((f) => f.type === Frame.PING && f.flags === 0))!;
    if (state === "closing") {
      client.send(Frame.PING, ACK, 0, payload);
      await client.next((f) => f.type === Frame.GOAWAY && f.payload.readUInt32BE(0) === LAST);
    }
  }
  return client;
}

const MARK = "is over.";
const isMark = (f: { type: number; payload: Buffer }): boolean =>
  f.type === Frame.PING && f.payload.toString() === MARK;
const failed = (f: { type: number; payload: Buffer }): boolean =>
  f.type === Frame.GOAWAY && f.payload.readUInt32BE(4) !== 0;

/** What the server says to frames behind that history; the upload must go on as long as the connection does. */
async function said(state: State, ...frames: readonly Buffer[]): Promise<string[]> {
  const client = await connected(state);
  client.socket.write(Buffer.concat([...frames, frame(Frame.PING, 0, 0, MARK)]));
  const end = await client.next((f) => failed(f) || isMark(f));
  const alive = end !== undefined && isMark(end);
  if (alive && !client.frames.some((f) => f.type === Frame.RST_STREAM && f.stream === RUNNING)) {
    client.send(Frame.DATA, END_STREAM, RUNNING, "whole");
    await client.next((f) => f.stream === RUNNING && (f.flags & END_STREAM) !== 0);
  }
  client.destroy();
  const told = client.frames.filter(
    (f) => f.type === Frame.HEADERS || f.type === Frame.RST_STREAM || failed(f),
  );
  const words = told.map((f) => (failed(f) ? describeFrame(f) : `${describeFrame(f)} ${f.stream}`));
  const rest = words.slice(TOLD_BEFORE.length);
  // The response of the upload is the proof that the connection lives.
  if (rest.at(-1) === "200 1") return rest.slice(0, -1);
  return alive ? rest : ["GOAWAY " + rest.at(-1)!.split(" ")[1]!];
}

const NOTHING = "";
const FORBIDDEN = "GOAWAY PROTOCOL_ERROR";
const CLOSED = "RST STREAM_CLOSED";
const SIZE = "GOAWAY FRAME_SIZE_ERROR";

interface Row {
  readonly on: (stream: number) => Buffer;
  readonly reset: string;
  readonly ended: string;
  readonly skipped: string;
  /** Above the last stream: before the last GOAWAY, and behind it. */
  readonly idle: string;
  readonly refused: string;
  readonly ours: string;
}
const everywhere = (told: string): Omit<Row, "on"> => ({
  reset: told,
  ended: told,
  skipped: told,
  idle: told,
  refused: told,
  ours: told,
});
const DATA = {
  reset: NOTHING,
  ended: CLOSED,
  skipped: CLOSED,
  idle: FORBIDDEN,
  refused: NOTHING,
  ours: FORBIDDEN,
};
const HEADERS = {
  reset: NOTHING,
  ended: "GOAWAY STREAM_CLOSED",
  skipped: FORBIDDEN,
  idle: "200",
  refused: NOTHING,
  ours: FORBIDDEN,
};
const LATE = { ...everywhere(NOTHING), idle: FORBIDDEN, ours: FORBIDDEN };

const FRAMES: Readonly<Record<string, Row>> = {
  DATA: { on: (id) => data(id, "x"), ...DATA },
  "a long DATA frame": { on: (id) => data(id, "x".repeat(16_384)), ...DATA },
  "the end of a body": { on: (id) => data(id, "", END_STREAM), ...DATA },
  "DATA of nothing but padding": { on: (id) => data(id, "\x02\0\0", PADDED), ...DATA },
  HEADERS: { on: (id) => headers(id, hpack(GET), END_STREAM), ...HEADERS },
  "HEADERS in two frames": {
    on: (id) =>
      Buffer.concat([
        frame(Frame.HEADERS, END_STREAM, id, hpack(GET).subarray(0, 9)),
        frame(Frame.CONTINUATION, END_HEADERS, id, hpack(GET).subarray(9)),
      ]),
    ...HEADERS,
  },
  trailers: {
    on: (id) => headers(id, hpack([["x", "1"]]), END_STREAM),
    ...HEADERS,
    idle: "RST PROTOCOL_ERROR",
  },
  "HEADERS that depend on themselves": {
    on: (id) => headers(id, Buffer.concat([priority(id), hpack(GET)]), END_STREAM | 0x20),
    ...HEADERS,
    idle: "RST PROTOCOL_ERROR",
  },
  PRIORITY: { on: (id) => frame(Frame.PRIORITY, 0, id, priority(RUNNING)), ...everywhere(NOTHING) },
  "PRIORITY of a stream on itself": {
    on: (id) => frame(Frame.PRIORITY, 0, id, priority(id)),
    ...everywhere(NOTHING),
    ended: "RST PROTOCOL_ERROR",
    skipped: "RST PROTOCOL_ERROR",
    idle: FORBIDDEN,
    ours: FORBIDDEN,
  },
  "PRIORITY of 4 bytes": {
    on: (id) => frame(Frame.PRIORITY, 0, id, uint32(0)),
    ...everywhere(NOTHING),
    ended: "RST FRAME_SIZE_ERROR",
    skipped: "RST FRAME_SIZE_ERROR",
    idle: SIZE,
    ours: SIZE,
  },
  RST_STREAM: { on: cancel, ...LATE },
  "RST_STREAM of 3 bytes": { on: (id) => frame(Frame.RST_STREAM, 0, id, "\0\0\0"), ...everywhere(SIZE) },
  WINDOW_UPDATE: { on: (id) => windowUpdate(id, 65_535), ...LATE },
  "WINDOW_UPDATE of 0": { on: (id) => windowUpdate(id, 0), ...LATE },
  "more WINDOW_UPDATE than a window can hold": {
    on: (id) => Buffer.concat([windowUpdate(id, 0x7fff_ffff), windowUpdate(id, 0x7fff_ffff)]),
    ...LATE,
  },
  PRIORITY_UPDATE: {
    on: (id) => frame(PRIORITY_UPDATE, 0, 0, Buffer.concat([uint32(id), Buffer.from("u=1")])),
    ...everywhere(NOTHING),
  },
  "a frame of no known type": { on: (id) => frame(UNKNOWN, 0xff, id, "x"), ...everywhere(NOTHING) },
};

const told = (words: string, stream: number): string[] =>
  words === NOTHING ? [] : [words.startsWith("GOAWAY") ? words : `${words} ${stream}`];

describe.each(STATES)("on a connection that is %s", (state) => {
  test.each(Object.entries(FRAMES))("%s", async (_name, row) => {
    const above = state === "closing" ? row.refused : row.idle;
    const cases = [
      [RESET, row.reset],
      [ENDED, row.ended],
      [SKIPPED, row.skipped],
      [LATER, above],
      [OURS, row.ours],
    ] as const;
    const seen = await Promise.all(cases.map(([stream]) => said(state, row.on(stream))));
    expect(Object.fromEntries(seen.map((words, i) => [cases[i]![0], words]))).toEqual(
      Object.fromEntries(cases.map(([stream, words]) => [stream, told(words, stream)])),
    );
  });
});

test("on a connection that has ended, whatever comes is dropped: the client reads its response to the end", async () => {
  const client = await connected("closing");
  client.send(Frame.DATA, END_STREAM, RUNNING, "whole");
  await client.next((f) => f.stream === RUNNING && (f.flags & END_STREAM) !== 0);
  const before = client.frames.length;
  let broken = false;
  client.socket.on("error", () => (broken = true));
  for (const { on } of Object.values(FRAMES))
    for (const stream of [RUNNING, RESET, ENDED, SKIPPED, LATER, OURS]) client.socket.write(on(stream));
  client.socket.end();
  await client.whenClosed();
  expect([broken, client.frames.length - before]).toEqual([false, 0]);
});

describe("behind the last GOAWAY", () => {
  test("fields that a refused head brings into the table are known to those that are served", async () => {
    // With incremental indexing (RFC 7541, 6.2.1): the first entry of the table, which trailers then name.
    const indexed = Buffer.concat([hpack(GET), Buffer.from("\x40\x03x-a\x01b", "latin1")]);
    const trailers = headers(RUNNING, Buffer.of(0x80 | 62), END_STREAM);
    expect(await said("closing", headers(LATER, indexed), trailers)).toEqual([]);
    const split = [
      frame(Frame.HEADERS, 0, LATER, indexed.subarray(0, 20)),
      frame(Frame.CONTINUATION, END_HEADERS, LATER, indexed.subarray(20)),
    ];
    expect(await said("closing", ...split, trailers)).toEqual([]);
    expect(await said("closing", trailers)).toEqual(["GOAWAY COMPRESSION_ERROR"]);
  });

  const MIB = 1_048_576;
  const full = (stream: number, count: number): Buffer[] =>
    Array<Buffer>(count).fill(data(stream, "x".repeat(16_384)));

  test("DATA that is refused counts against the connection's window, and is given back", async () => {
    const client = await connected("closing");
    const before = client.frames.length;
    const credits = (): number[] =>
      client.frames
        .slice(before)
        .filter((f) => f.type === Frame.WINDOW_UPDATE && f.stream === 0)
        .map((f) => f.payload.readUInt32BE(0));
    // A hundred windows, on streams of which the client ended some and cancelled others.
    for (let round = 0; round < 16; round++) {
      const stream = LATER + 2 * round;
      client.socket.write(
        Buffer.concat([headers(stream, put), ...full(stream, 256), data(stream, "", round & 1)]),
      );
      if (round % 4 === 0) client.socket.write(cancel(stream));
    }
    client.send(Frame.PING, 0, 0, MARK);
    await client.next((f) => isMark(f) || failed(f));
    expect(credits()).toEqual(Array<number>(512).fill(MIB / 8));
    client.destroy();
  });

  const IGNORED: readonly (readonly [what: string, frame: Buffer])[] = [
    ["HEADERS", headers(LATER, hpack(GET), END_STREAM)],
    ["DATA of a few bytes", data(LATER, "x")],
    ["ends of bodies", data(LATER, "", END_STREAM)],
    ["RST_STREAM", cancel(LATER)],
    ["WINDOW_UPDATE", windowUpdate(LATER, 65_535)],
    ["PRIORITY", frame(Frame.PRIORITY, 0, LATER, priority(LATER))],
    ["frames of no known type", frame(UNKNOWN, 0, LATER, "")],
  ];
  test.each(IGNORED)("15,000 %s are ignored, 50,000 in a second are a flood", async (_what, one) => {
    expect(await said("closing", ...Array<Buffer>(15_000).fill(one))).toEqual([]);
    const flood = (count: number): Promise<string[]> =>
      said("closing", Buffer.concat(Array<Buffer>(count).fill(one)));
    // They are counted by the second, and a busy machine takes longer for so many.
    let words = await flood(50_000);
    for (const count of [150_000, 500_000]) if (words.length === 0) words = await flood(count);
    expect(words).toEqual(["GOAWAY ENHANCE_YOUR_CALM"]);
  });

  test("250 empty DATA frames that end nothing are a flood as well", async () => {
    const empty = data(LATER, "");
    expect(await said("closing", ...Array<Buffer>(150).fill(empty))).toEqual([]);
    expect(await said("closing", ...Array<Buffer>(250).fill(empty))).toEqual(["GOAWAY ENHANCE_YOUR_CALM"]);
  });
});

describe("streams that were refused because they were too many", () => {
  const COUNT = 700;
  const ids = Array.from({ length: COUNT }, (_, i) => LATER + 2 * i);
  /** All of it was sent before the client could know of the limit. */
  const bodies: Readonly<Record<string, (stream: number) => Buffer>> = {
    "a body": (id) => data(id, "x"),
    "the end of a body": (id) => data(id, "", END_STREAM),
    trailers: (id) => headers(id, hpack([["x", "1"]]), END_STREAM),
    "a cancellation": (id) => cancel(id),
  };

  test.each(Object.entries(bodies))("cost nothing else, however many: each with %s", async (_what, rest) => {
    const opened = ids.map((id) => headers(id, put));
    const refused = await said("open", ...opened, ...ids.slice(127).map(rest));
    expect(refused.filter((words) => !words.startsWith("RST REFUSED_STREAM"))).toEqual([]);
    expect(refused).toHaveLength(COUNT - 127);
  });
});

test("resets are remembered behind any number of streams that end", async () => {
  const others = Array.from({ length: 2_000 }, (_, i) => headers(LATER + 2 * i, hpack(GET), END_STREAM));
  const late = [headers(RESET, hpack([["x", "1"]]), END_STREAM), data(RESET, "x"), windowUpdate(RESET, 0)];
  expect(new Set(await said("open", ...others, ...late))).toEqual(
    new Set(Array.from({ length: 2_000 }, (_, i) => `200 ${LATER + 2 * i}`)),
  );
});
