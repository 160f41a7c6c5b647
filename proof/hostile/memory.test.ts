import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connectSession, connectHttp1 } from "../wire/client.js";
import { type Stage, startStage, watchMemory } from "../wire/stage.js";
import { echo } from "../wire/upstream.js";
import { eventually } from "../../testkit/waiting.js";

/** Neither a client nor an upstream is trusted with the memory of the proxy. */
const MIB = 1024 * 1024;
/** How many do it at the same time, and how much each may send before it counts as taken. */
const PEERS = 20;
const SENT_BYTES_MAX = 64 * MIB;
/** All of them together, garbage included, of which a busy machine leaves more; what 20 of them send is 1,280 MiB. */
const GROWTH_MAX = 256 * MIB;
/** What is taken and thrown away is read to the end: half as much, which may leave half as much. */
const FLOOD_BYTES = SENT_BYTES_MAX / 2;
const FLOOD_GROWTH_MAX = GROWTH_MAX / 2;

let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());

/** What an upstream sends first, what it repeats without end, and how the response comes out. */
const ENDLESS: readonly (readonly [name: string, first: string, repeated: string])[] = [
  ["a status line", "HTTP/1.1 200 ", "x".repeat(65_536)],
  ["one field", "HTTP/1.1 200 OK\r\nX-A: ", "x".repeat(65_536)],
  ["fields", "HTTP/1.1 200 OK\r\n", "X-A: b\r\n".repeat(8_192)],
  ["1xx responses", "", "HTTP/1.1 100 Continue\r\n\r\n".repeat(2_048)],
  ["empty lines", "", "\r\n".repeat(32_768)],
  ["a chunk extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "x".repeat(65_536)],
  [
    "extensions of small chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    `1;${"x".repeat(4_000)}\r\na\r\n`.repeat(16),
  ],
  ["trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-T: u\r\n".repeat(8_192)],
  ["zeros of a chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0".repeat(65_536)],
  ["bytes behind a response", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "x".repeat(65_536)],
];

describe.each(["http", "https"] as const)("an upstream that sends %s clients without end", (scheme) => {
  test.each(ENDLESS)("%s", async (_name, first, repeated) => {
    const performer = scheme === "http" ? stage.plain : stage.tls;
    const sent: Promise<number>[] = [];
    stage.upstream.script = (_line, socket) => void sent.push(sendWithoutEnd(socket, first, repeated));
    const watch = watchMemory(performer);
    const port = scheme === "http" ? performer.ports.http : performer.ports.https;
    const clients = await Promise.all(
      Array.from({ length: PEERS }, () => connectHttp1(port, scheme === "https")),
    );
    for (const client of clients) client.send("GET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n");
    await eventually(() => sent.length === PEERS);
    // Each was cut off by the proxy, and not by having sent all that it would.
    for (const bytes of await Promise.all(sent)) expect(bytes).toBeLessThan(SENT_BYTES_MAX);
    for (const client of clients) client.socket.destroy();
    expect(watch()).toBeLessThan(GROWTH_MAX);
  });
});

test("a response that the client does not read is not read from the upstream", async () => {
  const sockets: Socket[] = [];
  stage.upstream.script = (_line, socket) => {
    sockets.push(socket);
    void sendWithoutEnd(socket, "HTTP/1.1 200 OK\r\n\r\n", "x".repeat(65_536));
    return undefined;
  };
  const watches = [stage.plain, stage.tls].map(watchMemory);
  const plain = Array.from({ length: PEERS }, () => connect(stage.plain.ports.http, "127.0.0.1"));
  for (const client of plain) {
    client.pause();
    client.write("GET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n");
  }
  const session = connectSession(stage.tls.ports.https);
  for (let i = 0; i < PEERS; i++) {
    session.request({ ":path": "/sync/case", ":authority": "sync.example" }).pause();
  }
  await eventually(() => sockets.length === 2 * PEERS);
  await sleep(1_500);
  for (const watch of watches) expect(watch()).toBeLessThan(GROWTH_MAX);
  session.destroy();
  for (const client of plain) client.destroy();
});

/** What a client sends without end. */
const FLOODS: readonly (readonly [name: string, first: string, repeated: string])[] = [
  ["a request line", "GET /sync/", "x".repeat(65_536)],
  ["fields", "GET /sync/ HTTP/1.1\r\n", "X-A: b\r\n".repeat(8_192)],
  ["empty lines", "", "\r\n".repeat(32_768)],
  [
    "trailers",
    "POST /sync/ HTTP/1.1\r\nHost: sync.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    "X: y\r\n".repeat(8_192),
  ],
  [
    "a chunk extension",
    "POST /sync/ HTTP/1.1\r\nHost: sync.example\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    "x".repeat(65_536),
  ],
  [
    "pipelined requests, and reads no response",
    "",
    "GET /sync/pipelined HTTP/1.1\r\nHost: sync.example\r\n\r\n".repeat(1_000),
  ],
  [
    "pipelined requests for a file, and reads no response",
    "",
    "GET /syncmedia/large.bin HTTP/1.1\r\nHost: sync.example\r\n\r\n".repeat(1_000),
  ],
];

test.each(FLOODS)("a client that sends %s without end", async (_name, first, repeated) => {
  stage.upstream.script = echo;
  const watch = watchMemory(stage.plain);
  const clients = Array.from({ length: PEERS }, () => connect(stage.plain.ports.http, "127.0.0.1"));
  // What is refused is read on for a while, so that the refusal arrives; nothing of it is kept.
  await Promise.all(
    clients.map((client) => {
      client.pause();
      return sendWithoutEnd(client, first, repeated, 1_000, FLOOD_BYTES);
    }),
  );
  for (const client of clients) client.destroy();
  expect(watch()).toBeLessThan(FLOOD_GROWTH_MAX);
});

/** Five bytes of framing for each byte: until kernels are full of what passes on, a client sends six times as much. */
const CHUNKS_BYTES_MAX = 2 * SENT_BYTES_MAX;
const CHUNKS_PEERS = 2;

test.each(["http", "https"] as const)(
  "a client that uploads over %s in chunks of one byte to an upstream that does not read",
  async (scheme) => {
    const performer = scheme === "http" ? stage.plain : stage.tls;
    const port = scheme === "http" ? performer.ports.http : performer.ports.https;
    const clients = await Promise.all(
      Array.from({ length: CHUNKS_PEERS }, () => connectHttp1(port, scheme === "https")),
    );
    stage.upstream.beDeaf(true);
    const watch = watchMemory(performer);
    const head = "POST /sync/ HTTP/1.1\r\nHost: sync.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    // Chunks in abundance, and every TLS record a full one.
    const sent = await Promise.all(
      clients.map(({ socket }) =>
        sendWithoutEnd(socket, head, "1\r\na\r\n".repeat(32_768), 1_000, CHUNKS_BYTES_MAX),
      ),
    );
    const grown = watch();
    for (const { socket } of clients) socket.destroy();
    try {
      // Each had to wait, and what waits is little.
      for (const bytes of sent) expect(bytes).toBeLessThan(CHUNKS_BYTES_MAX);
      expect(grown).toBeLessThan(GROWTH_MAX / 4);
    } finally {
      stage.upstream.beDeaf(false);
    }
  },
);

/** Writes until the other side ends it, takes no more for a while, or has taken too much. @returns bytes it took */
async function sendWithoutEnd(
  socket: Socket,
  first: string,
  repeated: string,
  idleMs = 4_000,
  bytesMax = SENT_BYTES_MAX,
): Promise<number> {
  const piece = Buffer.from(repeated, "latin1");
  let bytes = first.length;
  socket.on("error", () => undefined);
  socket.write(Buffer.from(first, "latin1"));
  while (!socket.destroyed && bytes < bytesMax) {
    bytes += piece.length;
    if (socket.write(piece)) continue;
    const taken = await new Promise<boolean>((resolve) => {
      const on = (): void => settle(true);
      const off = (): void => settle(false);
      const timer = setTimeout(off, idleMs);
      const settle = (taken: boolean): void => {
        clearTimeout(timer);
        socket.off("drain", on).off("close", off);
        resolve(taken);
      };
      socket.once("drain", on).once("close", off);
    });
    if (!taken) break;
  }
  return bytes;
}
