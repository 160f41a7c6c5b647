import type { RouteInput } from "../../src/model/index.js";
import { resolution } from "../../src/model/resolution.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { exchange, RawUpstream, responding } from "../../testkit/peers.js";

/** The path of a route without the slash at its end: relative URLs of the page there lead out of the route. */

const proxied = (name: string, action: object, route: Partial<RouteInput> = {}): RouteInput =>
  ({ name, path: `/${name}`, ...route, action: { type: "proxy", upstream: "web", ...action } }) as RouteInput;

const ROUTES: readonly RouteInput[] = [
  proxied("raw", { strip: "raw" }),
  proxied("nginx", { strip: "nginx" }),
  proxied("prefix", { strip: "raw" }, { match: "prefix" }),
  proxied("root", { rewrite: "/" }),
  proxied("below", { rewrite: "/ui/" }),
  proxied("deep", { strip: "raw" }, { path: "/deep/er" }),
  // The upstream sees the difference, and redirects if the difference matters.
  proxied("page", { rewrite: "/ui" }),
  proxied("kept", {}),
  proxied("off", { strip: "raw", slashRedirect: false }),
  proxied("exact", { strip: "raw" }, { match: "exact" }),
  proxied("balanced", { strip: "raw", upstream: "two" }),
];

let upstream: RawUpstream;
let front: EveryProtocol;
beforeAll(async () => {
  upstream = await new RawUpstream(
    responding("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
  ).listen();
  const url = `http://127.0.0.1:${upstream.port}`;
  front = await startEveryProtocol({
    routes: ROUTES,
    upstreams: [
      { name: "web", url },
      { name: "two", servers: [{ url }, { url: `http://localhost:${upstream.port}` }] },
    ],
  });
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});

const CASES: readonly (readonly [method: string, target: string, location: string | undefined])[] = [
  ["GET", "/raw", "/raw/"],
  ["HEAD", "/raw", "/raw/"],
  ["GET", "/raw?a=b?&c=%2F", "/raw/?a=b?&c=%2F"],
  ["GET", "/raw?", "/raw/?"],
  ["GET", "/%72aw", "/%72aw/"],
  ["GET", "/x/../raw", "/x/../raw/"],
  ["GET", "//raw", "/raw/"],
  ["GET", "/\\raw/../raw", "/raw/"],
  ["GET", "/nginx", "/nginx/"],
  ["GET", "/prefix", "/prefix/"],
  ["GET", "/root", "/root/"],
  ["GET", "/below", "/below/"],
  ["GET", "/deep/er", "/deep/er/"],
  ["GET", "/balanced", "/balanced/"],
  ["GET", "/raw/", undefined],
  ["GET", "/raw/a", undefined],
  ["GET", "/prefixed", undefined],
  ["POST", "/raw", undefined],
  ["PROPFIND", "/raw", undefined],
  ["OPTIONS", "/raw", undefined],
  ["GET", "/page", undefined],
  ["GET", "/kept", undefined],
  ["GET", "/off", undefined],
  ["GET", "/exact", undefined],
];

const said = (status: number, location: unknown): string => `${status} ${String(location)}`;
const expected = (location: string | undefined): string => said(location === undefined ? 200 : 301, location);

test.each(CASES)("over HTTP/1.1, %s %s is redirected to %s", async (method, target, location) => {
  const more = `Content-Length: 0\r\nConnection: close\r\n`;
  const request = `${method} ${target} HTTP/1.1\r\nHost: app.example\r\n${more}\r\n`;
  const { head } = await exchange(front.plainPort, request);
  const [, to] = /^Location: (.*)$/m.exec(head) ?? [];
  expect(said(Number(head.slice(9, 12)), to)).toBe(expected(location));
});

test("over HTTP/2 as well", async () => {
  const session = connectHttp2(front.securePort);
  for (const [method, target, location] of CASES) {
    const { status, headers } = await ask(session, { ":method": method, ":path": target });
    expect([method, target, said(status, headers.location)]).toEqual([method, target, expected(location)]);
  }
  session.close();
});

test.each(CASES)("unit tests see it: %s %s is redirected to %s", (method, target, location) => {
  const found = resolution(front.serving.config, { url: `http://app.example${target}`, method });
  const seen = found.kind === "redirect" ? found.location : undefined;
  expect(seen).toBe(location);
});

test("a WebSocket is not redirected", async () => {
  const from = upstream.connections.length;
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  await exchange(front.plainPort, `GET /raw HTTP/1.1\r\nHost: app.example\r\n${upgrade}\r\n`);
  expect(upstream.connections[from]!.received).toMatch(/^GET \/ HTTP\/1\.1\r\n/);
  const headers = { Connection: "Upgrade", Upgrade: "websocket" };
  const found = resolution(front.serving.config, { url: "http://app.example/raw", headers });
  expect(found.kind).toBe("proxy");
});
