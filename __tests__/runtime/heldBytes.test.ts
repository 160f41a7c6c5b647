import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { HeadError } from "../../src/runtime/codec/http1/fields.js";
import { HeadReader } from "../../src/runtime/codec/http1/headReader.js";
import type { Http2Connection } from "../../src/runtime/server/http2Connection.js";
import { ReceiveBuffer } from "../../src/runtime/sockets/receiveBuffer.js";
import { RequestBody } from "../../src/runtime/exchange/requestBody.js";
import { lentBytes, SendPace } from "../../src/runtime/sockets/sendPace.js";
import { UpstreamConnection } from "../../src/runtime/upstream/upstreamConnection.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { openFolder } from "../../testkit/portico.js";
import { eventually, settled } from "../../testkit/waiting.js";
import { randomBody, randomText } from "../../testkit/random.js";

/** Figures of docs/limits.md, counted where the bytes wait: what garbage and V8 add is measured elsewhere. */

const KIB = 1_024;
const MIB = KIB * KIB;
let front: EveryProtocol;
let upstream: RawUpstream;
let script: (peer: Accepted) => void;

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
);

describe.each([
  ["HTTP/1.1", false],
  ["HTTP/1.1 over TLS", true],
])("over %s", (_, secure) => {
  test("a transfer has memory of its own, and an idle connection has none", async () => {
    type Own = { readonly own: Buffer | undefined };
    const sized = jest.spyOn(ReceiveBuffer.prototype, "fit");
    const paced = jest.spyOn(SendPace.prototype, "wrote");
    const large = (): number =>
      [...new Set(sized.mock.contexts as unknown as Own[])].filter(({ own }) => own !== undefined).length;
    const fast = (): boolean => paced.mock.contexts.some((pace) => pace.fast);
    const [length, half] = [10 * MIB, randomText(9 * MIB)];
    script = () => undefined;
    const index = upstream.connections.length;
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    const ask = `POST /web HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 * MIB}\r\n\r\n`;
    const response = `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${half}`;
    client.send(ask).send(randomBody(MIB));
    // That of the client.
    await eventually(() => large() === 1);
    client.send(randomBody(MIB));
    const peer = await upstream.connection(index);
    await eventually(() => peer.received.length >= ask.length - 100 + 2 * MIB);
    peer.send(response);
    await eventually(() => fast() && client.received.length > half.length);
    // That of the upstream, too.
    await eventually(() => large() === 2);
    peer.send(randomBody(length - half.length));
    await eventually(() => client.received.length > length);
    await eventually(() => large() === 0 && !fast());
    // Nor has one that is closed.
    client.send(ask).send(randomBody(2 * MIB));
    await eventually(() => peer.received.length >= 2 * (ask.length - 100 + 2 * MIB));
    peer.send(response);
    await eventually(() => fast());
    client.socket.destroy();
    await eventually(() => !fast());
  });
});

test("what a client has not read yet stays what it was, whatever others read and send meanwhile", async () => {
  const [own, other] = [randomText(10_000), randomText(10_000)];
  const respond = (text: string) => (peer: Accepted) =>
    void peer.send(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10000\r\n\r\n${text}`);
  script = respond(own);
  const session = connectHttp2(front.securePort, { initialWindowSize: 0 });
  const stream = session.request({ ":path": "/web" });
  let [body, over] = ["", false];
  stream.on("data", (chunk: Buffer) => (body += chunk.toString("latin1"))).on("end", () => (over = true));
  await once(stream, "response");
  script = respond(other);
  for (let i = 0; i < 2; i++) {
    const client = await connectTo(front.plainPort);
    client.send("GET /web HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.receives(other);
    client.socket.destroy();
  }
  session.settings({ initialWindowSize: 65_535 });
  await eventually(() => over);
  expect(body).toBe(own);
  session.destroy();
});

test("an idle connection, or one that lingers, keeps nothing of its requests", async () => {
  type Kept = {
    readonly exchange: unknown;
    readonly stash: Buffer | undefined;
    readonly reader: { readonly text: string; readonly bytes: Uint8Array; readonly partial: unknown };
  };
  const { all } = front.http1 as unknown as { all: ReadonlySet<Kept> };
  const nothing = { exchange: undefined, stash: undefined, text: "", bytes: 0, partial: undefined };
  for (const requests of [
    ["GET /none HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["GET /none HTTP/1.1\r\nHo", "st: a\r\n\r\n"],
    ["GET /none HTTP/1.1\r\nHo", "st : a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["POST /web HTTP/1.0\r\nContent-Length: 3\r\n\r\nabcGET /none"],
  ]) {
    script = (peer) => peer.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    const before = new Set(all);
    const client = await connectTo(front.plainPort);
    for (const bytes of requests) {
      client.send(bytes);
      await settled(() => all.size);
    }
    await client.receives("\r\n\r\n");
    const [kept] = [...all].filter((one) => !before.has(one)) as [Kept];
    const { exchange, stash, reader } = kept;
    expect({
      exchange,
      stash,
      text: reader.text,
      bytes: reader.bytes.length,
      partial: reader.partial,
    }).toEqual(nothing);
    client.socket.destroy();
  }
});

test("over HTTP/2 an idle connection has no memory on loan, and has it again with the next response", async () => {
  const { wrote } = SendPace.prototype;
  let lent = 0;
  const paced = jest.spyOn(SendPace.prototype, "wrote").mockImplementation(function (
    this: SendPace,
    ...args
  ) {
    wrote.apply(this, args);
    if (this.fast) lent++;
  });
  const length = 12 * MIB;
  const head = `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`;
  script = (peer) => peer.send(head).send(Buffer.alloc(length));
  const session = connectHttp2(front.securePort, { initialWindowSize: 2 ** 31 - 1 });
  session.on("connect", () => session.setLocalWindowSize(2 ** 31 - 1));
  for (let i = 0; i < 2; i++) {
    lent = 0;
    const stream = session.request({ ":path": "/web" });
    let [bytes, over] = [0, false];
    stream.on("data", (chunk: Buffer) => (bytes += chunk.length)).on("end", () => (over = true));
    await eventually(() => over);
    session.ping(() => undefined);
    await settled(() => paced.mock.calls.length);
    expect([bytes, lent > 0, paced.mock.contexts.at(-1)!.fast]).toEqual([length, true, false]);
  }
  session.destroy();
});

test.each([
  ["TLS", 2, undefined, 0, 2 * MIB],
  ["no TLS", 1, undefined, 0, MIB],
  ["TLS, and a trial", 2, 512 * KIB, 512 * KIB, 2 * MIB],
] as const)("a client that reads has on loan, with %s", (_, copies, trial, first, large) => {
  const pace = new SendPace(16 * KIB, copies, trial);
  const before = lentBytes();
  const lentAfter = (bytes: number): number => {
    pace.wrote(bytes, false);
    return lentBytes() - before;
  };
  expect([lentAfter(127 * KIB), lentAfter(KIB), lentAfter(7 * MIB), lentAfter(MIB)]).toEqual([
    0,
    first,
    first,
    large,
  ]);
  pace.rest();
  expect(lentBytes()).toBe(before);
  // What waits to be written is in memory until it has left, or its connection is closed.
  for (const end of [() => pace.written(), () => pace.close()]) {
    pace.begin();
    expect(lentAfter(8 * MIB)).toBe(large);
    pace.wrote(MIB, true);
    pace.rest();
    expect(lentBytes() - before).toBe(large);
    end();
    expect(lentBytes()).toBe(before);
  }
});

test.each([
  ["32 MiB for clients that read", undefined, 8 * MIB, 32, MIB],
  ["4 MiB for trials", 512 * KIB, 128 * KIB, 8, 512 * KIB],
] as const)("a worker lends %s, and the rest go on with what they have", (_, trial, taken, most, each) => {
  const before = lentBytes();
  const paces = Array.from({ length: most + 2 }, () => new SendPace(16 * KIB, 1, trial));
  for (const pace of paces) pace.wrote(taken, false);
  expect(lentBytes() - before).toBe(most * each);
  const lent = paces.map(({ fast, onTrial }) => fast || onTrial);
  expect(lent).toEqual(paces.map((_pace, i) => i < most));
  expect(paces.map(({ pieceBytesMax }) => pieceBytesMax)).toEqual(
    lent.map((has) => (has && trial === undefined ? MIB : 16 * KIB)),
  );
  // What one gives back is another's.
  paces[0]!.rest();
  paces[most]!.wrote(1, false);
  expect([paces[most]!.fast || paces[most]!.onTrial, lentBytes() - before]).toEqual([true, most * each]);
  for (const pace of paces) pace.close();
  expect(lentBytes()).toBe(before);
});

const STREAMS = 64;
test.each([
  ["a file", "/files/file", 32 * KIB],
  ["a chunked response", "/web", 64 * KIB],
])("each stream that is not read: %s", async (_, path, limit) => {
  const chunk = randomText(256 * KIB);
  script = (peer) =>
    peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`40000\r\n${chunk}\r\n`.repeat(4)}`);
  const session = connectHttp2(front.securePort, { initialWindowSize: 0 });
  session.on("error", () => undefined);
  for (let i = 0; i < STREAMS; i++) session.request({ ":path": path }).on("error", () => undefined);
  const { all } = front.http2 as unknown as { all: ReadonlySet<Http2Connection> };
  const held = (): number[] =>
    [...all].flatMap(({ streams }) =>
      [...streams.open.values()].map(({ waiting }) => waiting.reduce((sum, { length }) => sum + length, 0)),
    );
  await eventually(() => held().filter((bytes) => bytes > 0).length === STREAMS);
  await settled(() => held().reduce((sum, bytes) => sum + bytes, 0));
  const most = Math.max(...held());
  session.destroy();
  expect(most).toBeLessThanOrEqual(limit);
});

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
      const field = Buffer.from("x".repeat(sizes[i] ?? sizes.at(-1)!));
      reader.read(field, 0);
      fed += field.length;
      most = Math.max(most, held());
    }
  }).toThrow(HeadError);
  expect(fed).toBeLessThan(HEAD_BYTES_MAX);
  expect(Math.max(most, held())).toBeLessThanOrEqual(4 * HEAD_BYTES_MAX + 16);
});
