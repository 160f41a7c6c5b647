import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RouteInput } from "../../src/model/index.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { type Accepted, connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** An upstream on a Unix socket: what one on a port does, and errors that only a socket in a folder has. */

const ROUTES: readonly RouteInput[] = [
  { name: "client", path: "/client", action: { type: "proxy", upstream: "web" } },
  { name: "own", path: "/own", action: { type: "proxy", upstream: "web", hostHeader: "upstream" } },
];
const asking = (target: string, more = "", method = "GET"): string =>
  `${method} ${target} HTTP/1.1\r\nHost: files.example\r\n${more}\r\n`;

let folder: string;
let socket: string;
let upstream: RawUpstream | undefined;
let front: EveryProtocol;
let script: (peer: Accepted) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-unix-"));
  socket = join(folder, "web.sock");
  upstream = await new RawUpstream((peer) => peer.socket.on("data", () => script(peer))).listenAt(socket);
  front = await startEveryProtocol({ routes: ROUTES, upstreams: [{ name: "web", url: `unix:${socket}` }] });
});
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream?.close();
  rmSync(folder, { recursive: true });
  expect(faults).toBe(0);
});

const response = (body: string, more = ""): string =>
  `HTTP/1.1 200 OK\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;

test.each([
  ["/client", "files.example"],
  // As nginx has it.
  ["/own", "localhost"],
])("responds with %s for the host %s, on one connection", async (target, host) => {
  script = (peer) => peer.send(response("ok"));
  for (let i = 0; i < 3; i++)
    expect(await exchange(front.plainPort, asking(target))).toMatchObject({ body: "ok" });
  expect(upstream!.connections).toHaveLength(1);
  expect(upstream!.received.match(/Host: .*/g)).toEqual(Array(3).fill(`Host: ${host}`));
});

test("a Location at the socket's own host leads to the public one", async () => {
  script = (peer) => peer.send(response("", "Location: http://localhost/own/a\r\n"));
  const { head } = await exchange(front.plainPort, asking("/own"));
  expect(head).toContain("\r\nLocation: http://files.example/own/a");
});

test("an upload, a response without a body, and one that the client leaves", async () => {
  const body = randomText(1 << 20);
  script = (peer) => {
    if (peer.received.endsWith(body)) peer.send(response(String(body.length)));
  };
  const upload = asking("/client", `Content-Length: ${body.length}\r\n`, "PUT") + body;
  expect(await exchange(front.plainPort, upload)).toMatchObject({ body: String(body.length) });
  script = (peer) => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  expect(await exchange(front.plainPort, asking("/client", "Connection: close\r\n", "HEAD"))).toMatchObject({
    body: "",
  });
  const before = upstream!.connections.length;
  const client = await connectTo(front.plainPort);
  client.send(asking("/client"));
  await client.receives("\r\n\r\n");
  client.socket.destroy();
  const { socket: left } = upstream!.connections.at(-1)!;
  await eventually(() => left.destroyed || left.readableEnded);
  expect(upstream!.connections.length - before).toBeLessThanOrEqual(1);
});

test("a WebSocket goes both ways", async () => {
  script = (peer) =>
    peer.send(
      peer.received.endsWith("ping")
        ? "pong"
        : "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
  const client = await connectTo(front.plainPort);
  const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
  client.send(asking("/client", `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}`));
  await client.receives("\r\n\r\n");
  client.send("ping");
  await client.receives("pong");
  client.socket.destroy();
});

test.each([
  // As after a server that was killed, whose socket stays: Node removes it when a server closes.
  ["nothing listens", "111: ECONNREFUSED", () => writeFileSync(socket, "")],
  ["there is no socket", "2: ENOENT", () => undefined],
])("502 where %s, and the log names the socket", async (_what, reason, breakIt) => {
  await upstream!.close();
  upstream = undefined;
  breakIt();
  expect(await exchange(front.plainPort, asking("/client"))).toMatchObject({ status: 502 });
  expect(await front.errorLog()).toContain(`connect() failed (${reason}) while connecting to upstream`);
  expect(await front.errorLog()).toContain(`unix:${socket}`);
});
