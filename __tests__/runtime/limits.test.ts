import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/** What one client may ask of a route, on the wire. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

let upstream: RawUpstream;
let front: EveryProtocol;
let asked: string[];
let clients = 0;

beforeAll(async () => {
  upstream = await new RawUpstream((peer) => {
    peer.socket.on("end", () => peer.socket.end());
    peer.socket.on("data", (chunk: Buffer) => {
      const [line] = chunk.toString("latin1").split("\r\n");
      if (!line!.includes(" HTTP/1.1")) return undefined;
      asked.push(line!);
      if (line!.includes("upgrade"))
        return peer.send(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
      return line!.includes("never") ? undefined : peer.send(OK);
    });
  }).listen();
  const proxied = { type: "proxy", upstream: "web", upgrades: ["websocket"] } as const;
  const form = { requestBodyBytesMax: 100 };
  front = await startEveryProtocol({
    routes: [
      { name: "all", path: "/", action: proxied },
      { name: "two", path: "/two", ...form, rateLimit: { requests: 2, perMs: 90_500 }, action: proxied },
      {
        ...{ name: "site", path: "/site", ...form, action: proxied },
        rateLimit: { requests: 1, perMs: 3_600_000, ipv6Prefix: 48 },
      },
      { name: "few", path: "/few", ...form, concurrencyMax: 2, action: proxied },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    format: "json",
    config: { trustedProxies: ["127.0.0.1"] },
  });
});
beforeEach(() => (asked = []));
afterAll(async () => {
  expect(front.serving.faults.count).toBe(0);
  expect(front.serving.limits.running).toBe(0);
  await front.close();
  await upstream.close();
});

/** One that nothing has been counted for. */
const newClient = (): string => `198.51.100.${++clients}`;

const head = (target: string, client: string, more = "", method = "GET"): string =>
  `${method} ${target} HTTP/1.1\r\nHost: app.example\r\nX-Forwarded-For: ${client}\r\n${more}\r\n`;

const statusOf = async (target: string, client: string): Promise<number> =>
  (await exchange(front.plainPort, head(target, client, "Connection: close\r\n"))).status;

test("the third request is one too many, says when to come back, and is asked of no upstream", async () => {
  const client = newClient();
  expect([await statusOf("/two", client), await statusOf("/two/x", client)]).toEqual([200, 200]);
  const refused = await exchange(front.plainPort, head("/two", client, "Connection: close\r\n"));
  expect([refused.status, asked.length]).toEqual([429, 2]);
  // One of two in 90.5 s, rounded up.
  expect(["45", "46"]).toContain(refused.headers["retry-after"]);
  expect([await statusOf("/two", newClient()), await statusOf("/", client)]).toEqual([200, 200]);
});

test("both protocols count together", async () => {
  const client = newClient();
  const session = connectHttp2(front.securePort);
  const fields = { ":path": "/two", "x-forwarded-for": client };
  const first = await ask(session, fields);
  const second = await statusOf("/two", client);
  const [third, open] = await Promise.all([ask(session, fields), ask(session, { ...fields, ":path": "/" })]);
  session.destroy();
  expect([first.status, second, third.status, open.status]).toEqual([200, 200, 429, 200]);
});

test.each([
  ["/two", "2001:db8:1:1::1", "2001:db8:1:1:ffff::2", [200, 200, 429]],
  ["/two", "2001:db8:1:2::1", "2001:db8:1:3::1", [200, 200, 200]],
  ["/site", "2001:db8:2:1::1", "2001:db8:2:ffff::1", [200, 429, 429]],
  ["/two", "192.0.2.1", "::ffff:192.0.2.1", [200, 200, 429]],
])("%s: %s, then %s twice", async (path, first, second, statuses) => {
  const got = [await statusOf(path, first), await statusOf(path, second), await statusOf(path, second)];
  expect(got).toEqual(statuses);
});

test("a field of the client's own is not believed: the last address counts", async () => {
  const client = newClient();
  const got: number[] = [];
  for (let i = 0; i < 3; i++) got.push(await statusOf("/two", `${newClient()}, ${client}`));
  expect(got).toEqual([200, 200, 429]);
});

test("no 100 comes before the judgement, and the connection serves the next request", async () => {
  const client = newClient();
  await statusOf("/two", client);
  await statusOf("/two", client);
  const upload = head("/two", client, "Content-Length: 5\r\nExpect: 100-continue\r\n", "POST");
  const waiting = await connectTo(front.plainPort);
  waiting.send(upload);
  await eventually(() => waiting.received.includes("</html>"));
  expect(waiting.received).toMatch(/^HTTP\/1\.1 429 /);
  waiting.socket.destroy();
  const next = await connectTo(front.plainPort);
  next.send(
    `${head("/two", client, "Content-Length: 5\r\n", "POST")}hello${head("/x", client, "Connection: close\r\n")}`,
  );
  await next.until((peer) => peer.ended || peer.closed);
  expect(next.received.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 429", "HTTP/1.1 200"]);
});

test("two requests at a time, however they end", async () => {
  const client = newClient();
  const session = connectHttp2(front.securePort);
  const slow = await connectTo(front.plainPort);
  slow.send(head("/few/never", client));
  const stream = session.request({ ":path": "/few/never", ":authority": "a", "x-forwarded-for": client });
  stream.on("error", () => undefined);
  await eventually(() => asked.length === 2);
  expect([await statusOf("/few", client), await statusOf("/few", newClient())]).toEqual([429, 200]);
  stream.close(8);
  await eventually(async () => (await statusOf("/few", client)) === 200);
  slow.socket.destroy();
  await eventually(() => front.serving.limits.running === 0);
  const upgrade =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
  const tunnels = [await connectTo(front.plainPort), await connectTo(front.plainPort)];
  for (const tunnel of tunnels) tunnel.send(head("/few/upgrade", client, upgrade));
  await eventually(() => tunnels.every(({ received }) => received.startsWith("HTTP/1.1 101")));
  expect(await statusOf("/few", client)).toBe(429);
  for (const tunnel of tunnels) tunnel.socket.destroy();
  await eventually(() => front.serving.limits.running === 0);
  // A pipelined request begins when the one before it is over.
  const piped = await connectTo(front.plainPort);
  piped.send(head("/few", client).repeat(5) + head("/few", client, "Connection: close\r\n"));
  await piped.until((peer) => peer.ended || peer.closed);
  expect(piped.received.match(/HTTP\/1\.1 200/g)).toHaveLength(6);
  session.destroy();
});

test("logs name the limit", async () => {
  const client = newClient();
  for (let i = 0; i < 3; i++) await statusOf("/two", client);
  const lines = (): Promise<string> => front.accessLog();
  await eventually(async () => (await lines()).includes(`"remote_addr":"${client}"`));
  await eventually(async () =>
    (await lines())
      .split("\n")
      .some(
        (line) =>
          line.includes(client) && line.includes('"status":429') && line.includes('"limit":"rateLimit"'),
      ),
  );
  await eventually(async () =>
    (await front.errorLog()).includes(`limit="rateLimit": the client asks for too much, client: ${client}`),
  );
});
