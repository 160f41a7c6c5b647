import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { once } from "node:events";
import { type EveryProtocol, startEveryProtocol } from "../../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../../testkit/http2Session.js";
import { KeepAliveClient } from "../../../testkit/keepAliveClient.js";
import { connectTo, exchange } from "../../../testkit/peers.js";

/** Guards against guessing, on the wire, before an application with three kinds of log-in. */

const PASSWORD = "correct horse";
const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

/** Bodies that the application got. */
let bodies: string[];

function respond(request: IncomingMessage, response: ServerResponse, body: string): void {
  const path = request
    .url!.split("?")[0]!
    .toLowerCase()
    .replace(/\/{2,}/g, "/");
  const isForm = request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded");
  bodies.push(body);
  if (path === "/login") {
    const location =
      isForm && new URLSearchParams(body).get("password") === PASSWORD ? "/home" : "/login?failed";
    return void response.writeHead(303, { Location: location }).end();
  }
  if (path === "/api/login")
    return void response.writeHead(JSON.parse(body).password === PASSWORD ? 200 : 401).end("{}");
  if (path.startsWith("/dav")) {
    const right = request.headers.authorization === basic("ada", PASSWORD);
    return void response.writeHead(right ? 200 : 401).end("dav");
  }
  response.writeHead(request.method === "POST" && path === "/broken" ? 500 : 200).end(String(body.length));
}

let application: Server;
let front: EveryProtocol;
let clients = 0;

beforeAll(async () => {
  application = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
    request.on("end", () => respond(request, response, body));
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  const { port } = application.address() as AddressInfo;
  front = await startEveryProtocol({
    routes: [],
    format: "json",
    config: {
      trustedProxies: ["127.0.0.1"],
      passwordGuards: { web: { wrongSecretsMax: 6, slowAfter: 3, slowMs: 60_000 } },
      upstreams: [{ name: "web", url: `http://127.0.0.1:${port}` }],
      virtualServers: [
        {
          name: "application",
          serverNames: ["_"],
          default: true,
          listeners: ["http", "https"],
          routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
          passwordGuard: "web",
          logIns: [
            {
              ...{ method: "POST", path: "/login", secret: "body", changing: ["token"] },
              ...{ accountField: "user", passwordField: "password", failed: [303], failedLocation: "/login" },
            },
            { method: "POST", path: "/api/login", secret: "body", changing: ["state"], failed: [401] },
            { method: "POST", path: "/broken", secret: "body", failed: [401] },
            {
              ...{ method: "POST", path: "/token", secret: "body", failed: [400] },
              renewal: { field: "grant_type", value: "refresh_token" },
            },
            { path: "/socket", secret: "body", failed: [401] },
            { path: "/dav", match: "segment", secret: "authorization", failed: [401] },
          ],
        },
      ],
    },
  });
});
beforeEach(() => {
  bodies = [];
  clients += 1;
});
afterAll(async () => {
  expect(front.serving.faults.count).toBe(0);
  await front.close();
  application.close();
  application.closeAllConnections();
});

/** Another client in each test. */
const client = (): string => `198.51.100.${clients}`;

type Try = (
  password: string,
  more?: { readonly target?: string; readonly noise?: string },
) => Promise<number>;

async function plain(method: string, target: string, fields: string, body = ""): Promise<number> {
  const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
  const head = `${method} ${target} HTTP/1.1\r\nHost: app.example\r\nX-Forwarded-For: ${client()}\r\n`;
  return (await exchange(front.plainPort, `${head}${fields}${length}Connection: close\r\n\r\n${body}`))
    .status;
}

async function framed(headers: Record<string, string>, body?: string): Promise<number> {
  const session = connectHttp2(front.securePort);
  const { status } = await ask(session, { "x-forwarded-for": client(), ...headers }, body);
  session.destroy();
  return status;
}

const form = (password: string, noise = "0"): string =>
  `user=ada&token=${noise}&password=${encodeURIComponent(password)}`;
const json = (password: string, noise = "0"): string =>
  JSON.stringify({ user: "ada", state: noise, password, hello: [{ state: 1 }] });
const FORM = "application/x-www-form-urlencoded";

const KINDS: Readonly<Record<string, Try>> = {
  "a form": (password, { target = "/login", noise } = {}) =>
    plain("POST", target, `Content-Type: ${FORM}\r\n`, form(password, noise)),
  JSON: (password, { target = "/api/login", noise } = {}) =>
    plain("POST", target, "Content-Type: application/json\r\n", json(password, noise)),
  Basic: (password, { target = "/dav/a" } = {}) =>
    plain("PROPFIND", target, `Authorization: ${basic("ada", password)}\r\n`),
  "a form over HTTP/2": (password, { target = "/login", noise } = {}) =>
    framed({ ":method": "POST", ":path": target, "content-type": FORM }, form(password, noise)),
  "JSON over HTTP/2": (password, { target = "/api/login", noise } = {}) =>
    framed({ ":method": "POST", ":path": target, "content-type": "application/json" }, json(password, noise)),
  "Basic over HTTP/2": (password, { target = "/dav/a" } = {}) =>
    framed({ ":method": "PROPFIND", ":path": target, authorization: basic("ada", password) }),
};

describe.each(Object.entries(KINDS))("log-ins by %s", (kind, attempt) => {
  const wrong = kind.startsWith("a form") ? 303 : 401;
  const right = kind.startsWith("a form") ? 303 : 200;

  test("new passwords are refused, those that were tried are not", async () => {
    for (const password of ["a", "b", "c"]) expect(await attempt(password)).toBe(wrong);
    expect(await attempt("d")).toBe(429);
    for (let again = 0; again < 20; again += 1) expect(await attempt("b", { noise: `${again}` })).toBe(wrong);
    expect(await attempt(PASSWORD)).toBe(429);
    expect(await plain("GET", "/page", "")).toBe(200);
  });

  test("whoever is logged in goes on", async () => {
    expect(await attempt(PASSWORD)).toBe(right);
    // Three times the allowance.
    for (let guess = 0; guess < 9; guess += 1) expect(await attempt(`${guess}`)).toBe(wrong);
    expect(await attempt("10")).toBe(429);
    expect(await attempt(PASSWORD)).toBe(right);
  });
});

test.each(["//login", "/%6cogin", "/x/../login", "/LOGIN", "/login/"])(
  "%s is a log-in as well",
  async (target) => {
    const guess = KINDS["a form"]!;
    for (const password of ["a", "b", "c"]) await guess(password);
    expect(await guess("d", { target })).toBe(429);
  },
);

test("a secret in the query, in another encoding or beside another of its name is another one", async () => {
  const json = (body: string) => plain("POST", "/api/login", "Content-Type: application/json\r\n", body);
  await json('{"password":"a"}');
  await json('{"password":"b","password":"a"}');
  await plain("POST", "/api/login?password=c", "Content-Type: application/json\r\n", '{"password":"a"}');
  expect(await json('{"Password":"d","password":"a"}')).toBe(429);
  expect(await json('{"password":"b","password":"a"}')).toBe(401);
});

const encoded = (guess: string): string => Buffer.from(`ada:${guess}`).toString("base64");
const hidden = (guess: string): string => `{"a":"&state=x","user":"ada","password":"${guess}"}`;

test.each<[string, (guess: string) => Promise<number>]>([
  [
    "JSON that says that it is a form",
    (guess) => plain("POST", "/api/login", `Content-Type: ${FORM}\r\n`, hidden(guess)),
  ],
  [
    "JSON that says that it is both",
    (guess) =>
      plain(
        "POST",
        "/api/login",
        `Content-Type: ${FORM}\r\nContent-Type: application/json\r\n`,
        hidden(guess),
      ),
  ],
  [
    "a form in another charset",
    (guess) => plain("POST", "/login", `Content-Type: ${FORM}; charset=cp037\r\n`, `token=${guess}`),
  ],
  ["Basic without a space", (guess) => plain("GET", "/dav/a", `Authorization: Basic${encoded(guess)}\r\n`)],
  ["Basic with a tab", (guess) => plain("GET", "/dav/a", `Authorization: Basic\t${encoded(guess)}\r\n`)],
  [
    "Basic behind another word",
    (guess) => plain("GET", "/dav/a", `Authorization: x Basic ${encoded(guess)}\r\n`),
  ],
  [
    "the field that Nextcloud reads as well",
    (guess) => plain("GET", "/dav/a", `XAuthorization: Basic ${encoded(guess)}\r\n`),
  ],
])("%s hides no guess", async (_, attempt) => {
  for (const guess of ["a", "b", "c"]) expect(await attempt(guess)).not.toBe(429);
  expect(await attempt("d")).toBe(429);
  expect(await attempt("a")).not.toBe(429);
});

test("a session is renewed at an address that guesses; a password beside that is a guess", async () => {
  for (const password of ["a", "b", "c"]) await KINDS.JSON!(password);
  const token = (body: string) => plain("POST", "/token", `Content-Type: ${FORM}\r\n`, body);
  for (let turn = 0; turn < 5; turn += 1)
    expect(await token(`grant_type=refresh_token&refresh_token=${turn}`)).toBe(200);
  for (const more of ["&password=x", "&PassWord=x", "&grant_type=password", "&%70assword=x", ";password=x"])
    expect([more, await token(`grant_type=refresh_token&refresh_token=1${more}`)]).toEqual([more, 429]);
});

test("a long body comes through whole, and counts as another secret each time", async () => {
  const long = `${form("a")}&more=${"x".repeat(300_000)}`;
  const send = () => plain("POST", "/login", `Content-Type: ${FORM}\r\n`, long);
  expect(await send()).toBe(303);
  expect(bodies).toEqual([long]);
  expect([await send(), await send(), await send()]).toEqual([303, 303, 429]);
});

test("a body in pieces, after 100 Continue, is held until its secret is known", async () => {
  const peer = await connectTo(front.plainPort);
  const body = form("a");
  peer.send(
    `POST /login HTTP/1.1\r\nHost: app.example\r\nX-Forwarded-For: ${client()}\r\nContent-Type: ${FORM}\r\n` +
      `Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n`,
  );
  await peer.receives(/100 Continue/);
  for (const letter of body) peer.send(`1\r\n${letter}\r\n`);
  peer.send("0\r\n\r\n");
  await peer.receives(/303 See Other/);
  expect(bodies).toEqual([body]);
  peer.socket.destroy();
});

test("what may be a log-in by any method holds no tunnel, whose bytes end with it", async () => {
  const upgraded = once(application, "upgrade") as Promise<[IncomingMessage, Socket]>;
  const session = connectHttp2(front.securePort);
  await once(session, "remoteSettings");
  const tunnel = { ":method": "CONNECT", ":protocol": "websocket", ":authority": "app.example" };
  const stream = session.request({ ...tunnel, ":path": "/socket" }, { endStream: false });
  const [, socket] = await upgraded;
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const [response] = (await once(stream, "response")) as [{ ":status": number }];
  expect(response[":status"]).toBe(200);
  stream.write("ping");
  const [chunk] = (await once(socket, "data")) as [Buffer];
  expect(chunk.toString()).toBe("ping");
  session.destroy();
  socket.destroy();
});

test("a response that tells nothing about the secret does not count", async () => {
  for (let guess = 0; guess < 10; guess += 1)
    expect(await plain("POST", "/broken", "", `password=${guess}`)).toBe(500);
});

test("requests without a secret are no log-ins", async () => {
  for (let request = 0; request < 10; request += 1) {
    expect(await plain("PROPFIND", "/dav/a", "")).toBe(401);
    expect(await plain("PROPFIND", "/dav/a", `Authorization: Bearer ${request}\r\n`)).toBe(401);
  }
});

test("after a refusal, also of a body that was not read, the connection goes on", async () => {
  for (const password of ["a", "b", "c"]) await KINDS["Basic"]!(password);
  const peer = await KeepAliveClient.connect(front.plainPort);
  const head = `Host: app.example\r\nX-Forwarded-For: ${client()}\r\n`;
  const guess = `Authorization: ${basic("ada", "d")}\r\nContent-Length: 30000\r\n`;
  peer.socket.write(`PUT /dav/a HTTP/1.1\r\n${head}${guess}\r\n${"x".repeat(30_000)}`);
  const refused = await peer.response();
  expect([refused.status, /^retry-after: (\d+)/im.exec(refused.head)?.[1]]).toEqual([429, "60"]);
  peer.socket.write(`GET /page HTTP/1.1\r\n${head}\r\n`);
  expect((await peer.response()).status).toBe(200);
  peer.socket.destroy();
});

test("logs and metrics name the guard, and no secret", async () => {
  const attempt = KINDS["Basic"]!;
  for (const password of ["secret1", "secret2", "secret3", "secret4"]) await attempt(password);
  const [errors, access] = [await front.errorLog(), await front.accessLog()];
  expect(errors).toContain('passwordGuard="web slowed": a new secret is not tried for 60 s');
  expect(access).toContain('"passwordGuard":"web slowed"');
  for (const text of [errors, access]) expect(text).not.toMatch(/secret\d|c2VjcmV0/);
  expect(JSON.stringify(front.serving.counts.changes())).toContain("logInsRefused");
});
