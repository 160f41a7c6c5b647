import * as net from "node:net";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type Accepted, answering, connectTo, exchange, isComplete, parseAnswer, RawUpstream } from "./peers.js";
import { specRoutes, startProxy, type TestProxy } from "./harness.js";
import { connectHttp2, startHttp2Server } from "./http2Server.js";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
let upstream: RawUpstream;
let proxy: TestProxy;
let script: (peer: Accepted, index: number) => void;
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
async function start(more: Partial<UpstreamInput> = {}, route: Partial<RouteInput> = {}, config = {}): Promise<void> {
  upstream = await new RawUpstream((peer, index) => script(peer, index)).listen();
  proxy = await startProxy({
    routes: [...specRoutes().map((r) => ({ ...r, ...route })), { name: "big", path: "/big", action: { type: "respond", status: 200, body: "x".repeat(60000) } }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, ...more }],
    config,
  });
}
beforeEach(() => { script = answering(OK); });
afterEach(async () => { await proxy.close(); await upstream.close(); });

test("h2 bodies of parallel streams do not mix", async () => {
  await start();
  script = (peer) => {
    let n = 0;
    peer.socket.on("data", () => {
      const reqs = [...peer.received.matchAll(/GET \/sync\/(.)/g)];
      for (; n < reqs.length; n++) peer.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n` + reqs[n]![1]!.repeat(40000));
    });
  };
  const server = await startHttp2Server({ routes: [{ name: "web", path: "/sync", match: "prefix", action: { type: "proxy", upstream: "web" } }], config: { upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }] } });
  const session = connectHttp2(server.port);
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const bodies = await Promise.all([...letters, ...letters].map(async (c) => {
    const s = session.request({ ":path": `/sync/${c}`, ":authority": "app.example" });
    let body = "";
    s.setEncoding("latin1");
    s.on("data", (d: string) => (body += d));
    await once(s, "end");
    return [c, body.replaceAll(c, "").length, body.length];
  }));
  session.destroy();
  await server.close();
  expect(bodies.filter(([, bad]) => bad !== 0)).toEqual([]);
});

test("a pipelined upload is not mixed with what others send", async () => {
  await start();
  const size = 3_000_000;
  script = (peer) => {
    peer.socket.removeAllListeners("data");
    let got = "", body = 0, bad = 0, uploading = false;
    peer.socket.on("data", (d: Buffer) => {
      let t = d.toString("latin1");
      if (!uploading) { got += t; const i = got.indexOf("\r\n\r\n"); if (i === -1) return; t = got.slice(i + 4); if (got.startsWith("PUT /sync/slow")) { uploading = true; } else { got = ""; peer.send(OK); return; } }
      body += t.length; bad += t.replaceAll("u", "").length;
      if (bad > 0) faults.push(bad);
      peer.socket.pause(); setTimeout(() => peer.socket.resume(), 20);
      if (body === size) peer.send(OK);
    });
  };
  const faults: number[] = [];
  const client = await connectTo(proxy.port);
  client.send("GET /sync/1 HTTP/1.1\r\nHost: a\r\n\r\nPUT /sync/slow HTTP/1.1\r\nHost: a\r\nContent-Length: " + size + "\r\n\r\n" + "u".repeat(1000));
  await client.receives("ok");
  await sleep(50);
  const other = await connectTo(proxy.port);
  await sleep(50);
  client.send("u".repeat(10000)); other.send("GET /big HTTP/1.1\r\nHost: a\r\nX-Secret: " + "S".repeat(20000) + "\r\n\r\n");
  await sleep(100);
  client.send("u".repeat(size - 11000));
  const t0 = Date.now();
  while (Date.now() - t0 < 3000 && !/ok[^]*ok$/.test(client.received)) { other.send("GET /big HTTP/1.1\r\nHost: a\r\nX-Secret: " + "S".repeat(20000) + "\r\n\r\n"); await sleep(2); other.received = ""; }
  expect(faults).toEqual([]);
  expect(client.received).toMatch(/ok[^]*ok$/);
});

test("chunked upload of small chunks arrives intact", async () => {
  await start();
  const hash = createHash("sha1");
  let total = 0;
  let up: Buffer[] = [];
  script = (peer) => {
    peer.socket.removeAllListeners("data");
    peer.socket.on("data", (d: Buffer) => { up.push(d); if (d.subarray(-5).toString() === "0\r\n\r\n") peer.send(OK); });
  };
  const client = await connectTo(proxy.port);
  client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const pieces: Buffer[] = [];
  for (let i = 0; i < 4000; i++) { const b = Buffer.alloc(8000, i & 0xff); b.writeUInt32BE(i, 0); pieces.push(b); hash.update(b); total += b.length; }
  client.socket.write(Buffer.concat(pieces.flatMap((b) => [Buffer.from("1f40\r\n"), b, Buffer.from("\r\n")])));
  client.send("0\r\n\r\n");
  await client.receives("ok");
  const all = Buffer.concat(up);
  let at = all.indexOf("\r\n\r\n") + 4;
  const got = createHash("sha1"); let n = 0; const bad: number[] = [];
  for (;;) { const e = all.indexOf("\r\n", at); const len = parseInt(all.toString("latin1", at, e), 16); if (!(len > 0)) break; got.update(all.subarray(e + 2, e + 2 + len)); n += len; at = e + 4 + len; }
  expect([n, got.digest("hex")]).toEqual([total, hash.digest("hex")]);
});

test("a client that half-closes just as its answer is complete gets it", async () => {
  await start();
  script = () => {};
  const client = await connectTo(proxy.port);
  client.send("GET /sync/1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const up = await (await upstream.connection()).receives("\r\n\r\n");
  await sleep(50);
  up.send(OK); client.socket.end();
  await client.until((c) => c.closed || c.ended);
  expect(client.received).toMatch(/ok$/);
});

test("an unasked answer is not taken for that of a request which was not sent yet", async () => {
  await start();
  script = (peer) => { let n = 0; peer.socket.on("data", () => { const r = [...peer.received.matchAll(/GET \/sync\/(.)/g)]; for (; n < r.length; n++) peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n#${r[n]![1]}`); }); };
  const client = await connectTo(proxy.port);
  client.send("GET /sync/1 HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receives("#1");
  const up = await upstream.connection();
  client.received = "";
  client.send("GET /sync/2 HTTP/1.1\r\nHost: a\r\n\r\n"); up.send("HTTP/1.1 408 Timeout\r\nContent-Length: 3\r\n\r\nbad");
  await client.until((c) => c.closed || isComplete(c.received));
  console.log(client.received, upstream.connections.length, upstream.received);
  expect(client.received).toMatch(/#2$/);
});
