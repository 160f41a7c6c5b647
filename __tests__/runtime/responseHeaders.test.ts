import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { responseOf, ask, connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, connectTo, exchange, RawUpstream, responding } from "../../testkit/peers.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/** Fields that the config sets and removes, in responses of every kind and over every protocol (decisions 5.5 and 5.6). */

let folder: string;
let upstream: RawUpstream;
let front: EveryProtocol;
/** What the upstream does with each connection; a test sets it. */
let script: (peer: Accepted) => void;

const ROUTE_RULES = {
  set: { "x-frame-options": "SAMEORIGIN", "Content-Security-Policy": "default-src 'self'; img-src *" },
  remove: ["Server", "X-Removed", "ETag"],
};

const virtualServer = (): ProxyConfigInput["virtualServers"][number] => ({
  name: "application",
  serverNames: ["_"],
  default: true,
  listeners: ["http", "https"],
  responseHeaders: {
    set: { "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "X-A.b": "dots are not a pattern" },
    remove: ["X-Powered-By"],
  },
  hsts: { maxAge: 300 },
  routes: [
    { name: "up", path: "/up", action: { type: "proxy", upstream: "up" }, responseHeaders: ROUTE_RULES },
    { name: "plain", path: "/plain", action: { type: "proxy", upstream: "up" } },
    {
      name: "down",
      path: "/down",
      action: { type: "proxy", upstream: "down" },
      responseHeaders: ROUTE_RULES,
    },
    {
      name: "files",
      path: "/files",
      action: { type: "staticFiles", directory: folder, cacheControl: "no-cache" },
    },
    { name: "moved", path: "/moved", action: { type: "redirect", host: "other.example" } },
    { name: "said", path: "/said", action: { type: "respond", status: 200, body: "said" } },
    { name: "small", path: "/small", requestBodyBytesMax: 1, action: { type: "respond", status: 204 } },
  ],
});

beforeAll(async () => {
  folder = publicFolder("portico-fields-");
  writeFileSync(join(folder, "a.txt"), "0123456789", { mode: 0o644 });
  upstream = await new RawUpstream((peer) => script(peer)).listen();
  const down = await new RawUpstream().listen();
  const { port } = down;
  await down.close();
  front = await startEveryProtocol({
    routes: [],
    upstreams: [
      { name: "up", url: `http://127.0.0.1:${upstream.port}` },
      { name: "down", url: `http://127.0.0.1:${port}` },
    ],
    config: { virtualServers: [virtualServer()] },
  });
});
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
  /** Names, lower case, and values, in their order. */
  readonly fields: readonly (readonly [string, string])[];
  readonly body: string;
}

interface Asked {
  readonly method?: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: string;
}

type Ask = (path: string, asked?: Asked) => Promise<Seen>;

const overHttp1 =
  (secure: boolean): Ask =>
  async (path, { method = "GET", fields = {}, body = "" } = {}) => {
    const length = body === "" ? {} : { "Content-Length": String(body.length) };
    const lines = Object.entries({ Host: "a", Connection: "close", ...length, ...fields });
    const request = `${method} ${path} HTTP/1.1\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n${body}`;
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    client.send(request);
    await client.until((peer) => peer.closed || peer.ended);
    client.socket.destroy();
    const [head = "", ...rest] = client.received.split("\r\n\r\n");
    const [line = "", ...fieldLines] = head.split("\r\n");
    return {
      status: Number(line.split(" ")[1]),
      fields: fieldLines.map((one) => {
        const colon = one.indexOf(": ");
        return [one.slice(0, colon).toLowerCase(), one.slice(colon + 2)] as const;
      }),
      body: rest.join("\r\n\r\n"),
    };
  };

const overHttp2: Ask = async (path, { method = "GET", fields = {}, body: sent } = {}) => {
  const session = connectHttp2(front.securePort);
  const length = sent === undefined ? {} : { "content-length": String(sent.length) };
  const { status, raw, body } = await ask(
    session,
    { ":method": method, ":path": path, ...length, ...fields },
    sent,
  );
  session.destroy();
  const pairs = Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i]!, raw[2 * i + 1]!] as const);
  return { status, fields: pairs.filter(([name]) => name !== ":status"), body };
};

/** All values of a field. */
const valuesOf = ({ fields }: Seen, name: string): string[] =>
  fields.filter(([one]) => one === name).map(([, value]) => value);

const UPSTREAM_RESPONSE =
  "HTTP/1.1 200 OK\r\nX-Frame-Options: ALLOW\r\nX-FRAME-options: B\r\nx-powered-by: PHP\r\nX-Removed: 1\r\n" +
  'X-Kept: X-Removed: 2\r\nETag: "1"\r\nSet-Cookie: a=1\r\nX-Axb: kept\r\n' +
  "Strict-Transport-Security: max-age=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok";

describe.each([
  ["HTTP/1.1", false, overHttp1(false)],
  ["HTTP/1.1 over TLS", true, overHttp1(true)],
  ["HTTP/2", true, overHttp2],
] as const)("over %s", (_protocol, secure, request) => {
  const HSTS = secure ? ["max-age=300"] : [];

  beforeEach(() => {
    script = responding(UPSTREAM_RESPONSE);
  });

  test("the route's fields take the place of the upstream's and of the virtual server's", async () => {
    const seen = await request("/up/");
    expect([seen.status, seen.body]).toEqual([200, "ok"]);
    expect(valuesOf(seen, "x-frame-options")).toEqual(["SAMEORIGIN"]);
    expect(valuesOf(seen, "content-security-policy")).toEqual(["default-src 'self'; img-src *"]);
    expect(valuesOf(seen, "referrer-policy")).toEqual(["same-origin"]);
    expect(valuesOf(seen, "strict-transport-security")).toEqual(HSTS);
    for (const name of ["x-powered-by", "x-removed", "etag", "server"])
      expect([name, valuesOf(seen, name)]).toEqual([name, []]);
    expect(valuesOf(seen, "x-kept")).toEqual(["X-Removed: 2"]);
    expect(valuesOf(seen, "x-axb")).toEqual(["kept"]);
    expect(valuesOf(seen, "set-cookie")).toEqual(["a=1", "b=2"]);
    expect(valuesOf(seen, "content-length")).toEqual(["2"]);
    expect(valuesOf(seen, "date")).toHaveLength(1);
  });

  test("the same if the upstream's fields are examined one by one", async () => {
    script = responding(
      UPSTREAM_RESPONSE.replace("X-Kept", `Location: http://127.0.0.1:${upstream.port}/x\r\nX-Kept`),
    );
    const seen = await request("/up/");
    expect(valuesOf(seen, "location")).toHaveLength(1);
    expect(valuesOf(seen, "x-frame-options")).toEqual(["SAMEORIGIN"]);
    expect(valuesOf(seen, "x-removed")).toEqual([]);
  });

  test("a route without rules has those of its virtual server", async () => {
    const seen = await request("/plain/");
    expect(valuesOf(seen, "x-frame-options")).toEqual(["DENY"]);
    expect(valuesOf(seen, "x-removed")).toEqual(["1"]);
    expect(valuesOf(seen, "server")).toEqual(["portico"]);
    expect(valuesOf(seen, "etag")).toEqual(['"1"']);
  });

  test("a chunked response stays whole", async () => {
    script = responding(
      "HTTP/1.1 200 OK\r\nX-Removed: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    const seen = await request("/up/");
    expect(valuesOf(seen, "x-removed")).toEqual([]);
    expect(seen.body.replaceAll("\r\n", " ")).toMatch(/^(?:3 abc 0 {2}|abc)$/);
  });

  test.each([
    ["a file", "/files/a.txt", {}, 200],
    ["its head", "/files/a.txt", { method: "HEAD" }, 200],
    ["a part of it", "/files/a.txt", { fields: { range: "bytes=2-4" } }, 206],
    ["two parts of it", "/files/a.txt", { fields: { range: "bytes=0-1,4-5" } }, 206],
    ["a file that is not modified", "/files/a.txt", { fields: { "if-none-match": "*" } }, 304],
    ["a part that is not there", "/files/a.txt", { fields: { range: "bytes=99-" } }, 416],
    ["a precondition that fails", "/files/a.txt", { fields: { "if-match": '"x"' } }, 412],
    ["a file that is missing", "/files/b.txt", {}, 404],
    ["a method that files have not", "/files/a.txt", { method: "PUT" }, 405],
    ["a redirect", "/moved", {}, 301],
    ["a fixed response", "/said", {}, 200],
    ["a body that is too long", "/small", { method: "POST", body: "ab" }, 413],
    ["no route", "/none", {}, 404],
  ] as const)("the virtual server's fields: %s", async (_what, path, asked, status) => {
    const seen = await request(path, asked);
    expect(seen.status).toBe(status);
    expect(valuesOf(seen, "x-frame-options")).toEqual(["DENY"]);
    expect(valuesOf(seen, "x-a.b")).toEqual(["dots are not a pattern"]);
    expect(valuesOf(seen, "strict-transport-security")).toEqual(HSTS);
    if (path === "/files/a.txt" && status < 400)
      expect(valuesOf(seen, "cache-control")).toEqual(["no-cache"]);
    if (status === 206 || status === 416)
      expect(seen.fields.map(([name]) => name)).toContain(
        asked.fields.range === "bytes=0-1,4-5" ? "content-type" : "content-range",
      );
  });

  test("an upstream that cannot be reached: the route's fields are in the error page's head", async () => {
    const seen = await request("/down/");
    expect(seen.status).toBe(502);
    expect(valuesOf(seen, "x-frame-options")).toEqual(["SAMEORIGIN"]);
    expect(valuesOf(seen, "server")).toEqual([]);
    expect(seen.body).toContain("502 Bad Gateway");
  });

  test("HEAD and 304 of an upstream", async () => {
    script = responding("HTTP/1.1 304 Not Modified\r\nX-Removed: 1\r\nX-Kept: 1\r\n\r\n");
    const seen = await request("/up/");
    expect([seen.status, seen.body]).toEqual([304, ""]);
    expect(valuesOf(seen, "x-frame-options")).toEqual(["SAMEORIGIN"]);
    expect(valuesOf(seen, "x-removed")).toEqual([]);
    script = responding("HTTP/1.1 200 OK\r\nX-Removed: 1\r\nContent-Length: 5\r\n\r\n");
    for (const peer of upstream.connections.splice(0)) peer.socket.destroy();
    const head = await request("/up/", { method: "HEAD" });
    expect([head.status, head.body, valuesOf(head, "content-length")]).toEqual([200, "", ["5"]]);
    expect(valuesOf(head, "x-frame-options")).toEqual(["SAMEORIGIN"]);
  });
});

test("a request that is refused before its host is known has the default server's fields", async () => {
  const { status, headers } = await exchange(front.plainPort, "GET /up HTTP/1.1\r\n\r\n");
  expect([status, headers["x-frame-options"]]).toEqual([400, "DENY"]);
  expect(headers["strict-transport-security"]).toBeUndefined();
});

test("an HTTP/2 connection sends the fields again and again as indices", async () => {
  script = responding(UPSTREAM_RESPONSE);
  const session = connectHttp2(front.securePort);
  for (let i = 0; i < 4; i++) {
    const { headers } = await ask(session, { ":path": i % 2 === 0 ? "/up/" : "/plain/" });
    expect(headers["x-frame-options"]).toBe(i % 2 === 0 ? "SAMEORIGIN" : "DENY");
    expect(headers["server"]).toBe(i % 2 === 0 ? undefined : "portico");
    expect(headers["date"]).toBeDefined();
  }
  session.destroy();
});

describe("heads that are not the route's response stay as they are", () => {
  const SWITCHING =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Accept: x\r\nX-Removed: 1\r\n\r\n";

  test("an upgrade over HTTP/1.1", async () => {
    script = responding(SWITCHING);
    const client = await connectTo(front.plainPort);
    client.send("GET /up/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    await client.receives("\r\n\r\n");
    expect(client.received).toMatch(/^HTTP\/1\.1 101 [^]*X-Removed: 1\r\n/);
    expect(client.received).toContain("Server: portico\r\n");
    expect(client.received).not.toMatch(/x-frame-options|content-security-policy/i);
    client.socket.destroy();
  });

  test("an upgrade over HTTP/2", async () => {
    script = responding(SWITCHING);
    const session = connectHttp2(front.securePort);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    const stream = session.request(
      { ":method": "CONNECT", ":protocol": "websocket", ":authority": "a", ":path": "/up/" },
      { endStream: false },
    );
    const headers = await new Promise<Record<string, unknown>>((resolve) => stream.once("response", resolve));
    expect(headers).toMatchObject({ ":status": 200, "x-removed": "1", server: "portico" });
    expect(headers).not.toHaveProperty("x-frame-options");
    expect(headers).not.toHaveProperty("strict-transport-security");
    stream.destroy();
    session.destroy();
  });

  test("a 103 over HTTP/2, whose final response has the fields", async () => {
    script = responding(
      `HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-Removed: 1\r\n\r\n${UPSTREAM_RESPONSE}`,
    );
    const session = connectHttp2(front.securePort);
    const { informational, headers } = await responseOf(
      session.request({ ":authority": "a", ":path": "/up/" }, { endStream: true }),
    );
    expect(informational.map((one) => [one[":status"], one["x-removed"], one["x-frame-options"]])).toEqual([
      [103, "1", undefined],
    ]);
    expect(headers["x-frame-options"]).toBe("SAMEORIGIN");
    session.destroy();
  });
});
