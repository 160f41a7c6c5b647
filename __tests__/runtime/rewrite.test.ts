import type { RouteInput } from "../../src/model/index.js";
import { parseConfig } from "../../src/model/index.js";
import { startProxy, type TestProxy } from "../../testkit/harness.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange, RawUpstream } from "../../testkit/peers.js";

/** What goes upstream of a route that puts another path in place of its own, and what comes back. */

const rewritten = (name: string, path: string, match: RouteInput["match"], rewrite: string, more = {}) =>
  ({ name, path, match, action: { type: "proxy", upstream: "web", rewrite, ...more } }) as const;

const ROUTES: readonly RouteInput[] = [
  rewritten("ping", "/thumbnail/ping", "exact", "/ping"),
  rewritten("api", "/api", "segment", "/v1/api"),
  rewritten("slash", "/slash/", "segment", "/other/"),
  rewritten("root", "/cut", "segment", "/", { slashRedirect: false }),
  rewritten("word", "/word", "prefix", "/w"),
  rewritten("encoded", "/encoded", "segment", "/a%20b"),
  rewritten("version", "/app", "segment", "/app/v2"),
  rewritten("shorter", "/deep/app", "segment", "/deep"),
  rewritten("base", "/", "prefix", "/base"),
  rewritten("again", "/again", "segment", "/n", { strip: "nginx" }),
];

let upstream: RawUpstream;
let proxy: TestProxy;
let more = "";
beforeAll(async () => {
  upstream = await new RawUpstream((peer) =>
    peer.socket.on("data", () => peer.send(`HTTP/1.1 200 OK\r\n${more}Content-Length: 0\r\n\r\n`)),
  ).listen();
  const url = `http://127.0.0.1:${upstream.port}`;
  proxy = await startProxy({ routes: ROUTES, upstreams: [{ name: "web", url }] });
});
afterAll(async () => {
  await proxy.close();
  await upstream.close();
});

async function sent(target: string, method = "GET", fields = ""): Promise<string> {
  const before = upstream.received.length;
  await exchange(proxy.port, `${method} ${target} HTTP/1.1\r\nHost: files.example\r\n${fields}\r\n`);
  return upstream.received.slice(before);
}

test.each([
  ["/thumbnail/ping", "/ping"],
  ["/thumbnail/ping?a=%20", "/ping?a=%20"],
  ["/%74humbnail/ping", "/ping"],
  ["/api", "/v1/api"],
  ["/api?", "/v1/api?"],
  ["/api/", "/v1/api/"],
  ["/api/a%2Fb//c?d", "/v1/api/a%2Fb//c?d"],
  ["/x/../api/a", "/v1/api/a"],
  ["/slash/", "/other/"],
  ["/slash/a", "/other/a"],
  ["/cut", "/"],
  ["/cut/a", "/a"],
  ["/word", "/w"],
  ["/words", "/ws"],
  ["/word/a", "/w/a"],
  ["/encoded/c", "/a%20b/c"],
  ["/again/a%2Fb?", "/n/a/b"],
])("%s goes upstream as %s", async (target, line) => {
  expect(await sent(target)).toMatch(new RegExp(`^GET ${line.replace(/[?/.]/g, "\\$&")} HTTP/1\\.1\r\n`));
});

test("a path that leaves the route belongs to another one, or goes nowhere", async () => {
  expect(await sent("/api/../other")).toMatch(/^GET \/base\/api\/\.\.\/other HTTP/);
  expect(await sent("/api/%2e%2e/%2e%2e/other")).toBe("");
});

test.each([
  ["/api/a", "/v1/api/b", "/api/b"],
  ["/api/a", "/v1/api", "/api"],
  ["/api/a", "/v1/api?x", "/api?x"],
  ["/api/a", "", "/"],
  // Not below the path of the rewrite: another route may serve it.
  ["/api/a", "/v1/apis", "/v1/apis"],
  ["/api/a", "/login", "/login"],
  ["/cut/a", "/b", "/cut/b"],
  ["/thumbnail/ping", "/ping", "/thumbnail/ping"],
])("of %s, a Location to %s leads to %s", async (target, path, seen) => {
  more = `Location: http://127.0.0.1:${upstream.port}${path}\r\n`;
  const request = `GET ${target} HTTP/1.1\r\nHost: files.example\r\n\r\n`;
  const { head } = await exchange(proxy.port, request);
  more = "";
  expect(/^Location: (.*)$/m.exec(head)?.[1]).toBe(`http://files.example${seen}`);
});

test.each([
  ["/api/b", "Destination: /v1/api/b\r\n"],
  ["http://files.example/api/b%20c", "Destination: /v1/api/b%20c\r\n"],
])("a Destination of %s goes upstream as %j", async (destination, line) => {
  expect(await sent("/api/a", "MOVE", `Destination: ${destination}\r\n`)).toContain(line);
});

test("a Destination that no path of the upstream stands for is 502, and goes nowhere", async () => {
  expect(await sent("/api/a", "MOVE", "Destination: /cut/b\r\n")).toBe("");
});

test.each([
  [""],
  ["a"],
  ["/a b"],
  ["/a?b"],
  ["/a#b"],
  ["/a//b"],
  ["/./a"],
  ["/a/.."],
  ["/%2e/a"],
  ["/a%2"],
  ["/é"],
])("%j is no path to rewrite to", (rewrite) => {
  const parsed = parseConfig(
    oneServer({
      listeners: [loopback("l", 80)],
      upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
      routes: [rewritten("r", "/", "prefix", rewrite)],
    }),
  );
  expect(parsed.ok ? [] : parsed.problems.map(({ code }) => code)).toEqual(["config.bad-rewrite"]);
});

describe("a log-in behind a route that changes the path", () => {
  let every: EveryProtocol;
  beforeAll(async () => {
    const url = `http://127.0.0.1:${upstream.port}`;
    every = await startEveryProtocol({ routes: ROUTES, upstreams: [{ name: "web", url }] });
    more =
      `Location: http://127.0.0.1:${upstream.port}/b\r\n` +
      "Set-Cookie: a=1; Path=/; Domain=127.0.0.1; HttpOnly\r\nSet-Cookie: b=2; Path=/b\r\n";
  });
  afterAll(async () => {
    more = "";
    await every.close();
  });

  test("brings its cookies over HTTP/1.1", async () => {
    const request = "GET /cut/a HTTP/1.1\r\nHost: files.example\r\n\r\n";
    const { head } = await exchange(every.plainPort, request);
    expect(head.match(/^(?:Location|Set-Cookie): .*$/gm)).toEqual([
      "Location: http://files.example/cut/b",
      "Set-Cookie: a=1; Path=/cut; HttpOnly",
      "Set-Cookie: b=2; Path=/cut/b",
    ]);
  });

  test("brings its cookies over HTTP/2", async () => {
    const session = connectHttp2(every.securePort);
    const { headers } = await ask(session, { ":path": "/cut/a", ":authority": "files.example" });
    session.close();
    expect([headers.location, headers["set-cookie"]]).toEqual([
      "https://files.example/cut/b",
      ["a=1; Path=/cut; HttpOnly", "b=2; Path=/cut/b"],
    ]);
  });

  test.each([
    // The application knows its prefix.
    ["/cut/a", "/cut", "/cut"],
    ["/cut/a", "/cut/", "/cut/"],
    ["/cut/a", "/cut/admin", "/cut/admin"],
    ["/deep/app/", "/deep/app/b", "/deep/app/b"],
    // It does not.
    ["/cut/a", "/cutter", "/cut/cutter"],
    ["/cut/a", "/b/cut", "/cut/b/cut"],
    ["/deep/app/", "/deep/b", "/deep/app/b"],
    ["/app/a", "/app/v2", "/app"],
    ["/app/a", "/app/v2/b", "/app/b"],
    ["/api/a", "/v1/api/b", "/api/b"],
    ["/x", "/base/b", "/b"],
    // Neither path.
    ["/app/a", "/app", "/app"],
    ["/api/a", "/api/b", "/api/b"],
  ])("of %s whose cookie has Path=%s gives Path=%s", async (target, path, mapped) => {
    const before = more;
    more = `Set-Cookie: a=1; Path=${path}\r\n`;
    const { head } = await exchange(every.plainPort, `GET ${target} HTTP/1.1\r\nHost: files.example\r\n\r\n`);
    more = before;
    expect(/^Set-Cookie: (.*)$/m.exec(head)?.[1]).toBe(`a=1; Path=${mapped}`);
  });
});
