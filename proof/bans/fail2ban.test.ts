import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { LogInRules } from "../../src/model/config/logInRules.js";
import { otherReadings } from "../../src/model/access/readings.js";
import { logIns } from "../../src/model/access/guardSchema.js";
import type { ProxyConfigInput, RouteInput } from "../../src/model/index.js";
import { normalisePath } from "../../src/model/net/target.js";
import { exchange } from "../../testkit/peers.js";
import { startProxy, type TestProxy } from "../../testkit/harness.js";
import { type Random, seeded } from "../../testkit/random.js";
import { failuresIn } from "./filter.js";

/**
 * What Debian's fail2ban takes for a failed log-in, in lines that the proxy wrote: no spelling of a path evades the filter,
 * and no client can have another address banned.
 */

const LOG_INS = [
  { path: "/api/login", method: "POST", secret: "body", failed: [401] },
  { path: "/dav", match: "segment", secret: "authorization", failed: [401, 302], failedLocation: "/login" },
] as const;

const basic = (user: string): string =>
  `Authorization: Basic ${Buffer.from(`${user}:secret`, "latin1").toString("base64")}\r\n`;

/** What a line would be in which another client failed. */
const FORGED = '198.51.100.7 - - [30/Nov/2026:19:00:00 +0000] "POST /api/login HTTP/1.1" 401 0 "-" "-"';
const FORGED_JSON = '{"time":"2026-11-30T19:00:00.000Z","remote_addr":"198.51.100.7","remote_user":null';

/** Request line without its version, further fields, status of the response, and whether it is a failed log-in. */
type Case = readonly [line: string, fields: string, status: number, failed: boolean];

const CASES: readonly Case[] = [
  ["POST /api/login", "", 401, true],
  ["POST /api/login?next=/home", "", 401, true],
  ["POST /api/login/", "", 401, true],
  ["POST /API/Login", "", 401, true],
  ["POST //api///login", "", 401, true],
  ["POST /api/./login", "", 401, true],
  ["POST /api/x/../login", "", 401, true],
  ["POST /api/x/%2e%2E/login", "", 401, true],
  ["POST /%61pi/lo%67in", "", 401, true],
  ["POST /api%2flogin", "", 401, true],
  ["POST /api%5clogin", "", 401, true],
  ["POST /api%252flogin", "", 401, true],
  ["POST /api;v=1/login;w=%2F", "", 401, true],
  ["POST /api/login.", "", 401, true],
  ["POST /api/login%20", "", 401, true],
  ["POST http://web.example.org/api/login", "", 401, true],
  [`POST /api/login?${"x".repeat(3_000)}`, "", 401, true],
  [`POST ${"/".repeat(3_000)}api/login`, "", 401, true],
  ["POST /api/login", 'User-Agent: " 200 1 "-" "\\\r\n', 401, true],
  ["POST /api/login", `Referer: ${FORGED}\r\n`, 401, true],
  ["POST /api/login", basic(""), 401, true],
  ["POST /api/login", basic('a b" \n\\'), 401, true],
  ["PROPFIND /dav", basic("ada"), 401, true],
  ["GET /dav/files/x", basic("ada lovelace"), 401, true],
  ["GET /DAV/files/x?y", basic(FORGED), 401, true],
  // Credentials that some servers take, and whose user others cannot read.
  ["GET /dav/x", basic(""), 401, true],
  ["GET /dav/x", basic("-"), 401, true],
  ["GET /dav/x", basic("ada").replace("Basic ", "bAsIc\t"), 401, true],
  ["GET /dav/x", basic("ada").replace("Basic ", "Basic ="), 401, true],
  ["GET /dav/x", basic("ada").replace("Basic ", "Basic"), 401, true],
  ["GET /dav/x", basic("ada").replace("Basic ", "Bearer x, Basic "), 401, true],
  // None, or none that the log shows.
  ["POST /api/login", "", 200, false],
  ["POST /api/login", "", 429, false],
  ["GET /api/login", "", 401, false],
  ["POST /api/logins", "", 401, false],
  ["POST /api/login/x", "", 401, false],
  ["POST /x/api/login", "", 401, false],
  ["POST /x?/api/login", "", 401, false],
  ["POST /x?../api/login", "", 401, false],
  ["GET /dav/files/x", "", 401, false],
  ["GET /dav/files/x", basic("ada"), 207, false],
  ["GET /dav/files/x", basic("ada"), 302, false],
  ["GET /davx", basic("ada"), 401, false],
  ["GET /x", `${basic("ada")}User-Agent: POST /api/login HTTP/1.1" 401 0 "-" "-"\r\n`, 401, false],
  // One client as another.
  ["GET /x", `User-Agent: ${FORGED}\r\n`, 401, false],
  ["GET /x", `User-Agent: ${FORGED_JSON}\r\n`, 401, false],
  ["GET /x", `Referer: x"\\" ${FORGED}\r\n`, 401, false],
  ["GET /x", basic(`\n${FORGED}`), 401, false],
  ["GET /x", basic(`- [30/Nov/2026:19:00:00 +0000] "POST /api/login HTTP/1.1" 401 0 "`), 401, false],
  ['GET /x"%20401%200%20"-', "", 401, false],
  ["GET /x?\\u2026", "", 401, false],
  // Texts with many readings.
  [`POST ${"/;%2f".repeat(400)}`, "", 401, false],
  [`POST ${"/.".repeat(1_000)}`, "", 401, false],
  [`POST /api${".;%2f".repeat(400)}`, "", 401, false],
  [`POST ${"/x/..".repeat(400)}`, "", 404, false],
  [`POST /api/login${"%20".repeat(600)}/x`, "", 401, false],
  ['POST /x","server":"web","target":"/api/login', "", 401, false],
];

let application: Server;

beforeAll(async () => {
  application = createServer((request, response) => {
    request.resume();
    response.writeHead(Number(request.headers["x-status"]), { "Content-Length": 2 }).end("no");
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
});
afterAll(() => application.close());

const ROUTES: RouteInput[] = [
  {
    name: "all",
    path: "/",
    match: "prefix",
    action: { type: "proxy", upstream: "web", slashRedirect: false },
  },
];

const FORMATS = ["combined", "json"] as const;

async function proxyWith(format: (typeof FORMATS)[number]): Promise<TestProxy> {
  const { port } = application.address() as AddressInfo;
  const server = { serverNames: ["_"], default: true, listeners: ["http"], routes: ROUTES };
  const upstreams = [{ name: "web", url: `http://127.0.0.1:${port}` }];
  const virtualServers = [
    { ...server, name: "web", logIns: LOG_INS },
    // With the same requests, and no log-ins.
    { ...server, name: "other", default: false, serverNames: ["other.example.org"] },
  ];
  const config = { trustedProxies: ["127.0.0.1"], upstreams, virtualServers };
  return startProxy({ routes: [], config: config as Partial<ProxyConfigInput>, format });
}

/** The log of requests, each from an address of its own, and these addresses. */
async function logOf(proxy: TestProxy, cases: readonly Case[], host: string): Promise<string> {
  for (const [i, [line, fields, status]] of cases.entries()) {
    const head = `${line} HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${addressOf(i)}\r\nX-Status: ${status}\r\n`;
    await exchange(proxy.port, `${head}${fields}Content-Length: 0\r\nConnection: close\r\n\r\n`);
  }
  return proxy.accessLog();
}

const addressOf = (i: number): string =>
  i % 2 === 0 ? `203.0.${i >> 8}.${i & 255}` : `2001:db8::${(i + 1).toString(16)}`;

describe.each(FORMATS)("lines in the format %s", (format) => {
  let proxy: TestProxy;
  beforeAll(async () => (proxy = await proxyWith(format)));
  afterAll(() => proxy.close());

  test("each failure is found, with the address of the client, and nothing else is", async () => {
    const log = await logOf(proxy, CASES, "web.example.org");
    expect(log.split("\n")).toHaveLength(CASES.length + 1);
    const found = failuresIn(proxy.config, log);
    const said = CASES.map(([line, fields, status], i) => [
      line.slice(0, 60),
      fields,
      status,
      found.includes(addressOf(i)),
    ]);
    expect(said).toEqual(
      CASES.map(([line, fields, status, failed]) => [line.slice(0, 60), fields, status, failed]),
    );
    expect(found).toHaveLength(CASES.filter(([, , , failed]) => failed).length);
  });

  const evading = "no path is a log-in for a server, and not for the filter";
  test(
    evading,
    seeded(async (random) => {
      const rules = new LogInRules(logIns.parse(LOG_INS)!);
      const targets = Array.from({ length: 300 }, () => oddTarget(random));
      const cases = targets.map((target): Case => [`POST ${target}`, "", 401, true]);
      const before = (await proxy.accessLog()).length;
      const log = (await logOf(proxy, cases, "web.example.org")).slice(before);
      const found = failuresIn(proxy.config, log);
      const taken = targets.filter((target) => {
        const path = normalisePath(target);
        return (
          path !== undefined &&
          rules.of({ method: "POST", target, path }).some(({ secret }) => secret === "body")
        );
      });
      expect(taken.length).toBeGreaterThan(50);
      const missed = taken.filter((target) => !found.includes(addressOf(targets.indexOf(target))));
      expect(missed).toEqual([]);
      const plain = targets.filter((target, i) => found.includes(addressOf(i)) && !/\.\.|%2e/i.test(target));
      expect(
        plain.filter((target) => otherReadings(target) !== undefined && !taken.includes(target)),
      ).toEqual([]);
    }),
  );

  test("requests to another virtual server are none, if the lines name it", async () => {
    const before = (await proxy.accessLog()).length;
    const cases = CASES.filter(([line]) => !line.includes("http:"));
    const log = (await logOf(proxy, cases, "other.example.org")).slice(before);
    expect(failuresIn(proxy.config, log).length > 0).toBe(format === "combined");
  });
});

/** A path that may be the one of the log-in, spelled as a client would that wants to evade a filter. */
function oddTarget(random: Random): string {
  const slash = (): string => random.of("/", "/", "/", "//", "/./", "%2f", "/x/../", "\\", "/;/", "%255c");
  const end = (): string => random.of("", "", "", ".", "%20", ";a=b", "x", "/", ".%20.");
  const spelled = (word: string): string =>
    [...word]
      .map((char) => {
        const hex = char.charCodeAt(0).toString(16);
        return random.of(char, char, char, char.toUpperCase(), `%${hex}`, `%25${hex}`);
      })
      .join("");
  return `/${spelled("api")}${end()}${slash()}${spelled("login")}${end()}`;
}
