import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";
import type { Faults } from "../../src/runtime/dispatch/workerContext.js";
import { UpstreamPool } from "../../src/runtime/upstream/pool.js";
import { pass } from "../../testkit/clock.js";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { freePort } from "../../testkit/ports.js";
import { issue } from "../../testkit/certificates.js";
import { proxiedRoutes, startProxy, type TestProxy } from "../../testkit/harness.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { WorkerCounts } from "../../src/runtime/counting/workerCounts.js";
import { taken } from "../../testkit/taker.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { parseMessage } from "../../testkit/messages.js";
import { randomBody, randomText } from "../../testkit/random.js";

/** What once went wrong on the way between clients and upstreams; each test failed before its fix. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

let upstream: RawUpstream;
let proxy: TestProxy;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted, index: number) => void;
/** What would have ended the worker. */
let faults: unknown[];
const onFault = (fault: unknown): void => void faults.push(fault);

const BIG: RouteInput = {
  name: "big",
  path: "/big",
  action: { type: "respond", status: 200, body: randomText(60_000) },
};

async function start(more: Partial<UpstreamInput> = {}, config = {}): Promise<void> {
  upstream = await new RawUpstream((peer, index) => script(peer, index)).listen();
  proxy = await startProxy({
    routes: [...proxiedRoutes(), BIG],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, ...more }],
    config,
  });
}

beforeEach(() => {
  script = naming;
  faults = [];
  process.on("uncaughtException", onFault);
});
afterEach(async () => {
  process.off("uncaughtException", onFault);
  await proxy.close();
  await upstream.close();
});

/** Responds to GET and POST of `/sync/NAME` with `#NAME`. */
function naming(peer: Accepted): void {
  let responded = 0;
  peer.socket.on("data", () => {
    const names = [...peer.received.matchAll(/(?:GET|POST) \/sync\/(\w+) [^]*?\r\n\r\n/g)];
    for (; responded < names.length; responded++) {
      const name = names[responded]![1]!;
      peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${name.length + 1}\r\n\r\n#${name}`);
    }
  });
}

const get = (path: string, fields = ""): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
/** For pools that no proxy has: what they report fails the test. */
const NO_FAULTS = {
  report: (error: unknown): void => onFault(error),
} as Faults;
/** Bytes after the first head. */
const bodyOfRequest = (bytes: Buffer): Buffer => parseMessage(bytes, 0, { type: "request" })!.body;
const bodyOf = (text: string): string => text.slice(text.indexOf("\r\n\r\n") + 4);

describe("bytes of one connection never reach another", () => {
  test("the rest of an upload that came after another request", async () => {
    const size = 2_000_000;
    let upload = "";
    script = (peer) => {
      naming(peer);
      peer.socket.on("data", () => {
        if (!peer.received.includes("PUT")) return;
        peer.socket.removeAllListeners("data");
        const take = (chunk: Buffer): void => void (upload += chunk.toString("latin1"));
        upload = bodyOf(peer.received.slice(peer.received.indexOf("PUT")));
        peer.socket.on("data", take);
      });
    };
    await start();
    const client = await connectTo(proxy.port);
    const other = await connectTo(proxy.port);
    const body = randomText(size);
    client.send(
      `${get("/sync/one")}PUT /sync/two HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${body.slice(0, 1_000)}`,
    );
    await client.receives("#one");
    await sleep(50);
    // Read in one turn of the event loop, the upload first.
    client.send(body.slice(1_000, 11_000));
    other.send(get("/big", `X-Secret: ${"S".repeat(20_000)}\r\n`));
    await other.receives("200 OK");
    client.send(body.slice(11_000));
    await eventually(() => upload.length >= size, "for the upload");
    expect([upload.length, upload === body]).toEqual([size, true]);
  });

  // The longest that waits for others to be written with it, and one that does not.
  test.each([8_000, 16_384, 16_385])("chunks of %i bytes of a fast upload", async (size) => {
    const pieces = Array.from({ length: Math.ceil(32_000_000 / size) }, () => randomBody(size));
    const received: Buffer[] = [];
    script = (peer) => {
      peer.socket.removeAllListeners("data");
      peer.socket.on("data", (chunk: Buffer) => {
        received.push(chunk);
        if (chunk.subarray(-5).equals(Buffer.from("0\r\n\r\n"))) peer.send(OK);
      });
    };
    await start();
    const client = await connectTo(proxy.port);
    client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    const body = Buffer.concat(pieces);
    client.send(chunked(body, size)).send("0\r\n\r\n");
    await client.receives("ok");
    expect(bodyOfRequest(Buffer.concat(received)).equals(body)).toBe(true);
  });

  // What the pauses of the upstream leave in the kernel is read in one turn, more than a receive buffer holds.
  test.each([
    ["of known length", false],
    ["in chunks", true],
  ])("an upload over TLS %s, which the upstream reads with pauses", async (_what, inChunks) => {
    const received: Buffer[] = [];
    let [bytes, pauses] = [0, 0];
    const complete = (chunk: Buffer): boolean =>
      inChunks
        ? chunk.subarray(-5).equals(Buffer.from("0\r\n\r\n"))
        : bytes === received[0]!.indexOf("\r\n\r\n") + 4 + UPLOAD_BYTES;
    script = (peer) => {
      peer.socket.removeAllListeners("data");
      peer.socket.on("data", (chunk: Buffer) => {
        received.push(chunk);
        bytes += chunk.length;
        if (complete(chunk)) peer.send(OK);
        else if (bytes > (pauses + 1) * UPSTREAM_READS_BYTES) {
          pauses++;
          peer.socket.pause();
          setTimeout(() => peer.socket.resume(), 400);
        }
      });
    };
    await start();
    const portico = await porticoOverTls(upstream.port);
    const client = await connectTo(portico.port, true);
    const body = (upload ??= randomBytes(UPLOAD_BYTES));
    const framing = inChunks ? "Transfer-Encoding: chunked" : `Content-Length: ${UPLOAD_BYTES}`;
    client.send(`PUT /sync/x HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`);
    if (inChunks) client.send(chunked(body, 65_536)).send("0\r\n\r\n");
    else client.send(body);
    await client.until((peer) => peer.received.includes("ok"));
    client.socket.destroy();
    await portico.stop();
    const arrived = bodyOfRequest(Buffer.concat(received));
    expect([arrived.length, arrived.equals(body)]).toEqual([UPLOAD_BYTES, true]);
    expect(pauses).toBeGreaterThan(3);
  });

  test("bytes from an upstream before any of the request was sent", async () => {
    await start();
    const client = await connectTo(proxy.port);
    client.send(get("/sync/one"));
    await client.receives("#one");
    const idle = await upstream.connection();
    // Both are read in one turn of the event loop, the request first.
    client.send(get("/sync/two"));
    idle.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL");
    await client.receives(/#two|EVIL/);
    expect(client.received).not.toContain("EVIL");
  });

  test("a closed connection is not used before its close is reported", async () => {
    await start();
    const pool = new UpstreamPool(
      {
        name: "web",
        url: `http://127.0.0.1:${upstream.port}`,
        balance: "roundRobin",
        spread: false,
        slowStartMs: 0,
        connectTimeoutMs: 1_000,
        holdMs: 0,
        sendTimeoutMs: 1_000,
        readTimeoutMs: 1_000,
        connectionsMax: 4,
        queuedRequestsMax: 0,
        clientSharePercent: 100,
        queueTimeoutMs: 1_000,
        idleConnectionsMax: 4,
        idleTimeoutMs: 1_000,
        headBytesMax: 4_096,
        bareLineFeeds: false,
      },
      NO_FAULTS,
      () => undefined,
      new WorkerCounts(() => true).upstream("web", "http://127.0.0.1"),
    );
    const ask = async (): Promise<string> => {
      const connection = taken(pool)!;
      return new Promise((resolve) => {
        const ignore = (): void => undefined;
        connection.begin(
          {
            wantsList: false,
            pieceBytesMax: 65_536,
            onInformational: ignore,
            onResponseHead: ignore,
            onResponseData: () => true,
            onResponsePause: ignore,
            onResponseEnd: () => resolve("responded"),
            onResponseError: ({ message }) => resolve(message),
            onRequestStall: ignore,
            onRequestDrain: ignore,
            onFault: ignore,
          },
          "POST",
          "POST /sync/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        );
        connection.finish();
      });
    };
    const first = await ask();
    // The idle time is over.
    pool.sweep(Infinity);
    const second = await ask();
    pool.close();
    expect([first, second]).toEqual(["responded", "responded"]);
  });
});

describe("an upstream that resets in the middle of an upload", () => {
  // A reset is told once: to the write that comes first, or to the read. After the write only the end is left to be
  // read.
  test.each([
    ["as the request is written", true],
    ["between two writes", false],
  ])("%s: the client gets the response at once", async (_when, writing) => {
    const peers: Accepted[] = [];
    script = (peer) => peers.push(peer);
    await start();
    const client = await connectTo(proxy.port);
    client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n");
    while (peers[0] === undefined || !peers[0].received.includes("\r\n\r\n")) await sleep(10);
    // In one turn, so that the proxy learns of both at the same time; what is larger than a piece is written at once.
    if (writing) client.send(Buffer.alloc(60_000));
    peers[0].socket.resetAndDestroy();
    await client.receives("502 Bad Gateway");
    client.socket.destroy();
  });
});

describe("tunnels", () => {
  test.each(["upstream", "client"])("ended by the %s are closed in both directions", async (first) => {
    script = (peer) =>
      peer.socket.once("data", () =>
        peer.send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
      );
    await start({ readTimeoutMs: 500 });
    const client = await connectTo(proxy.port);
    client.send(get("/sync/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    await client.receives("101");
    const server = await upstream.connection();
    const [one, two] = first === "client" ? [client, server] : [server, client];
    one.socket.end();
    await two.until((peer) => peer.ended);
    two.socket.end();
    await client.until((peer) => peer.closed);
    // Behind the read timeout, which ended the worker.
    await pass(1_200);
    expect({ faults, closed: server.closed }).toEqual({ faults: [], closed: true });
  });
});

describe("deadlines", () => {
  test("an upload that waited for 100 Continue may take longer than the upstream's read timeout", async () => {
    script = (peer) => peer.socket.on("data", () => peer.received.endsWith("z") && peer.send(OK));
    await start({ readTimeoutMs: 500 });
    const client = await connectTo(proxy.port);
    client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n");
    await client.receives("100 Continue");
    for (const byte of "aaaaaz") {
      client.send(byte);
      await sleep(300);
    }
    await client.receives(/HTTP\/1.1 [25]\d\d/);
    expect(client.received).toContain("200 OK");
  });

  test("an upstream that responds early, then stalls, is given up after the upload", async () => {
    script = (peer) =>
      peer.socket.once("data", () => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"));
    await start({ readTimeoutMs: 500 });
    const client = await connectTo(proxy.port);
    client.send("PUT /sync/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    await client.receives("200 OK");
    client.send("cd");
    await client.until((peer) => peer.ended);
  });

  test("a request that timed out on a kept connection is not sent again", async () => {
    script = (peer) => peer.socket.once("data", () => peer.send(OK));
    await start({ readTimeoutMs: 500 });
    const client = await connectTo(proxy.port);
    client.send(get("/sync/1"));
    await client.receives("ok");
    client.send("DELETE /sync/2 HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.receives(/504|ok[^]*ok/);
    expect(upstream.received.match(/DELETE/g)).toHaveLength(1);
  });

  test.each([
    ["Connection: close", "Connection: close\r\n"],
    ["a drain", ""],
  ])("%s does not cut what a slow client still has to read", async (_what, fields) => {
    await start();
    const client = await connectTo(proxy.port);
    let received = 0;
    client.socket.removeAllListeners("data").pause();
    client.socket.on("data", (chunk: Buffer) => void (received += chunk.length));
    client.socket.pause();
    client.send(get("/big").repeat(150) + get("/big", fields));
    await sleep(300);
    if (fields === "") proxy.drain();
    // Longer than a connection lingers for bytes that nobody wants.
    await pass(8_000);
    client.socket.resume();
    await client.until((peer) => peer.closed || peer.ended || received > 151 * 60_000).catch(() => undefined);
    const responded = (await proxy.accessLog()).match(/ 200 60000 /g)!.length;
    expect(received).toBeGreaterThan(responded * 60_000);
  });
});

test("a trusted proxy's fields that its Connection field names do not replace our own", async () => {
  await start({}, { trustedProxies: ["127.0.0.1"] });
  const client = await connectTo(proxy.port);
  client.send(
    get(
      "/sync/one",
      "Connection: x-real-ip, X-Forwarded-Proto\r\nX-Real-IP: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n",
    ),
  );
  await client.receives("#one");
  expect(upstream.received).toMatch(/X-Real-IP: 127\.0\.0\.1\r\n[^]*X-Forwarded-Proto: http\r\n/);
});

test("a client that goes away in the middle of a silent response frees the upstream", async () => {
  script = (peer) =>
    peer.socket.once("data", () => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"));
  await start();
  const client = await connectTo(proxy.port);
  client.send(get("/sync/1"));
  await client.receives("abc");
  client.socket.destroy();
  await (await upstream.connection()).until((peer) => peer.closed || peer.ended);
});

test("a client that half-closes at the moment its response is complete still gets it", async () => {
  script = () => undefined;
  await start();
  const client = await connectTo(proxy.port);
  client.send(get("/sync/1"));
  const server = await (await upstream.connection()).receives("\r\n\r\n");
  await sleep(50);
  // Both are read in one turn of the event loop, the response first.
  server.send(OK);
  client.socket.end();
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received).toMatch(/ok$/);
});

describe.each([
  ["HTTP/1.1", false],
  ["HTTP/1.1 over TLS", true],
])("a client that ends its side: %s", (_, secure) => {
  const FIXED = "GET /fixed HTTP/1.1\r\nHost: a\r\n\r\n";
  const LARGE = "GET /big HTTP/1.1\r\nHost: a\r\n\r\n";
  const HALF = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf";
  test.each([
    ["behind a request", FIXED, 1],
    ["in the midst of a head", `${FIXED}GET`, 1],
    ["in the midst of a body", `${FIXED}${HALF}`, 1],
    ["while a response is written", `${LARGE}${LARGE}${FIXED}${HALF}`, 3],
    ["while a response is waited for", `GET /slow HTTP/1.1\r\nHost: a\r\n\r\n${FIXED}`, 2],
    ["with a body behind that", `GET /slow HTTP/1.1\r\nHost: a\r\n\r\n${FIXED}${FIXED}${HALF}`, 3],
  ])("gets the responses to all complete requests: %s", async (_name, requests, responses) => {
    await start();
    script = (peer) =>
      peer.socket.once("data", (head: Buffer) => {
        // By then the end has arrived.
        if (head.includes("GET /slow")) setTimeout(() => peer.send(OK), 50);
      });
    const every = await startEveryProtocol({
      routes: [
        BIG,
        { name: "fixed", path: "/fixed", action: { type: "respond", status: 200, body: "fixed" } },
        { name: "web", path: "/", action: { type: "proxy", upstream: "web" } },
      ],
      upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    });
    try {
      const client = await connectTo(secure ? every.securePort : every.plainPort, secure);
      client.socket.end(requests);
      await client.until(({ ended, closed }) => ended || closed);
      expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(responses).fill("HTTP/1.1 200"));
      client.socket.destroy();
      if (requests.endsWith("half")) expect(await every.accessLog()).toMatch(/"POST \/x HTTP\/1\.1" 499 /);
    } finally {
      await every.close();
    }
  });
});

describe("a client that does not read", () => {
  /** A client that counts what it reads, and does not before it is resumed. */
  async function pausedClient(): Promise<Accepted & { bytes: number }> {
    const client = Object.assign(await connectTo(proxy.port), { bytes: 0 });
    client.socket.removeAllListeners("data");
    client.socket.on("data", (chunk: Buffer) => void (client.bytes += chunk.length));
    client.socket.pause();
    return client;
  }

  test("makes its requests wait, and gets every response when it continues", async () => {
    await start();
    const client = await pausedClient();
    client.send(get("/big").repeat(900));
    await sleep(1_000);
    const responded = async (): Promise<number> => (await proxy.accessLog()).split("\n").length - 1;
    const before = await responded();
    // What kernels buffer on both sides is some megabytes.
    expect([before > 0, before * 60_000 < 20_000_000]).toEqual([true, true]);
    client.socket.resume();
    await eventually(() => client.bytes > 900 * 60_000, "for all responses");
    await eventually(async () => (await responded()) === 900, "for the access log");
    client.socket.destroy();
  });

  test("and half-closed gets its whole response when it continues", async () => {
    const size = 12_000_000;
    script = (peer) =>
      peer.socket.once("data", () => {
        peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`).send(randomBody(size));
      });
    await start();
    const client = await pausedClient();
    client.send(get("/sync/1"));
    client.socket.end();
    await sleep(300);
    await pass(2_500);
    client.socket.resume();
    await client.until((peer) => peer.ended || peer.closed);
    expect(client.bytes).toBeGreaterThan(size);
  });

  test("is cut after the send timeout of its last route, and later requests are not started", async () => {
    upstream = await new RawUpstream().listen();
    proxy = await startProxy({ routes: [{ ...BIG, sendTimeoutMs: 500 }] });
    const client = await pausedClient();
    client.send(get("/big").repeat(150));
    await sleep(300);
    await pass(2_500);
    await eventually(() => proxy.connections() === 0, "for its end");
    client.socket.destroy();
    await sleep(200);
    const responded = (await proxy.accessLog()).split("\n").length - 1;
    expect([responded > 0, responded < 150]).toEqual([true, true]);
  });

  test("has the keep-alive time again once it has read", async () => {
    await start({}, { timeouts: { keepAliveMs: 500 } });
    // The last response of one of them is what the kernel does not take at once.
    const clients = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const client = await pausedClient();
        client.send(get("/big").repeat(50 + i));
        await sleep(400);
        client.send("\r\n");
        await sleep(100);
        client.socket.resume();
        return client;
      }),
    );
    const open = (): number => clients.filter((client) => !client.ended).length;
    // Far below the 60 s that a client which reads nothing may take.
    await eventually(() => open() === 0, "for the end of all", { seen: () => `${open()} are open` });
    clients.forEach((client) => client.socket.destroy());
  });
});

test("an empty line before a request may come in two packets", async () => {
  await start();
  const client = await connectTo(proxy.port);
  client.send("\r");
  await sleep(50);
  client.send(`\n${get("/sync/one")}`);
  await client.receives(/HTTP\/1.1 \d\d\d/);
  expect(client.received).toContain("200 OK");
});

const UPLOAD_BYTES = 64 * 1024 * 1024;
/** As many random bytes, made once. */
let upload: Buffer | undefined;
/** How much the upstream reads between two pauses. */
const UPSTREAM_READS_BYTES = 12 * 1024 * 1024;

/** The runtime in processes of its own, with one https listener. */
async function porticoOverTls(upstreamPort: number): Promise<{ port: number; stop(): Promise<unknown> }> {
  const [port, issued] = await Promise.all([freePort(), issue()]);
  const portico = await Portico.start(
    oneServer({
      listeners: [loopback("https", port, writeCertificate(openFolder(), issued))],
      upstreams: [{ name: "web", url: `http://127.0.0.1:${upstreamPort}` }],
      routes: proxiedRoutes(),
    }),
  );
  return { port, stop: () => portico.stop() };
}

/** Bytes as chunks of one size, but for the last; without the end. */
function chunked(bytes: Buffer, size: number): Buffer {
  const out: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const piece = bytes.subarray(at, at + size);
    out.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return Buffer.concat(out);
}
