import { type Accepted, answering, connectTo, exchange, isComplete, parseAnswer, RawUpstream } from "./peers.js";
import { specRoutes, startProxy, type TestProxy } from "./harness.js";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
let upstream: RawUpstream;
let proxy: TestProxy;
let script: (peer: Accepted, index: number) => void;
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
async function start(more: Partial<UpstreamInput> = {}, route: Partial<RouteInput> = {}, config = {}): Promise<void> {
  upstream = await new RawUpstream((peer, index) => script(peer, index)).listen();
  proxy = await startProxy({
    routes: specRoutes().map((r) => ({ ...r, ...route })),
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, ...more }],
    config,
  });
}
const faults: unknown[] = [];
const onFault = (e: unknown) => faults.push(e);
beforeEach(() => { script = answering(OK); faults.length = 0; process.on("uncaughtException", onFault); });
afterEach(async () => { process.off("uncaughtException", onFault); await proxy.close(); await upstream.close(); });

const UPGRADE = "GET /sync/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCH = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

test.each(["upstream", "client"])("tunnel ended by %s is closed on both sides", async (who) => {
  await start({ readTimeoutMs: 1000 });
  script = (peer) => { peer.socket.once("data", () => peer.send(SWITCH)); };
  const client = await connectTo(proxy.port);
  client.send(UPGRADE);
  await client.receives("101");
  const up = await upstream.connection();
  if (who === "upstream") { up.socket.end(); await client.until((c) => c.ended); client.socket.end(); }
  else { client.socket.end(); await up.until((c) => c.ended); up.socket.end(); }
  await client.until((c) => c.closed);
  await sleep(2500);
  expect({ faults: faults.map(String), ended: up.ended, closed: up.closed }).toEqual({ faults: [], ended: true, closed: true });
});

test("expect upload longer than read timeout", async () => {
  await start({ readTimeoutMs: 1000 });
  script = (peer) => { peer.socket.on("data", () => { if (peer.received.endsWith("z")) peer.send(OK); }); };
  const client = await connectTo(proxy.port);
  client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n");
  await client.receives("100 Continue");
  for (const c of "aaaaaz") { client.send(c); await sleep(500); }
  await client.until((c) => /HTTP\/1.1 [25]/.test(c.received));
  expect(client.received).toContain("200 OK");
});

test("slow reader with Connection: close gets all", async () => {
  await start();
  const size = 12_000_000;
  script = (peer) => { peer.socket.once("data", () => { peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`); peer.socket.write(Buffer.alloc(size, 120)); }); };
  const client = await connectTo(proxy.port);
  client.send("GET /sync/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  let n = 0, log: string[] = [];
  client.socket.removeAllListeners("data");
  client.socket.on("data", (c: Buffer) => { n += c.length; });
  const t0 = Date.now();
  const iv = setInterval(async () => { log.push(`${Date.now() - t0} ${n}`); }, 1000);
  // read in bursts: 1.5 MB, then sleep
  let mark = 1_500_000;
  client.socket.on("data", () => { if (n > mark) { client.socket.pause(); setTimeout(() => { mark = n + 1_500_000; client.socket.resume(); }, 7000); } });
  await Promise.race([client.until((c) => c.closed || c.ended, 100_000)]);
  clearInterval(iv);
  expect(n).toBeGreaterThan(size);
}, 120_000);

test("read timeout after early head", async () => {
  await start({ readTimeoutMs: 800 });
  script = (peer) => { peer.socket.once("data", () => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")); };
  const client = await connectTo(proxy.port);
  client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
  await client.receives("200 OK");
  client.send("cd");
  await client.until((c) => c.ended || c.closed, 4000);
});

test("504 on reused connection is not retried", async () => {
  await start({ readTimeoutMs: 800 });
  script = (peer) => { peer.socket.once("data", () => peer.send(OK)); };
  const client = await connectTo(proxy.port);
  client.send("GET /sync/1 HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.receives("ok");
  client.send("DELETE /sync/2 HTTP/1.1\r\nHost: a\r\n\r\n");
  await sleep(2000);
  expect(upstream.received.match(/DELETE/g)).toHaveLength(1);
});
