import { once } from "node:events";
import * as net from "node:net";
import { type Accepted, answering, connectTo, exchange, isComplete, parseAnswer, RawUpstream } from "./peers.js";
import { specRoutes, startProxy, type TestProxy } from "./harness.js";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";
import { UpstreamPool } from "../../src/runtime/upstream/pool.js";

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

test.each(["close", "drain"])("slow reader %s gets all", async (how) => {
  await start();
  const client = await connectTo(proxy.port);
  client.socket.removeAllListeners("data");
  client.socket.pause();
  const one = "GET /big HTTP/1.1\r\nHost: a\r\n";
  client.send((one + "\r\n").repeat(200) + one + (how === "close" ? "Connection: close\r\n\r\n" : "\r\n"));
  await sleep(300);
  if (how === "drain") proxy.drain();
  await sleep(9000);
  let n = 0;
  client.socket.on("data", (c: Buffer) => { n += c.length; });
  client.socket.resume();
  await client.until((c) => c.closed || c.ended, 12_000).catch(() => {});
  expect(n).toBeGreaterThan(201 * 60000);
}, 60_000);

test("pipelining without reading is bounded", async () => {
  await start({}, {}, { limits: { keepAliveRequestsMax: 100000 } });
  const before = process.memoryUsage();
  const client = await connectTo(proxy.port);
  client.socket.removeAllListeners("data");
  client.socket.pause();
  client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n".repeat(5000));
  await sleep(3000);
  const after = process.memoryUsage();
  console.log("rss MB", (after.rss - before.rss) / 1e6, (after.heapUsed - before.heapUsed) / 1e6, (after.external - before.external) / 1e6, (await proxy.accessLog()).split("\n").length);
  client.socket.destroy();
});

test("one byte chunks cost", async () => {
  await start();
  script = (peer) => { peer.socket.removeAllListeners("data"); peer.socket.resume(); };
  const client = await connectTo(proxy.port);
  client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  await sleep(100);
  const payload = Buffer.from("1\r\nX\r\n".repeat(175_000), "latin1");
  const t0 = process.cpuUsage(); const w0 = Date.now();
  client.socket.write(payload);
  const conn = (await upstream.connection()).socket;
  while (conn.bytesRead < payload.length && Date.now() - w0 < 20000) await sleep(20);
  const cpu = process.cpuUsage(t0);
  console.log("1-byte chunks, 1 MB:", (cpu.user + cpu.system) / 1000, "ms cpu", Date.now() - w0, "ms", conn.bytesRead);
  client.socket.destroy();
}, 60000);

test("a destroyed idle connection is not handed out", async () => {
  await start();
  const pool = new UpstreamPool({ name: "x", url: `http://127.0.0.1:${upstream.port}`, connectTimeoutMs: 1000, sendTimeoutMs: 1000, readTimeoutMs: 1000, idleConnectionsMax: 4, idleTimeoutMs: 100, headBytesMax: 4096 } as never);
  const ask = (before?: () => void) => new Promise<string>((resolve) => {
    const c = pool.acquire(false);
    c.begin({ onInformational() {}, onAnswerHead() {}, onAnswerData: () => true, onAnswerPause() {}, onAnswerEnd: () => resolve("end"), onAnswerError: (f) => resolve(f.message), onRequestDrain() {} }, "POST", "POST / HTTP/1.1\r\nHost: a\r\n\r\n");
    c.finish();
  });
  expect(await ask()).toBe("end");
  pool.sweep(Infinity);
  expect(await ask()).toBe("end");
  pool.close();
});

test("bytes behind an answer reach nobody, even when they wait in the socket", async () => {
  await start();
  const size = 9_000_000;
  const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
  const upgraded: string[] = [];
  script = (peer) => {
    peer.socket.once("data", async () => {
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
      peer.socket.write(Buffer.alloc(size, 120));
      await new Promise<void>((r) => peer.socket.write("", () => r()));
      await sleep(50);
      peer.send(evil);
      peer.socket.on("data", () => { if (peer.received.split("HTTP/1.1").length > 2) peer.send(OK); });
    });
  };
  const client = await connectTo(proxy.port);
  client.socket.pause();
  client.send("GET /sync/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /sync/2 HTTP/1.1\r\nHost: a\r\n\r\n");
  await sleep(1500);
  client.socket.resume();
  await client.until((c) => c.received.length > size + 300 && /(EVIL|ok)$/.test(c.received), 10000);
  expect(client.received.slice(-4)).not.toBe("EVIL");
});

test.each(["\r\n", "\r"])("empty line in its own packet before a request %j", async (first) => {
  await start();
  const client = await connectTo(proxy.port);
  client.socket.setNoDelay(true);
  client.send(first);
  await sleep(100);
  client.send((first === "\r" ? "\n" : "") + "GET /sync/ HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receives("\r\n\r\n");
  expect(client.received).toMatch(/^HTTP\/1.1 200/);
  client.socket.destroy();
});

test("connection options cost", async () => {
  await start({}, {}, { limits: { headBytesMax: 1_048_576, headerCountMax: 2000 } });
  for (const [opts, fields] of [[10000, 190], [250000, 1900]] as const) {
    const t0 = process.cpuUsage();
    const req = `GET /sync/ HTTP/1.1\r\nHost: a\r\nConnection: ${"a,".repeat(opts)}b\r\n${Array.from({ length: fields }, (_, i) => `x${i}: 1\r\n`).join("")}\r\n`;
    await exchange(proxy.port, req);
    const cpu = process.cpuUsage(t0);
    console.log("connection options", opts, fields, req.length, (cpu.user + cpu.system) / 1000);
  }
});

test("trusted proxy whose Connection names our fields", async () => {
  await start({}, {}, { trustedProxies: ["127.0.0.1"] });
  await exchange(proxy.port, "GET /sync/ HTTP/1.1\r\nHost: a\r\nConnection: close, x-real-ip, x-forwarded-proto, x-forwarded-for\r\nX-Real-IP: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n");
  console.log(upstream.received);
  expect(upstream.received).toMatch(/X-Real-IP: 127/);
});
