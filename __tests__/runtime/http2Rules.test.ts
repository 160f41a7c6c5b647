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
  PREFACE,
  PRIORITY,
  RawClient,
  cancel,
  setting,
  uint32,
  windowUpdate,
} from "../../testkit/http2RawClient.js";
import { type Http2Server, KeepingSink, respond, startHttp2Server } from "../../testkit/http2Server.js";
import { randomBody } from "../../testkit/random.js";
import { eventually, settled } from "../../testkit/waiting.js";

/** The rules for frames (RFC 9113, 5 and 6), one by one: what breaks them, what just does not, and what that costs. */

let server: Http2Server;

beforeAll(async () => {
  server = await startHttp2Server({
    config: { limits: { keepAliveRequestsMax: 100_000 } },
    actions: {
      "/": (exchange) => {
        const { method } = exchange.request;
        // Gets no response.
        if (method === "HOLD") return;
        if (exchange.request.path === "/bad") return respond(exchange, 200, "body", ["bad name", "x"]);
        if (exchange.request.path === "/long")
          return respond(exchange, 200, "", ["X-Long", "y".repeat(1_000)]);
        if (method === "GET") return respond(exchange, 200);
        const sink = new KeepingSink();
        sink.onDone = () => respond(exchange, 200);
        sink.read(exchange);
      },
    },
  });
});
afterAll(() => server.close());

const LAST = "the end!";
const STREAMS_MAX = 128;
const MIB = 1_048_576;

/** What the server says to these frames: heads, resets and the end of the connection, until it acknowledges the last frame. */
async function said(...frames: readonly Buffer[]): Promise<string[]> {
  const client = await RawClient.connect(server.port, false);
  client.socket.write(Buffer.concat([PREFACE, ...frames, frame(Frame.PING, 0, 0, LAST)]));
  await client.next(
    (f) => f.type === Frame.GOAWAY || (f.type === Frame.PING && f.payload.toString() === LAST),
  );
  client.destroy();
  const told = client.frames.filter(({ type }) =>
    ([Frame.HEADERS, Frame.RST_STREAM, Frame.GOAWAY] as number[]).includes(type),
  );
  return told.map((f) => (f.type === Frame.GOAWAY ? describeFrame(f) : `${describeFrame(f)} ${f.stream}`));
}

const SETTINGS = frame(Frame.SETTINGS, 0, 0, "");
const fieldsOf = (method: string) =>
  GET.map(([name, value]) => [name, name === ":method" ? method : value] as const);
const block = (method: string): Buffer => hpack(fieldsOf(method));
const head = (stream: number, method: string, flags = 0): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | flags, stream, block(method));
const get = (stream: number): Buffer => head(stream, "GET", END_STREAM);
/** A request that this server resets. */
const malformed = (stream: number): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | END_STREAM, stream, hpack([...GET, ["connection", "x"]]));
const trailers = (stream: number, name: string, flags = END_STREAM): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | flags, stream, hpack([[name, "1"]]));
const priority = (stream: number, dependency: number, length = 5): Buffer =>
  frame(Frame.PRIORITY, 0, stream, uint32(dependency, 0).subarray(0, length));
/** A head with padding or a priority before its block. */
const dressed = (flags: number, before: Buffer, after = Buffer.alloc(0), of = block("GET")): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | END_STREAM | flags, 1, Buffer.concat([before, of, after]));
const depends = (on: number): Buffer => uint32(on, 0).subarray(0, 5);
const NONE = Buffer.alloc(0);

/** With the reason in the error log, if the connection ends. */
type Row = readonly [what: string, frames: readonly Buffer[], said: readonly string[], reason?: string];
const PROTOCOL = ["GOAWAY PROTOCOL_ERROR"];
const SIZE = ["GOAWAY FRAME_SIZE_ERROR"];
const FLOW = ["GOAWAY FLOW_CONTROL_ERROR"];

const DATA: readonly Row[] = [
  ["on stream 0", [frame(Frame.DATA, 0, 0, "x")], PROTOCOL, "DATA on stream 0"],
  [
    "on an idle stream",
    [get(1), frame(Frame.DATA, 0, 3, "x")],
    ["200 1", ...PROTOCOL],
    "DATA on an idle stream",
  ],
  [
    "on a stream of ours",
    [get(3), frame(Frame.DATA, 0, 2, "x")],
    ["200 3", ...PROTOCOL],
    "DATA on an idle stream",
  ],
  ["on a closed stream", [get(1), frame(Frame.DATA, 0, 1, "x")], ["200 1", "RST STREAM_CLOSED 1"]],
  [
    "on a closed stream, again",
    [get(1), frame(Frame.DATA, 0, 1, "x"), frame(Frame.DATA, 0, 1, "x")],
    ["200 1", "RST STREAM_CLOSED 1"],
  ],
  [
    "on a stream whose request has ended",
    [head(1, "HOLD", END_STREAM), frame(Frame.DATA, 0, 1, "x")],
    ["RST STREAM_CLOSED 1"],
  ],
  ["on a stream that was reset", [malformed(1), frame(Frame.DATA, 0, 1, "x")], ["RST PROTOCOL_ERROR 1"]],
  [
    "without its pad length",
    [head(1, "PUT"), frame(Frame.DATA, PADDED, 1, "")],
    SIZE,
    "padded DATA frame without a pad length",
  ],
  [
    "with more padding than payload",
    [head(1, "PUT"), frame(Frame.DATA, PADDED, 1, "\x02x")],
    PROTOCOL,
    "DATA frame with more padding than payload",
  ],
  ["that ends a request", [head(1, "PUT"), frame(Frame.DATA, END_STREAM, 1, "x")], ["200 1"]],
];

const HEADERS: readonly Row[] = [
  ["on stream 0", [get(0)], PROTOCOL, "HEADERS on a stream that is not a client's"],
  ["on a stream of ours", [get(2)], PROTOCOL, "HEADERS on a stream that is not a client's"],
  [
    "on a stream below the last",
    [get(5), get(3)],
    ["200 5", ...PROTOCOL],
    "HEADERS on a lower stream than before",
  ],
  ["on a closed stream", [get(1), get(1)], ["200 1", "GOAWAY STREAM_CLOSED"], "HEADERS on a closed stream"],
  ["on a stream that was reset", [malformed(1), get(1), get(3)], ["RST PROTOCOL_ERROR 1", "200 3"]],
  [
    "on a stream that was refused, as it was one too many",
    [
      ...Array.from({ length: STREAMS_MAX }, (_, i) => head(1 + 2 * i, "HOLD", END_STREAM)),
      get(257),
      get(257),
    ],
    ["RST REFUSED_STREAM 257"],
  ],
  ["with padding", [dressed(PADDED, Buffer.of(3), Buffer.alloc(3))], ["200 1"]],
  [
    "with padding and priority",
    [dressed(PADDED | PRIORITY, Buffer.from([2, 0, 0, 0, 0, 9]), Buffer.alloc(2))],
    ["200 1"],
  ],
  ["of padding alone", [dressed(PADDED, Buffer.of(2), Buffer.alloc(2), NONE)], ["RST PROTOCOL_ERROR 1"]],
  ["of a pad length alone", [dressed(PADDED, Buffer.of(0), NONE, NONE)], ["RST PROTOCOL_ERROR 1"]],
  [
    "with more padding than payload",
    [dressed(PADDED, Buffer.of(3), Buffer.alloc(2), NONE)],
    PROTOCOL,
    "HEADERS with more padding than payload",
  ],
  ["without the pad length", [dressed(PADDED, NONE, NONE, NONE)], SIZE, "HEADERS of wrong length"],
  [
    "of a block that is none",
    [frame(Frame.HEADERS, END_HEADERS, 1, "\x80")],
    ["GOAWAY COMPRESSION_ERROR"],
    "invalid field block: index 0",
  ],
  [
    "of too many frames",
    [frame(Frame.HEADERS, END_STREAM, 1, ""), ...Array<Buffer>(32).fill(frame(Frame.CONTINUATION, 0, 1, ""))],
    ["GOAWAY ENHANCE_YOUR_CALM"],
    "field block is too long",
  ],
  ["with priority", [dressed(PRIORITY, depends(0))], ["200 1"]],
  ["of a priority alone", [dressed(PRIORITY, depends(0), NONE, NONE)], ["RST PROTOCOL_ERROR 1"]],
  ["with half a priority", [dressed(PRIORITY, Buffer.alloc(4), NONE, NONE)], SIZE, "HEADERS of wrong length"],
  ["that depend on another stream", [dressed(PRIORITY, depends(3))], ["200 1"]],
  ["that depend on themselves", [dressed(PRIORITY, depends(1))], ["RST PROTOCOL_ERROR 1"]],
  ["that depend on themselves alone", [dressed(PRIORITY, depends(0x8000_0001))], ["RST PROTOCOL_ERROR 1"]],
  ["of a method that is refused", [head(1, "TRACE", END_STREAM)], ["405 1"]],
  [
    "of a method that is refused, that depend on themselves",
    [dressed(PRIORITY, depends(1), NONE, block("TRACE"))],
    ["RST PROTOCOL_ERROR 1"],
  ],
  [
    "that depend on themselves, in two frames",
    [
      frame(Frame.HEADERS, END_STREAM | PRIORITY, 1, depends(1)),
      frame(Frame.CONTINUATION, END_HEADERS, 1, block("GET")),
      get(3),
    ],
    ["RST PROTOCOL_ERROR 1", "200 3"],
  ],
  [
    "in three frames",
    [
      frame(Frame.HEADERS, END_STREAM, 1, block("GET").subarray(0, 5)),
      frame(Frame.CONTINUATION, 0, 1, block("GET").subarray(5, 6)),
      frame(Frame.CONTINUATION, END_HEADERS, 1, block("GET").subarray(6)),
      get(3),
    ],
    ["200 1", "200 3"],
  ],
];

const TRAILERS: readonly Row[] = [
  ["are dropped", [head(1, "PUT"), trailers(1, "x")], ["200 1"]],
  ["may be fields that requests know", [head(1, "PUT"), trailers(1, "cookie")], ["200 1"]],
  ["may be a field of framing", [head(1, "PUT"), trailers(1, "content-length")], ["200 1"]],
  ["that do not end the request", [head(1, "PUT"), trailers(1, "x", 0)], ["RST PROTOCOL_ERROR 1"]],
  ["with a pseudo-field", [head(1, "PUT"), trailers(1, ":protocol")], ["RST PROTOCOL_ERROR 1"]],
  ["with a field of the connection", [head(1, "PUT"), trailers(1, "upgrade")], ["RST PROTOCOL_ERROR 1"]],
  ["behind the end of the request", [head(1, "HOLD", END_STREAM), trailers(1, "x")], ["RST STREAM_CLOSED 1"]],
  [
    "that are too long",
    [
      head(1, "PUT"),
      frame(Frame.HEADERS, END_STREAM, 1, ""),
      ...[0, 1, 2].map((i) =>
        frame(Frame.CONTINUATION, i === 2 ? END_HEADERS : 0, 1, hpack([["x", "y".repeat(15_000)]])),
      ),
    ],
    ["RST PROTOCOL_ERROR 1"],
  ],
];

const OTHERS: readonly Row[] = [
  ["PRIORITY", [priority(1, 0), get(3), priority(3, 1), priority(5, 0x8000_0001)], ["200 3"]],
  ["PRIORITY on stream 0", [priority(0, 1)], PROTOCOL, "PRIORITY on stream 0"],
  ["PRIORITY of 4 bytes", [priority(1, 0, 4)], SIZE, "invalid PRIORITY"],
  ["PRIORITY of 6 bytes", [priority(1, 0, 6)], SIZE, "invalid PRIORITY"],
  ["PRIORITY of 4 bytes on an open stream", [head(1, "HOLD"), priority(1, 0, 4)], ["RST FRAME_SIZE_ERROR 1"]],
  ["PRIORITY of a stream on itself", [priority(3, 3)], PROTOCOL, "invalid PRIORITY"],
  ["PRIORITY of an open stream on itself", [head(1, "HOLD"), priority(1, 1)], ["RST PROTOCOL_ERROR 1"]],
  ["RST_STREAM", [head(1, "HOLD"), frame(Frame.RST_STREAM, 0, 1, "\0\0\0\x08"), get(3)], ["200 3"]],
  ["RST_STREAM on a closed stream", [get(1), frame(Frame.RST_STREAM, 0, 1, "\0\0\0\x08")], ["200 1"]],
  [
    "RST_STREAM on stream 0",
    [frame(Frame.RST_STREAM, 0, 0, "\0\0\0\x08")],
    PROTOCOL,
    "RST_STREAM on an idle stream",
  ],
  [
    "RST_STREAM on an idle stream",
    [frame(Frame.RST_STREAM, 0, 1, "\0\0\0\x08")],
    PROTOCOL,
    "RST_STREAM on an idle stream",
  ],
  [
    "RST_STREAM of 3 bytes",
    [head(1, "HOLD"), frame(Frame.RST_STREAM, 0, 1, "\0\0\0")],
    SIZE,
    "RST_STREAM of wrong length",
  ],
  [
    "RST_STREAM of 5 bytes",
    [head(1, "HOLD"), frame(Frame.RST_STREAM, 0, 1, "\0\0\0\0\0")],
    SIZE,
    "RST_STREAM of wrong length",
  ],
  ["SETTINGS on a stream", [frame(Frame.SETTINGS, 0, 1, "")], PROTOCOL, "SETTINGS on a stream"],
  ["SETTINGS with ACK", [frame(Frame.SETTINGS, ACK, 0, "")], []],
  [
    "SETTINGS with ACK and payload",
    [frame(Frame.SETTINGS, ACK, 0, "\0\x01\0\0\0\0")],
    SIZE,
    "SETTINGS with ACK of wrong length",
  ],
  ["SETTINGS of 5 bytes", [frame(Frame.SETTINGS, 0, 0, "\0\x01\0\0\0")], SIZE, "SETTINGS of odd length"],
  ["SETTINGS that are neither 0 nor 1", [setting(2, 2)], PROTOCOL, "setting is neither 0 nor 1"],
  [
    "SETTINGS of a frame size out of range",
    [setting(5, 16_383)],
    PROTOCOL,
    "maximum frame size out of range",
  ],
  ["a frame of 16,385 bytes", [frame(Frame.PING, 0, 0, "x".repeat(16_385))], SIZE, "frame too long"],
  ["PUSH_PROMISE", [frame(Frame.PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\x02")], PROTOCOL, "PUSH_PROMISE"],
  ["PING on a stream", [frame(Frame.PING, 0, 1, "12345678")], PROTOCOL, "PING on a stream"],
  ["PING of 7 bytes", [frame(Frame.PING, 0, 0, "1234567")], SIZE, "PING of wrong length"],
  ["PING of 9 bytes", [frame(Frame.PING, 0, 0, "123456789")], SIZE, "PING of wrong length"],
  ["PING with ACK", [frame(Frame.PING, ACK, 0, "12345678")], []],
  ["GOAWAY", [frame(Frame.GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0"), get(1)], ["200 1"]],
  ["GOAWAY with a reason", [frame(Frame.GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0why")], []],
  ["GOAWAY of 7 bytes", [frame(Frame.GOAWAY, 0, 0, "\0\0\0\0\0\0\0")], SIZE, "GOAWAY of wrong length"],
  ["GOAWAY on a stream", [frame(Frame.GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0")], PROTOCOL, "GOAWAY on a stream"],
  ["a frame of no known type", [frame(200, 0xff, 9, "x"), get(1)], ["200 1"]],
  [
    "CONTINUATION without HEADERS",
    [frame(Frame.CONTINUATION, END_HEADERS, 1, block("GET"))],
    PROTOCOL,
    "CONTINUATION without HEADERS",
  ],
  ...["PING", "DATA", "CONTINUATION of another stream", "a frame of no known type", "HEADERS"].map(
    (what, i): Row => [
      `${what} in the middle of a head`,
      [
        frame(Frame.HEADERS, END_STREAM, 1, block("GET")),
        [
          frame(Frame.PING, 0, 0, "12345678"),
          frame(Frame.DATA, 0, 1, "x"),
          frame(Frame.CONTINUATION, END_HEADERS, 3, ""),
          frame(200, 0, 1, ""),
          get(1),
        ][i]!,
      ],
      PROTOCOL,
      "frame in the middle of a field block",
    ],
  ),
];

const MOST = 0x7fff_ffff;
const WINDOWS: readonly Row[] = [
  [
    "WINDOW_UPDATE of 3 bytes",
    [frame(Frame.WINDOW_UPDATE, 0, 0, "\0\0\x01")],
    SIZE,
    "WINDOW_UPDATE of wrong length",
  ],
  [
    "WINDOW_UPDATE of 5 bytes",
    [frame(Frame.WINDOW_UPDATE, 0, 0, "\0\0\0\x01\0")],
    SIZE,
    "WINDOW_UPDATE of wrong length",
  ],
  ["WINDOW_UPDATE of 0", [windowUpdate(0, 0)], PROTOCOL, "WINDOW_UPDATE of 0"],
  ["WINDOW_UPDATE of 0 on a stream", [head(1, "HOLD"), windowUpdate(1, 0)], ["RST PROTOCOL_ERROR 1"]],
  [
    "WINDOW_UPDATE of 0 but for the reserved bit",
    [windowUpdate(0, 0x8000_0000)],
    PROTOCOL,
    "WINDOW_UPDATE of 0",
  ],
  [
    "WINDOW_UPDATE with the reserved bit",
    [head(1, "HOLD"), windowUpdate(0, 0x8000_0001), windowUpdate(1, 0x8000_0001)],
    [],
  ],
  ["WINDOW_UPDATE on an idle stream", [windowUpdate(1, 1)], PROTOCOL, "WINDOW_UPDATE on an idle stream"],
  ["WINDOW_UPDATE on a closed stream", [get(1), windowUpdate(1, 1), windowUpdate(1, 0)], ["200 1"]],
  ["the largest window", [windowUpdate(0, MOST - 65_535)], []],
  ["a larger one", [windowUpdate(0, MOST - 65_534)], FLOW, "window too large"],
  ["the largest window of a stream", [head(1, "HOLD"), windowUpdate(1, MOST - 65_535)], []],
  [
    "a larger one of a stream",
    [head(1, "HOLD"), windowUpdate(1, MOST - 65_534)],
    ["RST FLOW_CONTROL_ERROR 1"],
  ],
  ["the largest window by SETTINGS", [head(1, "HOLD"), windowUpdate(1, 1), setting(4, MOST - 1)], []],
  ["an initial window of 2^31 by SETTINGS", [setting(4, 0x8000_0000)], FLOW, "initial window too large"],
  [
    "a larger one by SETTINGS",
    [head(1, "HOLD"), windowUpdate(1, 1), setting(4, MOST)],
    FLOW,
    "window too large",
  ],
];

const reasonIn = (log: string): string | undefined =>
  /connection closed: (?:client sent )?(.*), client: 127/.exec(log)?.[1];

describe.each<[string, readonly Row[]]>([
  ["DATA", DATA],
  ["HEADERS", HEADERS],
  ["trailers", TRAILERS],
  ["other frames", OTHERS],
  ["windows", WINDOWS],
])("%s", (_, rows) => {
  test.each(rows)("%s", async (...row) => {
    const [, frames, expected, reason] = row as unknown as Row;
    const before = (await server.errorLog()).length;
    expect(await said(SETTINGS, ...frames)).toEqual(expected);
    expect(reasonIn((await server.errorLog()).slice(before))).toBe(reason);
  });
});

test.each([
  ["a rule that is broken", frame(Frame.PING, 0, 1, "12345678"), "info", "client sent PING on a stream"],
  [
    "a flood",
    Buffer.concat(Array<Buffer>(1_001).fill(frame(Frame.PING, 0, 0, "12345678"))),
    "warn",
    "client sends too many SETTINGS or PING frames",
  ],
])("%s is logged with its level, its client and its listener", async (_what, frames, level, message) => {
  await said(SETTINGS, frames);
  const log = await server.errorLog();
  const line = new RegExp(
    `\\[${level}\\] .*: \\*\\d+ HTTP/2 connection closed: ${message}, client: 127.0.0.1, listener: https\\n`,
  );
  expect(log).toMatch(line);
});

test("bodies that are too long, and are sent all the same, count as resets", async () => {
  const limited = await startHttp2Server({
    route: { requestBodyBytesMax: 1_000 },
    config: { limits: { streamResetsPerSecondMax: 2 } },
    actions: { "/": (exchange) => respond(exchange, 200, "") },
  });
  const client = await RawClient.connect(limited.port);
  const piece = randomBody(16_000);
  const has = (stream: number, type: number): boolean =>
    client.frames.some((f) => f.stream === stream && f.type === type);
  const over = (): boolean => has(0, Frame.GOAWAY);
  const goesOn = ({ type }: { type: number }): boolean =>
    type === Frame.WINDOW_UPDATE || type === Frame.RST_STREAM;
  const fields = hpack(GET.map(([name, value]) => [name, name === ":method" ? "PUT" : value]));
  for (let stream = 1; stream < 200 && !over(); stream += 2) {
    client.send(Frame.HEADERS, END_HEADERS, stream, fields);
    // In the end, more than is read of a body that is not wanted, even if its first pieces waited.
    while (!over() && !has(stream, Frame.RST_STREAM)) {
      const from = client.frames.length;
      for (let i = 0; i < 3; i++) client.send(Frame.DATA, 0, stream, piece);
      await eventually(
        () => over() || client.frames.slice(from).some((f) => f.stream === stream && goesOn(f)),
      );
    }
  }
  await eventually(over);
  expect(describeFrame(client.frames.find((f) => f.type === Frame.GOAWAY)!)).toContain("ENHANCE_YOUR_CALM");
  expect(await limited.errorLog()).toContain("client resets too many streams");
  client.destroy();
  await limited.close();
});

test("a body that is too long gets 413, even if all of it came while its request waited", async () => {
  const limited = await startHttp2Server({
    route: { requestBodyBytesMax: 1_000 },
    config: { limits: { streamResetsPerSecondMax: 1 } },
    actions: {
      "/": (exchange) => exchange.readBody({ onData: () => true, onEnd: () => respond(exchange, 200, "") }),
    },
  });
  const client = await RawClient.connect(limited.port);
  const fields = hpack(GET.map(([name, value]) => [name, name === ":method" ? "PUT" : value]));
  for (let stream = 1; stream < 9; stream += 2) {
    client.send(Frame.HEADERS, END_HEADERS, stream, fields);
    client.socket.write(cancel(stream));
  }
  client.send(Frame.HEADERS, END_HEADERS, 9, fields);
  client.send(Frame.DATA, END_STREAM, 9, randomBody(1_001));
  client.send(Frame.HEADERS, END_HEADERS, 11, fields);
  client.send(Frame.DATA, END_STREAM, 11, randomBody(1_000));
  const head = async (stream: number): Promise<string> =>
    describeFrame((await client.next((f) => f.stream === stream && f.type === Frame.HEADERS))!);
  expect([await head(9), await head(11)]).toEqual(["413", "200"]);
  client.destroy();
  await limited.close();
});

test("no further requests are read from a client that does not read its responses", async () => {
  const client = await RawClient.connect(server.port);
  await client.next((f) => f.type === Frame.SETTINGS && f.flags === 0);
  const before = server.finished.length;
  client.socket.pause();
  const fields = hpack([...GET.slice(0, 3), [":path", "/long"]]);
  const count = 10_000;
  const requests = Array.from({ length: count }, (_, i) =>
    frame(Frame.HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, fields),
  );
  client.socket.write(Buffer.concat(requests));
  const responded = (): number => server.finished.length - before;
  await settled(responded);
  const waiting = responded();
  client.socket.resume();
  await eventually(() => responded() === count, "for all responses", { seen: () => String(responded()) });
  client.destroy();
  expect([waiting > 0, waiting < count]).toEqual([true, true]);
});

test("nothing follows on a stream that was reset because its response has a field that cannot be sent", async () => {
  const client = await RawClient.connect(server.port, false);
  const fields = hpack([...GET.slice(0, 3), [":path", "/bad"]]);
  client.socket.write(
    Buffer.concat([PREFACE, SETTINGS, frame(Frame.HEADERS, END_HEADERS | END_STREAM, 1, fields)]),
  );
  await client.next((f) => f.type === Frame.RST_STREAM);
  client.send(Frame.PING, 0, 0, LAST);
  await client.next((f) => f.type === Frame.PING);
  client.destroy();
  expect(client.frames.filter((f) => f.stream === 1).map(describeFrame)).toEqual(["RST INTERNAL_ERROR"]);
  const log = await server.errorLog();
  expect(log).toContain("response cannot be sent: invalid field name");
  expect(log).not.toContain("before its length");
});

test("a stream that depends on itself is logged as such", async () => {
  await said(SETTINGS, dressed(PRIORITY, depends(1)));
  expect(await server.errorLog()).toContain("client sent an invalid request: stream depends on itself");
});

test.each([
  ["a request", get(1)],
  ["PING", frame(Frame.PING, 0, 0, "12345678")],
  ["DATA", frame(Frame.DATA, 0, 0, "")],
  ["an acknowledgement", frame(Frame.SETTINGS, ACK, 0, "")],
])("%s in place of the first SETTINGS ends the connection", async (_what, first) => {
  expect(await said(first)).toEqual(PROTOCOL);
  expect(await server.errorLog()).toContain("closed: client sent no SETTINGS frame at the start, ");
});

test("another preface ends the connection", async () => {
  const client = await RawClient.connect(server.port, false);
  client.socket.write(String(PREFACE).replace("SM", "SN"));
  await client.next((f) => f.type === Frame.GOAWAY);
  client.destroy();
  expect(await server.errorLog()).toContain("closed: invalid connection preface, ");
});

test("SETTINGS and PING are acknowledged, each once", async () => {
  const client = await RawClient.connect(server.port, false);
  client.socket.write(Buffer.concat([PREFACE, SETTINGS, setting(3, 1), frame(Frame.PING, 0, 0, "12345678")]));
  await client.next((f) => f.type === Frame.PING);
  client.destroy();
  const acks = client.frames.filter((f) => f.flags === ACK).map((f) => [f.type, f.payload.toString()]);
  expect(acks).toEqual([
    [Frame.SETTINGS, ""],
    [Frame.SETTINGS, ""],
    [Frame.PING, "12345678"],
  ]);
});

/** Settings in one frame: as many as fit. */
const ALL_SETTINGS = frame(Frame.SETTINGS, 0, 0, Buffer.alloc(2_730 * 6, Buffer.from([0, 3, 0, 0, 0, 9])));
test.each<[what: string, frames: () => Buffer[], said: readonly string[]]>([
  ["five frames of many settings", () => Array<Buffer>(5).fill(ALL_SETTINGS), []],
  ["six frames of many settings", () => Array<Buffer>(6).fill(ALL_SETTINGS), ["GOAWAY ENHANCE_YOUR_CALM"]],
  [
    "200,000 window updates of 256 bytes",
    () => [Buffer.concat(Array<Buffer>(200_000).fill(windowUpdate(0, 256)))],
    [],
  ],
  [
    "200,000 of 255 bytes",
    () => [Buffer.concat(Array<Buffer>(200_000).fill(windowUpdate(0, 255)))],
    ["GOAWAY ENHANCE_YOUR_CALM"],
  ],
])("%s", async (_what, frames, expected) => {
  expect(await said(SETTINGS, ...frames())).toEqual(expected);
});

describe("what is given back of the windows", () => {
  async function credits(stream: number, ...frames: readonly Buffer[]): Promise<number[]> {
    const client = await RawClient.connect(server.port, false);
    client.socket.write(Buffer.concat([PREFACE, SETTINGS, ...frames, frame(Frame.PING, 0, 0, LAST)]));
    await client.next((f) => f.type === Frame.GOAWAY || f.type === Frame.PING);
    client.destroy();
    const updates = client.frames.filter((f) => f.type === Frame.WINDOW_UPDATE && f.stream === stream);
    return updates.map((f) => f.payload.readUInt32BE(0));
  }
  const FULL = "x".repeat(16_384);
  const FIRST = MIB / 2 - 65_535;

  test("is what came for streams that were reset", async () => {
    const frames = Array<Buffer>(8).fill(frame(Frame.DATA, 0, 1, FULL));
    expect(await credits(0, malformed(1), ...frames)).toEqual([FIRST, MIB / 8]);
    expect(await credits(0, malformed(1), ...frames.slice(1))).toEqual([FIRST]);
  });

  test("is padding too", async () => {
    const padded = frame(Frame.DATA, PADDED, 1, `\xff${"x".repeat(16_128)}${"\0".repeat(255)}`);
    const frames = [head(1, "PUT"), ...Array<Buffer>(64).fill(padded)];
    expect(await credits(1, ...frames)).toEqual([4 * MIB - 65_535, MIB]);
  });
});
