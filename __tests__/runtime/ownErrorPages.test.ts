import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, RawUpstream, responding } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";
import { logEntries } from "../../testkit/logEntries.js";
import { ERROR_PAGE_BYTES_MAX, type ProxyConfigInput } from "../../src/model/index.js";
import type { Http2Connection } from "../../src/runtime/server/http2Connection.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/** Pages of the administrator's in place of the proxy's own error pages, over every protocol. */

let folder: string;
let upstream: RawUpstream;
let front: EveryProtocol;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted) => void;

const NAMES = "{{serverName}}".repeat(32);
const LARGEST = NAMES + "x".repeat(ERROR_PAGE_BYTES_MAX - NAMES.length);

const DOWN = '<!doctype html><p title="{{serverName}}">{{status}} {{reason}} {{requestId}} {{time}} é';

const virtualServer = (): ProxyConfigInput["virtualServers"][number] => ({
  name: "application",
  serverNames: ["_"],
  default: true,
  listeners: ["http", "https"],
  responseHeaders: { set: { "X-Frame-Options": "DENY" } },
  errorPages: [
    { statuses: [404, 502, 504], html: DOWN },
    { statuses: [503], html: '<meta http-equiv="refresh" content="{{retryAfter}}">' },
    { statuses: [413, 408], html: "<p>{{status}}" },
    { statuses: [405], html: LARGEST },
  ],
  routes: [
    { name: "up", path: "/up", action: { type: "proxy", upstream: "up" } },
    { name: "down", path: "/down", action: { type: "proxy", upstream: "down" } },
    { name: "busy", path: "/busy", action: { type: "proxy", upstream: "busy" } },
    {
      name: "csp",
      path: "/csp",
      action: { type: "proxy", upstream: "down" },
      responseHeaders: { set: { "content-security-policy": "sandbox" }, remove: ["Cache-Control"] },
    },
    { name: "files", path: "/files", action: { type: "staticFiles", directory: folder } },
    { name: "said", path: "/said", action: { type: "respond", status: 404, body: "said" } },
    {
      name: "small",
      path: "/small",
      requestBodyBytesMax: 1,
      requestBodyTimeoutMs: 50,
      action: { type: "proxy", upstream: "up" },
    },
  ],
});

beforeAll(async () => {
  folder = publicFolder("portico-pages-");
  writeFileSync(join(folder, "a.txt"), "0123456789", { mode: 0o644 });
  upstream = await new RawUpstream((peer) => script(peer)).listen();
  const down = await new RawUpstream().listen();
  const url = `http://127.0.0.1:${down.port}`;
  await down.close();
  front = await startEveryProtocol({
    routes: [],
    upstreams: [
      { name: "up", url: `http://127.0.0.1:${upstream.port}` },
      { name: "down", url },
      { name: "busy", servers: [{ url }, { url: url.replace("127.0.0.1", "localhost") }] },
    ],
    config: { virtualServers: [virtualServer()] },
    format: "json",
  });
});
beforeEach(() => void (script = responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")));
afterEach(() => {
  for (const peer of upstream.connections.splice(0)) peer.socket.destroy();
});
afterAll(async () => {
  await front.close();
  await upstream.close();
  rmSync(folder, { recursive: true });
});

interface Seen {
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
  readonly body: string;
}

interface Asked {
  readonly method?: string;
  readonly accept?: string;
  readonly range?: string;
  readonly body?: string;
}

type Ask = (path: string, asked?: Asked) => Promise<Seen>;

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

const overHttp1 =
  (secure: boolean): Ask =>
  async (path, { method = "GET", accept = BROWSER, range, body = "" } = {}) => {
    const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    client.send(
      `${method} ${path} HTTP/1.1\r\nHost: Sync.example:81\r\nConnection: close\r\nAccept: ${accept}\r\n` +
        `${range === undefined ? "" : `Range: ${range}\r\n`}${length}\r\n${body}`,
    );
    await client.until((peer) => peer.closed || peer.ended);
    client.socket.destroy();
    const [head = "", ...rest] = client.received.split("\r\n\r\n");
    const [line = "", ...lines] = head.split("\r\n");
    const fields = lines.map((one): [string, string] => {
      const colon = one.indexOf(": ");
      return [one.slice(0, colon).toLowerCase(), one.slice(colon + 2)];
    });
    return { status: Number(line.split(" ")[1]), fields: new Map(fields), body: rest.join("\r\n\r\n") };
  };

const overHttp2: Ask = async (path, { method = "GET", accept = BROWSER, range, body: sent } = {}) => {
  const session = connectHttp2(front.securePort);
  const length = sent === undefined ? {} : { "content-length": String(sent.length) };
  const head = { ":method": method, ":path": path, ":authority": "sync.example", accept, ...length };
  if (range !== undefined) Object.assign(head, { range });
  const { status, raw, body } = await ask(session, head, sent);
  session.destroy();
  const pairs = Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i]!, raw[2 * i + 1]!] as const);
  return { status, fields: new Map(pairs), body };
};

const CSP = /^default-src 'none'; /;

describe.each([
  ["HTTP/1.1", overHttp1(false)],
  ["HTTP/1.1 over TLS", overHttp1(true)],
  ["HTTP/2", overHttp2],
] as const)("over %s", (_protocol, request) => {
  test("a browser gets the page, filled in", async () => {
    const { status, fields, body } = await request("/down/");
    expect(status).toBe(502);
    const shown =
      /^<!doctype html><p title="sync\.example">502 Bad Gateway ([0-9a-f]{16}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) \xc3\xa9$/;
    expect(body).toMatch(shown);
    expect(fields.get("content-length")).toBe(String(body.length));
    expect(fields.get("content-type")).toBe("text/html; charset=utf-8");
    expect(fields.get("vary")).toBe("Accept");
    expect(fields.get("cache-control")).toBe("no-store");
    expect(fields.get("content-security-policy")).toMatch(CSP);
    expect(fields.get("x-frame-options")).toBe("DENY");
    const time = Date.parse(shown.exec(body)![2]!);
    expect(Math.abs(Date.now() - time)).toBeLessThan(60_000);
  });

  test("a program gets the proxy's own page, which no cache gives to a browser", async () => {
    for (const accept of ["*/*", "application/json", "text/html;q=0"]) {
      const { status, fields, body } = await request("/down/", { accept });
      expect([status, fields.get("content-type")]).toEqual([502, "text/html"]);
      expect(body).toBe(
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n" +
          "<hr><center>portico</center>\r\n</body>\r\n</html>\r\n",
      );
      expect([fields.get("vary"), fields.get("cache-control")]).toEqual(["Accept", "no-store"]);
      expect(fields.has("content-security-policy")).toBe(false);
    }
  });

  test("HEAD gets the fields and no page", async () => {
    const { status, fields, body } = await request("/down/", { method: "HEAD" });
    const { body: page } = await request("/down/");
    expect([status, fields.get("content-length"), body]).toEqual([502, String(page.length), ""]);
    expect(fields.get("content-security-policy")).toMatch(CSP);
  });

  test.each([
    ["no route", "/none", {}, 404],
    ["no file", "/files/none", {}, 404],
    ["a body that is too long", "/small", { method: "POST", body: "ab" }, 413],
  ] as const)("%s", async (_what, path, asked, status) => {
    const seen = await request(path, asked);
    expect(seen.status).toBe(status);
    expect(seen.body).toContain(status === 413 ? "<p>413" : "404 Not Found");
    expect(seen.fields.get("content-security-policy")).toMatch(CSP);
  });

  test("503 says when to try again, in the head and on the page", async () => {
    const { status, fields, body } = await request("/busy/");
    expect([status, fields.get("retry-after")]).toEqual([503, "5"]);
    expect(body).toBe('<meta http-equiv="refresh" content="5">');
  });

  test("responses of an upstream and of `respond` pass as they are", async () => {
    script = responding("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\nX-A: 1\r\n\r\ntheir");
    const theirs = await request("/up/");
    expect([theirs.status, theirs.body, theirs.fields.get("x-a")]).toEqual([502, "their", "1"]);
    const ours = await request("/said/");
    expect([ours.status, ours.body]).toEqual([404, "said"]);
    for (const { fields } of [theirs, ours])
      expect([fields.has("vary"), fields.has("cache-control")]).toEqual([false, false]);
  });

  test("a status without a page has the proxy's own", async () => {
    const { status, fields, body } = await request("/files/a.txt", { range: "bytes=99-" });
    expect([status, fields.get("content-type"), fields.has("vary")]).toEqual([416, "text/html", false]);
    expect(body).toContain("<center><h1>416 Requested Range Not Satisfiable</h1></center>");
  });

  test("fields of the config take the place of the page's", async () => {
    const { status, fields } = await request("/csp/");
    expect([status, fields.get("content-security-policy")]).toEqual([502, "sandbox"]);
    expect(fields.has("cache-control")).toBe(false);
  });

  test("both logs have the id that the page shows, and other lines have none", async () => {
    await request("/up/");
    const { body } = await request("/down/");
    const id = / ([0-9a-f]{16}) /.exec(body)![1]!;
    const [ok, failed] = logEntries(await front.accessLog()).slice(-2);
    expect([ok!.status, "request_id" in ok!]).toEqual([200, false]);
    expect([failed!.status, failed!.request_id]).toEqual([502, id]);
    const error = (await front.errorLog()).trim().split("\n").at(-1)!;
    expect(error).toContain(`, server: _, request id: ${id}, request: "GET /down/`);
  });
});

test.each([false, true])("a body that stops coming gets the page of 408; over TLS: %j", async (secure) => {
  script = () => undefined;
  const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
  client.send("POST /small HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nContent-Length: 1\r\n\r\n");
  await client.until((peer) => peer.closed || peer.ended);
  client.socket.destroy();
  expect(client.received).toMatch(/^HTTP\/1\.1 408 [^]*\r\nConnection: close\r\n[^]*\r\n\r\n<p>408$/);
});

test("each request has an id of its own, also on one connection", async () => {
  const client = await connectTo(front.plainPort, false);
  const get = "GET /none HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n";
  client.send(get + get);
  await client.until(({ received }) => received.split("404 Not Found ").length > 2);
  client.socket.destroy();
  const ids = [...client.received.matchAll(/404 Not Found ([0-9a-f]{16}) /g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(2);
});

test("a request that cannot be read gets the proxy's own page: what it accepts is not known", async () => {
  const client = await connectTo(front.plainPort, false);
  client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nAccept: text/html\r\n\r\n");
  await client.until((peer) => peer.closed || peer.ended);
  client.socket.destroy();
  expect(client.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(client.received).not.toContain("Vary");
});

test("what a stream holds of the largest page that is not read", async () => {
  const STREAMS = 4;
  const session = connectHttp2(front.securePort, { initialWindowSize: 0 });
  session.on("error", () => undefined);
  const asked = {
    ":method": "PUT",
    ":path": "/files/a.txt",
    ":authority": "h".repeat(1_000),
    accept: BROWSER,
  };
  for (let i = 0; i < STREAMS; i++) session.request(asked).on("error", () => undefined);
  const { all } = front.http2 as unknown as { all: ReadonlySet<Http2Connection> };
  const held = (): number[] =>
    [...all].flatMap(({ streams }) =>
      [...streams.open.values()].map(({ waiting }) => waiting.reduce((sum, { length }) => sum + length, 0)),
    );
  await eventually(() => held().filter((bytes) => bytes > 0).length === STREAMS);
  const most = Math.max(...held());
  session.destroy();
  expect(most).toBeGreaterThan(ERROR_PAGE_BYTES_MAX);
  expect(most).toBeLessThanOrEqual(ERROR_PAGE_BYTES_MAX + 8_192);
});
