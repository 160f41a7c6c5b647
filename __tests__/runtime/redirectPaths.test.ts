import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { parseConfig } from "../../src/index.js";
import { resolveAs } from "../../src/testing/index.js";

/** Redirects with a path of their own, on the wire. */

const ROUTES = [
  { name: "root", path: "/", match: "exact", action: { type: "redirect", path: "/sync/" } },
  {
    name: "query",
    path: "/q",
    action: { type: "redirect", scheme: "http", path: "/a%20b/?c=%2F", status: 302 },
  },
  { name: "kept", path: "/kept", action: { type: "redirect", host: "b.example" } },
] as const;

let front: EveryProtocol;
beforeAll(async () => {
  front = await startEveryProtocol({ routes: ROUTES });
});
afterAll(() => front.close());

type Seen = readonly [status: number, location: string | undefined];

const overHttp1 = (path: string): Promise<Seen> =>
  new Promise((done, fail) => {
    const headers = { Host: "a.example" };
    const seen = (response: IncomingMessage): void => {
      response.resume();
      done([response.statusCode!, response.headers.location]);
    };
    httpRequest({ host: "127.0.0.1", port: front.plainPort, path, headers, agent: false }, seen)
      .on("error", fail)
      .end();
  });

const overHttp2 = (path: string): Promise<Seen> =>
  new Promise((done, fail) => {
    const session = connect(`https://127.0.0.1:${front.securePort}`, { rejectUnauthorized: false });
    session.on("error", fail);
    const stream = session.request({ ":path": path, ":authority": "a.example" });
    stream.on("error", fail).on("response", (head) => {
      done([head[":status"]!, head.location]);
      session.destroy();
    });
    stream.end();
  });

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
])("over %s", (_, ask) => {
  test.each<[string, number, string]>([
    ["/", 301, "https://a.example/sync/"],
    ["/?next=//evil.example", 301, "https://a.example/sync/"],
    ["/q/deeper?x=1", 302, "http://a.example/a%20b/?c=%2F"],
    ["/kept/a%20b?x=%2F", 301, "https://b.example/kept/a%20b?x=%2F"],
  ])("%s gets %i and Location %s", async (path, status, location) => {
    expect(await ask(path)).toEqual([status, location]);
  });
});

const configWith = (path: string) =>
  parseConfig(
    oneServer({
      listeners: [loopback("http", 80)],
      routes: [{ name: "r", path: "/", match: "exact", action: { type: "redirect", scheme: "http", path } }],
    }),
  );

test("unit tests see the same Location", () => {
  const config = configWith("/sync/");
  expect(config.ok && resolveAs("redirect", config.value, "http://a.example/?x").location).toBe(
    "http://a.example/sync/",
  );
});

test.each([
  ["", "config.bad-redirect-path"],
  ["sync/", "config.bad-redirect-path"],
  ["/a b", "config.bad-redirect-path"],
  ["/a%2", "config.bad-redirect-path"],
  ["/a#b", "config.bad-redirect-path"],
  ["/é", "config.bad-redirect-path"],
  ["/a\r\nX: y", "config.bad-redirect-path"],
  ["/", "config.redirect-loop"],
  ["/?again", "config.redirect-loop"],
  ["/b/..", "config.redirect-loop"],
])("a redirect of / to %j is refused with %s", (path, code) => {
  const config = configWith(path);
  expect(config.ok ? [] : config.problems.map((p) => p.code)).toEqual([code]);
});
