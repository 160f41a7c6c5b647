import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { Http1Exchange } from "../../src/runtime/server/http1Exchange.js";
import {
  END_HEADERS,
  END_STREAM,
  frame,
  Frame,
  hpack,
  RawClient,
  hpackString,
} from "../../testkit/http2RawClient.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually, nextEvent, settled } from "../../testkit/waiting.js";
import { tally } from "../../src/runtime/exchange/tally.js";
import { RequestWriter } from "../../src/runtime/upstream/requestWriter.js";

/**
 * Peers that send bodies in the smallest pieces there are, as fast as they can. How long that keeps others waiting is
 * measured as work, which a busy machine does not change: how many pieces go to the upstream in one turn of the event
 * loop, and in all.
 */

const COUNT = 60_000;
/** What a turn has room for, 2,048, and two reads more: some hundred TLS records, or 16 KiB of frames, in each. */
const RECORDS_A_TURN_MAX = 4_000;
const FRAMES_A_TURN_MAX = 6_000;
/** Records that wait together; each takes a write of its own. */
const RECORDS = 8_000;
const CHUNK = "1\r\nx\r\n";
const END = "0\r\n\r\n";
/** Enough chunks that reads get as large as they may, and what a turn has room for, with a slice more. */
const MANY = 500_000;
const CHUNKS_A_TURN_MAX = 65_000;
/** Pieces after which a client that reads fast gets the largest ones: 12 MiB. */
const FAST_PIECES = 192;
/** Informational responses, as small as they are. */
const INTERIM = 2_000;
const HINTS = "HTTP/1.1 103 E\r\n\r\n".repeat(INTERIM);
const RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PIECE = randomBytes(65_536);

let front: EveryProtocol;
let upstream: RawUpstream;
let spy: jest.SpyInstance;
let turn = 0;
let inTurn = new Map<number, number>();
let bytes = 0;
/** With a body, whose heads the upstream has. */
let requests = 0;
let counting = false;

beforeAll(async () => {
  upstream = await new RawUpstream((peer: Accepted) => {
    peer.socket.on("data", (chunk: Buffer) => {
      const read = chunk.toString("latin1");
      if (read.startsWith("POST")) requests++;
      if (read.startsWith("GET /endless")) {
        peer.send("HTTP/1.1 200 OK\r\n\r\n");
        const more = (): void => {
          while (peer.socket.write(PIECE));
        };
        peer.socket.on("drain", more);
        return more();
      }
      if (read.startsWith("GET /early"))
        return void peer.send(`${HINTS}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate`);
      if (read.startsWith("GET /ends"))
        return void peer.send(`${HINTS}HTTP/1.1 200 OK\r\n\r\nlate`).socket.end();
      if (read.startsWith("GET /many")) {
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (let i = 0; i < FAST_PIECES; i++) peer.send("10000\r\n").send(PIECE).send("\r\n");
        return void peer.send(CHUNK.repeat(MANY) + END);
      }
      if (read.startsWith("GET")) {
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").send(CHUNK.repeat(COUNT) + END);
      } else if (read.endsWith(END)) peer.send(RESPONSE);
    });
  }).listen();
  front = await startEveryProtocol({
    routes: [
      { name: "web", path: "/", action: { type: "proxy", upstream: "web" } },
      { name: "here", path: "/here", action: { type: "respond", status: 204 } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
  const { body } = RequestWriter.prototype;
  spy = jest.spyOn(RequestWriter.prototype, "body").mockImplementation(function (
    this: RequestWriter,
    piece,
    memory,
  ) {
    bytes += piece.length;
    inTurn.set(turn, (inTurn.get(turn) ?? 0) + 1);
    return body.call(this, piece, memory);
  });
});
afterAll(async () => {
  spy.mockRestore();
  await front.close();
  await upstream.close();
});

beforeEach(() => {
  inTurn = new Map();
  bytes = 0;
  counting = true;
  const next = (): void => {
    turn++;
    if (counting) setImmediate(next);
  };
  next();
});
afterEach(() => void (counting = false));

/** How many requests ended in the turn with the most of them, until all have. */
async function requestsATurn(count: number): Promise<number> {
  const before = tally.exchangesOver;
  let most = 0;
  let seen = before;
  let over = false;
  const look = (): void => {
    most = Math.max(most, tally.exchangesOver - seen);
    seen = tally.exchangesOver;
    if (!over) setImmediate(look);
  };
  look();
  await eventually(() => tally.exchangesOver - before >= count);
  over = true;
  return most;
}

const pieces = () => ({
  most: Math.max(...inTurn.values()),
  all: [...inTurn.values()].reduce((sum, count) => sum + count, 0),
});
const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/** A TLS client behind a relay that can keep what it sends for a while. */
async function relayed() {
  let held = false;
  const kept: Buffer[] = [];
  const far = connect(front.securePort, "127.0.0.1");
  const near = createServer((socket) => {
    near.close();
    socket.on("data", (chunk: Buffer) => void (held ? kept.push(chunk) : far.write(chunk)));
    socket.on("close", () => far.destroy());
    far.pipe(socket);
  });
  await new Promise<void>((done) => near.listen(0, "127.0.0.1", done));
  const { port } = near.address() as AddressInfo;
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const hold = (): void => void (held = true);
  const release = (): void => {
    // What was written last may not have arrived here yet.
    held = false;
    far.write(Buffer.concat(kept));
  };
  return { socket, hold, release };
}

test.each([false, true])("chunks of a byte are few pieces upstream (TLS: %s)", async (secure) => {
  const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
  client.send(HEAD + CHUNK.repeat(COUNT) + END);
  await client.receives("\r\n\r\nok");
  client.socket.destroy();
  expect(bytes).toBe(COUNT);
  expect(pieces().all).toBeLessThan(COUNT / 100);
});

test.each([false, true])(
  "a response in chunks of a byte is few chunks for the client (TLS: %s)",
  async (secure) => {
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.receives(`\r\n${END}`);
    client.socket.destroy();
    const [, body = ""] = client.received.split(/\r\n\r\n(.*)/s);
    let data = 0;
    let count = 0;
    for (let at = 0; ; count++) {
      const size = parseInt(body.slice(at, at + 13), 16);
      if (!(size > 0)) break;
      data += size;
      at = body.indexOf("\r\n", at) + size + 4;
    }
    expect(data).toBe(COUNT);
    expect(count).toBeLessThan(COUNT / 100);
  },
);

/** Bytes of body that were passed on in the turn with most of them. */
function mostBytesATurn(): () => number {
  let most = 0;
  let seen = 0;
  const look = (): void => {
    most = Math.max(most, bytes - seen);
    seen = bytes;
    if (counting) setImmediate(look);
  };
  look();
  return () => most;
}

test("chunks of a byte are spread over turns, however many one read brings: uploads", async () => {
  const most = mostBytesATurn();
  const client = await connectTo(front.plainPort);
  client.send(HEAD + CHUNK.repeat(MANY) + END);
  await client.receives("\r\n\r\nok");
  client.socket.destroy();
  expect(bytes).toBe(MANY);
  expect(most()).toBeLessThan(CHUNKS_A_TURN_MAX);
});

test("chunks of a byte are spread over turns, however many one read brings: responses", async () => {
  const { sendData } = Http1Exchange.prototype;
  const sent = jest.spyOn(Http1Exchange.prototype, "sendData").mockImplementation(function (
    this: Http1Exchange,
    piece,
    memory,
  ) {
    passed += piece.length;
    bytes = Math.max(0, passed - FAST_PIECES * PIECE.length);
    return sendData.call(this, piece, memory);
  });
  let passed = 0;
  const most = mostBytesATurn();
  const client = connect(front.plainPort, "127.0.0.1").resume();
  client.write("GET /many HTTP/1.1\r\nHost: a\r\n\r\n");
  await eventually(() => bytes >= MANY);
  client.destroy();
  sent.mockRestore();
  expect(bytes).toBe(MANY);
  expect(most()).toBeLessThan(CHUNKS_A_TURN_MAX);
});

test("chunks of a byte in TLS records of their own are spread over turns", async () => {
  const { socket, hold, release } = await relayed();
  const write = (text: string) => new Promise((done) => socket.write(text, done));
  const before = requests;
  await write(HEAD);
  // Of a body nothing is read before there is a connection to the upstream.
  await eventually(() => requests > before);
  hold();
  for (let i = 0; i < RECORDS; i++) await write(CHUNK);
  await write(END);
  release();
  await nextEvent(socket, "data");
  socket.destroy();
  expect([bytes, pieces().all]).toEqual([RECORDS, RECORDS]);
  expect(pieces().most).toBeLessThan(RECORDS_A_TURN_MAX);
});

test.each([[[1]], [[1, 3]]])("DATA frames of a byte are spread over turns (streams: %j)", async (streams) => {
  const client = await RawClient.connect(front.securePort);
  const fields = hpack([
    [":method", "POST"],
    [":scheme", "https"],
    [":authority", "a"],
    [":path", "/"],
  ]);
  for (const stream of streams) client.socket.write(frame(Frame.HEADERS, END_HEADERS, stream, fields));
  const round = Buffer.concat(streams.map((stream) => frame(Frame.DATA, 0, stream, "x")));
  client.socket.write(Buffer.concat(Array<Buffer>(COUNT / streams.length).fill(round)));
  await eventually(() => bytes === COUNT);
  client.destroy();
  expect(pieces().most).toBeLessThan(FRAMES_A_TURN_MAX);
});

/** Those of one read; without a limit that is most of them. */
const REQUESTS = 900;
const REQUESTS_A_TURN_MAX = 100;

test.each([false, true])("pipelined requests are spread over turns (TLS: %s)", async (secure) => {
  const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
  const most = requestsATurn(REQUESTS);
  client.send("GET /here HTTP/1.1\r\nHost: a\r\n\r\n".repeat(REQUESTS));
  expect(await most).toBeLessThan(REQUESTS_A_TURN_MAX);
  await eventually(() => client.received.split("HTTP/1.1 204").length > REQUESTS);
  client.socket.destroy();
});

test.each([false, true])(
  "nothing is served that waited when its connection closed (TLS: %s)",
  async (secure) => {
    const { exchangesBegun } = tally;
    for (let i = 0; i < 5; i++) {
      const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
      const last = "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n";
      client.send("GET /here HTTP/1.1\r\nHost: a\r\n\r\n".repeat(REQUESTS) + last);
      const begun = tally.exchangesBegun;
      while (tally.exchangesBegun === begun) await new Promise(setImmediate);
      (secure ? client.socket : client.socket.resetAndDestroy()).destroy();
    }
    const { http1, serving } = front;
    await eventually(() => http1.size === 0);
    await settled(() => tally.exchangesBegun);
    expect(tally.exchangesBegun - exchangesBegun).toBeLessThan(5 * REQUESTS);
    expect(tally.exchangesBegun - tally.exchangesOver).toBe(0);
    expect(serving.holdings().upstreamConnectionsInUse).toBe(0);
  },
);

// A client says a head of kilobytes with some bytes, because the proxy has learnt its fields.
test.each([
  ["ordinary", "x", REQUESTS_A_TURN_MAX],
  ["the longest", "a,".repeat(1_800), 40],
])("requests of a few bytes are spread over turns: %s", async (_what, value, limit) => {
  const client = await RawClient.connect(front.securePort);
  const head: [string, string][] = [
    [":method", "HEAD"],
    [":scheme", "https"],
    [":authority", "a"],
    [":path", "/here"],
  ];
  // Literal with incremental indexing (RFC 7541, 6.2.1), and then its index, seven times.
  const field = Buffer.concat([Buffer.from([0x40]), hpackString("accept"), hpackString(value)]);
  client.send(Frame.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([hpack(head), field]));
  await eventually(() => client.frames.some(({ stream }) => stream === 1));
  const most = requestsATurn(REQUESTS);
  const again = Buffer.concat([hpack(head), Buffer.alloc(7, 0x80 | 62)]);
  const frames = Array.from({ length: REQUESTS }, (_, i) =>
    frame(Frame.HEADERS, END_HEADERS | END_STREAM, 2 * i + 3, again),
  );
  client.socket.write(Buffer.concat(frames));
  expect(await most).toBeLessThan(limit);
  client.destroy();
});

test.each([false, true])(
  "informational responses are spread over turns, and the response after them is whole (ends: %s)",
  async (ends) => {
    const client = await connectTo(front.plainPort);
    let most = 0;
    let inTurn = 0;
    const informational = jest
      .spyOn(Http1Exchange.prototype, "sendInformational")
      .mockImplementation(() => void (most = Math.max(most, ++inTurn)));
    const look = (): void => {
      inTurn = 0;
      if (counting) setImmediate(look);
    };
    look();
    client.send(`GET /${ends ? "ends" : "early"} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await client.receives("late");
    client.socket.destroy();
    expect(informational.mock.calls).toHaveLength(INTERIM);
    informational.mockRestore();
    expect(most).toBeLessThan(REQUESTS_A_TURN_MAX);
  },
);
