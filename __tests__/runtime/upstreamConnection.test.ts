import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { UpstreamConfig } from "../../src/model/index.js";
import { coarseNow, sweepRegularly } from "../../src/runtime/sockets/deadlines.js";
import { Faults } from "../../src/runtime/exchange/workerContext.js";
import type { ParsedResponse } from "../../src/runtime/codec/http1/responseHead.js";
import type { AnswerReader, UpstreamFailure } from "../../src/runtime/upstream/answerReader.js";
import { UpstreamConnection } from "../../src/runtime/upstream/upstreamConnection.js";
import { UpstreamPool } from "../../src/runtime/upstream/pool.js";
import { fakeRoute } from "../../proof/kit/fakeExchange.js";
import { Accepted } from "../../proof/kit/peers.js";
import { eventually as waited } from "../../proof/kit/waiting.js";

/** One connection to an upstream, and the pool that it belongs to, by what their users see. */

let server: Server;
let config: UpstreamConfig;
let stopSweeping: () => void;
let peers: Accepted[];

beforeAll(async () => {
  stopSweeping = sweepRegularly({ sweep: () => undefined, onFault: () => undefined });
  server = createServer({ allowHalfOpen: true }, (socket) => peers.push(new Accepted(socket)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  config = {
    name: "web",
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connectTimeoutMs: 5_000,
    sendTimeoutMs: 20_000,
    readTimeoutMs: 10_000,
    connectionsMax: 3,
    queuedRequestsMax: 2,
    clientSharePercent: 100,
    queueTimeoutMs: 7_000,
    idleConnectionsMax: 3,
    idleTimeoutMs: 30_000,
    headBytesMax: 32_768,
  };
});
beforeEach(() => (peers = []));
afterEach(() => {
  for (const { socket } of peers) socket.destroy();
});
afterAll(async () => {
  stopSweeping();
  server.close();
  await once(server, "close");
});

/** Notes what it is given. */
class Reader implements AnswerReader {
  readonly wantsList = false;
  readonly pieceBytesMax = 65_536;
  readonly seen: unknown[] = [];
  body = "";
  takes = true;
  drained = false;
  /** Called with every piece. */
  onPiece = (): void => undefined;
  onInformational({ status }: ParsedResponse): void {
    this.seen.push(status);
  }
  onAnswerHead({ status }: ParsedResponse): void {
    this.seen.push(status);
  }
  onAnswerData(chunk: Buffer): boolean {
    this.body += chunk.toString("latin1");
    this.onPiece();
    return this.takes;
  }
  onAnswerPause(): void {
    this.seen.push("pause");
  }
  onAnswerEnd(): void {
    this.seen.push("end");
  }
  onAnswerError(failure: UpstreamFailure): void {
    this.seen.push(failure);
  }
  onRequestStall(): void {
    this.seen.push("stall");
  }
  /** When it comes depends on how Node writes. */
  onRequestDrain(): void {
    this.drained = true;
  }
  onFault(error: unknown): void {
    this.seen.push(error);
  }
}

/** Keeps a connection after its answer, or does not. */
class Owner {
  keeps = true;
  readonly calls: string[] = [];
  readonly faults = new Faults(fakeRoute({}, []).errorLog);
  readonly lookup = undefined;
  idle(): boolean {
    this.calls.push("idle");
    return this.keeps;
  }
  onStrayBytes(): void {
    this.calls.push("stray");
  }
  closed(): void {
    this.calls.push("closed");
  }
}

interface Opened {
  readonly connection: UpstreamConnection;
  readonly owner: Owner;
  readonly peer: Accepted;
  /** Sends a request without a body, and its end unless there is more of it. */
  ask(reader: Reader, length?: number): void;
}

async function open(more: Partial<UpstreamConfig> = {}): Promise<Opened> {
  const owner = new Owner();
  const { port } = server.address() as AddressInfo;
  const connection = new UpstreamConnection({ ...config, ...more }, { host: "127.0.0.1", port }, owner);
  const ask = (reader: Reader, length = 0): void => {
    connection.request.framing.beginRequest(length, false, false);
    connection.begin(reader, "GET", "GET / HTTP/1.1\r\n\r\n");
    if (length === 0) connection.finish();
    else connection.request.flush();
  };
  await eventually(() => peers.length > 0);
  await turn();
  return { connection, owner, peer: peers.at(-1)!, ask };
}

const eventually = (holds: () => boolean) => waited(holds);
const turn = (): Promise<void> => new Promise(setImmediate);
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const failure = (status: number, message: string, answered: boolean): UpstreamFailure =>
  ({ status, message, answered, unsent: false }) as UpstreamFailure;
/** Whether it is given up once so much time has passed. */
function givenUpAfter({ connection }: Opened, ms: number): boolean {
  connection.sweep(coarseNow() + ms);
  return !connection.usable;
}
const LARGE = Buffer.alloc(16 << 20, "x");

describe("the body of an answer", () => {
  test.each([
    ["by length, the whole read", ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "abc"]],
    [
      "in chunks, each with its frame",
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n"],
    ],
    [
      "in chunks that are cut",
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na", "bc\r\n0\r\n\r\n"],
    ],
    [
      "in chunks that begin a byte later",
      ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r", "\nabc", "\r\n0\r\n\r\n"],
    ],
    ["of one byte", ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", "a"]],
  ])("comes as it is: %s", async (_what, pieces) => {
    const opened = await open();
    const reader = new Reader();
    opened.ask(reader);
    await opened.peer.receives("\r\n\r\n");
    for (const piece of pieces) {
      opened.peer.send(piece);
      await new Promise((done) => setTimeout(done, 10));
    }
    await eventually(() => reader.seen.includes("end"));
    expect(["abc", "a"]).toContain(reader.body);
    expect(reader.body.length).toBe(pieces.join("").includes("Length: 1") ? 1 : 3);
    expect([opened.owner.calls, opened.connection.usable]).toEqual([["idle"], true]);
    opened.connection.destroy();
  });

  test("is not delivered to a reader that has given up, nor is anything after it", async () => {
    for (const answer of [
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n" + `1000\r\n${"b".repeat(4_096)}\r\n`,
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
      "HTTP/1.1 200 OK\r\n\r\na",
    ]) {
      const opened = await open();
      const reader = new Reader();
      reader.onPiece = () => opened.connection.destroy();
      opened.ask(reader);
      await opened.peer.receives("\r\n\r\n");
      opened.peer.send(answer).socket.end();
      await eventually(() => opened.owner.calls.includes("closed"));
      expect([reader.seen, reader.body, opened.owner.calls]).toEqual([[200], "a", ["closed"]]);
      expect(opened.owner.faults.count).toBe(0);
    }
  });

  test("is not read on while its reader has given up at an informational answer", async () => {
    const opened = await open();
    const reader = new Reader();
    reader.onInformational = () => opened.connection.destroy();
    opened.ask(reader);
    await opened.peer.receives("\r\n\r\n");
    opened.peer.send(`HTTP/1.1 103 Early Hints\r\n\r\n${OK}`);
    await eventually(() => opened.owner.calls.includes("closed"));
    expect([reader.seen, opened.owner.faults.count]).toEqual([[], 0]);
  });
});

describe("a connection is used again", () => {
  test.each<[what: string, answer: string, length: number, again: boolean]>([
    ["after a whole answer", OK, 0, true],
    ["unless it says that it closes", OK.replace("OK\r\n", "OK\r\nConnection: close\r\n"), 0, false],
    ["unless more comes", `${OK}x`, 0, false],
    ["unless the request is not complete", OK, 5, false],
  ])("%s", async (_what, answer, length, again) => {
    const opened = await open();
    const { connection, owner, peer } = opened;
    const reader = new Reader();
    opened.ask(reader, length);
    await peer.receives("\r\n\r\n");
    peer.send(answer);
    await eventually(() => reader.seen.includes("end"));
    expect([owner.calls.includes("idle"), connection.usable, connection.reused]).toEqual(
      Array(3).fill(again),
    );
    connection.destroy();
  });

  test("if whom it belongs to keeps it, and until it was idle for too long", async () => {
    for (const keeps of [true, false]) {
      const opened = await open();
      opened.owner.keeps = keeps;
      const reader = new Reader();
      opened.ask(reader);
      await opened.peer.receives("\r\n\r\n");
      opened.peer.send(OK);
      await eventually(() => reader.seen.includes("end"));
      expect(opened.connection.usable).toBe(keeps);
      if (!keeps) continue;
      // Its client may still be reading.
      opened.connection.resume();
      expect([givenUpAfter(opened, 29_500), givenUpAfter(opened, 30_500)]).toEqual([false, true]);
      expect(reader.seen).toEqual([200, "end"]);
    }
  });

  test("after its reader had paused it with the last piece", async () => {
    const opened = await open();
    const [first, second] = [new Reader(), new Reader()];
    first.takes = false;
    opened.ask(first);
    await opened.peer.receives("\r\n\r\n");
    opened.peer.send(OK);
    await eventually(() => first.seen.includes("end"));
    opened.peer.received = "";
    opened.ask(second);
    await opened.peer.receives("\r\n\r\n");
    opened.peer.send(OK);
    await eventually(() => second.seen.includes("end"));
    expect([first.body, second.body]).toEqual(["ok", "ok"]);
    opened.connection.destroy();
  });

  test("but not after bytes that nobody asked for", async () => {
    const opened = await open();
    opened.peer.send("HTTP/1.1 408 Request Timeout\r\n\r\n");
    await eventually(() => opened.owner.calls.includes("closed"));
    expect(opened.connection.usable).toBe(false);
  });
});

describe("deadlines", () => {
  test.each<[what: string, ms: number, message: string]>([
    ["to send", 20_000, "upstream timed out while sending request to upstream"],
    ["to read", 10_000, "upstream timed out while reading answer from upstream"],
    ["to read, after a body", 10_000, "upstream timed out while reading answer from upstream"],
  ])("%s run by themselves", async (what, ms, message) => {
    const opened = await open();
    const reader = new Reader();
    if (what === "to send") {
      opened.peer.socket.pause();
      opened.ask(reader, LARGE.length);
      await opened.peer.socket.once("readable", () => undefined);
      await turn();
      expect(opened.connection.request.body(LARGE, false)).toBe(false);
      opened.connection.finish();
    } else {
      opened.ask(reader, what === "to read" ? 0 : 4);
      if (what !== "to read") {
        expect(opened.connection.request.body(Buffer.from("body"), false)).toBe(true);
        opened.connection.finish();
      }
      await opened.peer.receives(/\r\n\r\n(?:body)?$/);
    }
    expect(givenUpAfter(opened, ms / 2)).toBe(false);
    expect(reader.seen).toEqual([]);
    expect(givenUpAfter(opened, ms + 500)).toBe(true);
    expect(reader.seen).toEqual([failure(504, message, false)]);
  });

  test("to read begin once the request was written, and not before its end", async () => {
    for (const whole of [true, false]) {
      const opened = await open();
      const reader = new Reader();
      opened.ask(reader, LARGE.length + (whole ? 0 : 1));
      await turn();
      opened.peer.socket.pause();
      expect(opened.connection.request.body(LARGE, false)).toBe(false);
      if (whole) opened.connection.finish();
      expect(givenUpAfter(opened, 10_000)).toBe(false);
      opened.peer.socket.resume();
      await eventually(() => reader.drained && !opened.connection.request.pending);
      expect(givenUpAfter(opened, 5_000)).toBe(false);
      expect([givenUpAfter(opened, 25_000), reader.seen.length]).toEqual([whole, whole ? 1 : 0]);
      opened.connection.destroy();
    }
  });

  test("to read begin once the request was written, where its answer has begun before", async () => {
    const opened = await open();
    const { connection, peer } = opened;
    const reader = new Reader();
    opened.ask(reader, LARGE.length);
    await peer.receives("\r\n\r\n");
    peer.socket.pause();
    expect(connection.request.body(LARGE, false)).toBe(false);
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na");
    await eventually(() => reader.body === "a");
    connection.finish();
    expect(givenUpAfter(opened, 10_000)).toBe(false);
    peer.socket.resume();
    await eventually(() => reader.drained && !connection.request.pending);
    expect([givenUpAfter(opened, 5_000), givenUpAfter(opened, 10_500)]).toEqual([false, true]);
  });

  test("to read run from every byte, but not while the request is sent, nor while its reader waits", async () => {
    const opened = await open();
    const { connection, peer } = opened;
    const reader = new Reader();
    opened.ask(reader, 5);
    await peer.receives("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na");
    await eventually(() => reader.body === "a");
    expect(givenUpAfter(opened, 60_000)).toBe(false);
    connection.pause();
    connection.request.body(Buffer.from("hello"), false);
    connection.finish();
    expect(givenUpAfter(opened, 60_000)).toBe(false);
    connection.resume();
    expect(givenUpAfter(opened, 5_000)).toBe(false);
    peer.send("b");
    await eventually(() => reader.body === "ab");
    reader.takes = false;
    peer.send("c");
    await eventually(() => reader.body === "abc");
    peer.send("d");
    expect(givenUpAfter(opened, 60_000)).toBe(false);
    expect(reader.body).toBe("abc");
    reader.takes = true;
    connection.resume();
    await eventually(() => reader.body === "abcd");
    expect(givenUpAfter(opened, 5_000)).toBe(false);
    expect(givenUpAfter(opened, 10_500)).toBe(true);
    expect(reader.seen.at(-1)).toEqual(
      failure(504, "upstream timed out while reading answer from upstream", true),
    );
  });

  test.each([
    [10_000, 1_000],
    [400, 400],
  ])("after a write that failed the answer is waited for a second, or %i ms", async (readTimeoutMs, ms) => {
    const opened = await open({ readTimeoutMs, sendTimeoutMs: 200 });
    const reader = new Reader();
    opened.ask(reader, LARGE.length);
    await opened.peer.receives("\r\n\r\n");
    const { socket } = opened.connection as unknown as { socket: Socket };
    const error = Object.assign(new Error("write EPIPE"), { syscall: "write", code: "EPIPE" });
    opened.peer.socket.pause();
    opened.connection.request.body(LARGE, false);
    socket.emit("error", error);
    expect(givenUpAfter(opened, ms - 100)).toBe(false);
    expect(givenUpAfter(opened, ms + 300)).toBe(true);
    expect(reader.seen).toEqual([
      failure(504, "upstream timed out while reading answer from upstream", false),
    ]);
  });
});

test.each([true, false])("an exception is reported to who waits for an answer: %j", async (waits) => {
  const opened = await open();
  const reader = new Reader();
  if (waits) opened.ask(reader);
  const fault = new Error("of the reader");
  opened.connection.onFault(fault);
  expect([reader.seen, opened.owner.faults.count]).toEqual(waits ? [[fault], 0] : [[], 1]);
  expect(opened.connection.usable).toBe(false);
});

test("a connection that is gone without an end is reported to who waits, and to nobody else", async () => {
  for (const waits of [true, false]) {
    const opened = await open();
    const reader = new Reader();
    if (waits) opened.ask(reader);
    (opened.connection as unknown as { socket: Socket }).socket.destroy();
    await eventually(() => opened.owner.calls.includes("closed"));
    const message = "upstream closed connection while reading response header from upstream";
    const expected = failure(502, message, false);
    expect(reader.seen).toEqual(waits ? [{ ...expected, unsent: true }] : []);
  }
});

test("the end of a tunnel is reported once", async () => {
  const opened = await open();
  const { connection, peer, owner } = opened;
  const reader = new Reader();
  connection.request.framing.beginRequest(0, false, true);
  connection.begin(reader, "GET", "GET / HTTP/1.1\r\n\r\n");
  connection.finish();
  await peer.receives("\r\n\r\n");
  peer.send("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello").socket.end();
  await eventually(() => owner.calls.includes("closed"));
  expect([reader.seen, reader.body]).toEqual([[101, "pause", "end"], "hello"]);
});

test("a pool uses a connection by name for ten seconds, and one by address for longer", async () => {
  for (const [url, reused] of [
    [config.url.replace("127.0.0.1", "localhost"), false],
    [config.url, true],
  ] as const) {
    const pool = new UpstreamPool(
      { ...config, url },
      new Faults(fakeRoute({}, []).errorLog),
      () => undefined,
    );
    const now = coarseNow();
    const connection = { openedAt: now - 9_999 } as UpstreamConnection;
    const older = { openedAt: now - 10_000 } as UpstreamConnection;
    expect([pool.idle(connection), pool.idle(older)]).toEqual([true, reused]);
    // These are none, and have nothing to close.
    (pool as unknown as { idleConnections: unknown[] }).idleConnections.length = 0;
    pool.close();
  }
});
