import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { END_HEADERS, frame, Frame, hpack, RawClient } from "../../testkit/http2RawClient.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";
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
const RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

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
      if (read.startsWith("GET")) {
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").send(CHUNK.repeat(COUNT) + END);
      } else if (read.endsWith(END)) peer.send(RESPONSE);
    });
  }).listen();
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
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
