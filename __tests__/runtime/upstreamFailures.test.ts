import { readFileSync } from "node:fs";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";
import { sweptItems } from "../../src/runtime/sockets/deadlines.js";
import { holdSocket } from "../../src/runtime/sockets/node/socketHolder.js";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { descriptorsOf } from "../../testkit/processes.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** What an upstream does wrong or not at all: when it is given up, what its client gets, and what the log says. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET = "GET /web HTTP/1.1\r\nHost: a\r\n\r\n";

let upstream: RawUpstream;
let front: EveryProtocol;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted, index: number) => void;

const ROUTES: readonly RouteInput[] = [
  { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
  { name: "plain", path: "/plain", action: { type: "proxy", upstream: "web", upgrades: [] } },
  { name: "fixed", path: "/fixed", action: { type: "respond", status: 200, body: "fixed" } },
];

async function start(more: Partial<UpstreamInput> = {}): Promise<void> {
  upstream = await new RawUpstream((peer, index) => script(peer, index)).listen();
  front = await startEveryProtocol({
    routes: ROUTES,
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, ...more }],
  });
}

beforeEach(() => (script = responding(OK)));
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

/** Responds to the first request with these bytes, and then does what it is told. */
const responds = (bytes: string, then: (socket: net.Socket) => void = () => undefined) =>
  ((peer) =>
    peer.socket.once("data", () => {
      peer.send(bytes);
      then(peer.socket);
    })) as typeof script;
const ends = (socket: net.Socket): unknown => socket.end();
const resets = (socket: net.Socket): unknown => setTimeout(() => socket.resetAndDestroy(), 20);

const HEAD = "while reading response header from upstream";
const BODY = "while reading upstream";
const fields = (count: number): string => `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(count)}\r\n`;

test.each<[what: string, does: typeof script, message: string]>([
  [
    "an empty line before the response",
    responds(`\r\n${OK}`),
    "sent an invalid response: empty line before the response",
  ],
  [
    "100,001 informational responses",
    responds(`${"HTTP/1.1 100 X\r\n\r\n".repeat(100_001)}${OK}`),
    "sent an invalid response: too many informational responses",
  ],
  ["501 fields", responds(fields(501), ends), "sent an invalid response: too many fields"],
  [
    "a status line that is not one",
    responds("hello\r\n\r\n"),
    "sent an invalid response: malformed status line",
  ],
  ["an end before the response", responds("", ends), `prematurely closed connection ${HEAD}`],
  ["an end within the head", responds("HTTP/1.1 200", ends), `prematurely closed connection ${HEAD}`],
  ["a reset before the response", responds("", resets), `recv() failed (104: ECONNRESET) ${HEAD}`],
  [
    "an unrequested switch of protocols",
    responds("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    "upstream switched protocols without being asked",
  ],
])("%s is a 502, and the log says so", async (_what, does, message) => {
  await start();
  script = does;
  const { status, headers } = await exchange(front.plainPort, GET);
  expect([status, headers["connection"]]).toEqual([502, undefined]);
  const log = await front.errorLog();
  expect(log).toContain(message);
  expect(log).toMatch(
    /\[error\] .*, client: 127\.0\.0\.1, .*request: "GET \/web HTTP\/1\.1", upstream: "http:\/\/127/,
  );
  expect(upstream.connections.length).toBe(1);
});

test.each<[what: string, does: typeof script, message: string]>([
  [
    "by an end",
    responds("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", ends),
    `prematurely closed connection ${BODY}`,
  ],
  [
    "by a reset",
    responds("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", resets),
    `recv() failed (104: ECONNRESET) ${BODY}`,
  ],
  [
    "by a chunk that is none",
    responds("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nz"),
    "sent an invalid response: chunk size is not a hex number",
  ],
])("a response that breaks off %s is cut, and the log says so", async (_what, does, message) => {
  await start();
  script = does;
  const client = await connectTo(front.plainPort);
  client.send(GET);
  await client.until(({ ended, closed }) => ended || closed);
  expect(client.received).toContain("abc");
  expect(await front.errorLog()).toContain(message);
});

test.each<[version: string, secure: boolean, code: string | undefined]>([
  ["1.0", false, "ECONNRESET"],
  ["1.1", false, undefined],
  ["1.0", true, undefined],
  ["1.1", true, undefined],
])(
  "a response over HTTP/%s that breaks off, over TLS: %j, ends its connection by %j",
  async (version, secure, code) => {
    await start();
    script = responds("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nz");
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    const codes: (string | undefined)[] = [];
    client.socket.on("error", (error: NodeJS.ErrnoException) => codes.push(error.code));
    client.send(GET.replace("1.1", version));
    await client.until(({ ended, closed }) => ended || closed);
    expect(codes).toEqual(code === undefined ? [] : [code]);
    client.socket.destroy();
  },
);

test.each<[what: string, response: string]>([
  ["500 fields", `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(499)}Content-Length: 2\r\n\r\nok`],
  ["100,000 informational responses", `${"HTTP/1.1 100 X\r\n\r\n".repeat(100_000)}${OK}`],
])("%s are taken, for every request of a connection", async (_what, response) => {
  await start();
  script = responding(response);
  for (let i = 0; i < 3; i++) expect((await exchange(front.plainPort, GET)).status).toBe(200);
  expect(upstream.connections.length).toBe(1);
});

describe("is given up in time", () => {
  test("one that does not accept", async () => {
    const deaf = holdSocket({ host: "127.0.0.1", port: 0, backlog: 1 });
    if (typeof deaf === "number") throw new Error(`errno ${deaf}`);
    await start({ url: `http://127.0.0.1:${deaf.port}`, connectTimeoutMs: 10_000 });
    // What the kernel takes in its place.
    const waiting = Array.from({ length: 4 }, () =>
      net.connect(deaf.port, "127.0.0.1").on("error", () => undefined),
    );
    await sleep(50);
    try {
      const response = exchange(front.plainPort, GET);
      let over = false;
      void response.then(() => (over = true));
      await pass(6_000);
      expect(over).toBe(false);
      await pass(5_000);
      expect((await response).status).toBe(504);
      expect(await front.errorLog()).toContain("upstream timed out while connecting to upstream");
    } finally {
      for (const socket of waiting) socket.destroy();
      deaf.close();
    }
  });

  test("one that does not read", async () => {
    await start({ sendTimeoutMs: 10_000 });
    script = (peer) => peer.socket.pause();
    const client = await connectTo(front.plainPort);
    client.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${64 << 20}\r\n\r\n`);
    client.send(Buffer.alloc((64 << 20) - 1));
    await sleep(500);
    await pass(6_000);
    expect(client.received).toBe("");
    await pass(5_000);
    await client.receives("HTTP/1.1 504");
    client.socket.destroy();
    expect(await front.errorLog()).toContain("upstream timed out while sending request to upstream");
  });

  test("but not one that reads late, and responds later still", async () => {
    await start({ sendTimeoutMs: 10_000 });
    script = (peer) => peer.socket.pause();
    const client = await connectTo(front.plainPort);
    const size = 32 << 20;
    client.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`).send(Buffer.alloc(size));
    const peer = await upstream.connection();
    await sleep(300);
    await pass(5_000);
    let bytes = 0;
    peer.socket.removeAllListeners("data").on("data", (chunk: Buffer) => (bytes += chunk.length));
    peer.socket.resume();
    await eventually(() => bytes > size);
    await pass(20_000);
    peer.send(OK);
    await client.receives("HTTP/1.1 200");
    client.socket.destroy();
  });

  test("one that reads late, and then falls silent", async () => {
    await start({ sendTimeoutMs: 20_000, readTimeoutMs: 10_000 });
    script = (peer) => peer.socket.pause();
    const client = await connectTo(front.plainPort);
    const size = 32 << 20;
    client.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`).send(Buffer.alloc(size));
    const peer = await upstream.connection();
    let bytes = 0;
    peer.socket.removeAllListeners("data").on("data", (chunk: Buffer) => (bytes += chunk.length));
    await sleep(300);
    peer.socket.resume();
    await eventually(() => bytes > size);
    await pass(6_000);
    expect(client.received).toBe("");
    await pass(5_000);
    await client.receives("HTTP/1.1 504");
    client.socket.destroy();
    expect(await front.errorLog()).toContain("upstream timed out while reading response from upstream");
  });

  test("but not while its client sends, on a connection that was used before either", async () => {
    await start({ readTimeoutMs: 10_000, idleTimeoutMs: 10_000, sendTimeoutMs: 10_000 });
    script = (peer) =>
      peer.socket.on("data", () => {
        if (/^GET|y$/.test(peer.received)) peer.send(OK);
      });
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    const client = await connectTo(front.plainPort);
    const size = 4 << 20;
    client.send(`PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${size + 1}\r\n\r\n`);
    const [peer] = upstream.connections as [Accepted];
    peer.received = "";
    const body = randomText(size).replaceAll("y", "x");
    client.send(body);
    await eventually(() => peer.received.endsWith(body));
    await pass(12_000);
    expect(client.received).toBe("");
    client.send("y");
    await client.receives("HTTP/1.1 200");
    client.socket.destroy();
    expect(upstream.connections.length).toBe(1);
  });

  test("but not while its client does not read, and again once it does", async () => {
    await start({ readTimeoutMs: 10_000 });
    script = responds("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    const session = connectHttp2(front.securePort, { initialWindowSize: 0 });
    session.on("error", () => undefined);
    const response = ask(session, { ":path": "/web" }).catch(() => undefined);
    let over = false;
    void response.then(() => (over = true));
    const peer = await upstream.connection();
    await peer.receives("\r\n\r\n");
    await pass(12_000);
    expect(over).toBe(false);
    await new Promise<void>((done) => session.settings({ initialWindowSize: 65_535 }, () => done()));
    await pass(6_000);
    expect(over).toBe(false);
    await pass(5_000);
    await response;
    session.destroy();
    expect(await front.errorLog()).toContain("upstream timed out while reading response from upstream");
  });

  test.each([
    ["before", ""],
    ["in the middle of", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"],
  ])("one that falls silent %s its response, counted from its last byte", async (_when, begun) => {
    await start({ readTimeoutMs: 10_000, connectTimeoutMs: 2_000, sendTimeoutMs: 2_000 });
    script = responds(begun);
    const client = await connectTo(front.plainPort);
    client.send(GET);
    const peer = await upstream.connection();
    await pass(6_000);
    if (begun !== "") peer.send("d");
    await pass(begun === "" ? 0 : 6_000);
    expect([client.ended, client.received.includes("504")]).toEqual([false, false]);
    await pass(5_000);
    await client.until(({ ended, received }) => ended || received.includes("504 Gateway"));
    client.socket.destroy();
    expect(await front.errorLog()).toContain("upstream timed out while reading response from upstream");
    await peer.until(({ ended, closed }) => ended || closed);
  });
});

describe("once another config serves", () => {
  test("nothing is looked at for an upstream that has no request", async () => {
    await start();
    const before = sweptItems();
    front.serving.close();
    expect(sweptItems()).toBe(before - 1);
  });

  test.each([
    ["a request that runs", 0],
    ["one that runs and one that waits", 1],
  ])("the deadlines of %s hold, and nothing is looked at when they are over", async (_what, queued) => {
    await start({ readTimeoutMs: 10_000, queueTimeoutMs: 8_000, connectionsMax: 1 });
    script = () => undefined;
    const [running, waiting] = [await connectTo(front.plainPort), await connectTo(front.plainPort)];
    running.send(GET);
    await upstream.connection();
    if (queued > 0) waiting.send(GET);
    await eventually(() => front.serving.holdings().queuedRequests === queued);
    const during = sweptItems();
    front.serving.close();
    await pass(6_000);
    expect([running.received, waiting.received, sweptItems()]).toEqual(["", "", during]);
    await pass(5_000);
    await running.receives("HTTP/1.1 504 ");
    if (queued > 0) await waiting.receives("HTTP/1.1 503 ");
    for (const { socket } of [running, waiting]) socket.destroy();
    // That of the upstream, and that of the clients.
    await eventually(() => sweptItems() === during - 2);
  });
});

test.each(["127.0.0.1", "localhost"])(
  "one that is not at %s is a 502, and served once it is",
  async (host) => {
    const port = await freePort();
    await start({ url: `http://${host}:${port}` });
    expect((await exchange(front.plainPort, GET)).status).toBe(502);
    // Where a name has several addresses there is no one number.
    expect(await front.errorLog()).toMatch(
      /connect\(\) failed \((?:111|0): ECONNREFUSED\) while connecting to upstream/,
    );
    const other = await new RawUpstream(responding(OK)).listen(port);
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    await other.close();
  },
);

describe("a connection that was used", () => {
  test("serves the next client while the last one has not read its response", async () => {
    await start();
    const session = connectHttp2(front.securePort, { initialWindowSize: 0 });
    const first = ask(session, { ":path": "/web" });
    await (await upstream.connection()).receives("\r\n\r\n");
    await sleep(50);
    expect((await exchange(front.plainPort, GET)).body).toBe("ok");
    session.settings({ initialWindowSize: 65_535 });
    expect((await first).body).toBe("ok");
    session.destroy();
    expect(upstream.connections.length).toBe(1);
  });

  test("is kept when another one breaks, busy or idle", async () => {
    await start();
    const waiting: Accepted[] = [];
    script = (peer) => peer.socket.on("data", () => waiting.push(peer));
    const both = async (): Promise<[Promise<{ status: number }>, Promise<{ status: number }>]> => {
      waiting.length = 0;
      const first = exchange(front.plainPort, GET);
      await eventually(() => waiting.length === 1);
      const second = exchange(front.plainPort, GET);
      await eventually(() => waiting.length === 2);
      return [first, second];
    };
    let [one, two] = await both();
    waiting[0]!.send(OK);
    expect((await one).status).toBe(200);
    waiting[1]!.socket.destroy();
    expect((await two).status).toBe(502);
    [one, two] = await both();
    expect(upstream.connections.length).toBe(3);
    for (const peer of [...waiting]) peer.send(OK);
    await Promise.all([one, two]);
    // The one that was idle first.
    waiting[0]!.socket.destroy();
    await waiting[0]!.until(({ closed }) => closed);
    await sleep(50);
    one = exchange(front.plainPort, GET);
    await eventually(() => waiting.length === 3);
    waiting[2]!.send(OK);
    expect([(await one).status, upstream.connections.length]).toEqual([200, 3]);
  });

  test("shows the kernel that the upstream is still there", async () => {
    await start();
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    const port = `:${upstream.port.toString(16).toUpperCase().padStart(4, "0")}`;
    const rows = readFileSync("/proc/net/tcp", "latin1").split("\n").slice(1);
    const own = descriptorsOf(process.pid);
    const timers = rows
      .map((row) => row.trim().split(/\s+/))
      // Another process may be connected to what listened on this port before.
      .filter((row) => row[2]?.endsWith(port) && row[3] === "01" && own.includes(`socket:[${row[9]}]`))
      .map((row) => row[5]!.split(":")[0]);
    // A timer of kind 2 is that of keep-alive.
    expect(timers).toEqual(["02"]);
  });

  const UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  test.each<[what: string, request: string, does: (peer: Accepted) => unknown, status: number]>([
    ["GET that got a part of a response", GET, (peer) => peer.socket.end("HTTP/1.1 2"), 502],
    ["GET that gets no response in time", GET, () => undefined, 504],
    [
      "PUT with a body",
      "PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
      (peer) => peer.socket.destroy(),
      502,
    ],
    ["WebSocket", `GET /web HTTP/1.1\r\nHost: a\r\n${UPGRADE}\r\n`, (peer) => peer.socket.destroy(), 502],
  ])("and breaks with a %s is not replaced", async (_what, request, does, status) => {
    await start({ readTimeoutMs: 10_000 });
    script = (peer) => {
      let asked = 0;
      peer.socket.on("data", () => (++asked === 1 ? peer.send(OK) : does(peer)));
    };
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    const response = exchange(front.plainPort, request);
    if (status === 504) await pass(11_000);
    expect([(await response).status, upstream.connections.length]).toEqual([status, 1]);
  });

  test("is kept as long as it may idle", async () => {
    await start({ idleTimeoutMs: 10_000 });
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    await pass(6_000);
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    expect(upstream.connections.length).toBe(1);
    const peer = await upstream.connection();
    await pass(6_000);
    expect(peer.ended || peer.closed).toBe(false);
    await pass(5_000);
    await peer.until(({ ended, closed }) => ended || closed);
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    expect(upstream.connections.length).toBe(2);
  });

  test.each<[what: string, does: (peer: Accepted) => void, logged: RegExp]>([
    [
      "said something unasked",
      (peer) => peer.send(`${OK.replace("ok", "no")}`),
      /belong to no response.*\n$/,
    ],
    ["was ended", (peer) => peer.socket.end(), /^$/],
    ["was reset", (peer) => peer.socket.resetAndDestroy(), /^$/],
  ])("and then %s is not used", async (_what, does, logged) => {
    await start();
    expect((await exchange(front.plainPort, GET)).status).toBe(200);
    does(await upstream.connection());
    await sleep(100);
    const post = "POST /web HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    expect(await exchange(front.plainPort, post)).toMatchObject({ status: 200, body: "ok" });
    expect(upstream.connections.length).toBe(2);
    expect(await front.errorLog()).toMatch(logged);
  });

  test.each<[what: string, response: string]>([
    ["said that it closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"],
    ["speaks HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"],
  ])("and %s is not used again", async (_what, response) => {
    await start();
    script = responding(response);
    for (let i = 0; i < 2; i++) expect((await exchange(front.plainPort, GET)).body).toBe("ok");
    expect(upstream.connections.length).toBe(2);
  });

  // A name may have another address by then.
  test.each([
    ["127.0.0.1", 1],
    ["localhost", 2],
  ])("for ten seconds, by the address %s: there are %i in the end", async (host, connections) => {
    await start();
    await front.close();
    front = await startEveryProtocol({
      routes: ROUTES,
      upstreams: [{ name: "web", url: `http://${host}:${upstream.port}` }],
    });
    let waiting: Accepted | undefined;
    script = (peer) => peer.socket.on("data", () => (waiting = peer));
    const responded = async (afterMs: number): Promise<void> => {
      waiting = undefined;
      const response = exchange(front.plainPort, GET);
      await eventually(() => waiting !== undefined);
      await pass(afterMs);
      waiting!.send(OK);
      expect((await response).status).toBe(200);
    };
    await responded(6_000);
    await responded(5_000);
    expect(upstream.connections.length).toBe(1);
    await responded(0);
    expect(upstream.connections.length).toBe(connections);
  });
});

test.each([
  ...["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH"].map(
    (method) => [method, 200] as const,
  ),
  ...["POST", "PATCH", "MOVE", "COPY", "LOCK", "MKCOL", "get"].map((method) => [method, 502] as const),
])("%s whose connection dies before it gets a response comes to %i", async (method, status) => {
  await start();
  script = (peer, index) => {
    let responded = 0;
    peer.socket.on("data", () => {
      if (index === 0 && ++responded === 2) peer.socket.destroy();
      else peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
  };
  expect((await exchange(front.plainPort, GET)).status).toBe(200);
  const again = await exchange(front.plainPort, `${method} /web HTTP/1.1\r\nHost: a\r\n\r\n`);
  expect([again.status, upstream.connections.length]).toEqual([status, status === 200 ? 2 : 1]);
});

test("a request is sent again once", async () => {
  await start();
  script = (peer, index) =>
    peer.socket.on("data", () => {
      if (index === 0 && peer.received.split("GET").length === 2) peer.send(OK);
      else peer.socket.destroy();
    });
  expect((await exchange(front.plainPort, GET)).status).toBe(200);
  expect((await exchange(front.plainPort, GET)).status).toBe(502);
  expect(upstream.connections.length).toBe(2);
});

describe("over HTTP/2", () => {
  test("an informational response is passed on with its fields, but not 100", async () => {
    await start();
    const early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x\r\n\r\n";
    script = responding(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 X\r\nLink: y\r\n\r\n${early}${OK}`);
    const session = connectHttp2(front.securePort);
    const { status, informational, body } = await ask(session, { ":path": "/web" });
    session.destroy();
    expect([status, body]).toEqual([200, "ok"]);
    expect(informational.map((head) => [head[":status"], head["link"], head["connection"]])).toEqual([
      [102, "y", undefined],
      [103, "</a.css>", undefined],
    ]);
  });

  test.each(["/plain", "/fixed"])("a tunnel through a route that has none, %s, is a 501", async (path) => {
    await start();
    const session = connectHttp2(front.securePort);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const { status } = await ask(
      session,
      { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":path": path },
      "",
    );
    session.destroy();
    expect([status, upstream.connections.length]).toEqual([501, 0]);
  });
});

test("what a client says before its WebSocket is granted waits until it is", async () => {
  await start();
  script = () => undefined;
  const client = await connectTo(front.plainPort);
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  client.send(`GET /web HTTP/1.1\r\nHost: a\r\n${upgrade}early`);
  const peer = await upstream.connection();
  await peer.receives("\r\n\r\n");
  await sleep(50);
  expect(peer.received).not.toContain("early");
  peer.send(`HTTP/1.1 101 X\r\n${upgrade}`);
  await peer.receives("early");
  client.socket.destroy();
});

test.each<[what: string, head: string]>([
  ["another protocol", "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"],
  ["no protocol", "HTTP/1.1 101 X\r\nConnection: upgrade\r\n\r\n"],
  ["one that its Connection does not name", "HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n"],
])("a WebSocket to which the upstream responds with %s is a 502", async (_what, head) => {
  await start();
  script = responds(head);
  const response = await exchange(
    front.plainPort,
    "GET /web HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  );
  expect(response.status).toBe(502);
  await (await upstream.connection()).until(({ ended, closed }) => ended || closed);
});
