import fc from "../../testkit/property.js";
import {
  evaluateConditions,
  parseHttpDate,
  rangeMaySend,
  readConditions,
} from "../../src/runtime/actions/conditional.js";
import { byteLength, multipart, parseRange, RANGES_MAX } from "../../src/runtime/actions/ranges.js";

describe("ranges of a file of 45 bytes (decisions 6.5)", () => {
  test.each([
    ["bytes=0-3", [[0, 4]]],
    ["bytes=5-", [[5, 45]]],
    ["bytes=-4", [[41, 45]]],
    ["bytes=40-999", [[40, 45]]],
    ["bytes=-999", [[0, 45]]],
    ["BYTES=0-3", [[0, 4]]],
    ["bytes= 0 - 3 ", [[0, 4]]],
    [
      "bytes=0-3,,\t5-5",
      [
        [0, 4],
        [5, 6],
      ],
    ],
    [
      "bytes=5-6,0-1,5-6",
      [
        [5, 7],
        [0, 2],
        [5, 7],
      ],
    ],
    ["bytes=0-1,100-,-0,3-1", [[0, 2]]],
    [`bytes=0-${"9".repeat(400)}`, [[0, 45]]],
    ["bytes=-0", "unsatisfiable"],
    ["bytes=45-", "unsatisfiable"],
    ["bytes=100-", "unsatisfiable"],
    ["bytes=3-1", "unsatisfiable"],
    ["bytes=a-b", "unsatisfiable"],
    ["bytes=0-1,x", "unsatisfiable"],
    ["bytes=-", "unsatisfiable"],
    ["bytes=--1", "unsatisfiable"],
    ["bytes=0-1-2", "unsatisfiable"],
    ["bytes=+1-2", "unsatisfiable"],
    ["bytes=", "whole"],
    ["bytes=,", "whole"],
    [`bytes=${"9".repeat(400)}-`, "unsatisfiable"],
    ["bytes=0-,0-", "whole"],
    ["chars=0-3", "whole"],
    ["xbytes=0-3", "whole"],
    ["bytes=0-44", [[0, 45]]],
    ["bytes 0-3", "whole"],
    ["", "whole"],
  ] as const)("%s", (value, expected) => {
    const response = parseRange(value, 45);
    expect(typeof response === "string" ? response : response.map((r) => [r.start, r.end])).toEqual(expected);
  });

  test("an empty file is always sent whole", () => {
    for (const value of ["bytes=0-", "bytes=5-", "bytes=-1", "bytes=x"])
      expect(parseRange(value, 0)).toBe("whole");
  });

  test("the response to many small ranges is the whole file", () => {
    const set = (count: number): string =>
      `bytes=${Array.from({ length: count }, (_, i) => `${2 * i}-${2 * i}`).join(",")}`;
    expect(RANGES_MAX).toBe(100);
    expect(parseRange(set(RANGES_MAX), 10_000)).toHaveLength(RANGES_MAX);
    expect(parseRange(set(RANGES_MAX + 1), 10_000)).toBe("whole");
    // Whatever they are, and whatever follows.
    expect(parseRange(`bytes=${"9-8,".repeat(RANGES_MAX)}x`, 10_000)).toBe("whole");
    expect(parseRange(`bytes=${"9-8,".repeat(RANGES_MAX - 1)}x`, 10_000)).toBe("unsatisfiable");
  });
});

/** What RFC 9110, 14.1.2 says, byte by byte and without any care for cost. */
function oracle(
  specs: readonly (readonly [number | undefined, number | undefined])[],
  size: number,
): unknown {
  const all = Array.from({ length: size }, (_, i) => i);
  const parts = specs
    .map(([first, last]) =>
      all.filter((i) => (first === undefined ? i >= size - last! : i >= first && i <= (last ?? i))),
    )
    .filter((part) => part.length > 0);
  if (size === 0) return "whole";
  if (parts.length === 0) return "unsatisfiable";
  return parts.flat().length > size || parts.length > RANGES_MAX ? "whole" : parts;
}

test("any set of ranges selects the bytes that the RFC specifies", () => {
  const position = fc.nat(40);
  const spec = fc.oneof(
    fc.tuple(position, position),
    fc.tuple(position, fc.constant(undefined)),
    fc.tuple(fc.constant(undefined), position),
  );
  const space = fc.constantFrom("", " ", "\t");
  fc.assert(
    fc.property(fc.array(spec, { minLength: 1, maxLength: 6 }), fc.nat(30), space, (specs, size, gap) => {
      const value = `bytes=${specs.map(([a, b]) => `${gap}${a ?? ""}-${b ?? ""}${gap}`).join(",")}`;
      const response = parseRange(value, size);
      const bytes =
        typeof response === "string"
          ? response
          : response.map((r) => Array.from({ length: r.end - r.start }, (_, i) => r.start + i));
      expect(bytes).toEqual(oracle(specs, size));
    }),
    { numRuns: 2_000 },
  );
});

test("no value makes the parser throw, or select bytes outside the file", () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(100), (text, size) => {
      const response = parseRange(`bytes=${text}`, size);
      if (typeof response === "string") return;
      for (const { start, end } of response) expect(start >= 0 && start < end && end <= size).toBe(true);
      expect(byteLength(response)).toBeLessThanOrEqual(size);
    }),
  );
});

test("a multipart has nginx's layout", () => {
  const { type, segments } = multipart(
    [
      { start: 0, end: 2 },
      { start: 4, end: 5 },
    ],
    45,
    "image/png",
  );
  const boundary = /^multipart\/byteranges; boundary=(\d{20})$/.exec(type)![1]!;
  const text = segments
    .map((s) => ("start" in s ? `<${s.start}-${s.end}>` : Buffer.from(s).toString("latin1")))
    .join("");
  expect(text).toBe(
    `\r\n--${boundary}\r\nContent-Type: image/png\r\nContent-Range: bytes 0-1/45\r\n\r\n<0-2>` +
      `\r\n--${boundary}\r\nContent-Type: image/png\r\nContent-Range: bytes 4-4/45\r\n\r\n<4-5>` +
      `\r\n--${boundary}--\r\n`,
  );
});

test("boundaries of parts are 20 random digits", () => {
  const borders = Array.from({ length: 200 }, () => multipart([], 45, "a/b").type.split("boundary=")[1]!);
  expect(borders.filter((border) => !/^\d{20}$/.test(border))).toEqual([]);
  expect(new Set(borders).size).toBe(200);
});

const MODIFIED = "Tue, 02 Jan 2024 03:04:05 GMT";
const EARLIER = "Tue, 02 Jan 2024 03:04:04 GMT";
const LATER = "Tue, 02 Jan 2024 03:04:06 GMT";
const current = { etag: '"65937d25-2d"', modifiedSecond: Date.parse(MODIFIED) / 1000 };

describe("conditions (RFC 9110, 13.2.2)", () => {
  test.each([
    ["If-None-Match", '"65937d25-2d"', 304],
    ["If-None-Match", 'W/"65937d25-2d"', 304],
    ["If-None-Match", '"a,b", W/"65937d25-2d" , "c"', 304],
    ["If-None-Match", '"","65937d25-2d"', 304],
    ["If-None-Match", "*", 304],
    ["If-None-Match", '"other"', "proceed"],
    ["If-None-Match", "65937d25-2d", "proceed"],
    ["if-modified-since", MODIFIED, 304],
    ["If-Modified-Since", LATER, 304],
    ["If-Modified-Since", EARLIER, "proceed"],
    ["If-Modified-Since", "yesterday", "proceed"],
    ["If-Match", '"65937d25-2d"', "proceed"],
    ["If-Match", '"x", "65937d25-2d"', "proceed"],
    ["If-Match", "*", "proceed"],
    ["If-Match", 'W/"65937d25-2d"', 412],
    ["If-Match", '"other"', 412],
    ["If-Match", "", 412],
    ["If-Unmodified-Since", MODIFIED, "proceed"],
    ["If-Unmodified-Since", LATER, "proceed"],
    ["If-Unmodified-Since", EARLIER, 412],
    ["If-Unmodified-Since", "tomorrow", "proceed"],
  ] as const)("%s: %s", (name, value, expected) => {
    expect(evaluateConditions(readConditions(["Accept", "*/*", name, value])!, current)).toBe(expected);
  });

  test.each([
    [
      "If-None-Match rules out If-Modified-Since",
      ["If-None-Match", '"x"', "If-Modified-Since", LATER],
      "proceed",
    ],
    ["If-Match rules out If-Unmodified-Since", ["If-Match", "*", "If-Unmodified-Since", EARLIER], "proceed"],
    ["If-Match comes before If-None-Match", ["If-None-Match", "*", "If-Match", '"x"'], 412],
    [
      "If-Unmodified-Since comes before If-None-Match",
      ["If-None-Match", "*", "If-Unmodified-Since", EARLIER],
      412,
    ],
    ["lines of one field are one list", ["If-None-Match", '"x"', "if-none-match", current.etag], 304],
    ["two dates are none", ["If-Modified-Since", LATER, "If-Modified-Since", LATER], "proceed"],
  ] as const)("%s", (_, headers, expected) => {
    expect(evaluateConditions(readConditions([...headers])!, current)).toBe(expected);
  });

  test.each([
    [undefined, true],
    [current.etag, true],
    [MODIFIED, true],
    [`W/${current.etag}`, false],
    ['"other"', false],
    [LATER, false],
    [EARLIER, false],
    ["whenever", false],
  ])("If-Range: %s", (value, expected) => expect(rangeMaySend(value, current)).toBe(expected));

  test("a request without condition fields is recognized at once", () => {
    expect(readConditions(["Host", "x", "Referer", "y", "__proto__", "z", "If", "(<a>)"])).toBeUndefined();
  });
});

describe("dates (RFC 9110, 5.6.7)", () => {
  const now = Date.parse("2026-11-21T00:00:00Z");
  test.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"],
    ["Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"],
    ["Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"],
    ["Wed Nov 16 08:49:37 1994", "1994-11-16T08:49:37Z"],
    ["Tuesday, 06-Nov-76 08:49:37 GMT", "2076-11-06T08:49:37Z"],
    ["Sunday, 06-Nov-77 08:49:37 GMT", "1977-11-06T08:49:37Z"],
    ["Sat, 31 Dec 2016 23:59:60 GMT", "2017-01-01T00:00:00Z"],
    ["Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"],
  ])("%s", (text, iso) => expect(parseHttpDate(text, now)).toBe(Date.parse(iso) / 1000));

  test.each([
    ["Sunday, 06-Nov-40 08:49:37 GMT", 2140],
    ["Sunday, 06-Nov-41 08:49:37 GMT", 2041],
    ["Sunday, 06-Nov-90 08:49:37 GMT", 2090],
    ["Sunday, 06-Nov-99 08:49:37 GMT", 2099],
  ])("%s is in %i where it is 2090", (text, year) => {
    const seconds = parseHttpDate(text, Date.parse("2090-01-01T00:00:00Z"))!;
    expect(new Date(seconds * 1000).getUTCFullYear()).toBe(year);
  });

  test.each([
    "Wed, 29 Feb 2023 00:00:00 GMT",
    "Wed, 99 Feb 2023 00:00:00 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT",
    "xSun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMTx",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:60:00 GMT",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 00 Nov 1994 08:49:37 GMT",
    "1994-11-06T08:49:37Z",
    "0",
    "",
  ])("%s is not a date", (text) => expect(parseHttpDate(text, now)).toBeUndefined());

  test("a written date can be read back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800 }), (second) => {
        expect(parseHttpDate(new Date(second * 1000).toUTCString())).toBe(second);
      }),
    );
  });
});
