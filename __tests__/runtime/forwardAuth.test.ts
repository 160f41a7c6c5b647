import { scryptSync } from "node:crypto";
import { hashText } from "../../src/model/serving.js";
import { totalOf } from "../../src/runtime/counting/counts.js";
import { statusesOver } from "../../testkit/bothProtocols.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Signing on at a portal (forwardAuth), on the wire: who comes in, and what the portal and upstreams are told. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SWITCHED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const SIGN_ON = "https://auth.example/?rd=x";

const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");
const SALT = unpadded(Buffer.from("salt of 16 bytes"));
const HASH = unpadded(scryptSync("wonderland", "salt of 16 bytes", 32, { N: 2 ** 10, r: 8, p: 1 }));

let upstream: RawUpstream;
let portal: RawUpstream;
let front: EveryProtocol;
/** Requests that reached the application, and the portal. */
let asked: string[];
let questions: string[];
/** Connections to the portal so far. */
let connections = 0;
/** Connections that were closed with a question that waits for long. */
let gone = 0;

/** Follows the convention: a session comes in by a cookie, and everyone else is sent to the page that signs on. */
function respond(question: string): string | undefined {
  const user = /^cookie: .*session=([a-z]+)/im.exec(question)?.[1];
  const uri = /^(?:x-forwarded-uri|x-original-url): (\S*)/im.exec(question)?.[1] ?? "";
  if (/silent|patient/.test(uri)) return undefined;
  if (uri.includes("dripping")) return "HTTP/1.1 200 OK\r\nX-Slow: ";
  if (uri.includes("broken")) return "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
  if (uri.includes("garbage")) return "no response\r\n\r\n";
  if (uri.includes("unchanged")) return "HTTP/1.1 304 Not Modified\r\n\r\n";
  if (uri.includes("cut")) return "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
  if (uri.includes("ntlm"))
    return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n";
  if (uri.includes("hugehead")) return `HTTP/1.1 200 OK\r\nX-Big: ${"x".repeat(200_000)}\r\n\r\n`;
  if (uri.includes("hugebody"))
    return `HTTP/1.1 403 Forbidden\r\nContent-Length: 300000\r\n\r\n${"x".repeat(300_000)}`;
  if (uri.includes("hugewelcome"))
    return `HTTP/1.1 200 OK\r\nRemote-User: alice\r\nContent-Length: 300000\r\n\r\n${"x".repeat(300_000)}`;
  if (uri.includes("forbidden"))
    return (
      "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nX-Secret: 1\r\nServer: portal\r\n" +
      "Content-Length: 8\r\n\r\nnot you!"
    );
  if (uri.includes("basic"))
    return 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="a"\r\nContent-Length: 0\r\n\r\n';
  if (user === undefined)
    return (
      `HTTP/1.1 302 Found\r\nLocation: ${SIGN_ON}\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n` +
      "Content-Length: 5\r\n\r\nmoved"
    );
  const renewed = uri.includes("renewed") ? "Set-Cookie: session=alice2; Path=/\r\nset-cookie: b=2\r\n" : "";
  return (
    `HTTP/1.1 200 OK\r\n${renewed}Remote-User: ${user}\r\nRemote-Groups: a\r\nRemote-Groups: b\r\n` +
    "Remote-Email: x\r\nX-Other: 1\r\nContent-Length: 2\r\n\r\nin"
  );
}

beforeAll(async () => {
  upstream = await new RawUpstream((peer) => {
    peer.socket.on("data", (chunk: Buffer) => {
      const request = chunk.toString("latin1");
      asked.push(request);
      peer.send(/^upgrade: /im.test(request) ? SWITCHED : OK);
    });
  }).listen();
  portal = await new RawUpstream((peer) => {
    connections++;
    peer.socket.on("data", (chunk: Buffer) => {
      const question = chunk.toString("latin1");
      questions.push(question);
      if (question.includes("/patient")) peer.socket.on("close", () => gone++);
      // As if it had closed the connection just as the question went out.
      const isUsed = peer.received.length > chunk.length;
      if (question.includes("/stale") && isUsed) peer.socket.destroy();
      const response = respond(question);
      if (response !== undefined) peer.send(response);
      if (question.includes("/cut")) peer.socket.end();
      if (!question.includes("/dripping")) return;
      const drip = setInterval(() => peer.send("x"), 20);
      peer.socket.on("close", () => clearInterval(drip));
    });
  }).listen();
  const proxied = { type: "proxy", upstream: "web" } as const;
  const url = `http://127.0.0.1:${portal.port}/api/authz?a=b`;
  const copyFields = ["Remote-User", "Remote-Groups", "Remote-Name"];
  // On a busy machine a response may take any time.
  const timeoutMs = 60_000;
  front = await startEveryProtocol({
    format: "json",
    routes: [
      { name: "web", path: "/", action: proxied },
      {
        ...{ name: "closed", path: "/closed", access: "site" },
        action: { ...proxied, upgrades: ["websocket"] },
      },
      {
        ...{ name: "fixed", path: "/fixed", access: "site" },
        action: { type: "respond", status: 200, body: "fixed" },
      },
      { name: "nginx", path: "/nginx", access: "nginx", action: proxied },
      { name: "hasty", path: "/hasty", access: "hasty", action: proxied },
      { name: "down", path: "/down", access: "down", action: proxied },
      { name: "home", path: "/home", access: "home", action: proxied },
      { name: "patient", path: "/patient", access: "patient", action: proxied },
      { name: "password", path: "/password", access: "password", action: proxied },
      { name: "kept", path: "/closed/kept", access: "site", action: { ...proxied, keepFields: ["api_key"] } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    config: {
      trustedProxies: ["127.0.0.1"],
      accessPolicies: {
        site: { forwardAuth: { url, copyFields, timeoutMs, bypass: ["/closed/api"] } },
        nginx: { forwardAuth: { url, copyFields, timeoutMs, convention: "nginx" } },
        hasty: { forwardAuth: { url, timeoutMs: 300 } },
        down: { forwardAuth: { url: `http://127.0.0.1:${await freePort()}/`, copyFields } },
        patient: { forwardAuth: { url, timeoutMs: 600_000 } },
        password: { basic: { usersFile: "/users", userField: "X-Remote-User" } },
        home: { allow: ["192.168.0.0/16"], forwardAuth: { url } },
      },
    },
    users: {
      "/users": [["alice", hashText({ kind: "scrypt", ln: 10, r: 8, p: 1, salt: SALT, hash: HASH })]],
    },
  });
});
beforeEach(() => {
  asked = [];
  questions = [];
});
afterAll(async () => {
  expect(front.serving.faults.count).toBe(0);
  await front.close();
  await upstream.close();
  await portal.close();
});

const head = (target: string, lines: readonly string[] = [], method = "GET"): string =>
  `${method} ${target} HTTP/1.1\r\nHost: app.example:8443\r\n${lines.map((one) => `${one}\r\n`).join("")}\r\n`;

const CLOSE = "Connection: close";
const ALICE = "Cookie: session=alice";

const statuses = (target: string, cookie?: string): Promise<readonly number[]> =>
  statusesOver(front, target, cookie === undefined ? {} : { cookie });

test.each<[string, string, string | undefined, number, number]>([
  ["a session", "/closed", "session=alice", 200, 1],
  ["no session", "/closed", undefined, 302, 0],
  ["no session, in another spelling", "/x/..;/closed", undefined, 302, 0],
  ["no session, at an open route", "/", undefined, 200, 1],
  ["a refusal", "/closed/forbidden", "session=alice", 403, 0],
  ["a password that is asked for", "/closed/basic", undefined, 401, 0],
  ["a response of 500", "/closed/broken", "session=alice", 502, 0],
  ["no response of HTTP", "/closed/garbage", "session=alice", 502, 0],
  ["a response of 304", "/closed/unchanged", "session=alice", 502, 0],
  ["a response that is cut off", "/closed/cut", "session=alice", 502, 0],
  ["a log-in of the connection", "/closed/ntlm", undefined, 502, 0],
  ["no response in time", "/hasty/silent", "session=alice", 503, 0],
  ["a response in bytes now and then", "/hasty/dripping", "session=alice", 503, 0],
  ["a head without end", "/closed/hugehead", "session=alice", 502, 0],
  ["a refusal that is too long", "/closed/hugebody", "session=alice", 403, 0],
  ["a welcome that is too long", "/closed/hugewelcome", undefined, 200, 1],
  ["a portal that is down", "/down", "session=alice", 502, 0],
  ["an address that is refused", "/home", "session=alice", 403, 0],
  ["a path of programs", "/closed/api/x", undefined, 200, 1],
  ["the path of programs itself", "/closed/api", undefined, 200, 1],
  ["a path that begins with the same letters", "/closed/apix", undefined, 302, 0],
  ["a way out of the path of programs", "/closed/api/..;/x", undefined, 302, 0],
  ["the same, encoded twice", "/closed/api/%252e%252e/x", undefined, 302, 0],
  ["the same, resolved", "/closed/api/../x", undefined, 302, 0],
  ["a way to it", "/closed/x/../api/y", undefined, 302, 0],
])("over every protocol: %s", async (_, target, cookie, status, reached) => {
  expect(await statuses(target, cookie)).toEqual([status, status]);
  expect(asked).toHaveLength(2 * reached);
});

test("the portal is told of the request, in the convention's fields, and by none of the client's", async () => {
  const spoofed = [
    ...["X-Forwarded-Uri: /x", "X-Forwarded-Host: evil", "X-Original-URL: /x", "Remote-User: root"],
    ...["X_Forwarded_Uri: /x", "X-Forwarded-Method: OPTIONS", "x.forwarded.uri: /x"],
    ...["Accept-Encoding: gzip", 'If-None-Match: "a"', "Range: bytes=0-1", "Connection: close, x-hop"],
    ...["X-Hop: 1", "Accept: text/html", "Authorization: Bearer x", ALICE],
  ];
  const body = ["Content-Length: 3", "Content-Type: text/plain"];
  await exchange(front.plainPort, `${head("/closed/a?b=c", [...spoofed, ...body], "PUT")}abc`);
  const lines = (text: string) => text.trimEnd().split("\r\n");
  expect(lines(questions[0]!)).toEqual([
    "GET /api/authz?a=b HTTP/1.1",
    `Host: 127.0.0.1:${portal.port}`,
    "X-Forwarded-Method: PUT",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Host: app.example:8443",
    "X-Forwarded-Uri: /closed/a?b=c",
    "X-Forwarded-For: 127.0.0.1",
    "Accept: text/html",
    "Authorization: Bearer x",
    ALICE,
  ]);
  await exchange(front.plainPort, head("/nginx/a?b=c", [...spoofed], "PUT"));
  expect(lines(questions[1]!).slice(2, 6)).toEqual([
    "X-Original-URL: http://app.example:8443/nginx/a?b=c",
    "X-Original-Method: PUT",
    "X-Forwarded-For: 127.0.0.1",
    "Accept: text/html",
  ]);
});

const SPELLINGS = [
  "Remote-User",
  "remote-user",
  "Remote_User",
  "REMOTE.USER",
  "remote-User_",
  "Remote_Groups",
];

test.each(["/", "/closed/api/x", "/closed/kept", "/closed"])(
  "the upstream gets the portal's fields only, at %s",
  async (target) => {
    const spoofed = [...SPELLINGS, "Remote-Name", "remote_name"].map((name) => `${name}: mallory`);
    await exchange(front.plainPort, head(target, [...spoofed, ALICE, CLOSE]));
    const session = connectHttp2(front.securePort);
    const fields = Object.fromEntries(
      [...SPELLINGS, "remote_name"].map((one) => [one.toLowerCase(), "mallory"]),
    );
    await ask(session, { ":path": target, cookie: "session=alice", ...fields });
    session.destroy();
    expect(asked).toHaveLength(2);
    const isAsked = questions.length > 0;
    for (const request of asked) {
      expect(request).not.toContain("mallory");
      expect(request.match(/^remote.*$/gim) ?? []).toEqual(
        isAsked ? ["Remote-User: alice\r", "Remote-Groups: a, b\r"].map((one) => one.trimEnd()) : [],
      );
      expect(request).not.toMatch(/x-other|remote-email/i);
    }
  },
);

test("a refusal reaches the client with what it needs, and nothing else", async () => {
  const moved = await exchange(front.plainPort, head("/closed", [CLOSE]));
  expect(moved).toMatchObject({ status: 302, reason: "Found", body: "moved" });
  expect(moved.headers).toMatchObject({ location: SIGN_ON, "cache-control": "no-store" });
  expect(moved.head).toContain("\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n");
  const forbidden = await exchange(front.plainPort, head("/closed/forbidden", [CLOSE]));
  expect(forbidden).toMatchObject({ body: "not you!", headers: { "content-type": "text/plain" } });
  expect(forbidden.head).not.toMatch(/X-Secret|Server: portal/);
  const asksForPassword = await exchange(front.plainPort, head("/closed/basic", [CLOSE]));
  expect(asksForPassword.headers).toMatchObject({ "www-authenticate": 'Basic realm="a"' });
  const huge = await exchange(front.plainPort, head("/closed/hugebody", [CLOSE]));
  expect(huge).toMatchObject({ body: "", headers: { "content-length": "0" } });
  const client = await connectTo(front.plainPort);
  client.send(head("/closed", [CLOSE], "HEAD"));
  await client.until(({ ended, closed }) => ended || closed);
  expect(client.received).toMatch(/Content-Length: 5\r\n.*\r\n\r\n$/s);
  client.socket.destroy();
});

test.each(["/closed/renewed", "/fixed/renewed"])(
  "a session that the portal renews reaches the client, at %s",
  async (target) => {
    const plain = await exchange(front.plainPort, head(target, [ALICE, CLOSE]));
    expect(plain.status).toBe(200);
    expect(plain.head).toContain(
      "\r\nSet-Cookie: session=alice2; Path=/\r\nset-cookie: b=2\r\nCache-Control: private",
    );
    const session = connectHttp2(front.securePort);
    const { status, headers } = await ask(session, { ":path": target, cookie: "session=alice" });
    session.destroy();
    expect([status, headers["set-cookie"], headers["cache-control"]]).toEqual([
      ...[200, ["session=alice2; Path=/", "b=2"], "private"],
    ]);
    const unchanged = await exchange(front.plainPort, head("/fixed", [ALICE, CLOSE]));
    expect(unchanged.head).not.toMatch(/set-cookie|cache-control/i);
  },
);

test("users take turns on one connection to the portal, and each gets the own name", async () => {
  await exchange(front.plainPort, head("/closed", [ALICE, CLOSE]));
  const before = connections;
  asked = [];
  for (const user of ["alice", "bob", "carol"])
    await exchange(front.plainPort, head("/closed", [`Cookie: session=${user}`, CLOSE]));
  const users = asked.map((request) => /^Remote-User: (.*)\r$/m.exec(request)?.[1]);
  expect(users).toEqual(["alice", "bob", "carol"]);
  expect(connections).toBe(before);
});

test("a client that leaves takes its question along, and the portal's connection with it", async () => {
  const before = gone;
  const client = await connectTo(front.plainPort);
  client.send(head("/patient", [ALICE]));
  await eventually(() => questions.length === 1);
  client.socket.destroy();
  await eventually(() => gone > before);
  const session = connectHttp2(front.securePort);
  const stream = session.request({ ":path": "/patient" });
  stream.on("error", () => undefined);
  await eventually(() => questions.length === 2);
  const between = gone;
  stream.close(8);
  await eventually(() => gone > between);
  session.destroy();
  expect(asked).toEqual([]);
});

test("a connection that the portal closed is replaced, once", async () => {
  await exchange(front.plainPort, head("/closed", [ALICE, CLOSE]));
  const { status } = await exchange(front.plainPort, head("/closed/stale", [ALICE, CLOSE]));
  expect(status).toBe(200);
  expect(asked).toHaveLength(2);
});

test("a path that two policies may mean has to pass both, and the portal gets no password of the other", async () => {
  const target = "/password/..;/closed";
  const authorization = `Authorization: Basic ${Buffer.from("alice:wonderland").toString("base64")}`;
  const of = async (...lines: string[]) =>
    (await exchange(front.plainPort, head(target, [...lines, CLOSE]))).status;
  expect(await of(ALICE)).toBe(401);
  expect(await of(authorization)).toBe(302);
  expect(await of(authorization, ALICE)).toBe(200);
  expect(asked).toHaveLength(1);
  expect(asked[0]).toMatch(/\r\nX-Remote-User: alice\r\nRemote-User: alice\r\nRemote-Groups: a, b\r\n/);
  expect([...asked, ...questions].filter((one) => /authorization/i.test(one))).toEqual([]);
});

test("a tunnel begins only after the portal lets it in", async () => {
  const websocket = [
    ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const refused = await exchange(front.plainPort, head("/closed/socket", websocket));
  expect([refused.status, asked]).toEqual([302, []]);
  const client = await connectTo(front.plainPort);
  client.send(head("/closed/socket/renewed", [...websocket, "Cookie: session=alice"]));
  await client.receives("HTTP/1.1 101 ");
  await client.receives("\r\nSet-Cookie: session=alice2; Path=/\r\n");
  client.socket.destroy();
  expect(asked[0]).toMatch(/\r\nRemote-User: alice\r\n/);
  expect(questions.filter((one) => /upgrade|sec-websocket-accept/i.test(one))).toEqual([]);
});

test("an upload is asked for only after the portal lets it in", async () => {
  const upload = (cookie: string): string =>
    head("/closed/up", [cookie, "Content-Length: 4", "Expect: 100-continue", CLOSE], "PUT");
  const refused = await exchange(front.plainPort, upload("Cookie: none"));
  expect(refused.status).toBe(302);
  const client = await connectTo(front.plainPort);
  client.send(upload(ALICE));
  await client.receives("HTTP/1.1 100 Continue");
  expect(questions).toHaveLength(2);
  client.send("abcd");
  await client.receives("HTTP/1.1 200 OK");
  client.socket.destroy();
  expect(questions.filter((one) => /abcd|content-length|expect/i.test(one))).toEqual([]);
});

test("logs and metrics name the policy", async () => {
  front.serving.counts.changes();
  await statuses("/closed/forbidden");
  await statuses("/down");
  await eventually(async () => /"access":"down forwardAuth"/.test(await front.accessLog()));
  expect(await front.accessLog()).toContain('"access":"site forwardAuth"');
  const counts = front.serving.counts.changes()!;
  for (const policy of ["site", "down"])
    expect(totalOf(counts, "accessRefused", { policy, reason: "forwardAuth" })).toBe(2);
  const errors = await front.errorLog();
  expect(errors).toMatch(/access="site forwardAuth": the portal responded with 403/);
  expect(errors).toMatch(/access="down forwardAuth": connect\(\) failed/);
});
