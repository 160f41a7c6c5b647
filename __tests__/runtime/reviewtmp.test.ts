import { specRoutes, startProxy } from "./harness.js";
import { connectTo, RawUpstream } from "./peers.js";
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const BIG = { name: "big", path: "/big", action: { type: "respond", status: 200, body: "x".repeat(60_000) } } as const;
test("half-closed slow reader gets all", async () => {
  const size = 12_000_000;
  const up = await new RawUpstream((p) => p.socket.once("data", () => { p.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`); p.socket.write(Buffer.alloc(size, 120)); })).listen();
  const proxy = await startProxy({ routes: specRoutes(), upstreams: [{ name: "web", url: `http://127.0.0.1:${up.port}` }] });
  const c = await connectTo(proxy.port);
  let n = 0;
  c.socket.removeAllListeners("data"); c.socket.on("data", (d: Buffer) => { n += d.length; }); c.socket.pause();
  c.send("GET /sync/1 HTTP/1.1\r\nHost: a\r\n\r\n"); c.socket.end();
  await sleep(4000);
  c.socket.resume();
  await c.until((p) => p.ended || p.closed);
  expect(n).toBeGreaterThan(size);
  await proxy.close(); await up.close();
});
test("idle after a hold is timed out", async () => {
  const proxy = await startProxy({ routes: [BIG], config: { timeouts: { keepAliveMs: 500 } } });
  const all = await Promise.all(Array.from({ length: 30 }, async (_, i) => {
    const c = await connectTo(proxy.port);
    c.socket.removeAllListeners("data"); c.socket.on("data", () => {}); c.socket.pause();
    c.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n".repeat(55 + i));
    await sleep(400);
    c.send("\r\n");
    await sleep(100);
    c.socket.resume();
    return c;
  }));
  await sleep(3000);
  const open = all.map((c, i) => (c.ended || c.closed ? -1 : 55 + i)).filter((i) => i > 0);
  await proxy.close();
  expect(open).toEqual([]);
});
test("send timeout of the route holds for the last answer", async () => {
  const proxy = await startProxy({ routes: [{ ...BIG, sendTimeoutMs: 600_000 }] });
  const c = await connectTo(proxy.port);
  let n = 0;
  c.socket.removeAllListeners("data"); c.socket.on("data", (d: Buffer) => { n += d.length; }); c.socket.pause();
  c.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n".repeat(150));
  await sleep(34_000);
  c.socket.resume();
  await sleep(1500);
  const ended = c.ended || c.closed;
  await proxy.close();
  expect([ended, n > 150 * 60_000]).toEqual([false, true]);
}, 60_000);
