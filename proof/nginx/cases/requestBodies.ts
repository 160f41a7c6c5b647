import type { Case } from "../deviations.js";
import { ask, head, line, post } from "../../wire/case.js";
import { randomText } from "../../../testkit/random.js";

const MEBIBYTES_2 = randomText(2_097_152);
const TARGETS = ["/sync/up", "/synchttp/up", "/syncdav/up"];

/** Request bodies (decisions 3.1 and 4). */
export const REQUEST_BODY_CASES: readonly Case[] = [
  ...TARGETS.flatMap((target): Case[] => [
    { name: `request body: a body with a length: ${target}`, send: post(target, ["hello"]), status: 200 },
    { name: `request body: a large body: ${target}`, send: post(target, [MEBIBYTES_2]), status: 200 },
    { name: `request body: a body without a length: ${target}`,
      send: { ...post(target, ["hello", "you"]), framing: "chunked" }, status: 200, rules: ["streamedBody"] },
    { name: `request body: an empty body: ${target}`, send: post(target, []), status: 200 },
    { name: `request body: Expect: 100-continue: ${target}`, over: ["http", "https"], send: [
        ...line(`PUT ${target} HTTP/1.1`, "Content-Length: 5", "Expect: 100-continue"), { until: "continue" },
        "hello",
      ], status: 200, expect: { informational: "100", "upstream body": "hello" } },
    { name: `request body: chunks that arrive one by one: ${target}`, over: ["http", "https"], send: [
        ...line(`POST ${target} HTTP/1.1`, "Transfer-Encoding: chunked"), { pauseMs: 150 }, "5;ext=1\r\nhello\r\n",
        { pauseMs: 150 }, "3\r\nyou\r\n0\r\n\r\n",
      ], status: 200, expect: { "upstream body": "helloyou" }, rules: target === "/sync/up" ? ["streamedBody"] : [] },
  ]),
  { name: "request body: an empty chunked body", send: { ...post("/syncdav/up", []), framing: "chunked" },
    status: 200, rules: ["streamedBody"] },
  { name: "request body: POST without any framing", send: ask("POST", "/sync/up"), status: 200 },
  { name: "request body: POST without any framing to the file server", send: ask("POST", "/synchttp/up"), status: 200 },
  { name: "request body: GET with a body", send: { ...post("/sync/x", ["abc"]), method: "GET" }, status: 200 },
  { name: "request body: Content-Length with chunked",
    send: line("POST /sync/x HTTP/1.1", "Content-Length: 5", "Transfer-Encoding: chunked"), status: 400 },
  { name: "request body: chunked with Content-Length",
    send: line("POST /syncdav/x HTTP/1.1", "Transfer-Encoding: chunked", "Content-Length: 5"), status: 400 },
  { name: "request body: gzip, chunked", send: line("POST /sync/x HTTP/1.1", "Transfer-Encoding: gzip, chunked"),
    status: 501 },
  { name: "request body: identity", send: line("POST /sync/x HTTP/1.1", "Transfer-Encoding: identity"), status: 501 },
  { name: "request body: two Transfer-Encoding fields",
    send: line("POST /sync/x HTTP/1.1", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), status: 400,
    rules: ["strictRequest"] },
  { name: "request body: chunked in HTTP/1.0", send: line("POST /sync/x HTTP/1.0", "Transfer-Encoding: chunked"),
    status: 400 },
  { name: "request body: two different lengths",
    send: line("POST /sync/x HTTP/1.1", "Content-Length: 5", "Content-Length: 6"), status: 400,
    rules: ["unroutedServer"] },
  { name: "request body: two equal lengths",
    send: line("POST /sync/x HTTP/1.1", "Content-Length: 5", "Content-Length: 5"), status: 400,
    rules: ["unroutedServer"] },
  ...["+1", "-1", "0x5", "5,5", "", "99999999999999999999"].map((length): Case => ({
    name: `request body: Content-Length: ${length}`,
    send: line("POST /sync/x HTTP/1.1", `Content-Length: ${length}`), status: 400, rules: ["unroutedServer"] })),
  ...[
    ["no hex", "xyz\r\n"], ["signed", "+5\r\nhello\r\n0\r\n\r\n"], ["with 0x", "0x5\r\nhello\r\n0\r\n\r\n"],
    ["too large", "FFFFFFFFFFFFFFFFF\r\nhello"], ["not that of the data", "3\r\nhello\r\n0\r\n\r\n"],
  ].flatMap(([what, bytes]): Case[] => ["/sync/x", "/syncdav/x"].map((target) => ({
    name: `request body: a chunk size ${what}: ${target}`,
    send: [line(`POST ${target} HTTP/1.1`, "Transfer-Encoding: chunked").join("") + bytes], status: 400,
    wholeRequestsOnly: true }))),
  { name: "request body: chunk lines that end in LF",
    send: [...line("POST /sync/x HTTP/1.1", "Transfer-Encoding: chunked"), "5\nhello\n0\n\n"], status: 200,
    wholeRequestsOnly: true, rules: ["strictRequest"] },
  { name: "request body: trailers of a request are dropped",
    send: [...line("POST /sync/x HTTP/1.1", "Transfer-Encoding: chunked"), "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"],
    status: 200, rules: ["streamedBody"] },
  { name: "request body: trailers of a streamed request are dropped", send: [
      ...line("POST /syncdav/x HTTP/1.1", "Transfer-Encoding: chunked", "Trailer: X-T"), { pauseMs: 300 },
      "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
    ], status: 200, rules: ["hopByHop"] },
  { name: "request body: an unknown Expect",
    send: [...line("PUT /sync/x HTTP/1.1", "Content-Length: 2", "Expect: 200-ok"), "ok"], status: 200,
    rules: ["strictRequest"] },
  { name: "request body: Expect in HTTP/1.0 is ignored",
    send: [...line("PUT /sync/x HTTP/1.0", "Content-Length: 2", "Expect: 100-continue"), "ok"], status: 200 },
  { name: "request body: requests one behind the other", send: [
      ...head("GET /sync/1 HTTP/1.1", "Host: sync.example"), ...head("GET /sync/2 HTTP/1.1", "Host: sync.example"),
    ], status: 200 },
  { name: "request body: a request behind a body", send: [
      ...line("POST /sync/1 HTTP/1.1", "Content-Length: 3"), "abc",
      ...head("GET /synchttp/2 HTTP/1.1", "Host: sync.example"),
    ], status: 200 },
  { name: "request body: the upstream responds before the upload is complete", over: ["http", "https"], send: [
      ...line("POST /synchttp/up HTTP/1.1", "Content-Length: 900000"), randomText(100_000), { until: "response" },
      randomText(800_000),
    ], response: { pieces: ["HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"], after: "head", then: "close" },
    status: 413, wholeRequestsOnly: true },
  {
    name: "request body: a client that goes away in the middle of a streamed upload",
    over: ["http", "https"],
    send: [
      ...line("PUT /syncdav/x HTTP/1.1", "Content-Length: 1000"), "abc",
      // The head; "abc" comes with it or soon after.
      { until: { upstreamBytes: 100 } }, { pauseMs: 250 }, { close: "all" },
    ],
    status: 0,
    expect: { "upstream complete": "false", "upstream given up": "true" },
  },
  {
    name: "request body: the same in chunks",
    over: ["http", "https"],
    send: [
      ...line("PUT /syncdav/x HTTP/1.1", "Transfer-Encoding: chunked"), { pauseMs: 30 }, "3\r\nabc\r\n",
      // The head; "abc" comes with it or soon after.
      { until: { upstreamBytes: 100 } }, { pauseMs: 250 }, { close: "all" },
    ],
    status: 0,
    expect: { "upstream complete": "false", "upstream given up": "true" },
  },
  { name: "request body: a client that goes away in the middle of an upload to the web application",
    over: ["http", "https"],
    send: [...line("PUT /sync/x HTTP/1.1", "Content-Length: 1000"), "abc", { pauseMs: 60 }, { close: "all" }],
    status: 0, rules: ["streamedBody"] },
  { name: "request body: a client that goes away while the upstream is thinking", over: ["http", "https"],
    send: [...line("GET /sync/slow HTTP/1.1"), { until: { upstreamBytes: 20 } }, { pauseMs: 30 }, { close: "all" }],
    response: { pieces: [] }, status: 0, expect: { "upstream given up": "true" } },
  { name: "request body: a client that closes its sending direction after the request", over: ["http"],
    send: [...line("GET /sync/ HTTP/1.1"), { close: "half" }], status: 0, wholeRequestsOnly: true,
    rules: ["halfClosedClient"] },
  { name: "request body: a body for media", send: post("/syncmedia/img/a.png", ["abc"]), status: 405,
    rules: ["readOnlyFiles"] },
  { name: "request body: a body for media above the default limit", over: ["http", "https"],
    send: post("/syncmedia/img/a.png", [MEBIBYTES_2]), status: 413, rules: ["readOnlyFiles"] },
  { name: "request body: a body for the default server", over: ["http"],
    send: { ...post("/", ["abc"]), host: "other.example" }, status: 405, rules: ["readOnlyFiles"] },
];
