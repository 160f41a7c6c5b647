import type { UpstreamInput } from "../../src/model/index.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** An upstream with several servers: where a request goes when one of them refuses it, breaks off, or is drained. */

const response = (text: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
const request = (head: string, body = ""): string => `${head}\r\nHost: a\r\nConnection: close\r\n\r\n${body}`;

let gone: string;
let servers: RawUpstream[];
let front: EveryProtocol;

/** Servers that refuse come first, so that they get the first request. */
async function start(
  scripts: readonly (((peer: Accepted, index: number) => void) | "refuses")[],
  more: Partial<UpstreamInput> = {},
): Promise<void> {
  servers = [];
  const urls: string[] = [];
  for (const script of scripts) {
    if (script === "refuses") urls.push((gone = `http://127.0.0.1:${await freePort()}`));
    else {
      const server = await new RawUpstream(script).listen();
      servers.push(server);
      urls.push(`http://127.0.0.1:${server.port}`);
    }
  }
  front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    upstreams: [{ name: "web", servers: urls.map((url) => ({ url })), ...more }],
  });
}

afterEach(async () => {
  const faults = front.serving.faults.count;
  const inProgress = (): number =>
    (front.serving.seenServers()["web"] ?? []).reduce((sum, one) => sum + one.inProgress, 0);
  await eventually(() => inProgress() === 0);
  await front.close();
  await Promise.all(servers.map((server) => server.close()));
  expect(faults).toBe(0);
});

const resets = (peer: Accepted): void => void peer.socket.once("data", () => peer.socket.resetAndDestroy());
const BODY = randomText(1_000_000);

test("a request whose server refuses goes to the next one, an upload too, and the server is left out", async () => {
  const taken = (peer: Accepted): void =>
    void peer.socket.on("data", () => peer.received.endsWith(BODY) && peer.send(response("b")));
  await start(["refuses", taken]);
  const upload = request(`PUT /a HTTP/1.1\r\nContent-Length: ${BODY.length}`, BODY);
  expect(await exchange(front.plainPort, upload)).toMatchObject({ status: 200, body: "b" });
  expect(await front.errorLog()).toContain(`its server ${gone} is left out for 1 s: connect() failed`);
  const session = connectHttp2(front.securePort);
  expect(
    await ask(session, { ":path": "/a", ":method": "POST", "content-length": BODY.length }, BODY),
  ).toMatchObject({
    status: 200,
    body: "b",
  });
  session.destroy();
  expect((await front.errorLog()).match(/is left out/g)).toHaveLength(1);
});

test("a WebSocket is opened at the next server", async () => {
  const opens = responding(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
  );
  await start(["refuses", opens]);
  const upgrade =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13";
  const client = await connectTo(front.plainPort);
  client.send(`GET /ws HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n\r\n`);
  await client.receives("101 Switching Protocols");
  client.socket.destroy();
  (await servers[0]!.connection()).socket.destroy();
});

test.each([
  ["GET", 200],
  ["POST", 502],
])("%s that was sent and got no response: %d", async (method, status) => {
  await start([resets, responding(response("b"))]);
  expect(await exchange(front.plainPort, request(`${method} /a HTTP/1.1`))).toMatchObject({ status });
});

test("with no server left, 503 and a time to come back", async () => {
  await start(["refuses", "refuses"]);
  for (let i = 0; i < 2; i++) {
    const { status, headers } = await exchange(front.plainPort, request("GET /a HTTP/1.1"));
    expect([status, headers["retry-after"]]).toEqual([503, "5"]);
  }
  expect(await front.errorLog()).toContain("no server of the upstream is left for the request");
});

test("the proxy's cookie binds a client to its server, and names it to nobody", async () => {
  await start([responding(response("a")), responding(response("b"))], { sticky: { cookie: "portico_web" } });
  const first = await exchange(front.plainPort, request("GET / HTTP/1.1"));
  const set = first.headers["set-cookie"]!;
  expect(set).toMatch(/^portico_web=[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax$/);
  const session = connectHttp2(front.securePort);
  const { headers } = await ask(session, { ":path": "/" });
  expect(String(headers["set-cookie"])).toMatch(/; SameSite=Lax; Secure$/);
  for (let i = 0; i < 4; i++) {
    const bound = await ask(session, { ":path": "/", cookie: `x=y; ${set.split(";")[0]}` });
    expect([bound.body, bound.headers["set-cookie"]]).toEqual([first.body, undefined]);
  }
  session.destroy();
});

test("a session stays at its server until that is drained, and comes back", async () => {
  await start([responding(response("a")), responding(response("b"))], {
    sticky: { applicationCookie: "sessionid" },
  });
  const get = async (): Promise<string> =>
    (await exchange(front.plainPort, request("GET / HTTP/1.1\r\nCookie: sessionid=7"))).body;
  const before = await get();
  expect([await get(), await get()]).toEqual([before, before]);
  const url = `http://127.0.0.1:${servers[before === "a" ? 0 : 1]!.port}`;
  front.serving.orderServers({ web: { [url]: { drained: true, down: false } } });
  expect(await get()).toBe(before === "a" ? "b" : "a");
  front.serving.orderServers({});
  expect(await get()).toBe(before);
});

test("a session is what the cookie of its name says, and nothing else of a request", async () => {
  await start([responding(response("a")), responding(response("b"))], {
    sticky: { applicationCookie: "sessionid" },
  });
  const get = async (fields: string): Promise<string> =>
    (await exchange(front.plainPort, request(`GET / HTTP/1.1\r\n${fields}`))).body;
  const ids = new Map<string, number>();
  for (let id = 0; ids.size < 2; id++) ids.set(await get(`Cookie: sessionid=${id}`), id);
  const [one, other] = [`sessionid=${ids.get("a")}`, `sessionid=${ids.get("b")}`];
  for (const fields of [
    `cOOKIE: ${other}`,
    `Cookie: x=1;${other}`,
    `Cookie: x=1\r\nCookie: ${other}`,
    `Cookie: ${other}; ${one}`,
    `Cookie: sessionid=; ${other}`,
    `Cookie: x${one}; ${other}`,
    `Cookie: ${one.replace("sessionid", "sessionId")}; ${other}`,
    `Accept: ${one}\r\nCookie: ${other}`,
    `X-Cookie: ${one}\r\nCookie: ${other}`,
  ])
    expect([fields, await get(fields)]).toEqual([fields, "b"]);
});

/** A request for /fatal ends its connection without a response, at every server; any other gets one. */
const mortal = (peer: Accepted): void =>
  void peer.socket.on("data", (head: Buffer) =>
    head.includes(" /fatal ") ? peer.socket.destroy() : peer.send(response("a")),
  );

const fatal = async (method = "GET"): Promise<number> =>
  (await exchange(front.plainPort, request(`${method} /fatal HTTP/1.1`))).status;
const victim = async (): Promise<number> =>
  (await exchange(front.plainPort, request("GET /a HTTP/1.1"))).status;
/** How often each server got a request that no server survives. */
const deaths = (): number[] => servers.map((server) => server.received.split(" /fatal ").length - 1);

/** As the master orders, for all servers. */
const orderAll = (order: object): void =>
  front.serving.orderServers({
    web: Object.fromEntries(
      servers.map(({ port }) => [`http://127.0.0.1:${port}`, { drained: false, down: false, ...order }]),
    ),
  });

test.each([
  ["GET", "checks succeed", { passing: true }],
  ["POST", "checks succeed", { passing: true }],
  ["GET", "there are no checks", {}],
  ["POST", "there are no checks", {}],
])("%s requests that no server responds to refuse no other client, where %s", async (method, _, order) => {
  await start([mortal, mortal, mortal], { slowStartMs: 0 });
  orderAll(order);
  const statuses: number[] = [];
  for (let i = 0; i < 12; i++) {
    expect(await fatal(method)).toBe(502);
    statuses.push(...(await Promise.all([victim(), victim(), victim()])));
  }
  // In a row, so that no response in between shows that a server is up.
  for (let i = 0; i < 12; i++) expect(await fatal(method)).toBe(502);
  statuses.push(...(await Promise.all(Array.from({ length: 30 }, victim))));
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  const states = front.serving.seenServers()["web"]!;
  expect(states.filter(({ out }) => out && "passing" in order)).toEqual([]);
  const log = await front.errorLog();
  if ("passing" in order) expect(log).not.toContain("is left out");
  else expect(log).toContain("failed as all others did, so none is left out: upstream prematurely closed");
});

test.each([
  ["GET", 1, false, 1],
  ["GET", 1, true, 2],
  ["POST", 1, true, 1],
  ["GET", 2, false, 2],
  ["GET", 2, true, 2],
  ["POST", 2, true, 1],
  ["GET", 3, false, 2],
  ["GET", 3, true, 2],
  ["POST", 3, false, 1],
])("a %s that none of %d servers responds to, over used connections (%s): sent %d times", async (...row) => {
  const [method, count, used, times] = row;
  await start(Array.from({ length: count }, () => mortal));
  const warmUp = used ? count : 0;
  for (let i = 0; i < warmUp; i++) expect(await victim()).toBe(200);
  expect(await fatal(method)).toBe(502);
  const each = deaths();
  expect(each.reduce((sum, one) => sum + one)).toBe(times);
  // The same server again only where there is no other.
  expect(Math.max(...each)).toBe(count === 1 ? times : 1);
});

test("a server that ends, and still accepts, costs no request that may be repeated", async () => {
  let ends = false;
  const ending = (peer: Accepted): void =>
    void peer.socket.on("data", (head: Buffer) => {
      ends ||= head.includes(" /fatal ");
      if (ends) peer.socket.destroy();
      else peer.send(response("a"));
    });
  await start([ending, responding(response("b"))]);
  expect([await victim(), await victim()]).toEqual([200, 200]);
  const { status, body } = await exchange(front.plainPort, request("GET /fatal HTTP/1.1"));
  expect([status, body]).toEqual([200, "b"]);
});

/** Closes the first connection when a second request comes on it, as if the connection had been idle for too long. */
const closing =
  (text: string) =>
  (peer: Accepted, i: number): void =>
    void peer.socket.on("data", () =>
      i === 0 && peer.received.split("GET /").length === 3
        ? peer.socket.destroy()
        : peer.send(response(text)),
    );

test("where no other server is known to work, a request goes again to the one that closed an idle connection", async () => {
  await start(["refuses", closing("a")]);
  // The first one finds that the other server refuses.
  for (let i = 0; i < 3; i++) expect(await victim()).toBe(200);
  expect(servers[0]!.received.split("GET /")).toHaveLength(5);
});

test.each<[what: string, more: Partial<UpstreamInput>]>([
  ["a session", { sticky: { applicationCookie: "sessionid" } }],
  ["a client that is bound by its address", { balance: "clientAddress" }],
])("%s stays at a server that has closed an idle connection", async (_, more) => {
  await start([closing("a"), closing("b")], more);
  const get = async (): Promise<string> =>
    (await exchange(front.plainPort, request("GET / HTTP/1.1\r\nCookie: sessionid=7"))).body;
  const server = await get();
  expect(await get()).toBe(server);
  expect(servers.map(({ received }) => received.split("GET /").length - 1).sort()).toEqual([0, 3]);
});

test("a request that was lost, and whose server then refuses, goes to another server", async () => {
  const dying = (peer: Accepted): void => {
    mortal(peer);
    peer.socket.once("close", () => void servers[0]!.stopListening());
  };
  const survivor = responding(response("b"));
  await start([dying, survivor]);
  expect([await victim(), await victim()]).toEqual([200, 200]);
  expect(await exchange(front.plainPort, request("GET /fatal HTTP/1.1"))).toMatchObject({
    status: 200,
    body: "b",
  });
  await servers
    .shift()!
    .stopListening()
    .catch(() => undefined);
});
