import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "../../testkit/property.js";
import { eventually } from "../../testkit/waiting.js";
import { run } from "../../src/cli/program.js";
import { combinedLine, errorLine, jsonLine } from "../../src/runtime/logs/logFormat.js";
import { FakeExchange, type FakeRequest } from "../../testkit/fakeExchange.js";
import { readLogFile } from "../../src/host/diagnosis/logs/accessLogFile.js";
import { logsOfConfig } from "../../src/host/diagnosis/logs/configLogs.js";
import { linesBackwards } from "../../src/host/diagnosis/logs/logFiles.js";
import { parseConfig } from "../../src/model/index.js";

/** `portico log`: files that are written, renamed and truncated while it follows them. */

let folder: string;
beforeEach(() => (folder = fs.mkdtempSync(join(tmpdir(), "portico-log-"))));
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

const at = (name: string): string => join(folder, name);
const append = (name: string, ...lines: string[]): void => fs.appendFileSync(at(name), lines.join(""));

/** A config: routes `web` (its own JSON log), `files` and `old` (the combined main log). */
function config(more: object = {}): string {
  const respond = { type: "respond", status: 200, body: "a" };
  const whole = {
    version: 1,
    logs: { access: { path: at("access.log") }, error: { path: at("error.log") } },
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    virtualServers: [
      {
        name: "app",
        serverNames: ["a.example"],
        default: true,
        listeners: ["http"],
        routes: [
          { name: "web", path: "/web", action: respond, accessLog: { path: at("web.log"), format: "json" } },
          { name: "files", path: "/files", action: respond },
          { name: "old", path: "/old", action: respond },
        ],
      },
    ],
    ...more,
  };
  fs.writeFileSync(at("portico.json"), JSON.stringify(whole));
  return at("portico.json");
}

function combined(request: string, status = 200, { client = "192.0.2.7", time = Date.now() } = {}): string {
  const [weekday, day, month, year, clock] = new Date(time).toUTCString().split(" ");
  void weekday;
  return `${client} - - [${day}/${month}/${year}:${clock} +0000] "${request}" ${status} 5 "-" "curl/8"\n`;
}

function json(target: string, status = 200, more: object = {}): string {
  const fields = {
    time: new Date().toISOString(),
    remote_addr: "192.0.2.9",
    method: "GET",
    target,
    http_version: "1.1",
    scheme: "http",
    host: "a.example",
    status,
    body_bytes_sent: 5,
    request_time_ms: 12,
    request_body_bytes: null,
    listener: "http",
    server: "app",
    route: "web",
    upstream: null,
    ...more,
  };
  return `${JSON.stringify(fields)}\n`;
}

async function portico(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

const shown = async (...more: string[]): Promise<string[]> => {
  const { code, out } = await portico("log", "--config", config(), "--no-follow", ...more);
  expect(code).toBe(0);
  return out
    .trimEnd()
    .split("\n")
    .filter((line) => line !== "");
};

test("shows the last lines of all logs, in the order of their times", async () => {
  const now = Date.now();
  append(
    "access.log",
    combined("GET /files/a HTTP/1.1", 200, { time: now - 9_000 }),
    combined("PUT /old HTTP/1.1", 404, { time: now - 3_000 }),
  );
  append(
    "web.log",
    json("/web/x", 502, {
      error: "connection_refused",
      upstream_server: "http://127.0.0.1:1",
      request_id: "abc",
      time: new Date(now - 5_000).toISOString(),
    }),
  );
  const lines = await shown();
  expect(lines.map((line) => line.slice(9))).toEqual([
    "200 GET /files/a  5 B  192.0.2.7",
    "502 GET a.example/web/x  5 B  12 ms  192.0.2.9  app/web  http://127.0.0.1:1  connection_refused  abc",
    "404 PUT /old  5 B  192.0.2.7",
  ]);
  for (const line of lines) expect(line).toMatch(/^\d\d:\d\d:\d\d /);
  expect(await shown("--lines", "1")).toHaveLength(1);
});

test("with --root the logs are those below the directory", async () => {
  const text = fs.readFileSync(config(), "utf8").replaceAll(`${folder}/`, "/var/log/");
  fs.mkdirSync(at("root/etc/portico"), { recursive: true });
  fs.mkdirSync(at("root/var/log"), { recursive: true });
  fs.writeFileSync(at("root/etc/portico/portico.json"), text);
  append("root/var/log/access.log", combined("GET /files/a HTTP/1.1"));
  const { code, out } = await portico("log", "--root", at("root"), "--no-follow");
  expect([code, out.slice(9)]).toEqual([0, "200 GET /files/a  5 B  192.0.2.7\n"]);
});

test.each(["-", "\\x16\\x03\\x01"])("a line of what was no request: %s", async (request) => {
  append("access.log", combined(request, 400));
  expect((await shown()).map((line) => line.slice(9))).toEqual(["400 (no request)  5 B  192.0.2.7"]);
});

test.each<[string[], string[]]>([
  [["--status", "404"], ["/old"]],
  [
    ["--status", "5xx,404"],
    ["/web/x", "/old"],
  ],
  [["--route", "files"], ["/files/a"]],
  [["--route", "web"], ["/web/x"]],
  [["--site", "app", "--method", "put"], ["/old"]],
  [["--client", "192.0.2.8/31"], ["/web/x"]],
  [["--client", "2001:db8::/32"], ["/files/v6"]],
])("filters by %j", async (flags, expected) => {
  append(
    "access.log",
    combined("GET /files/a HTTP/1.1"),
    combined("PUT /old HTTP/1.1", 404, { client: "198.51.100.1" }),
  );
  append("web.log", json("/web/x", 502));
  if (flags.includes("2001:db8::/32"))
    append("access.log", combined("GET /files/v6 HTTP/1.1", 200, { client: "2001:db8::7" }));
  const found = (await shown(...flags)).map((line) => /(?:GET|PUT) (?:a\.example)?(\S+)/.exec(line)![1]!);
  expect(found.sort()).toEqual([...expected].sort());
});

test("--since reaches into rotated logs, compressed or not, and stops there", async () => {
  const ago = (minutes: number, path: string): string =>
    combined(`GET ${path} HTTP/1.1`, 200, { time: Date.now() - minutes * 60_000 });
  fs.writeFileSync(at("access.log.2.gz"), gzipSync(ago(50, "/old/50") + ago(25, "/files/25")));
  fs.writeFileSync(at("access.log.1"), ago(20, "/files/20") + ago(8, "/files/8"));
  fs.writeFileSync(at("access.log.1x"), ago(1, "/not/a/log"));
  append("access.log", ago(2, "/files/2"));
  const paths = async (since: string): Promise<string[]> =>
    (await shown("--since", since)).map((line) => / GET (\S+)/.exec(line)![1]!);
  expect(await paths("10m")).toEqual(["/files/8", "/files/2"]);
  expect(await paths("30m")).toEqual(["/files/25", "/files/20", "/files/8", "/files/2"]);
});

test("error logs come with --errors, and queries and tokens are hidden unless they are asked for", async () => {
  const exchange = new FakeExchange({
    target: "/files/f/Ab3dEf6hIj9k/?sig=SECRET",
    requestLine: "GET /files/f/Ab3dEf6hIj9k/?sig=SECRET HTTP/1.1",
  });
  append("error.log", errorLine("error", "connect() failed", exchange, "http://127.0.0.1:8082/?sig=SECRET"));
  append("access.log", combined("GET /files/f/Ab3dEf6hIj9k/?sig=SECRET HTTP/1.1"));
  const hidden = await shown("--errors");
  expect(hidden).toHaveLength(2);
  expect(hidden.join()).toMatch(/error \*12 connect\(\) failed, client: 192\.0\.2\.7/);
  const whole = expect.stringContaining("/files/f/Ab3dEf6hIj9k/?sig=SECRET");
  for (const flags of [[], ["--json"]]) {
    expect((await shown("--errors", ...flags)).join()).not.toMatch(/SECRET|Ab3dEf6hIj9k/);
    expect(await shown("--errors", "--show-secrets", ...flags)).toEqual([whole, whole]);
  }
});

test("--json prints one object a line", async () => {
  append("access.log", combined("GET /files/a HTTP/1.1"));
  append("web.log", json("/web/x?secret", 200, { error: null }));
  const each = (await shown("--json")).map((line) => JSON.parse(line) as object);
  expect(each).toEqual([
    expect.objectContaining({
      log: at("access.log"),
      method: "GET",
      target: "/files/a",
      status: 200,
      remote_addr: "192.0.2.7",
    }),
    expect.objectContaining({ log: at("web.log"), target: "/web/x?...", route: "web", error: null }),
  ]);
});

/** Follows until `work` is done. */
async function following(work: (out: () => string) => Promise<void>, ...more: string[]): Promise<string> {
  let out = "";
  const running = run(["log", "--config", config(), "--lines", "0", ...more], {
    out: (text) => (out += text),
    err: () => undefined,
  });
  await new Promise((resolve) => setTimeout(resolve, 400));
  try {
    await work(() => out);
  } finally {
    process.emit("SIGTERM");
    expect(await running).toBe(0);
  }
  return out;
}

const comes = (out: () => string, text: string): Promise<void> =>
  eventually(() => out().includes(text), `for ${text}`, { seen: out });
const asked = (n: number): string => combined(`GET /files/n${n}. HTTP/1.1`);

test("follows a log through renames, as logrotate makes them, and no line is lost or shown twice", async () => {
  append("access.log", asked(0));
  const out = await following(async (text) => {
    append("access.log", asked(1));
    await comes(text, "/n1.");
    // A worker has the old file open until SIGUSR1.
    const old = fs.openSync(at("access.log"), "a");
    fs.renameSync(at("access.log"), at("access.log.1"));
    fs.writeSync(old, asked(2));
    await comes(text, "/n2.");
    append("access.log", asked(3));
    await comes(text, "/n3.");
    fs.writeSync(old, asked(4));
    fs.closeSync(old);
    await comes(text, "/n4.");
    fs.renameSync(at("access.log.1"), at("access.log.2"));
    fs.renameSync(at("access.log"), at("access.log.1"));
    append("access.log", asked(5));
    await comes(text, "/n5.");
  });
  expect([...out.matchAll(/\/n(\d)\./g)].map(([, n]) => n)).toEqual(["1", "2", "3", "4", "5"]);
});

test("follows a log through a copy and a truncation, half lines, and a log that is made later", async () => {
  append("access.log", asked(0).repeat(50));
  const out = await following(async (text) => {
    append("access.log", asked(1));
    await comes(text, "/n1.");
    fs.copyFileSync(at("access.log"), at("access.log.1"));
    fs.truncateSync(at("access.log"));
    append("access.log", asked(2));
    await comes(text, "/n2.");
    append("access.log", asked(3).slice(0, 40));
    await new Promise((resolve) => setTimeout(resolve, 600));
    append("access.log", asked(3).slice(40));
    await comes(text, "/n3.");
    append("web.log", json("/web/n4."));
    await comes(text, "/n4.");
  });
  expect([...out.matchAll(/\/n(\d)\./g)].map(([, n]) => n)).toEqual(["1", "2", "3", "4"]);
});

test("what comes after its end is not shown", async () => {
  let shown = (): string => "";
  append("access.log", asked(0));
  const out = await following(async (text) => {
    shown = text;
    append("access.log", asked(1));
    await comes(text, "/n1.");
  });
  append("access.log", asked(2));
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(shown()).toBe(out);
});

test("whatever a client sends, in either format, no byte of it acts on a terminal", async () => {
  const bytes = fc
    .uint8Array({ maxLength: 30 })
    .map((b) => `/${Buffer.from(b).toString("latin1")}\x1b]0;\x9b31m\u202e`);
  await fc.assert(
    fc.asyncProperty(bytes, bytes, async (target, agent) => {
      const request: FakeRequest = {
        target,
        requestLine: `GET ${target} HTTP/1.1`,
        host: agent,
        headers: { "User-Agent": agent, Referer: target },
      };
      const exchange = new FakeExchange(request);
      fs.writeFileSync(at("access.log"), combinedLine(exchange) + `${target}\n`);
      fs.writeFileSync(
        at("web.log"),
        jsonLine(exchange) +
          json(target, 200, { host: agent, error: target, request_id: target, route: agent }),
      );
      fs.writeFileSync(
        at("error.log"),
        errorLine("error", target, exchange, agent) + `2026/11/21 10:01:22 [error] 1#1: ${target}\n`,
      );
      for (const flags of [[], ["--json"], ["--show-secrets"]])
        for (const line of await shown("--errors", ...flags)) expect(line).toMatch(/^[ -~]+$/);
    }),
    { numRuns: 20 },
  );
});

test("says what is wrong: unknown names, no files, wrong options", async () => {
  const log = (...more: string[]) => portico("log", "--config", config(), "--no-follow", ...more);
  expect(await log("--route", "wbe")).toMatchObject({
    code: 2,
    err: "error: no route is named wbe; the config has web, files, old\n",
  });
  for (const status of ["6xx", "0xx", "40", "4040", "5x", "4xx,", ""])
    expect(await log("--status", status)).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        "Give a status such as 404, a class such as 5xx, or a list such as 404,5xx.",
      ),
    });
  expect(await log("--client", "10.0.0.0/33")).toMatchObject({ code: 2 });
  expect(await log()).toMatchObject({
    code: 1,
    err: expect.stringContaining("cannot be read, or does not exist yet"),
  });
  const stream = config({
    logs: { access: { stream: "stdout" } },
    virtualServers: [{ name: "a", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
  });
  expect(await portico("log", "--config", stream)).toMatchObject({
    code: 1,
    out: expect.stringMatching(/but to stdout \[files\.no-request-ids\][^]*Use `journalctl -u portico`/),
  });
});

test("a pipe in place of a log holds up nobody", async () => {
  spawnSync("mkfifo", [at("access.log")]);
  append("web.log", json("/web/x"));
  expect(await shown()).toHaveLength(1);
});

test("nor does one in place of a log that was rotated and compressed", async () => {
  spawnSync("mkfifo", [at("access.log.1.gz")]);
  append("web.log", json("/web/x"));
  expect(await shown("--since", "10m")).toHaveLength(1);
});

test("of a compressed log no more is read than may be, whatever it unpacks to", async () => {
  fs.writeFileSync(at("access.log.gz"), gzipSync(combined("GET /files/x HTTP/1.1").repeat(10_000)));
  let lines = 0;
  const most = { bytesMax: 10_000, links: false };
  expect(await readLogFile(at("access.log.gz"), () => lines++, most)).toBeUndefined();
  expect(lines).toBeLessThan(200);
});

test.each([
  ["begins at a line", 0, ["2", "3"]],
  ["begins within a line", 1, ["2", "3"]],
  ["begins at the end of a line", -1, ["3"]],
])("of a log no more than its end is read, which %s", async (_what, more, lines) => {
  append("access.log", "1\n2\n3\n");
  const taken: string[] = [];
  const most = { bytesMax: "2\n3\n".length + more, links: false };
  expect(await readLogFile(at("access.log"), (line) => taken.push(line), most)).toBeUndefined();
  expect(taken).toEqual(lines);
});

test("a log that grows while it is read has an end all the same", async () => {
  append("access.log", "1\n");
  const grow = (): void => append("access.log", "2\n".repeat(500));
  let lines = 0;
  const taken = (): void => void (lines++ < 10_000 && grow());
  expect(await readLogFile(at("access.log"), taken, { bytesMax: 5_000, links: false })).toBeUndefined();
  expect(lines).toBeLessThanOrEqual(2_500);
});

test("what an error line quotes names neither its client nor its request, and a line of no time is none", async () => {
  const forged = 'a", client: 192.0.2.66, server: a, request id: forged, "';
  const exchange = new FakeExchange({ headers: ["Referer", forged] });
  Object.assign(exchange, { requestId: "real" });
  append("error.log", errorLine("error", `Destination "${forged}" names nothing`, exchange));
  append("error.log", "2026/99/99 99:99:99 [error] 1#1: *1 a\n");
  const [line, ...others] = await shown("--errors", "--json");
  expect(others).toEqual([]);
  expect(JSON.parse(line!)).toMatchObject({ remote_addr: exchange.client.address, request_id: "real" });
});

test("lines are read from the end, whatever their lengths, and none is lost at a border of pieces", () => {
  const lines = Array.from({ length: 400 }, (_, i) => `${i} ${"x".repeat((i * 7_919) % 5_000)}`);
  append("access.log", ...lines.map((line) => `${line}\n`));
  expect([...linesBackwards(at("access.log"))].reverse()).toEqual(lines);
  const end = Buffer.byteLength(
    lines
      .slice(0, 200)
      .map((line) => `${line}\n`)
      .join(""),
  );
  expect([...linesBackwards(at("access.log"), end)].reverse()).toEqual(lines.slice(0, 200));
});

test("each file of a config is one log, with the routes that write to it", () => {
  const parsed = parseConfig(JSON.parse(fs.readFileSync(config(), "utf8")) as object);
  if (!parsed.ok) throw new Error("not valid");
  const { logs, off } = logsOfConfig(parsed.value);
  const seen = logs.map(({ kind, path, format, routes }) => [
    kind,
    path.slice(folder.length + 1),
    format,
    routes.map(({ route }) => route.name).join(),
  ]);
  expect(off).toBe(false);
  expect(seen).toEqual([
    ["access", "access.log", "combined", "files,old"],
    ["error", "error.log", undefined, "web,files,old"],
    ["access", "web.log", "json", "web"],
  ]);
});
