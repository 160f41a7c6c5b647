import type { RouteInput } from "../../src/model/index.js";
import { resolution } from "../../src/model/resolution.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { connectTo, exchange, isComplete, RawUpstream, responding } from "../../testkit/peers.js";

/** "Map network drive" of Windows sends `OPTIONS /` first, whatever the path of the drive. */

const DAV = { name: "dav", path: "/dav", action: { type: "proxy", upstream: "dav" } } as const;

/** Programs at `/`, each beside the WebDAV route. */
const ROOTS: readonly (readonly [what: string, route: RouteInput | undefined])[] = [
  ["no route", undefined],
  ["another application", { name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
  ["files", { name: "page", path: "/", match: "exact", action: { type: "staticFiles", directory: "/none" } }],
  ["a redirect", { name: "root", path: "/", match: "exact", action: { type: "redirect", path: "/web/" } }],
  ["a fixed response", { name: "nothing", path: "/", action: { type: "respond", status: 404 } }],
];

const WINDOWS = ["DavClnt", "Microsoft-WebDAV-MiniRedir/10.0.19045", "Microsoft-WebDAV-MiniRedir/6.1.7601"];

/** As Windows sends it. */
const requestOf = (agent: string, target = "/", method = "OPTIONS"): string =>
  `${method} ${target} HTTP/1.1\r\nConnection: Keep-Alive\r\nUser-Agent: ${agent}\r\n` +
  `translate: f\r\nHost: files.example\r\n\r\n`;

let upstream: RawUpstream;
const fronts: EveryProtocol[] = [];

async function frontOf(root: RouteInput | undefined, windowsDrives: boolean): Promise<EveryProtocol> {
  const url = `http://127.0.0.1:${upstream.port}`;
  const routes = [DAV, ...(root === undefined ? [] : [root])];
  const server = { name: "application", serverNames: ["_"], default: true, listeners: ["http", "https"] };
  const front = await startEveryProtocol({
    routes,
    upstreams: [
      { name: "web", url },
      { name: "dav", url },
    ],
    config: { virtualServers: [{ ...server, routes, windowsDrives }] },
  });
  fronts.push(front);
  return front;
}

beforeAll(async () => {
  upstream = await new RawUpstream(
    responding("HTTP/1.1 405 Not Allowed\r\nX-By: upstream\r\nContent-Length: 0\r\n\r\n"),
  ).listen();
});
afterAll(async () => {
  for (const front of fronts) await front.close();
  await upstream.close();
});

const FIELDS = { dav: "1, 2", "ms-author-via": "DAV", "content-length": "0" };

describe.each(ROOTS)("with %s at /", (_, root) => {
  test.each(WINDOWS)("%s gets a WebDAV server's response, and keeps its connection", async (agent) => {
    const front = await frontOf(root, true);
    const peer = await connectTo(front.plainPort);
    for (let i = 1; i <= 2; i++) {
      peer.send(requestOf(agent));
      await peer.until(({ received }) => received.split("HTTP/1.1 ").length > i && isComplete(received));
    }
    peer.socket.destroy();
    const responses = peer.received.split("HTTP/1.1 ").slice(1);
    expect(responses.map((one) => one.slice(0, 6))).toEqual(["200 OK", "200 OK"]);
    expect(peer.received).not.toMatch(/connection: close/i);
    const { headers } = await exchange(front.plainPort, requestOf(agent));
    expect(headers).toMatchObject(FIELDS);
    for (const method of ["OPTIONS", "PROPFIND", "PUT", "LOCK", "MOVE"])
      expect(headers.allow!.split(", ")).toContain(method);

    const session = connectHttp2(front.securePort);
    const fields = { ":method": "OPTIONS", ":path": "/", "user-agent": agent, translate: "f" };
    expect(await ask(session, fields)).toMatchObject({ status: 200, headers: FIELDS, body: "" });
    session.close();

    const asked = { url: "http://files.example/", method: "OPTIONS", headers: { "User-Agent": agent } };
    expect(resolution(front.serving.config, asked)).toMatchObject({ status: 200, windowsDrives: true });
  });

  test.each([
    ["without `windowsDrives`", false, requestOf(WINDOWS[1]!)],
    ["of another client, such as a preflight", true, requestOf("Mozilla/5.0")],
    ["of a client whose name only contains that of Windows'", true, requestOf("NotDavClnt")],
    ["of a client without a name", true, requestOf("").replace(/User-Agent: \r\n/, "")],
    ["for another path", true, requestOf(WINDOWS[1]!, "/other")],
    ["by another method", true, requestOf(WINDOWS[1]!, "/", "PROPFIND")],
  ])("a request %s takes its route", async (_, windowsDrives, request) => {
    const on = await frontOf(root, windowsDrives);
    const { status, headers } = await exchange(on.plainPort, request);
    expect({ status, headers }).not.toMatchObject({ status: 200 });
    expect(headers.dav).toBeUndefined();
  });
});

test("OPTIONS of a WebDAV route goes to its upstream", async () => {
  const front = await frontOf(undefined, true);
  const { headers } = await exchange(front.plainPort, requestOf(WINDOWS[1]!, "/dav/"));
  expect(headers["x-by"]).toBe("upstream");
});

test("the route of / logs it, and a maintenance does not refuse it: Windows would remember that", async () => {
  const front = await frontOf(ROOTS[1]![1], true);
  front.serving.dispatcher.pauses.set({ maintenance: [{ closesTunnels: false }] });
  expect((await exchange(front.plainPort, requestOf(WINDOWS[1]!))).status).toBe(200);
  expect((await exchange(front.plainPort, requestOf("Mozilla/5.0"))).status).toBe(503);
  expect(await front.accessLog()).toContain('"OPTIONS / HTTP/1.1" 200 0 ');
});
