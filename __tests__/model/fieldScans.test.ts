import {
  acceptedCodings,
  acceptsHtml,
  cookieOf,
  encodePath,
  normalisePath,
  type ContentCoding,
} from "../../src/model/serving.js";
import { evaluateConditions } from "../../src/runtime/actions/conditional.js";
import { parseRange, RANGES_MAX } from "../../src/runtime/actions/ranges.js";
import fc from "../../testkit/property.js";

/** Each reader of a field reads it in one pass. Here each is compared with the plainest code for the same rule. */

const trimmed = (text: string): string => text.replace(/^[ \t]+/, "").replace(/[ \t]+$/, "");

/** Values of the pieces that a rule knows, in any order. */
const valuesOf = (...pieces: string[]): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...pieces) }, fc.constantFrom("a", "\xff", "~")),
      {
        maxLength: 12,
      },
    )
    .map((all) => all.join(""));

const check = <T>(values: fc.Arbitrary<T>, same: (value: T) => [unknown, unknown]): void =>
  fc.assert(
    fc.property(values, (value) => {
      const [scanned, reference] = same(value);
      expect(scanned).toEqual(reference);
    }),
    { numRuns: 3_000 },
  );

test("acceptsHtml", () => {
  const reference = (value: string): boolean =>
    value.split(",").some((range) => {
      const [type, ...parameters] = range.split(";").map(trimmed);
      return (
        type!.toLowerCase() === "text/html" && !parameters.some((one) => /^q=0(?:\.0{0,3})?$/i.test(one))
      );
    });
  check(
    valuesOf("text/html", "Text/HTML", ",", ";", " ", "\t", "q=0", "Q=0.00", "0", ".", "q=", "1", "x/"),
    (value) => [acceptsHtml(["Accept", value]), reference(value)],
  );
});

test("acceptedCodings", () => {
  const available: ContentCoding[] = ["zstd", "br", "gzip"];
  const reference = (value: string): readonly ContentCoding[] => {
    const weights = new Map<string, number>();
    for (const member of value.split(",")) {
      const [coding = "", weight, more] = member.split(";").map(trimmed);
      if (coding === "" && weight === undefined) continue;
      const number =
        weight === undefined ? 1 : /^q=[01](?:\.[0-9]{0,3})?$/i.test(weight) ? Number(weight.slice(2)) : NaN;
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(coding) || !(number <= 1) || more !== undefined) return [];
      weights.set(coding.toLowerCase(), number);
    }
    const of = (coding: string): number =>
      weights.get(coding) ?? (coding === "gzip" ? weights.get("x-gzip") : undefined) ?? weights.get("*") ?? 0;
    return available
      .filter((one) => of(one) > 0 && of(one) >= (weights.get("identity") ?? 0))
      .sort((a, b) => of(b) - of(a));
  };
  const pieces = [
    "gzip",
    "GZip",
    "br",
    "zstd",
    "x-gzip",
    "identity",
    "*",
    ",",
    ", ",
    ";",
    ";q=",
    ";Q=0.5",
    ";q=0",
  ];
  check(valuesOf(...pieces, ";q=1.5", ".25", "1", " ", "\t"), (value) => [
    acceptedCodings(["accept-encoding", value], available),
    reference(value),
  ]);
});

test("cookieOf", () => {
  const reference = (value: string): string | undefined => {
    for (const pair of value.split(";")) {
      const at = pair.indexOf("=");
      if (at > 0 && trimmed(pair.slice(0, at)) === "sid" && at + 1 < pair.length)
        return trimmed(pair.slice(at + 1));
    }
    return undefined;
  };
  check(valuesOf("sid", "sid=", "=", ";", "; ", " ", "\t", "s", "id=b"), (value) => [
    cookieOf(["cookie", value], "sid"),
    reference(value),
  ]);
});

test("If-None-Match and If-Match", () => {
  const etag = '"1-a"';
  const matches = (list: string, weakly: boolean): boolean =>
    list === "*" ||
    [...list.matchAll(/(W\/)?("[!#-~\u0080-\u00ff]*")/g)].some(
      ([, weak, tag]) => tag === etag && (weakly || weak === undefined),
    );
  check(valuesOf(etag, '"', "W/", "1-a", ",", " ", "\t", "*", '"x"', "\x7f"), (value) => [
    [
      evaluateConditions({ ifNoneMatch: value }, { etag, modifiedSecond: 0 }),
      evaluateConditions({ ifMatch: value }, { etag, modifiedSecond: 0 }),
    ],
    [matches(value, true) ? 304 : "proceed", matches(value, false) ? "proceed" : 412],
  ]);
});

test("parseRange", () => {
  const size = 100;
  const reference = (value: string): unknown => {
    const members = value
      .split(",")
      .map(trimmed)
      .filter((one) => one !== "");
    const ranges: { start: number; end: number }[] = [];
    if (members.length === 0) return "whole";
    for (const [i, member] of members.entries()) {
      if (i === RANGES_MAX) return "whole";
      const [, first, last] = /^(\d*)[ \t]*-[ \t]*(\d*)$/.exec(member) ?? [];
      if (first === undefined || (first === "" && last === "")) return "unsatisfiable";
      const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
      const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
      if (start < end) ranges.push({ start, end });
    }
    if (ranges.length === 0) return "unsatisfiable";
    return ranges.reduce((sum, { start, end }) => sum + end - start, 0) > size ? "whole" : ranges;
  };
  check(valuesOf("0", "1", "9", "-", ",", " ", "\t", "1-2", ", "), (value) => [
    parseRange(`bytes=${value}`, size),
    reference(value),
  ]);
});

test("normalisePath", () => {
  const reference = (path: string): string | undefined => {
    if (/%(?![0-9a-fA-F]{2})|%00|#/.test(path)) return undefined;
    const decoded = path.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
    const out: string[] = [];
    for (const [i, segment] of decoded.split("/").entries()) {
      if (i === 0) continue;
      if (segment === ".." && out.pop() === undefined) return undefined;
      if (segment !== ".." && segment !== "." && segment !== "") out.push(segment);
    }
    const isFolder = /(?:^|\/)\.{0,2}$/.test(decoded);
    return `/${out
      .map((one) => `${one}/`)
      .join("")
      .slice(0, isFolder ? undefined : -1)}`;
  };
  const paths = valuesOf(
    "/",
    "//",
    ".",
    "..",
    "/.",
    "/..",
    "%2e",
    "%2F",
    "%",
    "%0",
    "%00",
    "%41",
    "%ff",
    "b",
  );
  check(
    paths.map((rest) => `/${rest}`),
    (path) => [normalisePath(path), reference(path)],
  );
});

test("encodePath", () => {
  const kept = /[!$&-;=@-Z[\]_a-z~]/;
  const reference = (path: string): string =>
    Array.from(path, (char) =>
      kept.test(char) ? char : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    ).join("");
  check(
    fc
      .array(fc.integer({ min: 0, max: 255 }), { maxLength: 20 })
      .map((codes) => String.fromCharCode(...codes)),
    (path) => [encodePath(path), reference(path)],
  );
});
