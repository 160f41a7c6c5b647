import { HTTP2_CASES } from "../../testkit/cases/http2.js";
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
const long = (count: number): string => "x".repeat(count);

async function outcome(fields: Fields): Promise<string> {
  const client = await RawClient.connect(server.port);
  client.request(1, fields);
  const result = await client.outcome(1);
  client.destroy();
  return result;
}

/** In proof/hostile, parsers read as well what comes of them at the upstream; here there is a route for all. */
test.each(HTTP2_CASES.filter(({ outcome }) => outcome !== "404"))("$name", async ({ outcome, ...row }) => {
  const client = await RawClient.connect(server.port);
  client.whole(1, row);
  expect(await client.outcome(1)).toBe(outcome);
  if (row.data === undefined) expect(seen).toHaveLength(outcome === "200" ? 1 : 0);
  client.destroy();
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
