import { headText as response, LAST_CHUNK as END } from "../../../testkit/messages.js";
import { type ResponseScript } from "../../wire/case.js";

/** What a client gets of a raw response. */
export type ResponseOutcome =
  /** The response is refused. */
  | "502"
  /** Its head was good, its body is broken or cut: the client is shown that it is not whole. */
  | "cut"
  /** It is this response by every reading. */
  | { readonly status: number; readonly body: string };

/** Bytes of an upstream (chars of latin1), each piece written by itself, and what must become of them. */
export interface ResponseCase extends ResponseScript {
  readonly name: string;
  readonly method?: "GET" | "HEAD";
  readonly outcome: ResponseOutcome;
}

/** What an attacker who controls an upstream wants another client to get. */
const POISON = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
const OK = { status: 200, body: "ok" };

const head = (...fields: readonly string[]): string => response("HTTP/1.1 200 OK", ...fields);
const withField = (field: string): string => `${head("Content-Length: 2", field)}ok`;
const framed = (...fields: readonly string[]): string => `${head(...fields)}ok`;
const chunked = (body: string): string => head("Transfer-Encoding: chunked") + body;

function rows(
  family: string,
  outcome: ResponseOutcome,
  bytes: (what: string) => string,
  whats: readonly string[],
  then?: ResponseCase["then"],
): ResponseCase[] {
  return whats.map((what) => ({
    name: `${family} ${JSON.stringify(what.length < 80 ? what : `${what.slice(0, 80)}…`)}`,
    pieces: [bytes(what)],
    outcome,
    then,
  }));
}

/** Status lines (RFC 9112, 4). */
const STATUS_LINES: readonly ResponseCase[] = [
  ...rows("status line", "502", (line) => `${response(line, "Content-Length: 2")}ok`, [
    "HTTP/1.1  200 OK", "HTTP/1.1\t200 OK", " HTTP/1.1 200 OK", "HTTP/1.1 200\tOK", "HTTP/1.1 20 OK",
    "HTTP/1.1 2000 OK", "HTTP/1.1 000 OK", "HTTP/1.1 099 OK",
    "HTTP/1.1 +20 OK", "HTTP/1.1 -20 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 0x1 OK",
    "HTTP/1.1 OK", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 200 O\0K", "HTTP/1.1 200 O\x01K", "HTTP/1.1 200 O\rK",
    "HTTP/1.1 200 O\nK", "HTTP/1.1 200 \x7f", "http/1.1 200 OK", "HTTP/1.2 200 OK", "HTTP/2.0 200 OK",
    "HTTP/2 200 OK", "HTTP/0.9 200 OK", "HTTP/1 200 OK", "HTTP/11 200 OK", "HTTP/1.10 200 OK", "HTTP/01.1 200 OK",
    "HTTPS/1.1 200 OK", "ICY 200 OK", "200 OK", "GET / HTTP/1.1", "<html>", "\0", "\xef\xbb\xbfHTTP/1.1 200 OK",
  ]),
  ...rows("status line", OK, (line) => `${response(line, "Content-Length: 2")}ok`, [
    "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 200 All is \xe4 well: 200", "HTTP/1.0 200 OK",
  ]),
  ...[599, 600, 999].map((status): ResponseCase => ({ name: `the status ${status}, which nobody knows`,
    pieces: [`${response(`HTTP/1.1 ${status} What`, "Content-Length: 2")}ok`], outcome: { status, body: "ok" } })),
];

/** Field lines: as strict as those of a request. */
const FIELDS: readonly ResponseCase[] = [
  ...rows("field", "502", withField, [
    "X-A : b", "X-A\t: b", " X-A: b", ": b", "X-A", "X A: b", "X(A): b", "X\0A: b",
    "X\xe4A: b", "X-A: \0", "X-A: \x01", "X-A: \x0b", "X-A: \x7f", "X-A: \x1b[2J", "X-A: b\rSet-Cookie: c=d",
    "X-A: b\nSet-Cookie: c=d", "X-A: b\r\r", "HTTP/1.1 200 OK",
  ]),
  ...rows("field", OK, withField, [
    "X-A: b\r\n c", "X-A: b\r\n\tc", "X-A: b\r\n \r\n\t", "X-A:", "X-A: \xe4\xc4\x8a\xc4\x8d", "X_A: b", "X-A: b%0d%0aSet-Cookie: c=d", "X-Accel-Redirect: /etc/passwd",
    "X-Accel-Buffering: no", "X-Sendfile: /etc/passwd", "Connection: X-A, close", "Connection: Content-Length",
    "Connection: Content-Type, Set-Cookie", "Keep-Alive: timeout=1000000", "Upgrade: h2c", "Trailer: Content-Length",
    "Proxy-Authenticate: Basic", "Server: nginx/1.0", "Date: never", "Content-Encoding: gzip", 'Alt-Svc: h3=":443"',
  ]),
  ...rows("line ends", "502", (bytes) => bytes, [
      "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok", "HTTP/1.1 200 OK\rContent-Length: 2\r\rok",
      "HTTP/1.1 200 OK\r\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\r\n\r\nok",
    ], "close"),
];

/** How long it is: as ambiguous lengths go here, so they go with requests. */
const FRAMING: readonly ResponseCase[] = [
  ...rows("length", "502", (value) => framed(`Content-Length: ${value}`), [
    "", "+2", "-2", "0x2", "2,2", "2, 2", "2 2", "2x", "2.0", '"2"', "two", "\xb2", "2\0", "2\x0b",
    "00000000000000002", "9007199254740993", "18446744073709551618", "\r\n 2",
  ]),
  ...[
    ["CL and TE", "Content-Length: 2", "Transfer-Encoding: chunked"],
    ["TE and CL", "Transfer-Encoding: chunked", "Content-Length: 2"],
    ["two lengths", "Content-Length: 2", "Content-Length: 3"],
    ["TE gzip", "Transfer-Encoding: gzip"],
    ["TE gzip, chunked", "Transfer-Encoding: gzip, chunked"],
    ["TE chunked, chunked", "Transfer-Encoding: chunked, chunked"], ["TE identity", "Transfer-Encoding: identity"],
    ["an empty TE", "Transfer-Encoding:"], ["TE xchunked", "Transfer-Encoding: xchunked"],
    ["TE chunked;", "Transfer-Encoding: chunked;"],
    ["two TEs", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["TE with a control byte", "Transfer-Encoding: \x0bchunked"], ["a folded TE", "Transfer-Encoding:\r\n chunked"],
    ["TE and a blank before the colon", "Transfer-Encoding : chunked"],
  ].map(([name, ...fields]): ResponseCase => ({ name: name!, pieces: [head(...fields) + END + POISON], outcome: "502" })),
  { name: "TE in HTTP/1.0", pieces: [response("HTTP/1.0 200 OK", "Transfer-Encoding: chunked") + END], outcome: "502" },
  { name: "two equal lengths", pieces: [framed("Content-Length: 2", "Content-Length: 2")], outcome: OK },
  { name: "a disguised TE beside a length", pieces: [framed("Content-Length: 2", "Transfer_Encoding: chunked")],
    outcome: OK },
  { name: "no framing, ended by the close", pieces: [framed()], then: "close", outcome: OK },
  { name: "no framing, ended by a reset", pieces: [framed()], then: "reset", outcome: "cut" },
  { name: "less than its length", pieces: [`${head("Content-Length: 5")}abc`], then: "close", outcome: "cut" },
  { name: "less than its length, and a reset", pieces: [`${head("Content-Length: 5")}abc`], then: "reset",
    outcome: "cut" },
  { name: "a length and nothing", pieces: [head("Content-Length: 5")], then: "close", outcome: "cut" },
  { name: "half a head", pieces: ["HTTP/1.1 200 OK\r\nContent-Le"], then: "close", outcome: "502" },
  { name: "nothing", pieces: [], then: "close", outcome: "502" },
  { name: "a reset", pieces: [], then: "reset", outcome: "502" },
  { name: "more than its length", pieces: [`${framed("Content-Length: 2")} and more`], outcome: OK },
  { name: "a second response", pieces: [framed("Content-Length: 2") + POISON], outcome: OK },
  { name: "a second response by itself", pieces: [framed("Content-Length: 2"), POISON], outcome: OK },
  { name: "a second response behind chunks", pieces: [chunked(`2\r\nok\r\n${END}${POISON}`)], outcome: OK },
  { name: "a second response behind an empty one", pieces: [head("Content-Length: 0") + POISON],
    outcome: { status: 200, body: "" } },
];

/** The chunked coding of a response: the head is out when it breaks. */
const CHUNKS: readonly ResponseCase[] = [
  ...rows("chunks", OK, chunked, [
    `2\r\nok\r\n${END}`, `02;a=b\r\nok\r\n${END}`, `1\r\no\r\n1\r\nk\r\n${END}`,
    "2\r\nok\r\n0\r\nContent-Length: 500\r\nSet-Cookie: a=b\r\n\r\n", "2\r\nok\r\n0;last\r\n\r\n",
    `2 \r\nok\r\n${END}`, `2 \t \r\nok\r\n0  \r\n\r\n`, `2 ;a\r\nok\r\n${END}`,
  ]),
  ...rows("chunks", "cut", (body) => chunked(body + POISON), [
      `2\nok\r\n${END}`, `2\r\nok\n${END}`, `2\r\nok${END}`, ` 2\r\nok\r\n${END}`, `2 2\r\nok\r\n${END}`, `0x2\r\nok\r\n${END}`,
      `+2\r\nok\r\n${END}`, `-2\r\nok\r\n${END}`, `2\r\nokay\r\n${END}`, `3\r\nok\r\n${END}`, `g\r\nok\r\n${END}`,
      `\r\nok\r\n${END}`, `2;\0\r\nok\r\n${END}`, "2\r\nok\r\n0\n\n", "2\r\nok\r\n0\r\n\n",
      "2\r\nok\r\n0\r\n X-T: u\r\n\r\n", "2\r\nok\r\n0\r\nX-T: \0\r\n\r\n", `2\r\nok\r\nffffffffffffffff\r\n`,
      "2\r\nok\r\n20000000000000000\r\n",
    ], "close"),
  { name: "chunks cut off", pieces: [chunked("5\r\nabc")], then: "close", outcome: "cut" },
  { name: "chunks without their end", pieces: [chunked("2\r\nok\r\n")], then: "close", outcome: "cut" },
  { name: "chunks, cut in the trailers", pieces: [chunked("2\r\nok\r\n0\r\nX-T")], then: "close", outcome: "cut" },
  { name: "chunks, cut before the last line", pieces: [chunked("2\r\nok\r\n0\r\n")], then: "close", outcome: "cut" },
];

/** Responses without a body, whatever their head says (RFC 9112, 6.3). */
const BODILESS: readonly ResponseCase[] = [
  { name: "HEAD and no body", method: "HEAD", pieces: [head("Content-Length: 2")], outcome: { status: 200, body: "" } },
  { name: "HEAD and a body all the same", method: "HEAD", pieces: [framed("Content-Length: 2")],
    outcome: { status: 200, body: "" } },
  { name: "HEAD and a body later", method: "HEAD", pieces: [head("Content-Length: 36"), POISON],
    outcome: { status: 200, body: "" } },
  { name: "HEAD and chunks", method: "HEAD", pieces: [chunked(`2\r\nok\r\n${END}`)],
    outcome: { status: 200, body: "" } },
  { name: "HEAD without framing", method: "HEAD", pieces: [head()], outcome: { status: 200, body: "" } },
  { name: "204 with a body", pieces: [`${response("HTTP/1.1 204 No Content", "Content-Length: 2")}ok`],
    outcome: { status: 204, body: "" } },
  { name: "204 with chunks",
    pieces: [`${response("HTTP/1.1 204 No Content", "Transfer-Encoding: chunked")}2\r\nok\r\n${END}`],
    outcome: { status: 204, body: "" } },
  { name: "304 with a body", pieces: [`${response("HTTP/1.1 304 Not Modified", "Content-Length: 2")}ok`],
    outcome: { status: 304, body: "" } },
  { name: "304 and a second response", pieces: [response("HTTP/1.1 304 Not Modified") + POISON],
    outcome: { status: 304, body: "" } },
];

const INFORMATIONAL = response("HTTP/1.1 100 Continue");

/** 1xx responses, which end nothing (RFC 9110, 15.2). */
const INFORMATIONALS: readonly ResponseCase[] = [
  { name: "100 before the response", pieces: [INFORMATIONAL + framed("Content-Length: 2")], outcome: OK },
  { name: "102 and 103 before the response", pieces: [
      response("HTTP/1.1 102 Processing"), response("HTTP/1.1 103 Early Hints", "Link: </a>"),
      framed("Content-Length: 2"),
    ], outcome: OK },
  { name: "16 of them", pieces: [INFORMATIONAL.repeat(16) + framed("Content-Length: 2")], outcome: OK },
  { name: "a storm of them", pieces: [INFORMATIONAL.repeat(2_000) + framed("Content-Length: 2")], outcome: OK },
  { name: "a storm without end of them", pieces: [INFORMATIONAL.repeat(100_001)], outcome: "502" },
  { name: "a storm of 103 with fields", pieces: [
      response("HTTP/1.1 103 Early Hints", `Link: ${"x".repeat(8_000)}`).repeat(40) + framed("Content-Length: 2"),
    ], outcome: OK },
  { name: "100 and the close", pieces: [INFORMATIONAL], then: "close", outcome: "502" },
  { name: "100 with a length",
    pieces: [`${response("HTTP/1.1 100 Continue", "Content-Length: 2")}${framed("Content-Length: 2")}`], outcome: OK },
  { name: "100 with a body",
    pieces: [`${response("HTTP/1.1 100 Continue", "Content-Length: 2")}ok${framed("Content-Length: 2")}`],
    outcome: "502" },
  { name: "100 with chunks", pieces: [
      `${response("HTTP/1.1 100 Continue", "Transfer-Encoding: chunked")}${END}${framed("Content-Length: 2")}`,
    ], outcome: "502" },
  { name: "101 that nobody asked for",
    pieces: [response("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket") + POISON],
    outcome: "502" },
  { name: "101 to another protocol",
    pieces: [response("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: h2c") + POISON],
    outcome: "502" },
];

/** Heads that come in pieces, or never end. */
const HEADS: readonly ResponseCase[] = [
  { name: "a head byte by byte", pieces: [...framed("Content-Length: 2")], outcome: OK },
  { name: "chunks byte by byte", pieces: [...chunked(`2;a=b\r\nok\r\n0\r\nT: u\r\n\r\n`)], outcome: OK },
  { name: "a head split in its line ends", pieces: ["HTTP/1.1 200 OK\r", "\nContent-Length: 2\r", "\n\r", "\nok"],
    outcome: OK },
  { name: "a head split, with a bare LF in the next piece",
    pieces: ["HTTP/1.1 200 OK", "\nContent-Length: 2\r\n\r\nok"], then: "close", outcome: "502" },
  { name: "a head of 60 KiB", pieces: [framed("Content-Length: 2", `X-A: ${"b".repeat(60_000)}`)], outcome: OK },
  { name: "a head of 70 KiB", pieces: [framed("Content-Length: 2", `X-A: ${"b".repeat(70_000)}`)], outcome: "502" },
  { name: "a head of 1 MiB without an end", pieces: [`HTTP/1.1 200 OK\r\nX-A: ${"b".repeat(1_048_576)}`],
    outcome: "502" },
  { name: "400 fields", pieces: [framed("Content-Length: 2", ...Array<string>(400).fill("X-A: b"))], outcome: OK },
  { name: "600 fields", pieces: [framed("Content-Length: 2", ...Array<string>(600).fill("X-A: b"))], outcome: "502" },
  { name: "fields without an end", pieces: [`HTTP/1.1 200 OK\r\n${"X-A: b\r\n".repeat(50_000)}`], outcome: "502" },
  { name: "a status line without an end", pieces: [`HTTP/1.1 200 ${"b".repeat(200_000)}`], outcome: "502" },
  { name: "empty lines before the response", pieces: [`\r\n\r\n${framed("Content-Length: 2")}`], then: "close",
    outcome: "502" },
  { name: "an extension of 5 KiB", pieces: [chunked(`2;${"a".repeat(5_000)}\r\nok\r\n${END}`)], then: "close",
    outcome: "cut" },
  { name: "trailers of 20 KiB", pieces: [chunked(`2\r\nok\r\n0\r\n${"X-T: u\r\n".repeat(2_500)}\r\n`)], then: "close",
    outcome: "cut" },
];

export const RESPONSE_CASES: readonly ResponseCase[] = [
  ...STATUS_LINES, ...FIELDS, ...FRAMING, ...CHUNKS, ...BODILESS, ...INFORMATIONALS, ...HEADS,
];
