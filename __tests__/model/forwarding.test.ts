import {
  connectionOptions,
  type ForwardedRequest,
  ForwardingRules,
  type ProxiedRoute,
} from "../../src/model/actions/forwarding.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { parseConfig } from "../../src/model/index.js";

/** What goes upstream, and what comes back, as whole heads. */

function rulesOf(
  action: object,
  { url = "http://10.0.0.1:8000", ...route }: Partial<ProxiedRoute> & { url?: string } = {},
): ForwardingRules {
  const config = parseConfig(
    oneServer({
      listeners: [loopback("http", 80)],
      upstreams: [{ name: "web", url }],
      routes: [{ name: "r", path: "/sync", ...route, action: { type: "proxy", upstream: "web", ...action } }],
    }),
  );
  if (!config.ok) throw new Error(JSON.stringify(config.problems));
  return new ForwardingRules(config.value.virtualServers[0]!.routes[0] as ProxiedRoute, { url });
}

/** Name and value in turn. */
const list = (...lines: string[]): string[] => lines.flatMap((line) => line.split(/: ?(.*)/, 2));

const request = (more: Partial<ForwardedRequest> = {}): ForwardedRequest => ({
  method: "GET",
  target: "/sync/a",
  path: "/sync/a",
  headers: [],
  host: "files.example:8080",
  serverName: "files.example",
  scheme: "https",
  clientAddress: "192.0.2.7",
  trusted: false,
  ...more,
});

const NONE = { realIp: false, for: false, proto: false };

describe("the head that goes upstream", () => {
  const headOf = (rules: ForwardingRules, more: Partial<ForwardedRequest>): string[] => {
    const lines = rules.requestHead(request(more), "").split("\r\n");
    expect(lines.splice(-2)).toEqual(["", ""]);
    return lines;
  };
  const OWN = ["X-Real-IP: 192.0.2.7", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"];
  const CLAIMS = list(
    "X-Real-IP: 1",
    "X-FORWARDED-FOR: 2",
    "X-Forwarded-For:",
    "X-Forwarded-For: 3",
    "X-Forwarded-Proto: 4",
    "X-Forwarded-Host: 5",
    "Accept: a",
  );

  test.each<[string, object, Partial<ForwardedRequest>, string[]]>([
    ["of a client that claims nothing", {}, {}, OWN],
    [
      "with all fields of its own",
      { forwarded: { host: "own.example" }, setHeaders: { "X-A": "1", Accept: "", "X-B": "2" } },
      { headers: list("accept: a", "ACCEPT: b", "x-a: 3", "Cookie: c") },
      [...OWN, "X-Forwarded-Host: own.example", "X-A: 1", "X-B: 2", "Cookie: c"],
    ],
    ["with none of its own", { forwarded: NONE }, { headers: CLAIMS }, ["Accept: a"]],
    [
      "with claims of a stranger",
      {},
      { headers: CLAIMS },
      [OWN[0]!, "X-Forwarded-For: 2, 3, 192.0.2.7", OWN[2]!, "Accept: a"],
    ],
    [
      "with claims of a trusted proxy",
      {},
      { headers: CLAIMS, trusted: true },
      [
        "X-Forwarded-For: 2, 3, 192.0.2.7",
        "X-Real-IP: 1",
        "X-Forwarded-Proto: 4",
        "X-Forwarded-Host: 5",
        "Accept: a",
      ],
    ],
    [
      "with claims of a trusted proxy, and none of its own",
      { forwarded: NONE },
      { headers: CLAIMS, trusted: true },
      [
        "X-Real-IP: 1",
        "X-FORWARDED-FOR: 2",
        "X-Forwarded-For: ",
        "X-Forwarded-For: 3",
        "X-Forwarded-Proto: 4",
        "X-Forwarded-Host: 5",
        "Accept: a",
      ],
    ],
    [
      "with a host of its own beside that of a trusted proxy",
      { forwarded: { ...NONE, host: "own.example" } },
      { headers: list("X-Forwarded-Host: 5"), trusted: true },
      ["X-Forwarded-Host: own.example"],
    ],
    [
      "with one claim of a trusted proxy",
      {},
      { headers: list("X-Forwarded-Proto: 4"), trusted: true },
      [OWN[0]!, OWN[1]!, "X-Forwarded-Proto: 4"],
    ],
    [
      "with claims that its connection names",
      {},
      {
        headers: list("Connection: X-Real-IP", "X-Real-IP: 1", "Connection: , x-hop ,", "X-Hop: 2"),
        trusted: true,
      },
      OWN,
    ],
    [
      // As long as `Connection`, and no list of options.
      "with a field whose value is another's name",
      { forwarded: NONE },
      { headers: list("User-Agent: accept", "Accept: a") },
      ["User-Agent: accept", "Accept: a"],
    ],
    [
      "with a connection that closes",
      { forwarded: NONE },
      { headers: list("Connection: close", "Close: a", "CONNECTION: Keep-Alive", "Accept: a") },
      ["Close: a", "Accept: a"],
    ],
    [
      "of fields that end here",
      { forwarded: NONE },
      {
        headers: list(
          "Host: a",
          "Expect: 100-continue",
          "Proxy-Authorization: b",
          "TE: trailers",
          "Trailer: t",
          "HTTP2-Settings: h",
          "Content-Length: 1",
          "Transfer-Encoding: chunked",
          "Upgrade: h2c",
          "Keep-Alive: 1",
          "Proxy-Connection: p",
          "X_Real_IP: 1",
          "Accept: a",
        ),
      },
      ["Accept: a"],
    ],
    [
      "without what applications believe to come from a proxy",
      { forwarded: NONE },
      {
        headers: list(
          "Forwarded: for=1",
          "X-Client-IP: 1",
          "True-Client-IP: 1",
          "X-Cluster-Client-IP: 1",
          "Front-End-Https: on",
          "X-URL-Scheme: https",
          "X-Scheme: https",
          "X-Script-Name: /a",
          "X-Forwarded: 1",
          "X-Forwarded-Port: 1",
          "X-Forward: 1",
        ),
      },
      ["X-Forward: 1"],
    ],
  ])("%s", (_what, action, more, lines) => {
    const rules = rulesOf(action);
    const whole = ["GET /sync/a HTTP/1.1", "Host: files.example:8080", ...lines];
    // The second and third time from what was kept.
    for (const again of [1, 2, 3]) expect([again, headOf(rules, more)]).toEqual([again, whole]);
  });

  test.each<[object, string | undefined, string, string]>([
    [{}, undefined, "files.example:8080", "files.example:8080"],
    [{}, undefined, "", "10.0.0.1:8000"],
    [{ forwarded: { ...NONE, host: "own.example" } }, undefined, "", "own.example"],
    [{ hostHeader: "upstream" }, undefined, "files.example:8080", "10.0.0.1:8000"],
    [{ hostHeader: "upstream" }, "http://10.0.0.1:8000/", "", "10.0.0.1:8000"],
    [{ hostHeader: "upstream" }, "http://app.example", "", "app.example"],
  ])("of %j at %p, asked as %p, names the host %s", (action, url, host, named) => {
    const rules = rulesOf({ forwarded: NONE, ...action }, url === undefined ? {} : { url });
    expect(headOf(rules, { host })[1]).toBe(`Host: ${named}`);
  });

  test("other clients between do not get what was kept for one", () => {
    const rules = rulesOf({});
    const told = (more: Partial<ForwardedRequest>): string[] => headOf(rules, more).slice(1);
    const first = ["Host: files.example:8080", ...OWN];
    expect([told({}), told({})]).toEqual([first, first]);
    expect(told({ host: "b.example" })[0]).toBe("Host: b.example");
    expect(told({})).toEqual(first);
    expect(told({ clientAddress: "192.0.2.8" })[1]).toBe("X-Real-IP: 192.0.2.8");
    expect(told({})).toEqual(first);
    expect(told({ scheme: "http" })[3]).toBe("X-Forwarded-Proto: http");
    expect(told({})).toEqual(first);
  });

  test("lines that pass as they are follow the framing field", () => {
    const plainLines = "Accept: a\r\n\r\n";
    const headers = list("Accept: a");
    const whole = (action: object, more: Partial<ForwardedRequest>): string =>
      rulesOf({ forwarded: NONE, ...action }).requestHead(
        request({ headers, plainLines, ...more }),
        "Content-Length: 0\r\n",
      );
    const begin = "GET /sync/a HTTP/1.1\r\nHost: files.example:8080\r\n";
    expect(whole({}, {})).toBe(`${begin}Content-Length: 0\r\nAccept: a\r\n\r\n`);
    expect(whole({ setHeaders: { Accept: "b" } }, {})).toBe(`${begin}Accept: b\r\nContent-Length: 0\r\n\r\n`);
    expect(whole({}, { upgrade: "websocket" })).toBe(
      `${begin}Content-Length: 0\r\nAccept: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
  });
});

describe("a Destination", () => {
  const dav = (action: object, route: Partial<ProxiedRoute>, value: string, host: string): unknown => {
    const rules = rulesOf({ forwarded: NONE, ...action }, route);
    const asked = request({ host, headers: list("Accept: a", `Destination: ${value}`) });
    const refused = rules.refusal(asked);
    const lines = rules.requestHead(asked, "").split("\r\n");
    if (refused === undefined) return /^destination: (.*)$/im.exec(lines.join("\n"))?.[1];
    expect(lines.slice(2)).toEqual(["Accept: a", "", ""]);
    return `${refused.status} ${refused.message}`;
  };
  const HOST = "files.example";
  const outside = (value: string): string =>
    `502 Destination "${value}" names this front end, but nothing below "/sync"`;
  const malformed = (value: string): string =>
    `400 Destination "${value}" is malformed, or climbs above the root`;

  test.each<[object, Partial<ProxiedRoute>, string, string, string]>([
    [{}, {}, HOST, "http://files.example/sync/b", "/sync/b"],
    [{}, {}, HOST, "http://files.example:80/sync/b", "/sync/b"],
    [{}, {}, HOST, "http://files.example:443/sync/b", "/sync/b"],
    [{}, {}, HOST, "https://files.example/sync/b", "/sync/b"],
    [{}, {}, HOST, "http://files.example:8080/sync/b", "http://files.example:8080/sync/b"],
    [{}, {}, `${HOST}:443`, "HTTPS://FILES.example/sync/b", "/sync/b"],
    [{}, {}, `${HOST}:443`, "http://files.example/sync/b", "http://files.example/sync/b"],
    [{}, {}, HOST, "xhttp://files.example/sync/b", "xhttp://files.example/sync/b"],
    [{}, {}, HOST, "mailto://files.example/sync/b", "mailto://files.example/sync/b"],
    [{}, {}, HOST, "http://a b/sync/b", "http://a b/sync/b"],
    [{}, {}, "", "http://files.example/sync/b", "http://files.example/sync/b"],
    [{}, {}, `${HOST}:8080`, "http://files.example/sync/b", "http://files.example/sync/b"],
    [{}, {}, `${HOST}:8080`, "http://files.example:8080/sync/b", "/sync/b"],
    [{ destination: "absolute" }, {}, HOST, "/sync/b", "http://files.example/sync/b"],
    [{ destination: "absolute", strip: "raw" }, {}, HOST, "/sync/b", "http://files.example/b"],
    [{ destination: "clientPath" }, {}, HOST, "http://files.example/sync/b", "/sync/b"],
    [{ destination: "clientPath", strip: "raw" }, {}, HOST, "http://files.example/sync/b%20", "/sync/b%20"],
    [{ destination: "clientPath", rewrite: "/dav" }, {}, HOST, "https://files.example/sync/b", "/sync/b"],
    [{ destination: "clientPath", strip: "raw" }, {}, HOST, "/sync/b", "/sync/b"],
    [{ destination: "clientPath", strip: "raw" }, {}, HOST, "/other", outside("/other")],
    [{ destination: "clientPath", strip: "raw" }, {}, HOST, "http://b.example/b", "http://b.example/b"],
    [
      { destination: "unchanged" },
      {},
      HOST,
      "http://files.example/sync/%zz",
      "http://files.example/sync/%zz",
    ],
    [{ strip: "raw" }, {}, HOST, "http://files.example/sync", "/"],
    [{ strip: "raw" }, {}, HOST, "http://files.example", outside("http://files.example")],
    [{ strip: "raw" }, { path: "/" }, HOST, "http://files.example", "/"],
    [{ strip: "raw" }, { path: "/" }, HOST, "http://files.example?a", "/?a"],
    [{}, {}, HOST, "/other", "/other"],
    [{}, {}, HOST, "/sync/%zz", malformed("/sync/%zz")],
    // What belongs to the route is decided as routes are chosen.
    [{ strip: "raw" }, {}, HOST, "/sync/b", "/b"],
    [{ strip: "raw" }, {}, HOST, "/syncb", outside("/syncb")],
    [{ strip: "raw" }, {}, HOST, "/syn", outside("/syn")],
    [{ strip: "raw" }, { path: "/sync/" }, HOST, "/sync/b", "/b"],
    [{ strip: "raw" }, { match: "prefix" }, HOST, "/syncb", "/b"],
    [{ strip: "raw" }, { match: "exact" }, HOST, "/sync", "/"],
    [{ strip: "raw" }, { match: "exact" }, HOST, "/sync/b", outside("/sync/b")],
  ])("%j %j, asked as %p: %s becomes %s", (action, route, host, value, sent) => {
    expect(dav(action, route, value, host)).toBe(sent);
  });

  test("is replaced, and only that field is looked at", () => {
    const rules = rulesOf({ strip: "raw", setHeaders: { Destination: "/own" } });
    expect(rules.requestHead(request({ headers: list("Destination: /sync/b") }), "")).not.toContain("/b");
    // As long as `Destination`.
    expect(
      rules.refusal(request({ headers: list("X-Forwarded: /%zz", "X-Forwardee: /%zz") })),
    ).toBeUndefined();
    const both = request({ headers: list("Destination: /sync/b", "DESTINATION: /%zz") });
    expect(rules.refusal(both)?.message).toBe('Destination "/%zz" is malformed, or climbs above the root');
    expect(rules.refusal({ ...both, plainLines: "\r\n" })).toBeUndefined();
  });
});

describe("the fields of a response", () => {
  const UPSTREAM = "http://10.0.0.1:80";
  const PUBLIC = "https://files.example:8080";

  test("end here, pass, or pass once", () => {
    const from = list(
      "Server: s",
      "Date: d",
      "Age: 1",
      "Content-Type: text/plain",
      "Proxy-Authenticate: p",
      "Proxy-Authentication-Info: p",
      "X-Accel-Redirect: /a",
      "X-Accel: a",
      "X-Pad: p",
      "X-Pads: p",
      "Connection: x-hop",
      "X-Hop: 1",
      "Close: c",
      "Content-Type: text/html",
      "ETag: e",
    );
    expect(rulesOf({}).responseHeaders(from, request())).toEqual(
      list("Age: 1", "X-Accel: a", "X-Pads: p", "Close: c", "Content-Type: text/html", "ETag: e"),
    );
  });

  test.each<[object, Partial<ProxiedRoute>, string, string]>([
    [{}, {}, `Location: ${UPSTREAM}/a`, `Location: ${PUBLIC}/a`],
    [{}, {}, `content-location: ${UPSTREAM}`, `content-location: ${PUBLIC}/`],
    [{}, {}, `Location: ${UPSTREAM}?a`, `Location: ${PUBLIC}/?a`],
    [{}, {}, `Location: ${UPSTREAM}#a`, `Location: ${PUBLIC}/#a`],
    [{}, {}, "Location: /a", "Location: /a"],
    [{}, {}, "Location:", "Location:"],
    [{}, {}, `Location: ${UPSTREAM}80/a`, `Location: ${UPSTREAM}80/a`],
    [{}, {}, `Location: x${UPSTREAM}/a`, `Location: x${UPSTREAM}/a`],
    [{}, {}, `X-Location: ${UPSTREAM}/a`, `X-Location: ${UPSTREAM}/a`],
    [{}, {}, `Refresh: 5; url=${UPSTREAM}/a`, `Refresh: 5; url=${PUBLIC}/a`],
    [{}, {}, `Refresh: url=${UPSTREAM}/a`, `Refresh: url=${PUBLIC}/a`],
    [{}, {}, `Refresh: 5; URL='${UPSTREAM}'`, `Refresh: 5; URL='${PUBLIC}/'`],
    [{}, {}, `Refresh: 5; url="${UPSTREAM}"`, `Refresh: 5; url="${PUBLIC}/"`],
    [{}, {}, `Refresh: 5; url=/b?${UPSTREAM}/a`, `Refresh: 5; url=/b?${UPSTREAM}/a`],
    // Only the first is where the client goes.
    [{}, {}, `Location: ${UPSTREAM}/a?${UPSTREAM}/`, `Location: ${PUBLIC}/a?${UPSTREAM}/`],
    [{ strip: "raw" }, {}, `Location: ${UPSTREAM}/a`, `Location: ${PUBLIC}/sync/a`],
    [{ strip: "nginx" }, { path: "/sync/" }, `Location: ${UPSTREAM}`, `Location: ${PUBLIC}/sync/`],
    [{ strip: "raw" }, { path: "/a^b" }, `Location: ${UPSTREAM}/a`, `Location: ${PUBLIC}/a%5Eb/a`],
    // The host that was asked, without the TLS that the upstream does not know of.
    [{}, {}, "Location: http://files.example:8080/b?c#d", `Location: ${PUBLIC}/b?c#d`],
    [{}, {}, "Location: HTTP://Files.Example:8080", "Location: https://Files.Example:8080"],
    [{}, {}, "Content-Location: http://files.example:8080/a", `Content-Location: ${PUBLIC}/a`],
    [{}, {}, "Refresh: 5; url='http://files.example:8080/sync/a'", `Refresh: 5; url='${PUBLIC}/sync/a'`],
    [{}, {}, `Location: ${PUBLIC}/b`, `Location: ${PUBLIC}/b`],
    [{}, {}, "Location: http://files.example/b", "Location: http://files.example/b"],
    [{}, {}, "Location: http://files.example:80801/b", "Location: http://files.example:80801/b"],
    [{}, {}, "Location: http://files.example:8080@x/b", "Location: http://files.example:8080@x/b"],
    [{}, {}, "Location: /b?http://files.example:8080/", "Location: /b?http://files.example:8080/"],
    // It would lead to itself.
    [{}, {}, "Location: http://files.example:8080/sync/a", "Location: http://files.example:8080/sync/a"],
  ])("%j %j: %s becomes %s", (action, route, from, to) => {
    const rules = rulesOf(action, { ...route, url: UPSTREAM });
    expect(rules.responseHeaders(list(from), request())).toEqual(list(to));
  });

  test.each([
    ["https", "files.example", "http://files.example/b", "https://files.example/b"],
    ["https", "files.example:443", "http://files.example/b", "https://files.example/b"],
    ["https", "files.example", "http://files.example:443/b", "https://files.example:443/b"],
    ["https", "files.example", "http://files.example:80/b", "http://files.example:80/b"],
    ["http", "files.example", "http://files.example/b", "http://files.example/b"],
    ["https", "", "http://files.example/b", "http://files.example/b"],
  ] as const)("over %s, asked as %p: a redirect to %s leads to %s", (scheme, host, from, to) => {
    const location = list(`Location: ${from}`);
    expect(rulesOf({}).responseHeaders(location, request({ scheme, host }))).toEqual(list(`Location: ${to}`));
  });

  const CUT = { strip: "raw" };
  const INTO = { rewrite: "/v1/api" };
  test.each<[object, Partial<ProxiedRoute> & { url?: string }, string, string]>([
    [CUT, {}, "a=b; Path=/", "a=b; Path=/sync"],
    [CUT, {}, "a=b; path = /c ; Secure", "a=b; path =/sync/c; Secure"],
    [CUT, {}, "a=b;HttpOnly;PATH=/c/;SameSite=Lax", "a=b;HttpOnly;PATH=/sync/c/;SameSite=Lax"],
    [CUT, {}, "a=b; Path=/; Path=/c", "a=b; Path=/sync; Path=/sync/c"],
    [CUT, {}, "a=b", "a=b"],
    [CUT, {}, "a=path=/; Secure", "a=path=/; Secure"],
    // A client uses the directory of its own request instead.
    [CUT, {}, "a=b; Path=", "a=b; Path="],
    [CUT, {}, "a=b; Path", "a=b; Path"],
    [CUT, {}, 'a=b; Path="/c"', 'a=b; Path="/c"'],
    [CUT, {}, "__Host-a=b; Path=/; Secure", "__Host-a=b; Path=/; Secure"],
    [CUT, {}, "__host-a=b; Path=/; Secure", "__host-a=b; Path=/; Secure"],
    [CUT, {}, "__Secure-a=b; Path=/", "__Secure-a=b; Path=/sync"],
    [CUT, { path: "/" }, "a=b; Path=/", "a=b; Path=/"],
    [CUT, { path: "/sync/" }, "a=b; Path=/", "a=b; Path=/sync"],
    [CUT, { path: "/a^b" }, "a=b; Path=/", "a=b; Path=/a%5Eb"],
    [CUT, { path: "/a;b" }, "a=b; Path=/", "a=b; Path=/"],
    [INTO, {}, "a=b; Path=/v1/api", "a=b; Path=/sync"],
    [INTO, {}, "a=b; Path=/v1/api/c", "a=b; Path=/sync/c"],
    [INTO, {}, "a=b; Path=/v1/apis", "a=b; Path=/v1/apis"],
    // It has to reach every path of the upstream.
    [INTO, {}, "a=b; Path=/", "a=b; Path=/"],
    [{}, {}, "a=b; Path=/", "a=b; Path=/"],
    [{}, { url: "http://web.internal:80" }, "a=b; Domain=web.internal; Path=/c", "a=b; Path=/c"],
    [{}, { url: "http://web.internal:80" }, "a=b; domain = .WEB.internal", "a=b"],
    [{}, { url: "http://web.internal:80" }, "a=b; Domain=a.web.internal", "a=b; Domain=a.web.internal"],
    [{}, { url: "http://web.internal:80" }, "a=b; Domain=internal", "a=b; Domain=internal"],
    [{}, { url: "http://10.0.0.1:80" }, "a=b; Domain=10.0.0.1", "a=b"],
    [{}, { url: "http://files.example:80" }, "a=b; Domain=files.example", "a=b; Domain=files.example"],
    [{ ...CUT, mapCookies: false }, {}, "a=b; Path=/; Domain=10.0.0.1", "a=b; Path=/; Domain=10.0.0.1"],
  ])("%j %j: a cookie of %s becomes %s", (action, route, from, to) => {
    const rules = rulesOf(action, { url: UPSTREAM, ...route });
    expect(rules.responseHeaders(["Set-Cookie", from], request())).toEqual(["Set-Cookie", to]);
  });

  test("name no public origin if the client named none", () => {
    const location = list(`Location: ${UPSTREAM}/a`);
    expect(rulesOf({}, { url: UPSTREAM }).responseHeaders(location, request({ host: "" }))).toEqual(location);
  });
});

test.each<[string[], string[] | undefined]>([
  [[], undefined],
  [["Connection: close"], undefined],
  [["Connection: Keep-Alive"], undefined],
  [["Connection:"], []],
  [
    ["A: b", "Connection: close, X-A ,,x-b", "CONNECTION: c"],
    ["close", "x-a", "x-b", "c"],
  ],
  [["Connections: a", "Connectio: a", "User-Agent: a"], undefined],
])("the options of a connection: %j", (lines, options) => {
  const found = connectionOptions(list(...lines));
  expect(found && [...found]).toEqual(options);
});
