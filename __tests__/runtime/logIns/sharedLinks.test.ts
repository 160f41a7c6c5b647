import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { immich, vaultwarden } from "../../../src/applications/index.js";
import { type EveryProtocol, startEveryProtocol } from "../../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../../testkit/http2Session.js";
import { exchange } from "../../../testkit/peers.js";

/** Guesses of shared links' passwords, as applications' definitions name them, before what responds as the programs' sources do. */

const PASSWORD = "correct horse";

/** Immich 2.5 reads the password in the query, and 2.6 in both. */
function immichStatus(url: URL, body: string): number {
  if (url.pathname === "/api/shared-links/login") return JSON.parse(body).password === PASSWORD ? 201 : 401;
  if (url.pathname !== "/api/shared-links/me" || url.searchParams.get("key") === "open") return 200;
  return url.searchParams.get("password") === PASSWORD ? 200 : 401;
}

function vaultwardenStatus({ pathname }: URL, body: string): number {
  if (/^\/api\/sends\/(?:access\/\w+|\w+\/access\/file\/\w+)$/.test(pathname)) {
    const { password } = JSON.parse(body);
    return password === PASSWORD ? 200 : password === undefined ? 401 : 400;
  }
  if (pathname === "/api/two-factor/send-email-login")
    return JSON.parse(body).masterPasswordHash === PASSWORD ? 200 : 400;
  return 200;
}

let application: Server;
let respond: (url: URL, body: string) => number;
let front: EveryProtocol;
let clients = 0;

beforeAll(async () => {
  application = createServer((request: IncomingMessage, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")));
    request.on("end", () => {
      response.writeHead(respond(new URL(request.url!, "http://a"), body)).end();
    });
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  const { port } = application.address() as AddressInfo;
  const guarded = (name: string, logIns: object) => ({
    name,
    serverNames: [`${name}.example`],
    listeners: ["http", "https"],
    routes: [{ name, path: "/", action: { type: "proxy", upstream: "web" } as const }],
    passwordGuard: "all",
    logIns: logIns as never,
  });
  front = await startEveryProtocol({
    routes: [],
    config: {
      trustedProxies: ["127.0.0.1"],
      passwordGuards: { all: { wrongSecretsMax: 6, slowAfter: 3, slowMs: 60_000 } },
      upstreams: [{ name: "web", url: `http://127.0.0.1:${port}` }],
      virtualServers: [
        { ...guarded("immich", immich().clients.logIns), default: true },
        guarded("vaultwarden", vaultwarden({ directory: "/srv" }).clients.logIns),
      ],
    },
  });
});
afterAll(async () => {
  await front.close();
  application.close();
});

const PROTOCOLS = ["HTTP/1.1", "HTTP/2"] as const;

/** One request of a client that has an address of its own. */
async function send(
  protocol: (typeof PROTOCOLS)[number],
  client: number,
  of: string,
  [method, path, json]: Sent,
) {
  const body = json === undefined ? "" : JSON.stringify(json);
  const fields = {
    "x-forwarded-for": `198.51.100.${client}`,
    ...(json === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
  };
  if (protocol === "HTTP/2") {
    const session = connectHttp2(front.securePort);
    const head = { ":method": method, ":path": path, ":authority": `${of}.example`, ...fields };
    const { status } = await ask(session, head, body);
    session.destroy();
    return status;
  }
  const lines = Object.entries({ Host: `${of}.example`, Connection: "close", ...fields });
  const text = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
  return (await exchange(front.plainPort, text)).status;
}

type Sent = readonly [method: string, path: string, json?: object];

const WAYS: readonly (readonly [
  of: string,
  what: string,
  wrong: number,
  right: number,
  (password: string) => Sent,
])[] = [
  [
    "immich",
    "a link since 2.6",
    401,
    201,
    (password) => ["POST", "/api/shared-links/login?key=k", { password }],
  ],
  [
    "immich",
    "a link before 2.6",
    401,
    200,
    (password) => ["GET", `/api/shared-links/me?key=k&password=${encodeURIComponent(password)}`],
  ],
  ["vaultwarden", "a Send", 400, 200, (password) => ["POST", "/api/sends/access/abc", { password }]],
  [
    "vaultwarden",
    "a file of a Send",
    400,
    200,
    (password) => ["POST", "/api/sends/abc/access/file/f1", { password }],
  ],
  [
    "vaultwarden",
    "a code by mail",
    400,
    200,
    (masterPasswordHash) => [
      "POST",
      "/api/two-factor/send-email-login",
      { email: "ada@example.org", masterPasswordHash },
    ],
  ],
];

describe.each(PROTOCOLS)("%s", (protocol) => {
  test.each(WAYS)(
    "%s: who guesses the password of %s is stopped, and who knows it is not",
    async (of, _, wrong, right, guess) => {
      respond = of === "immich" ? immichStatus : vaultwardenStatus;
      const [guesser, visitor] = [(clients += 1), (clients += 1)];
      const guesses: number[] = [];
      for (const i of [1, 2, 3, 4]) guesses.push(await send(protocol, guesser, of, guess(`guess ${i}`)));
      expect(guesses).toEqual([wrong, wrong, wrong, 429]);
      // The same one again guesses nothing.
      expect(await send(protocol, guesser, of, guess("guess 1"))).toBe(wrong);
      for (let i = 0; i < 5; i++) expect(await send(protocol, visitor, of, guess(PASSWORD))).toBe(right);
    },
  );

  test("a link that needs no password, and one that is opened before it is given, count at most once", async () => {
    const client = (clients += 1);
    respond = immichStatus;
    for (let i = 0; i < 8; i++)
      expect(await send(protocol, client, "immich", ["GET", "/api/shared-links/me?key=protected"])).toBe(401);
    expect(await send(protocol, client, "immich", ["GET", "/api/shared-links/me?key=open"])).toBe(200);
    respond = vaultwardenStatus;
    for (let i = 0; i < 8; i++)
      expect(await send(protocol, client, "vaultwarden", ["POST", `/api/sends/access/a${i}`, {}])).toBe(401);
    const given: Sent = ["POST", "/api/sends/access/a1", { password: PASSWORD }];
    expect(await send(protocol, client, "vaultwarden", given)).toBe(200);
  });
});
