import * as http2 from "node:http2";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { FakeExchange } from "../../testkit/fakeExchange.js";
import { connectTo, isComplete, RawUpstream, responding } from "../../testkit/peers.js";
import type { RouteInput } from "../../src/model/index.js";
import { RequestClients } from "../../src/runtime/dispatch/dispatch.js";

/** Who a request is from, and what it may say about that, over every protocol and on the wire to the upstream. */

let upstream: RawUpstream;
let front: EveryProtocol;

beforeEach(async () => {
  upstream = await new RawUpstream(responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).listen();
});

afterEach(async () => {
  await front?.close();
  front = undefined!;
  await upstream.close();
});

async function start(config: object, action: object = {}): Promise<void> {
  const proxied = { type: "proxy", upstream: "web", ...action } as RouteInput["action"];
  const dead = { type: "proxy", upstream: "dead" } as const;
  front = await startEveryProtocol({
    routes: [
      { name: "dead", path: "/dead", action: dead },
      { name: "all", path: "/", match: "prefix", action: proxied },
    ],
    upstreams: [
      { name: "web", url: `http://127.0.0.1:${upstream.port}` },
      { name: "dead", url: "http://127.0.0.1:1" },
    ],
    config,
  });
}

type Fields = readonly (readonly [string, string])[];
type Send = (path: string, fields: Fields) => Promise<void>;

const overHttp1 =
  (secure: boolean): Send =>
  async (path, fields) => {
    const client = await connectTo(secure ? front.securePort : front.plainPort, secure);
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    client.send(`GET ${path} HTTP/1.1\r\nHost: a.example\r\n${lines}\r\n`);
    await client.until(({ received }) => isComplete(received));
    client.socket.destroy();
  };

const overHttp2: Send = async (path, fields) => {
  const session = http2.connect(`https://127.0.0.1:${front.securePort}`, { rejectUnauthorized: false });
  const headers: Record<string, string[]> = {};
  for (const [name, value] of fields) (headers[name.toLowerCase()] ??= []).push(value);
  await session
    .request({ ":path": path, ":authority": "a.example", ...headers })
    .resume()
    .toArray();
  await new Promise<void>((closed) => session.close(closed));
};

const PROTOCOLS: [string, Send][] = [
  ["HTTP/1.1", overHttp1(false)],
  ["HTTP/1.1 over TLS", overHttp1(true)],
  ["HTTP/2", overHttp2],
];

/** Names of the last request's fields that are not this proxy's own, and the values of those that are. */
function arrived(): { own: Record<string, string>; others: string[] } {
  const head = upstream.received.split("\r\n\r\n").at(-2)!;
  const fields = head
    .split("\r\n")
    .slice(1)
    .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const);
  const isOwn = ([name]: readonly [string, string]): boolean =>
    /^(?:host|x-real-ip|x-forwarded-.*)$/i.test(name);
  return {
    own: Object.fromEntries(fields.filter(isOwn).map(([name, value]) => [name.toLowerCase(), value])),
    others: fields.filter((field) => !isOwn(field)).map(([name, value]) => `${name.toLowerCase()}: ${value}`),
  };
}

const CLAIMED: Fields = [
  ...["Remote-User", "REMOTE_USER", "remote.user", "X-Remote-User", "x_forwarded_user", "X-Forwarded-User"],
  ...["Forwarded", "Client-IP", "Client_IP", "True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-IP"],
  ...["X-Original-URL", "X-Rewrite-URL", "Proxy", "SSL-Client-Verify", "X-Client-Cert", "X.Real.IP"],
].map((name) => [name, "claimed"] as const);

describe.each(PROTOCOLS)("%s", (_protocol, send) => {
  test("a stranger claims nothing", async () => {
    await start({ trustedProxies: ["192.0.2.1"] }, { trustedFields: ["Remote-User"] });
    await send("/", [
      ...CLAIMED,
      ["X-Real-IP", "claimed"],
      ["X-Forwarded-Proto", "claimed"],
      ["Accept", "a"],
    ]);
    const { own, others } = arrived();
    expect(others).toEqual(["accept: a"]);
    expect(own).toMatchObject({ "x-real-ip": "127.0.0.1", "x-forwarded-for": "127.0.0.1" });
    expect(own["x-forwarded-proto"]).toMatch(/^https?$/);
  });

  test("a trusted proxy claims addresses, and identities by name", async () => {
    await start({ trustedProxies: ["127.0.0.1"] }, { trustedFields: ["Remote-User"] });
    await send("/", [...CLAIMED, ["X-Forwarded-Proto", "claimed"]]);
    const { own, others } = arrived();
    expect(others).toEqual(
      [
        "remote-user",
        "forwarded",
        "client-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "x-cluster-client-ip",
      ].map((name) => `${name}: claimed`),
    );
    expect(own).toMatchObject({ "x-real-ip": "127.0.0.1", "x-forwarded-proto": "claimed" });
    expect(own).not.toHaveProperty("x-forwarded-user");
  });

  test.each<[string, object, Fields, string, string]>([
    [
      "of a stranger",
      { trustedProxies: [] },
      [["X-Forwarded-For", "192.0.2.7"]],
      "127.0.0.1",
      "192.0.2.7, 127.0.0.1",
    ],
    ["without a chain", {}, [], "127.0.0.1", "127.0.0.1"],
    [
      "in a chain",
      {},
      [["X-Forwarded-For", "6.6.6.6, 192.0.2.7:99"]],
      "192.0.2.7",
      "6.6.6.6, 192.0.2.7:99, 127.0.0.1",
    ],
    [
      "behind two proxies",
      {},
      [
        ["X-Forwarded-For", "[2001:db8::7]:443"],
        ["X-Forwarded-For", "10.0.0.9"],
      ],
      "2001:db8::7",
      "[2001:db8::7]:443, 10.0.0.9, 127.0.0.1",
    ],
    [
      "that is malformed",
      {},
      [["X-Forwarded-For", "192.0.2.7, unknown"]],
      "127.0.0.1",
      "192.0.2.7, unknown, 127.0.0.1",
    ],
    [
      "in a field of its own",
      { clientAddressField: "CF-Connecting-IP" },
      [
        ["CF-Connecting-IP", "192.0.2.7"],
        ["X-Real-IP", "6.6.6.6"],
      ],
      "192.0.2.7",
      "192.0.2.7, 127.0.0.1",
    ],
    [
      "not in the usual field, but in its own",
      { clientAddressField: "X-Own-Client" },
      [
        ["X-Own-Client", "192.0.2.7"],
        ["X-Forwarded-For", "192.0.2.8"],
      ],
      "192.0.2.7",
      "192.0.2.8, 127.0.0.1",
    ],
  ])("the client %s", async (_what, config, fields, client, chain) => {
    await start({ trustedProxies: ["127.0.0.1", "10.0.0.0/8"], ...config });
    await send("/first", fields);
    expect(arrived().own).toMatchObject({ "x-real-ip": client, "x-forwarded-for": chain });
    // A connection of a proxy carries requests of many clients.
    await send("/dead", fields);
    await send("/none", []);
    const clients = (await front.accessLog())
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]);
    expect(clients).toEqual([client, client, "127.0.0.1"]);
    expect(await front.errorLog()).toContain(`, client: ${client}, server: `);
  });
});

test("requests on one connection are of different clients", async () => {
  await start({ trustedProxies: ["127.0.0.1"] });
  const client = await connectTo(front.plainPort);
  for (const address of ["192.0.2.7", "192.0.2.8", ""]) {
    const before = client.received.length;
    const chain = address === "" ? "" : `X-Forwarded-For: ${address}\r\n`;
    client.send(`GET / HTTP/1.1\r\nHost: a.example\r\n${chain}\r\n`);
    await client.until(({ received }) => isComplete(received.slice(before)));
    expect(arrived().own["x-real-ip"]).toBe(address || "127.0.0.1");
  }
  client.socket.destroy();
});

test.each([
  ["of a stranger", false, "192.0.2.7"],
  ["that a trusted proxy does not name", true, "?"],
  ["that is a trusted proxy itself", true, "127.0.0.1"],
])("a client %s costs no object of its own", (_what, trusted, chain) => {
  const clients = new RequestClients({
    trustedProxies: ["127.0.0.1"],
    clientAddressField: "X-Forwarded-For",
  });
  const { client, request } = new FakeExchange(
    { headers: { "X-Forwarded-For": chain } },
    { client: { address: "127.0.0.1", trusted } },
  );
  expect(clients.of(client, request)).toBe(client);
});
