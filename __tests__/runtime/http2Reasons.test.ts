import {
  ACK,
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  GET,
  hpack,
  PADDED,
  PREFACE,
  PRIORITY,
  RawClient,
} from "../../testkit/http2RawClient.js";
import { type Http2Server, KeepingSink, respond, startHttp2Server } from "../../testkit/http2Server.js";

/** What the error log says of each rule of HTTP/2 that ends a connection: whoever wrote the client reads it there. */

let server: Http2Server;

beforeAll(async () => {
  server = await startHttp2Server({
    actions: {
      "/": (exchange) => {
        if (exchange.request.method === "GET") return respond(exchange, 200);
        const stuck = new KeepingSink();
        stuck.more = false;
        stuck.read(exchange);
      },
    },
    // A window grows to 1 MiB at most.
    config: { limits: { connectionsMax: 1 } },
  });
});
afterAll(() => server.close());

const SETTINGS = frame(Frame.SETTINGS, 0, 0, "");
const MOST = 0x7fff_ffff;

const headers = (stream: number, block: Buffer | string, flags = END_STREAM): Buffer =>
  frame(Frame.HEADERS, END_HEADERS | flags, stream, block);
const get = (stream: number): Buffer => headers(stream, hpack(GET));
const put = headers(1, hpack(GET.map(([name, value]) => [name, name === ":method" ? "PUT" : value])), 0);
const data = (stream: number, bytes: string, flags = 0): Buffer => frame(Frame.DATA, flags, stream, bytes);
const numbers = (type: number, stream: number, ...values: readonly number[]): Buffer => {
  const payload = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => payload.writeUInt32BE(value, 4 * i));
  return frame(type, 0, stream, payload);
};
const update = (stream: number, increment: number): Buffer => numbers(Frame.WINDOW_UPDATE, stream, increment);
const setting = (name: number, value: number): Buffer => {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(name);
  payload.writeUInt32BE(value, 2);
  return frame(Frame.SETTINGS, 0, 0, payload);
};
const many = (count: number, bytes: Buffer): Buffer => Buffer.concat(Array<Buffer>(count).fill(bytes));
const unended = frame(Frame.HEADERS, END_STREAM, 1, "");

test.each<[reason: string, ...frames: Buffer[]]>([
  ["client sent DATA on stream 0", data(0, "x")],
  ["DATA beyond the connection's window", put, many(65, data(1, "x".repeat(16_384)))],
  ["padded DATA frame without a pad length", put, data(1, "", PADDED)],
  ["DATA frame with more padding than payload", put, data(1, "\x02x", PADDED)],
  ["client sent DATA on an idle stream", data(1, "x")],
  ["client sent HEADERS on a stream that is not a client's", get(2)],
  ["client sent HEADERS on a lower stream than before", get(3), get(1)],
  ["client sent HEADERS on a closed stream", get(1), get(1)],
  ["client sent HEADERS of wrong length", headers(1, "", PADDED)],
  ["client sent HEADERS of wrong length", headers(1, "\0\0\0\0", PRIORITY)],
  ["client sent HEADERS with more padding than payload", headers(1, "\x01", PADDED)],
  ["invalid field block: index 0", headers(1, "\x80")],
  ["client sent CONTINUATION without HEADERS", frame(Frame.CONTINUATION, END_HEADERS, 1, hpack(GET))],
  ["client sent frame in the middle of a field block", unended, get(1)],
  ["field block is too long", unended, many(32, frame(Frame.CONTINUATION, 0, 1, ""))],
  ["client sent PRIORITY on stream 0", frame(Frame.PRIORITY, 0, 0, "\0\0\0\x01\0")],
  ["invalid PRIORITY", frame(Frame.PRIORITY, 0, 1, "\0\0\0\x01\0")],
  ["client sent RST_STREAM of wrong length", frame(Frame.RST_STREAM, 0, 1, "\0\0\0")],
  ["client sent RST_STREAM on an idle stream", numbers(Frame.RST_STREAM, 1, 8)],
  ["client sent SETTINGS on a stream", frame(Frame.SETTINGS, 0, 1, "")],
  ["client sent SETTINGS with ACK of wrong length", frame(Frame.SETTINGS, ACK, 0, "\0\x01\0\0\0\0")],
  ["SETTINGS of odd length", frame(Frame.SETTINGS, 0, 0, "\0\x01\0\0\0")],
  ["setting is neither 0 nor 1", setting(2, 2)],
  ["initial window too large", setting(4, MOST + 1)],
  ["maximum frame size out of range", setting(5, 16_383)],
  ["client sent PUSH_PROMISE", frame(Frame.PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\x02")],
  ["client sent PING on a stream", frame(Frame.PING, 0, 1, "12345678")],
  ["client sent PING of wrong length", frame(Frame.PING, 0, 0, "1234567")],
  ["client sent GOAWAY on a stream", numbers(Frame.GOAWAY, 1, 0, 0)],
  ["client sent GOAWAY of wrong length", numbers(Frame.GOAWAY, 0, 0)],
  ["client sent WINDOW_UPDATE of wrong length", frame(Frame.WINDOW_UPDATE, 0, 0, "\0\0\x01")],
  ["client sent WINDOW_UPDATE on an idle stream", update(1, 1)],
  ["client sent WINDOW_UPDATE of 0", update(0, 0)],
  ["window too large", update(0, MOST)],
  ["window too large", put, update(1, 1), setting(4, MOST)],
  ["frame too long", frame(Frame.PING, 0, 0, "x".repeat(16_385))],
])("%s", async (reason, ...frames) => {
  expect(await logged(PREFACE, SETTINGS, ...frames)).toBe(reason);
});

test.each<[reason: string, ...bytes: Buffer[]]>([
  ["invalid connection preface", Buffer.from(String(PREFACE).replace("SM", "SN"))],
  ["client sent no SETTINGS frame at the start", PREFACE, get(1)],
])("%s", async (reason, ...bytes) => {
  expect(await logged(...bytes)).toBe(reason);
});

/** Why these bytes end their connection. */
async function logged(...bytes: readonly Buffer[]): Promise<string | undefined> {
  const before = (await server.errorLog()).length;
  const client = await RawClient.connect(server.port, false);
  client.socket.write(Buffer.concat(bytes));
  await client.next((f) => f.type === Frame.GOAWAY);
  client.destroy();
  const lines = (await server.errorLog()).slice(before);
  return /connection closed: (.*), client: 127\.0\.0\.1/.exec(lines)?.[1];
}
