import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "../../testkit/property.js";
import { run } from "../../src/cli/program.js";
import { NO_REQUEST, readLogLine } from "../../src/host/diagnosis/logs/accessLogLine.js";
import { shownText } from "../../src/host/diagnosis/replay/replayTexts.js";
import type { RouteInput } from "../../src/model/index.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { exchange } from "../../testkit/peers.js";

/** `portico replay`: logs in, differences out. Whether they are true is tested by `proof/replay`. */

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "portico-replay-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const save = (name: string, content: string | Buffer): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

const ROUTES: readonly RouteInput[] = [
  { name: "web", path: "/sync", action: { type: "proxy", upstream: "web" } },
  { name: "files", path: "/files", action: { type: "proxy", upstream: "files", strip: "raw" } },
  { name: "media", path: "/media", action: { type: "staticFiles", directory: "/opt/media" } },
  { name: "moved", path: "/old", action: { type: "redirect", path: "/sync/" } },
  { name: "fixed", path: "/fixed", action: { type: "respond", status: 200, body: "a" } },
];

function config(name: string, routes: readonly RouteInput[] = ROUTES, more: object = {}): string {
  const tls = { certificate: "/unused.pem", key: "/unused.pem" };
  const whole = {
    version: 1,
    listeners: [
      { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
      { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls },
    ],
    upstreams: [
      { name: "web", url: "http://127.0.0.1:8000" },
      { name: "files", url: "http://127.0.0.1:8082" },
    ],
    virtualServers: [
      { name: "app", serverNames: ["a.example"], default: true, listeners: ["http", "https"], routes },
    ],
    ...more,
  };
  return save(name, JSON.stringify(whole));
}

const changed = (name: string, fields: object): readonly RouteInput[] =>
  ROUTES.map((route) => (route.name === name ? ({ ...route, ...fields } as RouteInput) : route));

const line = (request: string, status = 200): string =>
  `192.0.2.7 - anna [21/Nov/2026:10:01:22 +0000] "${request}" ${status} 5 "-" "curl/8"\n`;

async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

const replay = (log: string, before: string, after: string, ...more: string[]) =>
  portico("replay", log, "--against", before, "--config", after, ...more);

interface Told {
  readonly requests: number;
  readonly changed: number;
  readonly unknownBodies: number;
  readonly files: readonly object[];
  readonly groups: readonly {
    count: number;
    changes: string[];
    before: { status?: number };
    examples: { before?: string; after?: string }[];
  }[];
}

const told = async (log: string, before: string, after: string, ...more: string[]): Promise<Told> =>
  JSON.parse((await replay(log, before, after, "--json", ...more)).out) as Told;

test("a policy that is new refuses the clients that it does not let in, and no others", async () => {
  const before = config("open.json");
  const more = { accessPolicies: { web: { allow: ["192.0.2.7"] } } };
  const after = config("closed.json", changed("web", { access: "web" }), more);
  const others = line("GET /sync/a HTTP/1.1").replace("192.0.2.7", "192.0.2.8");
  const log = save("clients.log", line("GET /sync/a HTTP/1.1") + others + line("GET /files/a HTTP/1.1"));
  const { code, out, err } = await replay(log, before, after, "--json");
  expect(err).toBe("");
  const { requests, changed: count, groups } = JSON.parse(out) as Told;
  expect([code, requests, count]).toEqual([1, 3, 1]);
  expect(groups[0]).toMatchObject({
    before: { action: "proxy" },
    after: { action: "error", status: 403 },
    examples: [{ line: "clients.log:2" }],
  });
});

test("the same config changes nothing, and exits with 0", async () => {
  const same = config("same.json");
  const log = save("same.log", line("GET /sync/ HTTP/1.1") + line("PUT /files/a HTTP/2.0", 201));
  const { code, out, err } = await replay(log, same, same);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toBe(`${same} against ${same}: 2 requests, none changes\n`);
});

test("what changes is shown by kind, with examples; the exit code is 1", async () => {
  const before = config("before.json");
  const after = config("after.json", changed("files", { action: { type: "proxy", upstream: "web" } }));
  const log = save(
    "kinds.log",
    line("GET /sync/ HTTP/1.1") + line("GET /files/a?token=x HTTP/1.1").repeat(5),
  );
  const { code, out } = await replay(log, before, after);
  expect(code).toBe(1);
  expect(out.replaceAll(`${folder}/`, "")).toMatchInlineSnapshot(`
"5 requests: upstream, path
  app/files: proxied to files (http://127.0.0.1:8082)
  -> app/files: proxied to web (http://127.0.0.1:8000)
    GET https://a.example/files/a?...  (kinds.log:2)
      /a?... -> /files/a?...
    GET https://a.example/files/a?...  (kinds.log:3)
      /a?... -> /files/a?...
    GET https://a.example/files/a?...  (kinds.log:4)
      /a?... -> /files/a?...

changes: upstream 5, path 5
after.json against before.json: 6 requests, 5 change (83.33 %)
"
`);
});

test.each<[string, object, string, string[]]>([
  ["web", { name: "ui" }, "GET /sync HTTP/1.1", ["route"]],
  ["web", { action: { type: "respond", status: 410 } }, "GET /sync HTTP/1.1", ["action"]],
  ["web", { action: { type: "proxy", upstream: "files" } }, "GET /sync HTTP/1.1", ["upstream"]],
  ["web", { action: { type: "proxy", upstream: "web", strip: "raw" } }, "GET /sync/a HTTP/1.1", ["path"]],
  ["media", { action: { type: "staticFiles", directory: "/srv" } }, "GET /media/a HTTP/1.1", ["file"]],
  ["media", { action: { type: "staticFiles", directory: "/srv" } }, "PUT /media/a HTTP/1.1", []],
  ["media", { path: "/m" }, "PUT /media/a HTTP/1.1", ["route", "status"]],
  ["moved", { action: { type: "redirect", host: "b.example" } }, "GET /old/a HTTP/1.1", ["location"]],
  ["moved", { action: { type: "redirect", path: "/sync/", status: 308 } }, "GET /old HTTP/1.1", ["status"]],
  ["fixed", { action: { type: "respond", status: 200, body: "b" } }, "GET /fixed HTTP/1.1", ["body"]],
  ["web", { path: "/ui" }, "GET http://a.example/sync HTTP/1.1", ["route", "action"]],
  ["web", { path: "/ui" }, "CONNECT a.example:443 HTTP/1.1", []],
  ["web", { path: "/ui" }, "TRACE /sync HTTP/1.1", []],
  ["web", { path: "/ui" }, "GET /sync/../../a HTTP/1.1", []],
  ["web", { path: "/ui" }, "GET /s%79nc/\\xC3\\xA4 HTTP/1.1", ["route", "action"]],
])("route %s with %j: %s has another %j", async (name, fields, request, changes) => {
  const { groups } = await told(
    save("one.log", line(request)),
    config("before.json"),
    config("after.json", changed(name, fields)),
  );
  expect(groups.map((group) => group.changes)).toEqual(changes.length === 0 ? [] : [changes]);
});

test("the responses, before and after, by kind of action", async () => {
  const status = {
    name: "state",
    path: "/status",
    action: { type: "status", allow: ["10.0.0.0/8"] },
  } as const;
  const gone = { action: { type: "respond", status: 410 } } as const;
  const before = config("before.json", [...ROUTES, status]);
  const after = [...ROUTES, status].map((route) => ({ ...route, ...gone }));
  const targets = ["/sync", "/media/a", "/old", "/fixed", "/status", "/none"];
  const log = save("kinds.log", targets.map((target) => line(`GET ${target} HTTP/1.1`)).join(""));
  const found = { name: "rest", path: "/none", ...gone };
  const { out } = await replay(log, before, config("after.json", [...after, found]));
  expect(out.match(/^ {2}(?:-> )?(?! ).*$/gm)!.join("\n")).toMatchInlineSnapshot(`
"  app/web: proxied to web (http://127.0.0.1:8000)
  -> app/web: fixed response, 410
  app/media: a file
  -> app/media: fixed response, 410
  app/moved: redirect, 301
  -> app/moved: fixed response, 410
  app/fixed: fixed response, 200
  -> app/fixed: fixed response, 410
  app/state: the status
  -> app/state: fixed response, 410
  app/(no route): 404
  -> app/rest: fixed response, 410"
`);
});

test("where no listener takes a request any more", async () => {
  const log = save("plain.log", line("GET /sync HTTP/1.1"));
  const tls = { certificate: "/unused.pem", key: "/unused.pem" };
  const after = config("after.json", [], {
    listeners: [{ name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls }],
    virtualServers: [
      { name: "app", serverNames: ["a.example"], default: true, listeners: ["https"], routes: ROUTES },
    ],
  });
  const { out } = await replay(log, config("before.json"), after, "--scheme", "http");
  expect(out).toMatch(/^1 request: [^]*\n {2}-> no listener\n/);
});

test.each([
  [10_001, 1, "10001 requests, 1 changes (less than 0.01 %)"],
  [10_000, 1, "10000 requests, 1 changes (0.01 %)"],
  [3, 2, "3 requests, 2 change (66.67 %)"],
  [1, 1, "1 request, 1 changes (100.00 %)"],
])("of %i requests %i change: %s", async (requests, changes, message) => {
  const [some, others] = [line("GET /sync HTTP/1.1"), line("GET /fixed HTTP/1.1")];
  const log = save("share.log", some.repeat(changes) + others.repeat(requests - changes));
  const after = config("after.json", changed("web", { name: "ui" }));
  expect((await replay(log, config("before.json"), after)).out).toContain(`before.json: ${message}\n`);
});

test("another server of an upstream is another upstream", async () => {
  const upstreams = [
    { name: "web", url: "http://127.0.0.1:9999" },
    { name: "files", url: "http://127.0.0.1:8082" },
  ];
  const after = config("after.json", ROUTES, { upstreams });
  const { groups } = await told(save("up.log", line("GET /sync HTTP/1.1")), config("before.json"), after);
  expect(groups.map(({ changes }) => changes)).toEqual([["upstream"]]);
});

test("JSON lines say host, listener and body length themselves", async () => {
  const entry = {
    method: "PUT",
    target: "/files/a",
    scheme: "http",
    host: "a.example",
    listener: "http",
    status: 201,
  };
  const bodies = [0, 5, 10, 11, null, -1, 1.5].map(
    (request_body_bytes) => `${JSON.stringify({ ...entry, request_body_bytes })}\n`,
  );
  const after = config("after.json", changed("files", { requestBodyBytesMax: 10 }));
  const seen = await told(save("json.log", bodies.join("")), config("before.json"), after);
  expect(seen).toMatchObject({ requests: 7, changed: 1, unknownBodies: 3 });
  expect(seen.groups.map(({ changes }) => changes)).toEqual([["action"]]);
});

test("against the log itself, with status and route of each line", async () => {
  const entry = {
    method: "GET",
    target: "/old",
    scheme: "https",
    host: "a.example",
    server: "app",
    route: "moved",
  };
  const log = save(
    "itself.log",
    [
      JSON.stringify({ ...entry, status: 301 }),
      JSON.stringify({ ...entry, status: 302 }),
      JSON.stringify({ ...entry, route: "web", status: 301 }),
      JSON.stringify({ ...entry, target: "/sync", route: "web", status: 502 }),
      JSON.stringify({ ...entry, target: "/nothing", route: null, status: 404 }),
      line("GET /nothing HTTP/1.1", 200).trimEnd(),
      line("GET /nothing HTTP/1.1", 499).trimEnd(),
    ].join("\n"),
  );
  const { code, out } = await portico(
    "replay",
    log,
    "--against-log",
    "--config",
    config("after.json"),
    "--json",
  );
  const { requests, groups } = JSON.parse(out) as Told;
  expect({ code, requests }).toEqual({ code: 1, requests: 7 });
  expect(groups.map(({ changes }) => changes)).toEqual([["status"], ["route"], ["status"]]);
});

test("what a request gets before its route, or from what no log shows, is no change against the log", async () => {
  const statuses = Array.from({ length: 500 }, (_, i) => 100 + i);
  const entry = { method: "GET", target: "/nothing", host: "a.example", server: "app", route: null };
  const log = save("early.log", statuses.map((status) => JSON.stringify({ ...entry, status })).join("\n"));
  const after = config("after.json");
  const { out } = await portico("replay", log, "--against-log", "--config", after, "--json");
  const { groups } = JSON.parse(out) as Told;
  const told = groups.map(({ before }) => before.status);
  const early = [400, 408, 413, 414, 417, 421, 431, 499, 500, 501, 503, 505];
  // 404 is what it gets.
  expect(statuses.filter((status) => !told.includes(status))).toEqual([...early, 404].sort());
});

const STATUS = { type: "status", allow: ["10.0.0.0/8", "2001:db8::/32"] };

test.each<[name: string, fields: object, request: string, is: string, leads: string]>([
  ["web", { action: STATUS }, "GET /sync", "app/web: the status", "/sync -> 10.0.0.0/8 2001:db8::/32"],
  ["web", { action: STATUS }, "GET /sync/a", "app/web: 404", "/sync/a"],
  ["web", { action: { type: "respond", status: 410 } }, "GET /sync", "app/web: fixed response, 410", "/sync"],
  [
    "web",
    { action: { type: "redirect", path: "/b" } },
    "GET /sync/a",
    "app/web: redirect, 301",
    "/sync/a -> https://a.example/b",
  ],
  [
    "web",
    { action: { type: "staticFiles", directory: "/srv" } },
    "GET /sync/a",
    "app/web: a file",
    "/sync/a -> /srv/a",
  ],
  ["web", { path: "/ui" }, "GET /sync/a", "app/(no route): 404", "/sync/a"],
])("route %s with %j: %s is shown as %s", async (name, fields, request, is, leads) => {
  const after = config("after.json", changed(name, fields));
  const { out } = await replay(save("one.log", line(`${request} HTTP/1.1`)), config("before.json"), after);
  expect(out.split("\n").slice(1, 5)).toEqual([
    "  app/web: proxied to web (http://127.0.0.1:8000)",
    `  -> ${is}`,
    `    ${request.replace(" ", " https://a.example")}  (one.log:1)`,
    `      ${leads}`,
  ]);
});

test("a request that no listener takes any more", async () => {
  const listeners = [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }];
  const virtualServers = [
    { name: "app", serverNames: ["_"], default: true, listeners: ["http"], routes: ROUTES },
  ];
  const after = config("after.json", ROUTES, { listeners, virtualServers });
  const log = save("one.log", line("GET /sync HTTP/1.1"));
  const { out } = await replay(log, config("before.json"), after, "--scheme", "https");
  expect(out).toMatch(/^1 request: virtual server, route, action\n.*\n {2}-> no listener\n/);
});

test("several logs, compressed ones, and lines that are none", async () => {
  const text = line("GET /sync HTTP/1.1");
  const packed = save("old.log.gz", Buffer.concat([gzipSync(text), gzipSync(text)]));
  const odd = save(
    "odd.log",
    `\n${text}nonsense\r\n{"a":1}\n${line("\\x16\\x03\\x01", 400)}${line("-", 408)}`,
  );
  const { code, out } = await portico(
    "replay",
    packed,
    odd,
    "--against",
    config("a.json"),
    "--config",
    config("b.json"),
  );
  expect(code).toBe(0);
  expect(out.replaceAll(`${folder}/`, "")).toMatchInlineSnapshot(`
"odd.log: 5 lines: 2 with an unreadable request; 2 that are not access log lines, the first is line 2
b.json against a.json: 3 requests, none changes
"
`);
});

test.each([
  ["as it is", (text: string) => text],
  ["compressed", gzipSync],
])("a line that is longer than any of a log is one line, and hides none after it: %s", async (_, packed) => {
  const long = "x".repeat(3 * 2 ** 20);
  const get = line("GET /sync HTTP/1.1");
  const same = config("same.json");
  const log = save("long.log", packed(`${get}${long}\n${get}${get.trimEnd()}${long}\n${get}${long}`));
  const { out } = await replay(log, same, same);
  expect(out.replaceAll(`${folder}/`, "")).toBe(
    "long.log: 6 lines: 2 that are not access log lines, the first is line 2\nsame.json against same.json: 4 requests, none changes\n",
  );
});

test.each<[string, string | Buffer, string]>([
  ["of something else", "2026/11/21 [error] 1#1: no log\n", "files.not-a-log"],
  ["that is cut off", gzipSync(line("GET / HTTP/1.1")).subarray(0, 40), "files.unreadable"],
  [
    "with damage",
    Buffer.concat([gzipSync("x".repeat(999)).subarray(0, 12), Buffer.alloc(50, 7)]),
    "files.unreadable",
  ],
])("a log %s is a problem, and none that passes", async (_, content, code) => {
  const same = config("same.json");
  const response = await replay(save("bad.log", content), same, same);
  expect(response.code).toBe(1);
  expect(response.out).toContain(code);
});

test("a log that is not there, and one that is a directory", async () => {
  const same = config("same.json");
  for (const log of [join(folder, "none"), folder])
    expect(await replay(log, same, same)).toMatchObject({
      code: 1,
      out: expect.stringContaining("files.unreadable") as string,
    });
});

test("requests that change can be allowed, as a number or a share", async () => {
  const [before, after] = [config("before.json"), config("after.json", changed("web", { name: "ui" }))];
  const log = save("allow.log", line("GET /sync HTTP/1.1") + line("GET /files HTTP/1.1").repeat(3));
  const codes = [];
  for (const allow of ["0", "1", "24.9%", "25%", "x", "1.5", "101%"])
    codes.push((await replay(log, before, after, "--allow", allow)).code);
  expect(codes).toEqual([1, 0, 1, 0, 2, 2, 2]);
});

test("with several applications, lines without a host need one", async () => {
  const two = ["a", "b"].map((name, i) => ({
    name,
    serverNames: [`${name}.example`],
    default: i === 0,
    listeners: ["http", "https"],
    routes: ROUTES,
  }));
  const same = config("two.json", [], { virtualServers: two });
  const log = save("two.log", line("GET /sync HTTP/1.1"));
  expect(await replay(log, same, same)).toMatchObject({ code: 2, out: "" });
  expect((await replay(log, same, same)).err).toContain("give --host, one of a.example, b.example");
  expect((await replay(log, same, same, "--host", "b.example")).code).toBe(0);
  const named = save(
    "named.log",
    '{"method":"GET","target":"/","host":"b.example","scheme":"https","status":200}\n',
  );
  expect((await replay(named, same, same)).code).toBe(0);
});

test("lines without a scheme came over https, unless it is given", async () => {
  const servers = (status: number): object => ({
    virtualServers: ["http", "https"].map((listener) => ({
      ...{ name: listener, serverNames: ["a.example"], default: true, listeners: [listener] },
      routes: [
        { name: "all", path: "/", action: { type: "respond", status: listener === "http" ? status : 200 } },
      ],
    })),
  });
  const [before, after] = [200, 404].map((status) => config(`${status}.json`, [], servers(status)));
  const log = save("scheme.log", line("GET /sync HTTP/1.1"));
  expect((await replay(log, before!, after!)).code).toBe(0);
  expect((await replay(log, before!, after!, "--scheme", "https")).code).toBe(0);
  expect((await replay(log, before!, after!, "--scheme", "http")).code).toBe(1);
});

test("queries, tokens and bytes that act on a terminal are not shown", async () => {
  const [before, after] = [config("before.json"), config("after.json", changed("web", { name: "ui" }))];
  const secret = "0123456789abcdef0123";
  const hostile = save(
    "hostile.log",
    Buffer.from(
      line(`GET /sync/${secret}/\\x1B[31m?key=${secret} HTTP/1.1`) + line("GET /sync/\x9b31m\u00e4 HTTP/1.1"),
      "latin1",
    ),
  );
  const { out } = await replay(hostile, before, after);
  expect(out).toMatch(/^[ -~\n]+$/);
  expect(out).not.toContain(secret);
  expect((await replay(hostile, before, after, "--show-secrets", "--json")).out).not.toContain("\x9b");
  const asked = save("asked.log", line(`GET /sync/${secret}?key=${secret} HTTP/1.1`));
  expect((await replay(asked, before, after, "--show-secrets")).out).toContain(
    `/sync/${secret}?key=${secret}`,
  );
});

/** Names of a path, as `portico replay` and `portico log` show them. */
test.each<[name: string, shown: boolean]>([
  ["abcdef123", true],
  ["abcdef1234", false],
  ["ABCDEF-123", false],
  ["123456789012345", true],
  ["1234567890123456", false],
  ["2026-11-21", true],
  ["abcdefabcdef", true],
  ["version-2-of-the-download", true],
  ["report.2026.final.pdf", true],
  ["eyJ.hbGci1", false],
  ["eyJ.hbGciO", true],
  ["Xk9mQ2pLw7t", true],
  ["Xk9mQ2pLw7tZ", false],
  ["_k9mQ2p~+=-x", false],
  ["Xk9mQ2p.Lw7tZ", true],
  ["xk9mq2plw7tz", true],
  ["XK9MQ2PLW7TZ", true],
  ["XkqmQwpLwztZ", true],
])("%s in a path is shown: %s", (name, shown) => {
  const text = `/share/${name}/${name}?${name}`;
  expect(shownText(text, false)).toBe(shown ? text : `/share/***/***?${name}`);
  expect(shownText(text, true)).toBe(text);
});

test("a log on standard input", () => {
  const same = config("same.json");
  const input = gzipSync(line("GET /sync HTTP/1.1"));
  const args = [
    "--import",
    "tsx",
    join(__dirname, "../../src/cli/main.ts"),
    "replay",
    "-",
    "--against",
    same,
    "--config",
    same,
  ];
  const { status, stdout } = spawnSync(process.execPath, args, { input, encoding: "utf8" });
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: `${same} against ${same}: 1 request, none changes\n`,
  });
});

test("standard input is read once", async () => {
  expect(await portico("replay", "-", "--config", "-")).toMatchObject({ code: 2 });
});

test.each([
  ["/a%20b", "/a%20b"],
  ["/a\\x22b", '/a"b'],
  ["/a\\x2", "/a\\x2"],
  ['/a\\"b', '/a"b'],
  ["/a\\\\", "/a\\"],
  ['/a\\\\\\"b', '/a\\"b'],
  ["/a\\\\x22b", "/a\\x22b"],
  ["/\\xC3\\xa9", "/\u00c3\u00a9"],
])("%s in a line is the target %s, and the status is what follows it", (written, target) => {
  expect(readLogLine(line(`GET ${written} HTTP/1.1`, 207).trimEnd())).toMatchObject({ target, status: 207 });
});

test.each([
  ['GET /a\\\\" HTTP/1.1', "a quote after an escaped backslash"],
  ['GET /a" HTTP/1.1', "a quote"],
  ["GET /a HTTP/1.1\\", "no quote after it but an escaped one"],
])("%s is no field: %s", (request) => {
  expect(readLogLine(`192.0.2.7 - - [21/Nov/2026:10:01:22 +0000] "${request}" 200 5`)).toBeUndefined();
});

test("the last line of a log counts, whether it is ended or not", async () => {
  const text = line("GET /sync HTTP/1.1");
  const same = config("same.json");
  for (const log of [text + text, text + text.trimEnd()])
    expect(await told(save("ends.log", log), same, same)).toMatchObject({ requests: 2 });
});

test.each([undefined, "json"] as const)(
  "the requests of Windows before it maps a drive (format: %s)",
  async (format) => {
    const server = {
      ...{ name: "app", serverNames: ["a.example"], default: true, listeners: ["http", "https"] },
      routes: ROUTES.filter(({ name }) => name === "web" || name === "fixed"),
    };
    const served = { virtualServers: [{ ...server, windowsDrives: true }] };
    const upstreams = [{ name: "web", url: "http://127.0.0.1:1" }];
    const front = await startEveryProtocol({
      routes: [],
      upstreams,
      config: served,
      ...(format && { format }),
    });
    for (const agent of ["DavClnt", "Mozilla/5.0", "Microsoft-WebDAV-MiniRedir/10.0.19045"]) {
      const asked = `OPTIONS / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: ${agent}\r\n\r\n`;
      await exchange(front.plainPort, asked);
    }
    const log = save("windows.log", await front.accessLog());
    await front.close();
    const [on, off] = [config("on.json", [], served), config("off.json", [], { virtualServers: [server] })];
    expect(await portico("replay", log, "--against-log", "--config", on)).toMatchObject({ code: 0 });
    expect(await told(log, on, off)).toMatchObject({ requests: 3, changed: 2 });
  },
);

test("a request without a target is none", () => {
  expect(readLogLine('1 - - [0] "200  HTTP/1.1" 200 1')).toBe(NO_REQUEST);
});

test("no line, whatever is in it, is more than a line", () => {
  const piece = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom(' "', '" ', "\\", "] ", " [", "{", "}", '"method":"GET",', "GET /", " HTTP/1.1", "200 "),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      for (const text of [pieces.join(""), `1 - - [0] "${pieces.join("")}" 200 1`, `{${pieces.join("")}}`]) {
        const read = readLogLine(text);
        if (read === undefined || typeof read === "string") continue;
        expect(read.target).toMatch(/^[!-~\u0080-\u00ff]+$/);
        expect(read.method).toMatch(/^[!-~]+$/);
        expect(shownText(text, true)).toMatch(/^[ -~]*$/);
      }
    }),
  );
});
