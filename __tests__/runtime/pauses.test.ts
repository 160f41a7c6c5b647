import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pass } from "node:timers/promises";
import type { PauseOrder, QuiesceOrder, SeenWrites } from "../../src/runtime/dispatch/pauses.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { type Accepted, connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { nextEvent } from "../../testkit/waiting.js";

/** What a worker refuses by order, on the wire. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SWITCHED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
const CLOSE_1012 = "\x88\x02\x03\xf4";

let upstream: RawUpstream;
let front: EveryProtocol;
/** The upstream's sides of tunnels. */
let tunnels: Accepted[];

beforeEach(async () => {
  tunnels = [];
  upstream = await new RawUpstream((peer) => {
    let open = false;
    peer.socket.on("data", (chunk: Buffer) => {
      if (open || peer.received.includes(" /web/held")) return;
      open = /upgrade: websocket/i.test(chunk.toString());
      if (open) tunnels.push(peer);
      peer.send(open ? SWITCHED : OK);
    });
  }).listen();
  const proxied = { type: "proxy", upstream: "web" } as const;
  front = await startEveryProtocol({
    routes: [
      { name: "web", path: "/web", action: proxied },
      { name: "socket", path: "/socket", writes: "always", action: proxied },
      { name: "push", path: "/push", writes: "never", action: proxied },
      { name: "text", path: "/text", action: { type: "respond", status: 200, body: "text" } },
      { name: "away", path: "/away", action: { type: "redirect", status: 302, path: "/web" } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    config: { maintenance: { allow: ["127.0.0.9"] } },
  });
});

afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

const order = (one: Partial<PauseOrder>): void =>
  front.serving.dispatcher.pauses.set({ maintenance: [], ...one });
const quiesced = (more: Partial<QuiesceOrder> = {}): QuiesceOrder => ({
  ...{ reads: false, refuses: true, minimumRate: 0, cutsSlow: false, refuseMs: 30_000 },
  ...more,
});
const running = () => [...front.http1.running(), ...front.http2.running()];
const look = (): SeenWrites => front.serving.dispatcher.pauses.carryOut(running());
const writes = (): number => look().writes;

async function statuses(requests: readonly (readonly [method: string, path: string])[]): Promise<string[]> {
  const session = connectHttp2(front.securePort);
  const seen: string[] = [];
  for (const [method, path] of requests) {
    const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
    const plain = await exchange(front.plainPort, head);
    const framed = await ask(session, { ":method": method, ":path": path });
    expect([method, path, framed.status]).toEqual([method, path, plain.status]);
    seen.push(`${method} ${path} ${plain.status}`);
  }
  session.destroy();
  return seen;
}

test("in maintenance requests get 503, but redirects lead on, and challenges get a response", async () => {
  const until = Date.now() + 90_000;
  order({ maintenance: [{ until, message: "Back <soon>", closesTunnels: false }] });
  const response = await exchange(front.plainPort, "GET /web HTTP/1.1\r\nHost: a\r\n\r\n");
  expect(response.status).toBe(503);
  expect(Number(response.headers["retry-after"])).toBeGreaterThan(80);
  expect(Number(response.headers["retry-after"])).toBeLessThan(91);
  expect(response.headers["content-type"]).toBe("text/plain; charset=utf-8");
  expect(response.body).toBe("503 Service Temporarily Unavailable: Back <soon>\n");
  const browser = "GET /web HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*;q=0.8\r\n\r\n";
  const page = await exchange(front.plainPort, browser);
  expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(page.body).toContain('<meta http-equiv="refresh" content="20">');
  expect(page.body).toContain("<p>Back &#60;soon&#62;</p>");
  expect(
    await statuses([
      ["PUT", "/web"],
      ["GET", "/text"],
      ["GET", "/away"],
      ["GET", "/nowhere"],
    ]),
  ).toEqual(["PUT /web 503", "GET /text 503", "GET /away 302", "GET /nowhere 404"]);
  front.serving.dispatcher.setChallenges([{ type: "http-01", token: "t", keyAuthorization: "t.print" }]);
  const path = "/.well-known/acme-challenge/t";
  expect((await exchange(front.plainPort, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)).body).toBe("t.print");
  order({});
  expect(await statuses([["GET", "/web"]])).toEqual(["GET /web 200"]);
});

test("programs get the virtual server's own response, whatever refuses them, and browsers the page", async () => {
  const pauseResponse = {
    contentType: "application/xml; charset=utf-8",
    body: "<error>later</error>\n",
    headers: { "X-Maintenance": "1" },
  };
  const own = await startEveryProtocol({
    routes: [],
    config: {
      virtualServers: [
        {
          name: "application",
          serverNames: ["_"],
          default: true,
          listeners: ["http", "https"],
          pauseResponse,
          routes: [
            { name: "text", path: "/text", writes: "always", action: { type: "respond", status: 200 } },
            { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
          ],
        },
      ],
    },
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
  const session = connectHttp2(own.securePort);
  const orders: readonly PauseOrder[] = [
    { maintenance: [{ until: Date.now() + 90_000, message: "Back soon", closesTunnels: false }] },
    { maintenance: [], quiesce: quiesced() },
  ];
  for (const paused of orders) {
    own.serving.dispatcher.pauses.set(paused);
    for (const method of ["PUT", "DELETE"]) {
      const seen = await ask(session, { ":method": method, ":path": "/web" });
      expect([seen.status, seen.body]).toEqual([503, pauseResponse.body]);
      expect(seen.headers).toMatchObject({
        "content-type": pauseResponse.contentType,
        "x-maintenance": "1",
        "retry-after": expect.stringMatching(/^\d+$/),
        vary: "Accept",
      });
    }
    const page = await ask(session, { ":method": "POST", ":path": "/web", accept: "text/html" });
    expect([page.status, page.headers["x-maintenance"]]).toEqual([503, undefined]);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  }
  session.destroy();
  await own.close();
});

test("the maintenance of another site changes nothing; without an end it says a minute", async () => {
  order({ maintenance: [{ site: "other", closesTunnels: true }] });
  expect(await statuses([["GET", "/web"]])).toEqual(["GET /web 200"]);
  order({ maintenance: [{ site: "application", closesTunnels: true }] });
  const response = await exchange(front.plainPort, "GET /web HTTP/1.1\r\nHost: a\r\n\r\n");
  expect([response.status, response.headers["retry-after"]]).toEqual([503, "60"]);
});

test("who may come in is decided by the client's address, and not by what it says", async () => {
  order({ maintenance: [{ closesTunnels: false }] });
  const forged = "GET /web HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 127.0.0.9\r\nX-Real-IP: 127.0.0.9\r\n\r\n";
  expect((await exchange(front.plainPort, forged)).status).toBe(503);
});

test("while quiesced, what writes is refused by method and by route, and what reads is served", async () => {
  order({ quiesce: quiesced() });
  const read = ["GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "SEARCH"] as const;
  const write = ["POST", "PUT", "DELETE", "MKCOL", "MOVE", "COPY", "LOCK", "PATCH", "PROPPATCH", "ANYTHING"];
  expect(await statuses(read.map((method) => [method, "/web"] as const))).toEqual(
    read.map((method) => `${method} /web 200`),
  );
  expect(await statuses(write.map((method) => [method, "/web"] as const))).toEqual(
    write.map((method) => `${method} /web 503`),
  );
  expect(
    await statuses([
      ["GET", "/socket"],
      ["POST", "/push"],
      ["POST", "/text"],
      ["POST", "/away"],
    ]),
  ).toEqual(["GET /socket 503", "POST /push 200", "POST /text 200", "POST /away 302"]);
  order({ quiesce: quiesced({ reads: true }) });
  expect(
    await statuses([
      ["GET", "/web"],
      ["GET", "/text"],
    ]),
  ).toEqual(["GET /web 503", "GET /text 200"]);
});

test("while quiesced, no spelling of a method and no field makes a write a read", async () => {
  order({ quiesce: quiesced() });
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n";
  for (const [method, fields] of [
    ["get", ""],
    ["post", ""],
    ["POST", upgrade],
    ["POST", "X-HTTP-Method-Override: GET\r\nX-Method-Override: GET\r\n"],
  ] as const) {
    const head = `${method} /web HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n${fields}\r\n`;
    const { status } = await exchange(front.plainPort, head);
    expect([method, fields, status]).toEqual([method, fields, 503]);
  }
  expect(upstream.received).toBe("");
});

test("an order counts for requests that were sent before it behind another one, on the same connection", async () => {
  const client = await connectTo(front.plainPort);
  client.send(
    "GET /web/held HTTP/1.1\r\nHost: a\r\n\r\nPUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb",
  );
  const session = connectHttp2(front.securePort);
  expect((await ask(session, { ":method": "PUT", ":path": "/web" }, "b")).status).toBe(200);
  await upstream.connections[0]!.receives("/held");
  order({ quiesce: quiesced() });
  upstream.connections[0]!.send(OK);
  await client.receives("HTTP/1.1 503 ");
  expect((await ask(session, { ":method": "PUT", ":path": "/web" }, "b")).status).toBe(503);
  order({ maintenance: [{ closesTunnels: false }] });
  expect((await ask(session, { ":method": "GET", ":path": "/web" })).status).toBe(503);
  expect(upstream.connections[0]!.received).not.toContain("PUT");
  client.socket.destroy();
  session.destroy();
});

test("a WebSocket that is granted after the order is closed, too", async () => {
  const client = await connectTo(front.plainPort);
  client.send(
    "GET /web/held HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
  );
  while (upstream.connections.length === 0) await pass(5);
  await upstream.connections[0]!.receives("/held");
  order({ maintenance: [{ closesTunnels: true }] });
  expect(writes()).toBe(0);
  upstream.connections[0]!.send(SWITCHED);
  await client.receives(CLOSE_1012);
  client.socket.destroy();
});

test("what writes and is in progress is counted until it is over, over both protocols", async () => {
  const client = await connectTo(front.plainPort);
  client.send("PUT /web/held HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  const session = connectHttp2(front.securePort);
  const stream = session.request({ ":method": "PUT", ":path": "/web/held", ":authority": "a" });
  stream.write("ab");
  const reader = await connectTo(front.plainPort);
  reader.send("GET /web/held HTTP/1.1\r\nHost: a\r\n\r\n");
  while (running().length < 3) await pass(5);
  order({ quiesce: quiesced() });
  expect(writes()).toBe(2);
  stream.on("error", () => undefined);
  stream.close();
  client.send("cde");
  while (upstream.connections.filter(({ received }) => received.includes("abcde")).length < 1) await pass(5);
  expect(writes()).toBe(1);
  upstream.connections.find(({ received }) => received.includes("abcde"))!.send(OK);
  await client.receives("ok");
  expect(writes()).toBe(0);
  order({ quiesce: quiesced({ reads: true }) });
  expect(writes()).toBe(1);
  reader.socket.destroy();
  client.socket.destroy();
  session.destroy();
  while (running().length > 0) await pass(5);
  expect(writes()).toBe(0);
});

async function openTunnel(path: string): Promise<{ readonly client: Accepted; readonly server: Accepted }> {
  const client = await connectTo(front.plainPort);
  const before = tunnels.length;
  client.send(
    `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n`,
  );
  await client.receives("x\r\n\r\n");
  return { client, server: tunnels[before]! };
}

test("a WebSocket is closed with 1012 between two frames, and the client's response reaches the upstream", async () => {
  const { client, server } = await openTunnel("/web");
  server.send("\x81\x05he");
  await client.receives("he");
  order({ maintenance: [{ closesTunnels: true }] });
  expect(writes()).toBe(0);
  await pass(30);
  expect(client.received.endsWith("\x81\x05he")).toBe(true);
  server.send("llo\x81\x01x");
  await client.receives(CLOSE_1012);
  expect(client.received.endsWith(`hello${CLOSE_1012}`)).toBe(true);
  client.send("\x88\x82\x00\x00\x00\x00\x03\xf4");
  await server.receives("\x03\xf4");
  server.send("\x88\x02\x03\xf4");
  server.socket.end();
  await client.until(({ ended, closed }) => ended || closed);
  expect(client.received.endsWith(`hello${CLOSE_1012}`)).toBe(true);
  client.socket.destroy();
});

test("an idle WebSocket is closed at once where its route writes, and not where it reads", async () => {
  const [reads, wrote] = [await openTunnel("/web"), await openTunnel("/socket")];
  order({ quiesce: quiesced() });
  expect(writes()).toBe(1);
  await wrote.client.receives(CLOSE_1012);
  wrote.client.socket.end();
  wrote.server.socket.end();
  await once(wrote.client.socket, "close");
  while (running().length > 1) await pass(5);
  expect(writes()).toBe(0);
  reads.server.send("\x81\x01y");
  await reads.client.receives("y");
  expect(reads.client.received).not.toContain(CLOSE_1012);
  reads.client.socket.destroy();
});

test("a client that does not respond to the Close frame is cut", async () => {
  const { client } = await openTunnel("/socket");
  order({ quiesce: quiesced() });
  expect(writes()).toBe(1);
  await client.until(({ ended, closed }) => ended || closed);
  while (running().length > 0) await pass(5);
  expect(client.received.endsWith(CLOSE_1012)).toBe(true);
}, 15_000);

test("a WebSocket over HTTP/2 is closed the same way", async () => {
  const session = connectHttp2(front.securePort);
  await once(session, "remoteSettings");
  const stream = session.request(
    {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": "/socket",
      ":authority": "a",
      ":scheme": "https",
    },
    { endStream: false },
  );
  let received = "";
  stream.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  await nextEvent(stream, "response");
  order({ quiesce: quiesced() });
  expect(writes()).toBe(1);
  while (received !== CLOSE_1012) await pass(5);
  stream.end();
  tunnels[0]!.socket.end();
  await once(stream, "close");
  session.destroy();
});

test("before a quiesce refuses requests, they are served, and no tunnel is closed", async () => {
  const { client, server } = await openTunnel("/socket");
  order({ quiesce: quiesced({ refuses: false }) });
  expect(look()).toMatchObject({ writes: 1, lasting: 0, slow: 0 });
  expect(await statuses([["PUT", "/web"]])).toEqual(["PUT /web 200"]);
  server.send("\x81\x01y");
  await client.receives("y");
  expect(client.received).not.toContain(CLOSE_1012);
  client.socket.destroy();
});

/** How far the clock of looks is ahead. */
let aheadMs = 0;

/** Looks once a second of a clock that is put forward. @returns the last report */
function lookForSeconds(seconds: number): SeenWrites {
  const clock = jest.spyOn(performance, "now");
  try {
    const from = performance.timeOrigin;
    const seen = Array.from({ length: seconds + 1 }, (_, i) => {
      clock.mockReturnValue(from + aheadMs + i * 1_000);
      return look();
    });
    aheadMs += seconds * 1_000;
    return seen.at(-1)!;
  } finally {
    clock.mockRestore();
  }
}

const HELD = "PUT /web/held HTTP/1.1\r\nHost: a\r\n";

test("a client that hardly sends is slow, and cut where that is wanted: it gets a 503 that it can repeat", async () => {
  const client = await connectTo(front.plainPort);
  client.send(`${HELD}Content-Length: 100000\r\n\r\nab`);
  const session = connectHttp2(front.securePort);
  const stream = session.request({ ":method": "PUT", ":path": "/web/held", ":authority": "a" });
  stream.on("error", () => undefined);
  stream.write("ab");
  const begun = await connectTo(front.plainPort);
  begun.send(`${HELD}Content-Length: 100000\r\n\r\ncd`);
  while (running().reduce((sum, one) => sum + one.bodyBytesReceived, 0) < 6) await pass(5);
  // One upstream responds before it has the body.
  const peer = () => upstream.connections.find(({ received }) => received.endsWith("cd"));
  while (peer() === undefined) await pass(5);
  peer()!.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun");
  await begun.receives("begun");
  order({ quiesce: quiesced({ refuses: false, minimumRate: 500 }) });
  expect(lookForSeconds(29)).toMatchObject({ writes: 3, slow: 0 });
  order({ quiesce: quiesced({ refuses: false, minimumRate: 500, cutsSlow: true }) });
  const response = nextEvent(stream, "response");
  expect(lookForSeconds(1)).toMatchObject({ writes: 3, slow: 3 });
  const [headers] = (await response) as [{ ":status": number; "retry-after": string }];
  expect([headers[":status"], headers["retry-after"]]).toEqual([503, "10"]);
  await client.receives("HTTP/1.1 503 ");
  expect(client.received).toContain("Retry-After: 10\r\n");
  await begun.until(({ closed, ended }) => closed || ended);
  expect(begun.received.endsWith("begun")).toBe(true);
  while (running().length > 0) await pass(5);
  for (const one of upstream.connections) await one.until(({ closed, ended }) => closed || ended);
  client.socket.destroy();
  session.destroy();
});

test("no client is blamed that the upstream holds back, or that has sent all", async () => {
  const sent = await connectTo(front.plainPort);
  sent.send(`${HELD}Content-Length: 2\r\n\r\nab`);
  const [stalled, session] = [await connectTo(front.plainPort), connectHttp2(front.securePort)];
  const full = randomBytes(30_000_000);
  const stream = session.request({ ":method": "PUT", ":path": "/web/held", ":authority": "a" });
  stream.on("error", () => undefined);
  while (running().length < 2) await pass(5);
  while (upstream.connections.length < 2) await pass(5);
  for (const { socket } of upstream.connections) socket.pause();
  stalled.send(`${HELD}Content-Length: ${full.length}\r\n\r\n`);
  while (upstream.connections.length < 3) await pass(5);
  upstream.connections[2]!.socket.pause();
  stalled.socket.write(full);
  stream.write(full);
  const received = () => running().reduce((sum, one) => sum + one.bodyBytesReceived, 0);
  for (let before = -1; before !== received(); await pass(300)) before = received();
  expect(received()).toBeLessThan(2 * full.length);
  order({ quiesce: quiesced({ refuses: false, minimumRate: 1e9 }) });
  expect(lookForSeconds(120)).toMatchObject({ writes: 3, slow: 0 });
  for (const { socket } of [sent, stalled]) socket.destroy();
  session.destroy();
});
