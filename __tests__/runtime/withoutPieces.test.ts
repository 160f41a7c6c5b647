import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type * as pieces from "../../src/runtime/sockets/node/pieces.js";
import type * as everyProtocol from "../../testkit/everyProtocol.js";
import type * as http2Server from "../../testkit/http2Server.js";
import type * as scripted from "../../testkit/peers.js";

/** Serving with nothing of Node but what has a public name: the same responses, over every protocol. */

const BYTES = 6 << 20;
const content = Buffer.alloc(BYTES);
for (let i = 0; i < BYTES; i += 4) content.writeUInt32LE(i, i);

let kit: typeof everyProtocol & typeof http2Server;
let peers: typeof scripted;
let front: everyProtocol.EveryProtocol;
let upstream: scripted.RawUpstream;
let unused: typeof pieces.unused;

// What is used is decided when the modules are loaded.
const without = process.env["PORTICO_NODE_WITHOUT"];
beforeAll(async () => {
  process.env["PORTICO_NODE_WITHOUT"] = "all";
  ({ unused } = await import("../../src/runtime/sockets/node/pieces.js"));
  peers = await import("../../testkit/peers.js");
  kit = {
    ...(await import("../../testkit/everyProtocol.js")),
    ...(await import("../../testkit/http2Server.js")),
  };
  upstream = await new peers.RawUpstream(echo).listen();
  front = await kit.startEveryProtocol({
    routes: [
      { name: "echo", path: "/", action: { type: "proxy", upstream: "web" }, requestBodyBytesMax: 0 },
      { name: "page", path: "/page", action: { type: "respond", status: 200, body: "page" } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
afterAll(async () => {
  if (without === undefined) delete process.env["PORTICO_NODE_WITHOUT"];
  else process.env["PORTICO_NODE_WITHOUT"] = without;
  await front.close();
  await upstream.close();
});

/** Responds to an upload with its own bytes as they come; a GET waits. */
function echo(peer: scripted.Accepted): void {
  let begun = false;
  peer.socket.removeAllListeners("data").on("data", (chunk: Buffer) => {
    if (begun) return void peer.socket.write(chunk);
    const head = chunk.indexOf("\r\n\r\n") + 4;
    peer.received = chunk.toString("latin1", 0, head);
    if (peer.received.startsWith("GET")) return;
    begun = true;
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${BYTES}\r\nConnection: close\r\n\r\n`);
    if (head < chunk.length) peer.socket.write(chunk.subarray(head));
  });
}

async function overHttp1(secure: boolean): Promise<Buffer> {
  const client = await peers.connectTo(secure ? front.securePort : front.plainPort, secure);
  const chunks: Buffer[] = [];
  let bytes = 0;
  client.socket.removeAllListeners("data");
  const whole = new Promise<void>((resolve) => {
    client.socket.on("close", resolve);
    client.socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      // The head comes first, and in one piece.
      if (bytes >= BYTES + chunks[0]!.indexOf("\r\n\r\n") + 4) resolve();
    });
  });
  client.send(`PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${BYTES}\r\n\r\n`).send(content);
  await whole;
  client.socket.destroy();
  const text = Buffer.concat(chunks);
  return text.subarray(text.indexOf("\r\n\r\n") + 4);
}

async function overHttp2(): Promise<Buffer> {
  const session = kit.connectHttp2(front.securePort);
  const stream = session.request({ ":method": "PUT", ":path": "/echo", "content-length": BYTES });
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.end(content);
  await once(stream, "end");
  session.destroy();
  return Buffer.concat(chunks);
}

test("no piece is used", () => expect(unused()).toHaveLength(7));

test.each<[string, () => Promise<Buffer>]>([
  ["HTTP/1.1", () => overHttp1(false)],
  ["HTTP/1.1 over TLS", () => overHttp1(true)],
  ["HTTP/2", overHttp2],
])("megabytes go through and come back over %s, byte for byte", async (_, transfer) => {
  const [one, other] = await Promise.all([transfer(), transfer()]);
  expect([one.equals(content), other.equals(content)]).toEqual([true, true]);
});

test.each([false, true])("requests one after the other get a response (TLS: %j)", async (secure) => {
  const client = await peers.connectTo(secure ? front.securePort : front.plainPort, secure);
  for (let i = 1; i <= 3; i++) {
    client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until(({ received }) => received.split("\r\n\r\npage").length === i + 1);
  }
  client.socket.destroy();
});

test.each([false, true])("a client that goes away frees the upstream (TLS: %j)", async (secure) => {
  const index = upstream.connections.length;
  const client = await peers.connectTo(secure ? front.securePort : front.plainPort, secure);
  client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  const peer = await upstream.connection(index);
  client.socket.destroy();
  await peer.until(({ ended, closed }) => ended || closed);
});

test("a client that reads late gets all of it over HTTP/2", async () => {
  const session = kit.connectHttp2(front.securePort);
  const stream = session.request({ ":method": "PUT", ":path": "/echo", "content-length": BYTES });
  stream.pause();
  stream.end(content);
  await sleep(500);
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.resume();
  await once(stream, "end");
  session.destroy();
  expect(Buffer.concat(chunks).equals(content)).toBe(true);
});
