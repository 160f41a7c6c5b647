import fc from "../../proof/kit/property.js";
import {
  ANSWER_FAMILIES,
  type ForwardedRequest,
  ForwardingRules,
  NAMED_FIELDS,
  parseConfig,
  REQUEST_FAMILIES,
} from "../../src/model/index.js";
import type { AnswerWriter } from "../../src/runtime/server/http1Writer.js";
import type { Http1Connection } from "../../src/runtime/server/http1Connection.js";
import { Http1Exchange } from "../../src/runtime/server/http1Exchange.js";
import { MessageFraming } from "../../src/runtime/codec/http1/framing.js";
import { ANSWER_FATES, nameNumber, OTHER, REQUEST_FATES } from "../../src/runtime/codec/http1/fieldNames.js";
import { type Fields, type Head, HeadError, parseFields } from "../../src/runtime/codec/http1/fields.js";
import { HeadReader } from "../../src/runtime/codec/http1/headReader.js";
import type { ParsedRequest } from "../../src/runtime/codec/http1/requestHead.js";
import { VERSION } from "../../src/model/version.js";
import { FakeExchange } from "../../proof/kit/fakeExchange.js";

/** Heads pass as lines wherever no rule concerns a field: that has to come to the same as weighing every field. */

const headOf = (text: string, before = ""): Head => ({
  text,
  bytes: Buffer.from(`${before}${text}bytes behind`, "latin1"),
  at: before.length,
});

const parsed = (lines: string, fates = REQUEST_FATES, list?: string[]): Fields =>
  parseFields(headOf(`${lines}\r\n`, "x: y\r\n"), 0, 200, fates, list);

/** A bit for each letter of the longest name says whether it is a capital one. */
const letters = (name: fc.Arbitrary<string>) =>
  fc
    .tuple(name, fc.nat(2 ** NAME_LENGTH_MAX - 1))
    .map(([text, upper]) =>
      [...text].map((char, i) => (((upper >> i) & 1) === 1 ? char.toUpperCase() : char)).join(""),
    );
const NAME_LENGTH_MAX = 20;

const fieldName = letters(
  fc.oneof(
    fc.constantFrom(
      ...["host", "expect", "upgrade", "connection", "te", "trailer", "keep-alive", "proxy-authorization"],
      ...[
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded",
        "x-real-ip",
        "forwarded",
      ],
      ...["x_forwarded_for", "x-url-scheme", "destination", "location", "refresh", "server", "date", "x-pad"],
      ...[
        "x-accel-redirect",
        "x-accel",
        "cookie",
        "accept",
        "user-agent",
        "referer",
        "authorization",
        "a_b",
        "~",
      ],
      ...[
        "set-cookie",
        "etag",
        "date2",
        "hosts",
        "hos^",
        "proxy-authenticate",
        "http2-settings",
        "content-type",
      ],
    ),
    // Whose value has to be a number.
    fc.constantFrom(...NAMED_FIELDS.filter((name) => name !== "content-length")),
    fc
      .tuple(fc.constantFrom(...REQUEST_FAMILIES, ...ANSWER_FAMILIES), fc.stringMatching(/^[a-z-]{0,5}$/))
      .map((parts) => parts.join("")),
    fc.stringMatching(/^[!#$%&'*+.^_`|~0-9a-z-]{1,20}$/),
  ),
);
const fieldValue = fc.oneof(
  fc.constantFrom(
    "",
    "close",
    "keep-alive",
    "x-secret, close",
    "cookie",
    "/sync/a",
    "http://127.0.0.1:9/x",
    "1",
  ),
  fc.stringMatching(/^[!-~\x80-\xff](?:[\t -~\x80-\xff]{0,30}[!-~\x80-\xff])?$/),
);
const fieldLine = fc
  .tuple(
    fieldName,
    fc.constantFrom(" ", " ", " ", " ", "", "  ", "\t"),
    fieldValue,
    fc.constantFrom("", "", "", " "),
  )
  .map(([name, before, value, after]) => ({ name, value, line: `${name}:${before}${value}${after}\r\n` }));
const fieldLines = fc
  .array(fieldLine, { maxLength: 12 })
  // Two of these, or a bad one, are refused; what is refused goes nowhere.
  .map((all) =>
    all.filter(({ name }, i) => all.findIndex((f) => /^host$/i.test(f.name)) === i || !/^host$/i.test(name)),
  );

const config = parseConfig({
  version: 1,
  trustedProxies: ["192.0.2.7"],
  listeners: [{ name: "http", address: "127.0.0.1", port: 8080, protocol: "http" }],
  upstreams: [{ name: "web", url: "http://127.0.0.1:9" }],
  virtualServers: [
    {
      name: "front",
      listeners: ["http"],
      serverNames: ["a.example"],
      default: true,
      routes: [
        {
          name: "plain",
          path: "/sync",
          action: { type: "proxy", upstream: "web", forwarded: { for: true, realIp: true, proto: true } },
        },
        {
          name: "sets",
          path: "/set",
          action: { type: "proxy", upstream: "web", setHeaders: { Cookie: "", "X-Own": "1" } },
        },
        {
          name: "trusts",
          path: "/trusts",
          action: {
            type: "proxy",
            upstream: "web",
            trustedFields: ["Remote-User", "X-Forwarded-User"],
            forwarded: { for: false, realIp: false, proto: false },
          },
        },
        {
          name: "trusts-more",
          path: "/more",
          action: { type: "proxy", upstream: "web", trustedFields: ["Remote-User", "Cookie"] },
        },
      ],
    },
  ],
});

function rulesOf(index: number): ForwardingRules {
  if (!config.ok) throw new Error(JSON.stringify(config.problems));
  const { virtualServers, upstreams } = config.value;
  const route = virtualServers[0]!.routes[index]! as ConstructorParameters<typeof ForwardingRules>[0];
  return new ForwardingRules(route, upstreams[0]!);
}

function request(fields: Fields, trusted: boolean): ForwardedRequest {
  return {
    method: "GET",
    target: "/sync/x",
    path: "/sync/x",
    headers: fields.list,
    host: "a.example",
    serverName: "a.example",
    scheme: "http",
    clientAddress: "192.0.2.7",
    trusted,
    webSocket: false,
  };
}

describe("fields that pass as lines", () => {
  test("a request's head is the same as when every field is examined", () => {
    let plain = 0;
    const rules = [0, 1, 2, 3].map(rulesOf);
    fc.assert(
      fc.property(fieldLines, fc.boolean(), fc.nat(3), (lines, trusted, which) => {
        const fields = parsed(lines.map(({ line }) => line).join(""));
        const weighed = request(fields, trusted);
        if (fields.plainLines !== undefined) plain++;
        const asLines = { ...weighed, plainLines: fields.plainLines };
        expect(rules[which]!.requestHead(asLines, "")).toBe(rules[which]!.requestHead(weighed, ""));
      }),
      { numRuns: 1000 },
    );
    expect(plain).toBeGreaterThan(50);
  });

  test("whatever a stranger calls it, no upstream takes it for an identity or an address", () => {
    const claim = fc.constantFrom(
      ...["remote-user", "remote-x", "x-remote-user", "x-forwarded-user", "x-forwarded-host", "forwarded"],
      ...[
        "client-ip",
        "x-client-ip",
        "x-real-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "x-cluster-client-ip",
      ],
      ...["x-original-url", "x-rewrite-url", "proxy", "ssl-client-verify", "x-ssl-cert", "x-client-cert"],
    );
    // As an application reads names from its environment.
    const spelt = fc
      .tuple(claim, fc.array(fc.constantFrom("-", "-", "_", ".", "~", "!"), { minLength: 4, maxLength: 4 }))
      .map(([name, bytes]) => name.replace(/-/g, () => bytes.pop()!));
    const lines = fc.array(fc.oneof(letters(spelt), fieldName), { maxLength: 8 });
    const isClaim =
      /^(?:(?:x-)?remote-|x-forwarded|forwarded$|(?:x-|x-cluster-|true-)?client-ip$|x-real-ip$|cf-connecting-ip$|x-original-|x-rewrite-|proxy$|(?:x-)?ssl-|x-client-cert)/;
    fc.assert(
      fc.property(lines, (names) => {
        const all = names.filter((name) => !/^(?:host|expect|content-length|transfer-encoding)$/i.test(name));
        const fields = parsed(all.map((name) => `${name}: claimed\r\n`).join(""));
        const examined = request(fields, false);
        for (const asked of [examined, { ...examined, plainLines: fields.plainLines }]) {
          const sent = rulesOf(2).requestHead(asked, "").trimEnd().split("\r\n").slice(2);
          const read = sent.map((line) => line.slice(0, line.indexOf(":")).toLowerCase());
          expect(
            read.map((name) => name.replace(/[^0-9a-z]/g, "-")).filter((name) => isClaim.test(name)),
          ).toEqual([]);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("an answer's fields are the same as when every field is examined", () => {
    let plain = 0;
    const rules = rulesOf(0);
    fc.assert(
      fc.property(fieldLines, (lines) => {
        const fields = parsed(lines.map(({ line }) => line).join(""), ANSWER_FATES);
        if (fields.plainLines === undefined) return;
        plain++;
        const list = rules.responseHeaders(fields.list, request(fields, false));
        const joined = list.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join("");
        expect(fields.plainLines).toBe(`${joined}\r\n`);
      }),
      { numRuns: 1000 },
    );
    expect(plain).toBeGreaterThan(50);
  });

  test("a list made later is the same as one made at once, and as what was sent", () => {
    fc.assert(
      fc.property(fieldLines, (lines) => {
        const text = lines.map(({ line }) => line).join("");
        const list = parsed(text, REQUEST_FATES, []).list;
        expect(parsed(text).list).toEqual(list);
        expect(list).toEqual(lines.flatMap(({ name, value }) => [name, value]));
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ["Accept: a\r\nHost: h\r\nCookie: b\r\nTE: x\r\n", "Accept: a\r\nCookie: b\r\n\r\n"],
    ["Host: h\r\nConnection: Keep-Alive\r\nAccept: a\r\n", "Accept: a\r\n\r\n"],
    ["Connection: close\r\nAccept: \r\n", "Accept: \r\n\r\n"],
    ["X-Custom: 1\r\nA_B: 2\r\n_: 3\r\nA.B: 4\r\n", "X-Custom: 1\r\n\r\n"],
    ["Proxy: 1\r\nRange: 2\r\nSec-Fetch-Site: 3\r\n", "Range: 2\r\nSec-Fetch-Site: 3\r\n\r\n"],
    ["", "\r\n"],
    // Each of these needs a decision.
    ["Connection: cookie\r\nCookie: b\r\n", undefined],
    ["Cookie: b\r\nConnection: close, cookie\r\n", undefined],
    ["X-FORWARDED-for: 1\r\n", undefined],
    ["x-forwarded-unheard-of: 1\r\n", undefined],
    ["Destination: /a\r\n", undefined],
    ["Remote-User: a\r\n", undefined],
    ["SSL-Client-Verify: a\r\n", undefined],
    // What is not written as we write it is written anew.
    ["Accept:a\r\n", undefined],
    ["Accept: a \r\n", undefined],
    ["Accept:\ta\r\n", undefined],
  ])("%j passes as %j", (lines, passes) => {
    expect(parsed(lines).plainLines).toBe(passes);
  });
});

describe("what is kept of the last head is not used for the next", () => {
  afterEach(() => jest.restoreAllMocks());

  /** Alike in all but what one draw differs in, and often the same twice. */
  const asked = fc.record({
    host: fc.constantFrom("a.example", "b.example:8080", ""),
    clientAddress: fc.constantFrom("192.0.2.7", "2001:db8::7"),
    scheme: fc.constantFrom("http" as const, "https" as const),
    trusted: fc.boolean(),
    lines: fc.constantFrom(
      ...["", "", "Accept: a\r\n", "Cookie:b\r\n"],
      ...["X-Forwarded-For: 198.51.100.1\r\n", "X-Real-IP: 198.51.100.2\r\n", "X-Forwarded-Proto: https\r\n"],
    ),
    framing: fc.constantFrom("", "Content-Length: 5\r\n"),
    target: fc.constantFrom("/sync/x", "/sync/y?z"),
  });

  test.each([
    ["that sets forwarding fields", 0],
    ["that sets fields of its own", 1],
  ])("requests of a route %s", (_what, route) => {
    fc.assert(
      fc.property(fc.array(asked, { minLength: 2, maxLength: 12 }), (all) => {
        const shared = rulesOf(route);
        for (const { lines, framing, trusted, ...varied } of all) {
          const fields = parsed(lines);
          const next = { ...request(fields, trusted), ...varied, plainLines: fields.plainLines };
          expect(shared.requestHead(next, framing)).toBe(rulesOf(route).requestHead(next, framing));
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("answers", () => {
    const begun = fc.record({
      status: fc.constantFrom(200, 404),
      reason: fc.constantFrom("OK", "", "Fine"),
      versionTokens: fc.boolean(),
      at: fc.constantFrom(1_800_000_000_000, 1_800_000_000_999, 1_800_000_001_000, 1_700_000_000_000),
    });
    const now = jest.spyOn(Date, "now");
    fc.assert(
      fc.property(fc.array(begun, { minLength: 2, maxLength: 12 }), (all) => {
        for (const { status, reason, versionTokens, at } of all) {
          now.mockReturnValue(at);
          const by = versionTokens ? `portico/${VERSION}` : "portico";
          const date = new Date(at).toUTCString();
          expect(beginning(status, reason, versionTokens)).toBe(
            `HTTP/1.1 ${status} ${reason}\r\nServer: ${by}\r\nDate: ${date}\r\nContent-Length: 0\r\n\r\n`,
          );
        }
      }),
    );
  });
});

/** The head of an empty answer as a client gets it. */
function beginning(status: number, reason: string, versionTokens: boolean): string {
  let sent = "";
  const writer = {
    framing: new MessageFraming(),
    head: (text: string) => void (sent += text),
    end: () => undefined,
  };
  const connection = {
    mayKeepAlive: () => true,
    finished: () => undefined,
    exchangeEnded: () => undefined,
  };
  const { request, client, server } = new FakeExchange({}, { server: { versionTokens } });
  const exchange = new Http1Exchange(
    connection as unknown as Http1Connection,
    writer as unknown as AnswerWriter,
    { ...request, keepAlive: true, expectContinue: false } as ParsedRequest,
    client,
    server,
  );
  exchange.sendHead(status, reason, [], 0);
  exchange.end();
  return sent;
}

test("names are distinguished by their bytes in the same way as by their letters", () => {
  const number = (text: string): number => nameNumber(Buffer.from(`:${text}:`, "latin1"), 1, text.length + 1);
  expect(number("Host")).toBe(number("hOST"));
  for (const near of [
    "hos",
    "hostt",
    "gost",
    "hos^",
    "ho_t",
    "#onnection",
    "content_length",
    "content-lengtj",
  ]) {
    expect([near, number(near)]).toEqual([near, OTHER]);
  }
  const mayBeOwn = (text: string): boolean =>
    /[^0-9a-z-]/i.test(text) ||
    [...REQUEST_FAMILIES, ...ANSWER_FAMILIES].some((begins) => text.toLowerCase().startsWith(begins));
  fc.assert(
    fc.property(fieldName, (text) => {
      for (const fates of [REQUEST_FATES, ANSWER_FATES]) {
        const at = number(text);
        if (at !== OTHER) expect([text, fates.byNumber[at]]).toEqual([text, fates.of(text)]);
        else if (!mayBeOwn(text)) expect([text, fates.of(text)]).toEqual([text, fates.byNumber[OTHER]]);
      }
    }),
  );
});

test("a head is the same in whatever pieces it arrives, and at any position in a buffer", () => {
  const text = "GET / HTTP/1.1\r\nHost: a.example\r\nCookie: \xe9=1\r\nX-Real-IP: 1\r\n\r\n";
  const bytes = Buffer.from(`junk${text}GET /next`, "latin1");
  for (let cut = 4; cut < 4 + text.length; cut++) {
    const reader = new HeadReader(1024, 512);
    const whole = cut === 4 || reader.read(bytes.subarray(0, cut), 4);
    expect(whole === (cut === 4)).toBe(true);
    // The shared buffer holds another connection's bytes by now.
    const rest = Buffer.concat([Buffer.alloc(cut === 4 ? 4 : 7, "#"), bytes.subarray(cut)]);
    expect(reader.read(rest, cut === 4 ? 4 : 7)).toBe(true);
    expect(reader.text).toBe(text);
    const fields = parseFields(reader, 16, 10, REQUEST_FATES);
    expect([fields.host, fields.list.length]).toEqual(["a.example", 6]);
    reader.release();
    expect([reader.text, reader.bytes.length]).toEqual(["", 0]);
  }
});

test.each([
  "a",
  "a\r\n",
  ": b\r\n",
  "a : b\r\n",
  " a: b\r\n",
  "a: b\n\r\n",
  "a: \x00\r\n",
  "a: b\rc\r\n",
  "a\x80: b\r\n",
])("%j is refused as a field line", (lines) => {
  expect(() => parsed(lines)).toThrow(HeadError);
});
