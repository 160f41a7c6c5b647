import { readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { UpstreamInput } from "../../src/model/index.js";
import { tally } from "../../src/runtime/exchange/tally.js";
import { pass } from "../../testkit/clock.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { END_STREAM, Frame, RawClient } from "../../testkit/http2RawClient.js";
import { connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/**
 * Whoever ends an exchange, in whatever state it is: what was acquired for it is given back, and it is counted out. The
 * generator (`proof/exchanges`) looks for such ends; here are those that were found.
 */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/** More than kernels keep for a client that does not read: the file stays open. */
const LARGE_BYTES = 100_000_000;

let folder: string;
let upstream: RawUpstream;
let front: EveryProtocol;

beforeAll(() => {
  folder = publicFolder("portico-ends-");
  writeFileSync(join(folder, "large.bin"), "x");
  truncateSync(join(folder, "large.bin"), LARGE_BYTES);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(more: Partial<UpstreamInput> = {}): Promise<void> {
  upstream = await new RawUpstream().listen();
  front = await startEveryProtocol({
    routes: [
      { name: "files", path: "/files", action: { type: "staticFiles", directory: folder } },
      {
        name: "web",
        path: "/web",
        requestBodyTimeoutMs: 500,
        requestBodyBytesMax: 10,
        action: { type: "proxy", upstream: "web" },
      },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, clientSharePercent: 100, ...more }],
  });
}

afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  await eventually(() => tally.exchangesBegun === tally.exchangesOver);
  expect(faults).toBe(0);
});

const openFiles = (): number =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === join(folder, "large.bin");
    } catch {
      return false;
    }
  }).length;

const chunked = (path: string, ...chunks: readonly string[]): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join("")}`;

describe.each([
  ["HTTP/1.1", false],
  ["HTTP/1.1 over TLS", true],
])("over %s", (_, secure) => {
  const port = (): number => (secure ? front.securePort : front.plainPort);

  test("a request whose first chunk is invalid leaves no file open", async () => {
    await start();
    for (let i = 0; i < 20; i++)
      expect((await exchange(port(), chunked("/files/large.bin", "zz\r\n"), secure)).status).toBe(400);
    await eventually(() => openFiles() === 0);
    expect(tally.filesOpened).toBe(tally.filesClosed);
  });

  test("a chunk that is invalid in the middle of the response leaves no file open", async () => {
    await start();
    const client = await connectTo(port(), secure);
    client.socket.pause();
    // Nothing of a body yet, which would wait for the response and be read after it.
    client.send(chunked("/files/large.bin", "1"));
    await eventually(() => openFiles() === 1);
    client.send("z\r\n");
    await eventually(() => openFiles() === 0);
    client.socket.destroy();
  });

  test.each([
    ["400", chunked("/web", "zz\r\n")],
    ["413", chunked("/web", "b\r\nhello world\r\n")],
    ["408", chunked("/web")],
  ])(
    "a request that is refused with %s while it waits for a connection never gets one",
    async (status, text) => {
      await start({ connectionsMax: 1 });
      const first = exchange(port(), "GET /web/first HTTP/1.1\r\nHost: a\r\n\r\n", secure);
      const peer = await upstream.connection();
      await peer.receives("/web/first");
      const refused = exchange(port(), text, secure);
      await pass(status === "408" ? 800 : 50);
      expect(String((await refused).status)).toBe(status);
      const next = exchange(port(), "GET /web/next HTTP/1.1\r\nHost: a\r\n\r\n", secure);
      await sleep(50);
      peer.send(OK);
      await peer.receives("/web/next");
      peer.send(OK);
      expect([(await first).status, (await next).status]).toEqual([200, 200]);
      expect(upstream.received).not.toContain("chunked");
    },
  );
});

describe("over HTTP/2", () => {
  const request = (path: string, ...more: readonly (readonly [string, string])[]) =>
    [[":method", "POST"], [":scheme", "https"], [":authority", "a"], [":path", path], ...more] as const;
  const reset = (code: number): Buffer => Buffer.from([0, 0, 0, code]);

  test.each<[what: string, send: (client: RawClient) => void]>([
    ["is reset by its client", (client) => client.send(Frame.RST_STREAM, 0, 1, reset(8))],
    ["has a body that is too long", (client) => client.send(Frame.DATA, 0, 1, "hello world")],
    ["has a body that ends early", (client) => client.send(Frame.DATA, END_STREAM, 1, "x")],
  ])("a request that %s while it waits for a connection never gets one", async (_what, send) => {
    await start({ connectionsMax: 1 });
    const first = exchange(front.plainPort, "GET /web/first HTTP/1.1\r\nHost: a\r\n\r\n");
    const peer = await upstream.connection();
    await peer.receives("/web/first");
    const client = await RawClient.connect(front.securePort);
    client.request(1, request("/web/ghost", ["content-length", "2"]), 0);
    await sleep(50);
    send(client);
    await sleep(50);
    const next = exchange(front.plainPort, "GET /web/next HTTP/1.1\r\nHost: a\r\n\r\n");
    await sleep(50);
    peer.send(OK);
    await peer.receives("/web/next");
    peer.send(OK);
    expect([(await first).status, (await next).status]).toEqual([200, 200]);
    expect(upstream.received).not.toContain("ghost");
    client.destroy();
  });

  test("a request without content that never ends is a 408, and frees its connection", async () => {
    await start();
    const client = await RawClient.connect(front.securePort);
    client.request(1, request("/web", ["content-length", "0"]), 0);
    const peer = await upstream.connection();
    await peer.receives("\r\n\r\n");
    await pass(1_000);
    expect(await client.outcome(1)).toBe("408");
    await peer.until(({ ended, closed }) => ended || closed);
    client.destroy();
  });

  test("nothing is read of a file for a request that was refused", async () => {
    await start();
    const client = await RawClient.connect(front.securePort);
    const before = tally.filesOpened;
    client.request(
      1,
      request("/files/large.bin").map(([n, v]) => [n, v === "POST" ? "GET" : v] as const),
      0,
    );
    // More than the length: the stream is in error (RFC 9113, 8.1.1).
    client.request(
      3,
      request("/files/large.bin", ["content-length", "1"]).map(
        ([n, v]) => [n, v === "POST" ? "GET" : v] as const,
      ),
      0,
    );
    client.send(Frame.DATA, 0, 3, "xyz");
    await client.next((f) => f.type === Frame.RST_STREAM && f.stream === 3);
    client.send(Frame.RST_STREAM, 0, 1, reset(8));
    await eventually(() => openFiles() === 0 && tally.filesOpened === tally.filesClosed);
    expect(tally.filesOpened - before).toBeLessThanOrEqual(2);
    client.destroy();
  });
});
