import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { HeadError } from "../../src/runtime/http1/fields.js";
import { HeadReader } from "../../src/runtime/http1/headReader.js";
import type { Http2Connection } from "../../src/runtime/http2/connection.js";
import { RequestBody } from "../../src/runtime/exchange/requestBody.js";
import { UpstreamConnection } from "../../src/runtime/upstream/connection.js";
import { type EveryProtocol, startEveryProtocol } from "../../proof/kit/everyProtocol.js";
import { connectHttp2 } from "../../proof/kit/http2Server.js";
import { connectTo, RawUpstream } from "../../proof/kit/peers.js";
import { openFolder } from "../../proof/kit/portico.js";
import { eventually, settled } from "../../proof/kit/waiting.js";

/** Figures of docs/limits.md, counted where the bytes wait: what garbage and V8 add is measured elsewhere. */

const KIB = 1_024;
const MIB = KIB * KIB;
let front: EveryProtocol;
let upstream: RawUpstream;
let script: (peer: { send(text: string): unknown }) => void;

beforeAll(async () => {
  const folder = openFolder();
  writeFileSync(join(folder, "file"), Buffer.alloc(MIB));
  upstream = await new RawUpstream((peer) => peer.socket.once("data", () => script(peer))).listen();
  front = await startEveryProtocol({
    routes: [
      { name: "files", path: "/files/", action: { type: "staticFiles", directory: folder } },
      { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});

const LENGTH = 64 * MIB;
const UPLOADS: Readonly<Record<string, [limit: number, send: (body: Buffer) => Promise<() => void>]>> = {
  "HTTP/1.1": [MIB, (body) => uploadHttp1(false, body)],
  "HTTP/1.1 over TLS": [MIB, (body) => uploadHttp1(true, body)],
  // What fits the window, and one write that was gathered before anybody knew that it would wait.
  "HTTP/2": [4.5 * MIB, uploadHttp2],
};

async function uploadHttp1(secure: boolean, body: Buffer): Promise<() => void> {
  const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
  client.send(`POST /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${LENGTH}\r\n\r\n`).send(body);
  return () => client.socket.destroy();
}

async function uploadHttp2(body: Buffer): Promise<() => void> {
  const session = connectHttp2(front.securePort);
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": "/web", "content-length": String(LENGTH) });
  stream.on("error", () => undefined);
  for (let at = 0; at < body.length; at += MIB) stream.write(body.subarray(at, at + MIB));
  return () => session.destroy();
}

test.each(Object.entries(UPLOADS))(
  "an upload that the upstream does not take: %s",
  async (_, [limit, send]) => {
    const written = jest.spyOn(UpstreamConnection.prototype, "onWrite");
    const bodies = jest.spyOn(RequestBody.prototype, "data");
    script = () => upstream.connections.at(-1)!.socket.pause();
    const close = await send(Buffer.alloc(LENGTH - 1));
    await eventually(() => written.mock.contexts.length > 0);
    const { socket } = written.mock.contexts.at(-1) as unknown as { socket: { writableLength: number } };
    const waiting = (): number =>
      (bodies.mock.contexts.at(-1) as unknown as { waiting?: { bytes: number } } | undefined)?.waiting
        ?.bytes ?? 0;
    await settled(() => socket.writableLength + waiting() + bodies.mock.calls.length);
    const held = socket.writableLength + waiting();
    close();
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThanOrEqual(limit);
  },
  30_000,
);

const STREAMS = 64;
test.each([
  ["a file", "/files/file", 32 * KIB],
  ["a chunked answer", "/web", 64 * KIB],
])(
  "each stream that is not read: %s",
  async (_, path, limit) => {
    const chunk = "a".repeat(256 * KIB);
    script = (peer) =>
      peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`40000\r\n${chunk}\r\n`.repeat(4)}`);
    const session = connectHttp2(front.securePort, { initialWindowSize: 0 });
    session.on("error", () => undefined);
    for (let i = 0; i < STREAMS; i++) session.request({ ":path": path }).on("error", () => undefined);
    const { all } = front.http2 as unknown as { all: ReadonlySet<Http2Connection> };
    const held = (): number[] =>
      [...all].flatMap(({ streams }) =>
        [...streams.values()].map(({ waiting }) => waiting.reduce((sum, { length }) => sum + length, 0)),
      );
    await eventually(() => held().filter((bytes) => bytes > 0).length === STREAMS);
    await settled(() => held().reduce((sum, bytes) => sum + bytes, 0));
    const most = Math.max(...held());
    session.destroy();
    expect(most).toBeLessThanOrEqual(limit);
  },
  30_000,
);

const HEAD_BYTES_MAX = 32_768;
test.each([
  ["a byte at a time", [1]],
  ["1,000 bytes at a time", [1_000]],
  ["in a large piece", [65_536]],
  ["in a large piece behind nearly all that may come", [HEAD_BYTES_MAX - 100, 65_536]],
])("an endless head that comes %s is held four times at most", (_, sizes) => {
  const reader = new HeadReader(HEAD_BYTES_MAX, HEAD_BYTES_MAX);
  const held = (): number => (reader as unknown as { partial: Buffer }).partial.length;
  reader.read(Buffer.from("GET / HTTP/1.1\r\nX: "), 0);
  let fed = 0;
  let most = 0;
  expect(() => {
    for (let i = 0; fed < 4 * HEAD_BYTES_MAX; i++) {
      const piece = Buffer.alloc(sizes[i] ?? sizes.at(-1)!, "x");
      reader.read(piece, 0);
      fed += piece.length;
      most = Math.max(most, held());
    }
  }).toThrow(HeadError);
  expect(fed).toBeLessThan(HEAD_BYTES_MAX);
  expect(Math.max(most, held())).toBeLessThanOrEqual(4 * HEAD_BYTES_MAX + 16);
});
