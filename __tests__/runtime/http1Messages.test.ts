import { ChunkDecoder, ChunkError } from "../../src/runtime/codec/http1/chunkDecoder.js";
import {
  RESPONSE_FATES,
  NAMES,
  nameNumber,
  OTHER,
  REQUEST_FATES,
} from "../../src/runtime/codec/http1/fieldNames.js";
import { HeadError, parseFields } from "../../src/runtime/codec/http1/fields.js";
import { FramingError, MessageFraming } from "../../src/runtime/codec/http1/framing.js";
import { HeadReader } from "../../src/runtime/codec/http1/headReader.js";
import { LineFeedReader } from "../../src/runtime/codec/http1/lineFeedReader.js";
import { parseRequestHead, unroutable } from "../../src/runtime/codec/http1/requestHead.js";
import { parseResponseHead, UNTIL_CLOSE } from "../../src/runtime/codec/http1/responseHead.js";
import { SINGLE_FIELDS } from "../../src/runtime/codec/request.js";

/** HTTP/1.1 messages at the edges of what is taken, in whatever pieces they come, and how they are framed again. */

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");
const LINE_BYTES = 64;
const LIMITS = { requestLineBytesMax: LINE_BYTES, headerCountMax: 4 };

/** What becomes of a head that comes in two pieces, or in one: its request line, or the status that refuses it. */
function judged(text: string, cut: number, headBytesMax: number): string {
  const reader = new HeadReader(headBytesMax, LINE_BYTES);
  try {
    if (cut > 0 && reader.read(bytes(text.slice(0, cut)), 0)) return "taken early";
    if (!reader.read(bytes(text.slice(cut)), 0)) return "not complete";
    return parseRequestHead(reader, LIMITS, 0).requestLine;
  } catch (error) {
    if (!(error instanceof HeadError)) throw error;
    return String(error.status);
  }
}

describe("limits of a request head hold to the byte, in whatever pieces it comes", () => {
  const line = (length: number): string => `GET /${"a".repeat(length - 14)} HTTP/1.1`;
  const everywhere = (text: string): number[] => Array.from({ length: text.length }, (_, cut) => cut);

  test.each([
    [LINE_BYTES, line(LINE_BYTES)],
    [LINE_BYTES + 1, "414"],
    [LINE_BYTES + 2, "414"],
  ])("a request line of %i bytes", (length, expected) => {
    const text = `${line(length)}\r\nHost: a\r\n\r\n`;
    expect(new Set(everywhere(text).map((cut) => judged(text, cut, 4_096)))).toEqual(new Set([expected]));
  });

  const FIRST = "GET / HTTP/1.1";
  // Below and above what is looked at first.
  test.each([1_024, 4_096, 6_000])("a head of %i bytes", (max) => {
    for (const beyond of [0, 1, 2, 3, 4, 5, 6, 1_000]) {
      const text = `${FIRST}\r\nHost: a\r\nX: ${"x".repeat(max - 32 + beyond)}\r\n\r\n`;
      expect(text).toHaveLength(max + beyond);
      const cuts = [0, 1, 14, 15, 16, 17, 100, 1_000, max - 5, max - 4, max - 3, max - 2, max - 1, max];
      const found = cuts.filter((cut) => cut < text.length).map((cut) => judged(text, cut, max));
      expect([beyond, ...new Set(found)]).toEqual([beyond, beyond === 0 ? FIRST : "400"]);
    }
  });

  test("an endless head is refused at the first byte beyond the limit", () => {
    const reader = new HeadReader(1_024, LINE_BYTES);
    const begin = `${FIRST}\r\nX: `;
    expect(reader.read(bytes(begin + "x".repeat(1_024 - begin.length)), 0)).toBe(false);
    expect(() => reader.read(bytes("x"), 0)).toThrow(HeadError);
  });

  test.each([
    [4, FIRST],
    [5, "400"],
  ])("%i fields", (count, expected) => {
    expect(judged(`${FIRST}\r\nHost: a\r\n${"X: y\r\n".repeat(count - 1)}\r\n`, 0, 4_096)).toBe(expected);
  });

  test("one byte after a head is not part of it", () => {
    const reader = new HeadReader(1_024, LINE_BYTES);
    expect(reader.read(bytes(`${FIRST}\r\n\r\nG`), 0)).toBe(true);
    expect([reader.text, reader.next]).toEqual([`${FIRST}\r\n\r\n`, FIRST.length + 4]);
  });

  test("what comes after a head is not part of it, nor of what a head may be", () => {
    const head = `${FIRST}\r\nHost: a\r\n\r\n`;
    for (const after of [head, "x".repeat(5_000)])
      for (const cut of [0, 5, FIRST.length + 2, head.length - 1]) {
        const reader = new HeadReader(LINE_BYTES, LINE_BYTES);
        if (cut > 0) expect(reader.read(bytes(head.slice(0, cut)), 0)).toBe(false);
        expect(reader.read(bytes(`--${head.slice(cut)}${after}`), 2)).toBe(true);
        expect([reader.text, reader.next, reader.empty]).toEqual([head, 2 + head.length - cut, true]);
      }
  });

  test.each(["\rGET / HTTP/1.1\r\n", "\r\r\n", "\nG", " G", ":", "(", "G\nE", "G\r\n\nE"])(
    "what can never become a head is refused at once: %j",
    (text) => {
      expect(judged(text, 0, 1_024)).toBe("400");
    },
  );

  test("empty lines before requests are skipped, also where they come apart", () => {
    const reader = new HeadReader(1_024, LINE_BYTES);
    for (let request = 0; request < 2; request++) {
      expect(reader.read(bytes("\r\n\r\n\r"), 0)).toBe(false);
      expect(reader.read(bytes(`\n\r\n${FIRST}\r\n\r\n`), 0)).toBe(true);
      expect([reader.text, reader.empty]).toEqual([`${FIRST}\r\n\r\n`, true]);
    }
    expect([reader.read(bytes("\r\n"), 0), reader.empty]).toEqual([false, true]);
    expect(reader.read(bytes("\r"), 0)).toBe(false);
    expect(() => reader.read(bytes("G"), 0)).toThrow(HeadError);
    expect(reader.firstLine()).toBe("");
  });
});

describe("what a request head says", () => {
  const WEBSOCKET = "Host: a\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n";
  const HOST = "Host: a\r\n";
  test.each<[head: string, expected: object]>([
    [`GET / HTTP/1.1\r\n${HOST}`, { keepAlive: true, bodyLength: 0, lengthDeclared: false, version: "1.1" }],
    [`GET / HTTP/1.9\r\n${HOST}`, { keepAlive: true, version: "1.1" }],
    ["GET / HTTP/1.0\r\n", { keepAlive: false, version: "1.0", host: "", serverName: "" }],
    ["GET / HTTP/1.0\r\nConnection: keep-alive\r\n", { keepAlive: true }],
    ["GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n", { keepAlive: false }],
    [`GET / HTTP/1.1\r\n${HOST}Connection: keep-alive ,\tClose\r\n`, { keepAlive: false }],
    [`GET / HTTP/1.1\r\n${WEBSOCKET}`, { upgrade: "websocket", keepAlive: true }],
    [`GET / HTTP/1.0\r\n${WEBSOCKET}`, { upgrade: undefined }],
    [`POST / HTTP/1.1\r\n${WEBSOCKET}`, { upgrade: undefined }],
    [`GET / HTTP/1.1\r\n${WEBSOCKET}Content-Length: 1\r\n`, { upgrade: undefined, bodyLength: 1 }],
    [`GET / HTTP/1.1\r\n${HOST}Upgrade: websocket\r\n`, { upgrade: undefined }],
    [`GET / HTTP/1.1\r\n${HOST}Connection: upgrade\r\n`, { upgrade: undefined }],
    [`PUT / HTTP/1.1\r\n${HOST}Expect: 100-Continue\r\n`, { expectContinue: true }],
    ["PUT / HTTP/1.0\r\nExpect: 100-continue\r\n", { expectContinue: false }],
    [`PUT / HTTP/1.1\r\n${HOST}Expect:\r\n`, { expectContinue: false }],
    [`PUT / HTTP/1.1\r\n${HOST}Content-Length: 0\r\n`, { bodyLength: 0, lengthDeclared: true }],
    [`PUT / HTTP/1.1\r\n${HOST}Content-Length: 1234567890\r\n`, { bodyLength: 1_234_567_890 }],
    [`PUT / HTTP/1.1\r\n${HOST}Content-Length: 9007199254740991\r\n`, { bodyLength: 2 ** 53 - 1 }],
    [`PUT / HTTP/1.1\r\n${HOST}Transfer-Encoding: Chunked\r\n`, { bodyLength: -1, lengthDeclared: false }],
    [`GET http://B:8 HTTP/1.1\r\n${HOST}`, { target: "/", path: "/", host: "B:8", serverName: "b" }],
    [`GET https://b?c=/d HTTP/1.1\r\n${HOST}`, { target: "/?c=/d", path: "/", host: "b" }],
    ["GET http://b/c?d HTTP/1.0\r\n", { target: "/c?d", path: "/c", host: "b" }],
    [`GET /!~\x80\xff HTTP/1.1\r\n${HOST}`, { target: "/!~\x80\xff" }],
  ])("%j", (head, expected) => {
    const reader = new HeadReader(4_096, LINE_BYTES);
    // After other bytes of the same read.
    expect(reader.read(bytes(`${"-".repeat(LINE_BYTES)}${head}\r\n`), LINE_BYTES)).toBe(true);
    const request = parseRequestHead(reader, LIMITS, 77);
    const [requestLine, method] = [head.split("\r\n")[0], head.split(" ")[0]];
    expect(request).toMatchObject({ ...expected, receivedAt: 77, requestLine, method });
  });

  test.each([
    ["OPTIONS * HTTP/1.1\r\nHost: a\r\n", "asterisk-form is not served"],
    ["GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 00000000000000001\r\n", "not a number of bytes"],
    ["GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9007199254740992\r\n", "not a number of bytes"],
    ["GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1:\r\n", "not a number of bytes"],
    ["GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1/\r\n", "not a number of bytes"],
    ["GET /\x7f HTTP/1.1\r\nHost: a\r\n", "no target or no version"],
    ["GET  HTTP/1.1\r\nHost: a\r\n", "no target or no version"],
    ["GET / HTTP/1.x\r\nHost: a\r\n", "malformed version"],
    ["GET / HTTP/1.1 \r\nHost: a\r\n", "bytes after the version"],
    ["GET / HTTP/1.1\r\r\nHost: a\r\n", "bytes after the version"],
    ["GET / HTTP/1.1\r\nHost\x7f: a\r\n", "field name is not a token"],
    ["GET / HTTP/1.1\r\nHost: a\x1f\r\n", "control byte"],
    ["GET / HTTP/1.1\r\nHost: a\r\rX: y\r\n", "control byte"],
    ["GET / HTTP/1.1\r\n", "no Host field"],
    ["GET / HTTP/1.1\r\nHost: \r\n", "empty Host field"],
    ["GET http://a/ HTTP/1.1\r\nHost: \r\n", "empty Host field"],
    ["GET / HTTP/1.1\r\nHost: a\r\nRange: b\r\nIf-Range: c\r\nif-range: c\r\n", "two if-range fields"],
  ])("%j is refused with its reason", (head, reason) => {
    const reader = new HeadReader(4_096, LINE_BYTES);
    let refused: unknown;
    try {
      reader.read(bytes(`${head}\r\n`), 0);
      parseRequestHead(reader, LIMITS, 0);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(HeadError);
    expect(refused).toMatchObject({ status: 400, message: expect.stringContaining(reason) as string });
  });

  test("in place of one that could not be read there is one that ends its connection", () => {
    const nothing = { target: "", path: "", headers: [], host: "", serverName: "", upgrade: undefined };
    const request = (method: string, requestLine: string): object => ({
      ...{ ...nothing, method, requestLine, version: "1.1", bodyLength: 0, lengthDeclared: false },
      ...{
        connectionLogin: false,
        keepAlive: false,
        expectContinue: false,
        receivedAt: expect.any(Number) as number,
      },
    });
    expect(unroutable("GET /")).toEqual(request("", "GET /"));
    expect(unroutable("HEAD /")).toEqual(request("HEAD", "HEAD /"));
  });
});

describe("fields", () => {
  const parsed = (lines: string, fates = REQUEST_FATES) =>
    parseFields({ text: `${lines}\r\n`, bytes: bytes(`${lines}\r\n`), at: 0 }, 0, 1_000, fates);

  test.each(SINGLE_FIELDS)("%s may occur once", (name) => {
    const once = `${SINGLE_FIELDS.join(": 1\r\n")}: 1\r\n`;
    expect(parsed(once).repeated).toBeUndefined();
    expect(parsed(`${once}${name.toUpperCase()}: 2\r\n`).repeated).toBe(name);
  });

  test("any other may occur twice", () => {
    const others = NAMES.filter((name) => !["", "host", "content-length", ...SINGLE_FIELDS].includes(name));
    expect(parsed(others.map((name) => `${name}: 1\r\n`.repeat(2)).join("")).repeated).toBeUndefined();
  });

  test.each<[lines: string, of: "a request" | "a response", passes: string | undefined]>([
    ["Content-Type: a\r\n", "a response", "Content-Type: a\r\n\r\n"],
    ["Content-Type: a\r\nContent-Type: b\r\n", "a response", undefined],
    ["A: 1\r\nX-Accel-Expires: 5\r\nx-pad: a\r\nB: 2\r\n", "a response", "A: 1\r\nB: 2\r\n\r\n"],
    ["X-Padded: a\r\nX_B: 2\r\n", "a response", "X-Padded: a\r\nX_B: 2\r\n\r\n"],
    [
      "X-A: 1\r\nx-b: 2\r\nAX-Forwarded-A: 3\r\n",
      "a request",
      "X-A: 1\r\nx-b: 2\r\nAX-Forwarded-A: 3\r\n\r\n",
    ],
    ["X-Forwarded-Ssl: on\r\n", "a request", undefined],
    ["x-forwarded-ssl: on\r\n", "a request", undefined],
    ["A_B: 1\r\nC: 2\r\n", "a request", undefined],
    ["Host: a\r\nA: 1\r\nExpect: b\r\nB: 2\r\nTe: c\r\n", "a request", "A: 1\r\nB: 2\r\n\r\n"],
    ["A:\r\n", "a request", undefined],
    ["A: \r\n", "a request", "A: \r\n\r\n"],
    ["A:1\r\n", "a request", undefined],
    ["A:  1\r\n", "a request", undefined],
    ["A:\t1\r\n", "a request", undefined],
    ["A: 1 \r\n", "a request", undefined],
    ["Connection: close\r\nA: 1\r\n", "a request", "A: 1\r\n\r\n"],
    ["Connection: a\r\nA: 1\r\n", "a request", undefined],
  ])("%j of %s pass as %j", (lines, of, passes) => {
    expect(parsed(lines, of === "a request" ? REQUEST_FATES : RESPONSE_FATES).plainLines).toBe(passes);
  });

  test("the first of several is what the log shows", () => {
    const lines = ["Referer", "User-Agent", "Authorization"].map((name) => `${name}: 1\r\n${name}: 2\r\n`);
    expect(parsed(lines.join(""))).toMatchObject({ referer: "1", userAgent: "1", authorization: "1" });
  });

  test("a name that begins with another one is not that one", () => {
    const number = (text: string): number => nameNumber(bytes(text), 0, text.length);
    // Some of these are looked for in the same place as the name that they begin with.
    const longer = NAMES.filter((name) => name !== "").flatMap((name) =>
      Array.from({ length: 15 }, (_, more) =>
        [..."abcdefghijklmnopqrstuvwxyz"].map((last) => `${name}${"-".repeat(more)}${last}`),
      ).flat(),
    );
    expect(longer.filter((name) => number(name) !== Math.max(OTHER, NAMES.indexOf(name)))).toEqual([]);
  });
});

describe("an upstream's response head", () => {
  const parsed = (head: string, method = "GET") => {
    const reader = new HeadReader(4_096, 4_096);
    reader.read(bytes(`${head}\r\n\r\n`), 0);
    return parseResponseHead(reader, method, 4, false);
  };
  const OK = "HTTP/1.1 200 OK";
  const UPGRADED = "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: WebSocket";

  test.each<[head: string, expected: object, method?: string]>([
    [OK, { status: 200, reason: "OK", bodyLength: UNTIL_CLOSE, contentLength: -1, keepAlive: false }],
    ["HTTP/1.1 100 ", { status: 100, reason: "", bodyLength: 0 }],
    ["HTTP/1.1 599", { status: 599, reason: "" }],
    ["HTTP/1.1 600 X", { status: 600, reason: "X" }],
    ["HTTP/1.1 999 X", { status: 999, bodyLength: UNTIL_CLOSE }],
    ["HTTP/1.1 209 \xe9", { status: 209, reason: "\xe9" }],
    ["HTTP/1.1 190 A b", { status: 190, reason: "A b", bodyLength: 0 }],
    [`${OK}\r\nContent-Length: 7`, { bodyLength: 7, contentLength: 7, keepAlive: true }],
    [`${OK}\r\nContent-Length: 7\r\nA: b\r\ncontent-length: 7`, { bodyLength: 7, contentLength: 7 }],
    [`${OK}\r\nContent-Length: 7`, { contentLength: 7, keepAlive: true, bodiless: "HEAD" }, "HEAD"],
    [`${OK}\r\nContent-Length: 0`, { contentLength: 0, keepAlive: true, bodiless: undefined }, "HEAD"],
    [OK, { bodyLength: 0, contentLength: -1, keepAlive: true, bodiless: "HEAD" }, "HEAD"],
    ["HTTP/1.1 204 X", { bodyLength: 0, keepAlive: true, bodiless: "204" }],
    ["HTTP/1.1 304 X", { bodyLength: 0, keepAlive: true, bodiless: "304" }],
    ["HTTP/1.1 304 X\r\nContent-Length: 0", { keepAlive: true, bodiless: undefined }],
    ["HTTP/1.1 304 X\r\nTransfer-Encoding: chunked", { bodyLength: 0, keepAlive: false }],
    [`${OK}\r\nContent-Length: 7\r\nConnection: close`, { bodyLength: 7, keepAlive: false }],
    ["HTTP/1.1 304 X\r\nContent-Length: 7", { bodyLength: 0, contentLength: 7, keepAlive: false }],
    ["HTTP/1.1 204 X\r\nContent-Length: 7", { bodyLength: 0, contentLength: 7, keepAlive: false }],
    ["HTTP/1.1 205 X\r\nContent-Length: 7", { bodyLength: 7 }],
    [`${OK}\r\nTransfer-Encoding: Chunked`, { bodyLength: -1, contentLength: -1, keepAlive: true }],
    ["HTTP/1.0 200 OK\r\nContent-Length: 7", { bodyLength: 7, keepAlive: false }],
    ["HTTP/1.0 200 OK\r\nContent-Length: 7\r\nConnection: keep-alive", { keepAlive: true }],
    ["HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive", { keepAlive: true }],
    ["HTTP/1.0 200 OK\r\nConnection: keep-alive", { bodyLength: UNTIL_CLOSE, keepAlive: false }],
    [UPGRADED, { status: 101, upgrade: "websocket" }],
    ["HTTP/1.1 101 Yes\r\nUpgrade: websocket", { upgrade: undefined }],
    [`${OK}\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1`, { status: 200 }],
  ])("%j says %j", (head, expected, method = "GET") => {
    expect(parsed(head, method)).toMatchObject(expected);
  });

  test.each([
    ["HTTP/1.1 099 X", "status line"],
    ["HTTP/1.1 :00 X", "status line"],
    ["HTTP/1.1 2/0 X", "status line"],
    ["HTTP/1.1 2:0 X", "status line"],
    ["HTTP/1.1 20/ X", "status line"],
    ["HTTP/1.1 20: X", "status line"],
    ["HTTP/1.1 2000 X", "status line"],
    ["HTTP/1.1 200\tX", "status line"],
    ["HTTP/1.1  200 X", "status line"],
    ["HTTP/1.1 200 X\x01", "status line"],
    ["HTTP/1.1 200 X\rA: 1", "status line"],
    ["HTTP/1.2 200 X", "status line"],
    ["xHTTP/1.1 200 X", "status line"],
    ["HTTP/1.1 200 X\r\nContent-Length: 7\r\nContent-Length: 8", "two Content-Length"],
    ["HTTP/1.1 200 X\r\nContent-Length: 7, 7", "not a number"],
    ["HTTP/1.1 200 X\r\n A: b", "not a token"],
    ["HTTP/1.1 200 X\r\n\tA: b\r\nB: c\r\n d", "not a token"],
    ["HTTP/1.1 200 X\r\nContent-Length: 1\r\n 0", "continues on the next line"],
    ["HTTP/1.1 200 X\r\nA: b\r\n c\r\nTransfer-Encoding:\r\n\tchunked", "continues on the next line"],
    ["HTTP/1.1 200 X\r\nA: b\r\n c\x00", "control byte"],
    ["HTTP/1.1 200 X\r\nA: b\n c\r\nB: d", "control byte"],
    ["HTTP/1.1 200 X\r\nTransfer-Encoding: gzip", "other than chunked"],
    ["HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nContent-Length: 1", "beside"],
    ["HTTP/1.0 200 X\r\nTransfer-Encoding: chunked", "HTTP/1.0"],
    ["HTTP/1.1 200 X\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1", "too many fields"],
  ])("%j is refused", (head, reason) => {
    expect(() => parsed(head)).toThrow(reason);
  });
});

test.each([
  ["A: b\r\n c", ["A", "b c"]],
  ["A: b\r\n\t \tc", ["A", "b c"]],
  ["A: b\r\n c\r\n d\r\nB: e", ["A", "b c d", "B", "e"]],
  ["A:\r\n b", ["A", "b"]],
  ["A: b\r\n \r\nB: c", ["A", "b", "B", "c"]],
  ["A: b\r\n Set-Cookie: c=d", ["A", "b Set-Cookie: c=d"]],
])("a folded field of a response is one: %j", (lines, list) => {
  for (const listed of [true, false]) {
    const reader = new HeadReader(4_096, 4_096);
    reader.read(bytes(`HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`), 0);
    const { fields } = parseResponseHead(reader, "GET", 4, listed);
    expect(fields.list).toEqual(list);
    if (fields.plainLines !== undefined) expect(fields.plainLines).not.toMatch(/^[ \t]/m);
  }
});

describe("a head whose lines may end with LF alone", () => {
  const HEAD = "HTTP/1.1 200 OK\r\nA: b\r\nC:\r\n\r\n";
  test.each([
    [HEAD.replaceAll("\r\n", "\n"), HEAD],
    [HEAD, HEAD],
    ["HTTP/1.1 200 OK\r\nA: b\nC:\r\n\n", HEAD],
    ["HTTP/1.1 200 OK\nA: b\r\nC:\n\r\n", HEAD],
    // The parser refuses the CR.
    ["A: b\r\r\n\n", "A: b\r\r\n\r\n"],
  ])("%j is read as %j", (sent, read) => {
    for (const size of [1, 2, 3, sent.length]) {
      const reader = new LineFeedReader(64);
      for (let round = 0; round < 2; round++) {
        let [at, found] = [0, false];
        for (; at < sent.length; at += size) found = reader.read(bytes(sent.slice(at, at + size)), 0);
        expect([found, reader.text, Buffer.from(reader.bytes).toString("latin1")]).toEqual([
          true,
          read,
          read,
        ]);
        reader.release();
      }
    }
  });

  test("ends before the body", () => {
    const reader = new LineFeedReader(64);
    expect(reader.read(bytes("xA: b\n\nbody\n\n"), 1)).toBe(true);
    expect([reader.text, reader.next, reader.empty]).toEqual(["A: b\r\n\r\n", 7, true]);
  });

  test.each(["\nA: b", "\r\nA: b", `A: ${"b".repeat(64)}`, "A\n".repeat(22)])("%j is refused", (sent) => {
    expect(() => new LineFeedReader(64).read(bytes(sent), 0)).toThrow(HeadError);
  });
});

describe("the chunked coding", () => {
  /** What it comes to, read whole and by the byte: the data, and where the message ends. */
  function decoded(text: string, blanks = false): { readonly data: string; readonly end: number } {
    const found = [text.length, 1].map((size) => {
      const decoder = new ChunkDecoder(blanks);
      let data = "";
      let end = 0;
      for (let at = 0; at < text.length && !decoder.done; at += size) {
        const piece = bytes(text.slice(at, at + size));
        end =
          at +
          decoder.decode(piece, 0, {
            onBytes: (chunk, from, to) => void (data += chunk.toString("latin1", from, to)),
          });
      }
      return { data, end: decoder.done ? end : -1 };
    });
    expect(found[1]).toEqual(found[0]);
    return found[0]!;
  }

  const END = "0\r\n\r\n";
  const LINE_MAX = 4_096;
  const TRAILERS_MAX = 16_384;
  /** An extension, with its line's CR, of so many bytes. */
  const extended = (length: number): string => `1;${"e".repeat(length - 1)}\r\nx\r\n`;
  const trailer = (length: number): string => `T:${"t".repeat(length - 3)}\r\n`;

  test.each([
    ["data and what follows", `5\r\nhello\r\n${END}NEXT`, "hello"],
    ["a size of 13 digits", `0000000000005\r\nhello\r\n${END}`, "hello"],
    ["sizes of many digits in all", `00000005\r\nhello\r\n00000003\r\nyou\r\n${END}`, "helloyou"],
    ["a tab and a byte above 0x7f in an extension", `1;a=\t\xff\r\nx\r\n${END}`, "x"],
    ["long extensions", extended(LINE_MAX) + extended(LINE_MAX) + END, "xx"],
    ["long trailers", `0\r\n${trailer(TRAILERS_MAX)}\r\n`, ""],
    ["two trailers", `0\r\na:\r\nb-c: \t\xff~\r\n\r\n`, ""],
    ["a second size of 13 digits", `1\r\nx\r\n0000000000001\r\ny\r\n${END}`, "xy"],
  ])("%s", (_what, text, data) => {
    expect(decoded(text)).toEqual({ data, end: text.length - (text.endsWith("NEXT") ? 4 : 0) });
  });

  test("every digit counts", () => {
    for (const digit of "123456789abcdefABCDEF") {
      const data = "d".repeat(parseInt(digit, 16));
      expect(decoded(`${digit}\r\n${data}\r\n${END}`).data).toBe(data);
      const long = "d".repeat(parseInt(`1${digit}`, 16));
      expect(decoded(`1${digit}\r\n${long}\r\n${END}`).data).toBe(long);
    }
  });

  test("chunks of any size keep their order beside others", () => {
    const at = (i: number): string => String.fromCharCode(0x61 + (i % 23));
    // Few bytes, and many, go another way than those in between.
    for (const sizes of [[2_048], [2_049], [1, 2_048, 1], [1, 2_049, 1], [40, 32, 33, 31, 5_000, 2, 3_000]]) {
      const data = sizes.map((size, n) => Array.from({ length: size }, (_, i) => at(i * (n + 1))).join(""));
      const chunks = data.map((one) => `${one.length.toString(16)}\r\n${one}\r\n`);
      expect(decoded(chunks.join("") + END).data).toBe(data.join(""));
    }
  });

  test.each([
    ["a size of 14 digits", `00000000000005\r\nhello\r\n${END}`],
    ...[..."/:@G`g\x10- \t"].map((byte) => [`${JSON.stringify(byte)} in a size`, `1${byte}\r\nx`]),
    ["no size", ";e\r\nx"],
    ["an extension that is too long", extended(LINE_MAX + 1)],
    ["trailers that are too long", `0\r\n${trailer(TRAILERS_MAX + 1)}\r\n`],
    ["several trailers that are too long", `0\r\n${trailer(TRAILERS_MAX)}T:\r\n\r\n`],
    ["a control byte in an extension", `1;\x01\r\nx\r\n${END}`],
    ["DEL in a trailer", "0\r\na: \x7f\r\n\r\n"],
    ["LF in a trailer", "0\r\na: \x7f\n"],
    ["a byte in place of the LF after a trailer", "0\r\na: b\rX\r\n"],
    ["no LF after a trailer", "0\r\na: b\r\r\n\r\n"],
    ["a byte in place of the CR after the data", `1\r\nxX\n${END}`],
    ["no LF at the end", "0\r\n\r\r"],
    ["no CR after the data", "1\r\nx\n\r"],
    ["no LF after the data", "1\r\nx\r\r"],
    ["no LF after the size", "1\r\rx"],
  ])("%s breaks it", (_what, text) => {
    expect(() => decoded(text!)).toThrow(ChunkError);
  });

  /** A size with blanks, whose line has so many bytes behind its digit. */
  const blank = (length: number): string => `1${" ".repeat(length)}\r\nx\r\n`;

  test.each([
    ["blanks", `5 \r\nhello\r\n0\t \r\n\r\n`, "hello"],
    ["blanks and an extension", `1 \t;e\r\nx\r\n1;e \r\ny\r\n${END}`, "xy"],
    ["as many blanks as a line may have", blank(LINE_MAX) + blank(LINE_MAX) + END, "xx"],
  ])("of a response may have %s behind a size", (_what, text, data) => {
    expect(decoded(text, true)).toEqual({ data, end: text.length });
    expect(() => decoded(text)).toThrow(ChunkError);
  });

  test.each([
    ["more blanks than a line may have", blank(LINE_MAX + 1)],
    ["more blanks and extensions", `1${" ".repeat(LINE_MAX)};\r\nx\r\n${END}`],
    ["a digit behind a blank", `1 1\r\nx\r\n${END}`],
    ["a blank before the size", ` 1\r\nx\r\n${END}`],
    ["no size", " \r\nx"],
    ["LF behind a blank", "1 \nx"],
    ["another byte behind a blank", "1 \x0b\r\nx"],
  ])("of a response is broken by %s", (_what, text) => {
    expect(() => decoded(text, true)).toThrow(ChunkError);
  });

  test("extensions of all chunks together have a bound", () => {
    const decoder = new ChunkDecoder();
    const most = bytes(extended(LINE_MAX));
    for (let i = 0; i < 4_096; i++) decoder.decode(most, 0, { onBytes: () => undefined });
    expect(() => decoder.decode(bytes("1;\r\n"), 0, { onBytes: () => undefined })).toThrow(ChunkError);
  });
});

describe("framing of what is sent", () => {
  interface Framed {
    /** The framing fields. */
    readonly fields: string;
    /** Body bytes that may follow at most. */
    readonly most: number;
    /** What marks the end. */
    readonly end: string;
    /** Whether another message may follow. */
    readonly next: boolean;
  }
  const framings: readonly (readonly [string, (framing: MessageFraming) => string, Framed])[] = [
    ...(
      [
        [0, false, false, { fields: "", most: 0, end: "", next: true }],
        [0, true, false, { fields: "Content-Length: 0\r\n", most: 0, end: "", next: true }],
        [1, true, false, { fields: "Content-Length: 1\r\n", most: 1, end: "", next: true }],
        [1, false, false, { fields: "Content-Length: 1\r\n", most: 1, end: "", next: true }],
        [
          -1,
          false,
          false,
          { fields: "Transfer-Encoding: chunked\r\n", most: Infinity, end: "0\r\n\r\n", next: true },
        ],
        [0, true, true, { fields: "", most: 0, end: "", next: false }],
      ] as const
    ).map(
      ([length, declared, upgrade, framed]) =>
        [
          `a request of ${length} bytes, declared: ${declared}, upgrade: ${upgrade}`,
          (framing: MessageFraming) => framing.beginRequest(length, declared, upgrade),
          framed,
        ] as const,
    ),
    ...(
      [
        ["GET", 200, 5, true, { fields: "Content-Length: 5\r\n", most: 5, end: "", next: true }],
        ["GET", 200, 0, true, { fields: "Content-Length: 0\r\n", most: 0, end: "", next: true }],
        [
          "GET",
          200,
          -1,
          true,
          { fields: "Transfer-Encoding: chunked\r\n", most: Infinity, end: "0\r\n\r\n", next: true },
        ],
        ["GET", 200, -1, false, { fields: "", most: Infinity, end: "", next: false }],
        ["HEAD", 200, 5, true, { fields: "Content-Length: 5\r\n", most: 0, end: "", next: true }],
        ["HEAD", 200, -1, true, { fields: "", most: 0, end: "", next: true }],
        ["GET", 204, 0, true, { fields: "", most: 0, end: "", next: true }],
        ["GET", 304, 5, true, { fields: "Content-Length: 5\r\n", most: 0, end: "", next: true }],
        ["GET", 304, -1, true, { fields: "", most: 0, end: "", next: true }],
        ["GET", 199, -1, true, { fields: "", most: 0, end: "", next: true }],
        [
          "GET",
          101,
          -1,
          true,
          { fields: "Connection: Upgrade\r\nUpgrade: websocket\r\n", most: Infinity, end: "", next: false },
        ],
      ] as const
    ).map(
      ([method, status, length, chunks, framed]) =>
        [
          `${status} to ${method} of ${length} bytes, chunks: ${chunks}`,
          (framing: MessageFraming) => framing.beginResponse(method, status, length, chunks, "websocket"),
          framed,
        ] as const,
    ),
  ];

  test.each(framings)("%s", (_what, begin, { fields, most, end, next }) => {
    const framing = new MessageFraming();
    expect(framing.atBoundary).toBe(true);
    // The same object serves one message after the other.
    for (let i = 0; i < 2; i++) {
      expect([begin(framing), framing.atBoundary]).toEqual([fields, false]);
      expect(framing.pieceStart(31) + framing.pieceEnd).toBe(end === "" ? "" : "1f\r\n\r\n");
      expect(framing.isTunnel).toBe(/upgrade|^101/.test(_what) && !next);
      expect(framing.endsByClose).toBe(!next);
      expect(framing.hasBody).toBe(
        fields.startsWith("Content-Length: 0") && _what.startsWith("200")
          ? true
          : most > 0 || framing.isTunnel,
      );
      if (most === Infinity) framing.count(1_000_000);
      else {
        if (most > 0) expect(() => framing.end()).toThrow(FramingError);
        expect(() => framing.count(most + 1)).toThrow(FramingError);
        framing.count(most);
        expect(() => framing.count(1)).toThrow(FramingError);
      }
      expect([framing.end(), framing.end()]).toEqual([end, ""]);
      expect(framing.atBoundary).toBe(next);
      expect(() => framing.count(0)).toThrow("bytes after the end");
    }
  });

  test("a tunnel opens only if one was requested", () => {
    const framing = new MessageFraming();
    expect(() => framing.openTunnel()).toThrow(FramingError);
    framing.beginRequest(0, false, true);
    framing.end();
    framing.openTunnel();
    framing.count(1_000_000);
    framing.count(1);
    framing.beginRequest(1, true, false);
    expect(() => framing.openTunnel()).toThrow(FramingError);
    expect(() => framing.count(2)).toThrow(FramingError);
  });
});
