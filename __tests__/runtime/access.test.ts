import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { totalOf } from "../../src/runtime/counting/counts.js";
import { statusesOver } from "../../testkit/bothProtocols.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Whom access policies refuse, on the wire. */

const STRANGER = "198.51.100.7";
const AT_HOME = "192.168.1.5";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

let upstream: RawUpstream;
let front: EveryProtocol;
let asked: string[];

beforeAll(async () => {
  upstream = await new RawUpstream((peer) => {
    peer.socket.on("data", (chunk: Buffer) => {
      asked.push(chunk.toString("latin1").split("\r\n")[0]!);
      peer.send(OK);
    });
  }).listen();
  const proxied = { type: "proxy", upstream: "web" } as const;
  front = await startEveryProtocol({
    routes: [
      { name: "web", path: "/", action: proxied },
      { name: "admin", path: "/admin", access: "home", action: proxied },
      { name: "hidden", path: "/hidden", access: "hidden", action: proxied },
      { name: "silent", path: "/silent", access: "silent", action: proxied },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    config: {
      trustedProxies: ["127.0.0.1"],
      accessPolicies: {
        home: { allow: ["192.168.0.0/16"] },
        hidden: { allow: ["192.168.0.0/16"], refusal: 404 },
        silent: { allow: ["192.168.0.0/16"], refusal: "close" },
      },
    },
  });
});
beforeEach(() => (asked = []));
afterAll(async () => {
  expect(front.serving.faults.count).toBe(0);
  await front.close();
  await upstream.close();
});

const head = (target: string, client: string, more = ""): string =>
  `GET ${target} HTTP/1.1\r\nHost: app.example\r\nX-Forwarded-For: ${client}\r\n${more}\r\n`;

test.each([
  ...["/admin", "/admin/", "//admin", "/%61dmin", "/x/../admin", "/./admin", "/x%2f..%2fadmin", "/ADMIN"],
  ...[
    "/admin;a=b",
    "/x/..;/admin",
    "/admin.",
    "/admin%20",
    "/admin/../x",
    "/x%5c..%5cadmin",
    "/x/%252e%252e/admin",
  ],
  ...["/admin?q", "http://app.example/admin", "http://app.example//%61dmin"],
])("%s is refused over both protocols, and asked of no upstream", async (target) => {
  expect(await statusesOver(front, target, { "x-forwarded-for": STRANGER })).toEqual([403, 403]);
  expect(asked).toEqual([]);
});

test("who may come in gets the application's response, by the address that a trusted proxy names", async () => {
  const responses = await Promise.all(
    [
      AT_HOME,
      `${STRANGER}, ${AT_HOME}`,
      `::ffff:${AT_HOME}`,
      `[::ffff:c0a8:105]:443`,
      `${AT_HOME}, ${STRANGER}`,
      "unknown",
      "2001:db8::1",
    ].map((client) => exchange(front.plainPort, head("/admin", client, "Connection: close\r\n"))),
  );
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 403, 403, 403]);
});

test("a refusal may be a 404, or no response at all; other streams of the connection go on", async () => {
  expect((await exchange(front.plainPort, head("/hidden/x", STRANGER, "Connection: close\r\n"))).status).toBe(
    404,
  );
  const client = await connectTo(front.plainPort);
  client.send(head("/silent", STRANGER));
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received).toBe("");
  const session = connectHttp2(front.securePort);
  const [silent, open] = await Promise.all(
    ["/silent", "/"].map((path) => ask(session, { ":path": path, "x-forwarded-for": STRANGER })),
  );
  session.destroy();
  expect([silent!.status, silent!.code !== 0, open!.status]).toEqual([0, true, 200]);
});

test("no 100 and no upgrade comes before the judgement, and the connection serves the next request", async () => {
  const client = await connectTo(front.plainPort);
  const upload = `POST /admin HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${STRANGER}\r\nContent-Length: 5\r\n`;
  client.send(`${upload}Expect: 100-continue\r\n\r\n`);
  await eventually(() => client.received.includes("</html>"));
  expect(client.received).toMatch(/^HTTP\/1\.1 403 /);
  client.socket.destroy();
  const next = await connectTo(front.plainPort);
  next.send(`${upload}\r\nhello${head("/x", STRANGER, "Connection: close\r\n")}`);
  await next.until((peer) => peer.ended || peer.closed);
  expect(next.received.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 403", "HTTP/1.1 200"]);
  expect(asked).toEqual(["GET /x HTTP/1.1"]);
  const socket =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
  expect((await exchange(front.plainPort, head("/admin", STRANGER, socket))).status).toBe(403);
});

test("refusals are counted by server, policy and field, over both protocols", async () => {
  front.serving.counts.changes();
  for (const target of ["/admin", "/hidden", "/silent", "/"]) {
    const client = await connectTo(front.plainPort);
    client.send(head(target, STRANGER, "Connection: close\r\n"));
    await client.until((peer) => peer.ended || peer.closed);
  }
  await statusesOver(front, "/admin", { "x-forwarded-for": STRANGER });
  const counts = front.serving.counts.changes()!;
  const of = (policy: string): number => totalOf(counts, "accessRefused", { policy, reason: "allow" });
  expect([of("home"), of("hidden"), of("silent"), totalOf(counts, "accessRefused")]).toEqual([3, 1, 1, 5]);
});

test("the address of a PROXY protocol header is judged, and not what its client says", async () => {
  const port = await freePort();
  const portico = await Portico.start(
    oneServer({
      trustedProxies: ["192.0.2.200"],
      accessPolicies: { site: { allow: ["192.168.0.0/16"] } },
      listeners: [{ ...loopback("http", port), proxyProtocol: { from: ["127.0.0.1"] } }],
      upstreams: [],
      routes: [
        { name: "all", path: "/", access: "site", action: { type: "respond", status: 200, body: "in" } },
      ],
    }),
  );
  const statuses = await Promise.all(
    [
      [AT_HOME, STRANGER],
      [STRANGER, AT_HOME],
    ].map(async ([address, forwarded]) => {
      const announced = `PROXY TCP4 ${address} 127.0.0.1 40000 80\r\n`;
      return (await exchange(port, announced + head("/", forwarded!, "Connection: close\r\n"))).status;
    }),
  );
  expect(statuses).toEqual([200, 403]);
  await portico.stop();
});

test("a list is read again in each worker; nonsense is refused as a whole, and the old list stays", async () => {
  const file = join(openFolder(), "denied.txt");
  writeFileSync(file, "# nobody\n");
  const [port, log] = [await freePort(), join(openFolder(), "access.log")];
  const portico = await Portico.start(
    oneServer({
      workers: 2,
      logs: { access: { path: log, format: "json" }, error: "off" },
      trustedProxies: ["127.0.0.1"],
      accessPolicies: { site: { denyFile: file } },
      listeners: [loopback("http", port)],
      upstreams: [],
      routes: [
        { name: "all", path: "/", access: "site", action: { type: "respond", status: 200, body: "in" } },
      ],
    }),
  );
  const statuses = async (): Promise<readonly number[]> => {
    const all = await Promise.all(
      Array.from({ length: 12 }, () => exchange(port, head("/", STRANGER, "Connection: close\r\n"))),
    );
    return [...new Set(all.map(({ status }) => status))];
  };
  expect(await statuses()).toEqual([200]);
  writeFileSync(file, `\ufeff${STRANGER}\r\n`);
  await portico.says(/denied\.txt\) was read again: 1 range of addresses/);
  await eventually(async () => (await statuses()).join() === "403");
  writeFileSync(file, "<!doctype html>\n");
  await portico.says(/the new one is refused, and the previous one stays in use: .* in line 1/);
  expect(await statuses()).toEqual([403]);
  await portico.stop();
}, 60_000);
