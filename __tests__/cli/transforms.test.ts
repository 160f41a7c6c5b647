import { causeOfAnswer, causeOfFailure } from "../../src/diagnosis/causes.js";
import type { ProbeAnswer } from "../../src/diagnosis/expectation.js";
import {
  expectedResponses,
  type ExpectedResponse,
  UNKNOWN_HOST,
} from "../../src/diagnosis/expectedResponses.js";
import { formatChecked, judge } from "../../src/diagnosis/liveCheck.js";
import { readyText } from "../../src/cli/previewCommand.js";
import { previewConfig } from "../../src/cli/previewConfig.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";
import { siteConfig, type SiteOptions } from "../../proof/kit/siteConfig.js";

function site(options: SiteOptions): ProxyConfig {
  const result = parseConfig(siteConfig(options));
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

function previewed(
  config: ProxyConfig,
  portOffset = 10_000,
  upstreams?: Record<string, string>,
): ProxyConfig {
  const result = previewConfig(config, { portOffset, upstreams });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

function problemsOf(config: ProxyConfig, portOffset: number, upstreams?: Record<string, string>) {
  const result = previewConfig(config, { portOffset, upstreams });
  return result.ok ? [] : result.problems;
}

const urls = (config: ProxyConfig): string[] =>
  config.listeners.map((l) => `${l.protocol} ${l.address} ${l.port}`);

describe("previewConfig", () => {
  const tls = site({ mode: "tls", address: "192.0.2.10", ipv6: "2001:db8::10" });

  test("moves listeners to loopback, the redirect along with them, and leaves the rest", () => {
    const moved = previewed(tls);
    expect(urls(moved)).toEqual([
      "http 127.0.0.1 10080",
      "https 127.0.0.1 10443",
      "http ::1 10080",
      "https ::1 10443",
    ]);
    const redirect = moved.virtualServers[1]!.routes[0]!.action;
    expect(redirect).toEqual({ type: "redirect", status: 301, scheme: "https", port: 10443 });
    expect(moved.listeners[1]!.tls).toEqual(tls.listeners[1]!.tls);
    expect(moved.virtualServers[2]!.serverNames).toEqual(["_"]);
    expect(moved.upstreams).toEqual(tls.upstreams);
  });

  test("leaves every log file out: a preview writes nothing to the host", () => {
    expect(JSON.stringify(tls)).toContain(".log");
    expect(JSON.stringify(previewed(tls))).not.toContain(".log");
  });

  test("a browser connects to it directly: without the ports that clients use, and without PROXY protocol headers", () => {
    const input = siteConfig({ mode: "tls" });
    const more = { publishedPort: 443, proxyProtocol: { from: ["127.0.0.1"] } };
    const config = parseConfig({
      ...input,
      listeners: input.listeners.map((one) => (one.name === "https" ? { ...one, port: 8443, ...more } : one)),
    });
    if (!config.ok) throw new Error(JSON.stringify(config.problems));
    const moved = previewed(config.value);
    expect(moved.listeners[1]).toMatchObject({ port: 18443 });
    expect(JSON.stringify(moved)).not.toMatch(/publishedPort|proxyProtocol/);
    expect(moved.virtualServers[1]!.routes[0]!.action).toMatchObject({ scheme: "https", port: 18443 });
  });

  test.each<[string, object]>([
    ["another host", { host: "other.example.org" }],
    ["a port that is not a listener's", { port: 8443 }],
    ["another scheme than the listener's", { scheme: "http", port: 443 }],
  ])("a redirect to %s stays", (_what, target) => {
    const input = JSON.parse(JSON.stringify(siteConfig({ mode: "tls" })));
    input.virtualServers[1].routes[0].action = { type: "redirect", ...target };
    const config = parseConfig(input);
    const action = config.ok && config.value.virtualServers[1]!.routes[0]!.action;
    expect(action).toMatchObject(target);
    expect(config.ok && previewed(config.value).virtualServers[1]!.routes[0]!.action).toEqual(action);
  });

  test("listeners that would collide on loopback take the next port", () => {
    const input = siteConfig({ mode: "plain", address: "192.0.2.10" });
    const second = { name: "inside", address: "10.0.0.10", port: 80, protocol: "http" as const };
    const [first, ...servers] = input.virtualServers;
    const config = parseConfig({
      ...input,
      listeners: [...input.listeners, second],
      virtualServers: [{ ...first!, listeners: ["http", "inside"] }, ...servers],
    });
    expect(config.ok && urls(previewed(config.value))).toEqual([
      "http 127.0.0.1 10080",
      "http 127.0.0.1 10081",
    ]);
  });

  test("upstreams can be given other addresses; a problem with one names the option", () => {
    const moved = previewed(tls, 10_000, { web: "http://127.0.0.1:18000" });
    expect(moved.upstreams.map((u) => u.url)).toEqual([
      "http://127.0.0.1:18000",
      "http://127.0.0.1:8082",
      "http://127.0.0.1:8080",
    ]);
    expect(problemsOf(tls, 10_000, { wb: "http://127.0.0.1:1" })).toMatchObject([
      { code: "config.unknown-reference", path: "--upstream", allowed: "web, fileServer, webdav" },
    ]);
    expect(problemsOf(tls, 10_000, { web: "ftp://x" })).toMatchObject([
      { code: "config.bad-url", path: "upstreams[0].url", fix: expect.stringContaining("--upstream") },
    ]);
    expect(problemsOf(tls, 10_000, { web: "http://127.0.0.1:10443" })).toMatchObject([
      { code: "config.proxy-loop" },
    ]);
  });

  test("HSTS is left out: a browser would remember it for localhost", () => {
    const input = siteConfig({ mode: "tls" });
    const [first, second, application] = input.virtualServers;
    const config = parseConfig({
      ...input,
      virtualServers: [first, second, { ...application, hsts: {}, responseHeaders: { remove: ["X-A"] } }],
    });
    if (!config.ok) throw new Error(JSON.stringify(config.problems));
    expect(config.value.virtualServers[2]!.hsts).toBeDefined();
    const moved = previewed(config.value).virtualServers[2]!;
    expect([moved.hsts, moved.responseHeaders.remove]).toEqual([undefined, ["X-A"]]);
  });

  test.each<[what: string, options: SiteOptions, change: (text: string) => string, text: string]>([
    [
      "a name, and the first IPv4 listener",
      { mode: "plain", host: "files.example.org", ipv6: "2001:db8::10" },
      (text) => text.replace(/("listeners":)\[(\{[^}]*\}),(\{[^}]*\})\]/, "$1[$3,$2]"),
      `  http://[::1]:10080/              instead of port 80 of 2001:db8::10
  http://127.0.0.1:10080/          instead of port 80 of 0.0.0.0
Ask for it by name: curl -k --resolve files.example.org:10080:127.0.0.1 http://files.example.org:10080/
`,
    ],
    [
      "the address itself",
      { mode: "plain", host: "127.0.0.1" },
      (text) => text,
      "  http://127.0.0.1:10080/          instead of port 80 of 0.0.0.0\n",
    ],
    [
      "no application",
      { mode: "plain", host: "files.example.org" },
      (text) => text.replaceAll('"application"', '"other"'),
      "  http://127.0.0.1:10080/          instead of port 80 of 0.0.0.0\n",
    ],
  ])("says where it serves: %s", (_what, options, change, text) => {
    const parsed = parseConfig(JSON.parse(change(JSON.stringify(siteConfig(options)))));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(readyText("a.json", parsed.value, previewed(parsed.value))).toBe(
      `portico preview of a.json\n${text}Stop it with Ctrl-C.\n`,
    );
  });

  test("ports beyond the range are refused with the option to change", () => {
    const problems = problemsOf(tls, 65_200);
    expect(problems.map((p) => [p.code, p.path, p.fix])).toEqual([
      ["config.out-of-range", "listeners[1].port", "Give another --port-offset."],
      ["config.out-of-range", "listeners[3].port", "Give another --port-offset."],
    ]);
  });
});

/** Rows as `name: METHOD url at address:port → expectations`, which is what the list of service 5.1 says. */
function table(rows: readonly ExpectedResponse[]): string[] {
  return rows.map(({ name, request, expected }) => {
    const { scheme, host, path, address, port } = request;
    return `${name}: ${scheme}://${host}${path} at ${address} ${port} → ${expected.map((e) => e.says).join(", ")}`;
  });
}

const MEDIA = "200, Content-Type: image/*, Content-Length, Last-Modified, ETag, Accept-Ranges: bytes";
const LOGIN = "Content-Type: text/html; charset=utf-8, Vary: Accept-Language, Cookie, Content-Language";
const DAEMON =
  "an answer from the daemon (not a 502 or 504, nor a 404 from the proxy), Server: without version";
const DEFAULT = "200, Content-Type: text/html, Server: with version";

describe("expectedResponses", () => {
  test("plain mode", () => {
    const rows = expectedResponses(site({ mode: "plain" }), { mediaPath: "img/a.png" });
    const at = "at 127.0.0.1 80";
    const to = "http://192.0.2.10/sync/accounts/login/?next=/sync/";
    expect(table(rows)).toEqual([
      `default server: http://${UNKNOWN_HOST}/ ${at} → ${DEFAULT}`,
      `media file: http://192.0.2.10/syncmedia/img/a.png ${at} → ${MEDIA}`,
      `application over http: http://192.0.2.10/sync/ ${at} → 302, Location: ${to}, ${LOGIN}`,
      `application's Server field: http://192.0.2.10/sync/ ${at} → Server: without version`,
      `file server daemon: http://192.0.2.10/synchttp/ ${at} → ${DAEMON}`,
      `WebDAV daemon: http://192.0.2.10/syncdav/ ${at} → ${DAEMON}`,
    ]);
  });

  test("TLS mode as a preview, with IPv6 and a domain name", () => {
    const config = previewed(site({ mode: "tls", host: "files.example.org", ipv6: "::" }));
    const rows = expectedResponses(config, { mediaPath: "/img/a.png" });
    const [http, https] = ["http://files.example.org:10080", "https://files.example.org:10443"];
    const login = `HTTP/2, 302, Location: ${https}/sync/accounts/login/?next=/sync/`;
    const moved = `301, Location: ${https}/sync/, Content-Type: text/html`;
    expect(table(rows)).toEqual([
      `default server: http://${UNKNOWN_HOST}:10080/ at 127.0.0.1 10080 → ${DEFAULT}`,
      `media file: ${https}/syncmedia/img/a.png at 127.0.0.1 10443 → ${MEDIA}`,
      `redirect to https: ${http}/sync/ at 127.0.0.1 10080 → ${moved}`,
      `redirect to https on IPv6: ${http}/sync/ at ::1 10080 → ${moved}`,
      `application over https: ${https}/sync/ at 127.0.0.1 10443 → ${login}`,
      `application over https on IPv6: ${https}/sync/ at ::1 10443 → ${login}`,
      `application's Server field: ${https}/sync/ at 127.0.0.1 10443 → Server: without version`,
      `file server daemon: ${https}/synchttp/ at 127.0.0.1 10443 → ${DAEMON}`,
      `WebDAV daemon: ${https}/syncdav/ at 127.0.0.1 10443 → ${DAEMON}`,
    ]);
  });

  test("fields that the config sets or removes are expected as it says, whatever answers", () => {
    const input = siteConfig({ mode: "plain" });
    const [byDefault, application] = input.virtualServers;
    const config = parseConfig({
      ...input,
      virtualServers: [
        { ...byDefault, responseHeaders: { remove: ["server"] } },
        {
          ...application,
          responseHeaders: { set: { "Accept-Ranges": "none" }, remove: ["ETag", "Content-Language"] },
          routes: application!.routes.map((route) =>
            route.name === "web" ? { ...route, responseHeaders: { remove: ["Server"] } } : route,
          ),
        },
      ],
    });
    if (!config.ok) throw new Error(JSON.stringify(config.problems));
    const rows = expectedResponses(config.value, { mediaPath: "a.png" });
    expect(rows.map(({ expected }) => expected.map((e) => e.says).join(", "))).toEqual([
      "200, Content-Type: text/html, no Server",
      "200, Content-Type: image/*, Content-Length, Last-Modified, no ETag, Accept-Ranges: none",
      expect.stringMatching(/^302, .*, Vary: Accept-Language, Cookie, no Content-Language$/),
      "no Server",
      DAEMON,
      DAEMON,
    ]);
    const answer = { protocol: "HTTP/1.1", status: 302, headers: {} } as const;
    expect(rows[3]!.expected[0]!.holds(answer)).toBe(true);
    expect(rows[3]!.expected[0]!.holds({ ...answer, headers: { server: "portico" } })).toBe(false);
  });

  test("name and address can be given; without a media path its row is not probed", () => {
    const options = { host: "2001:db8::1", connect: "198.51.100.7" };
    const rows = expectedResponses(site({ mode: "tls", address: "192.0.2.10", ipv6: "::" }), options);
    // One address stands for one family: no row pretends to have asked over the other.
    expect(rows.map((row) => row.request.address)).toEqual(Array(7).fill("198.51.100.7"));
    expect(rows[2]!.expected[1]!.says).toBe("Location: https://[2001:db8::1]/sync/");
    expect(judge(rows[1]!, undefined)).toEqual({
      name: "media file",
      pass: false,
      request: "HEAD https://[2001:db8::1]/syncmedia/<media_path> (at 198.51.100.7:443)",
      expected: MEDIA,
      seen: "not probed",
      cause: expect.stringContaining("--media-path"),
    });
  });

  test.each([
    ["::", "::1"],
    ["0:0:0:0:0:0:0:0", "::1"],
    ["::5", "::5"],
    ["0:0:0:0:0:0:0:5", "0:0:0:0:0:0:0:5"],
    ["2001:db8::", "2001:db8::"],
  ])("a listener on %s is probed at %s", (ipv6, asked) => {
    const rows = expectedResponses(site({ mode: "tls", address: "192.0.2.10", ipv6 }), {});
    const row = rows.find(({ name }) => name === "application over https on IPv6");
    expect(row!.request.address).toBe(asked);
  });

  test("paths are those of the config, and missing parts have no row", () => {
    const input = JSON.parse(JSON.stringify(siteConfig({ mode: "plain" })).replaceAll("/sync", "/cloud/box"));
    input.virtualServers[1].routes.pop();
    const config = parseConfig(input);
    const rows = config.ok ? expectedResponses(config.value) : [];
    expect(rows.map((row) => row.request.path)).toEqual([
      "/",
      "/cloud/boxmedia/<media_path>",
      "/cloud/box/",
      "/cloud/box/",
      "/cloud/boxhttp/",
    ]);
    input.virtualServers[1].name = "other";
    const unknown = parseConfig(input);
    expect(unknown.ok && expectedResponses(unknown.value)).toEqual([]);
  });
});

const PAGE = "<hr><center>portico</center>";
const answer = (status: number, headers: Record<string, string> = {}, body = ""): ProbeAnswer => ({
  protocol: "HTTP/1.1",
  status,
  headers: { server: "portico", ...headers },
  body,
});

describe("judging an answer", () => {
  const rows = expectedResponses(site({ mode: "plain" }), { mediaPath: "img/a.png" });
  const [byDefault, media, login, header, files, dav] = rows as [
    ExpectedResponse,
    ExpectedResponse,
    ExpectedResponse,
    ExpectedResponse,
    ExpectedResponse,
    ExpectedResponse,
  ];
  const seen = (row: ExpectedResponse, got: ProbeAnswer) => judge(row, { answer: got });
  const location = "http://192.0.2.10/sync/accounts/login/?next=/sync/";
  const loginPage = { location, "content-type": "text/html;charset=UTF-8", vary: "Cookie, Accept-Language" };

  test("passes what service 5.1 shows, in any equivalent order and spelling", () => {
    expect(seen(login, answer(302, { ...loginPage, "content-language": "en" }))).toMatchObject({
      pass: true,
    });
    const image = { "content-type": "image/png", "content-length": "1", "last-modified": "x", etag: '"1"' };
    expect(seen(media, answer(200, { ...image, "accept-ranges": "bytes" })).pass).toBe(true);
    const versioned = { server: "portico/0.1.0", "content-type": "text/html; charset=utf-8" };
    expect(seen(byDefault, answer(200, versioned)).pass).toBe(true);
    expect(seen(header, answer(302)).pass).toBe(true);
    // A daemon's own 404 is an answer; its status is none of the proxy's business.
    expect(seen(files, answer(404, {}, "no such file")).pass).toBe(true);
    expect(seen(dav, answer(401)).pass).toBe(true);
  });

  test.each<[string, ExpectedResponse, ProbeAnswer, RegExp]>([
    ["media missing", media, answer(404, {}, PAGE), /server name.*media path in the config does not match/],
    ["media closed", media, answer(403, {}, PAGE), /world readable.*read and execute/],
    [
      "default server instead of media",
      media,
      answer(404, { server: "portico/1.0" }),
      /default virtual server answered/,
    ],
    ["default server instead of application", login, answer(404, { server: "portico/1.0" }), /server name/],
    ["no such path on the application", login, answer(404, {}, PAGE), /server name in the proxy config/],
    ["no daemon", login, answer(502, {}, PAGE), /do not work together.*fastcgi.*127\.0\.0\.1:8000/],
    ["no redirect", login, answer(200), /do not work together.*fastcgi/],
    [
      "wrong host",
      login,
      answer(302, { location: "http://localhost/sync/accounts/login/?next=/sync/" }),
      /redirects to http:\/\/localhost\/\S*: SERVICE_URL is wrong/,
    ],
    [
      "no LOGIN_URL",
      login,
      answer(302, { location: "/accounts/login/?next=/sync/" }),
      /LOGIN_URL is not set to `\/sync\/accounts\/login\/`/,
    ],
    ["no SITE_ROOT", login, answer(404, {}, "<h1>Not Found</h1>"), /SITE_ROOT is not set to `\/sync\/`/],
    [
      "no ALLOWED_HOSTS",
      login,
      answer(400, {}, "<h1>Bad Request (400)</h1>"),
      /ALLOWED_HOSTS does not contain it/,
    ],
    ["no headers", login, answer(302, { location }), /not the web application's/],
    ["version shown", header, answer(302, { server: "portico/1.0" }), /default virtual server answered/],
    [
      "file server down",
      files,
      answer(502, {}, PAGE),
      /file server daemon does not answer on .*:8082; login works but/,
    ],
    ["WebDAV slow", dav, answer(504, {}, PAGE), /WebDAV daemon does not answer on .*:8080/],
    ["no route", dav, answer(404, {}, PAGE), /not enabled/],
    ["application instead of default", byDefault, answer(404), /default virtual server is not enabled/],
  ])("%s", (_what, row, got, cause) => {
    const checked = seen(row, got);
    expect(checked.pass).toBe(false);
    expect(checked.cause).toMatch(cause);
    expect(causeOfAnswer(row, got)).toBe(checked.cause);
    expect(formatChecked(checked)).toMatch(
      /^FAIL {2}[^\n]* \| expected [^\n]* \| seen [^\n]* \| cause: [^\n]*$/,
    );
  });

  test.each([
    ["ECONNREFUSED", /nothing listens on 127\.0\.0\.1 port 80/],
    // Of its own address no router knows.
    ["ETIMEDOUT", /packet filter of this host drops what is sent to itself/],
    ["ENOTFOUND", /no DNS record/],
    ["ECONNRESET", /error log/],
  ])("no answer: %s", (code, cause) => {
    expect(causeOfFailure(login, { code, message: "x" })).toMatch(cause);
    const away = { ...login, request: { ...login.request, address: "198.51.100.7" } };
    if (code === "ETIMEDOUT")
      expect(causeOfFailure(away, { code, message: "x" })).toMatch(/NAT loopback \(hairpinning\)/);
    const secure = { ...login, request: { ...login.request, scheme: "https" as const } };
    expect(causeOfFailure(secure, { code: "DEPTH_ZERO_SELF_SIGNED_CERT", message: "x" })).toMatch(
      /self-signed/,
    );
    expect(causeOfFailure(secure, { code: "ERR_SSL_WRONG_VERSION_NUMBER", message: "x" })).toMatch(
      /handshake/,
    );
  });
});
