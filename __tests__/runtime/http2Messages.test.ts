import { type ProxyConfig, parseConfig } from "../../src/model/index.js";
import { FieldBlock, FrameReader } from "../../src/runtime/codec/http2/frames.js";
import {
  FieldKind,
  hpackField,
  isFieldValue,
  isLowerToken,
} from "../../src/runtime/codec/http2/hpackTables.js";
import { ConnectionError, ErrorCode } from "../../src/runtime/codec/http2/protocol.js";
import { parseRequestHead } from "../../src/runtime/codec/http2/requestFields.js";
import { readSettings, serverPreface } from "../../src/runtime/codec/http2/settings.js";
import { SINGLE_FIELDS } from "../../src/runtime/codec/request.js";
import { Frame, frame, PADDED, PREFACE } from "../../testkit/http2RawClient.js";
import { randomText } from "../../testkit/random.js";

/** HTTP/2 at the edges of what is taken: frames in whatever pieces they come, settings, windows, blocks and heads. */

const hex = (text: string): Buffer => Buffer.from(text.replace(/ /g, ""), "hex");

/** The code of the connection error that something throws; undefined if it throws none. */
function codeOf(step: () => unknown): ErrorCode | undefined {
  try {
    step();
    return undefined;
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    return error.code;
  }
}

describe("frames", () => {
  /** What a client's bytes come to, read in pieces of one size. */
  function seen(bytes: Buffer, size: number, stopAfter = Infinity): string[] {
    const events: string[] = [];
    let data = "";
    const reader: FrameReader = new FrameReader({
      onDataBegin: (stream, length) => {
        data = "";
        events.push(`DATA ${stream} ${length}`);
      },
      onDataPiece: (chunk, from, to) => {
        if (to <= from) throw new Error("an empty piece");
        data += chunk.toString("latin1", from, to);
      },
      onDataEnd: (flags) => events.push(`${data} ${flags}`),
      onFrame: (type, flags, stream, of, from, to) => {
        events.push(`${type} ${flags} ${stream} ${of.toString("latin1", from, to)}`);
        reader.stopped = events.length >= stopAfter;
      },
    });
    for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
    return events;
  }

  const SIZES = [1, 2, 3, 5, 8, 9, 10, 11, 13, 24, 25, 100, 1 << 20];

  test.each(SIZES)("are the same in pieces of %i bytes", (size) => {
    const large = randomText(16_384);
    const all = Buffer.concat([
      PREFACE,
      frame(Frame.SETTINGS, 0, 0, ""),
      frame(Frame.HEADERS, 4, 0x8000_0003, "head"),
      frame(Frame.DATA, 0, 0x7fff_ffff, "some data"),
      frame(Frame.DATA, 1, 0x0102_0305, ""),
      frame(Frame.DATA, PADDED, 3, "\x03data\0\0\0"),
      frame(Frame.DATA, PADDED, 3, "\x02\0\0"),
      frame(Frame.DATA, PADDED, 3, "\x00x"),
      frame(Frame.DATA, PADDED | 1, 3, "\x00"),
      frame(Frame.PING, 0, 0, "12345678"),
      frame(200, 255, 5, large),
      frame(Frame.DATA, 0, 5, large),
      frame(Frame.PING, 0, 0, "the end."),
    ]);
    expect(seen(all, size)).toEqual([
      "4 0 0 ",
      "1 4 3 head",
      ...["DATA 2147483647 9", "some data 0"],
      ...[`DATA ${0x0102_0305} 0`, " 1"],
      ...["DATA 3 8", "data 8"],
      ...["DATA 3 3", " 8"],
      ...["DATA 3 2", "x 8"],
      ...["DATA 3 1", " 9"],
      "6 0 0 12345678",
      `200 255 5 ${large}`,
      ...["DATA 5 16384", `${large} 0`],
      "6 0 0 the end.",
    ]);
  });

  test.each(SIZES)("behind a stop nothing is read, in pieces of %i bytes", (size) => {
    const pings = Buffer.concat([PREFACE, ...Array<Buffer>(5).fill(frame(Frame.PING, 0, 0, "12345678"))]);
    expect(seen(pings, size, 2)).toHaveLength(2);
  });

  test.each<[what: string, bytes: Buffer, code: ErrorCode]>([
    ["a frame of 16,385 bytes", frame(Frame.PING, 0, 0, "x".repeat(16_385)), ErrorCode.FrameSizeError],
    ["DATA of 16,385 bytes", frame(Frame.DATA, 0, 1, "x".repeat(16_385)), ErrorCode.FrameSizeError],
    ["DATA of 65,536 bytes", frame(Frame.DATA, 0, 1, "x".repeat(65_536)), ErrorCode.FrameSizeError],
    ["padded DATA without a pad length", frame(Frame.DATA, PADDED, 1, ""), ErrorCode.FrameSizeError],
    ["more padding than payload", frame(Frame.DATA, PADDED, 1, "\x02x"), ErrorCode.ProtocolError],
    ["padding without payload", frame(Frame.DATA, PADDED, 1, "\x01"), ErrorCode.ProtocolError],
  ])("%s is an error", (_what, bytes, code) => {
    for (const size of SIZES) expect(codeOf(() => seen(Buffer.concat([PREFACE, bytes]), size))).toBe(code);
  });

  test("the preface counts to its last byte", () => {
    for (let at = 0; at < PREFACE.length; at++) {
      const wrong = Buffer.from(PREFACE);
      wrong[at]! ^= 1;
      expect([at, codeOf(() => seen(wrong, 7))]).toEqual([at, ErrorCode.ProtocolError]);
    }
  });
});

describe("settings", () => {
  const config = parseConfig({
    version: 1,
    limits: { concurrentStreamsMax: 99, headBytesMax: 10_000, headerCountMax: 10 },
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    virtualServers: [{ name: "a", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
  });

  test("of ours are these, and a window for the connection", () => {
    expect(config.ok).toBe(true);
    expect(serverPreface((config as { value: ProxyConfig }).value)).toEqual(
      hex(
        "000018 04 00 00000000 0003 00000063 0004 0000ffff 0006 00002850 0008 00000001 000004 08 00 00000000 00070001",
      ),
    );
  });

  /** What the settings in a payload change, and the code of the error that they are. */
  function read(payload: string): { readonly changes: string[]; readonly code: ErrorCode | undefined } {
    const changes: string[] = [];
    const bytes = hex(`ff${payload}ff`);
    const code = codeOf(() =>
      readSettings(bytes, 1, bytes.length - 1, {
        onTableSize: (size) => changes.push(`table ${size}`),
        onInitialWindow: (size) => changes.push(`window ${size}`),
      }),
    );
    return { changes, code };
  }

  test.each([
    ["", []],
    ["0001 00000000 0001 ffffffff", ["table 0", "table 4294967295"]],
    ["0004 00000000 0004 7fffffff", ["window 0", "window 2147483647"]],
    ["0002 00000000 0002 00000001 0008 00000000 0008 00000001", []],
    ["0005 00004000 0005 00ffffff", []],
    ["0003 ffffffff 0006 00000000 0007 00000009 0101 00000005 ffff ffffffff 0001 00000005", ["table 5"]],
  ])("%j are taken", (payload, changes) => {
    expect(read(payload)).toEqual({ changes, code: undefined });
  });

  test.each([
    ["0002 00000002", ErrorCode.ProtocolError],
    ["0008 00000002", ErrorCode.ProtocolError],
    ["0004 80000000", ErrorCode.FlowControlError],
    ["0005 00003fff", ErrorCode.ProtocolError],
    ["0005 01000000", ErrorCode.ProtocolError],
    ["0001 000000", ErrorCode.FrameSizeError],
    ["0001 00000000 00", ErrorCode.FrameSizeError],
  ])("%j are an error", (payload, code) => {
    expect(read(payload)).toEqual({ changes: [], code });
  });
});

describe("a field block in several frames", () => {
  test("is what its frames hold, up to a number of bytes", () => {
    const block = new FieldBlock(10);
    for (let round = 0; round < 2; round++) {
      block.begin(7, 5, Buffer.from("-abc-"), 1, 4);
      expect([block.stream, block.flags]).toEqual([7, 5]);
      block.append(Buffer.from("defg"), 0, 4);
      block.append(Buffer.from("---hij--"), 3, 6);
      expect([block.end().toString(), block.stream]).toEqual(["abcdefghij", 0]);
    }
    block.begin(7, 5, Buffer.alloc(10), 0, 10);
    expect(codeOf(() => block.append(Buffer.alloc(1), 0, 1))).toBe(ErrorCode.EnhanceYourCalm);
    expect(codeOf(() => block.begin(7, 5, Buffer.alloc(11), 0, 11))).toBe(ErrorCode.EnhanceYourCalm);
  });

  test("has 32 frames at most", () => {
    const block = new FieldBlock(100);
    const none = Buffer.alloc(0);
    for (let round = 0; round < 2; round++) {
      block.begin(1, 0, none, 0, 0);
      for (let i = 1; i < 32; i++) block.append(none, 0, 0);
    }
    expect(codeOf(() => block.append(none, 0, 0))).toBe(ErrorCode.EnhanceYourCalm);
  });
});

describe("a field", () => {
  test("has a name of lower-case token bytes", () => {
    for (let code = 0; code < 256; code++) {
      const byte = String.fromCharCode(code);
      const fits = /^[!#$%&'*+.^_`|~0-9a-z-]$/.test(byte);
      expect([code, isLowerToken(byte), isLowerToken(`a${byte}`), isLowerToken(`${byte}a`)]).toEqual([
        code,
        fits,
        fits,
        fits,
      ]);
    }
    expect(isLowerToken("")).toBe(false);
  });

  test("has a value without control bytes, and without blanks around it", () => {
    for (let code = 0; code < 256; code++) {
      const byte = String.fromCharCode(code);
      const inside = /^[\t -~\x80-\xff]$/.test(byte);
      const outside = inside && byte !== " " && byte !== "\t";
      const found = [isFieldValue(`a${byte}b`), isFieldValue(`${byte}b`), isFieldValue(`a${byte}`)];
      expect([code, ...found]).toEqual([code, inside, outside, outside]);
    }
    expect(isFieldValue("")).toBe(true);
  });

  test.each<[name: string, value: string, fits: boolean]>([
    [":method", "", false],
    [":method", "A", true],
    [":method", "A B", false],
    [":method", "(", false],
    [":scheme", "", false],
    [":scheme", "ht tp", false],
    [":path", "*", true],
    [":path", "/", true],
    [":path", "*/", false],
    [":path", "a", false],
    [":path", "/\x7f", false],
    [":authority", "", false],
    [":authority", "a b", false],
    [":protocol", "web/socket", false],
    [":protocol", "", false],
    ["content-length", "", false],
    ["content-length", "5x", false],
    ["content-length", "x5", false],
    ["content-length", "05", true],
    ["te", "Trailers", true],
    ["te", "", false],
    ["host", "", true],
    ["cookie", "", true],
    ["x", "\x80", true],
  ])("%s of %j: %j", (name, value, fits) => {
    expect(hpackField(name, value).kind !== FieldKind.Malformed).toBe(fits);
  });
});

describe("what a request head says", () => {
  const LIMITS = { requestLineBytesMax: 30, headBytesMax: 100, headerCountMax: 12 };
  const GET = { ":method": "GET", ":scheme": "https", ":authority": "A:8", ":path": "/" };
  type Fields = readonly (readonly [string, string])[];

  const parsed = (pseudo: Record<string, string | undefined>, more: Fields = [], ended = true) =>
    parseRequestHead(
      [...Object.entries({ ...GET, ...pseudo }).filter((field) => field[1] !== undefined), ...more].map(
        ([name, value]) => hpackField(name, value!),
      ),
      ended,
      LIMITS,
      77,
    );

  test.each<[pseudo: Record<string, string | undefined>, more: Fields, ended: boolean, expected: object]>([
    [{}, [], true, { bodyLength: 0, lengthDeclared: false, host: "A:8", serverName: "a", receivedAt: 77 }],
    [{}, [], true, { version: "2.0" }],
    [{}, [], false, { bodyLength: -1, lengthDeclared: false }],
    [{}, [["content-length", "0"]], true, { bodyLength: 0, lengthDeclared: true }],
    [{}, [["content-length", "7"]], false, { bodyLength: 7, lengthDeclared: true }],
    [{}, [["content-length", "9007199254740991"]], false, { bodyLength: 2 ** 53 - 1 }],
    [{}, [["expect", "100-Continue"]], false, { expectContinue: true }],
    [{}, [["expect", "100-continue"]], true, { expectContinue: false }],
    [{}, [["expect", ""]], false, { expectContinue: false }],
    [{ ":path": "/%61?b#" }, [], true, { status: 400 }],
    [{ ":path": "/%61?b" }, [], true, { target: "/%61?b", path: "/a", requestLine: "GET /%61?b HTTP/2.0" }],
    [{ ":path": `/${"a".repeat(16)}` }, [], true, { requestLine: `GET /${"a".repeat(16)} HTTP/2.0` }],
    [
      {},
      [
        ["cookie", "a"],
        ["x", "y"],
        ["cookie", "b"],
        ["cookie", "c"],
      ],
      true,
      { headers: ["cookie", "a; b; c", "x", "y"] },
    ],
    [{}, [["host", "a:8"]], true, { host: "A:8" }],
    [{ ":authority": undefined }, [["host", "b"]], true, { host: "b" }],
  ])("%j %j, ended: %s", (pseudo, more, ended, expected) => {
    const { request, refusal } = parsed(pseudo, more, ended);
    if ("status" in expected) expect(refusal).toMatchObject(expected);
    else expect({ ...request, refusal }).toMatchObject({ ...expected, refusal: undefined });
  });

  test.each<[pseudo: Record<string, string | undefined>, more: Fields, reason: string]>([
    [{ ":method": undefined }, [], "no :method"],
    [{ ":authority": undefined }, [], "neither :authority nor Host"],
    [{ ":method": "CONNECT", ":scheme": undefined }, [], "CONNECT with :path or :scheme"],
    [{ ":method": "CONNECT", ":path": undefined }, [], "CONNECT with :path or :scheme"],
    [{ ":scheme": undefined }, [], "no :scheme or no :path"],
    [{ ":path": undefined }, [], "no :scheme or no :path"],
    [{ ":protocol": "websocket" }, [], ":protocol without CONNECT"],
    [{}, [["content-length", "1"]], "Content-Length without a body"],
    [{}, [[":method", "GET"]], "pseudo-field given twice"],
    [{}, [[":scheme", "https"]], "pseudo-field given twice"],
    [{}, [[":authority", "A:8"]], "pseudo-field given twice"],
    [{}, [[":path", "/"]], "pseudo-field given twice"],
    [{ ":method": "CONNECT", ":protocol": "a" }, [[":protocol", "a"]], "pseudo-field given twice"],
    [
      {},
      [
        ["x", "y"],
        [":path", "/"],
      ],
      "pseudo-field after a regular one",
    ],
    [{}, [[":status", "200"]], "invalid pseudo-field"],
    [{}, [["upgrade", "a"]], "invalid or connection-specific field"],
    [
      {},
      [
        ["host", "A:8"],
        ["host", "A:8"],
      ],
      "two Host fields",
    ],
    [
      {},
      [
        ["content-length", "0"],
        ["content-length", "0"],
      ],
      "two Content-Length fields",
    ],
  ])("%j %j is malformed: %s", (pseudo, more, reason) => {
    expect(parsed(pseudo, more).refusal).toEqual({ status: 400, reason, malformed: true });
  });

  /** Fields that, with the request line of the plain GET, would take up so many bytes in HTTP/1.1. */
  const weighing = (bytes: number): Fields => [
    ["cookie", "a"],
    ["cookie", "b".repeat(bytes - "GET / HTTP/2.0".length - "cookie".length - 7)],
  ];
  test.each<[pseudo: Record<string, string | undefined>, more: Fields, ended: boolean, refusal: string]>([
    [{ ":path": `/${"a".repeat(17)}` }, [], true, "414 request line too long"],
    [{}, Array<[string, string]>(13).fill(["x", ""]), true, "400 too many fields"],
    [{}, weighing(101), true, "400 request head too long"],
    [
      { ":method": "CONNECT", ":scheme": undefined, ":path": undefined },
      [],
      true,
      "400 CONNECT is not served",
    ],
    [{ ":method": "TRACE" }, [], true, "405 TRACE is not served"],
    [{ ":path": "*" }, [], true, "400 asterisk-form is not served"],
    [{ ":scheme": "ftp" }, [], true, "400 scheme is neither https nor http"],
    [{}, [["host", "b"]], true, "400 Host differs from :authority"],
    [
      { ":method": "CONNECT", ":protocol": "websocket" },
      [["content-length", "0"]],
      false,
      "400 Content-Length of a CONNECT",
    ],
    [{}, [["content-length", "9007199254740992"]], false, "400 Content-Length is out of range"],
    [{}, [["expect", "x"]], true, "417 Expect is not 100-continue"],
    [{ ":authority": "a b".replace(" ", "..") }, [], true, "400 invalid host or target"],
    [{ ":path": "/../x" }, [], true, "400 invalid host or target"],
  ])("%j %j, ended: %s, is refused: %s", (pseudo, more, ended, expected) => {
    const { refusal } = parsed(pseudo, more, ended);
    expect([`${refusal?.status} ${refusal?.reason}`, refusal?.malformed]).toEqual([expected, false]);
  });

  test("up to the limits it is taken", () => {
    expect(parsed({}, weighing(100)).refusal).toBeUndefined();
    expect(parsed({}, Array<[string, string]>(12).fill(["x", ""])).refusal).toBeUndefined();
    expect(parsed({ ":scheme": "http" }).refusal).toBeUndefined();
  });

  test.each(SINGLE_FIELDS.filter((name) => name !== "expect"))("%s may occur once", (name) => {
    expect(parsed({}, [[name, "1"]]).refusal).toBeUndefined();
    expect(
      parsed({}, [
        [name, "1"],
        ["x", "y"],
        [name, "1"],
      ]).refusal?.reason,
    ).toBe(`two ${name} fields`);
  });

  test("a WebSocket has one key of 16 bytes, our own", () => {
    const key = ["sec-websocket-key", "Y2xpZW50"] as const;
    const { request } = parsed(
      { ":method": "CONNECT", ":protocol": "WebSocket" },
      [key, ["x", "y"], key],
      false,
    );
    expect([request.upgrade, request.headers.slice(0, 3)]).toEqual([
      "websocket",
      ["x", "y", "Sec-WebSocket-Key"],
    ]);
    expect(Buffer.from(request.headers[3]!, "base64")).toHaveLength(16);
    expect(request.headers).toHaveLength(4);
  });
});
