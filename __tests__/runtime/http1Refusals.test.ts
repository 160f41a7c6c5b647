import { setTimeout as sleep } from "node:timers/promises";
import { connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { proxiedRoutes, startProxy, type TestProxy } from "../../testkit/harness.js";

/**
 * What is refused (decisions 3.1): each message gets the status and the connection is closed, and no byte of
 * it reaches the upstream. A request is sent after it, to show that nothing after a refused message is read either.
 */
const SMUGGLED = "GET /sync/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
const get = (fields: string): string => `GET /sync/ HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const post = (fields: string, body = ""): string =>
  `POST /synchttp/x HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;

const CASES: readonly [string, string, number][] = [
  ["CL with TE", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400],
  ["TE with CL", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), 400],
  ["two CL", post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400],
  ["two equal CL", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"), 400],
  ["CL list", post("Content-Length: 1, 1\r\n", "a"), 400],
  ["signed CL", post("Content-Length: +1\r\n", "a"), 400],
  ["negative CL", post("Content-Length: -1\r\n", "a"), 400],
  ["hex CL", post("Content-Length: 0x1\r\n", "a"), 400],
  ["empty CL", post("Content-Length: \r\n"), 400],
  ["CL beyond 2^53", post("Content-Length: 9007199254740993\r\n"), 400],
  ["blank inside CL", post("Content-Length: 1 1\r\n", "a"), 400],
  ["TE gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n"), 501],
  ["TE in two fields", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501],
  ["TE identity", post("Transfer-Encoding: identity\r\n"), 501],
  ["TE xchunked", post("Transfer-Encoding: xchunked\r\n"), 501],
  ["TE chunked;x", post("Transfer-Encoding: chunked;x\r\n"), 501],
  ["TE with vertical tab", post("Transfer-Encoding: \x0bchunked\r\n"), 400],
  [
    "TE in HTTP/1.0",
    "POST /synchttp/x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  ["no Host", "GET /sync/ HTTP/1.1\r\n\r\n", 400],
  ["empty Host", "GET /sync/ HTTP/1.1\r\nHost:\r\n\r\n", 400],
  ["two Hosts", "GET /sync/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400],
  ["Host with a path", "GET /sync/ HTTP/1.1\r\nHost: a/b\r\n\r\n", 400],
  ["Host with user info", "GET /sync/ HTTP/1.1\r\nHost: u@a\r\n\r\n", 400],
  ["Host list", "GET /sync/ HTTP/1.1\r\nHost: a, b\r\n\r\n", 400],
  ["absolute-form with a bad Host", "GET http://a/sync/ HTTP/1.1\r\nHost: a/b\r\n\r\n", 400],
  ["absolute-form with user info", "GET http://u@a/sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["absolute-form of another scheme", "GET ftp://a/sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["absolute-form behind something", "GET xhttp://a/sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["absolute-form in a query", "GET ?http://a/sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["absolute-form without a host", "GET http:///sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["absolute-form of one slash", "GET http:/a/sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["Connection with hundreds of options", get(`Connection: ${"a,".repeat(513)}\r\n`), 400],
  ["hundreds of Connection fields", get("Connection: close, keep-alive\r\n".repeat(64)), 400],
  ["space before colon", get("X-A : b\r\n"), 400],
  ["CL with space before colon", post("Content-Length : 5\r\n", "abcde"), 400],
  ["tab before colon", get("X-A\t: b\r\n"), 400],
  ["no colon", get("X-A\r\n"), 400],
  ["empty name", get(": b\r\n"), 400],
  ["name that is not a token", get("X(A): b\r\n"), 400],
  ["name with a byte above 0x7f", get("X\xe4: b\r\n"), 400],
  ["obs-fold", get("X-A: b\r\n c\r\n"), 400],
  ["fold of the first field", "GET /sync/ HTTP/1.1\r\n Host: a\r\n\r\n", 400],
  ["bare LF after a field", get("X-A: b\nX-B: c\r\n"), 400],
  ["bare LF after the request line", "GET /sync/ HTTP/1.1\nHost: a\r\n\r\n", 400],
  ["only LFs", "GET /sync/ HTTP/1.1\nHost: a\n\n", 400],
  ["bare CR in a field", get("X-A: b\rX-B: c\r\n"), 400],
  ["NUL in a field", get("X-A: b\0c\r\n"), 400],
  ["DEL in a field", get("X-A: b\x7fc\r\n"), 400],
  ["escape in a field", get("X-A: \x1b[2J\r\n"), 400],
  ["raw space in the target", "GET /sync/a b HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["tab as separator", "GET\t/sync/\tHTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["two spaces", "GET  /sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["NUL in the target", "GET /sync/\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["encoded NUL in the target", "GET /sync/%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["bad percent-encoding", "GET /sync/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["target above the root", "GET /sync/../../x HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["target without slash", "GET sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["TRACE", "TRACE /sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 405],
  ["HTTP/0.9", "GET /sync/\r\n\r\n", 400],
  ["HTTP/2.0", "GET /sync/ HTTP/2.0\r\nHost: a\r\n\r\n", 505],
  ["HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
  ["lower-case version", "GET /sync/ http/1.1\r\nHost: a\r\n\r\n", 400],
  ["version of two digits", "GET /sync/ HTTP/1.11\r\nHost: a\r\n\r\n", 400],
  ["method that is not a token", "G(T /sync/ HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
  ["request line over the limit", `GET /sync/${"a".repeat(9000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
  ["request line without end", `GET /sync/${"a".repeat(9000)}`, 414],
  ["head over the limit", get(`X-A: ${"a".repeat(4000)}\r\n`.repeat(9)), 400],
  [
    "head over the limit, without end",
    `GET /sync/ HTTP/1.1\r\nHost: a\r\n${`X-A: ${"a".repeat(4000)}\r\n`.repeat(9)}`,
    400,
  ],
  ["too many fields", get("X-A: b\r\n".repeat(201)), 400],
  ["Expect of something else", post("Expect: 200-ok\r\nContent-Length: 1\r\n", "a"), 417],
  ["Expect of something more", get("Expect: 100-continue, 200-ok\r\n"), 417],
];

/** Bodies in the chunked coding that break it; the upstream may have seen the good part, never an end. */
const CHUNKS: readonly [string, string][] = [
  ["bare LF after the size", "1\na\r\n0\r\n\r\n"],
  ["bare CR after the size", "1\ra\r\n0\r\n\r\n"],
  ["bare LF after the data", "1\r\na\n0\r\n\r\n"],
  ["no line end after the data", "1\r\nab0\r\n\r\n"],
  ["bare LF at the end", "1\r\na\r\n0\r\n\n"],
  ["negative size", "-1\r\na\r\n0\r\n\r\n"],
  ["0x size", "0x1\r\na\r\n0\r\n\r\n"],
  ["signed size", "+1\r\na\r\n0\r\n\r\n"],
  ["blank before the size", " 1\r\na\r\n0\r\n\r\n"],
  ["blank behind the size", "1 \r\na\r\n0\r\n\r\n"],
  ["empty size", "\r\na\r\n0\r\n\r\n"],
  ["size that overflows", "fffffffffffffffff\r\na\r\n0\r\n\r\n"],
  ["control byte in an extension", "1;a=\x01\r\na\r\n0\r\n\r\n"],
  ["endless extension", `1;${"a".repeat(5000)}\r\na\r\n0\r\n\r\n`],
  ["folded trailer", "1\r\na\r\n0\r\n x: y\r\n\r\n"],
  ["trailer without a colon", "1\r\na\r\n0\r\nabc\r\n\r\n"],
  ["trailer without a name", "1\r\na\r\n0\r\n: y\r\n\r\n"],
  ["trailer with a blank before its colon", "1\r\na\r\n0\r\nx : y\r\n\r\n"],
  ["trailer with a name that is not a token", "1\r\na\r\n0\r\nx(y: z\r\n\r\n"],
  ["data behind the last chunk", "1\r\na\r\n0\r\nGET /sync/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["NUL in a trailer", "1\r\na\r\n0\r\nx: \0\r\n\r\n"],
  ["endless trailers", `1\r\na\r\n0\r\n${"x: y\r\n".repeat(4000)}\r\n`],
];

let upstream: RawUpstream;
let proxy: TestProxy;

beforeAll(async () => {
  upstream = await new RawUpstream(responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).listen();
  proxy = await startProxy({
    routes: proxiedRoutes(),
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});

afterAll(async () => {
  await proxy.close();
  await upstream.close();
});

test.each(CASES)("refused: %s", async (_name, message, status) => {
  const before = upstream.received;
  const client = await connectTo(proxy.port);
  client.send(message + SMUGGLED);
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  expect(client.received.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  expect(client.received).toContain("\r\nConnection: close\r\n");
  expect(upstream.received).toBe(before);
  client.socket.destroy();
});

test.each(CASES.filter(([, message]) => message.length < 600))(
  "refused byte by byte: %s",
  async (_name, message, status) => {
    const client = await connectTo(proxy.port);
    client.socket.setNoDelay(true);
    for (const byte of message) {
      if (client.ended) break;
      client.send(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.until((peer) => peer.ended || peer.closed);
    expect(client.received.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
    client.socket.destroy();
  },
);

/** A client reads no body after a response to HEAD: one would be its next response. */
test.each([
  ...["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "X-A : b\r\n", "Expect: x\r\n"].map(
    (fields) => `HEAD /sync/ HTTP/1.1\r\nHost: a\r\n${fields}\r\n`,
  ),
  "HEAD /sync/%zz HTTP/1.1\r\nHost: a\r\n\r\n",
  "HEAD /sync/ HTTP/1.1\r\n\r\n",
  "HEAD /sync/ HTTP/3.1\r\nHost: a\r\n\r\n",
  `HEAD /sync/${"a".repeat(9000)}`,
])("a HEAD request is refused without a body: %j", async (message) => {
  const client = await connectTo(proxy.port);
  client.send(message + SMUGGLED);
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received).toMatch(/^HTTP\/1\.1 [45]\d\d [^]*?\r\n\r\n$/);
  client.socket.destroy();
});

test.each(CHUNKS)("chunked coding refused: %s", async (_name, body) => {
  const from = upstream.connections.length;
  const client = await connectTo(proxy.port);
  client.send(post("Transfer-Encoding: chunked\r\n", body) + SMUGGLED);
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received.slice(0, 12)).toBe("HTTP/1.1 400");
  client.socket.destroy();
  for (const connection of upstream.connections.slice(from)) {
    await connection.until((peer) => peer.closed || peer.ended);
    expect(connection.received).not.toContain("\r\n0\r\n\r\n");
    expect(connection.received).not.toContain("smuggled");
  }
});

test("every refusal is one line in the access log, with the request line made harmless", async () => {
  await exchange(proxy.port, 'GET /sync/"\x01\xe4 HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await proxy.accessLog()).toContain('"GET /sync/\\x22\\x01\\xE4 HTTP/1.1" 400 ');
});

/** What its line was when it was refused stands in the log, in however many pieces it came and whatever was refused. */
test.each([
  ["no version", ["GET /sync/\xe4pie", "ces\r\n\r\n"], "GET /sync/\\xE4pieces"],
  ["a bad field", ["GET /sync/pie", "ces HTTP/1.1\r\nHo", "st : a\r\n\r\n"], "GET /sync/pieces HTTP/1.1"],
  [
    "a head that is too long",
    ["GET /sync/pieces HTTP/1.1\r", `\nX-A: ${"a".repeat(40_000)}`],
    "GET /sync/pieces HTTP/1.1",
  ],
  [
    "a line that is too long",
    ["GET /sync/pieces", "a".repeat(9_000)],
    `GET /sync/pieces${"a".repeat(2_032)}`,
  ],
])("the request line of what came in pieces and was refused for %s", async (_why, pieces, line) => {
  const before = (await proxy.accessLog()).length;
  const client = await connectTo(proxy.port);
  client.socket.setNoDelay(true);
  for (const piece of pieces) {
    client.send(piece);
    await sleep(50);
  }
  await client.until((peer) => peer.ended || peer.closed);
  client.socket.destroy();
  const logged = (await proxy.accessLog()).slice(before);
  expect(/"(.*?)" 4\d\d /.exec(logged)?.[1]).toBe(line);
});

describe("accepted, although unusual", () => {
  test.each([
    ["empty lines before the request line", `\r\n\r\n${get("")}`],
    ["HTTP/1.2, as 1.1", "GET /sync/ HTTP/1.2\r\nHost: a\r\n\r\n"],
    ["unknown method", "FOO_BAR /sync/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["VERSION-CONTROL", "VERSION-CONTROL /sync/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["bytes above 0x7f and braces in the target", 'GET /sync/\xe4|{}^"<>\\` HTTP/1.1\r\nHost: a\r\n\r\n'],
    ["absolute-form", "GET http://a:8/sync/x HTTP/1.1\r\nHost: b\r\n\r\n"],
    ["absolute-form in capitals", "GET HTTPS://A/sync/x HTTP/1.1\r\nHost: b\r\n\r\n"],
    ["no Host in HTTP/1.0", "GET /sync/ HTTP/1.0\r\n\r\n"],
    ["empty field value", get("X-A:\r\n")],
    ["blanks around a value", get("X-A: \t b \t \r\n")],
    ["Content-Length: 0", post("Content-Length: 0\r\n")],
    [
      "chunk extension and trailer",
      post("Transfer-Encoding: Chunked\r\n", "1;a=b\r\nx\r\n0\r\nT: u\r\n\r\n"),
    ],
    ["leading zeros in a chunk size", post("Transfer-Encoding: chunked\r\n", "0001\r\nx\r\n000\r\n\r\n")],
  ])("%s", async (_name, message) => {
    expect((await exchange(proxy.port, message)).status).toBe(200);
  });
});
