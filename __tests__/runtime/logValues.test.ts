import { CUT_REQUEST, readLogLine } from "../../src/host/diagnosis/logs/accessLogLine.js";
import { readEntry } from "../../src/host/diagnosis/logs/logEntry.js";
import { combinedLine, errorLine, jsonLine, loggedQuery } from "../../src/runtime/logs/logFormat.js";
import { FakeExchange, type FakeRequest } from "../../testkit/fakeExchange.js";
import { cpuMs } from "../../testkit/growth.js";
import fc from "../../testkit/property.js";

/** How values that a client sent get into log lines: escaped, and none longer than a line can bear. */

const bytes = (max: number): fc.Arbitrary<string> =>
  fc
    .array(fc.integer({ min: 0, max: 255 }), { maxLength: max })
    .map((codes) => String.fromCharCode(...codes));

const responded = (request: FakeRequest): FakeExchange => {
  const exchange = new FakeExchange(request);
  exchange.status = 200;
  return exchange;
};

const agent = (userAgent: string): FakeExchange => responded({ headers: ["User-Agent", userAgent] });

test("each byte is written as nginx writes it, and in JSON as what it is", () => {
  const hex = (char: string): string =>
    `\\x${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  fc.assert(
    fc.property(bytes(60), (value) => {
      expect(combinedLine(agent(value))).toContain(` "${value.replace(/[^ !#-[\]-~]/g, hex)}"\n`);
      const line = jsonLine(agent(value));
      expect(line).toMatch(/^[ -~]+\n$/);
      expect(JSON.parse(line)).toMatchObject({ user_agent: value });
    }),
    { numRuns: 500 },
  );
});

const LONG = 26_000;

test.each(["a", "\xff", '"', "\\"])("a value of %j is cut after 2,048 characters, and marked", (char) => {
  const kept = char.repeat(2_048);
  expect(JSON.parse(jsonLine(agent(kept)))).toMatchObject({ user_agent: kept });
  const target = `/${char === "a" ? "a".repeat(LONG) : ""}`;
  const exchange = responded({
    target,
    requestLine: `GET ${target} HTTP/1.1`,
    host: char.repeat(LONG),
    headers: ["User-Agent", char.repeat(LONG), "Referer", char.repeat(LONG)],
  });
  const cut = `${kept}\u2026`;
  expect(JSON.parse(jsonLine(exchange))).toMatchObject({ user_agent: cut, referer: cut, host: cut });
  expect(combinedLine(exchange)).toMatch(/\\u2026"\n$/);
  for (const line of [combinedLine(exchange), jsonLine(exchange), errorLine("error", "a", exchange)])
    expect(line.length).toBeLessThan(4 * 6 * 2_100);
});

test("no client can send the mark", () => {
  expect(combinedLine(agent("\\u2026"))).toContain('"\\x5Cu2026"');
  expect(JSON.parse(jsonLine(agent("\\u2026")))).toMatchObject({ user_agent: "\\u2026" });
});

test("the user of long credentials is cut, and their password is not shown", () => {
  const of = (pair: string): unknown =>
    JSON.parse(jsonLine(responded({ headers: ["Authorization", `Basic ${btoa(pair)}`] }))).remote_user;
  expect(of(`${"u".repeat(2_048)}:secret`)).toBe("u".repeat(2_048));
  expect(of(`${"u".repeat(2_049)}:secret`)).toBe(`${"u".repeat(2_048)}\u2026`);
  expect(of(`u:${"secret".repeat(2_048)}`)).toBe("u");
  expect(of("secret".repeat(100))).toBe("?");
});

test.each([combinedLine, jsonLine])(
  "a line with a cut target is one of no request, and still shown (%p)",
  (format) => {
    const target = `/${"a".repeat(4_000)}`;
    const line = format(responded({ target, requestLine: `GET ${target} HTTP/1.1` })).trimEnd();
    expect(readLogLine(line)).toBe(CUT_REQUEST);
    expect(readEntry("access", line)).toMatchObject({ status: 200, request: undefined });
  },
);

test("a message is cut, too, whatever it quotes", () => {
  const line = errorLine("error", `"${"\x80\n".repeat(LONG)}"`);
  expect(line.slice(-10)).toBe("\\x0A\\x80\u2026\n");
  expect(line.length).toBeLessThan(4 * 8_192 + 100);
});

test("a head full of what must be escaped takes no longer than a line that is long", () => {
  const exchange = agent("\xff".repeat(1_000_000));
  expect(cpuMs(20, () => [combinedLine(exchange), jsonLine(exchange)])).toBeLessThan(20);
});

test("a blank in the query of a referrer ends nothing", () => {
  expect(loggedQuery("http://a/?a=s3cret s3cret&b=c", "names")).toBe("http://a/?a=*&b=*");
  expect(loggedQuery("http://a/?a=s3cret s3cret", "none")).toBe("http://a/");
});
