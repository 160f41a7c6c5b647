import { setTimeout as sleep } from "node:timers/promises";
import { CHUNK_CASES } from "../../testkit/cases/chunks.js";
import { FRAMING_CASES } from "../../testkit/cases/framing.js";
import { HEAD_CASES } from "../../testkit/cases/heads.js";
import type { RequestCase } from "../../testkit/cases/requestCase.js";
import { connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { proxiedRoutes, startProxy, type TestProxy } from "../../testkit/harness.js";

/**
 * What is refused (decisions 3.1): each message gets the status and the connection is closed, and no byte of a refused head
 * reaches the upstream. A request is sent after it, to show that nothing after a refused message is read either.
 */
const SMUGGLED = "GET /sync/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

const refused = (cases: readonly RequestCase[]) =>
  cases.flatMap(({ name, bytes, outcome }) =>
    typeof outcome === "number" ? [[name, bytes + SMUGGLED, outcome] as const] : [],
  );
/** In proof/hostile, parsers read as well what comes of them at the upstream. */
const HEADS = refused([...FRAMING_CASES, ...HEAD_CASES]);

let upstream: RawUpstream;
let proxy: TestProxy;

beforeAll(async () => {
  upstream = await new RawUpstream(responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).listen();
  proxy = await startProxy({
    routes: proxiedRoutes(),
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});

afterAll(async () => {
  await proxy.close();
  await upstream.close();
});

async function expectRefusal(message: string, status: number): Promise<void> {
  const client = await connectTo(proxy.port);
  client.send(message);
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  expect(client.received.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  expect(client.received).toContain("\r\nConnection: close\r\n");
  client.socket.destroy();
}

test.each(HEADS)("refused: %s", async (_name, message, status) => {
  const before = upstream.received;
  await expectRefusal(message, status);
  expect(upstream.received).toBe(before);
});

/** The upstream may have seen the good part of such a body, never an end. */
test.each(refused(CHUNK_CASES))("chunked coding refused: %s", async (_name, message, status) => {
  const from = upstream.connections.length;
  await expectRefusal(message, status);
  for (const connection of upstream.connections.slice(from)) {
    await connection.until((peer) => peer.closed || peer.ended);
    expect(connection.received).not.toContain("\r\n0\r\n\r\n");
    expect(connection.received).not.toContain("smuggled");
  }
});

test.each(HEADS.filter(([, message]) => message.length < 600))(
  "refused byte by byte: %s",
  async (_name, message, status) => {
    const client = await connectTo(proxy.port);
    client.socket.setNoDelay(true);
    for (const byte of message) {
      if (client.ended) break;
      client.send(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.until((peer) => peer.ended || peer.closed);
    expect(client.received.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
    client.socket.destroy();
  },
);

/** A client reads no body after a response to HEAD: one would be its next response. */
test.each([
  ...["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "X-A : b\r\n", "Expect: x\r\n"].map(
    (fields) => `HEAD /sync/ HTTP/1.1\r\nHost: a\r\n${fields}\r\n`,
  ),
  "HEAD /sync/%zz HTTP/1.1\r\nHost: a\r\n\r\n",
  "HEAD /sync/ HTTP/1.1\r\n\r\n",
  "HEAD /sync/ HTTP/3.1\r\nHost: a\r\n\r\n",
  `HEAD /sync/${"a".repeat(9000)}`,
])("a HEAD request is refused without a body: %j", async (message) => {
  const client = await connectTo(proxy.port);
  client.send(message + SMUGGLED);
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received).toMatch(/^HTTP\/1\.1 [45]\d\d [^]*?\r\n\r\n$/);
  client.socket.destroy();
});

test("every refusal is one line in the access log, with the request line made harmless", async () => {
  await exchange(proxy.port, 'GET /sync/"\x01\xe4 HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await proxy.accessLog()).toContain('"GET /sync/\\x22\\x01\\xE4 HTTP/1.1" 400 ');
});

/** What its line was when it was refused stands in the log, in however many pieces it came and whatever was refused. */
test.each([
  ["no version", ["GET /sync/\xe4pie", "ces\r\n\r\n"], "GET /sync/\\xE4pieces"],
  ["a bad field", ["GET /sync/pie", "ces HTTP/1.1\r\nHo", "st : a\r\n\r\n"], "GET /sync/pieces HTTP/1.1"],
  [
    "a head that is too long",
    ["GET /sync/pieces HTTP/1.1\r", `\nX-A: ${"a".repeat(40_000)}`],
    "GET /sync/pieces HTTP/1.1",
  ],
  [
    "a line that is too long",
    ["GET /sync/pieces", "a".repeat(9_000)],
    `GET /sync/pieces${"a".repeat(2_032)}`,
  ],
])("the request line of what came in pieces and was refused for %s", async (_why, pieces, line) => {
  const before = (await proxy.accessLog()).length;
  const client = await connectTo(proxy.port);
  client.socket.setNoDelay(true);
  for (const piece of pieces) {
    client.send(piece);
    await sleep(50);
  }
  await client.until((peer) => peer.ended || peer.closed);
  client.socket.destroy();
  const logged = (await proxy.accessLog()).slice(before);
  expect(/"(.*?)" 4\d\d /.exec(logged)?.[1]).toBe(line);
});
