import { connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { killAll, Portico } from "../../testkit/portico.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** What clients have asked of one worker, as the other workers and those of a reload know it. */

let upstream: RawUpstream;
let asked = 0;

beforeAll(async () => {
  upstream = await new RawUpstream((peer) => {
    peer.socket.on("data", () => {
      // Only the first waits.
      if (++asked > 1) peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  }).listen();
});
afterAll(async () => {
  killAll();
  await upstream.close();
});

const head = (path: string, client: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${client}\r\nConnection: close\r\n\r\n`;

test("two workers count together, and a reload is no way around a limit", async () => {
  const port = await freePort();
  const config = (text: string) =>
    oneServer({
      workers: 2,
      trustedProxies: ["127.0.0.1"],
      logs: { access: "off", error: "off" },
      timeouts: { drainMs: 60_000 },
      listeners: [loopback("http", port)],
      upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
      routes: [
        {
          ...{ name: "files", path: "/files", rateLimit: { requests: 1, perMs: 3_600_000, burst: 5 } },
          action: { type: "staticFiles", directory: "/usr/share" },
        },
        {
          ...{ name: "few", path: "/few", requestBodyBytesMax: 100, concurrencyMax: 1 },
          action: { type: "proxy", upstream: "web" },
        },
        { name: "text", path: "/", action: { type: "respond", status: 200, body: text } },
      ],
    });
  const portico = await Portico.start(config("one"));
  const statuses = async (path: string, client: string, count: number): Promise<readonly number[]> => {
    const all = Array.from({ length: count }, () => exchange(port, head(path, client)));
    return (await Promise.all(all)).map(({ status }) => status);
  };
  const passed = (all: readonly number[]): number => all.filter((status) => status !== 429).length;
  // At once, each worker may allow as many as one would; a report later, none allows any.
  const first = passed(await statuses("/files/none", "192.0.2.1", 30));
  expect([first >= 5, first <= 10]).toEqual([true, true]);
  await eventually(async () => passed(await statuses("/files/none", "192.0.2.1", 20)) === 0);
  expect(passed(await statuses("/files/none", "192.0.2.2", 1))).toBe(1);
  const waiting = await connectTo(port);
  waiting.send(head("/few", "192.0.2.1"));
  await eventually(() => asked === 1);
  await eventually(async () => passed(await statuses("/few", "192.0.2.1", 10)) === 0);

  portico.rewrite(config("two"));
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect((await exchange(port, head("/", "192.0.2.1"))).body).toBe("two");
  expect(passed(await statuses("/files/none", "192.0.2.1", 20))).toBe(0);
  expect(passed(await statuses("/few", "192.0.2.1", 10))).toBe(0);

  // The worker that the request ran in was of the config before.
  waiting.socket.destroy();
  await eventually(async () => passed(await statuses("/few", "192.0.2.1", 1)) === 1);
  expect(await portico.stop()).toBe(0);
}, 90_000);
