import type { WholeRequest } from "../http2RawClient.js";

type Fields = WholeRequest["fields"];

/** A request over HTTP/2: what is a line of HTTP/1.1 may be in any field of it. */
export interface Http2Case extends WholeRequest {
  readonly name: string;
  /** Status, or the kind of error. A refused request reaches no upstream as a whole. */
  readonly outcome: "200" | "400" | "404" | "405" | "414" | "RST PROTOCOL_ERROR" | "GOAWAY COMPRESSION_ERROR";
}

const SMUGGLED = "GET /sync/smuggled HTTP/1.1\r\nHost: sync.example\r\n\r\n";

const PSEUDO: Readonly<Record<string, string>> = { ":method": "POST", ":scheme": "https",
  ":authority": "sync.example", ":path": "/sync/case" };

/** The usual pseudo-fields, some with other values or without (undefined), and fields after them. */
function request(changes: Readonly<Record<string, string | undefined>>, more: Fields = []): Fields {
  const all = Object.entries({ ...PSEUDO, ...changes });
  return [...all.filter((field): field is [string, string] => field[1] !== undefined), ...more];
}

const plain = (...more: Fields): Fields => request({}, more);

const rows = (
  family: string,
  outcome: Http2Case["outcome"],
  fields: (value: string) => Fields,
  values: readonly string[],
): Http2Case[] =>
  values.map((value) => ({ name: `${family} ${JSON.stringify(value)}`, fields: fields(value), outcome }));

/** What ends a line, or a field, or a message of HTTP/1.1 once it is written out. */
const INJECTED = [
  "a\r\nX-Injected: b", "a\r\n\r\nGET /sync/smuggled HTTP/1.1\r\nHost: sync.example\r\n\r\n", "a\nX-Injected: b",
  "a\rX-Injected: b", "a\0b", "a\x01b", "a\x7fb",
];

/** Downgrade injection (RFC 9113, 8.2.1 and 10.3). */
const INJECTIONS: readonly Http2Case[] = [
  ...rows("value", "RST PROTOCOL_ERROR", (value) => plain(["x-a", value]), INJECTED),
  ...rows("value", "RST PROTOCOL_ERROR", (value) => plain(["x-a", value]), [
    " a", "a ", "\ta", "a\t", "\r\n", "\n", "\0",
  ]),
  ...rows("cookie", "RST PROTOCOL_ERROR", (value) => plain(["cookie", "a=b"], ["cookie", value]), [
    "a\r\nx: y", "a\0",
  ]),
  ...rows("name", "RST PROTOCOL_ERROR", (name) => plain([name, "b"]), [
    "x-a: b\r\nx-injected", "x-a\r\nx-injected", "x-a\r\n\r\nget /sync/smuggled http/1.1\r\nx", "x-a:", "x-a :",
    "x a", " x-a", "x-a ", "x\0a", "x\na", "x\x7fa", "x\xe4a", "x(a)", "", "X-A", "x-A",
    "transfer-encoding: chunked\r\nx", "content-length:", ":", ":x", "::path",
  ]),
  ...rows("method", "RST PROTOCOL_ERROR", (value) => request({ ":method": value }), [
    "GET /sync/smuggled HTTP/1.1\r\nHost: sync.example\r\n\r\nPOST", "GET /sync/smuggled", "GET\r\n", "GET\0", " GET",
    "GET ", "G(T", "\xe4", "",
  ]),
  ...rows("path", "RST PROTOCOL_ERROR", (value) => request({ ":path": value }), [
    "/sync/case HTTP/1.1\r\nX-Injected: b\r\nX:", "/sync/case HTTP/1.1", "/sync/ca se", "/sync/case\r\n",
    "/sync/case\n", "/sync/\0case", "/sync/\x01case", "/sync/\x7fcase", "/sync/\tcase", "sync/case",
    "http://sync.example/sync/case", "?x", "",
  ]),
  ...rows("path", "400", (value) => request({ ":path": value }), [
    "/sync/%00", "/sync/%zz", "/../sync", "/sync/../../x", "/sync/case#frag", "*",
  ]),
  ...rows("path", "200", (value) => request({ ":path": value }), [
    "/sync/%0d%0aX:%20y", "/%73ync/%0d%0a", "/synchttp/%0d%0aX:%20y", "/synchttp/../synchttp/%0d%0aX:%20y",
    "/sync/\xc4\x8a", "//sync//case",
  ]),
  ...rows("authority", "RST PROTOCOL_ERROR", (value) => request({ ":authority": value }), [
    "sync.example\r\nX-Injected: b", "sync.example\0", "sync.example\n", "sync.example, other.example",
    "sync example", "",
  ]),
  ...rows("authority", "400", (value) => request({ ":authority": value }), [
    "user@sync.example", "sync.example/sync", "sync..example", "sync.example:x", "sync.example#", "[::1",
  ]),
  ...rows("scheme", "400", (value) => request({ ":scheme": value }), [
    "ftp", "HTTPS", "https://sync.example/x?", "javascript",
  ]),
  ...rows("scheme", "RST PROTOCOL_ERROR", (value) => request({ ":scheme": value }), ["https\r\nX: y", "https\0", ""]),
];

/** Fields that frame a message of HTTP/1.1, or its connection (RFC 9113, 8.2.2). */
const FRAMING: readonly Http2Case[] = [
  ...rows("transfer-encoding", "RST PROTOCOL_ERROR", (value) => plain(["transfer-encoding", value]), [
    "chunked", "identity", "", "trailers",
  ]),
  ...rows("connection field", "RST PROTOCOL_ERROR", (name) => plain([name, "x"]), [
    "connection", "keep-alive", "proxy-connection", "upgrade", "te",
  ]),
  { name: "upgrade: websocket", fields: plain(["upgrade", "websocket"]), outcome: "RST PROTOCOL_ERROR" },
  { name: "te: trailers", fields: plain(["te", "trailers"]), outcome: "200" },
  { name: "te: trailers, chunked", fields: plain(["te", "trailers, chunked"]), outcome: "RST PROTOCOL_ERROR" },
  { name: "transfer_encoding is dropped", fields: plain(["transfer_encoding", "chunked"]), data: [SMUGGLED],
    outcome: "200" },
  { name: "content_length is dropped", fields: plain(["content_length", "0"]), data: [SMUGGLED], outcome: "200" },
  ...rows("content-length", "RST PROTOCOL_ERROR", (value) => plain(["content-length", value]), [
    "+3", "-1", "0x3", "3, 3", "3 3", "", "3\r\nX: y", "\xb3", "3.0", "NaN", "1", "99999999999999999999",
  ]),
  { name: "two equal lengths", fields: plain(["content-length", "3"], ["content-length", "3"]), data: ["abc"],
    outcome: "RST PROTOCOL_ERROR" },
  { name: "two lengths", fields: plain(["content-length", "0"], ["content-length", "3"]), data: ["abc"],
    outcome: "RST PROTOCOL_ERROR" },
  { name: "a length of 0 and a request in DATA (H2.CL)", fields: plain(["content-length", "0"]), data: [SMUGGLED],
    outcome: "RST PROTOCOL_ERROR" },
  { name: "a length that is less than DATA (H2.CL)", fields: plain(["content-length", "3"]),
    data: [`abc${SMUGGLED}`], outcome: "RST PROTOCOL_ERROR" },
  { name: "a length that is more than DATA", fields: plain(["content-length", "100"]), data: ["abc"],
    outcome: "RST PROTOCOL_ERROR" },
  { name: "a length, exceeded by a later frame", fields: plain(["content-length", "3"]), data: ["abc", SMUGGLED],
    outcome: "RST PROTOCOL_ERROR" },
  { name: "a body that is a request, with its length", fields: plain(["content-length", String(SMUGGLED.length)]),
    data: [SMUGGLED], outcome: "200" },
  { name: "a body that is a request, without a length (H2.TE)", fields: plain(), data: [SMUGGLED], outcome: "200" },
  { name: "a body that looks like the end of chunks", fields: plain(), data: [`0\r\n\r\n${SMUGGLED}`], outcome: "200" },
  { name: "a body in many frames", fields: plain(), data: ["a", "", "bc", "\r\n", "0", "\r\n\r\n"], outcome: "200" },
  { name: "an empty body", fields: plain(), data: [""], outcome: "200" },
  { name: "an empty body with a length", fields: plain(["content-length", "0"]), data: [""], outcome: "200" },
  { name: "no body, no length", fields: plain(), outcome: "200" },
  { name: "trailers that frame", fields: plain(["trailer", "content-length"]), data: ["abc"],
    trailers: [["content-length", "500"]], outcome: "200" },
  { name: "trailers that inject", fields: plain(), data: ["abc"],
    trailers: [["x-a", "b\r\nGET /sync/smuggled HTTP/1.1"]], outcome: "RST PROTOCOL_ERROR" },
  { name: "transfer-encoding in trailers", fields: plain(), data: ["abc"],
    trailers: [["transfer-encoding", "chunked"]], outcome: "RST PROTOCOL_ERROR" },
  { name: "a pseudo-field in trailers", fields: plain(), data: ["abc"], trailers: [[":path", "/sync/smuggled"]],
    outcome: "RST PROTOCOL_ERROR" },
];

/** Pseudo-fields: each once, first, and of a request (RFC 9113, 8.3). */
const PSEUDO_FIELDS: readonly Http2Case[] = [
  ...rows("without", "RST PROTOCOL_ERROR", (name) => request({ [name]: undefined }), [
    ":method", ":scheme", ":path", ":authority",
  ]),
  ...rows("twice", "RST PROTOCOL_ERROR", (name) => [...request({}), [name, PSEUDO[name]!]], [
    ":method", ":scheme", ":path", ":authority",
  ]),
  ...rows("behind a field", "RST PROTOCOL_ERROR",
    (name) => [...request({ [name]: undefined }), ["x-a", "b"], [name, PSEUDO[name]!]],
    [":method", ":scheme", ":path", ":authority"]),
  ...rows("of no request", "RST PROTOCOL_ERROR", (name) => request({ [name]: "200" }), [
    ":status", ":host", ":Method", ":version", ":protocol ",
  ]),
  { name: "Host instead of :authority", fields: request({ ":authority": undefined }, [["host", "sync.example"]]),
    outcome: "200" },
  { name: "Host equal to :authority", fields: plain(["host", "sync.example"]), outcome: "200" },
  { name: "Host equal but for case", fields: plain(["host", "SYNC.example"]), outcome: "200" },
  { name: "Host that differs", fields: plain(["host", "other.example"]), outcome: "400" },
  { name: "Host with another port", fields: plain(["host", "sync.example:1"]), outcome: "400" },
  { name: "an empty Host beside :authority", fields: plain(["host", ""]), outcome: "400" },
  { name: "two Hosts", fields: plain(["host", "sync.example"], ["host", "sync.example"]),
    outcome: "RST PROTOCOL_ERROR" },
  { name: "two Hosts, no :authority",
    fields: request({ ":authority": undefined }, [["host", "sync.example"], ["host", "sync.example"]]),
    outcome: "RST PROTOCOL_ERROR" },
  { name: "CONNECT", fields: [[":method", "CONNECT"], [":authority", "sync.example:443"]], outcome: "400" },
  { name: "CONNECT with :path", fields: request({ ":method": "CONNECT" }), outcome: "RST PROTOCOL_ERROR" },
  { name: "TRACE", fields: request({ ":method": "TRACE" }), outcome: "405" },
  { name: "OPTIONS *", fields: request({ ":method": "OPTIONS", ":path": "*" }), outcome: "400" },
  { name: ":protocol without CONNECT", fields: request({ ":protocol": "websocket" }), outcome: "RST PROTOCOL_ERROR" },
  ...rows("method", "200", (value) => request({ ":method": value }), ["VERSION-CONTROL", "foo_BAR"]),
  { name: "a :path twice that differs", fields: [...request({}), [":path", "/other"]], outcome: "RST PROTOCOL_ERROR" },
  { name: "PRI", fields: request({ ":method": "PRI" }), outcome: "200" },
  { name: "a path of no route", fields: request({ ":path": "/nowhere" }), outcome: "404" },
  { name: "a path of 9 KiB", fields: request({ ":path": `/sync/${"a".repeat(9_000)}` }), outcome: "414" },
  { name: "201 fields", fields: plain(...Array.from({ length: 201 }, () => ["x-a", "b"] as const)), outcome: "400" },
  ...rows("a field twice:", "400", (name) => plain([name, "a"], [name, "b"]), [
    "authorization", "if-match", "if-none-match", "if-modified-since", "expect",
  ]),
  { name: "a scheme of the other kind", fields: request({ ":scheme": "http" }), outcome: "200" },
  { name: "a cookie in crumbs", fields: plain(["cookie", "a=b"], ["x-a", "b"], ["cookie", "c=d"]), outcome: "200" },
  { name: "a forwarding chain", fields: plain(["x-forwarded-for", "1.2.3.4"], ["x-forwarded-for", "5.6.7.8"]),
    outcome: "200" },
];

export const HTTP2_CASES: readonly Http2Case[] = [...INJECTIONS, ...FRAMING, ...PSEUDO_FIELDS];
