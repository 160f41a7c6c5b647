import fc from "../../testkit/property.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Server.js";
import { connectTo, RawUpstream, responding } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { logEntries } from "../../testkit/logEntries.js";
import { parseConfig, type ProxyConfigInput } from "../../src/model/index.js";

/** Ids of requests, W3C trace context and `Proxy-Status`, as upstreams and clients see them on the wire. */

const RESPONSE = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Request-Id: upstreams-own\r\n\r\nok";
const MADE = /^[0-9a-f]{32}$/;

let upstream: RawUpstream;
let front: EveryProtocol | undefined;

beforeEach(async () => void (upstream = await new RawUpstream(responding(RESPONSE)).listen()));
afterEach(async () => {
  expect(front?.serving.faults.count ?? 0).toBe(0);
  await front?.close();
  front = undefined;
  await upstream.close();
});

async function start(
  config: Partial<ProxyConfigInput>,
  setHeaders: Record<string, string> = {},
): Promise<void> {
  front = await startEveryProtocol({
    format: "json",
    routes: [
      { name: "web", path: "/web", action: { type: "proxy", upstream: "web", setHeaders } },
      { name: "down", path: "/down", action: { type: "proxy", upstream: "down" } },
    ],
    upstreams: [
      { name: "web", url: `http://127.0.0.1:${upstream.port}` },
      { name: "down", url: `http://127.0.0.1:${await freePort()}`, holdMs: 0 },
    ],
    config,
  });
}

/** Asks over a version; the response's fields by lower-case name. */
async function asked(
  version: 1 | 2,
  path: string,
  fields: readonly (readonly [string, string])[] = [],
): Promise<Record<string, unknown>> {
  if (version === 2) {
    const session = connectHttp2(front!.securePort);
    const given = Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]));
    const response = await ask(session, { ":path": path, ...given });
    session.destroy();
    return { ...response.headers, status: response.status };
  }
  const client = await connectTo(front!.plainPort);
  client.send(
    `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${fields.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n`,
  );
  await client.until(({ ended, closed }) => ended || closed);
  client.socket.destroy();
  const [head] = client.received.split("\r\n\r\n") as [string];
  const lines = head
    .split("\r\n")
    .slice(1)
    .map((line) => line.split(": ") as [string, string]);
  return {
    ...Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value])),
    status: Number(head.slice(9, 12)),
  };
}

/** Values that the upstream got of a field with the last request. */
function got(name: string): string[] {
  const { received } = upstream.connections.at(-1)!;
  const last = received.slice(received.lastIndexOf("GET "));
  return [...last.matchAll(new RegExp(`^${name}: (.*)\r$`, "gim"))].map(([, value]) => value!);
}

const lines = async (): Promise<Record<string, unknown>[]> => logEntries(await front!.accessLog());

describe.each([1, 2] as const)("over HTTP/%d", (version) => {
  test("without the setting nothing is added, and what the client sent passes", async () => {
    await start({});
    const response = await asked(version, "/web", [["X-Request-Id", "mine"]]);
    expect(got("X-Request-Id")).toEqual(["mine"]);
    expect(response["x-request-id"]).toBe("upstreams-own");
    expect((await lines())[0]).not.toHaveProperty("request_id");
  });

  test("each request gets an id, and what a stranger says is replaced, in any case and as often as it comes", async () => {
    await start({ requestId: {} });
    const twice = [
      ["X-REQUEST-ID", "mine"],
      ["Accept", "*/*"],
      ["x-request-id", "mine"],
    ] as const;
    await asked(version, "/web", version === 2 ? twice.slice(0, 2) : twice);
    const [id] = got("X-Request-Id");
    expect(got("X-Request-Id")).toEqual([expect.stringMatching(MADE)]);
    expect(got("Accept")).toEqual(["*/*"]);
    expect((await lines())[0]).toMatchObject({ request_id: id });
    await asked(version, "/web");
    expect(got("X-Request-Id")).not.toEqual([id]);
  });

  test("a trusted proxy's id is kept if it is sane, and goes to logs and client", async () => {
    await start({ requestId: { field: "X-Trace", response: true }, trustedProxies: ["127.0.0.1"] });
    const response = await asked(version, "/web", [["X-Trace", "1-5759e988:Root=a/b+c"]]);
    expect([response["x-trace"], response["x-request-id"]]).toEqual([
      "1-5759e988:Root=a/b+c",
      "upstreams-own",
    ]);
    expect(got("X-Trace")).toEqual(["1-5759e988:Root=a/b+c"]);
    for (const insane of ["a b", 'a"b', "-a", "a".repeat(129), "a,b", "a;b"]) {
      await asked(version, "/web", [["X-Trace", insane]]);
      expect(got("X-Trace")).toEqual([expect.stringMatching(MADE)]);
    }
    const failed = await asked(version, "/down", [["X-Trace", "known-id"]]);
    expect([failed["status"], failed["x-trace"]]).toEqual([502, "known-id"]);
    expect(await front!.errorLog()).toContain(", request id: known-id, ");
  });

  test("with the response's field, the upstream's own is replaced", async () => {
    await start({ requestId: { response: true } });
    const response = await asked(version, "/web");
    expect(response["x-request-id"]).toBe(got("X-Request-Id")[0]);
    expect((await asked(version, "/nowhere"))["x-request-id"]).toMatch(MADE);
  });

  test("a field that the route sets has priority", async () => {
    await start({ requestId: {} }, { "X-Request-Id": "fixed" });
    await asked(version, "/web", [["X-Request-Id", "mine"]]);
    expect(got("X-Request-Id")).toEqual(["fixed"]);
  });

  test.each([{}, { requestId: {} }, { requestId: { response: true } }])(
    "W3C trace context passes unharmed: %j",
    async (config) => {
      await start(config);
      const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      const state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE;a:b, vendor@x= !#$%&'()*+-./";
      await asked(version, "/web", [
        ["traceparent", trace],
        ["tracestate", state],
      ]);
      expect([got("traceparent"), got("tracestate")]).toEqual([[trace], [state]]);
    },
  );

  test("Proxy-Status is not sent unless it is wanted", async () => {
    await start({});
    expect(await asked(version, "/down")).not.toHaveProperty("proxy-status");
  });
});

test.each([
  ["edge", "edge", false],
  ["7up", '"7up"', false],
  ["edge", "edge", true],
])("Proxy-Status of %s is %s; given for all: %s", async (name, written, forAll) => {
  const parts = { serverNames: ["_"], default: true, listeners: ["http", "https"] };
  const own = forAll ? {} : { proxyStatus: name };
  const port = await freePort();
  front = await startEveryProtocol({
    routes: [],
    upstreams: [{ name: "down", url: `http://127.0.0.1:${port}`, holdMs: 0 }],
    config: {
      proxyStatus: forAll ? name : "other",
      virtualServers: [
        {
          name: "a",
          ...parts,
          ...own,
          routes: [{ name: "down", path: "/down", action: { type: "proxy", upstream: "down" } }],
        },
      ],
    },
  });
  for (const version of [1, 2] as const) {
    const response = await asked(version, "/down");
    expect(response).toMatchObject({ status: 502, "proxy-status": `${written}; error=connection_refused` });
    expect(JSON.stringify(response)).not.toContain(String(port));
    expect(await asked(version, "/nowhere")).toMatchObject({
      "proxy-status": `${written}; error=destination_not_found`,
    });
  }
});

test("whatever a stranger calls a request, the upstream gets one made id", async () => {
  await start({ requestId: {} });
  await fc.assert(
    fc.asyncProperty(fc.stringMatching(/^[!-~]{0,40}$/), async (value) => {
      await asked(1, "/web", [["X-Request-Id", value]]);
      expect(got("X-Request-Id")).toEqual([expect.stringMatching(MADE)]);
    }),
    { numRuns: 30 },
  );
});

test.each(["Host", "X-Forwarded-For", "traceparent", "Cookie", "Remote-User", "a b"])(
  "%s cannot have the id",
  (field) => {
    const route = { name: "r", path: "/", action: { type: "respond", status: 200 } } as const;
    const parsed = parseConfig({
      version: 1,
      requestId: { field },
      listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
      virtualServers: [
        { name: "s", serverNames: ["_"], listeners: ["http"], default: true, routes: [route] },
      ],
    });
    expect(parsed.ok ? [] : parsed.problems).toEqual([
      expect.objectContaining({ code: "config.bad-header", path: "requestId.field" }),
    ]);
  },
);
