import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { exchange, RawUpstream } from "../../testkit/peers.js";
import { freePort } from "../../testkit/ports.js";
import { run } from "../../src/cli/program.js";
import type { RouteInput } from "../../src/model/index.js";

/** `portico why`: what a proxy logged of real requests, found again by their ids, and the rules that decided. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

let folder: string;
let upstream: RawUpstream;
beforeEach(async () => {
  folder = fs.mkdtempSync(join(tmpdir(), "portico-why-"));
  upstream = await new RawUpstream((peer) =>
    peer.socket.on("data", () => setTimeout(() => peer.send(OK), 60)),
  ).listen();
});
afterEach(async () => {
  await upstream.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

const at = (name: string): string => join(folder, name);

async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

const ROUTES = [
  { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
  {
    name: "down",
    path: "/web/down",
    requestBodyBytesMax: 1_000_000,
    action: { type: "proxy", upstream: "down" },
  },
  { name: "fixed", path: "/fixed", action: { type: "respond", status: 200, body: "ok" } },
] as const;

/** Parts of a config that the proxy of a test and the command share. */
async function parts(
  format: "json" | "combined" = "json",
  more: object = { requestId: { response: true } },
): Promise<object> {
  return {
    ...more,
    logs: { access: { path: at("access.log"), format }, error: { path: at("error.log") } },
    upstreams: [
      { name: "web", url: `http://127.0.0.1:${upstream.port}` },
      { name: "down", url: `http://127.0.0.1:${await freePort()}`, holdMs: 0 },
    ],
  };
}

function save(shared: object, routes: readonly object[] = ROUTES): string {
  const tls = { certificate: "/unused.pem", key: "/unused.pem" };
  const listeners = [
    { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
    { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls },
  ];
  const server = {
    name: "application",
    serverNames: ["*.a.example", "b.example"],
    default: true,
    listeners: ["http", "https"],
    routes,
  };
  fs.writeFileSync(
    at("portico.json"),
    JSON.stringify({ version: 1, listeners, virtualServers: [server], ...shared }),
  );
  return at("portico.json");
}

/** Sends requests to a real proxy with these logs; the ids that their responses have. */
async function served(shared: object, routes: readonly RouteInput[], ...paths: string[]): Promise<string[]> {
  const front = await startEveryProtocol({ routes, config: shared });
  const ids: string[] = [];
  try {
    for (const path of paths) {
      const { headers } = await exchange(
        front.plainPort,
        `GET ${path} HTTP/1.1\r\nHost: x.a.example\r\n\r\n`,
      );
      ids.push(headers["x-request-id"]!);
    }
  } finally {
    await front.close();
  }
  return ids;
}

test("a request that failed: its rules, times, token with meaning and fix, and its error line", async () => {
  const shared = await parts();
  const [, id] = await served(shared, ROUTES, "/web/a", "/web/down?token=SECRET", "/fixed");
  const { code, out } = await portico("why", id!, "--config", save(shared));
  expect(code).toBe(0);
  expect(out).toMatch(
    new RegExp(`^request ${id}\n {2}\\d\\d:\\d\\d:\\d\\d 502 GET x\\.a\\.example/web/down\\?\\.\\.\\. `),
  );
  for (const text of [
    "  listener          http (http, 127.0.0.1 port 80)\n",
    "  virtual server    application: *.a.example covers x.a.example\n",
    "  route down        segment /web/down: matches, and handles the request\n",
    "  route web         segment /web: matches, but is less specific\n",
    "  other routes      1 does not match\n",
    "  action            proxied to upstream down, as /web/down?...\n",
    "upstream\n  down, server http://127.0.0.1:",
    "failed: connection_refused\n  nothing listens at the upstream's address\n    fix: start the service",
  ])
    expect(out).toContain(text);
  expect(out).toMatch(/ ms {2}in total\n/);
  expect(out).toMatch(/error log\n {2}\d\d:\d\d:\d\d error \*\d+ connect\(\) failed \(111: ECONNREFUSED\)/);
  expect(out).not.toContain("SECRET");
  expect((await portico("why", id!, "--config", save(shared), "--show-secrets")).out).toContain("SECRET");
});

test("a request that access refused: the policy, and what of it", async () => {
  const shared = await parts("json", {
    requestId: { response: true },
    accessPolicies: { "wiki/admin": { allow: ["192.168.0.0/16"] } },
  });
  const routes = [...ROUTES, { ...ROUTES[2], name: "admin", path: "/admin", access: "wiki/admin" }];
  const [id] = await served(shared, routes, "/x/../%61dmin");
  const { code, out } = await portico("why", id!, "--config", save(shared, routes));
  expect(code).toBe(0);
  expect(out).toMatch(/^ {2}access {12}wiki\/admin: `allow` refuses 127\.0\.0\.1$/m);
  expect(out).toContain("  path              /admin\n");
});

test("a request about which a portal is asked", async () => {
  const url = "http://127.0.0.1:9/ask";
  const shared = await parts("json", {
    requestId: { response: true },
    trustedProxies: ["192.0.2.1"],
    accessPolicies: { wiki: { forwardAuth: { url } } },
  });
  const routes = [...ROUTES, { ...ROUTES[2], name: "admin", path: "/admin", access: "wiki" }];
  const [id] = await served(shared, routes, "/admin");
  const { out } = await portico("why", id!, "--config", save(shared, routes));
  expect(out).toContain(`wiki: \`forwardAuth\` asks the portal at ${url}`);
  expect(out).toMatch(/access="wiki forwardAuth": connect\(\) failed/);
});

test("with --root the id is looked for in the logs below the directory", async () => {
  const shared = await parts();
  const [id] = await served(shared, ROUTES, "/fixed");
  const text = fs.readFileSync(save(shared), "utf8").replaceAll(`${folder}/`, "/var/log/");
  for (const place of ["root/etc/portico", "root/var/log"]) fs.mkdirSync(at(place), { recursive: true });
  fs.writeFileSync(at("root/etc/portico/portico.json"), text);
  fs.renameSync(at("access.log"), at("root/var/log/access.log"));
  const { code, out } = await portico("why", id!, "--root", at("root"));
  expect([code, out]).toEqual([0, expect.stringMatching(new RegExp(`^request ${id}\n`))]);
});

test("one that the upstream was not asked for", async () => {
  const shared = await parts();
  const routes = ROUTES.map((one) => ({ ...one, requestBodyBytesMax: 2 }));
  const front = await startEveryProtocol({ routes, config: shared });
  const post =
    "POST /web/a HTTP/1.1\r\nHost: x.a.example\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
  const { status, headers } = await exchange(front.plainPort, post);
  await front.close();
  expect(status).toBe(413);
  const { out } = await portico("why", headers["x-request-id"]!, "--config", save(shared, routes));
  expect(out).toContain("upstream\n  web, but no server got the request\n");
});

test("one too many of its client", async () => {
  const shared = await parts();
  const limits = { requestBodyBytesMax: 2, rateLimit: { requests: 1, perMs: 60_000 }, concurrencyMax: 7 };
  const routes = ROUTES.map((one) => (one.action.type === "proxy" ? { ...one, ...limits } : one));
  const front = await startEveryProtocol({ routes, config: shared });
  const ask = () => exchange(front.plainPort, "GET /web/a HTTP/1.1\r\nHost: x.a.example\r\n\r\n");
  await ask();
  const { status, headers } = await ask();
  await front.close();
  expect(status).toBe(429);
  const { out } = await portico("why", headers["x-request-id"]!, "--config", save(shared, routes));
  const may = "1 requests in 60000 ms, 1 at once, IPv6 by /64; 7 in progress; more get 429";
  expect(out).toContain(`  limit             one client may have ${may}`);
  expect(out).toContain("`rateLimit` or `concurrencyMax` refuses the client");
});

test("one of Windows, before it maps a drive", async () => {
  const shared = await parts();
  const server = { name: "application", serverNames: ["_"], default: true, listeners: ["http", "https"] };
  const routes = [{ name: "dav", path: "/dav", action: { type: "proxy" as const, upstream: "dav" } }];
  const upstreams = [{ name: "dav", url: "http://127.0.0.1:1" }];
  const config = { ...shared, upstreams, virtualServers: [{ ...server, windowsDrives: true, routes }] };
  const front = await startEveryProtocol({ routes: [], config });
  const asked = "OPTIONS / HTTP/1.1\r\nHost: x.a.example\r\nUser-Agent: DavClnt\r\n\r\n";
  await exchange(front.plainPort, asked);
  await front.close();
  const { request_id: id } = JSON.parse(fs.readFileSync(at("access.log"), "utf8")) as { request_id: string };
  const { out } = await portico("why", id, "--config", save(config));
  expect(out).toContain("  action            200 from the virtual server: Windows may map network drives");
});

test("one that went well, as JSON", async () => {
  const shared = await parts();
  const [id] = await served(shared, ROUTES, "/web/a");
  const { out } = await portico("why", id!, "--config", save(shared), "--json");
  const told = JSON.parse(out) as { times: Record<string, number> };
  expect(told).toMatchObject({
    ok: true,
    id,
    error: null,
    request: {
      status: 200,
      route: "web",
      upstream_server: `http://127.0.0.1:${upstream.port}`,
      request_id: id,
    },
    decisions: expect.arrayContaining([
      { rule: "route web", outcome: "segment /web: matches, and handles the request" },
    ]),
    errorLog: [],
  });
  expect(told.times["to get the upstream's response, or the failure"]).toBeGreaterThanOrEqual(50);
});

test("rotated logs are read as well, and a config that changed since is named", async () => {
  const shared = await parts();
  const [plain] = await served(shared, ROUTES, "/web/a");
  fs.renameSync(at("access.log"), at("access.log.1"));
  const [packed] = await served(shared, ROUTES, "/web/b");
  fs.writeFileSync(at("access.log.2.gz"), gzipSync(fs.readFileSync(at("access.log"))));
  fs.rmSync(at("access.log"));
  for (const id of [plain!, packed!])
    expect((await portico("why", id, "--config", save(shared))).out).toContain("200 GET");
  const given = await portico("why", packed!, "--config", save(shared), "--log", at("access.log.2.gz"));
  expect(given.out).toContain("/web/b");
  const changed = save(shared, [{ ...ROUTES[2], name: "all", path: "/" }]);
  const { out } = await portico("why", plain!, "--config", changed);
  expect(out).toContain(
    "  changed since     the request took application/web: the config was another one then\n",
  );
});

test("by URL: the rules and what resolve says; nothing is read but the config", async () => {
  const file = save(await parts());
  const { code, out } = await portico("why", "https://b.example/web/down/x", "--config", file);
  expect(code).toBe(0);
  expect(out).toContain("  virtual server    application: its name b.example matches\n");
  expect(out).toContain("  body              up to 1000000 bytes are allowed\n");
  const resolved = await portico("resolve", "https://b.example/web/down/x", "--config", file);
  expect(out.startsWith(resolved.out)).toBe(true);
  expect(out).toContain("  client          198.51.100.7, an example: --client gives another\n");
  const named = await portico(
    "why",
    "https://b.example/web/down/x",
    "--client",
    "192.0.2.7",
    "--config",
    file,
  );
  expect(named.out).toContain("  client          192.0.2.7\n");
  expect((await portico("why", "http://other/nowhere", "--config", file)).out).toMatch(
    /the default server of http, because no virtual server there is named other\n[^]* {2}route +none matches: 404\n {2}other routes +3 do not match\n {2}action +404 from Portico\n/,
  );
  const asJson = async (command: string, url: string) =>
    JSON.parse((await portico(command, url, "--config", file, "--json")).out) as { decisions?: unknown };
  expect(await asJson("why", "http://b.example/%zz")).toMatchObject({
    file,
    ok: true,
    kind: "error",
    status: 400,
    decisions: [{ rule: "listener" }, { rule: "host and path" }],
  });
  const { decisions, ...rest } = await asJson("why", "https://b.example/web/down/x");
  expect(decisions).toContainEqual(expect.objectContaining({ rule: "route down" }));
  expect(rest).toEqual(await asJson("resolve", "https://b.example/web/down/x"));
  for (const command of ["why", "resolve"])
    expect(await asJson(command, "HTTPS://b.example/web/down/x")).toMatchObject(rest);
  expect(rest).toMatchObject({ file, ok: true });
});

test("what keeps it from being found has a fix", async () => {
  const id = "0123456789abcdef";
  const combined = save(await parts("combined"));
  fs.writeFileSync(at("access.log"), "");
  expect(await portico("why", id, "--config", combined)).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /format combined, which has no ids \[files\.no-request-ids\][^]*fix: +Set `logs.access` to /,
    ),
  });
  const off = save({ ...(await parts()), logs: { access: "off" } });
  expect(await portico("why", id, "--config", off)).toMatchObject({
    code: 1,
    out: expect.stringContaining("logs no requests to files"),
  });
  const unnamed = save(await parts("json", {}));
  expect(await portico("why", id, "--config", unnamed)).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /no line with the request id \[files\.request-not-found\][^]*fix: +Set `requestId` to \{\}/,
    ),
  });
  expect(await portico("why", id, "--config", unnamed, "--json")).toMatchObject({
    code: 1,
    out: expect.stringContaining('"ok": false'),
  });
  expect(await portico("why", "no id; rm", "--config", unnamed)).toMatchObject({ code: 2 });
  for (const [about, message] of [
    ["https:///b.example/", "is not an absolute URL"],
    ["xhttps://b.example/", "no line with the request id"],
  ] as const)
    expect((await portico("why", about, "--config", unnamed)).out).toContain(message);
  fs.rmSync(at("access.log"));
  for (const [given, path] of [
    [[], at("access.log")],
    [["--log", at("a"), "--log", at("b")], `${at("a")}, ${at("b")}`],
  ] as const)
    expect((await portico("why", id, "--config", unnamed, ...given)).out).toMatch(
      new RegExp(
        `^${path}: cannot be read, or does not exist \\[files\\.unreadable\\]\n +fix: +Run it as root, or give a log`,
      ),
    );
});

test("an id in another field of a line is not that line's", async () => {
  const shared = await parts();
  const [id] = await served(shared, ROUTES, "/fixed");
  await served(shared, ROUTES, `/web/a?${id}`, `/web/down?${id}`);
  const { out } = await portico("why", id!, "--config", save(shared));
  expect(out).toContain("/fixed");
  expect(out).not.toContain("error log");
});

test("what a client or a log says stays on its line", async () => {
  const shared = await parts();
  const [id] = await served(shared, ROUTES, "/fixed/a%20b%0A%20%20%20%20fix:%20a");
  const { out } = await portico("why", id!, "--config", save(shared));
  expect(out).toContain("b\\n    fix: a");
  const [line] = fs.readFileSync(at("access.log"), "utf8").split("\n");
  const words = "a b\n    fix: a";
  const forged = { ...JSON.parse(line!), request_id: "forged" };
  for (const field of ["server", "route", "upstream", "upstream_server", "error"]) forged[field] = words;
  fs.appendFileSync(at("access.log"), `${JSON.stringify(forged)}\n`);
  const shown = await portico("why", "forged", "--config", save(shared));
  expect(shown.out).toContain("upstream");
  expect(shown.out).not.toMatch(/^ +fix: a/m);
  const resolved = await portico(
    "resolve",
    "http://b.example/x/a%0A%20%20%20%20fix:%20a",
    "--config",
    save(shared),
  );
  expect(resolved.out).not.toMatch(/^ +fix: a/m);
});
