import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scryptSync } from "node:crypto";
import { hashText, type Users } from "../../src/model/serving.js";
import { statusesOver } from "../../testkit/bothProtocols.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Who passes Basic authentication (RFC 7617), and what upstreams are told of it, on the wire. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");

function line(name: string, password: string): Users[number] {
  const salt = Buffer.from(`salt of ${name} `.padEnd(16, "x"));
  const hash = scryptSync(password, salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  const text = hashText({ kind: "scrypt", ln: 10, r: 8, p: 1, salt: unpadded(salt), hash: unpadded(hash) });
  return [name, text];
}

const basic = (user: string, password: string, encoding: BufferEncoding = "utf8"): string =>
  `Basic ${Buffer.from(`${user}:${password}`, encoding).toString("base64")}`;

const ALICE = basic("alice", "wonderland");

let upstream: RawUpstream;
let front: EveryProtocol;
let asked: string[];

beforeAll(async () => {
  upstream = await new RawUpstream((peer) => {
    peer.socket.on("data", (chunk: Buffer) => {
      asked.push(chunk.toString("utf8"));
      peer.send(OK);
    });
  }).listen();
  const proxied = { type: "proxy", upstream: "web" } as const;
  front = await startEveryProtocol({
    routes: [
      { name: "web", path: "/", action: proxied },
      { name: "users", path: "/users", access: "users", action: proxied },
      {
        name: "open",
        path: "/trusting",
        access: "users",
        action: { ...proxied, trustedFields: ["Remote-User"], keepFields: ["api_key"] },
      },
      { name: "plain", path: "/plain", access: "plain", action: proxied },
      { name: "passing", path: "/passing", access: "passing", action: proxied },
      { name: "empty", path: "/empty", access: "empty", action: proxied },
      { name: "home", path: "/home", access: "home", action: proxied },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    config: {
      trustedProxies: ["127.0.0.1"],
      accessPolicies: {
        users: { basic: { usersFile: "/users", realm: "Family", userField: "Remote-User" } },
        plain: { basic: { usersFile: "/users" } },
        passing: { basic: { usersFile: "/users", passOn: true } },
        empty: { basic: { usersFile: "/nobody" } },
        home: { allow: ["192.168.0.0/16"], basic: { usersFile: "/users" } },
      },
    },
    users: {
      "/nobody": [],
      "/users": [
        line("alice", "wonderland"),
        line("bob", "a:b c"),
        line("zoë", "grüße"),
        line("__proto__", "x"),
      ],
    },
  });
});
beforeEach(() => (asked = []));
afterAll(async () => {
  expect(front.serving.faults.count).toBe(0);
  await front.close();
  await upstream.close();
});

const head = (target: string, lines: readonly string[] = []): string =>
  `GET ${target} HTTP/1.1\r\nHost: app.example\r\n${lines.map((one) => `${one}\r\n`).join("")}\r\n`;

const CLOSE = "Connection: close";

const statuses = (target: string, authorization?: string): Promise<readonly number[]> =>
  statusesOver(front, target, authorization === undefined ? {} : { authorization });

test.each<[string, string | undefined, number]>([
  ["nothing", undefined, 401],
  ["the right password", ALICE, 200],
  ["the scheme in another case, and more blanks", ALICE.replace("Basic ", "bASIC   "), 200],
  ["a password with a colon and a blank", basic("bob", "a:b c"), 200],
  ["UTF-8", basic("zoë", "grüße"), 200],
  ["UTF-8, decomposed", basic("zoë".normalize("NFD"), "grüße".normalize("NFD")), 200],
  ["ISO 8859-1", basic("zoë", "grüße", "latin1"), 200],
  ["a name of JavaScript's", basic("__proto__", "x"), 200],
  ["another one", basic("constructor", "x"), 401],
  ["a wrong password", basic("alice", "Wonderland"), 401],
  ["no password", basic("alice", ""), 401],
  ["an unknown user", basic("mallory", "wonderland"), 401],
  ["the user in another case", basic("Alice", "wonderland"), 401],
  ["no user", basic("", "wonderland"), 401],
  ["a stored hash as the password", basic("alice", line("alice", "wonderland")[1]), 401],
  ["no colon", `Basic ${Buffer.from("alice").toString("base64")}`, 401],
  ["no base64", "Basic alice:wonderland", 401],
  ["a zero byte", basic("alice", "wonderland\0"), 401],
  ["another scheme", ALICE.replace("Basic", "Bearer"), 401],
  ["two in one", `${ALICE}, ${ALICE}`, 401],
  ["a long one", basic("alice", "x".repeat(3_500)), 401],
])("%s", async (_, authorization, status) => {
  expect(await statuses("/plain", authorization)).toEqual([status, status]);
  expect(asked).toHaveLength(status === 200 ? 2 : 0);
  expect(asked.join("")).not.toMatch(/authorization/i);
});

test("the challenge names the realm, and the address comes first", async () => {
  const { headers } = await exchange(front.plainPort, head("/users", [CLOSE]));
  expect(headers["www-authenticate"]).toBe('Basic realm="Family", charset="UTF-8"');
  expect(await statuses("/home", ALICE)).toEqual([403, 403]);
  expect(await statuses("/empty", ALICE)).toEqual([401, 401]);
  expect(await statuses("/", undefined)).toEqual([200, 200]);
});

test.each(["//users", "/%75sers", "/x/../users", "/USERS", "/users;a", "/x/..;/users", "/users."])(
  "%s is closed as well",
  async (target) => {
    expect(await statuses(target)).toEqual([401, 401]);
    expect(await statuses(target, ALICE)).toEqual([200, 200]);
  },
);

const SPELLINGS = [
  "Remote-User",
  "remote-user",
  "REMOTE-USER",
  "Remote_User",
  "remote.user",
  "Remote-User-",
  "remote~user",
];

test.each(SPELLINGS)("%s of a client gets to no upstream, whoever sends it", async (name) => {
  for (const target of ["/", "/users", "/trusting", "/plain"]) {
    const lines = [`${name}: bob`, `Authorization: ${ALICE}`];
    expect((await exchange(front.plainPort, head(target, [...lines, CLOSE]))).status).toBe(200);
    const session = connectHttp2(front.securePort);
    await ask(session, { ":path": target, [name.toLowerCase()]: "bob", authorization: ALICE });
    session.destroy();
  }
  expect(asked).toHaveLength(8);
  expect(asked.join("")).not.toMatch(/bob/);
  const named = asked.map((one) =>
    [...one.matchAll(/^remote-user: (.*)\r$/gim)].map(([, user]) => user).join(),
  );
  expect(named).toEqual(["", "", "alice", "alice", "alice", "alice", "", ""]);
});

test("each request of a connection has its own user", async () => {
  const users = [ALICE, basic("bob", "a:b c"), undefined, basic("bob", "wonderland"), ALICE];
  const client = await connectTo(front.plainPort);
  const requests = users.map((one) => head("/users", one === undefined ? [] : [`Authorization: ${one}`]));
  // Pipelined: the first waits for its verification.
  client.send(requests.join("") + head("/", [`Authorization: ${ALICE}`, CLOSE]));
  await client.until((peer) => peer.ended || peer.closed);
  const expected = [200, 200, 401, 401, 200, 200];
  expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(expected.map((one) => `HTTP/1.1 ${one}`));
  const session = connectHttp2(front.securePort);
  const framed = await Promise.all(
    users.map((one) => ask(session, { ":path": "/users", ...(one && { authorization: one }) })),
  );
  session.destroy();
  expect(framed.map(({ status }) => status)).toEqual([200, 200, 401, 401, 200]);
  const told = asked.map((one) => /^remote-user: (.*)\r$/im.exec(one)?.[1]).sort();
  expect(told).toEqual(["alice", "alice", "alice", "alice", "bob", "bob", undefined]);
  // A route without a policy keeps the application's own log-in.
  expect(asked.filter((one) => /^authorization:/im.test(one))).toHaveLength(1);
});

test("a name in UTF-8 reaches the upstream as it is, and a password does where the policy says so", async () => {
  await exchange(front.plainPort, head("/users", [`Authorization: ${basic("zoë", "grüße")}`, CLOSE]));
  await exchange(front.plainPort, head("/passing", [`Authorization: ${ALICE}`, CLOSE]));
  expect(asked[0]).toContain("\r\nRemote-User: zoë\r\n");
  expect(asked[1]).toContain(`\r\nAuthorization: ${ALICE}\r\n`);
});

test("an upload waits for the verification: no 100 and no byte to the upstream before it", async () => {
  const upload = (password: string) =>
    `PUT /plain HTTP/1.1\r\nHost: a\r\nAuthorization: ${basic("alice", password)}\r\nContent-Length: 5\r\n`;
  const refused = await connectTo(front.plainPort);
  refused.send(`${upload("first wrong one")}Expect: 100-continue\r\n\r\n`);
  await eventually(() => refused.received.includes("</html>"));
  expect(refused.received).toMatch(/^HTTP\/1\.1 401 /);
  refused.socket.destroy();
  const next = await connectTo(front.plainPort);
  next.send(`${upload("second wrong one")}\r\nhello${upload("wonderland")}\r\nhello${head("/", [CLOSE])}`);
  await next.until((peer) => peer.ended || peer.closed);
  expect(next.received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 401", "HTTP/1.1 200", "HTTP/1.1 200"]);
});

test("a flood of wrong passwords is bounded for each client and in all, and known users go on", async () => {
  expect(await statuses("/plain", ALICE)).toEqual([200, 200]);
  const session = connectHttp2(front.securePort);
  const guess = (i: number, client: string) =>
    ask(session, {
      ":path": "/plain",
      authorization: basic(`guess${i}`, `${i}`),
      "x-forwarded-for": client,
    });
  const ofOne = Array.from({ length: 20 }, (_, i) => guess(i, `2001:db8::${i}`));
  const ofMany = Array.from({ length: 90 }, (_, i) => guess(100 + i, `198.51.100.${i}`));
  let verified = 0;
  for (const one of ofMany) void one.then(({ status }) => (verified += status === 401 ? 1 : 0));
  expect((await ask(session, { ":path": "/plain", authorization: ALICE })).status).toBe(200);
  expect(verified).toBeLessThan(20);
  const tally = (all: readonly { readonly status: number }[], status: number): number =>
    all.filter((one) => one.status === status).length;
  const [one, many] = [await Promise.all(ofOne), await Promise.all(ofMany)];
  session.destroy();
  expect([tally(one, 401), tally(one, 429)]).toEqual([4, 16]);
  expect(tally(many, 401) + tally(many, 503)).toBe(90);
  expect(tally(many, 503)).toBeGreaterThan(20);
  expect(await statuses("/plain", basic("bob", "a:b c"))).toEqual([200, 200]);
});

test("whoever leaves while the password is verified holds nothing", async () => {
  const clients = await Promise.all(Array.from({ length: 4 }, () => connectTo(front.plainPort)));
  for (const [i, client] of clients.entries()) {
    client.send(head("/plain", [`Authorization: ${basic("alice", `gone ${i}`)}`]));
    client.socket.destroy();
  }
  await eventually(async () => (await statuses("/plain", basic("alice", `still ${Date.now()}`)))[0] === 401);
  expect(await statuses("/plain", ALICE)).toEqual([200, 200]);
});

test("the log has the user, the policy and no password", async () => {
  const log = await front.accessLog();
  expect(log).toContain(" - alice [");
  const errors = await front.errorLog();
  expect(errors).toContain('access="plain basic": wrong user or password');
  expect(log + errors).not.toMatch(/wonderland|d29uZGVybGFuZA/);
});

test("users are read again in each worker; nonsense is refused as a whole, and the old users stay", async () => {
  const file = join(openFolder(), "users");
  const write = (text: string) => writeFileSync(file, text, { mode: 0o600 });
  write(`# the family\r\n${line("alice", "one").join(":")}\r\n`);
  const [port, log] = [await freePort(), join(openFolder(), "access.log")];
  const portico = await Portico.start(
    oneServer({
      workers: 2,
      logs: { access: { path: log, format: "json" }, error: "off" },
      accessPolicies: { site: { basic: { usersFile: file } } },
      listeners: [loopback("http", port)],
      upstreams: [],
      routes: [
        { name: "all", path: "/", access: "site", action: { type: "respond", status: 200, body: "in" } },
      ],
    }),
  );
  const all = async (password: string): Promise<string> => {
    const request = head("/", [`Authorization: ${basic("alice", password)}`, CLOSE]);
    const responses = await Promise.all(Array.from({ length: 12 }, () => exchange(port, request)));
    return [...new Set(responses.map(({ status }) => status))].join();
  };
  expect([await all("one"), await all("two")]).toEqual(["200", "401"]);
  write(`${line("alice", "two").join(":")}\n${line("bob", "x").join(":")}\n`);
  await portico.says(/users\) was read again: 2 users/);
  // The master says it, and each worker hears of it a moment later.
  await eventually(async () => (await all("two")) === "200" && (await all("one")) === "401");
  write(`${line("alice", "one").join(":")}\nalice2:hunter2\n`);
  await portico.says(/the new one is refused, and the previous one stays in use: .* in line 2/);
  expect([await all("one"), await all("two")]).toEqual(["401", "200"]);
  await eventually(() => readFileSync(log, "utf8").includes('"access":"site basic"'));
  expect(readFileSync(log, "utf8")).toContain('"remote_user":"alice"');
  expect(portico.output).not.toMatch(/hunter2/);
  await portico.stop();
}, 60_000);
