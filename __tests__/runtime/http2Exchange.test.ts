import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange } from "../../src/runtime/exchange/exchange.js";
import { END_STREAM, Frame, GET, RawClient } from "../../testkit/http2RawClient.js";
import {
  ask,
  connectHttp2,
  type Http2Server,
  KeepingSink,
  respond,
  responseOf,
  startHttp2Server,
} from "../../testkit/http2Server.js";
import { eventually } from "../../testkit/waiting.js";

/** What an action sees of a request, and what a client sees of a response. */

let server: Http2Server;
let last: Exchange;
let handler: (exchange: Exchange) => void;
let session: ReturnType<typeof connectHttp2>;

beforeAll(async () => {
  server = await startHttp2Server({
    actions: {
      "/": (exchange) => {
        last = exchange;
        handler(exchange);
      },
      "/limited": (exchange) => {
        last = exchange;
        exchange.readBody(new KeepingSink());
      },
    },
    route: { requestBodyBytesMax: 1_000_000 },
  });
});
beforeEach(() => {
  handler = (exchange) => respond(exchange, 200);
  session = connectHttp2(server.port);
});
afterEach(() => session.destroy());
afterAll(() => server.close());

/** Reads the whole body, then responds with it. */
function echo(exchange: Exchange): void {
  const sink = new KeepingSink();
  sink.onDone = () => respond(exchange, 200, sink.body);
  sink.read(exchange);
}

describe("a request", () => {
  test("has host, target, path and line as the client sent them", async () => {
    await ask(session, { ":authority": "App.Example:8443", ":path": "/a/../b%20c?x=%zz" });
    expect(last.request).toMatchObject({
      method: "GET",
      target: "/a/../b%20c?x=%zz",
      path: "/b c",
      requestLine: "GET /a/../b%20c?x=%zz HTTP/2.0",
      version: "2.0",
      host: "App.Example:8443",
      serverName: "app.example",
      bodyLength: 0,
      lengthDeclared: false,
      upgrade: undefined,
    });
    expect(last.client).toMatchObject({ address: "127.0.0.1", scheme: "https", listener: "https" });
    expect(last.server.name).toBe("application");
  });

  test("has its fields in order, repeated ones separate, cookie parts joined", async () => {
    const fields = { "x-b": ["1", "2"], cookie: ["a=1", "b=2"], "x-a": "\xe4", ":path": "/" };
    await ask(session, fields as never);
    expect(last.request.headers).toEqual(["x-b", "1", "x-b", "2", "cookie", "a=1; b=2", "x-a", "\xe4"]);
  });

  test.each([
    ["declared", { "content-length": "3" }, 3, true],
    ["not declared", {}, -1, false],
  ])("has a body of %s length", async (_what, fields, length, declared) => {
    handler = echo;
    expect((await ask(session, { ":method": "POST", ...fields }, "abc")).body).toBe("abc");
    expect(last.request).toMatchObject({ bodyLength: length, lengthDeclared: declared });
  });

  test("with Content-Length: 0 and no END_STREAM is complete", async () => {
    const result = await ask(session, { ":method": "POST", "content-length": "0" }, "");
    expect(result).toMatchObject({ status: 200, code: 0 });
    expect(last.request).toMatchObject({ bodyLength: 0, lengthDeclared: true });
  });

  test("for an unknown host goes to the default server", async () => {
    const result = await ask(session, { ":authority": "other.example" });
    expect(result.status).toBe(404);
    expect(result.headers["server"]).toMatch(/^portico\/\d/);
  });
});

describe("a response", () => {
  test("has server, date and length, lower-case names, repeated fields separate", async () => {
    handler = (exchange) =>
      respond(exchange, 201, "body", [
        "Content-Type",
        "text/plain",
        "Set-Cookie",
        "a=1",
        "Set-Cookie",
        "b=2",
        "Vary",
        "a",
        "vary",
        "b",
      ]);
    const result = await ask(session, {});
    expect(result).toMatchObject({ status: 201, body: "body", code: 0 });
    expect(result.headers).toMatchObject({ server: "portico", "content-length": "4" });
    expect(Date.parse(String(result.headers["date"]))).toBeGreaterThan(Date.now() - 5_000);
    expect(result.raw.join("|")).toContain("set-cookie|a=1|set-cookie|b=2|vary|a|vary|b");
  });

  test.each([
    [0, "", 0],
    [3, "abc", 0],
    [-1, "abc", 0],
    [0, "a", constants.NGHTTP2_INTERNAL_ERROR],
    [3, "abcd", constants.NGHTTP2_INTERNAL_ERROR],
    [3, "ab", constants.NGHTTP2_INTERNAL_ERROR],
  ])("that announces %i bytes and has %j ends with code %i", async (announced, body, code) => {
    let taken = true;
    handler = (exchange) => {
      exchange.sendHead(200, "", [], announced);
      if (body !== "") taken = exchange.sendData(Buffer.from(body));
      exchange.end();
    };
    const result = await ask(session, {});
    expect([result.code, taken]).toEqual([code, announced === -1 || body.length <= announced]);
    if (code === 0) expect(result.body).toBe(body);
  });

  test("drops connection-specific fields and handles repeated and odd ones", async () => {
    const headers = ["Connection", "x", "Keep-Alive", "x", "Transfer-Encoding", "chunked", "Upgrade", "h2c"];
    const odd = [
      "Content-Type",
      "a/b",
      "Content-Type",
      "c/d",
      "Content-Encoding",
      "gzip",
      "content-encoding",
      "br",
    ];
    handler = (exchange) =>
      respond(exchange, 200, "", [...headers, ...odd, "constructor", "x", "__proto__", "y"]);
    const { raw } = await ask(session, {});
    expect(raw.filter((_, i) => i % 2 === 0)).toEqual([
      ":status",
      "server",
      "date",
      "content-type",
      "content-type",
      "content-encoding",
      "content-encoding",
      "constructor",
      "__proto__",
      "content-length",
    ]);
  });

  test.each([
    ["HEAD", 200, "HEAD", 5, "5"],
    ["HEAD of unknown length", 200, "HEAD", -1, undefined],
    ["304 with a length", 304, "GET", 5, "5"],
    ["204", 204, "GET", 0, undefined],
  ])("to %s has no body", async (_what, status, method, length, announced) => {
    let taken = false;
    handler = (exchange) => {
      exchange.sendHead(status, "", [], length);
      taken = exchange.sendData(Buffer.from("never"));
      exchange.end();
    };
    const result = await ask(session, { ":method": method });
    expect([result, taken]).toMatchObject([{ status, body: "", code: 0 }, true]);
    expect(result.headers["content-length"]).toBe(announced);
    expect(last.bodyBytesSent).toBe(0);
  });

  test("of unknown length is streamed: what is flushed arrives at once", async () => {
    handler = (exchange) => {
      exchange.sendHead(200, "", [], -1);
      exchange.sendData(Buffer.from("first"));
      exchange.flush();
    };
    const stream = session.request({ ":authority": "app.example" });
    const result = responseOf(stream);
    await new Promise((resolve) => stream.once("data", resolve));
    last.sendData(Buffer.from("second"));
    last.end();
    expect(await result).toMatchObject({ status: 200, body: "firstsecond", code: 0 });
    expect(last.bodyBytesSent).toBe(11);
  });

  test("may be flushed with its head only", async () => {
    handler = (exchange) => {
      exchange.sendHead(200, "", [], -1);
      exchange.flush();
    };
    const stream = session.request({ ":authority": "app.example" });
    const result = responseOf(stream);
    await new Promise((resolve) => stream.once("response", resolve));
    last.end();
    expect(await result).toMatchObject({ status: 200, body: "", code: 0 });
  });

  test("that is given up resets the stream, whether or not the head was sent", async () => {
    handler = (exchange) => exchange.abort();
    expect(await ask(session, {})).toMatchObject({ status: 0, code: 2 });
    handler = (exchange) => {
      exchange.sendHead(200, "", [], 10);
      exchange.sendData(Buffer.from("12345"));
      exchange.flush();
      setTimeout(() => exchange.abort(), 20);
    };
    expect(await ask(session, {})).toMatchObject({ status: 200, body: "12345", code: 2 });
  });

  test.each<[string, number, () => void]>([
    ["by the action", 0, () => last.abort()],
    ["by the action behind a small write", 20_000, () => last.abort()],
    ["by the action behind a write that is stuck", 100_000, () => last.abort()],
    ["with its connection", 0, () => server.connections.closeAll()],
    ["with its connection behind a small write", 20_000, () => server.connections.closeAll()],
  ])("that is cut off %s never ends as if complete", async (_what, more, cut) => {
    handler = (exchange) => {
      exchange.sendHead(200, "", [], -1);
      exchange.sendData(Buffer.from("12345"));
      exchange.flush();
    };
    const client = await RawClient.connect(server.port);
    client.request(1, GET);
    await client.next((f) => f.type === Frame.DATA);
    if (more > 0) last.sendData(Buffer.alloc(more));
    cut();
    await client.next((f) => f.type === Frame.RST_STREAM || f.type === Frame.GOAWAY);
    await sleep(50);
    expect(client.frames.filter((f) => f.stream === 1 && f.type === Frame.DATA && f.flags !== 0)).toEqual([]);
    client.destroy();
  });

  test("with a head longer than 64 KiB arrives", async () => {
    const long = Array.from({ length: 12 }, (_, i) => [`X-${i}`, "\u007e".repeat(8_000)]).flat();
    handler = (exchange) => respond(exchange, 200, "body", long);
    const result = await ask(session, {});
    expect(result).toMatchObject({ status: 200, code: 0, body: "body" });
    expect(String(result.headers["x-11"])).toHaveLength(8_000);
  });

  test("comes after 103 and 100", async () => {
    handler = (exchange) => {
      exchange.sendInformational(103, "", ["Link", "</a.css>; rel=preload"]);
      const sink = new KeepingSink();
      sink.onDone = () => {
        exchange.sendHead(200, "", [], -1);
        // Too late.
        exchange.sendInformational(103, "", ["Link", "</b.css>"]);
        exchange.sendData(Buffer.from(sink.body));
        exchange.end();
      };
      sink.read(exchange);
    };
    const result = await ask(session, { ":method": "POST", expect: "100-continue" }, "abc");
    expect(result).toMatchObject({ status: 200, body: "abc", code: 0 });
    expect(result.informational.map((h) => h[":status"])).toEqual([103, 100]);
    expect(result.informational[0]!["link"]).toBe("</a.css>; rel=preload");
  });

  test("100 is not sent to a client that does not wait for it", async () => {
    handler = echo;
    const result = await ask(session, { ":method": "POST" }, "abc");
    expect(result.informational).toEqual([]);
  });
});

describe("finished", () => {
  test("is called exactly once, however an exchange ends", async () => {
    const from = server.finished.length;
    await ask(session, {});
    handler = (exchange) => exchange.abort();
    await ask(session, {});
    handler = () => undefined;
    const gone = session.request({ ":authority": "app.example" });
    gone.on("error", () => undefined);
    await eventually(() => server.finished.length === from + 2);
    await sleep(20);
    gone.close(8);
    await eventually(() => server.finished.length === from + 3);
    last.end();
    last.abort();
    const left = session.request({ ":authority": "app.example" });
    left.on("error", () => undefined);
    await sleep(20);
    session.destroy();
    await eventually(() => server.finished.length === from + 4);
    expect(server.finished.slice(from).map((e) => e.status)).toEqual([200, 0, 0, 0]);
  });

  test.each([
    ["CANCEL", 8],
    ["NO_ERROR", 0],
    ["INTERNAL_ERROR", 2],
  ])("is released by a reset with %s, also for HEAD, and the body is cut off", async (_what, code) => {
    const sinks: KeepingSink[] = [];
    const left: Exchange[] = [];
    handler = (exchange) => {
      left.push(exchange);
      const sink = new KeepingSink();
      sinks.push(sink);
      if (exchange.request.method === "PUT") sink.read(exchange);
      else exchange.hold(sink);
    };
    const client = await RawClient.connect(server.port);
    for (const [stream, method] of [
      [1, "HEAD"],
      [3, "PUT"],
    ] as const) {
      const before = server.finished.length;
      const fields = GET.map(([name, value]) => [name, name === ":method" ? method : value] as const);
      client.request(stream, fields, method === "HEAD" ? END_STREAM : 0);
      if (method === "PUT") client.send(Frame.DATA, 0, stream, "abc");
      await sleep(30);
      client.send(Frame.RST_STREAM, 0, stream, Buffer.from([0, 0, 0, code]));
      await eventually(() => server.finished.length === before + 1);
    }
    const { length } = server.finished;
    // What an action does with it from then on is nothing, and it is not finished once more.
    for (const exchange of left) {
      respond(exchange, 200, "late");
      exchange.abort();
    }
    client.destroy();
    expect(server.finished.length).toBe(length);
    expect(sinks.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(sinks[1]).toMatchObject({ body: "abc", ended: false, aborted: true });
  });

  test("writes one access log line", async () => {
    await ask(session, { ":path": "/logged" });
    const lines = (await server.accessLog())
      .split("\n")
      .filter((line) => line.includes("GET /logged HTTP/2.0"));
    expect(lines).toHaveLength(1);
  });
});

describe("a body over the limit", () => {
  test("is refused by its declared length, and the response arrives", async () => {
    const body = Buffer.alloc(3_000_000);
    const result = await ask(session, { ":method": "PUT", "content-length": body.length }, body);
    expect(result).toMatchObject({ status: 413, code: 0 });
  });

  test("is refused as it arrives, and the sink is notified", async () => {
    const sink = new KeepingSink();
    handler = (exchange) => sink.read(exchange);
    // Node's client never ends a stream that is reset while its body waits for a window, so all of it fits.
    const result = await ask(session, { ":method": "PUT" }, Buffer.alloc(1_200_000));
    expect(result).toMatchObject({ status: 413, code: 0 });
    expect(sink).toMatchObject({ aborted: true, ended: false });
  });
});

test("fields that cannot be sent end their request only", async () => {
  const from = server.finished.length;
  handler = (exchange) => respond(exchange, 200, "body", ["bad name", "x"]);
  expect(await ask(session, {})).toMatchObject({ status: 0, code: 2 });
  handler = (exchange) => {
    exchange.sendInformational(103, "", ["bad name", "x"]);
    respond(exchange, 200);
  };
  expect(await ask(session, {})).toMatchObject({ status: 0, code: 2 });
  handler = (exchange) => respond(exchange, 200);
  expect((await ask(session, {})).status).toBe(200);
  expect(await server.errorLog()).toContain("response cannot be sent");
  // Nothing came after the interim response that could not be sent.
  expect(server.finished.slice(from).map((exchange) => exchange.status)).toEqual([200, 0, 200]);
});

test("an action that throws ends its request only", async () => {
  handler = () => {
    throw new Error("fault");
  };
  expect((await ask(session, {})).status).toBe(500);
  handler = (exchange) => respond(exchange, 200);
  expect((await ask(session, {})).status).toBe(200);
});
