import { END_HEADERS, END_STREAM, Frame, GET, hpack, RawClient } from "../../testkit/http2RawClient.js";
import { type Http2Server, KeepingSink, respond, startHttp2Server } from "../../testkit/http2Server.js";
import { eventually } from "../../testkit/waiting.js";

/** Malformed requests, sent as raw frames: what RFC 9113, 8 calls malformed is reset, the rest refused by status. */

type Fields = readonly (readonly [string, string])[];

let server: Http2Server;
let seen: string[][];

beforeAll(async () => {
  server = await startHttp2Server({
    actions: {
      "/": (exchange) => {
        seen.push([...exchange.request.headers]);
        if (exchange.request.bodyLength === 0) return respond(exchange, 200);
        const sink = new KeepingSink();
        sink.onDone = () => respond(exchange, 200, sink.body);
        sink.read(exchange);
      },
    },
  });
});
beforeEach(() => (seen = []));
afterAll(() => server.close());

/** The plain GET with some pseudo-fields replaced, or taken out (`undefined`), and more fields after. */
function request(changes: Readonly<Record<string, string | undefined>>, more: Fields = []): Fields {
  const pseudo = GET.map(([name, value]) => [name, name in changes ? changes[name] : value] as const);
  const added = Object.keys(changes).filter((name) => !GET.some(([known]) => known === name));
  const all = [...pseudo, ...added.map((name) => [name, changes[name]] as const), ...more];
  return all.filter((field): field is readonly [string, string] => field[1] !== undefined);
}

const PLAIN = request({});
const withField = (name: string, value: string): Fields => [...PLAIN, [name, value]];
const long = (count: number): string => "x".repeat(count);

async function outcome(fields: Fields): Promise<string> {
  const client = await RawClient.connect(server.port);
  client.request(1, fields);
  const result = await client.outcome(1);
  client.destroy();
  return result;
}

test.each<[string, Fields, string]>([
  ["a plain request", PLAIN, "200"],
  ["te: trailers", withField("te", "trailers"), "200"],
  ["any method that is a token", request({ ":method": "VERSION-CONTROL" }), "200"],
  ["any method that is a token, in any case", request({ ":method": "foo_BAR" }), "200"],
  ["Host without :authority", request({ ":authority": undefined }, [["host", "app.example"]]), "200"],
  ["Host equal to :authority but for case", withField("host", "APP.example"), "200"],
  ["a scheme of another proxy's client", request({ ":scheme": "http" }), "200"],
])("%s is served", async (_what, fields, expected) => {
  expect(await outcome(fields)).toBe(expected);
});

test.each<[string, Fields]>([
  ["connection", withField("connection", "keep-alive")],
  ["keep-alive", withField("keep-alive", "timeout=5")],
  ["proxy-connection", withField("proxy-connection", "close")],
  ["transfer-encoding", withField("transfer-encoding", "chunked")],
  ["upgrade", withField("upgrade", "websocket")],
  ["te other than trailers", withField("te", "gzip")],
  ["an upper-case name", withField("X-Name", "x")],
  ["a pseudo-field after a regular one", [["x-name", "x"], ...PLAIN]],
  ["an unknown pseudo-field", request({ ":unknown": "x" })],
  ["a response pseudo-field", request({ ":status": "200" })],
  ["a pseudo-field twice", [...PLAIN, [":path", "/other"]]],
  ["no :method", request({ ":method": undefined })],
  ["no :scheme", request({ ":scheme": undefined })],
  ["no :path", request({ ":path": undefined })],
  ["an empty :path", request({ ":path": "" })],
  ["a :path without slash", request({ ":path": "path" })],
  ["neither :authority nor Host", request({ ":authority": undefined })],
  ["an empty :authority", request({ ":authority": "" })],
  ["two Hosts", [...request({ ":authority": undefined }), ["host", "app.example"], ["host", "app.example"]]],
  ["a control byte in :path", request({ ":path": "/\0" })],
  ["CR LF in :path", request({ ":path": "/ HTTP/1.1\r\nhost: x" })],
  ["a space in :path", request({ ":path": "/a b" })],
  ["a method that is not a token", request({ ":method": "GET /" })],
  ["CR LF in :authority", request({ ":authority": "app.example\r\nx: y" })],
  ["two equal Content-Lengths", [...PLAIN, ["content-length", "0"], ["content-length", "0"]]],
  ["a Content-Length that is not a number", withField("content-length", "+0")],
  ["a Content-Length where the stream has ended", withField("content-length", "5")],
  ["plain CONNECT with :path", request({ ":method": "CONNECT" })],
  [":protocol without CONNECT", request({ ":protocol": "websocket" })],
])("%s is a stream error", async (_what, fields) => {
  expect(await outcome(fields)).toBe("RST PROTOCOL_ERROR");
  expect(seen).toEqual([]);
});

test.each<[string, Fields, string]>([
  ["CONNECT", [GET[0]!, GET[2]!].map(([n, v]) => [n, n === ":method" ? "CONNECT" : v] as const), "400"],
  ["TRACE", request({ ":method": "TRACE" }), "405"],
  ["OPTIONS *", request({ ":method": "OPTIONS", ":path": "*" }), "400"],
  ["Host that differs from :authority", withField("host", "other.example"), "400"],
  ["an authority with user info", request({ ":authority": "user@app.example" }), "400"],
  ["an authority that is not a host", request({ ":authority": "a..b" }), "400"],
  ["a scheme that is not HTTP's", request({ ":scheme": "ftp" }), "400"],
  ["a target that climbs out of the root", request({ ":path": "/../x" }), "400"],
  ["a target with a bad percent-encoding", request({ ":path": "/%zz" }), "400"],
  ["a request line that is too long", request({ ":path": `/${long(9_000)}` }), "414"],
  ["too many fields", [...PLAIN, ...Array.from({ length: 201 }, (_, i) => [`x-${i}`, ""] as const)], "400"],
])("%s is refused", async (_what, fields, expected) => {
  expect(await outcome(fields)).toBe(expected);
  expect(seen).toEqual([]);
});

test("a refusal comes from the default server, with its version, and is logged", async () => {
  const client = await RawClient.connect(server.port);
  client.request(1, request({ ":method": "TRACE" }));
  const head = await client.next((f) => f.type === Frame.HEADERS);
  expect(head).toBeDefined();
  const page = await client.next((f) => f.type === Frame.DATA && f.payload.length > 0);
  expect(page!.payload.toString()).toContain("<hr><center>portico/");
  // The connection goes on.
  client.request(3, PLAIN);
  expect(await client.outcome(3)).toBe("200");
  client.destroy();
  expect(await server.accessLog()).toContain('"TRACE / HTTP/2.0" 405');
  expect(await server.errorLog()).toContain("client sent an invalid request: TRACE is not served, client:");
});

test.each([
  ["NUL in a value", "x-bad", "a\0b"],
  ["CR LF in a value", "x-bad", "a\r\nx-injected: b"],
  ["a control byte in a value", "x-bad", "a\x01b"],
  ["a name that is not a token", "x(bad)", "x"],
  ["an empty name", "", "x"],
  ["a blank at the beginning of a value", "x-bad", " x"],
  ["a blank at the end of a value", "x-bad", "x\t"],
])("%s is a stream error", async (_what, name, value) => {
  expect(await outcome([...PLAIN, [name, value], ["x-good", "1"]])).toBe("RST PROTOCOL_ERROR");
  expect(seen).toEqual([]);
});

test("a malformed request is logged once, as the 400 that it would be over HTTP/1.1", async () => {
  expect(await outcome([...request({ ":path": "/malformed" }), ["connection", "x"]])).toBe(
    "RST PROTOCOL_ERROR",
  );
  const lines = (await server.accessLog()).split("\n").filter((line) => line.includes("/malformed"));
  expect(lines).toEqual([expect.stringContaining('"GET /malformed HTTP/2.0" 400 0 ')]);
});

test.each([
  ["less DATA than Content-Length", "abc", /^RST PROTOCOL_ERROR$/],
  ["more DATA than Content-Length", "abcdefgh", /^RST PROTOCOL_ERROR$/],
])("%s is an error, and the body is not complete", async (_what, data, expected) => {
  const before = server.finished.length;
  const client = await RawClient.connect(server.port);
  client.request(1, [...request({ ":method": "PUT" }), ["content-length", "5"]], 0);
  client.send(Frame.DATA, END_STREAM, 1, data);
  expect(await client.outcome(1)).toMatch(expected);
  client.destroy();
  await eventually(() => server.finished.length === before + 1);
  expect(server.finished.at(-1)!.status).toBe(0);
});

test("trailers are accepted and dropped; pseudo-fields in them are a stream error", async () => {
  const client = await RawClient.connect(server.port);
  for (const [stream, trailer] of [
    [1, "x-trailer"],
    [3, ":path"],
  ] as const) {
    client.request(stream, request({ ":method": "PUT" }), 0);
    client.send(Frame.DATA, 0, stream, "abc");
    client.send(Frame.HEADERS, END_STREAM | END_HEADERS, stream, hpack([[trailer, "x"]]));
  }
  expect(await client.outcome(1)).toBe("200");
  expect(await client.outcome(3)).toBe("RST PROTOCOL_ERROR");
  client.destroy();
});

test("a head beyond every limit ends the stream, not the connection", async () => {
  const client = await RawClient.connect(server.port);
  // The limit holds from when the client acknowledged it.
  await client.next((f) => f.type === Frame.SETTINGS && f.flags === 1);
  const block = hpack([...PLAIN, ...Array.from({ length: 12 }, (_, i) => [`x-${i}`, long(8_000)] as const)]);
  for (let at = 0; at < block.length; at += 16_384) {
    const flags = (at === 0 ? END_STREAM : 0) | (at + 16_384 >= block.length ? END_HEADERS : 0);
    client.send(at === 0 ? Frame.HEADERS : Frame.CONTINUATION, flags, 1, block.subarray(at, at + 16_384));
  }
  expect(await client.outcome(1)).toBe("RST ENHANCE_YOUR_CALM");
  client.request(3, PLAIN);
  expect(await client.outcome(3)).toBe("200");
  client.destroy();
});
