import { setTimeout as sleep } from "node:timers/promises";
import {
  type Accepted,
  connectTo,
  exchange,
  isComplete,
  parseResponse,
  RawUpstream,
  responding,
} from "../../testkit/peers.js";
import { proxiedRoutes, startProxy, type TestProxy } from "../../testkit/harness.js";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { randomBody, randomText } from "../../testkit/random.js";

const MiB = 1024 * 1024;
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET = "GET /sync/ HTTP/1.1\r\nHost: a\r\n\r\n";

let upstream: RawUpstream;
let proxy: TestProxy;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted, index: number) => void;

async function start(
  more: Partial<UpstreamInput> = {},
  route: Partial<RouteInput> = {},
  config = {},
): Promise<void> {
  upstream = await new RawUpstream((peer, index) => script(peer, index)).listen();
  proxy = await startProxy({
    routes: proxiedRoutes().map((r) => ({ ...r, ...route })),
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, ...more }],
    config,
  });
}

beforeEach(() => {
  script = responding(OK);
});
afterEach(async () => {
  await proxy.close();
  await upstream.close();
});

/** The request head the upstream received, as lines. */
const headLines = (peer: Accepted): string[] =>
  peer.received.slice(0, peer.received.indexOf("\r\n\r\n")).split("\r\n");

describe("request heads", () => {
  const request = (path: string, fields: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: Sync.Example:8080\r\n${fields}\r\n`;
  const CLAIMS = [
    "X-Real-IP: 6.6.6.6",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: evil",
    "X-Forwarded-Ssl: on",
    "Forwarded: for=6.6.6.6",
    "x-forwarded-prefix: /e",
    "True-Client-IP: 6.6.6.6",
  ];

  test.each([
    [
      "/sync/x",
      [
        "GET /sync/x HTTP/1.1",
        "Host: Sync.Example:8080",
        "X-Real-IP: 127.0.0.1",
        "X-Forwarded-For: 1.2.3.4, 5.6.7.8, 127.0.0.1",
        "X-Forwarded-Proto: http",
        "X-Forwarded-Host: sync.example",
        "Accept: */*",
      ],
    ],
    ["/synchttp/x", ["GET /x HTTP/1.1", "Host: 127.0.0.1:UPSTREAM", "Accept: */*"]],
  ])("%s: only the proxy's own forwarding fields", async (path, expected) => {
    await start();
    await exchange(
      proxy.port,
      request(
        path,
        `${CLAIMS.join("\r\n")}\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nAccept: */*\r\n`,
      ),
    );
    expect(headLines(await upstream.connection())).toEqual(
      expected.map((line) => line.replace("UPSTREAM", String(upstream.port))),
    );
  });

  test("a trusted proxy's fields are kept", async () => {
    await start({}, {}, { trustedProxies: ["127.0.0.0/8"] });
    await exchange(proxy.port, request("/sync/", `${CLAIMS.join("\r\n")}\r\n`));
    const lines = headLines(await upstream.connection());
    expect(lines).toEqual(
      expect.arrayContaining([
        "X-Real-IP: 6.6.6.6",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: sync.example",
      ]),
    );
    expect(lines.filter((l) => /^x-(real-ip|forwarded-proto|forwarded-host):/i.test(l))).toHaveLength(3);
  });

  test("hop-by-hop fields, those that Connection names, and names with _ are not forwarded", async () => {
    await start();
    await exchange(
      proxy.port,
      request(
        "/sync/",
        "Connection: close, X-Hop, x-forwarded-proto\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nProxy-Authorization: b\r\nProxy-Connection: x\r\nX_Real_IP: 1\r\nExpect: 100-continue\r\nX-End: 1\r\n",
      ),
    );
    const lines = headLines(await upstream.connection());
    expect(lines.slice(1).map((l) => l.split(":")[0])).toEqual([
      "Host",
      "X-Real-IP",
      "X-Forwarded-For",
      "X-Forwarded-Proto",
      "X-Forwarded-Host",
      "X-End",
    ]);
  });

  test("order, case, duplicates and odd values of the client's fields are kept", async () => {
    await start();
    await exchange(
      proxy.port,
      request("/sync/", 'cOOkie: a=1\r\nX-B: \xe4 "q"\r\ncOOkie: b=2\r\nX-Empty:\r\n'),
    );
    expect(headLines(await upstream.connection()).slice(-4)).toEqual([
      "cOOkie: a=1",
      'X-B: \xe4 "q"',
      "cOOkie: b=2",
      "X-Empty: ",
    ]);
  });

  test.each([
    ["/sync%2Fx?y%23z", "GET /sync%2Fx?y%23z HTTP/1.1"],
    ["//sync/x", "GET //sync/x HTTP/1.1"],
    ["/sync/../syncdav/x", "GET /sync/../syncdav/x HTTP/1.1"],
    ["/synchttp", "GET / HTTP/1.1"],
    ["/synchttp?x=1", "GET /?x=1 HTTP/1.1"],
    ["/synchttp/a%2Fb%20c", "GET /a%2Fb%20c HTTP/1.1"],
    ["/synchttpfoo", "GET /synchttpfoo HTTP/1.1"],
  ])("target %s goes upstream as %s", async (target, line) => {
    await start();
    await exchange(proxy.port, request(target, ""));
    expect(headLines(await upstream.connection())[0]).toBe(line);
  });

  const dav = "/syncdav/a";
  test.each([
    [dav, "http://Sync.Example:8080/syncdav/b%20c", "/syncdav/b%20c"],
    [dav, "https://sync.example:8080/syncdav/b", "/syncdav/b"],
    [dav, "HTTPS://SYNC.example:8080/syncdav/b", "/syncdav/b"],
    [dav, "xhttp://sync.example:8080/syncdav/b", "xhttp://sync.example:8080/syncdav/b"],
    [dav, "ftp://sync.example:8080/syncdav/b", "ftp://sync.example:8080/syncdav/b"],
    [dav, "/syncdav/b", "/syncdav/b"],
    [dav, "http://other.example/syncdav/b", "http://other.example/syncdav/b"],
    [dav, "http://sync.example:9/syncdav/b", "http://sync.example:9/syncdav/b"],
    [dav, "http://sync.example:8080/sync/b", "http://sync.example:8080/sync/b"],
    ["/synchttp/a", "http://sync.example:8080/synchttp/b", "/b"],
    ["/synchttp/a", "http://other.example/sync/b", "http://other.example/sync/b"],
  ])("%s with Destination %s sends %s", async (path, destination, sent) => {
    await start();
    await exchange(
      proxy.port,
      `MOVE ${path} HTTP/1.1\r\nHost: Sync.Example:8080\r\nDestination: ${destination}\r\n\r\n`,
    );
    expect(headLines(await upstream.connection()).find((l) => l.startsWith("Destination"))).toBe(
      `Destination: ${sent}`,
    );
  });

  // RFC 4918, 9.8.5. To the upstream of a stripped route these would be paths of its own.
  test.each([
    ["/synchttp/a", "http://sync.example:8080/sync/b", 502, 'but nothing below "/synchttp"'],
    ["/synchttp/a", "https://SYNC.example:8080/synchttpfoo", 502, "names this front end"],
    ["/synchttp/a", "/syncdav/b", 502, "names this front end"],
    ["/synchttp/a", "//sync.example:8080/synchttp/b", 502, "names this front end"],
    ["/synchttp/a", "http://sync.example:8080/synchttp/%2e%2e/syncdav/b", 502, "names this front end"],
    ["/synchttp/a", "http://sync.example:8080", 502, "names this front end"],
    [dav, "http://sync.example:8080/syncdav/../../etc", 400, "is malformed, or climbs above the root"],
    ["/synchttp/a", "/synchttp/%zz", 400, "is malformed"],
    ["/synchttp/a", "/synchttp/b#c", 400, "is malformed"],
  ])("%s with Destination %s is refused with %i", async (path, destination, status, why) => {
    await start();
    const response = await exchange(
      proxy.port,
      `MOVE ${path} HTTP/1.1\r\nHost: Sync.Example:8080\r\nDestination: ${destination}\r\n\r\n`,
    );
    expect(response.status).toBe(status);
    expect(upstream.connections).toHaveLength(0);
    expect(await proxy.errorLog()).toContain(why);
  });
});

describe("request bodies", () => {
  test.each([
    ["none", "POST /synchttp/x HTTP/1.1\r\nHost: a\r\n\r\n", /^POST \/x HTTP\/1\.1\r\nHost: \S+\r\n\r\n$/],
    [
      "empty",
      "POST /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
      /Content-Length: 0\r\n\r\n$/,
    ],
    [
      "by length",
      "PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
      /Content-Length: 3\r\n\r\nabc$/,
    ],
    ["of one byte", "PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", /: 1\r\n\r\na$/],
    [
      "of a GET",
      "GET /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
      /Content-Length: 3\r\n\r\nabc$/,
    ],
    [
      "in chunks",
      "PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;e=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
      /Transfer-Encoding: chunked\r\n\r\nd\r\nabc0123456789\r\n0\r\n\r\n$/,
    ],
  ])("%s", async (_name, request, received) => {
    await start();
    expect((await exchange(proxy.port, request)).status).toBe(200);
    expect((await upstream.connection()).received).toMatch(received);
  });

  test.each([
    ["small pieces", 1_000],
    ["middling pieces", 12_000],
    ["large pieces", 100_000],
  ])("in %s wait while the upstream does not read, and continue when it does", async (_what, size) => {
    const all = 64 * MiB;
    let arrived!: () => void;
    const whole = new Promise<void>((resolve) => (arrived = resolve));
    script = (peer) => {
      let end = "";
      peer.socket.removeAllListeners("data").on("data", (chunk: Buffer) => {
        end = (end + chunk.toString("latin1", Math.max(0, chunk.length - 5))).slice(-5);
        if (end === "0\r\n\r\n") arrived();
      });
      peer.socket.pause();
    };
    await start({ sendTimeoutMs: 20_000 });
    const client = await connectTo(proxy.port);
    client.send("PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    const piece = Buffer.from(
      `${size.toString(16)}\r\n${randomText(size)}\r\n`.repeat(Math.ceil(100_000 / size)),
    );
    let taken = 0;
    const sending = (async () => {
      while (taken < all) {
        await new Promise((resolve) => client.socket.write(piece, resolve));
        // Never so much in a turn that it would have to be written before the end of the turn.
        await new Promise((resolve) => setImmediate(resolve));
        taken += piece.length;
      }
    })();
    const peer = await upstream.connection();
    for (let before = -1; before !== taken;) {
      before = taken;
      await sleep(400);
    }
    // What kernels hold on both ways (they tune their buffers as they go), and not all of it.
    expect([taken > 0, taken < 48 * MiB]).toEqual([true, true]);
    peer.socket.resume();
    await sending;
    client.send("0\r\n\r\n");
    await whole;
    client.socket.destroy();
  });

  test("stream: the upstream has the first bytes before the client sent the last", async () => {
    await start();
    script = () => {};
    const client = await connectTo(proxy.port);
    client.send("PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    const peer = await upstream.connection();
    await peer.receives("\r\n\r\n");
    client.send("01234");
    await peer.receives("\r\n\r\n01234");
    client.send("56789");
    await peer.receives("\r\n\r\n0123456789");
    peer.send(OK);
    await client.receives("ok");
    client.socket.destroy();
  });

  test("the proxy responds to Expect: 100-continue and does not forward it", async () => {
    await start();
    script = () => {};
    const client = await connectTo(proxy.port);
    client.send("PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    await client.receives("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ab");
    const peer = await upstream.connection();
    await peer.receives("\r\n\r\nab");
    expect(peer.received).not.toMatch(/expect/i);
    peer.send(OK);
    await client.receives("ok");
    client.socket.destroy();
  });

  test("an aborted upload cuts the upstream's connection and is never ended as if it were complete", async () => {
    await start();
    script = () => {};
    const client = await connectTo(proxy.port);
    client.send("PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    const peer = await upstream.connection();
    await peer.receives("hello");
    client.socket.destroy();
    await peer.until((p) => p.closed || p.ended);
    expect(peer.received).not.toContain("0\r\n\r\n");
    expect(await proxy.accessLog()).toMatch(/"PUT \/synchttp\/x HTTP\/1\.1" 499 /);
  });

  test.each(["by FIN", "by RST"])(
    "an early response reaches the client although the upstream closes %s",
    async (how) => {
      await start();
      script = (peer) => {
        peer.socket.once("data", () => {
          peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
          if (how === "by FIN") peer.socket.end();
          else setTimeout(() => peer.socket.resetAndDestroy(), 50);
        });
      };
      const client = await connectTo(proxy.port);
      client.send(`PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: ${50 << 20}\r\n\r\n`);
      const piece = randomBody(1 << 20);
      for (let i = 0; i < 40 && !client.received.includes("big"); i++) {
        client.send(piece);
        await sleep(5);
      }
      await client.receives("big");
      expect(parseResponse(client.received)).toMatchObject({ status: 413, body: "big" });
      expect(client.received).toContain("Connection: close");
      client.socket.destroy();
    },
  );

  test("a body over the route's limit is 413, by length at once and in chunks when it exceeds", async () => {
    await start({}, { requestBodyBytesMax: 10 });
    expect(
      (await exchange(proxy.port, "PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"))
        .status,
    ).toBe(413);
    expect(upstream.connections).toHaveLength(0);
    script = () => {};
    const client = await connectTo(proxy.port);
    client.send("PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n");
    const peer = await upstream.connection();
    await peer.receives("01234567");
    client.send("8\r\n01234567\r\n");
    await client.receives("HTTP/1.1 413");
    client.socket.destroy();
    await peer.until((p) => p.closed || p.ended);
    expect(peer.received).not.toContain("0\r\n\r\n");
  });

  test("a slow upstream slows the client instead of filling memory", async () => {
    await start();
    script = (peer) => peer.socket.pause();
    const client = await connectTo(proxy.port);
    client.send(`PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: ${1 << 30}\r\n\r\n`);
    const before = process.memoryUsage().external + process.memoryUsage().arrayBuffers;
    const piece = Buffer.alloc(1 << 20);
    for (let i = 0; i < 64; i++) client.socket.write(piece);
    await sleep(500);
    // The same buffer was queued 64 times; what left the client's queue is in kernels and in the proxy.
    expect(client.socket.writableLength).toBeGreaterThan(40 << 20);
    expect(process.memoryUsage().external + process.memoryUsage().arrayBuffers - before).toBeLessThan(
      16 << 20,
    );
    client.socket.destroy();
  });
});

describe("responses", () => {
  const respondsWith = async (response: string, request = GET): Promise<ReturnType<typeof parseResponse>> => {
    await start();
    script = (peer) => {
      peer.socket.once("data", () => {
        peer.send(response);
        peer.socket.end();
      });
    };
    return exchange(proxy.port, request);
  };

  test("framing, hop-by-hop, Server, Date and X-Accel fields are the proxy's; the rest passes as it came", async () => {
    const response = await respondsWith(
      "HTTP/1.1 299 Very Odd\r\nServer: up\r\nDate: yesterday\r\nX-Accel-Redirect: /secret\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nUpgrade: h2c\r\nProxy-Authenticate: x\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Powered-By: up\r\nContent-Length: 2\r\n\r\nok",
    );
    const lines = response.head.split("\r\n");
    expect(lines[0]).toBe("HTTP/1.1 299 Very Odd");
    expect(lines[1]).toBe("Server: portico");
    expect(lines[2]).toMatch(/^Date: \w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/);
    expect(lines.slice(3)).toEqual([
      "Content-Length: 2",
      "Set-Cookie: a=1",
      "set-cookie: b=2",
      "X-Powered-By: up",
    ]);
  });

  test.each([
    ["by length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", GET, "Content-Length: 5", "hello"],
    [
      "in chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nT: x\r\n\r\n",
      GET,
      "Transfer-Encoding: chunked",
      "5\r\nhello\r\n0\r\n\r\n",
    ],
    [
      "until close",
      "HTTP/1.1 200 OK\r\n\r\nhello",
      GET,
      "Transfer-Encoding: chunked",
      "5\r\nhello\r\n0\r\n\r\n",
    ],
    [
      "HTTP/1.0",
      "HTTP/1.0 200 OK\r\n\r\nhello",
      GET,
      "Transfer-Encoding: chunked",
      "5\r\nhello\r\n0\r\n\r\n",
    ],
    [
      "in chunks to HTTP/1.0",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "GET /sync/ HTTP/1.0\r\nHost: a\r\n\r\n",
      "Connection: close",
      "hello",
    ],
    [
      "to HEAD",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
      "HEAD /sync/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "Content-Length: 5",
      "",
    ],
    ["204", "HTTP/1.1 204 No Content\r\n\r\n", GET, "HTTP/1.1 204 No Content", ""],
    [
      "304 with a length",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 55\r\n\r\n",
      GET,
      "Content-Length: 55",
      "",
    ],
    [
      "after 100",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      GET,
      "Content-Length: 2",
      "ok",
    ],
    ["without reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", GET, "Content-Length: 2", "ok"],
  ])("body %s", async (_name, response, request, head, body) => {
    const seen = await respondsWith(response, request);
    expect(seen.head).toContain(head);
    expect(seen.body).toBe(body);
    expect(seen.head.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test.each([
    ["CL with TE", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["two CL", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"],
    ["TE gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"],
    ["a folded CL", "HTTP/1.1 200 OK\r\nX: a\r\nContent-Length: 0\r\n 0\r\n\r\n"],
    ["bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
    ["NUL in a field", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n"],
    ["no status line", "hello\r\n\r\n"],
    ["bad status", "HTTP/1.1 2x0 OK\r\n\r\n"],
    ["HTTP/2 status line", "HTTP/2 200 OK\r\n\r\n"],
    ["endless head", `HTTP/1.1 200 OK\r\n${`X: ${"a".repeat(1000)}\r\n`.repeat(80)}`],
    ["endless informational responses", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100_001)],
    ["101 unasked", "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"],
    ["nothing", ""],
    ["half a head", "HTTP/1.1 200 OK\r\nContent-"],
  ])("a malformed response is 502: %s", async (_name, response) => {
    expect((await respondsWith(response)).status).toBe(502);
    expect(await proxy.errorLog()).toMatch(/\[error\].*upstream.*request: "GET \/sync\/ HTTP\/1\.1"/);
  });

  test.each([
    ["by length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "hello"],
    ["in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "5\r\nhello\r\n"],
    ["broken chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX", "5\r\nhello\r\n"],
  ])(
    "a truncated response closes the client's connection and is never ended as if it were complete: %s",
    async (_name, bytes, relayed) => {
      const response = await respondsWith(bytes);
      expect(response.body).toBe(relayed);
    },
  );

  test("a reset does not end a response without a length, although it comes with its last bytes", async () => {
    await start();
    // Both are there when the proxy reads.
    script = (peer) =>
      peer.socket.on("data", () => {
        peer.send("HTTP/1.1 200 OK\r\n\r\nhello");
        peer.socket.resetAndDestroy();
      });
    const client = await connectTo(proxy.port);
    client.send(GET);
    await client.until(({ ended }) => ended);
    expect(client.received).toContain("5\r\nhello\r\n");
    expect(client.received).not.toContain("\r\n0\r\n");
    expect(await proxy.errorLog()).toContain("recv() failed (104: ECONNRESET) while reading upstream");
  });

  test("small pieces are passed on at once", async () => {
    await start();
    script = () => {};
    const client = await connectTo(proxy.port);
    client.send(GET);
    const peer = await upstream.connection();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    await client.receives("\r\n\r\n");
    for (const piece of ["a", "b", "c"]) {
      peer.send(`1\r\n${piece}\r\n`);
      await client.receives(`1\r\n${piece}\r\n`);
    }
    client.socket.destroy();
  });

  test("a long response of unknown length goes out in pieces that grow while the client reads", async () => {
    const body = randomBody(32 * MiB);
    script = (peer) =>
      peer.socket.once("data", () => peer.send("HTTP/1.1 200 OK\r\n\r\n").send(body).socket.end());
    await start();
    const client = await connectTo(proxy.port);
    const received: Buffer[] = [];
    client.socket.removeAllListeners("data").on("data", (chunk: Buffer) => received.push(chunk));
    client.send(GET.replace("Host", "Connection: close\r\nHost"));
    await client.until(({ ended }) => ended);
    const text = Buffer.concat(received).toString("latin1");
    const sizes: number[] = [];
    const pieces: string[] = [];
    for (let at = text.indexOf("\r\n\r\n") + 4; sizes.at(-1) !== 0;) {
      const size = parseInt(text.slice(at, at + 8), 16);
      sizes.push(size);
      const from = text.indexOf("\r\n", at) + 2;
      pieces.push(text.slice(from, from + size));
      at = from + size + 2;
    }
    expect(body.equals(Buffer.from(pieces.join(""), "latin1"))).toBe(true);
    // Before it has read 8 MiB.
    expect(Math.max(...sizes.slice(0, 100))).toBe(65_536);
    expect(Math.max(...sizes)).toBeGreaterThan(65_536);
  });

  test("bytes after a response reach no client, and the connection is not reused", async () => {
    await start();
    script = responding(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`);
    const client = await connectTo(proxy.port);
    client.send(GET + GET);
    await client.until((peer) => (peer.received.match(/\r\n\r\nok/g) ?? []).length === 2);
    expect(client.received).not.toContain("poison");
    expect(upstream.connections).toHaveLength(2);
    client.socket.destroy();
  });

  test.each([
    ["/sync/", "http://127.0.0.1:UP/x?y", "http://a:81/x?y"],
    ["/synchttp/", "http://127.0.0.1:UP/files/x", "http://a:81/synchttp/files/x"],
    ["/synchttp/", "http://127.0.0.1:UP", "http://a:81/synchttp/"],
    ["/sync/", "/sync/accounts/login/?next=/sync/", "/sync/accounts/login/?next=/sync/"],
    ["/sync/", "http://127.0.0.1:UP.evil.example/", "http://127.0.0.1:UP.evil.example/"],
    ["/sync/", "http://127.0.0.1:UP0/", "http://127.0.0.1:UP0/"],
    ["/sync/", "http://127.0.0.1:UP?x", "http://a:81/?x"],
    [
      "/sync/",
      "https://elsewhere.example/?u=http://127.0.0.1:UP/",
      "https://elsewhere.example/?u=http://127.0.0.1:UP/",
    ],
  ])("Location on %s: %s → %s", (path, sent, seen) => rewritten("Location", path, sent, seen));

  test.each([
    ["5; url=http://127.0.0.1:UP/x", "5; url=http://a:81/x"],
    ['5; URL="http://127.0.0.1:UP/x"', '5; URL="http://a:81/x"'],
    ["5; url='http://127.0.0.1:UP'", "5; url='http://a:81/'"],
    ["http://127.0.0.1:UP/x", "http://a:81/x"],
    ["5; url=/x http://127.0.0.1:UP/x", "5; url=/x http://127.0.0.1:UP/x"],
    ["5; url=https://b/?http://127.0.0.1:UP/x", "5; url=https://b/?http://127.0.0.1:UP/x"],
  ])("Refresh: %s → %s", (sent, seen) => rewritten("Refresh", "/sync/", sent, seen));

  async function rewritten(field: string, path: string, sent: string, seen: string): Promise<void> {
    await start();
    const fill = (text: string): string => text.replace("UP", String(upstream.port));
    script = responding(`HTTP/1.1 302 Found\r\n${field}: ${fill(sent)}\r\nContent-Length: 0\r\n\r\n`);
    const response = await exchange(proxy.port, `GET ${path} HTTP/1.1\r\nHost: a:81\r\n\r\n`);
    expect(response.headers[field.toLowerCase()]).toBe(fill(seen));
  }

  test("a client that stops reading stops the upstream instead of filling memory, and then gets everything", async () => {
    await start();
    const size = 64 << 20;
    const body = randomBody(size);
    script = (peer) => {
      peer.socket.once("data", () => {
        peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
        peer.socket.write(body);
      });
    };
    const client = await connectTo(proxy.port);
    client.socket.pause();
    client.send(GET);
    const peer = await upstream.connection();
    await sleep(500);
    expect(peer.socket.writableLength).toBeGreaterThan(size / 2);
    let bytes = 0;
    const received: Buffer[] = [];
    client.socket.removeAllListeners("data");
    client.socket.on("data", (chunk: Buffer) => {
      received.push(chunk);
      bytes += chunk.length;
    });
    client.socket.resume();
    await eventually(() => bytes > size, "for the whole response");
    const headBytes = received[0]!.indexOf("\r\n\r\n") + 4;
    await eventually(() => bytes >= size + headBytes);
    expect(Buffer.concat(received).subarray(headBytes).equals(body)).toBe(true);
    client.socket.destroy();
  });
});

describe("connections", () => {
  test("upstream connections are reused, pipelined requests get responses in order", async () => {
    await start();
    script = (peer) => {
      let seen = 0;
      peer.socket.on("data", () => {
        for (const target of [...peer.received.matchAll(/GET (\S+)/g)].slice(seen)) {
          seen++;
          peer.send(`HTTP/1.1 200 OK\r\nContent-Length: ${target[1]!.length}\r\n\r\n${target[1]}`);
        }
      });
    };
    const client = await connectTo(proxy.port);
    client.send(
      ["/sync/1", "/sync/2", "/sync/3"].map((t) => `GET ${t} HTTP/1.1\r\nHost: a\r\n\r\n`).join(""),
    );
    await client.receives("/sync/3");
    expect(client.received.match(/\/sync\/\d/g)).toEqual(["/sync/1", "/sync/2", "/sync/3"]);
    expect(upstream.connections).toHaveLength(1);
    client.socket.destroy();
  });

  test("the connections of a burst of concurrent requests are kept for the next one", async () => {
    const concurrent = 200;
    let held: Accepted[] = [];
    script = (peer) => {
      peer.socket.on("data", () => {
        // None gets a response before all are there: every request has a connection of its own.
        if (held.push(peer) < concurrent) return;
        held.forEach((one) => one.send(OK));
        held = [];
      });
    };
    await start();
    const clients = await Promise.all(Array.from({ length: concurrent }, () => connectTo(proxy.port)));
    for (const responses of [1, 2]) {
      clients.forEach((client) => client.send(GET));
      await Promise.all(
        clients.map((client) =>
          client.until(({ received }) => received.split("\r\n\r\nok").length > responses),
        ),
      );
    }
    expect(upstream.connections).toHaveLength(concurrent);
    clients.forEach((client) => client.socket.destroy());
  });

  test.each([
    ["GET", "", true],
    ["POST", "Content-Length: 2\r\n\r\nab", false],
    ["POST", "", false],
  ])(
    "%s %j on a reused connection that breaks without a response: retried once is %s",
    async (method, rest, retried) => {
      await start();
      script = (peer, index) => {
        peer.socket.on("data", () => {
          if (index === 0 && peer.received.split("HTTP/1.1").length > 2) peer.socket.destroy();
          else peer.send(OK);
        });
      };
      expect((await exchange(proxy.port, GET)).status).toBe(200);
      const request = `${method} /sync/second HTTP/1.1\r\nHost: a\r\n${rest === "" ? "\r\n" : rest}`;
      expect((await exchange(proxy.port, request)).status).toBe(retried ? 200 : 502);
      expect(upstream.connections).toHaveLength(retried ? 2 : 1);
    },
  );

  test("an unrequested 101 on a reused connection is a response: no retry and no tunnel", async () => {
    await start();
    script = (peer) => {
      peer.socket.once("data", () => {
        peer.send(OK);
        peer.socket.once("data", () => {
          peer.send("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\ntunnelled");
        });
      });
    };
    expect((await exchange(proxy.port, GET)).status).toBe(200);
    const second = await exchange(proxy.port, GET.replace("/sync/", "/sync/second"));
    expect([second.status, second.body.includes("tunnelled")]).toEqual([502, false]);
    expect(await proxy.errorLog()).toContain("upstream switched protocols without being asked");
    await (await upstream.connection()).until((peer) => peer.closed || peer.ended);
    expect(upstream.received.match(/second/g)).toHaveLength(1);
    expect(upstream.connections).toHaveLength(1);
  });

  test("an upstream that is down is 502 at once, named in the error log; then served when it is back", async () => {
    const port = await freePort();
    proxy = await startProxy({
      routes: proxiedRoutes(),
      upstreams: [{ name: "web", url: `http://127.0.0.1:${port}` }],
    });
    expect((await exchange(proxy.port, GET)).status).toBe(502);
    expect(await proxy.errorLog()).toMatch(
      /connect\(\) failed \(111: .*\) while connecting to upstream.*127\.0\.0\.1/,
    );
    upstream = await new RawUpstream((peer) => script(peer, 0)).listen(port);
    expect((await exchange(proxy.port, GET)).status).toBe(200);
  });

  test("keep-alive: HTTP/1.1 stays open, HTTP/1.0 only on request, Connection: close closes", async () => {
    await start();
    const cases: [string, boolean][] = [
      [GET, true],
      ["GET /sync/ HTTP/1.0\r\nHost: a\r\n\r\n", false],
      ["GET /sync/ HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true],
      ["GET /sync/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false],
    ];
    for (const [request, open] of cases) {
      const client = await connectTo(proxy.port);
      client.send(request);
      await client.receives("ok");
      if (!open) await client.until(({ ended }) => ended);
      else await sleep(50);
      expect([request, client.ended]).toEqual([request, !open]);
      client.socket.destroy();
    }
  });

  test("a client that half-closes still gets its response", async () => {
    await start();
    const client = await connectTo(proxy.port);
    client.send(GET);
    client.socket.end();
    await client.until((peer) => peer.ended);
    expect(parseResponse(client.received).status).toBe(200);
  });

  test.each([0, 50])(
    "of pipelined requests all get a response, though their client half-closed %i ms later",
    async (ms) => {
      await start();
      script = (peer) => peer.socket.on("data", () => setTimeout(() => peer.send(OK), 5));
      const client = await connectTo(proxy.port);
      client.send(GET.repeat(20));
      await sleep(ms);
      client.socket.end();
      await client.until((peer) => peer.ended);
      expect(client.received.match(/HTTP\/1\.1 200 /g)).toHaveLength(20);
    },
  );

  test("a client that goes away while the upstream is silent frees the upstream", async () => {
    await start();
    script = () => {};
    const client = await connectTo(proxy.port);
    client.send(GET);
    const peer = await upstream.connection();
    await peer.receives("\r\n\r\n");
    client.socket.destroy();
    await peer.until((p) => p.closed || p.ended);
    await eventually(
      async () => (await proxy.accessLog()).includes('"GET /sync/ HTTP/1.1" 499 0'),
      "for its line in the access log",
    );
  });

  test("draining responds to running requests and those on their way, and closes used connections after a second", async () => {
    await start();
    let asked!: (peer: Accepted) => void;
    const held = new Promise<Accepted>((resolve) => (asked = resolve));
    script = (peer) =>
      peer.socket.on("data", (head: Buffer) => {
        if (head.includes("/sync/busy")) asked(peer);
        else peer.send(OK);
      });
    const [used, late, busy] = await Promise.all([1, 2, 3].map(() => connectTo(proxy.port)));
    used!.send(GET);
    await used!.receives("ok");
    busy!.send(GET.replace("/sync/", "/sync/busy"));
    const peer = await held;
    const drained = performance.now();
    proxy.drain();
    // Sent before its client could know (RFC 9112, 9.6).
    late!.send(GET);
    await late!.until((p) => p.ended);
    expect(late!.received).toMatch(/^HTTP\/1\.1 200 [^]*Connection: close\r\n[^]*ok$/);
    await used!.until((p) => p.ended);
    expect(Math.abs(performance.now() - drained - 1_500)).toBeLessThan(1_000);
    expect([busy!.ended, busy!.received]).toEqual([false, ""]);
    peer.send(OK);
    await busy!.until((p) => p.ended);
    expect(busy!.received).toMatch(/^HTTP\/1\.1 200 [^]*Connection: close\r\n[^]*ok$/);
  });

  test("WebSocket passes in both directions, other upgrades are dropped", async () => {
    await start();
    script = (peer) => {
      peer.socket.once("data", () => {
        if (!/upgrade: websocket/i.test(peer.received)) return void peer.send(OK);
        peer.send(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello",
        );
        peer.socket.on("data", (chunk: Buffer) => peer.send(`echo ${chunk.toString()}`));
      });
    };
    const client = await connectTo(proxy.port);
    client.send(
      "GET /sync/ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n",
    );
    await client.receives("hello");
    expect(parseResponse(client.received)).toMatchObject({
      status: 101,
      headers: { upgrade: "websocket", "sec-websocket-accept": "x" },
    });
    client.send("\x81\x00\xff\r\n\r\n");
    await client.receives("echo ");
    client.socket.end();
    await (await upstream.connection()).until((p) => p.ended || p.closed);
    client.socket.destroy();
    expect(
      (
        await exchange(
          proxy.port,
          "GET /sync/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        )
      ).status,
    ).toBe(200);
    expect(upstream.connections.at(-1)!.received).not.toMatch(/upgrade/i);
  });
});

describe("timeouts", () => {
  test.each([
    [
      "a head that does not end",
      { config: { timeouts: { requestHeadMs: 300 } } },
      "GET /sync/ HTTP/1.1\r\nHo",
      408,
    ],
    [
      "a request line that does not end",
      { config: { timeouts: { requestHeadMs: 300 } } },
      "GET /sync/pie",
      408,
    ],
    [
      "a body that stops",
      { route: { requestBodyTimeoutMs: 300 } },
      "PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab",
      408,
    ],
    ["an upstream that says nothing", { upstream: { readTimeoutMs: 300 } }, GET, 504],
  ])(
    "%s",
    async (_name, options: { config?: object; route?: object; upstream?: object }, request, status) => {
      script = () => {};
      await start(options.upstream, options.route, options.config);
      script = () => {};
      const response = await exchange(proxy.port, request);
      expect(response.status).toBe(status);
      expect(await proxy.accessLog()).toContain(` "${request.split("\r\n", 1)[0]}" ${status} `);
    },
  );

  test("an idle connection is closed silently", async () => {
    await start({}, {}, { timeouts: { keepAliveMs: 300 } });
    const client = await connectTo(proxy.port);
    client.send(GET);
    await client.until((p) => isComplete(p.received));
    await client.until((p) => p.ended);
    expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("a response that stops in the middle closes the client's connection", async () => {
    await start({ readTimeoutMs: 300 });
    script = (peer) =>
      void peer.socket.once("data", () => peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"));
    const client = await connectTo(proxy.port);
    client.send(GET);
    await client.until((p) => p.ended || p.closed);
    expect(parseResponse(client.received).body).toBe("ab");
    expect(await proxy.errorLog()).toContain("timed out");
  });

  test("a slow but steady upload outlives the idle timeout", async () => {
    await start({}, { requestBodyTimeoutMs: 600 });
    const client = await connectTo(proxy.port);
    client.send("PUT /synchttp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n");
    for (let i = 0; i < 8; i++) {
      await sleep(200);
      client.send("x");
    }
    await client.receives("HTTP/1.1 200 OK");
    client.socket.destroy();
  });
});
