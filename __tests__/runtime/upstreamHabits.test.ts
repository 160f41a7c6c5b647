import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { RouteInput } from "../../src/model/index.js";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { eventually, stall } from "../../testkit/waiting.js";

/**
 * Upstreams that send more than a response has, and what they send before it: nobody gets bytes of another's response, and
 * everybody gets the informational ones of their own.
 */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const EVIL = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
const ROUTES: readonly RouteInput[] = [
  { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
];
const asking = (method: string): string => `${method} /web HTTP/1.1\r\nHost: a\r\n\r\n`;

let upstream: RawUpstream;
let front: EveryProtocol;
/** What the upstream does with each request, the first of a connection or a later one. */
let script: (peer: Accepted, request: number) => void;
/** The proxy's ports of the connections to it. */
let ports: number[];

beforeEach(async () => {
  ports = [];
  upstream = await new RawUpstream((peer) => {
    ports.push(peer.socket.remotePort!);
    let requests = 0;
    peer.socket.on("data", () => {
      for (let had = requests; had < peer.received.split("\r\n\r\n").length - 1; had++)
        script(peer, requests++);
    });
  }).listen();
  front = await startEveryProtocol({
    routes: ROUTES,
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, idleTimeoutMs: 60_000 }],
  });
});
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

/** A client that does not wait for a body. */
async function headOf(request: string): Promise<string> {
  const client = await connectTo(front.plainPort);
  client.send(request);
  await client.receives("\r\n\r\n");
  client.socket.destroy();
  return client.received;
}

describe("a connection after a response without a body", () => {
  test.each<[method: string, head: string, reused: boolean]>([
    ["HEAD", "200 OK\r\nContent-Length: 7", false],
    ["HEAD", "200 OK\r\nTransfer-Encoding: chunked", false],
    ["HEAD", "200 OK", false],
    ["HEAD", "302 Found\r\nContent-Length: 0", true],
    ["HEAD", "304 Not Modified", false],
    ["GET", "304 Not Modified\r\nContent-Length: 7", false],
    ["GET", "304 Not Modified\r\nTransfer-Encoding: chunked", false],
    ["GET", "304 Not Modified", false],
    ["GET", "304 Not Modified\r\nContent-Length: 0", true],
    ["GET", "204 No Content\r\nContent-Length: 7", false],
    ["GET", "204 No Content\r\nContent-Length: 0", true],
    ["DELETE", "204 No Content", false],
    ["DELETE", "200 OK\r\nContent-Length: 0", true],
  ])("to %s, %j, is used again: %j", async (method, head, reused) => {
    script = (peer, request) => peer.send(request === 0 ? `HTTP/1.1 ${head}\r\n\r\n` : OK);
    expect(await headOf(asking(method))).toContain(`HTTP/1.1 ${head.slice(0, 3)}`);
    script = (peer) => peer.send(OK);
    expect((await exchange(front.plainPort, asking("GET"))).body).toBe("ok");
    expect(upstream.connections.length).toBe(reused ? 1 : 2);
  });

  test.each(["HEAD", "GET"])(
    "never gives the next client what comes after the head, to %s",
    async (method) => {
      script = (peer) => {
        if (!peer.received.includes("victim")) {
          peer.send(`HTTP/1.1 ${method === "HEAD" ? 200 : 304} OK\r\nContent-Length: ${EVIL.length}\r\n\r\n`);
          setTimeout(() => peer.send(EVIL), 5);
        } else setTimeout(() => peer.send(OK), 20);
      };
      for (let i = 0; i < 20; i++) {
        await headOf(asking(method));
        await sleep(i % 10);
        const response = await exchange(front.plainPort, "GET /web/victim HTTP/1.1\r\nHost: a\r\n\r\n");
        expect([response.status, response.body]).toEqual([200, "ok"]);
      }
      expect(await front.errorLog()).toBe("");
    },
  );
});

test.each<[request: string, response: string]>([
  ["HEAD /web HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"],
  [
    "GET /web HTTP/1.1\r\nHost: a\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
  ],
])("a connection that is not used again keeps no local port: %j", async (request, response) => {
  script = (peer) => peer.send(response);
  for (let i = 0; i < 20; i++) await headOf(request);
  await Promise.all(upstream.connections.map((peer) => peer.until(({ closed }) => closed)));
  expect([ports.length, keptPorts()]).toEqual([20, []]);
});

test.each<[request: string, response: string]>([
  ["GET /web HTTP/1.1\r\nHost: a\r\n\r\n", ""],
  ["GET /web HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"],
  ["POST /web HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", ""],
])("nor does one whose client gives up: %j, with the response %j", async (request, response) => {
  script = (peer) => peer.send(response);
  for (let i = 1; i <= 5; i++) {
    const client = await connectTo(front.plainPort);
    client.send(request);
    await eventually(() => upstream.connections.length === i);
    await upstream.connections[i - 1]!.until(({ received }) => /\r\n\r\n(x|$)/.test(received));
    if (response !== "") await client.receives("\r\n\r\n");
    client.socket.resetAndDestroy();
  }
  await Promise.all(upstream.connections.map((peer) => peer.until(({ closed }) => closed)));
  expect(keptPorts()).toEqual([]);
});

/** States of what the kernel keeps of these connections (tcp_states.h); others of this host may be to the same port. */
function keptPorts(): string[] {
  const portOf = (column: string | undefined): number => parseInt(column?.split(":")[1] ?? "", 16);
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, remote]) => portOf(remote) === upstream.port && ports.includes(portOf(local)))
    .map((columns) => columns[3]!);
}

describe("bytes that belong to no response", () => {
  test.each<[when: string, stray: (peer: Accepted) => void]>([
    ["with a response", (peer) => peer.send(`${OK}${EVIL}`)],
    ["a moment after it", (peer) => peer.send(OK) && setTimeout(() => peer.send(EVIL), 20)],
  ])("%s close every idle connection, and for a minute none is used twice", async (_when, stray) => {
    const waiting: Accepted[] = [];
    script = (peer) => waiting.push(peer);
    const responses = ["a", "b"].map(() => exchange(front.plainPort, asking("GET")));
    const others = await Promise.all([upstream.connection(0), upstream.connection(1)]);
    await Promise.all(others.map((peer) => peer.receives("\r\n\r\n")));
    others[0].send(OK);
    await responses[waiting.indexOf(others[0])];
    await sleep(20);
    stray(others[1]);
    await Promise.all(responses);
    await others[0].until(({ ended, closed }) => ended || closed);
    await others[1].until(({ ended, closed }) => ended || closed);
    script = (peer) => peer.send(OK);
    const get = async (): Promise<string> => (await exchange(front.plainPort, asking("GET"))).body;
    expect([await get(), await get(), upstream.connections.length]).toEqual(["ok", "ok", 4]);
    expect((await front.errorLog()).match(/sent bytes that belong to no response/g)).toHaveLength(1);
    await pass(61_000);
    expect([await get(), await get(), upstream.connections.length]).toEqual(["ok", "ok", 5]);
  });

  test("are not the response to a request that is about to be sent", async () => {
    script = (peer) => peer.send(OK);
    const client = await connectTo(front.plainPort);
    for (let i = 1; i <= 2; i++) {
      client.send(asking("GET"));
      if (i === 2) upstream.connections[0]!.send(EVIL);
      // Both have arrived when the proxy's next turn begins, this last: its connection was taken for the request by then.
      stall(20);
      await client.until(
        ({ received }) => received.split("\r\n\r\n").length > i && /(ok|EVIL)$/.test(received),
      );
    }
    expect(client.received).not.toContain("EVIL");
    expect(upstream.connections.length).toBe(2);
    client.socket.destroy();
  });
});

describe("informational responses", () => {
  const INFORMATIONAL =
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x-hop\r\nX-Hop: 1\r\nServer: up\r\n\r\n" +
    "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 7\r\n\r\n";

  test.each([
    [
      "a browser",
      "1.1\r\nSec-Fetch-Mode: navigate",
      "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" +
        "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 7\r\n\r\nHTTP/1.1 200 OK\r\n",
    ],
    // Programs that take early hints for the response say nothing that tells them apart.
    [
      "another client",
      "1.1",
      "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 7\r\n\r\n" +
        "HTTP/1.1 200 OK\r\n",
    ],
    ["a client of HTTP/1.0", "1.0\r\nSec-Fetch-Mode: navigate", "HTTP/1.1 200 OK\r\n"],
  ])("pass to %s, all but 100", async (_client, version, begins) => {
    script = (peer) => peer.send(`${INFORMATIONAL}${OK}`);
    const client = await connectTo(front.plainPort);
    client.send(`GET /web HTTP/${version}\r\nHost: a\r\n\r\n`);
    await client.until(({ received }) => received.endsWith("ok"));
    expect(client.received.startsWith(begins)).toBe(true);
    client.socket.destroy();
  });

  test("pass over HTTP/2", async () => {
    script = (peer) => peer.send(`${INFORMATIONAL}${OK}`);
    const session = connectHttp2(front.securePort);
    const { informational, status } = await ask(session, { ":path": "/web" });
    session.destroy();
    expect(informational.map((head) => [head[":status"], head["upload-offset"] ?? head["link"]])).toEqual([
      [102, undefined],
      [103, "</a.css>"],
      [104, "7"],
    ]);
    expect(status).toBe(200);
  });

  test("go out at once, while the upload that they report goes on", async () => {
    script = (peer) => peer.send("HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Offset: 1\r\n\r\n");
    const client = await connectTo(front.plainPort);
    client.send("PUT /web HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
    await client.receives("Upload-Offset: 1");
    client.send("y");
    const peer = await upstream.connection();
    await peer.receives("xy");
    peer.send(OK);
    await client.until(({ received }) => received.endsWith("ok"));
    client.socket.destroy();
  });

  test("are not kept for a client that does not read them", async () => {
    script = () => undefined;
    const client = await connectTo(front.plainPort);
    client.socket.pause();
    client.send(asking("GET"));
    const peer = await upstream.connection();
    const bytes = `HTTP/1.1 102 Processing\r\nX: ${"x".repeat(30_000)}\r\n\r\n`;
    for (let i = 0; i < 1_000; i++) {
      if (!peer.socket.write(bytes)) await new Promise((done) => peer.socket.once("drain", done));
    }
    peer.send(OK);
    await sleep(100);
    client.socket.resume();
    await client.until(({ received }) => received.endsWith("ok"));
    expect(client.received.length).toBeLessThan(20_000_000);
    client.socket.destroy();
  });
});

describe("a response to an extended CONNECT", () => {
  test.each([
    ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 502],
    ["HTTP/1.1 204 No Content\r\n\r\n", 502],
    ["HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403],
    ["HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 302],
  ])("that does not switch protocols grants no tunnel: %j is %i", async (response, status) => {
    script = (peer) => peer.send(response);
    const session = connectHttp2(front.securePort);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const connect = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":path": "/web" };
    expect((await ask(session, connect, "")).status).toBe(status);
    session.destroy();
    const log = await front.errorLog();
    expect(log.includes("did not switch protocols")).toBe(status === 502);
  });
});

describe("responses of small servers", () => {
  const LF = "HTTP/1.1 200 OK\nContent-Length: 2\nX-A: b\n\nok";
  const FOLDED = "HTTP/1.1 200 OK\r\nX-A: b\r\n \tc\r\nContent-Length: 2\r\n\r\nok";
  const TWICE = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok";
  const ODD = "HTTP/1.1 999 What\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok";
  const CASES: readonly (readonly [path: string, sent: string, status: number, field: string | undefined])[] =
    [
      ["/web", FOLDED, 200, "b c"],
      ["/web", TWICE, 200, "b"],
      ["/web", ODD, 999, "b"],
      ["/web", LF, 502, undefined],
      ["/device", LF, 200, "b"],
      ["/device", FOLDED, 200, "b c"],
      ["/device", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nX-A: b\n\n2\r\nok\r\n0\r\n\r\n", 200, "b"],
      [
        "/web",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n2 \r\nok\r\n0\t \r\n\r\n",
        200,
        "b",
      ],
      [
        "/web",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n2 2\r\nok\r\n0\r\n\r\n",
        0,
        undefined,
      ],
      // Requests of other clients follow on the connection, so the framing of a body stays strict.
      ["/device", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\n0\n\n", 0, undefined],
    ];

  beforeEach(async () => {
    const url = `http://127.0.0.1:${upstream.port}`;
    await front.close();
    front = await startEveryProtocol({
      routes: [...ROUTES, { name: "device", path: "/device", action: { type: "proxy", upstream: "device" } }],
      upstreams: [
        { name: "web", url },
        { name: "device", url, bareLineFeeds: true },
      ],
    });
  });

  test.each(CASES)("over HTTP/1.1, from %s: %j is %i, with X-A %j", async (path, response, status, field) => {
    script = (peer) => peer.send(response);
    const client = await connectTo(front.plainPort);
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await client.until(({ ended, closed }) => ended || closed);
    const [, seen] = /^HTTP\/1\.1 (\d+)/.exec(client.received) ?? [];
    if (status === 0) return expect(client.received).not.toContain("\r\n0\r\n");
    expect(Number(seen)).toBe(status);
    expect(/^X-A: (.*)$/m.exec(client.received)?.[1]).toBe(field);
    if (status !== 502) expect(client.received).toMatch(/\r\n\r\n(ok|2\r\nok\r\n0\r\n\r\n)$/);
  });

  test.each(CASES)("over HTTP/2, from %s: %j is %i, with X-A %j", async (path, response, status, field) => {
    script = (peer) => peer.send(response);
    const session = connectHttp2(front.securePort);
    const seen = await ask(session, { ":path": path });
    session.destroy();
    if (status === 0) return expect(seen.code).not.toBe(0);
    expect([seen.status, seen.headers["x-a"]]).toEqual([status, field]);
    if (status !== 502) expect(seen.body).toBe("ok");
  });

  test.each<[response: string, says: string]>([
    [LF, 'bare LF; end lines with CR LF at upstream "web", or set its `bareLineFeeds`'],
    [
      "HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: c=d\r\n\r\n",
      'control byte in a field value (X-A); end lines with CR LF at upstream "web"',
    ],
    ["HTTP/1.1 200 OK\r\nX-A: b\nX-B", 'bare LF (X-A); end lines with CR LF at upstream "web"'],
    [
      "HTTP/1.1 200 OK\r\nX-A: \x01\r\n\r\n",
      'control byte in a field value (X-A); correct the response of upstream "web"',
    ],
    [
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n",
      'field continues on the next line (Content-Length); correct the response of upstream "web"',
    ],
    [
      `HTTP/1.1 200 OK\r\n${`X-A: ${"b".repeat(1_000)}\r\n`.repeat(70)}\r\n`,
      'request head too long; increase `headBytesMax` of upstream "web"',
    ],
  ])("response %# is refused, and the log says why and what to do", async (response, says) => {
    script = (peer) => peer.send(response);
    expect((await exchange(front.plainPort, asking("GET"))).status).toBe(502);
    expect(await front.errorLog()).toContain(`upstream sent an invalid response: ${says}`);
  });
});
