import { mkdtempSync, renameSync, rmSync } from "node:fs";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { UpstreamInput } from "../../src/model/index.js";
import { issue } from "../../testkit/certificates.js";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { RestartingWeb } from "../../testkit/restartingWeb.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** An upstream that refuses connections for a time: requests wait for it. */

let folder: string;
let web: RestartingWeb;
let front: EveryProtocol;

async function start(more: Partial<UpstreamInput> = {}, place?: string): Promise<void> {
  web = new RestartingWeb(place ?? (await freePort()));
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", url: web.url, holdMs: 5_000, clientSharePercent: 100, ...more }],
  });
}

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "portico-hold-"))));
afterEach(async () => {
  await eventually(() => front.serving.holdings().queuedRequests === 0);
  const faults = front.serving.faults.count;
  await front.close();
  await web.kill();
  rmSync(folder, { recursive: true });
  expect(faults).toBe(0);
});

const held = (count: number) => eventually(() => front.serving.holdings().queuedRequests === count);
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
const warnings = async (): Promise<string[]> =>
  ((await front.errorLog()).match(/\[warn\] .*/g) ?? []).map((line) =>
    line.replace(/^.*upstream "web" /, ""),
  );

const BODY = randomText(1 << 22);
const CHUNKED = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
const UPGRADE =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13";

interface Kind {
  /** Status of its response. */
  readonly ask: () => Promise<number>;
  readonly bytes: number;
}
const raw = (request: string, bytes = 0): Kind => ({
  ask: async () => (await exchange(front.plainPort, request)).status,
  bytes,
});
const http2 = (headers: Record<string, string>, body?: string): Kind => ({
  ask: async () => {
    const session = connectHttp2(front.securePort);
    const { status } = await ask(session, { ":path": "/a", ...headers }, body);
    session.destroy();
    return status;
  },
  bytes: body?.length ?? 0,
});
const KINDS: Readonly<Record<string, Kind>> = {
  "GET over HTTP/1.1": raw(get("/a")),
  "POST of nothing": raw("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
  "small POST": raw("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", 3),
  "upload of 4 MiB": raw(
    `PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY.length}\r\nConnection: close\r\n\r\n${BODY}`,
    BODY.length,
  ),
  "upload in chunks": raw(
    `POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${CHUNKED}`,
    BODY.length,
  ),
  "GET over HTTP/2": http2({}),
  "upload of 4 MiB over HTTP/2": http2({ ":method": "PUT", "content-length": String(BODY.length) }, BODY),
  "upload over HTTP/2 without a length": http2({ ":method": "POST" }, BODY),
};

test.each(Object.entries(KINDS))("%s waits until the upstream is there", async (_, { ask: asked, bytes }) => {
  await start();
  const status = asked();
  await held(1);
  await web.up();
  expect(await status).toBe(200);
  expect([...web.got]).toEqual([["/a", 1]]);
  expect(web.bytes).toBe(bytes);
  expect(await warnings()).toEqual([
    "refuses connections: requests wait for up to 5 s (connect() failed (111: ECONNREFUSED) while connecting to upstream)",
    expect.stringMatching(/^no longer refuses connections, after \d\.\d s: 1 requests waited$/),
  ]);
});

test.each(Object.entries(KINDS))("%s is told at once where nothing is held", async (_, { ask: asked }) => {
  await start({ holdMs: 0 });
  expect(await asked()).toBe(502);
  expect(await asked()).toBe(502);
});

test("a WebSocket waits as well", async () => {
  await start();
  const client = await connectTo(front.plainPort);
  client.send(`GET /ws HTTP/1.1\r\nHost: a\r\n${UPGRADE}\r\n\r\n`);
  await held(1);
  await web.up();
  await client.receives("101 Switching Protocols");
  client.socket.destroy();
});

test("no body is asked for before the upstream is there", async () => {
  await start();
  const client = await connectTo(front.plainPort);
  client.send("PUT /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  await held(1);
  await sleep(150);
  expect(client.received).toBe("");
  await web.up();
  await client.receives("100 Continue");
  client.send("abc");
  await client.receives("200 OK");
  client.socket.destroy();
});

test("one that is down for longer makes only the first requests wait", async () => {
  await start();
  const first = [exchange(front.plainPort, get("/a")), exchange(front.plainPort, get("/b"))];
  await held(2);
  await pass(5_000);
  expect((await Promise.all(first)).map(({ status }) => status)).toEqual([502, 502]);
  expect(await front.errorLog()).toMatch(
    /\[error\] .*\(111: ECONNREFUSED\).*; this request was held for 5\d\d\d ms, the upstream has refused connections for 5\d\d\d ms, client: /,
  );
  expect((await exchange(front.plainPort, get("/c"))).status).toBe(502);
  await web.up();
  expect((await exchange(front.plainPort, get("/d"))).status).toBe(200);
  expect((await warnings()).slice(1)).toEqual([
    expect.stringMatching(/, after 5\.\d s: 2 requests waited, 2 of them got 502$/),
  ]);
  await web.kill();
  const next = exchange(front.plainPort, get("/e"));
  await held(1);
  await web.up();
  expect((await next).status).toBe(200);
});

test("one that nobody asked for 30 s holds the requests of the next restart", async () => {
  await start();
  const first = exchange(front.plainPort, get("/a"));
  await held(1);
  await pass(5_000);
  expect((await first).status).toBe(502);
  // Under steady traffic no further request waits, however long the outage lasts.
  for (let i = 0; i < 3; i++) {
    await pass(20_000);
    expect((await exchange(front.plainPort, get("/b"))).status).toBe(502);
  }
  await web.up();
  // Nobody asks while the service is there.
  await pass(30_000);
  await web.kill();
  const next = exchange(front.plainPort, get("/c"));
  await held(1);
  await web.up();
  expect((await next).status).toBe(200);
  expect(await warnings()).toEqual([
    expect.stringMatching(/^refuses connections: /),
    expect.stringMatching(/^refuses connections: /),
    expect.stringMatching(/^no longer refuses connections, after .*: 1 requests waited$/),
  ]);
});

test("only so many wait, and the next one is told to come back", async () => {
  await start({ queuedRequestsMax: 2 });
  const waiting = [exchange(front.plainPort, get("/a")), exchange(front.plainPort, get("/b"))];
  await held(2);
  const { status, headers } = await exchange(front.plainPort, get("/c"));
  expect([status, headers["retry-after"]]).toEqual([503, "5"]);
  expect(await front.errorLog()).toContain("upstream refuses connections, and the queue for one is full");
  await web.up();
  expect((await Promise.all(waiting)).map((one) => one.status)).toEqual([200, 200]);
});

test.each<Partial<UpstreamInput>>([{ holdMs: 0 }, { queuedRequestsMax: 0 }])(
  "none waits with %j",
  async (more) => {
    await start(more);
    expect((await exchange(front.plainPort, get("/a"))).status).toBe(502);
    expect(await warnings()).toEqual([]);
  },
);

test("a client that leaves waits no longer", async () => {
  await start();
  const session = connectHttp2(front.securePort);
  const stream = session.request({ ":authority": "a", ":path": "/a" });
  stream.on("error", () => undefined);
  const client = await connectTo(front.plainPort);
  client.send("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n");
  await held(2);
  client.socket.destroy();
  stream.close();
  await held(0);
  await web.up();
  expect((await exchange(front.plainPort, get("/b"))).status).toBe(200);
  expect([...web.got.keys()]).toEqual(["/b"]);
  session.destroy();
});

test("a socket that is not there, or that nobody listens at", async () => {
  const path = join(folder, "web.sock");
  await start({}, path);
  const first = exchange(front.plainPort, get("/a"));
  await held(1);
  await web.up();
  expect((await first).status).toBe(200);
  await web.kill();
  const left = net.createServer().listen(`${path}.left`);
  await eventually(() => left.listening);
  renameSync(`${path}.left`, path);
  left.close();
  const second = exchange(front.plainPort, get("/b"));
  await held(1);
  rmSync(path);
  await web.up();
  expect((await second).status).toBe(200);
  expect((await warnings()).join("\n")).toMatch(/ENOENT(?:.|\n)*ECONNREFUSED/);
});

test("a request whose used connection broke waits for the next one", async () => {
  await start();
  const upstream = await new RawUpstream((peer) =>
    peer.socket.on("data", () => {
      if (!peer.received.includes("/b"))
        return void peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      // The whole service ends with it.
      void upstream.close();
    }),
  ).listen(web.place as number);
  expect((await exchange(front.plainPort, get("/a"))).status).toBe(200);
  const second = exchange(front.plainPort, get("/b"));
  await held(1);
  await web.up();
  expect((await second).status).toBe(200);
  expect(upstream.connections).toHaveLength(1);
});

test("connections from before are used no more", async () => {
  await start();
  const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const old = await new RawUpstream((peer) =>
    peer.socket.on("data", (data: Buffer) => void (/GET|abc/.test(data.toString()) && peer.send(ok))),
  ).listen(web.place as number);
  const slow = await connectTo(front.plainPort);
  expect((await exchange(front.plainPort, get("/a"))).status).toBe(200);
  // It listens no longer, and keeps its connections, as a service does that finishes what it has.
  const closed = old.stopListening();
  slow.send("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
  await eventually(() => front.serving.holdings().upstreamConnectionsInUse === 1);
  const second = exchange(front.plainPort, get("/c"));
  await held(1);
  slow.send("abc");
  await slow.receives("200 OK");
  await web.up();
  expect((await second).status).toBe(200);
  expect([...web.got.keys()]).toEqual(["/c"]);
  slow.socket.destroy();
  old.connections.forEach(({ socket }) => socket.destroy());
  await closed;
});

test("over TLS: it waits, and what fails otherwise is said at once", async () => {
  const { key, cert } = await issue({ type: "ec" });
  const port = await freePort();
  await start({ url: `https://127.0.0.1:${port}`, tls: { verify: false } });
  const listen = () =>
    new RawUpstream(responding("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), { key, cert }).listen(port);
  const first = exchange(front.plainPort, get("/a"));
  await held(1);
  const secure = await listen();
  expect((await first).status).toBe(200);
  await secure.close();
  const second = exchange(front.plainPort, get("/b"));
  await held(1);
  const plain = await new RawUpstream((peer) => peer.send("hello")).listen(port);
  expect((await second).status).toBe(502);
  expect(await front.errorLog()).toContain("it does not speak TLS on this port");
  await plain.close();
});

test("with a PROXY protocol header, each request has a connection of its own as ever", async () => {
  await start({ proxyProtocol: "v1" });
  const both = [exchange(front.plainPort, get("/a")), exchange(front.plainPort, get("/b"))];
  await held(2);
  const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const upstream = await new RawUpstream((peer) =>
    peer.socket.on("data", () => void (peer.received.includes("\r\n\r\n") && peer.send(ok))),
  ).listen(web.place as number);
  expect((await Promise.all(both)).map(({ status }) => status)).toEqual([200, 200]);
  // That of the attempt carried none, and may have been reset before its header was read.
  const asked = upstream.connections.slice(1).map(({ received }) => received.match(/^PROXY|GET \S+/g));
  expect(asked).toEqual([
    ["PROXY", "GET /a"],
    ["PROXY", "GET /b"],
  ]);
  await upstream.close();
});

test("a worker that ends still serves those that wait", async () => {
  await start();
  const first = exchange(front.plainPort, get("/a"));
  await held(1);
  front.http1.drain();
  await web.up();
  expect((await first).status).toBe(200);
});
