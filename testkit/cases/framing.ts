import { headText as message, LAST_CHUNK as END } from "../messages.js";
import { get, hexLength, HOST_LINE, post, type RequestCase, rows, SMUGGLED } from "./requestCase.js";

const CHUNKED = "Transfer-Encoding: chunked";

/** Content-Length and Transfer-Encoding together: each parser takes its own (RFC 9112, 6.3 and 11.2). */
const BOTH: readonly RequestCase[] = [
  ["CL.TE", ["Content-Length: 6", CHUNKED], `${END}G`, 400],
  ["CL.TE, the whole of a request behind the chunks", ["Content-Length: 60", CHUNKED], END + SMUGGLED, 400],
  ["TE.CL", [CHUNKED, "Content-Length: 4"], `5c\r\n${SMUGGLED}`, 400],
  ["TE.CL, lengths that agree", [CHUNKED, "Content-Length: 5"], END, 400],
  ["CL 0 and TE", ["Content-Length: 0", CHUNKED], END, 400],
  ["TE and CL 0", [CHUNKED, "Content-Length: 0"], END + SMUGGLED, 400],
  ["CL and TE: identity", ["Content-Length: 3", "Transfer-Encoding: identity"], "abc", 400],
  ["TE: identity and CL", ["Transfer-Encoding: identity", "Content-Length: 3"], "abc", 400],
  ["CL and an empty TE", ["Content-Length: 3", "Transfer-Encoding:"], "abc", 400],
  ["CL and TE: gzip, chunked", ["Content-Length: 5", "Transfer-Encoding: gzip, chunked"], END, 400],
  ["CL and a hidden TE, tab before the colon", ["Content-Length: 5", "Transfer-Encoding\t: chunked"], END, 400],
  ["CL and a hidden TE, space before the colon", ["Content-Length: 5", "Transfer-Encoding : chunked"], END, 400],
  ["CL and a folded TE", ["Content-Length: 5", "Transfer-Encoding:\r\n chunked"], END, 400],
  ["CL and a TE behind a fold", ["Content-Length: 5", "X-A: b\r\n Transfer-Encoding: chunked"], END, 400],
  ["CL and a TE behind a bare CR", ["Content-Length: 5", "X-A: b\rTransfer-Encoding: chunked"], END, 400],
  ["CL and a TE behind a bare LF", ["Content-Length: 5", "X-A: b\nTransfer-Encoding: chunked"], END, 400],
  ["CL and a TE behind a NUL", ["Content-Length: 5", "X-A: b\0\r\nTransfer-Encoding: chunked"], END, 400],
  ["TE and a hidden CL, space before the colon", [CHUNKED, "Content-Length : 3"], END, 400],
  ["TE and a hidden CL, a blank before the name", [CHUNKED, " Content-Length: 3"], END, 400],
  ["TE and a CL with a vertical tab in its name", [CHUNKED, "Content-Length\x0b: 3"], END, 400],
].map(([name, lines, body, outcome]) => ({ name: `both: ${name as string}`,
  bytes: post(lines as string[], body as string), outcome: outcome as number }));

/**
 * Names that a CGI gateway or a sloppy parser takes for a framing field. Those with `_` are tokens, but dropped; to the
 * others applies what the rest of the head says.
 */
const DISGUISED: readonly RequestCase[] = [
  ...rows("disguised TE beside a length:", "passes", (line) => post(["Content-Length: 5", line], END), [
    "Transfer_Encoding: chunked", "transfer_encoding: chunked", "X-Transfer-Encoding: chunked",
    "Transfer-Encoding-X: chunked", "Content-Encoding: chunked", "TE: chunked", "Transfer.Encoding: chunked",
    "X-A: Transfer-Encoding: chunked", "X-A: b, Transfer-Encoding: chunked", "Trailer: Transfer-Encoding",
    "X-A: \\r\\nTransfer-Encoding: chunked", "X-A: b%0d%0aTransfer-Encoding: chunked",
    "X-A: b\xc4\x8d\xc4\x8aTransfer-Encoding: chunked", "X-A: b\x85Transfer-Encoding: chunked",
    "X-A: \xe2\x80\xa8Transfer-Encoding: chunked",
  ]),
  ...rows("disguised CL beside chunks:", "passes", (line) => post([CHUNKED, line], END), [
    "Content_Length: 3", "content_length: 300", "X-Content-Length: 300", "Content-Length-X: 300", "Length: 300",
    "X-A: Content-Length: 300",
  ]),
  ...rows("name that is not a token:", 400, (line) => post(["Content-Length: 5", line], END), [
    "Transfer-Encoding\x00: chunked", "Transfer-Encoding\x0b: chunked", "Transfer-Encoding\x0c: chunked",
    "Transfer-Encoding\x7f: chunked", "Transfer-Encoding\xa0: chunked", "Transfer-Encoding\x85: chunked",
    "\x00Transfer-Encoding: chunked", "\x0bTransfer-Encoding: chunked", "\xffTransfer-Encoding: chunked",
    "\xef\xbb\xbfTransfer-Encoding: chunked", '"Transfer-Encoding": chunked', "Transfer-Encoding;x: chunked",
    "Transfer Encoding: chunked", "Transfer/Encoding: chunked", "Tr\xc3\xa4nsfer-Encoding: chunked",
    "Transfer-Encoding chunked", "Transfer-Encoding=chunked", "Transfer-Encoding",
  ]),
];

/** Values of a lone Transfer-Encoding. Only `chunked`, in any case and with blanks around it, is understood. */
const CODINGS: readonly RequestCase[] = [
  ...rows("TE:", "passes", (value) => post([`Transfer-Encoding:${value}`], `3\r\nabc\r\n${END}`), [
    " chunked", "chunked", "  chunked", "\tchunked", " \t chunked \t ", " Chunked", " CHUNKED", " cHuNkEd",
  ]),
  ...rows("TE:", 501, (value) => post([`Transfer-Encoding: ${value}`], `3\r\nabc\r\n${END}${SMUGGLED}`), [
    "chunked, chunked", "chunked,", ",chunked", ", chunked", "chunked , identity", "identity", "identity, chunked",
    "chunked, identity", "gzip", "gzip, chunked", "gzip,chunked", "chunked, gzip", "deflate, chunked", "chunked;q=1",
    "chunked; foo", "chunked;", '"chunked"', "'chunked'", "chunke", "chunkedx", "xchunked", "x-chunked", "chun ked",
    "chunked\xa0", "\xa0chunked", "chunked\x85", "chunked foo", "\\chunked", "(chunked)", "c\xe4hunked",
    "\xef\xbb\xbfchunked", "", ",", "cow", "trailers",
  ]),
  ...rows("TE:", 400, (value) => post([`Transfer-Encoding: ${value}`], `3\r\nabc\r\n${END}`), [
    "\x0bchunked", "\x0cchunked", "\x00chunked", "chunked\x00", "chunked\x0b", "chunked\x1f", "chunked\x7f",
    "chunked\r", "\rchunked", "chunked\n", "\nchunked", "\r\n chunked", "\r\n\tchunked", "chunked\r\n ",
    "chunked\r\n\tfoo",
  ]),
];

/** Several codings in several fields (TE.TE). */
const SEVERAL_CODINGS: readonly RequestCase[] = [
  ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], 501],
  ["chunked, then identity", ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], 501],
  ["identity, then chunked", ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"], 501],
  ["chunked, then a cow", ["Transfer-Encoding: chunked", "Transfer-encoding: cow"], 501],
  ["a cow, then chunked", ["Transfer-Encoding: cow", "Transfer-encoding: chunked"], 501],
  ["chunked, then nothing", ["Transfer-Encoding: chunked", "Transfer-Encoding:"], 501],
  ["nothing, then chunked", ["Transfer-Encoding:", "Transfer-Encoding: chunked"], 501],
  ["chunked in different case", ["transfer-encoding: chunked", "TRANSFER-ENCODING: chunked"], 501],
  ["chunked, and one with a blank before it", ["Transfer-Encoding: chunked", " Transfer-Encoding: x"], 400],
  ["chunked, and one behind a bare LF", ["Transfer-Encoding: chunked", "X: y\nTransfer-Encoding: x"], 400],
].map(([name, lines, outcome]) => ({ name: `several codings: ${name as string}`,
  bytes: post(lines as string[], END + SMUGGLED), outcome: outcome as number }));

/** Values of a lone Content-Length before the body `abc`. */
const LENGTHS: readonly RequestCase[] = [
  ...rows("CL:", "passes", (value) => post([`Content-Length:${value}`], "abc"), [
    " 3", "3", "\t3", "   3  ", " 03", " 0000000000000003",
  ]),
  ...rows("CL:", 400, (value) => post([`Content-Length: ${value}`], "abc"), [
    "", "+3", "-3", "-0", "+0", "0x3", "0X3", "3x", "x3", "3.0", "3e0", "3,3", "3, 3", "3 3", "3,4", "3;", "3;4",
    '"3"', "'3'", "three", "\xb3", "\xd9\xa3", "3\xa0", "\xa03", "3\x85", "3\0", "\x003", "3\x0b", "\x0c3", "3\r",
    "\n3", "\r\n 3", "3\r\n ", "3\r\n\t0", "00000000000000003", "9007199254740993", "18446744073709551619",
    "4294967299000000000000", "1e1000", "NaN", "Infinity", "3_0", "1_", "0b11", "0o3", "(3)", "3#", "3/1",
  ]),
  ...[
    ["equal", "Content-Length: 3", "Content-Length: 3"], ["that differ", "Content-Length: 3", "Content-Length: 0"],
    ["the other way round", "Content-Length: 0", "Content-Length: 3"],
    ["in different case", "content-length: 3", "CONTENT-LENGTH: 4"],
    ["one empty", "Content-Length: 3", "Content-Length:"],
    ["one folded", "Content-Length: 3", "Content-Length:\r\n 4"],
    ["one behind a bare CR", "Content-Length: 3", "X: y\rContent-Length: 4"],
    ["one with a space before the colon", "Content-Length: 3", "Content-Length : 4"],
  ].map(([name, ...lines]) => ({ name: `two lengths, ${name}`, bytes: post(lines, "abc"), outcome: 400 })),
  { name: "TE in HTTP/1.0", bytes: message("POST /synchttp/case HTTP/1.0", HOST_LINE, CHUNKED) + END, outcome: 400 },
  { name: "CL 0 and a request behind it", bytes: post(["Content-Length: 0"]) + SMUGGLED, outcome: "two" },
  { name: "CL and a request behind the body", bytes: post(["Content-Length: 3"], "abc") + SMUGGLED, outcome: "two" },
  { name: "CL longer than what comes", bytes: post(["Content-Length: 1000"], "abc"), outcome: "waits" },
  { name: "CL that covers a whole request: it is data", bytes: post([`Content-Length: ${SMUGGLED.length}`], SMUGGLED),
    outcome: "passes" },
  { name: "a body of GET is a body", bytes: get("Content-Length: 3") + "abc", outcome: "passes" },
  { name: "a body of GET that looks like a request is data (CL.0)",
    bytes: get(`Content-Length: ${SMUGGLED.length}`) + SMUGGLED, outcome: "passes" },
  { name: "a GET in chunks", bytes: get(CHUNKED) + `3\r\nabc\r\n${END}`, outcome: "passes" },
  { name: "a HEAD with a body", bytes: `${message("HEAD /sync/case HTTP/1.1", HOST_LINE, "Content-Length: 3")}abc`,
    outcome: "passes" },
  { name: "a body for the redirecting or a missing route is read, not taken for a request",
    bytes: `${message("POST /nowhere HTTP/1.1", HOST_LINE, `Content-Length: ${SMUGGLED.length}`)}${SMUGGLED}`,
    outcome: "passes" },
  { name: "a body for static files is read, not taken for a request",
    bytes: message("POST /syncmedia/img/a.png HTTP/1.1", HOST_LINE, CHUNKED) +
      `${hexLength(SMUGGLED)}\r\n${SMUGGLED}\r\n${END}`, outcome: "last" },
  { name: "a body of GET for static files (CL.0)",
    bytes: message("GET /syncmedia/img/a.png HTTP/1.1", HOST_LINE, `Content-Length: ${SMUGGLED.length}`) + SMUGGLED,
    outcome: "passes" },
];

/** Connection may not name away what frames a message or names its host. */
const NAMED_AWAY: readonly RequestCase[] = [
  ...rows("Connection names", "passes", (name) => post([`Connection: ${name}`, "Content-Length: 3"], "abc"), [
    "Content-Length", "content-length, keep-alive", "Host", "Transfer-Encoding", "X-Forwarded-For", "Connection",
    "keep-alive, , Content-Length", "\t,Content-Length,",
  ]),
  { name: "Connection names Transfer-Encoding of a chunked body",
    bytes: post(["Connection: Transfer-Encoding", CHUNKED], `3\r\nabc\r\n${END}`), outcome: "passes" },
  { name: "Connection names close and Content-Length",
    bytes: post(["Connection: close, Content-Length", "Content-Length: 3"], "abc"), outcome: "last" },
];

export const FRAMING_CASES: readonly RequestCase[] = [
  ...BOTH, ...DISGUISED, ...CODINGS, ...SEVERAL_CODINGS, ...LENGTHS, ...NAMED_AWAY,
];
