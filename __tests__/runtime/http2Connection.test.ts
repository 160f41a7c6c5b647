import { once } from "node:events";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange } from "../../src/runtime/exchange/exchange.js";
import { FLOODS } from "../../testkit/cases/floods.js";
import { pass } from "../../testkit/clock.js";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  GET,
  hpack,
  describeFrame,
  RawClient,
  cancel,
} from "../../testkit/http2RawClient.js";
import {
  ask,
  connectHttp2,
  CountingHolder,
  type Http2Server,
  type Http2ServerOptions,
  KeepingSink,
  respond,
  startHttp2Server,
} from "../../testkit/http2Server.js";
import { eventually, settled } from "../../testkit/waiting.js";
import { randomBody, randomText } from "../../testkit/random.js";

/** Flow control, timers, tunnels and the limits of a connection. */

const MiB = 1024 * 1024;

/** The one that a test talks to. */
let server: Http2Server;
let patient: Http2Server;
/** Its timeouts pass soon, on a busy machine also where a test does not want them to. */
let hurried: Http2Server;
let client: RawClient;
let last: Exchange;
let handler: (exchange: Exchange) => void;

beforeAll(async () => {
  const start = (
    route: Http2ServerOptions["route"],
    timeouts: { readonly keepAliveMs?: number; readonly requestHeadMs?: number },
  ): Promise<Http2Server> =>
    startHttp2Server({
      actions: {
        "/": (exchange) => {
          last = exchange;
          handler(exchange);
        },
      },
      route,
      config: { limits: { concurrentStreamsMax: 10, streamResetsPerSecondMax: 20 }, timeouts },
    });
  patient = await start({}, {});
  hurried = await start(
    { requestBodyTimeoutMs: 600, sendTimeoutMs: 600 },
    { keepAliveMs: 1_500, requestHeadMs: 1_500 },
  );
});
beforeEach(() => talkTo(patient));
afterEach(() => client.destroy());
afterAll(() => Promise.all([patient.close(), hurried.close()]));

async function talkTo(to: Http2Server): Promise<void> {
  server = to;
  handler = (exchange) => respond(exchange, 200);
  client = await RawClient.connect(server.port);
  // The client acknowledges the server's settings; from then on they hold.
  await client.next((f) => f.type === Frame.SETTINGS && f.flags === 0);
}

/** For a test of timeouts. */
async function inAHurry(): Promise<void> {
  client.destroy();
  await talkTo(hurried);
}

const later = (ms: number): Promise<void> => sleep(ms);

function put(stream: number, flags = 0, fields: readonly (readonly [string, string])[] = []): void {
  const pseudo = GET.map(([name, value]) => [name, name === ":method" ? "PUT" : value] as const);
  client.request(stream, [...pseudo, ...fields], flags);
}

function sendBody(stream: number, bytes: number, flags = 0): void {
  const piece = Buffer.alloc(16_384);
  for (let sent = 0; sent < bytes; sent += piece.length)
    client.send(Frame.DATA, sent + piece.length >= bytes ? flags : 0, stream, piece);
}

const credit = (stream: number): number =>
  client.frames
    .filter((f) => f.type === Frame.WINDOW_UPDATE && f.stream === stream)
    .reduce((sum, f) => sum + f.payload.readUInt32BE(0), 0);

/** SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113, 6.5.2), up to 65,535. */
const initialWindow = (bytes: number): Buffer => Buffer.from([0, 4, 0, 0, bytes >> 8, bytes & 0xff]);

describe("settings", () => {
  test("offer the smallest window to unread bodies, bounded streams and heads, and extended CONNECT", async () => {
    const session = connectHttp2(server.port);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    expect(session.remoteSettings).toMatchObject({
      initialWindowSize: 65_535,
      maxConcurrentStreams: 10,
      maxHeaderListSize: 32_768 + 200 * 32,
      enableConnectProtocol: true,
    });
    session.destroy();
    await client.next((f) => f.type === Frame.WINDOW_UPDATE);
    expect(credit(0)).toBe(MiB / 2 - 65_535);
  });

  test.each([0, 64, 4_096])("a client with a table for %i bytes of fields reads all heads", async (bytes) => {
    handler = (exchange) => {
      exchange.sendHead(200, "OK", ["x-long", "y".repeat(40), "x-short", "z"], 0);
      exchange.end();
    };
    const session = connectHttp2(server.port, { headerTableSize: bytes });
    for (let i = 0; i < 3; i++)
      expect((await ask(session, { ":path": "/" })).headers).toMatchObject({
        "x-short": "z",
        ":status": 200,
      });
    session.destroy();
  });

  test("limit streams: those beyond are refused, and the client can send them again", async () => {
    handler = () => undefined;
    for (let i = 0; i < 11; i++) client.request(1 + 2 * i, GET);
    expect(await client.outcome(21)).toBe("RST REFUSED_STREAM");
    respond(last, 200);
    expect(await client.outcome(19)).toBe("200");
    handler = (exchange) => respond(exchange, 200);
    client.request(23, GET);
    expect(await client.outcome(23)).toBe("200");
  });

  test("limit streams that are open: those that the client gave up are not", async () => {
    let open = 0;
    handler = () => void open++;
    for (let i = 0; i < 10; i++) client.request(1 + 2 * i, GET);
    await eventually(() => open === 10);
    for (let i = 0; i < 10; i++) client.socket.write(cancel(1 + 2 * i));
    handler = (exchange) => respond(exchange, 200);
    client.request(21, GET);
    expect(await client.outcome(21)).toBe("200");
  });
});

describe("a request body", () => {
  test("is not read beyond the stream's window while its sink is paused", async () => {
    const sink = new KeepingSink();
    sink.more = false;
    handler = (exchange) => sink.read(exchange);
    put(1);
    sendBody(1, 4 * MiB);
    // The window opened when the sink was attached, and no further.
    await eventually(() => credit(1) > 0);
    await later(300);
    expect(sink.body.length).toBeLessThanOrEqual(16_384);
    expect(credit(1)).toBe(4 * MiB - 65_535);
    sink.more = true;
    last.resumeBody();
    await eventually(() => sink.body.length === 4 * MiB);
    await client.next((f) => f.type === Frame.WINDOW_UPDATE && f.stream === 1);
    client.send(Frame.DATA, END_STREAM, 1, "end");
    await eventually(() => sink.ended);
    respond(last, 200);
    expect(await client.outcome(1)).toBe("200");
  });

  test.each([0, 1, 200])("is given back to the window with its padding: %i bytes", async (padding) => {
    const sink = new KeepingSink();
    handler = (exchange) => sink.read(exchange);
    put(1);
    const piece = Buffer.alloc(16_384);
    piece[0] = padding;
    // A quarter of the window, which is when a client is told.
    for (let sent = 0; sent < MiB; sent += piece.length) client.send(Frame.DATA, 8, 1, piece);
    await client.next((f) => f.type === Frame.WINDOW_UPDATE && f.payload.readUInt32BE(0) === MiB);
    expect([sink.body.length, credit(1)]).toEqual([MiB - 64 * (padding + 1), 5 * MiB - 65_535]);
  });

  test("of one stream does not delay those of others", async () => {
    const stuck = new KeepingSink();
    stuck.more = false;
    handler = (exchange) => stuck.read(exchange);
    for (const stream of [1, 3, 5]) put(stream);
    for (const stream of [1, 3, 5]) sendBody(stream, 4 * MiB);
    handler = (exchange) => {
      const sink = new KeepingSink();
      sink.onDone = () => respond(exchange, 200, String(sink.body.length));
      sink.read(exchange);
    };
    put(9);
    sendBody(9, MiB, END_STREAM);
    expect(await client.outcome(9)).toBe("200");
  });

  test("beyond the window of the connection ends it: a client cannot make it keep more", async () => {
    handler = (exchange) => {
      const stuck = new KeepingSink();
      stuck.more = false;
      stuck.read(exchange);
    };
    for (const stream of [1, 3, 5, 7, 9]) put(stream);
    // A first frame each: from then on it is the sink that is waited for, and no deadline runs.
    for (const stream of [1, 3, 5, 7, 9]) sendBody(stream, 16_384);
    for (const stream of [1, 3, 5, 7, 9]) sendBody(stream, 4 * MiB - 16_384);
    const end = await client.next((f) => f.type === Frame.GOAWAY);
    expect(end!.payload.readUInt32BE(4)).toBe(3);
    expect(await server.errorLog()).toContain("DATA beyond the connection's window");
  });

  test("beyond what a worker lends ends its connection, and is lent again once that is closed", async () => {
    const small = await startHttp2Server({
      actions: { "/": (exchange) => handler(exchange) },
      config: { limits: { connectionsMax: 4 } },
    });
    handler = (exchange) => {
      const stuck = new KeepingSink();
      stuck.more = false;
      exchange.readBody(stuck);
    };
    client.destroy();
    client = await RawClient.connect(small.port);
    put(1);
    sendBody(1, 2 * MiB - 16_384);
    await eventually(() => credit(0) === 2.5 * MiB - 65_535);
    const other = await RawClient.connect(small.port);
    const stuck = [client, other] as const;
    client = other;
    put(1);
    // All of what is lent is with the other one.
    sendBody(1, 2 * MiB);
    const end = await other.next((f) => f.type === Frame.GOAWAY);
    expect([end!.payload.readUInt32BE(4), credit(0)]).toEqual([3, 0.5 * MiB - 65_535]);
    for (const one of stuck) one.destroy();
    await eventually(async () => {
      client = await RawClient.connect(small.port);
      put(1);
      sendBody(1, 2 * MiB - 16_384);
      await later(50);
      const lent = credit(0) === 2.5 * MiB - 65_535;
      client.destroy();
      return lent;
    });
    await small.close();
  });

  // A worker lends half a mebibyte for each connection that it may have; 15.5 MiB make the largest window.
  test.each([
    [62, 16_383, 0.5],
    [62, 16_384, 16],
    [61, 16_384, 0.5],
    [61, 131_071, 0.5],
    [61, 131_072, 2],
  ])(
    "of %i connections at most, one that sent %i bytes has a window of %d MiB",
    async (most, bytes, mebibytes) => {
      const lending = await startHttp2Server({
        actions: { "/": (exchange) => exchange.readBody(Object.assign(new KeepingSink(), { more: false })) },
        config: { limits: { connectionsMax: most } },
      });
      client.destroy();
      client = await RawClient.connect(lending.port);
      put(1);
      for (let left = bytes; left > 0; left -= 16_384)
        client.send(Frame.DATA, 0, 1, Buffer.alloc(Math.min(left, 16_384)));
      client.send(Frame.PING, 0, 0, "received");
      await client.next((f) => f.type === Frame.PING && (f.flags & ACK) !== 0);
      const window = credit(0) + 65_535;
      client.destroy();
      await lending.close();
      expect(window).toBe(mebibytes * MiB);
    },
  );

  test.each([
    ["4 MiB where it is read", 5 * MiB, true],
    ["64 KiB where it is not", 81_920, false],
  ])("beyond the window of its stream is reset: %s", async (_what, bytes, reads) => {
    const stuck = new KeepingSink();
    stuck.more = false;
    handler = (exchange) => reads && stuck.read(exchange);
    put(1);
    sendBody(1, bytes);
    expect(await client.outcome(1)).toBe("RST FLOW_CONTROL_ERROR");
    client.request(3, GET);
    handler = (exchange) => respond(exchange, 200);
    expect(await client.outcome(3)).toBe("200");
  });

  test("that is not read waits, and the client is asked to stop once it has a response", async () => {
    handler = () => undefined;
    put(1);
    sendBody(1, 49_152);
    await later(100);
    expect(credit(1)).toBe(0);
    respond(last, 403, "no");
    expect(await client.outcome(1)).toBe("403");
    const reset = await client.next((f) => f.type === Frame.RST_STREAM);
    expect(reset!.payload.readUInt32BE(0)).toBe(0);
    const order = client.frames.filter((f) => f.stream === 1 && f.type !== Frame.WINDOW_UPDATE);
    expect(order.map((f) => f.type)).toEqual([Frame.HEADERS, Frame.DATA, Frame.RST_STREAM]);
  });

  test("that is given up is credited to the connection once, with what its sink had", async () => {
    // A quarter of the connection's window, which is when a client is told.
    for (const stream of [1, 3]) {
      const stuck = new KeepingSink();
      stuck.more = false;
      handler = (exchange) => stuck.read(exchange);
      put(stream);
      sendBody(stream, 2 * MiB);
      await eventually(() => stuck.body.length > 0);
      respond(last, 200);
      expect(await client.outcome(stream)).toBe("200");
    }
    const whole = 16 * MiB - 65_535;
    await eventually(() => credit(0) > whole);
    expect(credit(0)).toBe(whole + 4 * MiB);
  });

  test("with a small rest still to come is read to its end without a reset", async () => {
    handler = (exchange) => respond(exchange, 403, "no");
    put(1);
    expect(await client.outcome(1)).toBe("403");
    await later(100);
    sendBody(1, 16_384, END_STREAM);
    await pass(1_500);
    expect(client.frames.some((f) => f.type === Frame.RST_STREAM)).toBe(false);
  });

  test("that stops coming is 408, or a reset if the response has begun", async () => {
    await inAHurry();
    const sinks = [new KeepingSink(), new KeepingSink()];
    handler = (exchange) => sinks[0]!.read(exchange);
    put(1);
    await pass(700);
    expect(await client.outcome(1)).toBe("408");
    handler = (exchange) => {
      sinks[1]!.read(exchange);
      exchange.sendHead(200, "", [], -1);
      exchange.flush();
    };
    put(3);
    expect(await client.outcome(3)).toBe("200");
    await pass(700);
    const reset = await client.next((f) => f.type === Frame.RST_STREAM && f.stream === 3);
    expect(reset!.payload.readUInt32BE(0)).toBe(2);
    expect(sinks.map((s) => [s.aborted, s.ended])).toEqual([
      [true, false],
      [true, false],
    ]);
  });

  test("that waits for its sink does not time out", async () => {
    const sink = new KeepingSink();
    sink.more = false;
    handler = (exchange) => sink.read(exchange);
    put(1);
    client.send(Frame.DATA, 0, 1, "abc");
    await pass(1_300);
    expect(sink.aborted).toBe(false);
    expect(client.frames.some((f) => f.stream === 1 && f.type !== Frame.WINDOW_UPDATE)).toBe(false);
  });

  test("that is held back has a timeout from when the client was asked for it", async () => {
    await inAHurry();
    handler = () => undefined;
    put(1, 0, [["expect", "100-continue"]]);
    await pass(1_300);
    expect(client.frames.some((f) => f.stream === 1)).toBe(false);
    last.readBody(new KeepingSink());
    expect(await client.outcome(1)).toBe("100");
    await pass(700);
    await client.next((f) => f.stream === 1 && describeFrame(f) === "408");
    const heads = client.frames.filter((f) => f.type === Frame.HEADERS).map(describeFrame);
    expect(heads).toEqual(["100", "408"]);
  });

  test("that is not read has a timeout as well, as long as the client may send", async () => {
    await inAHurry();
    handler = () => undefined;
    put(1);
    await pass(700);
    expect(await client.outcome(1)).toBe("408");
    put(3);
    // The whole window, but for what may fill it: whoever has sent that waits for us.
    sendBody(3, 49_152);
    client.send(Frame.DATA, 0, 3, Buffer.alloc(16_383));
    await pass(1_500);
    expect(client.frames.some((f) => f.stream === 3)).toBe(false);
    respond(last, 200);
    expect(await client.outcome(3)).toBe("200");
  });

  test("that is not read does not affect a response in progress", async () => {
    handler = (exchange) => {
      exchange.sendHead(200, "", [], -1);
      exchange.flush();
    };
    put(1);
    await pass(1_500);
    last.sendData(Buffer.from("late"));
    last.end();
    expect(await client.outcome(1)).toBe("200");
    const data = await client.next((f) => f.type === Frame.DATA && f.stream === 1);
    expect(data!.payload.toString()).toBe("late");
    // The end of the response, and no reset with an error.
    const reset = await client.next((f) => f.type === Frame.RST_STREAM && f.stream === 1);
    expect(reset!.payload.readUInt32BE(0)).toBe(0);
  });
});

describe("a response body", () => {
  test("follows a window that SETTINGS change (RFC 9113, 6.9.2)", async () => {
    handler = (exchange) => respond(exchange, 200, "ab");
    client.send(Frame.SETTINGS, 0, 0, initialWindow(0));
    client.request(1, GET);
    expect(await client.outcome(1)).toBe("200");
    client.send(Frame.SETTINGS, 0, 0, initialWindow(1));
    const first = await client.next((f) => f.type === Frame.DATA);
    expect([first!.payload.toString(), first!.flags]).toEqual(["a", 0]);
    client.send(Frame.WINDOW_UPDATE, 0, 1, Buffer.from([0, 0, 0, 1]));
    const second = await client.next((f) => f.type === Frame.DATA && f !== first);
    expect([second!.payload.toString(), second!.flags]).toEqual(["b", END_STREAM]);
  });

  test("waits for the client's window; the buffer is free again at onDrain", async () => {
    const chunk = randomBody(100_000);
    const holder = new CountingHolder();
    handler = (exchange) => {
      exchange.hold(holder);
      exchange.sendHead(200, "", [], -1);
      expect(exchange.sendData(chunk)).toBe(false);
    };
    client.request(1, GET);
    await eventually(
      () =>
        client.frames.filter((f) => f.type === Frame.DATA).reduce((n, f) => n + f.payload.length, 0) ===
        65_535,
    );
    expect(holder.drained).toBe(0);
    for (const stream of [0, 1]) client.send(Frame.WINDOW_UPDATE, 0, stream, Buffer.from([0, 1, 0, 0]));
    await eventually(() => holder.drained === 1);
    // The send timeout is about what waits, and nothing does.
    await pass(700);
    expect(last.sendData(Buffer.from("more"))).toBe(true);
    last.end();
    await client.next((f) => f.type === Frame.DATA && f.flags === END_STREAM);
    expect(client.frames.some((f) => f.type === Frame.RST_STREAM)).toBe(false);
  });

  test("that is given up while it waits for the connection's window leaves that to others", async () => {
    const increment = (bytes: number): Buffer => Buffer.from([0, 0, bytes >> 8, bytes & 0xff]);
    const data = (stream: number): Buffer[] =>
      client.frames.filter((f) => f.type === Frame.DATA && f.stream === stream).map((f) => f.payload);
    const body = randomText(100_000);
    handler = (exchange) => respond(exchange, 200, body);
    client.request(1, GET);
    client.send(Frame.WINDOW_UPDATE, 0, 1, increment(50_000));
    await eventually(() => Buffer.concat(data(1)).toString() === body.slice(0, 65_535));
    handler = (exchange) => respond(exchange, 200, "ab");
    client.request(3, GET);
    expect(await client.outcome(3)).toBe("200");
    client.socket.write(cancel(1));
    client.send(Frame.WINDOW_UPDATE, 0, 0, increment(100));
    const end = await client.next((f) => f.type === Frame.DATA && f.stream === 3);
    expect([end?.payload.toString(), end?.flags]).toEqual(["ab", END_STREAM]);
  });

  test("of small pieces is held back for a client that does not read", async () => {
    let accepted = 0;
    const holder = new CountingHolder();
    handler = (exchange) => {
      exchange.hold(holder);
      exchange.sendHead(200, "", [], -1);
      for (let more = true; more && accepted < 1_000; accepted++) {
        more = exchange.sendData(randomBody(1_000));
        exchange.flush();
      }
    };
    client.request(1, GET);
    await later(100);
    expect(accepted).toBeLessThan(300);
    for (const stream of [0, 1]) client.send(Frame.WINDOW_UPDATE, 0, stream, Buffer.from([0, 15, 0, 0]));
    await eventually(() => holder.drained === 1);
    last.end();
    await client.next((f) => f.type === Frame.DATA && f.flags === END_STREAM);
  });

  test.each([
    ["a response that goes on", 65_535],
    ["a response that was complete", 65_535],
    ["a response of which nothing could be sent", 0],
  ])("times out with %s", async (what, window) => {
    await inAHurry();
    client.send(Frame.SETTINGS, 0, 0, initialWindow(window));
    const holder = new CountingHolder();
    handler = (exchange) => {
      exchange.hold(holder);
      exchange.sendHead(200, "", [], -1);
      exchange.sendData(Buffer.alloc(100_000));
      if (what.endsWith("complete")) exchange.end();
    };
    const before = server.finished.length;
    client.request(1, GET);
    await pass(700);
    const reset = await client.next((f) => f.type === Frame.RST_STREAM);
    expect(reset!.payload.readUInt32BE(0)).toBe(2);
    expect(holder.released).toBe(1);
    expect(server.finished.length).toBe(before + 1);
  });
});

test("a head that fills its frames has no empty one after them", async () => {
  const FRAME = 16_384;
  let long = 30_000;
  handler = (exchange) => respond(exchange, 204, "", ["Set-Cookie", "c".repeat(long)]);
  // Heads differ by a date at most, once fields are indexed.
  for (let stream = 1; ; stream += 2) {
    client.request(stream, GET);
    await client.next((f) => f.stream === stream && (f.flags & END_HEADERS) !== 0);
    await client.next((f) => f.stream === stream && (f.flags & END_STREAM) !== 0);
    const sizes = client.frames.filter((f) => f.stream === stream).map((f) => f.payload.length);
    const bytes = sizes.reduce((sum, size) => sum + size);
    if (bytes !== 2 * FRAME) long += 2 * FRAME - bytes;
    else return expect(sizes).toEqual([FRAME, FRAME]);
  }
});

describe("extended CONNECT", () => {
  const CONNECT = [[":method", "CONNECT"], [":protocol", "websocket"], ...GET.slice(1)] as const;

  test("is a tunnel in both directions, which silence does not end", async () => {
    const sink = new KeepingSink();
    handler = (exchange) => {
      expect(exchange.request).toMatchObject({ method: "CONNECT", upgrade: "websocket", bodyLength: -1 });
      exchange.sendHead(200, "", [], -1);
      exchange.flush();
      sink.read(exchange);
    };
    client.request(1, CONNECT, 0);
    expect(await client.outcome(1)).toBe("200");
    await pass(1_300);
    client.send(Frame.DATA, 0, 1, "up");
    await eventually(() => sink.body === "up");
    last.sendData(Buffer.from("down"));
    last.flush();
    expect((await client.next((f) => f.type === Frame.DATA))!.payload.toString()).toBe("down");
    client.send(Frame.DATA, END_STREAM, 1, "");
    await eventually(() => sink.ended);
    last.end();
    await client.next((f) => f.type === Frame.DATA && f.flags === END_STREAM);
  });

  test("may be refused", async () => {
    handler = (exchange) => respond(exchange, 501, "no");
    client.request(1, CONNECT, 0);
    expect(await client.outcome(1)).toBe("501");
    expect((await client.next((f) => f.type === Frame.RST_STREAM))!.payload.readUInt32BE(0)).toBe(0);
  });
});

const hex = (text: string): string => Buffer.from(text, "latin1").toString("hex");

describe("the end of a connection", () => {
  const goaways = (): number[] =>
    client.frames.filter((f) => f.type === Frame.GOAWAY).map((f) => f.payload.readUInt32BE(0));

  test.each(["after its preface", "after a response"])("comes when it is idle %s", async (when) => {
    await inAHurry();
    if (when.endsWith("response")) {
      client.request(1, GET);
      expect(await client.outcome(1)).toBe("200");
    }
    await pass(1_600);
    await client.whenClosed();
    expect(goaways()).toEqual([when.endsWith("response") ? 1 : 0]);
    await eventually(() => server.connections.size === 0);
  });

  test("comes if the client never sends anything", async () => {
    await inAHurry();
    const mute = await RawClient.connect(server.port, false);
    await pass(1_600);
    await mute.whenClosed();
  });

  test("drained: running streams continue, nothing new begins, then it closes", async () => {
    const draining = await startHttp2Server({
      actions: { "/": (exchange) => (last = exchange) },
    });
    client.destroy();
    client = await RawClient.connect(draining.port);
    client.request(1, GET);
    await eventually(() => last !== undefined && last.client.port === client.socket.localPort);
    draining.connections.drain();
    // On its way before the client can know: still served (RFC 9113, 6.8).
    await client.next((f) => f.type === Frame.GOAWAY);
    const first = last;
    client.request(3, GET);
    await eventually(() => last !== first);
    await client.next((f) => f.type === Frame.GOAWAY && f.payload.readUInt32BE(0) !== 0x7fffffff);
    expect(goaways()).toEqual([0x7fffffff, 3]);
    const second = last;
    client.request(5, GET);
    await later(100);
    expect(last).toBe(second);
    expect(client.closed).toBe(false);
    respond(first, 200);
    respond(second, 200);
    expect(await client.outcome(1)).toBe("200");
    expect(await client.outcome(3)).toBe("200");
    await client.whenClosed();
    await eventually(() => draining.connections.size === 0);
    await draining.close();
  });

  test("drained is told in two steps, and the second follows the client's response", async () => {
    const DRAINED = "drain...";
    const draining = await startHttp2Server({ actions: { "/": (exchange) => (last = exchange) } });
    client.destroy();
    client = await RawClient.connect(draining.port);
    await client.next((f) => f.type === Frame.SETTINGS && f.flags === ACK);
    // Before a drain it is the response to nothing.
    client.send(Frame.PING, ACK, 0, DRAINED);
    client.request(1, GET);
    await eventually(() => last.client.port === client.socket.localPort);
    const before = client.frames.length;
    const since = (): string[] =>
      client.frames.slice(before).map((f) => `${f.type} ${f.flags} ${f.stream} ${f.payload.toString("hex")}`);
    draining.connections.drain();
    draining.connections.drain();
    await client.next((f) => f.type === Frame.PING);
    for (const other of ["drain,,,", "brain..."]) client.send(Frame.PING, ACK, 0, other);
    await later(100);
    const first = [`${Frame.GOAWAY} 0 0 7fffffff00000000`, `${Frame.PING} 0 0 ${hex(DRAINED)}`];
    expect(since()).toEqual(first);
    client.send(Frame.PING, ACK, 0, DRAINED);
    await eventually(() => since().length > 2);
    expect(since()).toEqual([...first, `${Frame.GOAWAY} 0 0 0000000100000000`]);
    client.destroy();
    await draining.close();
  });

  test("drained while it is idle serves nothing that comes with the client's response", async () => {
    let served = 0;
    const draining = await startHttp2Server({ actions: { "/": () => void served++ } });
    client.destroy();
    client = await RawClient.connect(draining.port);
    await client.next((f) => f.type === Frame.SETTINGS && f.flags === ACK);
    draining.connections.drain();
    const { payload } = (await client.next((f) => f.type === Frame.PING))!;
    const request = frame(Frame.HEADERS, END_HEADERS | END_STREAM, 1, hpack(GET));
    const more = [request, frame(Frame.PING, 0, 0, "too late"), frame(Frame.DATA, 0, 0, "wrong")];
    client.socket.write(Buffer.concat([frame(Frame.PING, ACK, 0, payload), ...more]));
    await client.whenClosed();
    expect(served).toBe(0);
    expect(client.frames.map(describeFrame).slice(-3)).toEqual([
      "GOAWAY NO_ERROR",
      "PING#0",
      "GOAWAY NO_ERROR",
    ]);
    await draining.close();
  });

  test("comes if a head that has begun is not complete in time", async () => {
    await inAHurry();
    // With a stream that is open the connection is not idle.
    handler = () => (handler = (exchange) => respond(exchange, 200));
    client.request(1, GET);
    for (const stream of [3, 5]) {
      client.send(Frame.HEADERS, END_STREAM, stream, hpack(GET));
      await pass(1_000);
      client.send(Frame.CONTINUATION, END_HEADERS, stream, "");
      expect(await client.outcome(stream)).toBe("200");
    }
    client.send(Frame.HEADERS, END_STREAM, 7, hpack(GET));
    await pass(1_000);
    expect(goaways()).toEqual([]);
    await pass(600);
    await client.next((f) => f.type === Frame.GOAWAY);
    const codes = client.frames.filter((f) => f.type === Frame.GOAWAY).map((f) => f.payload.readUInt32BE(4));
    expect(codes).toEqual([11]);
  });

  test("forced closes every stream", async () => {
    const holders: CountingHolder[] = [];
    handler = (exchange) => {
      holders.push(new CountingHolder());
      exchange.hold(holders.at(-1)!);
    };
    client.request(1, GET);
    client.request(3, GET);
    await later(50);
    server.connections.closeAll();
    await client.whenClosed();
    await eventually(
      () => holders.filter(({ released }) => released === 1).length === 2 && server.connections.size === 0,
    );
  });

  test.each(["a close", "a reset"])("by the client, by %s, is silent in the error log", async (how) => {
    const before = await server.errorLog();
    const tcp = net.connect(server.port, "127.0.0.1");
    const other = await RawClient.connect(server.port, true, tcp);
    const holder = new CountingHolder();
    handler = (exchange) => exchange.hold(holder);
    other.request(1, GET);
    await eventually(() => last.client.port === tcp.localPort);
    if (how === "a close") other.destroy();
    else tcp.resetAndDestroy();
    client.destroy();
    await eventually(() => holder.released === 1 && server.connections.size === 0);
    expect(await server.errorLog()).toBe(before);
  });

  test("waits for a client that never closes its side, but not forever", async () => {
    await inAHurry();
    const idles = client;
    idles.socket.allowHalfOpen = true;
    await pass(1_600);
    const breaksRules = await RawClient.connect(server.port);
    breaksRules.socket.allowHalfOpen = true;
    breaksRules.send(Frame.DATA, 0, 0, "");
    await Promise.all([breaksRules, idles].map((each) => each.next((f) => f.type === Frame.GOAWAY)));
    await pass(3_000);
    expect(server.connections.size).toBe(2);
    await pass(3_000);
    await eventually(() => server.connections.size === 0);
    expect([breaksRules.closed, idles.closed]).toEqual([false, false]);
    breaksRules.destroy();
  });
});

describe("a connection that has ended", () => {
  const SEND_MS = 60_000;
  let lasting: Http2Server;

  /** A server with long deadlines, and a client of it that never closes its side. */
  async function begin(keepAliveMs: number, responded: (exchange: Exchange) => void): Promise<void> {
    lasting = await startHttp2Server({
      actions: { "/": responded },
      route: { sendTimeoutMs: SEND_MS },
      config: { timeouts: { keepAliveMs } },
    });
    client.destroy();
    client = await RawClient.connect(lasting.port);
    client.socket.allowHalfOpen = true;
  }
  const ended = (): Promise<unknown> => client.next((f) => f.type === Frame.GOAWAY);
  const stays = (): void => expect(lasting.connections.size).toBe(1);
  const goes = (): Promise<void> => eventually(() => lasting.connections.size === 0);
  afterEach(() => lasting.close());

  /** Ends it so long after its response. */
  async function endAfter(ms: number): Promise<void> {
    await begin(10 * SEND_MS, (exchange) => respond(exchange, 200));
    client.request(1, GET);
    expect(await client.outcome(1)).toBe("200");
    await pass(ms);
    lasting.connections.drain();
    await pass(1_100);
    await ended();
  }

  test("stays for a send timeout, as its client may still read", async () => {
    await endAfter(0);
    await pass(SEND_MS - 5_000);
    stays();
    await pass(8_000);
    await goes();
  });

  test("goes soon if its last response is older than that", async () => {
    await endAfter(SEND_MS + 100);
    await pass(3_000);
    stays();
    await pass(3_000);
    await goes();
  });

  test("stays while its client sends something, but not for more than ten minutes", async () => {
    await endAfter(0);
    for (const seconds of [50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 25]) {
      client.send(Frame.PING, 0, 0, "12345678");
      await pass(seconds * 1_000);
      stays();
    }
    client.send(Frame.PING, 0, 0, "12345678");
    await pass(30_000);
    await goes();
  });

  /** Begins with more responses than the kernel takes, of which the client has read nothing. */
  async function beginUnread(keepAliveMs: number, each: number): Promise<void> {
    let responses = 0;
    const headers = ["X-Long", "x".repeat(each)];
    await begin(keepAliveMs, (exchange) => (responses++, respond(exchange, 204, "", headers)));
    await client.next((f) => f.type === Frame.SETTINGS);
    client.socket.pause();
    // More than the proxy responds to while much is to be written.
    const requests = Array.from({ length: 200 }, (_, i) =>
      frame(Frame.HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, hpack(GET)),
    );
    client.socket.write(Buffer.concat(requests));
    // The kernels take what they take before time passes.
    await settled(() => responses);
    await later(500);
    expect([responses > 8, responses < 200]).toEqual([true, true]);
  }

  test("goes after a send timeout if its client reads nothing", async () => {
    await beginUnread(1_000, 60_000);
    await pass(1_100);
    await pass(SEND_MS - 10_000);
    stays();
    await pass(20_000);
    await goes();
  });

  test("stays for a send timeout after the last of old responses was read", async () => {
    await beginUnread(10 * SEND_MS, 120_000);
    await pass(SEND_MS - 20_000);
    client.socket.resume();
    // More than the kernels hold: so the write goes on.
    await eventually(() => client.socket.bytesRead > 8 * MiB);
    client.socket.pause();
    await pass(SEND_MS - 20_000);
    lasting.connections.drain();
    await pass(1_100);
    client.socket.resume();
    await ended();
    await pass(SEND_MS - 20_000);
    stays();
    await pass(30_000);
    await goes();
  });
});

describe("floods", () => {
  const lines = async (): Promise<number> =>
    (await server.errorLog()).split("\n").filter((l) => l.includes("HTTP/2 connection closed")).length;

  test.each(FLOODS)("$name: one line in the error log, and another client is served", async (flood) => {
    handler = () => undefined;
    const before = await lines();
    if (flood.first !== undefined) client.socket.write(flood.first);
    for (let i = 0; client.socket.writable && !client.socket.readableEnded; i++) {
      if (!client.socket.write(flood.round(i)))
        // A reset is an error of the socket, and ends it.
        await Promise.race([once(client.socket, "drain").catch(() => undefined), client.whenClosed()]);
      await later(0);
    }
    await client.whenClosed();
    await eventually(() => server.connections.size === 0);
    expect(await lines()).toBe(before + 1);
    expect(await server.errorLog()).toContain(flood.complaint);
    const session = connectHttp2(server.port);
    handler = (exchange) => respond(exchange, 200);
    expect((await ask(session, {})).status).toBe(200);
    session.destroy();
  });

  const UNKNOWN = 0x42;
  const heads = (stream: number, flags: number): Buffer =>
    frame(Frame.HEADERS, END_HEADERS | flags, stream, hpack(GET));
  /** What a client may send in a second, how many are too many, and what is one of it. */
  const LIMITS: readonly (readonly [
    what: string,
    most: number,
    tooMany: number,
    one: (i: number) => Buffer,
  ])[] = [
    [
      "resets",
      2 * 3 * 20,
      // Beyond half of them requests wait, and four of those count as one.
      3 * 20 + 1 + 4 * 3 * 20,
      (i) => Buffer.concat([heads(3 + 2 * i, END_STREAM), cancel(3 + 2 * i)]),
    ],
    ["PING frames", 1_000, 1_001, () => frame(Frame.PING, 0, 0, Buffer.alloc(8))],
    ["SETTINGS frames", 1_000, 1_001, () => frame(Frame.SETTINGS, 0, 0, "")],
    ["empty DATA frames", 200, 201, () => frame(Frame.DATA, 0, 1, "")],
    // Nine are open beside the one that all have.
    ["streams beyond the limit", 1_000 + 9, 1_001 + 9, (i) => heads(3 + 2 * i, 0)],
    ["frames that mean nothing", 20_000, 20_001, () => frame(UNKNOWN, 0, 0, "")],
  ];

  test.each(LIMITS)("so many %s in a second are none: %i; %i are", async (_what, most, tooMany, one) => {
    handler = () => undefined;
    /** What the connection is closed with, if it is. */
    const closing = async (count: number): Promise<string | undefined> => {
      client.destroy();
      client = await RawClient.connect(server.port);
      put(1);
      await client.next((f) => f.type === Frame.SETTINGS && f.flags === ACK);
      // The client's own first frames count too.
      await pass(1_100);
      const before = client.frames.length;
      const sent = server.bytesRead();
      const flood = Buffer.concat(Array.from({ length: count }, (_, i) => one(i)));
      client.socket.write(flood);
      // All of it is read in the same second, however busy the machine is.
      await eventually(() => client.closed || server.bytesRead() >= sent + flood.length);
      await pass(1_100);
      // Of the next second.
      client.send(Frame.PING, 0, 0, "is read ");
      const end = await client.next((f) => isEnd(f) || f.payload.equals(Buffer.from("is read ")));
      expect(client.frames.indexOf(end!)).toBeGreaterThanOrEqual(before);
      return isEnd(end!) ? describeFrame(end!) : undefined;
    };
    const isEnd = ({ type }: { type: number }): boolean => type === Frame.GOAWAY;
    expect(await closing(most)).toBeUndefined();
    expect(await closing(tooMany)).toBe("GOAWAY ENHANCE_YOUR_CALM");
  });

  test("of resets cut no transfer: the connection takes no more streams, and ends with the last one", async () => {
    const body = randomBody(40_000);
    let received = Buffer.alloc(0);
    handler = (exchange) => {
      if (exchange.request.method !== "PUT") return;
      exchange.readBody({
        onData: (chunk) => ((received = Buffer.concat([received, chunk])), true),
        onEnd: () => respond(exchange, 201, "kept"),
      });
    };
    put(1);
    client.send(Frame.DATA, 0, 1, body.subarray(0, 10_000));
    for (let i = 1; i <= 400; i++) {
      client.request(1 + 2 * i, GET);
      client.socket.write(cancel(1 + 2 * i));
    }
    const end = await client.next(({ type }) => type === Frame.GOAWAY);
    expect(describeFrame(end!)).toBe("GOAWAY ENHANCE_YOUR_CALM");
    for (let at = 10_000; at < body.length; at += 10_000)
      client.send(Frame.DATA, at + 10_000 < body.length ? 0 : END_STREAM, 1, body.subarray(at, at + 10_000));
    const response = await client.next((f) => f.stream === 1 && f.type !== Frame.WINDOW_UPDATE);
    expect(describeFrame(response!)).toBe("201");
    expect(received.equals(body)).toBe(true);
    await client.whenClosed();
  });

  test("of resets slow down further requests, which lose nothing, and cost little if they are reset", async () => {
    const dispatched: string[] = [];
    const body = randomBody(40_000);
    let received = Buffer.alloc(0);
    handler = (exchange) => {
      dispatched.push(exchange.request.method);
      if (exchange.request.method !== "PUT") return;
      exchange.readBody({
        onData: (chunk) => ((received = Buffer.concat([received, chunk])), true),
        onEnd: () => respond(exchange, 201),
      });
    };
    const resets = 250;
    const burst = Array.from({ length: resets }, (_, i) =>
      Buffer.concat([heads(1 + 2 * i, END_STREAM), cancel(1 + 2 * i)]),
    );
    const stream = 1 + 2 * resets;
    client.socket.write(Buffer.concat(burst));
    put(stream);
    for (let at = 0; at < body.length; at += 10_000)
      client.send(
        Frame.DATA,
        at + 10_000 < body.length ? 0 : END_STREAM,
        stream,
        body.subarray(at, at + 10_000),
      );
    const response = await client.next((f) => f.stream === stream && f.type === Frame.HEADERS);
    expect(describeFrame(response!)).toBe("201");
    expect(received.equals(body)).toBe(true);
    // Some wait when a sweep comes, before their resets are read.
    expect(dispatched.length).toBeGreaterThan(60);
    expect(dispatched.length).toBeLessThan(60 + 60);
    expect(client.frames.some(({ type }) => type === Frame.GOAWAY)).toBe(false);
  });

  test("resets of a client that lets as many requests complete are none", async () => {
    handler = (exchange) => (exchange.request.path === "/quick" ? respond(exchange, 200) : undefined);
    const quick = GET.map(([name, value]): [string, string] => [name, name === ":path" ? "/quick" : value]);
    for (let i = 0; i < 300; i++) {
      client.request(1 + 4 * i, quick);
      client.request(3 + 4 * i, GET);
      client.socket.write(cancel(3 + 4 * i));
      if (i % 5 === 4)
        await client.next(({ stream, type }) => stream === 1 + 4 * i && type === Frame.HEADERS);
    }
    expect(client.frames.some(({ type }) => type === Frame.GOAWAY)).toBe(false);
    expect(client.closed).toBe(false);
  });

  test.each([
    ["PING", () => client.send(Frame.PING, 0, 0, Buffer.alloc(8))],
    ["SETTINGS", () => client.send(Frame.SETTINGS, 0, 0)],
  ])("of %s frames are not acknowledged without bound", async (_what, send) => {
    // A client that does not read its responses.
    client.socket.pause();
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 50_000 && !client.socket.destroyed; i++) {
      send();
      if (i % 500 === 499) await later(0);
    }
    client.socket.resume();
    await client.whenClosed();
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MiB);
  });
});

test("a connection goes on after its last request until its client makes a pause, and not for ever", async () => {
  const most = 20;
  const limited = await startHttp2Server({
    config: { limits: { keepAliveRequestsMax: most } },
    actions: { "/": (exchange) => respond(exchange, 200) },
  });
  /** How many requests are served until the GOAWAY, with one after the other; then a pause after so many. */
  const served = async (pauseAfter: number): Promise<number> => {
    const session = connectHttp2(limited.port);
    let ends = false;
    session.once("goaway", () => (ends = true));
    let count = 0;
    for (; !ends; count++) {
      if (count === pauseAfter) {
        await pass(6_000);
        await eventually(() => ends);
        break;
      }
      const { status } = await ask(session, {});
      // A request that comes with the GOAWAY is not sent.
      if (status === 0 && ends) break;
      expect(status).toBe(200);
    }
    session.destroy();
    return count;
  };
  expect(await served(most + 15)).toBe(most + 15);
  const all = await served(Infinity);
  expect(all).toBeGreaterThanOrEqual(10 * most);
  expect(all).toBeLessThan(10 * most + 50);
  await limited.close();
});

test("after its last request a connection ends, and what was on its way is served", async () => {
  const limited = await startHttp2Server({
    config: { limits: { keepAliveRequestsMax: 3 } },
    actions: { "/": (exchange) => respond(exchange, 200, exchange.request.path) },
  });
  const session = connectHttp2(limited.port);
  const goaway = once(session, "goaway");
  const closed = once(session, "close");
  const responses = await Promise.all(
    Array.from({ length: 10 }, (_, i) => ask(session, { ":path": `/${i}` })),
  );
  expect(responses.map(({ body }) => body)).toEqual(responses.map((_, i) => `/${i}`));
  await pass(6_000);
  const [code] = (await goaway) as [number];
  expect(code).toBe(0);
  await closed;
  await limited.close();
});
