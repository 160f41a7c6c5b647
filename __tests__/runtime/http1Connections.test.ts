import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyConfigInput, RouteInput } from "../../src/model/index.js";
import { pass } from "../../testkit/clock.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { startProxy, type TestProxy } from "../../testkit/harness.js";
import { type Accepted, connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { openFolder } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** A client's HTTP/1.1 connection: what goes on after a response, when it ends, and what is logged of it. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const ROUTES: readonly RouteInput[] = [
  { name: "page", path: "/page", action: { type: "respond", status: 200, body: "page" } },
  { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
];

let upstream: RawUpstream;
let proxy: TestProxy;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted) => void;

async function start(config: Partial<ProxyConfigInput> = {}, routes = ROUTES): Promise<void> {
  upstream = await new RawUpstream((peer) => script(peer)).listen();
  proxy = await startProxy({
    routes,
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    config,
  });
}

beforeEach(() => (script = responding(OK)));
afterEach(async () => {
  await proxy.close();
  await upstream.close();
});

const get = (path = "/page", fields = ""): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;

/** When the kernel next looks whether the peer of a connection that it has nothing to send to still exists. */
function keepAliveSeconds(local: number, remote: number): number | undefined {
  const hex = (at: number): string => at.toString(16).toUpperCase().padStart(4, "0");
  const ends = new RegExp(`:${hex(local)} \\w+:${hex(remote)} 01 \\S+ 02:(\\w+) `);
  const jiffies = ends.exec(readFileSync("/proc/net/tcp", "latin1"))?.[1];
  return jiffies === undefined ? undefined : parseInt(jiffies, 16) / 100;
}

const heads = ({ received }: Accepted): string[] => received.match(/HTTP\/1\.1 \d+/g) ?? [];

test("a connection serves its limit of requests, and the last response announces the close", async () => {
  await start({ limits: { keepAliveRequestsMax: 3 } });
  const client = await connectTo(proxy.port);
  client.send(get().repeat(5));
  await client.until(({ ended }) => ended);
  const closing = client.received
    .split("HTTP/1.1 ")
    .map((response) => response.includes("Connection: close"));
  expect(closing.slice(1)).toEqual([false, false, true]);
  client.socket.destroy();
});

test("each response has its own status, phrase and server, whatever those were of the one just before", async () => {
  const hidden = { remove: ["Server"] };
  await start({}, [...ROUTES, { ...ROUTES[0]!, name: "hidden", path: "/hidden", responseHeaders: hidden }]);
  script = (peer) =>
    peer.socket.on("data", (chunk: Buffer) => {
      const [, status = "", phrase = ""] = /^GET \/web\/(\d+)-(\w*) /.exec(String(chunk))!;
      peer.send(`HTTP/1.1 ${status} ${phrase}\r\nContent-Length: 0\r\n\r\n`);
    });
  const wanted = ["200 OK", "200 Fine", "201 Fine", "201 ", "200 ", "200 OK", "200 Fine", "200 Fine"];
  const proxied = wanted.map((line) => get(`/web/${line.replace(" ", "-")}`)).join("");
  const client = await connectTo(proxy.port);
  client.send(proxied + get("/hidden") + get("/page") + get("/hidden", "Connection: close\r\n"));
  await client.until(({ ended }) => ended);
  client.socket.destroy();
  const seen = client.received.match(/HTTP\/1\.1 .*\r\n(?:Server: .*\r\n)?/g);
  const server = "Server: portico\r\n";
  expect(seen).toEqual([
    ...wanted.map((line) => `HTTP/1.1 ${line}\r\n${server}`),
    ...["", server, ""].map((by) => `HTTP/1.1 200 OK\r\n${by}`),
  ]);
});

describe("the body of a request that gets a response without it", () => {
  const post = (fields: string): string => `POST /page HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
  test.each<[what: string, fields: string, goesOn: boolean]>([
    ["64 KiB", "Content-Length: 65536\r\n", true],
    ["a byte more", "Content-Length: 65537\r\n", false],
    ["no known length", "Transfer-Encoding: chunked\r\n", false],
    ["what the client holds back", "Content-Length: 5\r\nExpect: 100-continue\r\n", false],
  ])("of %s: the connection goes on after it: %j", async (_what, fields, goesOn) => {
    await start();
    const client = await connectTo(proxy.port);
    client.send(post(fields));
    await client.receives("page");
    expect(heads(client)).toEqual(["HTTP/1.1 200"]);
    expect(client.received.includes("Connection: close")).toBe(!goesOn);
    if (goesOn) {
      client.send("x".repeat(65_536) + get());
      await client.until((peer) => heads(peer).length === 2);
    } else await client.until(({ ended }) => ended);
    client.socket.destroy();
  });

  test("of a path that nothing serves may come late", async () => {
    await start();
    const client = await connectTo(proxy.port);
    client.send("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    await client.receives("404 Not Found</h1>");
    await pass(4_000);
    client.send(`hello${get()}`);
    await client.until((peer) => heads(peer).length === 2);
    expect(heads(client)).toEqual(["HTTP/1.1 404", "HTTP/1.1 200"]);
    client.socket.destroy();
  });

  test("ends the connection if it does not come", async () => {
    await start({}, [{ ...ROUTES[0]!, requestBodyTimeoutMs: 10_000 }]);
    const client = await connectTo(proxy.port);
    client.send(post("Content-Length: 5\r\n"));
    await client.receives("page");
    await pass(6_000);
    expect(client.ended).toBe(false);
    client.send("ab");
    await pass(6_000);
    await client.until(({ ended }) => ended);
    client.socket.destroy();
  });
});

describe("deadlines of a connection", () => {
  const TIMEOUTS = { requestHeadMs: 10_000, keepAliveMs: 20_000 };

  test("the time for a head runs from its first byte, whatever comes in between", async () => {
    await start({ timeouts: TIMEOUTS });
    const client = await connectTo(proxy.port);
    client.send("GET /page");
    await pass(6_000);
    client.send(" HTTP/1.1\r\nHost: a\r\n");
    await sleep(50);
    expect(client.received).toBe("");
    await pass(5_000);
    await client.receives("HTTP/1.1 408");
    client.socket.destroy();
  });

  test("the time of an idle connection runs from its last response, and the next head has its own", async () => {
    await start({ timeouts: TIMEOUTS });
    const client = await connectTo(proxy.port);
    client.send(get());
    await client.receives("page");
    await pass(14_000);
    client.send("GET /page HTTP/1.1\r\n");
    await pass(7_000);
    client.send("Host: a\r\n\r\n");
    await client.until((peer) => heads(peer).length === 2);
    await pass(14_000);
    expect(client.ended).toBe(false);
    await pass(7_000);
    await client.until(({ ended }) => ended);
    expect(heads(client)).toHaveLength(2);
    client.socket.destroy();
  });

  test("a client that sends nothing at all has the time of a head", async () => {
    await start({ timeouts: TIMEOUTS });
    const client = await connectTo(proxy.port);
    await pass(7_000);
    expect(client.ended).toBe(false);
    await pass(4_000);
    await client.until(({ ended }) => ended);
    expect(client.received).toBe("");
    client.socket.destroy();
  });

  test("no deadline ends a request to a slow upstream", async () => {
    script = () => undefined;
    await start({ timeouts: TIMEOUTS });
    const client = await connectTo(proxy.port);
    client.send(get("/web"));
    const peer = await (await upstream.connection()).receives("\r\n\r\n");
    await pass(40_000);
    // The kernel looks whether the upstream still exists.
    expect(keepAliveSeconds(peer.socket.remotePort!, upstream.port)).toBeGreaterThan(30);
    peer.send(OK.slice(0, -1));
    await client.receives(/o$/);
    await pass(40_000);
    peer.send("k");
    await client.receives("ok");
    client.socket.destroy();
  });

  test("none is left of a piece that the client read late, while the upstream takes its time", async () => {
    script = () => undefined;
    await start({ timeouts: TIMEOUTS }, [{ ...ROUTES[1]!, sendTimeoutMs: 30_000 }]);
    const client = await connectTo(proxy.port);
    client.socket.pause();
    client.send(get("/web"));
    const peer = await (await upstream.connection()).receives("\r\n\r\n");
    const piece = randomText(16 << 20);
    peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${piece.length + 2}\r\n\r\n${piece}`);
    await sleep(100);
    client.socket.resume();
    await client.until(({ received }) => received.length > piece.length && received.endsWith(piece));
    await pass(40_000);
    expect(client.ended || client.closed).toBe(false);
    peer.send("ok");
    await client.receives(/ok$/);
    client.socket.destroy();
  });

  test("none is left of a response over TLS that the client has read", async () => {
    await start();
    const every = await startEveryProtocol({ routes: [{ ...ROUTES[0]!, sendTimeoutMs: 30_000 }] });
    const client = await connectTo(every.securePort, true);
    client.send(get());
    await client.receives("page");
    await pass(40_000);
    client.send(get());
    await client.until((peer) => heads(peer).length === 2);
    client.socket.destroy();
    await every.close();
  });

  test("a client that has ended its side is given up after a second without a response", async () => {
    script = () => undefined;
    await start({ timeouts: TIMEOUTS });
    const client = await connectTo(proxy.port);
    client.send(get("/web"));
    client.socket.end();
    await (await upstream.connection()).receives("\r\n\r\n");
    await pass(1_200);
    await eventually(() => proxy.connections() === 0);
  });

  test("a client that has ended its side waits a second for its response, and for every piece of it", async () => {
    script = () => undefined;
    await start({ timeouts: TIMEOUTS });
    const client = await connectTo(proxy.port);
    client.send(get("/web"));
    client.socket.end();
    const peer = await (await upstream.connection()).receives("\r\n\r\n");
    await pass(400);
    expect(proxy.connections()).toBe(1);
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    for (let pieces = 1; pieces <= 4; pieces++) {
      peer.send("x");
      await client.receives(new RegExp(`x{${pieces}}$`));
      await pass(400);
      expect(proxy.connections()).toBe(1);
    }
    await pass(1_000);
    await eventually(() => proxy.connections() === 0);
    await client.until(({ closed }) => closed);
  });
});

describe("after a refusal the client may keep sending for a while, and it is discarded", () => {
  const REFUSED = "GET / HTTP/1.1\r\n\r\n";

  test("five seconds if it is silent", async () => {
    await start();
    const client = await connectTo(proxy.port);
    client.send(REFUSED + get());
    await client.until(({ ended }) => ended);
    await pass(4_000);
    client.send(get());
    await pass(4_000);
    expect(proxy.connections()).toBe(1);
    await pass(2_000);
    await eventually(() => proxy.connections() === 0);
    expect(heads(client)).toEqual(["HTTP/1.1 400"]);
    client.socket.destroy();
  });

  test("also if it had sent another request before the response, which was not read", async () => {
    script = () => undefined;
    await start();
    const client = await connectTo(proxy.port);
    client.send(get("/web", "Connection: close\r\n") + get());
    const peer = await (await upstream.connection()).receives("\r\n\r\n");
    peer.send(OK);
    await client.until(({ ended }) => ended);
    for (let i = 0; i < 4; i++) {
      await pass(4_000);
      client.send("x");
    }
    await pass(1_000);
    expect([proxy.connections(), heads(client)]).toEqual([1, ["HTTP/1.1 200"]]);
    client.socket.destroy();
  });

  test("thirty seconds in all", async () => {
    await start();
    const client = await connectTo(proxy.port);
    client.send(REFUSED);
    await client.until(({ ended }) => ended);
    for (let i = 0; i < 7; i++) {
      await pass(4_000);
      client.send("x");
    }
    expect(proxy.connections()).toBe(1);
    await pass(2_000);
    client.send("x");
    await pass(2_000);
    await eventually(() => proxy.connections() === 0);
    client.socket.destroy();
  });
});

describe("a client that does not read, or is gone", () => {
  const BIG: RouteInput = {
    name: "big",
    path: "/big",
    action: { type: "respond", status: 200, body: randomText(60_000) },
  };

  test("does not count as idle", async () => {
    await start({ timeouts: { keepAliveMs: 2_000, requestHeadMs: 2_000 } }, [BIG]);
    const client = await connectTo(proxy.port);
    let bytes = 0;
    client.socket.removeAllListeners("data").on("data", (chunk: Buffer) => void (bytes += chunk.length));
    client.socket.pause();
    client.send(get("/big").repeat(300));
    await sleep(300);
    await pass(20_000);
    client.socket.resume();
    await eventually(() => bytes > 300 * 60_000, "for all responses", { seen: () => String(bytes) });
    client.socket.destroy();
  });

  test("has its time between requests once it has read, although an empty line came meanwhile", async () => {
    const every = await startEveryProtocol({
      routes: [ROUTES[0]!],
      config: { timeouts: { keepAliveMs: 10_000, requestHeadMs: 10_000 } },
    });
    every.serving.dispatcher.setChallenges([
      { type: "http-01", token: "token", keyAuthorization: "x".repeat(16 << 20) },
    ]);
    const client = await connectTo(every.plainPort);
    let bytes = 0;
    client.socket.on("data", (chunk: Buffer) => void (bytes += chunk.length));
    client.socket.pause();
    client.send(get("/.well-known/acme-challenge/token"));
    await pass(1_000);
    // Some clients end a body with a line of their own; what it was sent behind waits.
    client.send("\r\n");
    await pass(1_000);
    client.socket.resume();
    await eventually(() => bytes > 16 << 20);
    await pass(6_000);
    const early = client.ended;
    await pass(6_000);
    await client.until(({ ended }) => ended);
    client.socket.destroy();
    await every.close();
    expect(early).toBe(false);
  });

  test("is given up after a send timeout", async () => {
    await start({}, [{ ...BIG, sendTimeoutMs: 10_000 }]);
    const client = await connectTo(proxy.port);
    client.socket.pause();
    client.send(get("/big").repeat(300));
    await sleep(300);
    await pass(8_000);
    expect(proxy.connections()).toBe(1);
    await pass(4_000);
    await eventually(() => proxy.connections() === 0);
    client.socket.destroy();
  });

  test("is given up after half a minute where no route says otherwise", async () => {
    await start();
    const every = await startEveryProtocol({ routes: [] });
    const path = "/.well-known/acme-challenge/token";
    every.serving.dispatcher.setChallenges([
      { type: "http-01", token: "token", keyAuthorization: "x".repeat(16 << 20) },
    ]);
    const client = await connectTo(every.plainPort);
    client.socket.pause();
    client.send(get(path));
    await sleep(100);
    await pass(28_000);
    expect(every.http1.size).toBe(1);
    await pass(3_000);
    await eventually(() => every.http1.size === 0);
    client.socket.destroy();
    await every.close();
  });

  test("is noticed although its upload waits for the upstream", async () => {
    script = (peer) => peer.socket.pause();
    await start();
    const client = await connectTo(proxy.port);
    client.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${64 << 20}\r\n\r\n`);
    client.send(Buffer.alloc(32 << 20));
    const peer = await upstream.connection();
    await sleep(500);
    await pass(6_000);
    // Without a reset, the kernel finds out.
    // The kernel writes its table piece by piece: while others come and go, a line may be missing.
    await eventually(() => (keepAliveSeconds(proxy.port, client.socket.localPort!) ?? Infinity) <= 30);
    client.socket.resetAndDestroy();
    await pass(12_000);
    await eventually(() => proxy.connections() === 0);
    peer.socket.resume();
    await peer.until(({ ended, closed }) => ended || closed);
    expect(await proxy.accessLog()).toContain('"PUT /web HTTP/1.1" 499 0 ');
  });
});

test.each<[what: string, timed: boolean, fields: string, begun: string]>([
  ["that does not come", true, "", ""],
  ["that waits for 100 Continue", false, "Expect: 100-continue\r\n", ""],
  ["of which some waits", false, "", "ab"],
])("a body %s is timed while its request waits for its turn: %j", async (_what, timed, fields, begun) => {
  script = () => undefined;
  upstream = await new RawUpstream((peer) => script(peer)).listen();
  proxy = await startProxy({
    routes: [{ ...ROUTES[1]!, requestBodyTimeoutMs: 10_000 }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, connectionsMax: 1 }],
  });
  const first = await connectTo(proxy.port);
  first.send(get("/web"));
  await upstream.connection();
  const second = await connectTo(proxy.port);
  second.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n${fields}\r\n${begun}`);
  await pass(6_000);
  expect(second.received).toBe("");
  await pass(6_000);
  if (timed) await second.receives("HTTP/1.1 408");
  else expect(second.received).toBe("");
  for (const { socket } of [first, second]) socket.destroy();
});

test("a refusal after the host is known comes from its virtual server", async () => {
  const server = { listeners: ["http"], routes: [] };
  await start({
    virtualServers: [
      { ...server, name: "default", serverNames: ["_"], default: true, versionTokens: true },
      { ...server, name: "known", serverNames: ["known.example"], versionTokens: false },
    ],
    upstreams: [],
  });
  const request = (host: string): string => `TRACE / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  expect((await exchange(proxy.port, request("other.example"))).headers["server"]).toMatch(/^portico\/\d/);
  expect((await exchange(proxy.port, request("Known.example"))).headers["server"]).toBe("portico");
});

test("a drain waits for a head that has begun", async () => {
  await start();
  const client = await connectTo(proxy.port);
  client.send("GET /page HTTP/1.1\r\n");
  await sleep(50);
  proxy.drain();
  await pass(4_000);
  expect(client.ended).toBe(false);
  client.send("Host: a\r\n\r\n");
  await client.until(({ ended }) => ended);
  expect(client.received).toMatch(/^HTTP\/1\.1 200 [^]*Connection: close\r\n[^]*page$/);
  client.socket.destroy();
});

test("a drain waits longer for the first request of a connection than for another one", async () => {
  await start({ timeouts: { keepAliveMs: 20_000, requestHeadMs: 20_000 } });
  const fresh = await connectTo(proxy.port);
  const silent = await connectTo(proxy.port);
  const used = await connectTo(proxy.port);
  used.send(get("/page"));
  await used.receives("page");
  proxy.drain();
  // As one whose TLS handshake completes only then.
  const late = await connectTo(proxy.port);
  await pass(2_000);
  await used.until(({ ended }) => ended);
  await pass(6_000);
  expect(fresh.ended).toBe(false);
  fresh.send(get("/page"));
  await fresh.until(({ ended }) => ended);
  expect(fresh.received).toMatch(/^HTTP\/1\.1 200 [^]*Connection: close\r\n[^]*page$/);
  await pass(3_000);
  await silent.until(({ ended }) => ended);
  await late.until(({ ended }) => ended);
  for (const { socket } of [fresh, silent, used, late]) socket.destroy();
});

test("a body that breaks the chunked coding is logged as such", async () => {
  await start();
  const request = "POST /web HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz";
  expect((await exchange(proxy.port, request)).status).toBe(400);
  expect(await proxy.errorLog()).toContain("[info]");
  expect(await proxy.errorLog()).toContain("client sent chunk size is not a hex number, client: 127.0.0.1");
});

test("a drain closes a connection a second after the response whose head was sent before", async () => {
  script = () => undefined;
  await start({ timeouts: { keepAliveMs: 20_000 } });
  const client = await connectTo(proxy.port);
  client.send(get("/web"));
  const peer = await (await upstream.connection()).receives("\r\n\r\n");
  peer.send(OK.slice(0, -1));
  await client.receives(/o$/);
  expect(client.received).not.toContain("Connection: close");
  proxy.drain();
  await pass(2_000);
  peer.send("k");
  await client.receives("ok");
  await pass(500);
  expect(client.ended).toBe(false);
  await pass(700);
  await client.until(({ ended }) => ended);
  client.socket.destroy();
});

describe("a request that was given up while its body waited", () => {
  test.each<[what: string, length: number]>([
    ["is followed by the next one", 5],
    ["is read to its end, for the client to see its response", 32 << 20],
  ])("%s", async (_what, length) => {
    script = () => undefined;
    upstream = await new RawUpstream((peer) => script(peer)).listen();
    const web = {
      name: "web",
      url: `http://127.0.0.1:${upstream.port}`,
      connectionsMax: 1,
      queueTimeoutMs: 5_000,
    };
    proxy = await startProxy({ routes: ROUTES, upstreams: [web] });
    const first = await connectTo(proxy.port);
    first.send(get("/web"));
    await upstream.connection();
    const second = await connectTo(proxy.port);
    second.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\nab`);
    await pass(6_000);
    await second.receives("HTTP/1.1 503");
    expect(second.received.includes("Connection: close")).toBe(length > 5);
    second.send(Buffer.alloc(length - 2));
    if (length === 5) {
      second.send(get());
      await second.until((peer) => heads(peer).length === 2);
    } else await eventually(() => second.socket.writableLength === 0, "for all to be read");
    for (const { socket } of [first, second]) socket.destroy();
  });
});

test("what comes after a body that was too long is not looked at", async () => {
  await start({}, [{ ...ROUTES[1]!, requestBodyBytesMax: 5 }]);
  const request = "POST /web HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\nz";
  expect((await exchange(proxy.port, request)).status).toBe(413);
  expect(await proxy.errorLog()).not.toContain("client sent chunk");
});

test("the access log has what the client sent about itself, but not its password", async () => {
  await start();
  const basic = `Basic ${Buffer.from("anna:secret").toString("base64")}`;
  await exchange(
    proxy.port,
    get("/page?q", `Referer: http://r/\r\nUser-Agent: agent/1\r\nAuthorization: ${basic}\r\n`),
  );
  const log = await proxy.accessLog();
  expect(log).toMatch(
    /^127\.0\.0\.1 - anna \[[^\]]+\] "GET \/page\?q HTTP\/1\.1" 200 4 "http:\/\/r\/" "agent\/1"\n$/,
  );
});

test("a request that could not be read is logged without guesses", async () => {
  const folder = openFolder();
  const path = join(folder, "access.log");
  await start({ logs: { access: { path, format: "json" }, error: { path: join(folder, "error.log") } } });
  await exchange(proxy.port, "BREW / HTTP/1.1\r\nHost : a\r\n\r\n");
  await eventually(() => readFileSync(path, "utf8") !== "");
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({
    method: "",
    target: "",
    http_version: "1.1",
    scheme: "http",
    host: "",
    status: 400,
    server: "application",
    route: null,
  });
});
