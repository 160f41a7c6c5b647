import { setTimeout as sleep } from "node:timers/promises";
import type { RouteInput } from "../../src/model/index.js";
import { RespondAction } from "../../src/runtime/actions/fixedResponses.js";
import type { Exchange } from "../../src/runtime/exchange/exchange.js";
import { LASTING, TRANSIENT } from "../../src/runtime/sockets/memory.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import {
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  GET,
  hpack,
  RawClient,
} from "../../testkit/http2RawClient.js";
import { type Accepted, connectTo, RawUpstream } from "../../testkit/peers.js";
import { randomText } from "../../testkit/random.js";

/** One request is one request: what goes upstream and back is framed as it was announced, or cut. */

let upstream: RawUpstream;
let front: EveryProtocol;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted, index: number) => void;
/** What would have ended the worker. */
let faults: unknown[];
const onFault = (fault: unknown): void => void faults.push(fault);

const ROUTES: readonly RouteInput[] = [
  { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
  { name: "socket", path: "/socket", action: { type: "proxy", upstream: "web" } },
  { name: "small", path: "/small", requestBodyBytesMax: 10, action: { type: "proxy", upstream: "web" } },
  { name: "page", path: "/page", action: { type: "respond", status: 200, body: "page" } },
];

beforeAll(async () => {
  upstream = await new RawUpstream((peer, index) => script(peer, index)).listen();
  front = await startEveryProtocol({
    routes: ROUTES,
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
beforeEach(() => {
  faults = [];
  script = () => undefined;
  process.on("uncaughtException", onFault);
});
afterEach(() => {
  process.off("uncaughtException", onFault);
  expect(faults).toEqual([]);
  // Idle connections of one test must not serve the next.
  for (const peer of upstream.connections.splice(0)) peer.socket.destroy();
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});

const POST = (path: string, ...more: (readonly [string, string])[]) =>
  [[":method", "POST"], [":scheme", "https"], [":authority", "a"], [":path", path], ...more] as const;

const CONNECT = (...more: (readonly [string, string])[]) =>
  [
    [":method", "CONNECT"],
    [":protocol", "websocket"],
    [":scheme", "https"],
    [":authority", "a"],
    [":path", "/socket"],
    ["sec-websocket-version", "13"],
    ...more,
  ] as const;

/** Responds to every request head with the same bytes, and keeps the connection. */
function refusing(status: string): (peer: Accepted) => void {
  return (peer) => {
    let responded = 0;
    peer.socket.on("data", () => {
      const heads = peer.received.split("\r\n\r\n").length - 1;
      for (; responded < heads; responded++)
        peer.send(`HTTP/1.1 ${status}\r\nContent-Length: ${2 + status.length}\r\n\r\n#${status}#`);
    });
  };
}

describe("an upgrade", () => {
  test.each(["5", "0", "340"])(
    "over HTTP/2 with content-length: %s is refused, and nothing goes upstream",
    async (length) => {
      script = refusing("404 Not Found");
      const client = await RawClient.connect(front.securePort);
      client.request(1, CONNECT(["content-length", length]), 0);
      expect(await client.outcome(1)).toBe("400");
      expect(upstream.received).toBe("");
      client.destroy();
    },
  );

  test("that the upstream refuses closes the connection, and no other request becomes its body", async () => {
    script = refusing("404 Not Found");
    const first = await RawClient.connect(front.securePort);
    first.request(1, CONNECT(), 0);
    expect(await first.outcome(1)).toBe("404");
    const second = await RawClient.connect(front.securePort);
    second.request(1, [...POST("/web/second", ["content-length", "0"])], END_STREAM);
    expect(await second.outcome(1)).toBe("404");
    expect(upstream.connections).toHaveLength(2);
    expect(upstream.connections[0]!.received).not.toMatch(/content-length|transfer-encoding/i);
    expect(upstream.connections[1]!.received).toMatch(/^POST \/web\/second HTTP\/1\.1\r\n/);
    first.destroy();
    second.destroy();
  });

  test.each([false, true])(
    "over HTTP/1.1 announces no body, and closes the connection (TLS: %s)",
    async (secure) => {
      script = refusing("404 Not Found");
      const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
      client.send(
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n" +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
      );
      await client.receives("#404 Not Found#");
      client.received = "";
      client.send("GET /web/next HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.receives("#404 Not Found#");
      expect(upstream.connections).toHaveLength(2);
      expect(upstream.connections[0]!.received).not.toMatch(/content-length|transfer-encoding/i);
      client.socket.destroy();
    },
  );

  test("over HTTP/2 sends one Sec-WebSocket-Key upstream, ours", async () => {
    script = refusing("404 Not Found");
    const client = await RawClient.connect(front.securePort);
    client.request(1, CONNECT(["sec-websocket-key", "Y2xpZW50"]), 0);
    expect(await client.outcome(1)).toBe("404");
    const keys = upstream.received.match(/sec-websocket-key: .*/gi);
    expect(keys).toHaveLength(1);
    expect(keys![0]).not.toContain("Y2xpZW50");
    client.destroy();
  });
});

describe("what is not a request, or not a response", () => {
  test("any other Expect over HTTP/2 is a 417, and nothing goes upstream", async () => {
    const client = await RawClient.connect(front.securePort);
    client.request(1, POST("/web", ["expect", "200-ok"]), 0);
    expect(await client.outcome(1)).toBe("417");
    expect(upstream.received).toBe("");
    client.destroy();
  });

  test.each(["abc", "X : y", ": y", "GET /web/next HTTP/1.1"])(
    "trailers of an upstream that are not field lines cut the response: %j",
    async (trailer) => {
      script = (peer) =>
        peer.socket.once("data", () =>
          peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n${trailer}\r\n\r\n`),
        );
      const client = await connectTo(front.plainPort);
      client.send("GET /web HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.until((peer) => peer.ended || peer.closed);
      expect(client.received).not.toContain("0\r\n\r\n");
      client.socket.destroy();
    },
  );
});

describe("a response that is not as long as its head says", () => {
  const LYING: readonly [string, (exchange: Exchange) => void][] = [
    ["longer, at once", (exchange) => exchange.sendData(Buffer.from("12345#"))],
    [
      "longer, in pieces",
      (exchange) => {
        exchange.sendData(Buffer.from("12345"));
        exchange.sendData(Buffer.from("#"));
      },
    ],
    ["shorter", (exchange) => exchange.sendData(Buffer.from("1234"))],
    ["empty", () => undefined],
  ];
  afterEach(() => jest.restoreAllMocks());

  test.each(LYING)("is cut, and logged as an internal fault: %s", async (_how, send) => {
    jest.spyOn(RespondAction.prototype, "handle").mockImplementation((exchange) => {
      exchange.sendHead(200, "OK", [], 5);
      send(exchange);
      exchange.end();
    });
    const before = front.serving.faults.count;
    for (const secure of [false, true]) {
      const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
      client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\nGET /page HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.until((peer) => peer.ended || peer.closed);
      expect(client.received).not.toContain("#");
      expect(client.received.match(/HTTP/g)?.length ?? 0).toBeLessThan(2);
      client.socket.destroy();
    }
    const client = await RawClient.connect(front.securePort);
    client.request(1, [...GET.slice(0, 3), [":path", "/page"]]);
    const reset = await client.next((f) => f.type === Frame.RST_STREAM);
    expect(reset!.payload.readUInt32BE(0)).toBe(2);
    const data = client.frames.filter((f) => f.type === Frame.DATA);
    expect(data.map((f) => f.payload.toString()).join("")).not.toContain("#");
    expect(data.some((f) => (f.flags & END_STREAM) !== 0)).toBe(false);
    client.destroy();
    expect(front.serving.faults.count).toBe(before + 3);
    expect(await front.errorLog()).toMatch(/\[crit\].*internal fault.*FramingError|\[crit\].*internal fault/);
  });
});

describe("a response in pieces", () => {
  afterEach(() => jest.restoreAllMocks());
  const PIECES = [1, 15, 16, 17, 255, 2_048, 3_000, 16_384, 20_000, 70_000].map(randomText);
  const whole = PIECES.join("");
  const inChunks = PIECES.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join("");

  test.each([
    ["in chunks", "1.1", -1, `${inChunks}0\r\n\r\n`],
    ["to the end of the connection", "1.0", -1, whole],
    ["of a known length", "1.1", whole.length, whole],
  ])("is framed piece by piece: %s", async (_how, version, length, body) => {
    for (const memory of [LASTING, TRANSIENT]) {
      jest.spyOn(RespondAction.prototype, "handle").mockImplementation((exchange) => {
        exchange.sendHead(200, "OK", ["X", "caf\xe9"], length);
        for (const piece of PIECES) {
          const bytes = Buffer.from(piece);
          exchange.sendData(bytes, memory);
          if (memory === TRANSIENT) bytes.fill("#");
        }
        exchange.end();
      });
      for (const secure of [false, true]) {
        const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
        client.send(`GET /page HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`);
        await client.until((peer) => peer.ended || peer.closed);
        const received = client.received.slice(client.received.indexOf("\r\n\r\n") + 4);
        expect(client.received).toContain("\r\nX: caf\xe9\r\n");
        // To compare is cheap, to show what differs is not.
        expect([memory.copies, secure, received.length, received === body]).toEqual([
          memory.copies,
          secure,
          body.length,
          true,
        ]);
        client.socket.destroy();
      }
    }
  });
});

describe("a response without a head", () => {
  afterEach(() => jest.restoreAllMocks());

  test("is none, and not taken for one", async () => {
    jest.spyOn(RespondAction.prototype, "handle").mockImplementation((exchange) => exchange.end());
    for (const secure of [false, true]) {
      const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
      client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\nGET /page HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.until((peer) => peer.ended || peer.closed);
      expect(client.received).toBe("");
      client.socket.destroy();
    }
    const client = await RawClient.connect(front.securePort);
    client.request(1, [...GET.slice(0, 3), [":path", "/page"]]);
    expect(await client.outcome(1)).toBe("RST INTERNAL_ERROR");
    client.destroy();
  });
});

describe("a body over HTTP/2", () => {
  const SMUGGLED = "GET /web/smuggled HTTP/1.1\r\nHost: evil\r\n\r\n";

  test.each([
    ["in one DATA frame", (body: string) => [frame(Frame.DATA, END_STREAM, 1, body)]],
    [
      "in frames of one byte, the last with all the rest",
      (body: string, length: number) => [
        ...[...body.slice(0, length - 1)].map((byte) => frame(Frame.DATA, 0, 1, byte)),
        frame(Frame.DATA, END_STREAM, 1, body.slice(length - 1)),
      ],
    ],
    [
      "in frames of one byte, the rest in one of its own",
      (body: string, length: number) => [
        ...[...body.slice(0, length)].map((byte) => frame(Frame.DATA, 0, 1, byte)),
        frame(Frame.DATA, END_STREAM, 1, body.slice(length)),
      ],
    ],
    ["in frames of one byte", (body: string) => [...body].map((byte) => frame(Frame.DATA, 0, 1, byte))],
  ])(
    "longer than its content-length is cut before a byte of the excess goes upstream: %s",
    async (_how, frames) => {
      for (const length of [1, 339, 340, 341, 1024]) {
        const client = await RawClient.connect(front.securePort);
        const head = hpack(POST("/web/upload", ["content-length", String(length)]));
        const body = randomText(length) + SMUGGLED;
        client.socket.write(
          Buffer.concat([frame(Frame.HEADERS, END_HEADERS, 1, head), ...frames(body, length)]),
        );
        expect(await client.outcome(1)).toBe("RST PROTOCOL_ERROR");
        client.destroy();
      }
      await sleep(50);
      expect(upstream.received).not.toContain("smuggled");
      expect(upstream.received).not.toContain("GET");
      for (const peer of upstream.connections) await peer.until((p) => p.ended || p.closed);
    },
  );

  test("shorter than its content-length never ends as complete", async () => {
    const client = await RawClient.connect(front.securePort);
    const head = hpack(POST("/web/upload", ["content-length", "340"]));
    client.socket.write(
      Buffer.concat([
        frame(Frame.HEADERS, END_HEADERS, 1, head),
        frame(Frame.DATA, END_STREAM, 1, randomText(339)),
      ]),
    );
    expect(await client.outcome(1)).toBe("RST PROTOCOL_ERROR");
    for (const peer of upstream.connections) await peer.until((p) => p.ended || p.closed);
    client.destroy();
  });
});

describe("a body beyond requestBodyBytesMax", () => {
  const chunks = (...sizes: number[]): string =>
    sizes.map((size) => `${size.toString(16)}\r\n${randomText(size)}\r\n`).join("");
  const HEAD = "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

  test.each([
    ["first of several", chunks(11, 1, 1) + "0\r\n\r\n"],
    ["not the last", chunks(5, 6, 1, 1) + "0\r\n\r\n"],
    ["the last", chunks(5, 6)],
    ["many", chunks(...Array<number>(100).fill(5))],
    ["and broken behind it", chunks(11) + "zz\r\n"],
  ])("is a 413 over HTTP/1.1, also where the chunk that exceeds it is %s", async (_which, body) => {
    for (const secure of [false, true])
      for (const joined of [true, false]) {
        const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
        client.send(joined ? HEAD + body : HEAD);
        if (!joined) await sleep(20);
        if (!joined) client.send(body);
        await client.until((peer) => peer.ended || peer.closed);
        expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413"]);
        client.socket.destroy();
      }
    for (const peer of upstream.connections) await peer.until((p) => p.ended || p.closed);
  });

  test("is a 413 over HTTP/2", async () => {
    const client = await RawClient.connect(front.securePort);
    client.request(1, POST("/small"), 0);
    client.socket.write(Buffer.concat([5, 6, 1, 1].map((n) => frame(Frame.DATA, 0, 1, randomText(n)))));
    expect(await client.outcome(1)).toBe("413");
    client.destroy();
  });
});
