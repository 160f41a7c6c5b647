import { causeOfResponse, causeOfFailure } from "../../src/host/diagnosis/expected/causes.js";
import {
  fromUpstream,
  type Expectation,
  field,
  fieldAbsent,
  fieldPresent,
  fieldWith,
  http2,
  isOwnErrorPage,
  location,
  mediaType,
  member,
  type ReceivedResponse,
  serverField,
  status,
} from "../../src/host/diagnosis/expected/expectation.js";
import {
  type ExpectedProbe,
  expectedResponses,
  type ExpectedResponsesOptions,
  mainName,
} from "../../src/host/diagnosis/expected/expectedResponses.js";
import { formatChecked, judge } from "../../src/host/diagnosis/expected/liveCheck.js";
import { judgeOverrides } from "../../src/host/diagnosis/storedSettings.js";
import { previewConfig } from "../../src/cli/previewConfig.js";
import { problem, type ProxyConfigInput, serversOf } from "../../src/model/index.js";
import { type SiteOptions, siteConfig } from "../../testkit/siteConfig.js";
import {
  ADDRESS,
  response,
  configOf,
  errorPage,
  failure,
  siteRows,
  type Subject,
  subjectOf,
} from "./site.js";

/** What is asked of a front end, what counts as expected, and what is said where it is not. */

const responded = (...parts: Parameters<typeof response>): ReceivedResponse =>
  (response(...parts) as { response: ReceivedResponse }).response;
const page = (...parts: Parameters<typeof errorPage>): ReceivedResponse =>
  (errorPage(...parts) as { response: ReceivedResponse }).response;

test.each<[Expectation, holds: readonly ReceivedResponse[], not: readonly ReceivedResponse[]]>([
  [status(200), [responded(200)], [responded(201)]],
  [http2(), [responded(200, {}, { protocol: "HTTP/2" })], [responded(200)]],
  [
    field("X-A", "b; c"),
    [responded(200, { "x-a": "b; c" })],
    [responded(200, { "x-a": "B;c" }), responded(200)],
  ],
  [
    field("X-A", "b; c", true),
    ["B;C", "b  ;  c"].map((value) => responded(200, { "x-a": value })),
    [responded(200)],
  ],
  [
    location("http://a/b"),
    ["http://a/b", "/b"].map((to) => responded(302, { location: to })),
    [...["/c", "http://["].map((to) => responded(302, { location: to })), responded(302)],
  ],
  [
    location("http://a/b", "http://a/c"),
    ["http://a/c", "/b"].map((to) => responded(302, { location: to })),
    ["/d", "http://b/c"].map((to) => responded(302, { location: to })),
  ],
  [
    member({ name: "a", values: ["", "b"] }),
    ['{"a":"b"}', '{"c":1,"a":""}'].map((body) => responded(200, {}, { body })),
    ['{"a":"c"}', '{"a":1}', '{"b":"b"}', '"b"', "null", '{"a":', ""].map((body) =>
      responded(200, {}, { body }),
    ),
  ],
  [
    mediaType("text/html"),
    [responded(200, { "content-type": "Text/HTML ; charset=utf-8" })],
    [responded(200, { "content-type": "text/html2" })],
  ],
  [
    mediaType("image/*"),
    [responded(200, { "content-type": "image/png" })],
    [
      ...["text/image/", "images/png"].map((type) => responded(200, { "content-type": type })),
      responded(200),
    ],
  ],
  [
    fieldWith("Vary", "A", "B"),
    [responded(200, { vary: "b,c , a" })],
    [responded(200, { vary: "a" }), responded(200)],
  ],
  [fieldPresent("ETag"), [responded(200, { etag: "1" })], [responded(200, { etag: "" }), responded(200)]],
  [fieldAbsent("ETag"), [responded(200)], [responded(200, { etag: "" })]],
  [
    serverField(true),
    [responded(200, { server: "portico/1" })],
    [responded(200), { ...responded(200), headers: {} }],
  ],
  [
    serverField(false),
    [responded(200)],
    [responded(200, { server: "portico/1" }), { ...responded(200), headers: {} }],
  ],
  [
    fromUpstream(),
    [responded(404), responded(500), responded(503), page(413)],
    [responded(502), responded(504), page(404), page(503)],
  ],
])("%j of responses", (expectation, good, bad) => {
  expect(good.map((one) => expectation.holds(one))).toEqual(good.map(() => true));
  expect(bad.map((one) => expectation.holds(one))).toEqual(bad.map(() => false));
});

test.each<[Expectation, ReceivedResponse, message: string, seen: string]>([
  [http2(), responded(200), "HTTP/2", "HTTP/1.1"],
  [field("X-A", "b"), responded(200), "X-A: b", "no X-A"],
  [fieldWith("Vary", "A", "B"), responded(200, { vary: "a" }), "Vary: A, B", "Vary: a"],
  [fieldAbsent("ETag"), responded(200, { etag: "" }), "no ETag", "ETag: "],
  [serverField(true), responded(200), "Server: with version", "Server: portico"],
  [fromUpstream(), page(404), fromUpstream().message, "404 from the proxy"],
])("%j, and what was seen in its place", (expectation, received, message, seen) => {
  expect([expectation.message, expectation.seen(received)]).toEqual([message, seen]);
});

test.each([
  ["<center>portico</center>", true],
  ["<center>portico/1.2</center>", true],
  ["<center>portico/</center>", false],
  ["<center>other</center>", false],
  [undefined, false],
])("an error page of the proxy: %s: %s", (body, own) => {
  expect(isOwnErrorPage({ ...responded(404), ...(body === undefined ? {} : { body }) })).toBe(own);
});

const config = (options: Partial<SiteOptions> = {}, more: Partial<ProxyConfigInput> = {}) =>
  configOf({ ...siteConfig({ mode: "plain", host: ADDRESS, ...options }), ...more });

/** A row in one line: its name, where it goes, and what for. */
const line = ({ name, request, expected, upstream, notProbed }: ExpectedProbe): string =>
  [
    `${name}: ${request.scheme}://${request.host}${request.path} at ${request.address} ${request.port}`,
    expected.map(({ message }) => message).join(", "),
    ...(upstream === undefined ? [] : serversOf(upstream).map(({ url }) => url)),
    ...(notProbed === undefined ? [] : [notProbed.reason]),
  ].join(" | ");
const lines = (...parts: Parameters<typeof config>) => siteRows(config(...parts)).map(line);
const linesOf = (options: ExpectedResponsesOptions, ...parts: Parameters<typeof config>) =>
  siteRows(config(...parts), options).map(line);

const FROM_DAEMON =
  "a response from the daemon (not a 502 or 504, nor a 404 or 503 from the proxy), Server: without version";
const MEDIA = "200, Content-Type: image/*, Content-Length, Last-Modified, ETag, Accept-Ranges: bytes";

describe("what is asked", () => {
  test("in plain mode", () => {
    const at = "at 127.0.0.1 80";
    const login = `http://${ADDRESS}/sync/accounts/login/?next=/sync/`;
    expect(lines()).toEqual([
      `default server: http://default-server.invalid/ ${at} | 200, Content-Type: text/html, Server: with version`,
      `media file: http://${ADDRESS}/syncmedia/<image> ${at} | ${MEDIA} | no image file was found in /opt/sync/media`,
      `application over http: http://${ADDRESS}/sync/ ${at} | 302, Location: ${login}, Content-Type: text/html; charset=utf-8, Vary: Accept-Language, Cookie, Content-Language | http://127.0.0.1:8000`,
      `application's Server field: http://${ADDRESS}/sync/ ${at} | Server: without version | http://127.0.0.1:8000`,
      `file server daemon: http://${ADDRESS}/synchttp/ ${at} | ${FROM_DAEMON} | http://127.0.0.1:8082`,
      `WebDAV daemon: http://${ADDRESS}/syncdav/ ${at} | ${FROM_DAEMON} | http://127.0.0.1:8080`,
    ]);
  });

  test.each([false, true])("in TLS mode, over both families, the listeners reversed: %s", (reversed) => {
    const options = { mode: "tls", ipv6: "::" } as const;
    const { listeners } = siteConfig(options);
    const found = linesOf(
      { imagePath: "//img/a.png" },
      options,
      reversed ? { listeners: listeners.toReversed() } : {},
    );
    const login = `302, Location: https://${ADDRESS}/sync/accounts/login/?next=/sync/ | http://127.0.0.1:8000`;
    const redirect = `301, Location: https://${ADDRESS}/sync/, Content-Type: text/html`;
    expect(found).toEqual([
      "default server: http://default-server.invalid/ at 127.0.0.1 80 | 200, Content-Type: text/html, Server: with version",
      `media file: https://${ADDRESS}/syncmedia/img/a.png at 127.0.0.1 443 | ${MEDIA}`,
      `redirect to https: http://${ADDRESS}/sync/ at 127.0.0.1 80 | ${redirect}`,
      `redirect to https on IPv6: http://${ADDRESS}/sync/ at ::1 80 | ${redirect}`,
      `application over https: https://${ADDRESS}/sync/ at 127.0.0.1 443 | HTTP/2, ${login}`,
      `application over https on IPv6: https://${ADDRESS}/sync/ at ::1 443 | HTTP/2, ${login}`,
      `application's Server field: https://${ADDRESS}/sync/ at 127.0.0.1 443 | Server: without version | http://127.0.0.1:8000`,
      `file server daemon: https://${ADDRESS}/synchttp/ at 127.0.0.1 443 | ${FROM_DAEMON} | http://127.0.0.1:8082`,
      `WebDAV daemon: https://${ADDRESS}/syncdav/ at 127.0.0.1 443 | ${FROM_DAEMON} | http://127.0.0.1:8080`,
    ]);
  });

  const first = (options: ExpectedResponsesOptions, ...parts: Parameters<typeof config>): string =>
    linesOf(options, ...parts).find((one) => one.startsWith("application over"))!;

  test.each<[what: string, options: ExpectedResponsesOptions, site: Partial<SiteOptions>, asked: RegExp]>([
    ["a name that is given", { host: "a.example" }, {}, /: http:\/\/a\.example\/sync\/ at 127\.0\.0\.1 80 /],
    ["an IPv6 address that is given", { host: "2001:db8::1" }, {}, /: http:\/\/\[2001:db8::1\]\/sync\//],
    ["one in brackets", { host: "[2001:db8::1]" }, {}, /: http:\/\/\[2001:db8::1\]\/sync\//],
    ["a place to connect", { connect: "192.0.2.9" }, {}, / at 192\.0\.2\.9 80 /],
    [
      "a place of one family",
      { connect: "2001:db8::9" },
      { ipv6: "::" },
      /over http on IPv6: .* at 2001:db8::9 80 /,
    ],
    [
      "a place of a family without listeners",
      { connect: "2001:db8::9" },
      {},
      /over http: .* at 2001:db8::9 80 /,
    ],
    ["a listener's own address", {}, { address: "192.0.2.7" }, / at 192\.0\.2\.7 80 /],
  ])("%s", (_what, options, site, asked) => expect(first(options, site)).toMatch(asked));

  test("as a preview serves it, by a name", () => {
    const moved = previewConfig(config({ mode: "tls", host: "files.example.org" }), { portOffset: 10_000 });
    if (!moved.ok) throw new Error(JSON.stringify(moved.problems));
    const [http, https] = ["http://files.example.org:10080", "https://files.example.org:10443"];
    const rows = siteRows(moved.value, { imagePath: "a.png" }).map(line);
    expect(rows.slice(2, 4)).toEqual([
      `redirect to https: ${http}/sync/ at 127.0.0.1 10080 | 301, Location: ${https}/sync/, Content-Type: text/html`,
      `application over https: ${https}/sync/ at 127.0.0.1 10443 | HTTP/2, 302, Location: ${https}/sync/accounts/login/?next=/sync/ | http://127.0.0.1:8000`,
    ]);
  });

  test.each([
    ["::", "::1"],
    ["0:0:0:0:0:0:0:0", "::1"],
    ["::5", "::5"],
    ["0:0:0:0:0:0:0:5", "0:0:0:0:0:0:0:5"],
    ["2001:db8::", "2001:db8::"],
  ])("a listener on %s is asked at %s", (ipv6, asked) => {
    const rows = siteRows(config({ mode: "tls", address: "192.0.2.10", ipv6 }));
    const on6 = rows.find(({ name }) => name === "application over https on IPv6");
    expect(on6!.request.address).toBe(asked);
  });

  test("a published port is the one in Host, and the one that clients connect to", () => {
    const { listeners, ...rest } = siteConfig({ mode: "plain", host: "files.example.org" });
    const published = (publishedPort: number) =>
      configOf({ ...rest, listeners: listeners.map((one) => ({ ...one, port: 8081, publishedPort })) });
    const asked = (port: number, options: ExpectedResponsesOptions): string =>
      siteRows(published(port), options).map(line).at(-1)!;
    expect(asked(80, {})).toMatch(/: http:\/\/files\.example\.org\/syncdav\/ at 127\.0\.0\.1 8081 /);
    expect(asked(8888, { connect: "192.0.2.9" })).toMatch(
      /\/\/files\.example\.org:8888\/.* at 192\.0\.2\.9 8081 /,
    );
    expect(asked(8888, { connect: "192.0.2.9", asClients: true })).toMatch(/ at 192\.0\.2\.9 8888 /);
    const row = siteRows(published(80), { host: "127.0.0.1" })[0]!;
    expect(judge(row, failure("ECONNREFUSED")).request).toMatch(/ \(at 127\.0\.0\.1:8081\)$/);
  });

  test.each([
    ["img/a.png", "/syncmedia/img/a.png"],
    ["../../a.png", "/syncmedia/../../a.png"],
  ])("a media file that is named %s", (imagePath, path) => {
    const row = siteRows(config(), { imagePath }).find((row) => subjectOf(row) === "media")!;
    expect(row.request.path).toBe(path);
  });

  test("an application with and without TLS is asked with it", () => {
    const { virtualServers, ...rest } = siteConfig({ mode: "tls", host: "files.example.org" });
    const listeners = rest.listeners.map(({ name }) => name);
    const both = virtualServers
      .filter(({ name }) => name !== "redirect")
      .map((one) => (one.name === "application" ? { ...one, listeners, default: false } : one))
      .map((one) => (one.name === "application" ? { ...one, serverNames: ["files.example.org"] } : one))
      .map((one) => (one.name === "default" ? { ...one, listeners } : one));
    const rows = siteRows(configOf({ ...rest, virtualServers: both })).slice(1);
    expect(new Set(rows.map(({ request }) => request.scheme))).toEqual(new Set(["https"]));
  });

  test("HTTP/2 is expected only of a listener that offers it", () => {
    const { listeners } = siteConfig({ mode: "tls" });
    const without = listeners.map((one) => (one.tls === undefined ? one : { ...one, http2: false }));
    expect(first({}, { mode: "tls" }, { listeners: without })).toMatch(/ \| 302, Location: /);
  });

  test("a listener that takes headers of the PROXY protocol gets one from the same addresses", () => {
    const { listeners } = siteConfig({ mode: "plain" });
    const announced = listeners.map((one) => ({ ...one, proxyProtocol: { from: ["192.0.2.0/24"] } }));
    expect(siteRows(config({}, { listeners: announced }))[0]!.request).toEqual({
      scheme: "http",
      address: "127.0.0.1",
      port: 80,
      headerFrom: ["192.0.2.0/24"],
      host: "default-server.invalid",
      path: "/",
    });
  });

  test("media and redirects by other means than usual", () => {
    const { virtualServers, ...rest } = siteConfig({ mode: "tls", host: ADDRESS });
    const action = { type: "respond" as const, status: 200, body: "ok" };
    const rows = siteRows(
      configOf({
        ...rest,
        virtualServers: virtualServers.map((server) => ({
          ...server,
          routes: server.routes!.map((route) =>
            route.name === "media" || server.name === "redirect" ? { ...route, action } : route,
          ),
        })),
      }),
    );
    expect(rows.find((row) => subjectOf(row) === "media")!.notProbed!.reason).toBe(
      "no image file was found in the directory of its route",
    );
    // The deployment says where it leads, whatever the config on the host has become.
    expect(rows.find((row) => subjectOf(row) === "redirect")!.expected[1]!.message).toBe(
      `Location: https://${ADDRESS}/sync/`,
    );
  });

  test("fields that the config sets or removes are expected as it says", () => {
    const { virtualServers, ...rest } = siteConfig({ mode: "plain" });
    const said = (name: string, responseHeaders: object): string =>
      siteRows(
        configOf({
          ...rest,
          virtualServers: virtualServers.map((server) => ({
            ...server,
            ...(server.name === name ? { responseHeaders } : {}),
            routes: server.routes!.map((route) =>
              route.name === name ? { ...route, responseHeaders } : route,
            ),
          })),
        }),
      )
        .find((row) => subjectOf(row) === "web")!
        .expected.at(-1)!.message;
    expect(said("application", { set: { "content-language": "en" } })).toBe("content-language: en");
    expect(said("application", { remove: ["CONTENT-LANGUAGE"] })).toBe("no Content-Language");
    expect(said("default", { remove: ["Content-Language"] })).toBe("Content-Language");
    expect(said("web", { set: { "content-language": "de" } })).toBe("content-language: de");
    expect(said("media", { set: { "content-language": "de" } })).toBe("Content-Language");
  });

  test("case and spacing of the login page's type do not matter", () => {
    const said = siteRows(config()).find((row) => subjectOf(row) === "web")!.expected;
    const type = said.find(({ field: name }) => name === "Content-Type")!;
    expect(type.holds(responded(302, { "content-type": "text/html;charset=UTF-8" }))).toBe(true);
  });

  test("media that a user keeps from being looked at are not called missing", () => {
    const imageUnseen = problem("files.no-response", "/opt/sync/media", "was stopped", { fix: "End it." });
    const media = siteRows(config(), { imageUnseen }).find((row) => subjectOf(row) === "media")!;
    expect(judge(media, undefined)).toMatchObject({
      pass: false,
      notProbed: true,
      cause: "/opt/sync/media: was stopped [files.no-response]: End it.",
    });
  });

  test("a virtual server that the config does not have is not probed", () => {
    const only = [{ name: "other", request: { server: "other", path: "/" } }];
    const [row] = siteRows(config(), { expect: only });
    expect(judge(row!, undefined)).toMatchObject({
      pass: false,
      cause: expect.stringMatching(/^the config has no virtual server `other`: deploy/),
    });
  });
});

test("without a deployment each route has to respond as its action promises", () => {
  const action = { type: "respond", status: 418, body: "" } as const;
  const { virtualServers, ...rest } = siteConfig({ mode: "tls", host: "files.example.org" });
  const tea = { name: "tea", path: "/a[b", match: "exact", action } as const;
  const servers = virtualServers.map((one) => ({ ...one, routes: [...one.routes, tea] }));
  expect(expectedResponses(configOf({ ...rest, virtualServers: servers })).map(line)).toMatchInlineSnapshot(`
[
  "default page: http://127.0.0.1/ at 127.0.0.1 80 | a file (not a 4xx or 5xx)",
  "default tea: http://127.0.0.1/a%5Bb at 127.0.0.1 80 | 418",
  "redirect toHttps: http://files.example.org/sync/ at 127.0.0.1 80 | 301, Location: https://files.example.org/sync/, Content-Type: text/html",
  "redirect tea: http://files.example.org/a%5Bb at 127.0.0.1 80 | 418",
  "application web: https://files.example.org/sync/ at 127.0.0.1 443 | a response from the daemon (not a 502 or 504, nor a 404 or 503 from the proxy), Server: without version | http://127.0.0.1:8000",
  "application fileServer: https://files.example.org/synchttp/ at 127.0.0.1 443 | a response from the daemon (not a 502 or 504, nor a 404 or 503 from the proxy), Server: without version | http://127.0.0.1:8082",
  "application media: https://files.example.org/syncmedia/ at 127.0.0.1 443 | a response (not a 5xx)",
  "application webdav: https://files.example.org/syncdav/ at 127.0.0.1 443 | a response from the daemon (not a 502 or 504, nor a 404 or 503 from the proxy), Server: without version | http://127.0.0.1:8080",
  "application tea: https://files.example.org/a%5Bb at 127.0.0.1 443 | 418",
]
`);
});

test.each([
  [["index.html"], 403, false],
  [["index.html"], 404, false],
  [["index.html"], 301, true],
  [["index.html"], 200, true],
  [[], 403, true],
  [[], 404, true],
  [[], 500, false],
])("of a static directory with the index %j a %i passes: %s", (index, status, pass) => {
  const { virtualServers, ...rest } = siteConfig({ mode: "plain" });
  const action = { type: "staticFiles", directory: "/srv/site", index } as const;
  const routes = [{ name: "site", path: "/", match: "prefix", action } as const];
  const [row] = expectedResponses(configOf({ ...rest, virtualServers: [{ ...virtualServers[0]!, routes }] }));
  expect(judge(row!, response(status)).pass).toBe(pass);
});

test.each<[what: string, names: string[][], without: string[], asked: string[]]>([
  ["the address where no server has a name", [["_"]], ["127.0.0.1"], ["given.example"]],
  ["the name of the only server", [["a.example", "_"]], ["a.example"], ["given.example"]],
  [
    "the first name, and no other and no address",
    [["a.example"], ["b.example"], ["_"]],
    ["a.example", "b.example", "127.0.0.1"],
    ["given.example", "b.example", "127.0.0.1"],
  ],
])("without a deployment, a name that is given stands for %s", (_what, names, without, asked) => {
  const { virtualServers, ...rest } = siteConfig({ mode: "plain" });
  const servers = names.map((serverNames, i) => {
    const isDefault = serverNames.includes("_");
    return { ...virtualServers[0]!, name: `server${i}`, serverNames, default: isDefault };
  });
  const parsed = configOf({ ...rest, virtualServers: servers });
  const hosts = (options: ExpectedResponsesOptions): string[] =>
    expectedResponses(parsed, options).map(({ request }) => request.host);
  expect([hosts({}), hosts({ host: "given.example" })]).toEqual([without, asked]);
});

test.each<
  [
    what: string,
    site: Partial<SiteOptions>,
    change: (input: ProxyConfigInput) => unknown,
    host: string | undefined,
  ]
>([
  ["the application's own", {}, () => undefined, ADDRESS],
  ["the one that is forwarded", { mode: "tls", host: "a.example" }, () => undefined, "a.example"],
  [
    "the one of the redirect",
    { mode: "tls", host: "b.example" },
    ({ virtualServers }) => {
      for (const { action } of virtualServers.at(-1)!.routes!)
        delete (action as { forwarded?: unknown }).forwarded;
    },
    "b.example",
  ],
])("the application's host is %s", (_what, site, change, host) => {
  const input = siteConfig({ mode: "plain", host: ADDRESS, ...site });
  change(input);
  const parsed = configOf(input);
  expect(mainName(parsed)).toBe(host);
  // Without any name the listener's address is asked for.
  expect(siteRows(parsed).at(-1)!.request.host).toBe(host ?? "127.0.0.1");
});

const row = (subject: Subject, options: Partial<SiteOptions> = {}): ExpectedProbe =>
  siteRows(config(options), { imagePath: "a.png" }).find((one) => subjectOf(one) === subject)!;
const LOGIN = `http://${ADDRESS}/sync/accounts/login/`;

test.each<[ExpectedProbe, ReceivedResponse, cause: RegExp, settings?: string[]]>([
  [row("default"), responded(404, { server: "portico/1" }), /its page is missing/],
  [row("default"), responded(404), /the default virtual server is not enabled/],
  [row("media"), page(404, "portico/1"), /^the default virtual server responded: the server name/],
  [row("media"), responded(403), /^the media file is not world readable/],
  [row("media"), responded(404), /media path in the config does not match/],
  [row("media"), responded(200), /^the response is not from the media route/],
  [row("redirect", { mode: "tls" }), responded(200), /not in TLS mode/],
  [row("fileServer"), responded(404), /^the server name in the proxy config/],
  [
    row("fileServer"),
    responded(502),
    /^the file server daemon does not respond at http:\/\/127\.0\.0\.1:8082; login works/,
  ],
  [row("fileServer"), responded(504), /^the file server daemon does not respond/],
  [row("fileServer"), responded(500), /^the response is not from the application's virtual server/],
  [
    row("webdav"),
    responded(502),
    /^the WebDAV daemon does not respond at http:\/\/127\.0\.0\.1:8080; without WebDAV/,
  ],
  [row("web"), page(404), /^the server name in the proxy config/],
  [
    row("web"),
    page(502),
    /^the web application daemon .*, and that it runs and listens on http:\/\/127\.0\.0\.1:8000$/,
  ],
  [row("web"), responded(200), /^the web application daemon and the proxy do not work together/],
  [row("web"), responded(404), /no page at \/sync\/: SITE_ROOT is not set to `\/sync\/`$/, ["SITE_ROOT"]],
  [row("web"), responded(400), /refuses the name 198\.41\.0\.4: ALLOWED_HOSTS/, ["ALLOWED_HOSTS"]],
  [
    row("web"),
    responded(302, { location: "/accounts/login/" }),
    /redirects to \/accounts\/login\/: LOGIN_URL .*`\/sync\/accounts\/login\/`/,
    ["LOGIN_URL", "SITE_ROOT"],
  ],
  [
    row("web"),
    responded(302, { location: "http://b.example/sync/accounts/login/" }),
    /redirects to http:\/\/b\.example.*: SERVICE_URL/,
    ["SERVICE_URL"],
  ],
  [
    row("web"),
    responded(301, { location: "/accounts/login/" }),
    /^the web application daemon and the proxy do not work together/,
  ],
  [row("web"), responded(302, { location: LOGIN }), /another program listens on its port/],
  [row("web"), responded(302), /another program listens on its port/],
  [row("web"), responded(302, { location: "http://[" }), /another program listens on its port/],
  [row("web"), responded(302, { location: `${LOGIN}?next=/sync/` }), /another program listens on its port/],
  [
    row("web", { mode: "tls" }),
    responded(302, { location: `${LOGIN}?next=/sync/`.replace("http", "https") }),
    /does not offer HTTP\/2/,
  ],
  [
    row("web", { mode: "tls" }),
    responded(302, { location: `${LOGIN}?next=/sync/`.replace("http", "https") }, { protocol: "HTTP/2" }),
    /another program/,
  ],
])("%#: why a response is not the expected one", (asked, received, cause, settings = []) => {
  const found = causeOfResponse(asked, received);
  expect(found.message).toMatch(cause);
  expect(found.settings ?? []).toEqual(settings);
});

test.each<[ExpectedProbe, code: string, cause: RegExp]>([
  [row("web"), "ECONNREFUSED", /^nothing listens on 127\.0\.0\.1 port 80/],
  [row("web"), "ETIMEDOUT", /^no response from 127\.0\.0\.1 port 80/],
  [row("web"), "EHOSTUNREACH", /^no response from/],
  [row("web"), "ENETUNREACH", /^no response from/],
  [row("web", { address: "192.0.2.7" }), "ETIMEDOUT", /^192\.0\.2\.7 port 80 cannot be reached/],
  [row("web", { address: "192.0.2.7" }), "EHOSTUNREACH", /cannot be reached/],
  [row("web", { address: "192.0.2.7" }), "ENETUNREACH", /cannot be reached/],
  [row("web"), "ENOTFOUND", /has no DNS record here/],
  [row("web"), "EAI_AGAIN", /has no DNS record here/],
  [row("web", { mode: "tls" }), "DEPTH_ZERO_SELF_SIGNED_CERT", /^the certificate is not trusted/],
  [row("web", { mode: "tls" }), "UNABLE_TO_VERIFY_LEAF_SIGNATURE", /^the certificate is not trusted/],
  [row("web", { mode: "tls" }), "CERT_HAS_EXPIRED", /^the certificate is not trusted/],
  [row("web"), "CERT_HAS_EXPIRED", /^the connection to .* was lost/],
  [
    row("web", { mode: "tls" }),
    "ERR_SSL_WRONG_VERSION_NUMBER",
    /^the TLS handshake with 127\.0\.0\.1 port 443 failed/,
  ],
  [row("web", { mode: "tls" }), "EPROTO", /^the TLS handshake/],
  [row("web", { mode: "tls" }), "ERR_TLS_X", /^the TLS handshake/],
  [row("web"), "EPROTO", /^the connection to .* was lost/],
  [row("web"), "ECONNRESET", /^the connection to .* was lost/],
  [row("web"), "XETIMEDOUT", /^the connection to .* was lost/],
  [row("web"), "ETIMEDOUTX", /^the connection to .* was lost/],
])("%#: why nothing responds", (asked, code, cause) => {
  expect(causeOfFailure(asked, { code, message: "" })).toMatch(cause);
});

describe("a line of `portico check --live`", () => {
  test.each<[what: string, asked: ExpectedProbe, outcome: Parameters<typeof judge>[1], line: RegExp]>([
    [
      "passes",
      row("fileServer"),
      response(200),
      /^PASS {2}file server daemon: HEAD http:\/\/198\.41\.0\.4\/synchttp\/ \(at 127\.0\.0\.1:80\) \| expected .* \| seen 200, Server: portico$/,
    ],
    [
      "fails",
      row("fileServer"),
      response(502),
      /^FAIL {2}.* \| seen 502, Server: portico \| cause: the file server/,
    ],
    [
      "gets no response",
      row("fileServer"),
      failure("ECONNREFUSED"),
      /^FAIL {2}.* \| seen failed: ECONNREFUSED \| cause: nothing listens/,
    ],
    [
      "is not asked",
      { ...row("media"), notProbed: { reason: "why", fix: "how" } },
      undefined,
      /^FAIL {2}.* \| seen not probed \| cause: why: how$/,
    ],
    [
      "at its own address",
      row("fileServer", { address: ADDRESS }),
      response(200),
      /HEAD http:\/\/198\.41\.0\.4\/synchttp\/ \|/,
    ],
  ])("%s", (_what, asked, outcome, expected) => {
    expect(formatChecked(judge(asked, outcome))).toMatch(expected);
  });

  test("does not repeat an address with a port of its own", () => {
    const asked = row("fileServer", { address: ADDRESS });
    const at = (host: string, address: string): string =>
      judge({ ...asked, request: { ...asked.request, host, address, port: 81 } }, response(200)).request;
    expect(at("192.0.2.1:81", "192.0.2.1")).toBe("HEAD http://192.0.2.1:81/synchttp/");
    expect(at("[2001:db8::1]:81", "2001:db8::1")).toBe("HEAD http://[2001:db8::1]:81/synchttp/");
    expect(at("a.example:81", "2001:db8::1")).toBe(
      "HEAD http://a.example:81/synchttp/ (at [2001:db8::1]:81)",
    );
  });
});

describe("settings that are stored in the database", () => {
  const access = { host: "127.0.0.1", port: 3306, name: "sync", user: "reader" };
  const wanted = new Map([
    ["SERVICE_URL", { wanted: "http://a/sync" }],
    ["FILE_SERVER_ROOT", { wanted: "http://a/synchttp" }],
  ]);

  test.each<[stored: string | undefined, pass: boolean, seen: string]>([
    [undefined, true, "nothing"],
    ["http://a/sync", true, "http://a/sync"],
    ["http://a/sync/", true, "http://a/sync/"],
    ["http://a/sync//", false, "http://a/sync//"],
    ["http://b/sync", false, "http://b/sync"],
    ["\u001b[2J", false, "\\u001b[2J"],
  ])("%j passes: %s", (text, pass, seen) => {
    const overrides =
      text === undefined ? [] : [{ item: "SERVICE_URL", stored: { kind: "text" as const, text } }];
    const [service, root] = judgeOverrides({ looked: true, overrides }, wanted, access);
    expect(service).toMatchObject({ pass, seen, request: "database reader@127.0.0.1:3306/sync" });
    expect(service!.cause === undefined).toBe(pass);
    expect(root).toMatchObject({ name: "stored FILE_SERVER_ROOT", pass: true, seen: "nothing" });
  });

  test("are wrong where they cannot be read", () => {
    const unreadable = [{ item: "SERVICE_URL", stored: { kind: "unreadable" as const } }];
    const at = { ...access, host: "::1" };
    expect(judgeOverrides({ looked: true, overrides: unreadable }, wanted, at)[0]).toMatchObject({
      pass: false,
      seen: "a value that cannot be read",
      expected: "nothing, or http://a/sync",
      request: "database reader@[::1]:3306/sync",
    });
    expect(judgeOverrides({ looked: false, why: "" }, wanted, access)).toEqual([]);
  });
});
