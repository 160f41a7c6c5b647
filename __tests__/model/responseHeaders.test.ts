import {
  responseFieldRules,
  parseConfig,
  type Problem,
  type ProxyConfig,
  type ProxyConfigInput,
} from "../../src/model/index.js";
import { sayings } from "../../testkit/sayings.js";

/** What a config may say of the fields of its responses (decisions 5.5 and 5.6). */

const said = sayings("response-headers");

type Server = ProxyConfigInput["virtualServers"][number];
type Route = Server["routes"][number];

const TLS = { certificate: "/c.pem", key: "/k.pem" };

const configOf = (server: Partial<Server>, route: Partial<Route> = {}): ProxyConfigInput => ({
  version: 1,
  listeners: [
    { name: "http", address: "0.0.0.0", port: 80, protocol: "http" },
    { name: "https", address: "0.0.0.0", port: 443, protocol: "https", tls: TLS },
  ],
  virtualServers: [
    {
      name: "application",
      serverNames: ["_"],
      listeners: ["http", "https"],
      default: true,
      routes: [{ name: "r", path: "/r", action: { type: "respond", status: 200 }, ...route }],
      ...server,
    },
  ],
});

function problemsOf(server: Partial<Server>, route: Partial<Route> = {}): readonly Problem[] {
  const result = parseConfig(configOf(server, route));
  return result.ok ? [] : said(result.problems);
}

const found = (server: Partial<Server>, route?: Partial<Route>): string[] =>
  problemsOf(server, route).map(({ code, path }) => `${code} ${path}`);

const SERVER = "virtualServers[0]";
const ROUTE = `${SERVER}.routes[0]`;

describe("names that are the connection's, the framing's or one response's", () => {
  test.each([
    ...["Content-Length", "transfer-encoding", "CONNECTION", "Keep-Alive", "Upgrade", "TE", "Trailer"],
    ...["Proxy-Connection", "Proxy-Authenticate", "proxy-status", "HTTP2-Settings"],
    ...["Date", "Age", "Content-Type", "Content-Encoding", "Content-Range", "Vary", "Location", "Allow"],
    "WWW-Authenticate",
  ])("%s can be neither set nor removed", (name) => {
    expect(found({ responseHeaders: { set: { [name]: "1" } } })).toEqual([
      `config.reserved-response-field ${SERVER}.responseHeaders.set.${name}`,
    ]);
    expect(found({}, { responseHeaders: { remove: [name] } })).toEqual([
      `config.reserved-response-field ${ROUTE}.responseHeaders.remove[0]`,
    ]);
  });

  test.each([
    ...[
      "ETag",
      "last-modified",
      "Content-Location",
      "Content-Digest",
      "Repr-Digest",
      "Digest",
      "Content-MD5",
    ],
    ...["Set-Cookie", "Server", "Strict-Transport-Security"],
  ])("%s can be removed, but not set", (name) => {
    expect(found({ responseHeaders: { set: { [name]: "1" } } })).toEqual([
      `config.reserved-response-field ${SERVER}.responseHeaders.set.${name}`,
    ]);
    expect(found({ responseHeaders: { remove: [name] } })).toEqual([]);
  });

  test("the reason, what is allowed and what to do instead are given", () => {
    expect(problemsOf({ responseHeaders: { set: { "strict-transport-security": "max-age=1" } } })).toEqual([
      {
        code: "config.reserved-response-field",
        path: `${SERVER}.responseHeaders.set.strict-transport-security`,
        message: "cannot be set: strict-transport-security must not be sent over http (RFC 6797, 7.2)",
        received: '"strict-transport-security"',
        allowed: "the field may be removed, but not set",
        fix: "Use `hsts` of the virtual server.",
      },
    ]);
  });
});

describe("names and values", () => {
  test.each([
    ["a name with a space", { "X A": "1" }],
    ["a name with a colon", { "X:": "1" }],
    ["a pseudo-field", { ":status": "200" }],
    ["an empty name", { "": "1" }],
    ["a name of 65 characters", { ["x".repeat(65)]: "1" }],
    ["a name that ends its line", { "X\r\nContent-Length": "1" }],
  ])("%s", (_what, set) => {
    expect(problemsOf({ responseHeaders: { set } }).map(({ code }) => code)).toEqual(["config.bad-header"]);
  });

  test.each([
    ["an empty value", ""],
    ["a line end", "a\r\nX: b"],
    ["a line feed", "a\nb"],
    ["NUL", "a\0b"],
    ["DEL", "a\x7f"],
    ["a letter that is not ASCII", "é"],
    ["a character whose low byte is a line feed", "\u010a"],
    ["a space before it", " a"],
    ["a space after it", "a "],
    ["4097 characters", "a".repeat(4097)],
  ])("%s", (_what, value) => {
    expect(found({}, { responseHeaders: { set: { "X-A": value } } })).toEqual([
      `config.bad-header ${ROUTE}.responseHeaders.set.X-A`,
    ]);
  });

  test("a long value, tabs inside, and any token pass", () => {
    expect(
      found({ responseHeaders: { set: { "x.!#$%&'*+^_`|~1": "a\tb", "X-A": "a".repeat(4096) } } }),
    ).toEqual([]);
  });

  test.each([
    ["twice in set", { set: { "X-A": "1", "x-a": "2" } }, "set.x-a"],
    ["twice in remove", { remove: ["X-A", "x-a"] }, "remove[1]"],
    ["in both", { set: { "X-A": "1" }, remove: ["x-a"] }, "remove[0]"],
  ])("a name %s", (_what, responseHeaders, at) => {
    expect(found({ responseHeaders })).toEqual([
      `config.duplicate-response-field ${SERVER}.responseHeaders.${at}`,
    ]);
  });

  test("Cache-Control is not sent twice for files", () => {
    const action = { type: "staticFiles", directory: "/d", cacheControl: "no-cache" } as const;
    expect(found({}, { action, responseHeaders: { set: { "cache-control": "no-store" } } })).toEqual([
      `config.duplicate-response-field ${ROUTE}.responseHeaders.set.cache-control`,
    ]);
    expect(found({ responseHeaders: { set: { "cache-control": "no-store" } } }, { action })).toEqual([]);
  });

  test("what is set for a route has 8192 bytes at most, its virtual server's included", () => {
    const long = (name: string, bytes: number) => ({ set: { [name]: "a".repeat(bytes - name.length - 4) } });
    expect(found({ responseHeaders: long("X-A", 4096) }, { responseHeaders: long("X-B", 4096) })).toEqual([]);
    const more = { set: { ...long("X-B", 4096).set, "X-C": "1" } };
    expect(found({ responseHeaders: long("X-A", 4096) }, { responseHeaders: more })).toEqual([
      `config.out-of-range ${ROUTE}.responseHeaders.set`,
    ]);
    const all = { set: { ...long("X-A", 4096).set, ...more.set } };
    expect(found({ responseHeaders: all })).toEqual([`config.out-of-range ${SERVER}.responseHeaders.set`]);
  });
});

test("a name that is written three times is reported twice, each time with the first", () => {
  const remove = ["x-a", "X-B", "x-A"];
  expect(
    problemsOf({ responseHeaders: { set: { "X-A": "1" }, remove } }).map(({ path, message }) => [
      path,
      message,
    ]),
  ).toEqual([
    [`${SERVER}.responseHeaders.remove[0]`, `is also at ${SERVER}.responseHeaders.set.X-A`],
    [`${SERVER}.responseHeaders.remove[2]`, `is also at ${SERVER}.responseHeaders.set.X-A`],
  ]);
});

test("`Cache-Control` may be set where the action does not set it", () => {
  const responseHeaders = { set: { "Cache-Control": "no-store" } };
  expect(found({}, { responseHeaders })).toEqual([]);
  const files = { type: "staticFiles", directory: "/d" } as const;
  expect(found({}, { action: files, responseHeaders })).toEqual([]);
  expect(found({}, { action: { ...files, cacheControl: "no-cache" }, responseHeaders })).toEqual([
    `config.duplicate-response-field ${ROUTE}.responseHeaders.set.Cache-Control`,
  ]);
});

test("the fields of a pause follow the same rules, and do not repeat those of every pause", () => {
  const pause = (headers: Record<string, string>) => ({
    pauseResponse: { contentType: "text/xml", body: "<later/>", headers },
  });
  const at = `${SERVER}.pauseResponse.headers`;
  expect(found(pause({ "X-Maintenance": "1", "Content-Language": "en" }))).toEqual([]);
  expect(found(pause({ Vary: "Accept" }))).toEqual([`config.reserved-response-field ${at}.Vary`]);
  expect(found(pause({ "retry-after": "5" }))).toEqual([`config.duplicate-response-field ${at}.retry-after`]);
  expect(problemsOf({ pauseResponse: { contentType: "text/xml", body: "" } })).toEqual([
    expect.objectContaining({ message: "is too short", allowed: "at least 1 character" }),
  ]);
  const long = (name: string) => ({ [name]: "a".repeat(4_096 - `${name}: \r\n`.length) });
  const other = { responseHeaders: { set: long("X-C") } };
  expect(found({ ...other, ...pause(long("X-A")) })).toEqual([]);
  expect(found({ ...other, ...pause({ ...long("X-A"), "X-B": "1" }) })).toEqual([
    `config.out-of-range ${at}`,
  ]);
  expect(found(pause({ "X-A": "1", "x-a": "2" }))).toEqual([`config.duplicate-response-field ${at}.x-a`]);
});

test("the fields that are set take up to 8192 bytes, hsts included", () => {
  const hsts = { maxAge: 1 };
  const hstsBytes = "Strict-Transport-Security: max-age=1\r\n".length;
  const fields = (bytes: number): object => {
    const remove = Array.from({ length: 9 }, (_, i) => `X-Removed-${i}`);
    return {
      set: { "X-A": "a".repeat(4096), "X-B": "b".repeat(bytes - 4096 - 2 * "X-A: \r\n".length) },
      remove,
    };
  };
  const tooLong = [`config.out-of-range ${SERVER}.responseHeaders.set`];
  expect(found({ responseHeaders: fields(8192) })).toEqual([]);
  expect(found({ responseHeaders: fields(8193) })).toEqual(tooLong);
  expect(found({ hsts, responseHeaders: fields(8192 - hstsBytes) })).toEqual([]);
  expect(found({ hsts, responseHeaders: fields(8193 - hstsBytes) })).toEqual(tooLong);
});

describe("hsts", () => {
  test.each([
    ["a time below 0", { maxAge: -1 }, "config.out-of-range", "hsts.maxAge"],
    ["more than ten years", { maxAge: 315_360_001 }, "config.out-of-range", "hsts.maxAge"],
    ["preload without subdomains", { preload: true }, "config.hsts-preload", "hsts.preload"],
    [
      "preload for less than a year",
      { preload: true, includeSubDomains: true, maxAge: 31_535_999 },
      "config.hsts-preload",
      "hsts.preload",
    ],
  ])("%s", (_what, hsts, code, at) => expect(found({ hsts })).toEqual([`${code} ${SERVER}.${at}`]));

  test("without an https listener it is refused, because it is never sent", () => {
    const rest = { name: "rest", serverNames: ["_"], listeners: ["https"], default: true, routes: [] };
    const config = configOf({ listeners: ["http"], hsts: {} });
    const result = parseConfig({ ...config, virtualServers: [...config.virtualServers, rest] });
    expect(result.ok ? [] : result.problems.map(({ code, path }) => `${code} ${path}`)).toEqual([
      `config.hsts-without-tls ${SERVER}.hsts`,
    ]);
  });

  test("together with a removal of its field it is refused", () => {
    const remove = ["Strict-Transport-Security"];
    expect(problemsOf({ hsts: {}, responseHeaders: { remove } })).toMatchObject([
      { path: `${SERVER}.hsts`, received: '"Strict-Transport-Security"' },
    ]);
    expect(found({ hsts: {}, responseHeaders: { remove: ["strict-transport-security"] } })).toEqual([
      `config.duplicate-response-field ${SERVER}.hsts`,
    ]);
  });
});

describe("the rules for a response", () => {
  const valid = (config: ProxyConfigInput): ProxyConfig => {
    const result = parseConfig(config);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    return result.value;
  };
  const rulesOf = (
    server: Partial<Server>,
    route: Partial<Route> = {},
    scheme: "http" | "https" = "http",
  ) => {
    const [parsed] = valid(configOf(server, route)).virtualServers;
    const rules = responseFieldRules(parsed!, parsed!.routes[0], scheme);
    return Object.fromEntries([...rules].map(([name, field]) => [name, field?.value]));
  };

  test("a route's rules replace its virtual server's, by name, ignoring case", () => {
    const rules = rulesOf(
      { responseHeaders: { set: { "X-A": "server", "X-B": "server" }, remove: ["X-C", "X-D"] } },
      { responseHeaders: { set: { "x-a": "route", "X-c": "route" }, remove: ["x-b"] } },
    );
    expect(rules).toEqual({ "x-a": "route", "x-b": undefined, "x-c": "route", "x-d": undefined });
  });

  test("the Cache-Control of a route of files takes priority over the virtual server's", () => {
    const server = { responseHeaders: { set: { "Cache-Control": "no-store" } } };
    const files = { type: "staticFiles", directory: "/d" } as const;
    expect(rulesOf(server, { action: { ...files, cacheControl: "no-cache" } })).toEqual({});
    expect(rulesOf(server, { action: files })).toEqual({ "cache-control": "no-store" });
  });

  test.each([
    [{}, "max-age=31536000"],
    [{ maxAge: 0 }, "max-age=0"],
    [{ includeSubDomains: true, maxAge: 300 }, "max-age=300; includeSubDomains"],
    [{ includeSubDomains: true, preload: true }, "max-age=31536000; includeSubDomains; preload"],
  ])("hsts %j over TLS alone", (hsts, value) => {
    expect(rulesOf({ hsts }, {}, "https")).toEqual({ "strict-transport-security": value });
    // Nor does an upstream's get through over http (RFC 6797, 7.2).
    expect(rulesOf({ hsts }, {}, "http")).toEqual({ "strict-transport-security": undefined });
  });

  test("a route may do without hsts", () => {
    const responseHeaders = { remove: ["Strict-Transport-Security"] };
    expect(rulesOf({ hsts: {} }, { responseHeaders }, "https")).toEqual({
      "strict-transport-security": undefined,
    });
  });
});
