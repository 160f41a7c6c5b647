import { headText as message } from "../messages.js";
import { get, HOST_LINE, type RequestCase, rows, SMUGGLED } from "./requestCase.js";

const line = (first: string): string => message(first, HOST_LINE);
const hosted = (...lines: readonly string[]): string => message("GET /sync/case HTTP/1.1", ...lines);

/** Ends of lines: CRLF and nothing else (RFC 9112, 2.2). */
const LINE_ENDS: readonly RequestCase[] = [
  ...rows("line ends", 400, (bytes) => bytes, [
    "GET /sync/case HTTP/1.1\nHost: sync.example\n\n", "GET /sync/case HTTP/1.1\nHost: sync.example\r\n\r\n",
    "GET /sync/case HTTP/1.1\r\nHost: sync.example\n\r\n", "GET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\n",
    "GET /sync/case HTTP/1.1\rHost: sync.example\r\r", "GET /sync/case HTTP/1.1\r\rHost: sync.example\r\n\r\n",
    "GET /sync/case HTTP/1.1\n\rHost: sync.example\n\r\n\r",
    "GET /sync/case HTTP/1.1\r\r\nHost: sync.example\r\r\n\r\r\n",
    "GET /sync/case HTTP/1.1\r\nHost: sync.example\r\r\n\r\n",
    "GET /sync/case HTTP/1.1\r\nHost: sync.example\r\nX: y\r\r\n\r\n",
    "GET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\r\n\r\n",
    "GET /sync/case HTTP/1.1\x0bHost: sync.example\r\n\r\n", "GET /sync/case HTTP/1.1\x85Host: sync.example\r\n\r\n",
    "GET /sync/case HTTP/1.1\0\r\nHost: sync.example\r\n\r\n",
    "\nGET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
    "\rGET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
    " \r\nGET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
    "\0GET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
    " GET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
    "\tGET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
    "\xef\xbb\xbfGET /sync/case HTTP/1.1\r\nHost: sync.example\r\n\r\n",
  ]),
  ...rows("empty lines before a request", "passes", (empty) => empty + get(), ["\r\n", "\r\n\r\n\r\n"]),
  { name: "a request behind a request", bytes: get() + SMUGGLED, outcome: "two" },
  { name: "an empty line between two requests", bytes: `${get()}\r\n${SMUGGLED}`, outcome: "two" },
];

/** Field lines (RFC 9112, 5). */
const FIELDS: readonly RequestCase[] = [
  ...rows("field", "passes", (field) => get(field), [
    "X-A:", "X-A: ", "X-A:b", "X-A: \t b \t ", "X-A: b: c", "X-A: \xe4\xff", "X-A: b,c;d=e", "X-A: \\",
    'X-A: "unclosed', "!#$%&'*+-.^`|~09AZaz: b", "X_A: b", "_: b", "X-A: \xc4\x8aX-B: c", "Cookie: a=b",
    "Accept: */*", "Keep-Alive: timeout=99", "Proxy-Connection: keep-alive", "Upgrade: h2c", "Upgrade: websocket",
    "TE: trailers", "Expect:", "HTTP2-Settings: AAMAAABkAAQAAP__", "Max-Forwards: 0",
    "Range: bytes=0-18446744073709551615", "X-Forwarded-For: 1.2.3.4\x85", 'Forwarded: for="_gazonk"',
    'Content-Type: multipart/form-data; boundary=""',
  ]),
  ...rows("field", 417, (field) => get(field), ["Expect: 200-maybe", "Expect: 100-continue, 200-maybe"]),
  ...rows("field", 400, (field) => get(field), [
    "X-A : b", "X-A\t: b", "X-A\xa0: b", " X-A: b", "\tX-A: b", "X-A: b\r\n c", "X-A: b\r\n\tc", "X-A:\r\n b", ": b",
    "X-A", "X A: b", "X(A): b", "X@A: b", "X,A: b", "X;A: b", "X=A: b", "X[A]: b", "X{A}: b", "X/A: b", "X\\A: b",
    'X"A: b', "X?A: b", "X<A>: b", "X\x00A: b", "X\x7fA: b", "X\xe4A: b", "X-A: \x00", "X-A: \x01", "X-A: \x08",
    "X-A: \x0b", "X-A: \x0c", "X-A: \x1b[0m", "X-A: \x1f", "X-A: \x7f", "X-A: b\rc", "X-A: b\nc", "X-A: b\r",
    "GET /sync/smuggled HTTP/1.1",
  ]),
  ...rows("a field twice:", 400, (name) => get(`${name}: a`, `${name.toLowerCase()}: b`), [
    "Authorization", "Content-Range", "Expect", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range",
    "If-Unmodified-Since",
  ]),
  ...rows("a field twice:", "passes", (name) => get(`${name}: a`, `${name.toLowerCase()}: b`), [
    "Accept", "Cookie", "Range", "User-Agent", "X-A",
  ]),
  { name: "201 fields", bytes: get(...Array<string>(200).fill("X-A: b")), outcome: 400 },
  { name: "200 fields", bytes: get(...Array<string>(199).fill("X-A: b")), outcome: "passes" },
  { name: "a head of 36 KiB", bytes: get(...Array<string>(9).fill(`X-A: ${"a".repeat(4_000)}`)), outcome: 400 },
  { name: "a head of 36 KiB without an end",
    bytes: `GET /sync/case HTTP/1.1\r\n${`X-A: ${"a".repeat(4_000)}\r\n`.repeat(9)}`, outcome: 400 },
  { name: "Connection with 513 options", bytes: get(`Connection: ${"a,".repeat(513)}`), outcome: 400 },
  { name: "64 Connection fields", bytes: get(...Array<string>(64).fill("Connection: close, keep-alive")),
    outcome: 400 },
  { name: "the first field folded", bytes: "GET /sync/case HTTP/1.1\r\n Host: sync.example\r\n\r\n", outcome: 400 },
  { name: "no Host in HTTP/1.0", bytes: "GET /sync/case HTTP/1.0\r\n\r\n", outcome: "last" },
  { name: "a field line of 30 KiB", bytes: get(`X-A: ${"b".repeat(30_000)}`), outcome: "passes" },
  { name: "a field line of 40 KiB", bytes: get(`X-A: ${"b".repeat(40_000)}`), outcome: 400 },
  { name: "a name of 40 KiB", bytes: get(`${"X".repeat(40_000)}: b`), outcome: 400 },
];

/** Request lines: method, one space, target, one space, version (RFC 9112, 3). */
const REQUEST_LINES: readonly RequestCase[] = [
  ...rows("request line", 400, line, [
    "GET  /sync/case HTTP/1.1", "GET /sync/case  HTTP/1.1", "GET\t/sync/case HTTP/1.1", "GET /sync/case\tHTTP/1.1",
    "GET /sync/case HTTP/1.1 ", "GET /sync/case HTTP/1.1\t", "GET /sync/case HTTP/1.1 HTTP/1.1",
    "GET /sync/case /sync/other HTTP/1.1", "GET /sync/ca se HTTP/1.1", "GET /sync/case", "GET /sync/case ", "GET",
    "GET HTTP/1.1", "GET  HTTP/1.1", "/sync/case HTTP/1.1", "GET\x0b/sync/case HTTP/1.1",
    "GET\x0c/sync/case\x0cHTTP/1.1", "GET\0/sync/case HTTP/1.1", "GET\xa0/sync/case HTTP/1.1",
    "G\xc4T /sync/case HTTP/1.1", "G(T /sync/case HTTP/1.1", "G,T /sync/case HTTP/1.1", "GET: /sync/case HTTP/1.1",
    "GET; /sync/case HTTP/1.1", '"GET" /sync/case HTTP/1.1', "GET/ /sync/case HTTP/1.1", "GET /sync/case http/1.1",
    "GET /sync/case Http/1.1", "GET /sync/case HTTP/1", "GET /sync/case HTTP/1.", "GET /sync/case HTTP/.1",
    "GET /sync/case HTTP/1.1.1", "GET /sync/case HTTP/1.10", "GET /sync/case HTTP/01.1", "GET /sync/case HTTP/1,1",
    "GET /sync/case HTTP/1.1x", "GET /sync/case HTTP 1.1", "GET /sync/case HTTP/-1.1", "GET /sync/case HTTP/1.-1",
    "GET /sync/case HTTP/+1.1", "GET /sync/case HTTPS/1.1", "GET /sync/case FOO/1.1", "GET /sync/case HTTP/\xb9.1",
    "HTTP/1.1 200 OK", "CONNECT sync.example:443 HTTP/1.1", "CONNECT /sync/case HTTP/1.1",
  ]),
  ...rows("request line", 505, line, [
    "GET /sync/case HTTP/2.0", "GET /sync/case HTTP/0.9", "GET /sync/case HTTP/3.0", "GET /sync/case HTTP/9.9",
    "GET /sync/case HTTP/0.0", "PRI * HTTP/2.0",
  ]),
  ...rows("request line", 405, line, ["TRACE /sync/case HTTP/1.1"]),
  ...rows("request line", "passes", line, [
    "GET /sync/case HTTP/1.2", "GET /sync/case HTTP/1.9", "get /sync/case HTTP/1.1", "FOO /sync/case HTTP/1.1",
    "PROPFIND /syncdav/case HTTP/1.1", "VERSION-CONTROL /syncdav/case HTTP/1.1", "M-SEARCH /sync/case HTTP/1.1",
    "!#$%&'*+-.^_`|~ /sync/case HTTP/1.1", "PRI /sync/case HTTP/1.1", "trace /sync/case HTTP/1.1",
    "SOURCE /sync/case HTTP/1.1",
  ]),
  ...rows("request line", "last", line, ["GET /sync/case HTTP/1.0"]),
  { name: "a request line without an end", bytes: `GET /sync/${"a".repeat(9_000)}`, outcome: 414 },
  { name: "a request line without a version, as of HTTP/0.9", bytes: "GET /sync/case\r\n\r\n", outcome: 400 },
  { name: "a hello of TLS", bytes: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", outcome: 400 },
  { name: "a request line of 8 KiB", bytes: line(`GET /sync/${"a".repeat(8_150)} HTTP/1.1`), outcome: "passes" },
  { name: "a request line of 9 KiB", bytes: line(`GET /sync/${"a".repeat(9_000)} HTTP/1.1`), outcome: 414 },
  { name: "a method of 9 KiB", bytes: line(`${"A".repeat(9_000)} /sync/case HTTP/1.1`), outcome: 414 },
];

/** Targets (RFC 9112, 3.2): what routes one way and is forwarded another, and what breaks out of its line. */
const TARGETS: readonly RequestCase[] = [
  ...rows("target", 400, (target) => line(`GET ${target} HTTP/1.1`), [
    "*", "sync/case", "?/sync/case", "xhttp://sync.example/sync/case", "?http://sync.example/sync/case",
    "sync.example:80", "ftp://sync.example/sync/case",
    "http:/sync.example/sync/case", "http:///sync/case", "http://", "http://user@sync.example/sync/case",
    "http://a%2f@sync.example/sync/case", "http://sync.example:port/sync/case", "http://sync.example:99999/sync/case",
    "http://[::1/sync/case", "http://sync..example/sync/case", "http://sync.example\\@other.example/sync/case",
    "javascript:alert(1)", "file:///etc/passwd", "/sync/%", "/sync/%2", "/sync/%zz", "/sync/%00", "/sync/case%0",
    "/..", "/../sync/case", "/sync/../../case", "/%2e%2e/sync", "/sync/..%2f..%2f..%2fetc/passwd", "/sync/\x00case",
    "/sync/\x01case", "/sync/\x0bcase", "/sync/\x1bcase", "/sync/\x7fcase", "/sync/\rcase", "/sync/\ncase",
    "/sync/\r\ncase", "/sync/case#frag", "/sync/case?a=b#c",
  ]),
  ...rows("target", "passes", (target) => line(`GET ${target} HTTP/1.1`), [
    "/sync//case", "//sync/case", "/sync/./case", "/sync/x/../case", "/sync/%2e%2e/sync/case", "/%73ync/case",
    "/sync/%0d%0aX-A:%20b", "/sync/%0d%0a%0d%0aGET%20/sync/smuggled", "/synchttp/%0d%0aX-A:%20b",
    "/synchttp/../synchttp/%0d%0aX-A:%20b", "/sync/%20HTTP/1.1%0d%0aHost:%20x",
    "/%73ynchttp/%20HTTP/1.1%0d%0aHost:%20x", "/sync/\xe4\xff", "/sync/\xc4\x8a\xc4\x8d", "/sync/\x85\xa0",
    '/sync/|{}^`<>\\"', "/sync/%c0%ae%c0%ae/x", "/sync/..;/case", "/sync/case;a=b", "/sync/%252e%252e/case",
    "/sync/..\\..\\case", "http://sync.example/sync/case", "HTTP://SYNC.EXAMPLE/sync/case",
    "https://sync.example/sync/case", "http://sync.example:8080/sync/case", "http://sync.example./sync?/sync/case",
    "/sync/http://other.example/", "/sync/case?http://other.example/\\",
  ]),
];

/** Host (RFC 9112, 3.2): one, and a host. */
const HOSTS: readonly RequestCase[] = [
  { name: "no Host", bytes: hosted(), outcome: 400 },
  { name: "no Host, absolute-form", bytes: message("GET http://sync.example/sync/case HTTP/1.1"), outcome: 400 },
  ...rows("Host:", 400, (value) => hosted(`Host:${value}`), [
    "", " ", " sync.example sync.example", " sync.example, other.example", " sync.example,", " sync.example/",
    " sync.example/sync", " user@sync.example", " user:pass@sync.example", " sync.example:x", " sync.example:80:80",
    " sync.example:-1", " sync.example:99999", " sync.example:000080", " sync.example#", " sync.example?",
    " sync.example\\", " http://sync.example", " .sync.example", " sync..example", " sync.example..", " [::1", " ::1",
    " [::1]x", " [::1]]", " [::g]", " [fe80::1%25eth0]", " %73ync.example", " sync%00.example", " sync\x00.example",
    " sync\x01.example", " sync\x7f.example", " s\xffnc.example", " \xe2\x80\xa8sync.example", " *",
    " (sync.example)", " 'sync.example'", ' "sync.example"', " sync.example;", " sync.example\r\n other.example",
    "\r\n sync.example", " sync.example\rX: y",
  ]),
  ...rows("Host:", "passes", (value) => hosted(`Host:${value}`), [
    " sync.example", "sync.example", "\tsync.example\t", " SYNC.EXAMPLE", " sync.example.", " sync.example:80",
    " sync.example:0", " sync.example:65535", " sync.example:",
  ]),
  ...[
    ["equal", HOST_LINE, HOST_LINE], ["that differ", HOST_LINE, "Host: other.example"],
    ["in different case", HOST_LINE, "hOsT: other.example"], ["one empty", HOST_LINE, "Host:"],
    ["the first with a space before the colon", "Host : other.example", HOST_LINE],
    ["the second folded", HOST_LINE, "Host:\r\n other.example"],
    ["the first behind a blank", " Host: other.example", HOST_LINE],
    ["the second behind a bare LF", `${HOST_LINE}\nHost: other.example`],
    ["the second behind a bare CR", `${HOST_LINE}\rHost: other.example`],
    ["the second with a NUL", HOST_LINE, "Host\0: other.example"],
  ].map(([name, ...lines]) => ({ name: `two Hosts, ${name}`, bytes: hosted(...lines), outcome: 400 })),
  ...rows("Host beside an absolute-form target:", "passes", absolute, ["other.example", "sync.example:1"]),
  ...rows("Host beside an absolute-form target:", 400, absolute, ["", "a/b", "a b", "a@b"]),
  ...rows("a name like Host's:", "passes", (field) => hosted(HOST_LINE, field), [
    "X-Host: other.example", "X-Forwarded-Host: other.example", "X-Original-Host: other.example",
    "X_Forwarded_Host: other.example", "HTTP_HOST: other.example", "Forwarded: host=other.example",
    "X-HTTP-Host-Override: other.example", "X-Rewrite-URL: /sync/smuggled", "X-Original-URL: /sync/smuggled",
    "X-HTTP-Method-Override: DELETE",
  ]),
];

function absolute(host: string): string {
  return message("GET http://sync.example/sync/case HTTP/1.1", `Host: ${host}`);
}

/** Expectations and upgrades: who waits for whom. */
const WAITING: readonly RequestCase[] = [
  { name: "Expect: 100-continue, and the body at once",
    bytes: `${message("POST /sync/case HTTP/1.1", HOST_LINE, "Content-Length: 3", "Expect: 100-continue")}abc`,
    outcome: "passes" },
  { name: "Expect: 100-continue without a body", bytes: get("Expect: 100-continue"), outcome: "passes" },
  { name: "Expect: 100-continue with an empty body", bytes: get("Expect: 100-continue", "Content-Length: 0"),
    outcome: "passes" },
  { name: "Expect: 100-continue in chunks", bytes: message("POST /sync/case HTTP/1.1", HOST_LINE,
      "Transfer-Encoding: chunked", "Expect: 100-continue") + "0\r\n\r\n", outcome: "passes" },
  { name: "an upgrade to WebSocket that the upstream does not take: what follows is a request",
    bytes: get("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA") +
      SMUGGLED, outcome: "two" },
  { name: "an upgrade to WebSocket with a version that does not exist",
    bytes: get("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 777") + SMUGGLED, outcome: "two" },
  { name: "an upgrade with a body", bytes: message("POST /sync/case HTTP/1.1", HOST_LINE, "Connection: Upgrade",
      "Upgrade: websocket", "Content-Length: 3") + "abc", outcome: "passes" },
  { name: "an upgrade of a GET with a body",
    bytes: `${get("Connection: Upgrade", "Upgrade: websocket", `Content-Length: ${SMUGGLED.length}`)}${SMUGGLED}`,
    outcome: "passes" },
  { name: "an upgrade to h2c",
    bytes: get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), outcome: "passes" },
  { name: "an upgrade to TLS", bytes: get("Connection: Upgrade", "Upgrade: TLS/1.2"), outcome: "passes" },
  { name: "Connection: close", bytes: get("Connection: close"), outcome: "last" },
  { name: "Connection: close among others", bytes: get("Connection: foo, CLOSE , bar"), outcome: "last" },
  { name: "Connection: close and keep-alive", bytes: get("Connection: close", "Connection: keep-alive"),
    outcome: "last" },
  { name: "Connection: closed", bytes: get("Connection: closed"), outcome: "passes" },
];

export const HEAD_CASES: readonly RequestCase[] = [
  ...LINE_ENDS, ...FIELDS, ...REQUEST_LINES, ...TARGETS, ...HOSTS, ...WAITING,
];
