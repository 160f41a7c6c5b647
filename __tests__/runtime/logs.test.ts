import { execFile, execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import fc from "../../testkit/property.js";
import { parseConfig, type ProxyConfig, type RouteConfig } from "../../src/model/index.js";
import { combinedLine, errorLine, jsonLine } from "../../src/runtime/logs/logFormat.js";
import { LogFiles, type LogOptions } from "../../src/runtime/logs/logFiles.js";
import { FakeExchange, fakeRoute, type FakeOptions, type FakeRequest } from "../../testkit/fakeExchange.js";
import { descriptorsOf } from "../../testkit/processes.js";
import { sharedFile } from "../../testkit/sharedFile.js";
import { eventually } from "../../testkit/waiting.js";

let folder: string;
const opened: LogFiles[] = [];
beforeEach(() => (folder = fs.mkdtempSync(join(tmpdir(), "portico-logs-"))));
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(opened.splice(0).map((logs) => logs.close()));
  fs.rmSync(folder, { recursive: true, force: true });
});

function responded(
  request: FakeRequest = {},
  options: FakeOptions = {},
  status = 200,
  body = "hello",
): FakeExchange {
  const exchange = new FakeExchange(request, options);
  exchange.sendHead(status, "", [], body.length);
  if (body !== "" && request.method !== "HEAD") exchange.sendData(Buffer.from(body));
  exchange.end();
  return exchange;
}

/** A config with one server whose routes have these logs. */
function config(logs: object, routes: object[] = []): ProxyConfig {
  const parsed = parseConfig({
    version: 1,
    logs,
    listeners: [{ name: "plain", address: "0.0.0.0", port: 80, protocol: "http" }],
    virtualServers: [
      {
        name: "app",
        serverNames: ["sync.example"],
        listeners: ["plain"],
        default: true,
        routes: routes.map((route, i) => ({
          name: `r${i}`,
          path: `/r${i}`,
          action: { type: "respond", status: 200 },
          ...route,
        })),
      },
    ],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

function logFiles(of: ProxyConfig, options?: LogOptions): LogFiles {
  const logs = new LogFiles(of, options);
  opened.push(logs);
  return logs;
}

const read = (name: string): string => fs.readFileSync(join(folder, name), "utf8");

/** What goes to standard error from here on. */
function captureStderr(): () => string {
  let text = "";
  const original = { writeSync: fs.writeSync, write: fs.write, openSync: fs.openSync };
  // A pipe would be opened again, and have another descriptor.
  jest.spyOn(fs, "openSync").mockImplementation(((path: string, ...rest: never[]) => {
    if (path === "/proc/self/fd/2") throw new Error("not for this test");
    return (original.openSync as (...all: unknown[]) => number)(path, ...rest);
  }) as typeof fs.openSync);
  jest.spyOn(fs, "writeSync").mockImplementation(((fd: number, data: string | Buffer, ...rest: never[]) => {
    if (fd !== 2) return original.writeSync(fd, data as Buffer, ...rest);
    text += data.toString();
    return data.length;
  }) as typeof fs.writeSync);
  jest.spyOn(fs, "write").mockImplementation(((fd: number, data: Buffer, ...rest: unknown[]) => {
    if (fd !== 2) return (original.write as (...all: unknown[]) => void)(fd, data, ...rest);
    text += data.toString();
    (rest.at(-1) as (e: null, n: number) => void)(null, data.length);
  }) as typeof fs.write);
  return () => text;
}

describe("combined (decisions 7.1)", () => {
  const TIME = String.raw`\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]`;
  test.each([
    ["plain", {}, '192.0.2.7 - - TIME "GET / HTTP/1.1" 200 5 "-" "-"'],
    [
      "all fields",
      { target: "/a?b", headers: { Referer: "http://r/", "User-Agent": "curl/8" } },
      '192.0.2.7 - - TIME "GET /a?b HTTP/1.1" 200 5 "http://r/" "curl/8"',
    ],
    ["an empty Referer", { headers: { REFERER: "" } }, 'TIME "GET / HTTP/1.1" 200 5 "" "-"'],
    [
      "escapes",
      { headers: { "User-Agent": 'a"b\\c\x01\n\x7f\xe4~ ' } },
      String.raw`"-" "a\x22b\x5Cc\x01\x0A\x7F\xE4~ "`,
    ],
    ["garbage", { requestLine: "\x16\x03\x01" }, String.raw`"\x16\x03\x01" 200 5`],
    ["no request line", { requestLine: "" }, '"-" 200 5'],
    ["a Basic user", { headers: { Authorization: basic("anna:pw:x") } }, "192.0.2.7 - anna TIME"],
    [
      "without case",
      { headers: { authorization: basic("anna:pw").replace("Basic", "bAsIc") } },
      " - anna TIME",
    ],
    [
      "an unsafe user",
      { headers: { Authorization: basic('u "s\ner:pw') } },
      String.raw`192.0.2.7 - u\x20\x22s\x0Aer TIME`,
    ],
    ["a user of one letter", { headers: { Authorization: basic("a:pw") } }, "192.0.2.7 - a TIME"],
    [
      "a user behind two blanks",
      { headers: { Authorization: `Basic  ${basic("a:pw").slice(6)}` } },
      " - a TIME",
    ],
    ["no user in it", { headers: { Authorization: basic(":pw") } }, "192.0.2.7 - ? TIME"],
    ["no password in it", { headers: { Authorization: basic("anna") } }, "192.0.2.7 - ? TIME"],
    ["a user that looks like none", { headers: { Authorization: basic("-:pw") } }, " - \\x2D TIME"],
    ["no blank behind the scheme", { headers: { Authorization: "Basic\tYTpw" } }, " - ? TIME"],
    ["padding at the start", { headers: { Authorization: "Basic =YTpw" } }, " - ? TIME"],
    [
      "another scheme that has the word",
      { headers: { Authorization: "DigestYTpw basic " } },
      "192.0.2.7 - ? TIME",
    ],
    ["no Basic", { headers: { Authorization: "Bearer dTpw" } }, "192.0.2.7 - - TIME"],
    ["the first of two", { headers: ["Referer", "a", "Referer", "b"] }, '"a" "-"'],
  ])("%s", (_, request, expected) => {
    const line = combinedLine(responded(request as FakeRequest));
    expect(line).toMatch(new RegExp(expected.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace("TIME", TIME)));
    expect(line).toMatch(new RegExp(`^\\S+ - \\S+ ${TIME} "[^"]*" \\d{3} \\d+ "[^"]*" "[^"]*"\\n$`));
  });

  test("a client that left before a response is 499", () => {
    expect(combinedLine(new FakeExchange())).toContain('" 499 0 "');
  });

  test.each([
    ["Asia/Kolkata", / \+0530\] /],
    ["America/St_Johns", / -0[23]30\] /],
    ["Pacific/Kiritimati", / \+1400\] /],
    ["UTC", / \+0000\] /],
  ])("the time is local, with its offset: %s", async (zone, expected) => {
    const exchange = '{ client: {}, request: { headers: [], requestLine: "" }, server: {} }';
    const { stdout } = await script(`console.log(format.combinedLine(${exchange}))`, { TZ: zone });
    expect(stdout).toMatch(expected);
  });
});

function basic(pair: string): string {
  return `Basic ${Buffer.from(pair, "latin1").toString("base64")}`;
}

/** Our modules in one file, for processes of their own, of any user. */
const bundled = (): Promise<string> =>
  sharedFile("logs.cjs", (outfile) => {
    const modules = { format: "logs/logFormat", logs: "logs/logFiles", recovery: "load/files" };
    const contents = Object.entries(modules)
      .map(([name, path]) => `export * as ${name} from "../../src/runtime/${path}.ts";`)
      .join("\n");
    const stdin = { contents, resolveDir: __dirname };
    return build({ stdin, bundle: true, platform: "node", format: "cjs", outfile });
  });

/** Runs a script in a process of its own, with our modules as `format` and `logs`. */
async function script(
  code: string,
  env: NodeJS.ProcessEnv = {},
): Promise<{ stdout: string; stderr: string }> {
  const whole = `const { format, logs } = require(${JSON.stringify(await bundled())});\n${code}`;
  return promisify(execFile)(process.execPath, ["-e", whole], { env: { ...process.env, ...env } });
}

/** Of a route; only its kind and upstream are logged. */
const PROXIED = { type: "proxy", upstream: "app" } as RouteConfig["action"];

describe("JSON", () => {
  test("one object per line with every field", () => {
    const request = {
      target: "/sync/\xe4?q",
      host: "sync.example:8080",
      version: "2.0",
      headers: { "User-Agent": 'q"\\\x01', Authorization: basic("anna:pw") },
      receivedAt: performance.now() - 20,
    } as const;
    const line = jsonLine(
      responded(request, { route: fakeRoute({ name: "web", action: PROXIED }) }, 404, ""),
    );
    expect(line).toMatch(/^[ -~]+\n$/);
    const entry = JSON.parse(line) as Record<string, unknown>;
    expect(entry).toMatchObject({
      remote_addr: "192.0.2.7",
      remote_user: "anna",
      method: "GET",
      target: "/sync/\xe4?q",
      http_version: "2.0",
      scheme: "http",
      tls_group: null,
      host: "sync.example:8080",
      status: 404,
      body_bytes_sent: 0,
      request_body_bytes: 0,
      listener: "plain",
      server: "app",
      route: "web",
      upstream: "app",
      referer: null,
      user_agent: 'q"\\\x01',
    });
    expect(entry["request_time_ms"]).toBeGreaterThanOrEqual(20);
    expect(Math.abs(Date.parse(entry["time"] as string) - Date.now())).toBeLessThan(5_000);
    expect(entry["time"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(JSON.parse(jsonLine(new FakeExchange()))).toMatchObject({ status: 499, route: null });
    const secured = responded({}, { client: { scheme: "https", tlsGroup: "X25519" } });
    expect(JSON.parse(jsonLine(secured))).toMatchObject({ scheme: "https", tls_group: "X25519" });
  });
});

test("every moment is written in full, and a clock that jumps changes no duration", () => {
  const now = jest.spyOn(Date, "now");
  const two = (n: number): string => String(n).padStart(2, "0");
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const expectAt = (at: number): void => {
    now.mockReturnValue(at);
    const date = new Date(at);
    const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
    const [year, month, day] = [date.getFullYear(), date.getMonth(), two(date.getDate())];
    const exchange = responded({ receivedAt: performance.now() - 5_000 });
    expect(combinedLine(exchange)).toContain(` [${day}/${months[month]}/${year}:${time} `);
    expect(errorLine("info", "x")).toMatch(
      new RegExp(`^${year}/${two(month + 1)}/${day} ${time} \\[info\\]`),
    );
    const { time: logged, request_time_ms: took } = JSON.parse(jsonLine(exchange));
    expect([logged, Math.floor(took / 5_000)]).toEqual([date.toISOString(), 1]);
  };
  for (let month = 1; month <= 12; month++)
    for (const day of [1, 9, 10, 28]) expectAt(Date.parse(`2026-${two(month)}-${two(day)}T09:10:09.009Z`));
  for (let i = 0; i < 60; i++)
    expectAt(Date.parse(`2026-06-15T${two(i % 24)}:${two(i)}:${two(59 - i)}.010Z`) + i * 13);
});

test("whatever a client sends, a line is one line of printable ASCII with all its fields", () => {
  const bytes = fc.uint8Array({ maxLength: 30 }).map((b) => Buffer.from(b).toString("latin1"));
  fc.assert(
    fc.property(bytes, bytes, bytes, bytes, (target, agent, user, host) => {
      const headers = { "User-Agent": agent, Referer: target, Authorization: basic(`${user}:pw`) };
      const exchange = responded({ target, host, headers, requestLine: target });
      const combined = combinedLine(exchange);
      expect(combined).toMatch(/^[ -~]+\n$/);
      expect(combined).toMatch(/^192\.0\.2\.7 - \S+ \[[^\]]+\] "[^"]*" 200 5 "[^"]*" "[^"]*"\n$/);
      const json = jsonLine(exchange);
      expect(json).toMatch(/^[ -~]+\n$/);
      expect(JSON.parse(json)).toMatchObject({ target, host, user_agent: agent });
      expect(errorLine("error", target, exchange, agent)).toMatch(/^[^\u0000-\u001f\u007f-\u009f]+\n$/);
    }),
  );
});

describe("error log", () => {
  test("has nginx's format", () => {
    const exchange = new FakeExchange({ target: '/x"', host: "127.0.0.1", headers: { Referer: "http://r" } });
    const line = errorLine("error", "connect() failed", exchange, "http://127.0.0.1:8082/x");
    expect(line).toMatch(
      /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d \[error\] (\d+)#\1: \*12 connect\(\) failed, client: /,
    );
    expect(line.slice(line.indexOf("client:"))).toBe(
      String.raw`client: 192.0.2.7, server: sync.example, request: "GET /x\x22 HTTP/1.1", ` +
        'upstream: "http://127.0.0.1:8082/x", host: "127.0.0.1", referrer: "http://r"\n',
    );
  });

  test("is short without an exchange, and keeps letters but no control characters", () => {
    expect(errorLine("crit", "/grüße\n\x1b[31m\u2028")).toMatch(
      /\[crit\] \d+#\d+: \/grüße\\x0A\\x1B\[31m\\u2028\n$/,
    );
  });
});

describe("files", () => {
  test("routes have their own logs or the main ones; a path is opened once", async () => {
    const access = { path: join(folder, "web.log") };
    const main = { access: { path: join(folder, "access.log") }, error: { path: join(folder, "error.log") } };
    const full = config(main, [
      { accessLog: access, errorLog: { path: join(folder, "web-error.log") } },
      { accessLog: access },
      {},
      { accessLog: "off", errorLog: "off" },
    ]);
    const logs = logFiles(full);
    expect(logs.open()).toEqual([]);
    expect(ownFiles()).toHaveLength(4);
    for (const [i, route] of full.virtualServers[0]!.routes.entries()) {
      logs.accessLogFor(route).write(responded({ target: `/r${i}` }));
      logs.errorLogFor(route).write("warn", `about ${i}`);
    }
    logs.mainAccess.write(responded({ target: "/main" }));
    logs.mainError.write("error", "main");
    await logs.flush();
    const web = read("web.log").split("\n");
    expect(web[0]).toContain('"GET /r0 HTTP/1.1"');
    expect(web[1]).toContain('"GET /r1 HTTP/1.1"');
    expect(web).toHaveLength(3);
    expect(read("access.log")).toMatch(/^.*\/r2 .*\n.*\/main .*\n$/);
    expect(read("web-error.log")).toMatch(/^.*\[warn\].*: about 0\n$/);
    expect(read("error.log")).toMatch(/^.*about 1\n.*about 2\n.*: main\n$/);
    expect(fs.statSync(join(folder, "web.log")).mode & 0o777).toBe(0o640);
  });

  test("missing directories are made, 0750, whatever the umask", async () => {
    const path = join(folder, "var/log/portico/access.log");
    const umask = process.umask(0o077);
    const logs = logFiles(config({ access: { path } }));
    expect(logs.open()).toEqual([]);
    process.umask(umask);
    expect(fs.statSync(path).mode & 0o777).toBe(0o640);
    expect(fs.statSync(join(folder, "var/log/portico")).mode & 0o027).toBe(0);
  });

  test("with no umask too, directories are 0750 and files 0640", () => {
    const path = join(folder, "log/access.log");
    const umask = process.umask(0);
    try {
      expect(logFiles(config({ access: { path } })).open()).toEqual([]);
    } finally {
      process.umask(umask);
    }
    expect([join(folder, "log"), path].map((made) => fs.statSync(made).mode & 0o7777)).toEqual([
      0o750, 0o640,
    ]);
  });

  test("files that cannot be written are reported with path and fix, all at once", () => {
    fs.writeFileSync(join(folder, "file"), "");
    execFileSync("mkfifo", [join(folder, "fifo")]);
    const logs = logFiles(
      config({ access: { path: join(folder, "file/access.log") }, error: { path: folder } }, [
        { accessLog: { path: join(folder, "fifo") }, errorLog: { path: join(folder, "good.log") } },
      ]),
    );
    const problems = logs.open();
    expect(problems.map((p) => [p.code, p.path])).toEqual([
      ["files.log-not-writable", join(folder, "file/access.log")],
      ["files.log-not-writable", folder],
      ["files.log-not-writable", join(folder, "fifo")],
    ]);
    expect(problems[0]!.message).toMatch(/^cannot be opened for appending \(20: Not a directory\)$/);
    expect(problems[0]!.fix).toMatch(/mkdir -p .*\/file && chown \w+ /);
    expect(problems[1]!.fix).toContain("directory");
  });

  test("reopen releases a rotated file; waiting lines go to the new one", async () => {
    const logs = logFiles(config({ access: { path: join(folder, "access.log") } }));
    logs.open();
    logs.mainAccess.write(responded({ target: "/before" }));
    await logs.flush();
    fs.renameSync(join(folder, "access.log"), join(folder, "access.log.1"));
    logs.mainAccess.write(responded({ target: "/waiting" }));
    expect(logs.reopen()).toEqual([]);
    logs.mainAccess.write(responded({ target: "/after" }));
    await logs.flush();
    expect(read("access.log.1")).toMatch(/^.*\/before .*\n$/);
    expect(read("access.log")).toMatch(/^.*\/waiting .*\n.*\/after .*\n$/);
    expect(ownFiles()).toEqual([join(folder, "access.log")]);
  });

  test("if a file cannot be reopened, the old one stays", async () => {
    const text = captureStderr();
    const at = (name: string) => ({ path: join(folder, "d", name) });
    const logs = logFiles(config({ access: at("access.log"), error: at("error.log") }));
    logs.open();
    fs.renameSync(join(folder, "d"), join(folder, "old"));
    fs.writeFileSync(join(folder, "d"), "");
    const code = "files.log-not-writable";
    expect(logs.reopen().map((p) => p.code)).toEqual([code, code]);
    logs.mainAccess.write(responded());
    logs.mainError.write("error", "trouble");
    await logs.flush();
    expect(read("old/access.log")).toContain("GET /");
    expect(read("old/error.log")).toContain("trouble");
    expect(text()).toBe("");
  });

  test("an error log that cannot be opened goes to standard error, and is tried again", async () => {
    const text = captureStderr();
    const folderOfLogs = join(folder, "d");
    fs.writeFileSync(folderOfLogs, "");
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate"] });
    try {
      const logs = logFiles(config({ error: { path: join(folderOfLogs, "error.log") } }));
      logs.mainError.write("info", "before");
      expect(logs.open().map((p) => p.code)).toContain("files.log-not-writable");
      logs.mainError.write("info", "meanwhile");
      jest.advanceTimersByTime(11_000);
      await logs.flush();
      expect(text()).toMatch(/before\n[^]*meanwhile\n/);
      fs.rmSync(folderOfLogs);
      jest.advanceTimersByTime(11_000);
      expect(text()).toContain(`log file ${join(folderOfLogs, "error.log")} is written again\n`);
      logs.mainError.write("info", "afterwards");
      await logs.flush();
      expect(read("d/error.log")).toMatch(/^[^\n]*afterwards\n$/);
      expect(text().split("\n")).toHaveLength(4);
      // Somebody who has it opened does not wait, and nobody opens what is closed.
      const ends: [() => unknown, number][] = [
        [() => logs.reopen(), 1],
        [() => logs.close(), 0],
      ];
      for (const [end, files] of ends) {
        fs.renameSync(folderOfLogs, join(folder, "kept"));
        fs.writeFileSync(folderOfLogs, "");
        expect(logs.reopen()).toHaveLength(1);
        fs.rmSync(folderOfLogs);
        fs.renameSync(join(folder, "kept"), folderOfLogs);
        await end();
        jest.advanceTimersByTime(11_000);
        expect([text().split("\n").length, ownFiles().length]).toEqual([4, files]);
      }
    } finally {
      jest.useRealTimers();
    }
  });

  test("a file of another user is moved away if its directory is our own; links and FIFOs stay", async () => {
    const script = `
      require("fs").writeFileSync("old.log", "line\\n"); require("fs").writeFileSync("empty.log", "");
      require("child_process").execFileSync("sh", ["-c", "ln -s old.log link.log; mkfifo -m 600 fifo.log; chmod 600 *.log; chown 65534 ."]);
      process.setuid(65534);
      require(process.argv[1]).recovery.recoverLogs(["old.log", "empty.log", "link.log", "fifo.log", "none.log"]);`;
    if (process.getuid!() !== 0) return;
    fs.chmodSync(folder, 0o755);
    fs.mkdirSync(join(folder, "logs"));
    execFileSync(process.execPath, ["-e", script, await bundled()], { cwd: join(folder, "logs") });
    const left = fs.readdirSync(join(folder, "logs")).map((name) => name.replace(/\d{10}$/, "TIME"));
    expect(left.sort()).toEqual(["fifo.log", "link.log", "old.log.TIME"]);
  });

  test("lines are written after a moment, and at close", async () => {
    const logs = logFiles(config({ access: { path: join(folder, "access.log") } }));
    logs.open();
    logs.mainAccess.write(responded());
    expect(read("access.log")).toBe("");
    await eventually(() => read("access.log") !== "", "for the line");
    expect(read("access.log").split("\n")).toHaveLength(2);
    logs.mainAccess.write(responded());
    await logs.close();
    expect(read("access.log").split("\n")).toHaveLength(3);
  });

  test.each([
    ["no line that fills a batch", 20, undefined],
    ["another batch", 40, undefined],
    ["all of it, after a failure", 20, "ENOSPC"],
  ])("lines that come during a write are written without one more: %s", async (_, count, code) => {
    captureStderr();
    const logs = logFiles(config({ access: { path: join(folder, "access.log") } }));
    logs.open();
    if (code !== undefined)
      jest.spyOn(fs, "write").mockImplementationOnce(((...all: unknown[]) => {
        const done = all.at(-1) as (error: Error, written: number) => void;
        setImmediate(done, Object.assign(new Error("full"), { code, errno: -28 }), 0);
      }) as unknown as typeof fs.write);
    // A batch is of 64 KiB: with the 16th or 17th line the first write begins.
    for (let i = 0; i < count; i++)
      logs.mainAccess.write(responded({ headers: { "User-Agent": "x".repeat(4_000) } }));
    await eventually(() => read("access.log").split("\n").length === count + 1, "for all lines");
  });
});

/** Log files that this process holds open. */
const ownFiles = (): string[] => descriptorsOf(process.pid).filter((path) => path.startsWith(folder));

describe("standard error", () => {
  const paths = () => ({
    access: { path: join(folder, "access.log") },
    error: { path: join(folder, "error.log") },
  });
  async function log(of: ProxyConfig, options?: LogOptions): Promise<string> {
    const stderr = captureStderr();
    const before = process.listenerCount("exit");
    const logs = logFiles(of, options);
    logs.open();
    logs.open();
    logs.mainAccess.write(responded());
    logs.mainError.write("error", "trouble");
    await logs.flush();
    await logs.close();
    // It is not ours to close.
    expect(() => fs.fstatSync(2)).not.toThrow();
    expect(process.listenerCount("exit")).toBe(before);
    return stderr();
  }

  test("gets the errors if the main error log is off", async () => {
    expect(await log(config({}))).toMatch(/^.*: trouble\n$/);
  });

  test("gets nothing if there are files", async () => expect(await log(config(paths()))).toBe(""));

  test("gets a copy on request", async () => {
    expect(await log(config(paths()), { stderr: true })).toMatch(/trouble/);
    expect(read("access.log") + read("error.log")).toMatch(/GET .*\n.*trouble/);
  });

  test("gets an error once where the error log cannot be opened, or not at all", async () => {
    const error = { path: join(folder, "file/error.log") };
    fs.writeFileSync(join(folder, "file"), "");
    expect(await log(config({ error }))).toMatch(/^[^\n]*trouble\n$/);
    expect(await log(config({ error }), { stderr: true })).toMatch(/^[^\n]*GET [^\n]*\n[^\n]*trouble\n$/);
    expect(await log(config({ error }), { errorsToStderr: false })).toBe("");
  });

  test("takes lines of no more than a pipe takes, which the file has as well", async () => {
    const stderr = captureStderr();
    const path = join(folder, "access.log");
    const logs = logFiles(config({ access: { path, format: "json" } }), { stderr: true });
    logs.open();
    logs.mainAccess.write(responded({ headers: { "User-Agent": "x".repeat(10_000) } }));
    await logs.flush();
    expect(read("access.log").length).toBeLessThanOrEqual(4_096);
    expect(JSON.parse(read("access.log"))).toMatchObject({ status: 200 });
    expect(stderr()).toBe(read("access.log"));
  });

  test("gets everything in a preview, which touches no file", async () => {
    expect(await log(config(paths()), { stderr: true, files: false })).toMatch(/GET .*\n.*trouble/);
    expect(await log(config(paths()), { files: false })).toMatch(/^.*trouble\n$/);
    expect(fs.readdirSync(folder)).toEqual([]);
  });
});

describe("a disk that fails", () => {
  test("a full one takes memory up to a limit, then drops lines, and never fails a request; it is reported once", async () => {
    const stderr = captureStderr();
    const logs = logFiles(config({ access: { path: "/dev/full" } }));
    expect(logs.open()).toEqual([]);
    const exchange = responded({ headers: { "User-Agent": "x".repeat(2_000) } });
    for (let i = 0; i < 6_000; i++) logs.mainAccess.write(exchange);
    await logs.flush();
    logs.mainAccess.write(exchange);
    await logs.flush();
    expect(stderr()).toMatch(
      /^portico: log file \/dev\/full is not written fast enough; lines are dropped\n.*cannot be written \(28: No space/,
    );
    expect(stderr().split("\n")).toHaveLength(3);
    await logs.close();
    expect(stderr()).toContain("lost its last lines (28: No space");
  });

  test("when it works again no waiting line is missing, and the number of dropped lines is reported", async () => {
    const stderr = captureStderr();
    const write = jest.mocked(fs.write).getMockImplementation() as (...all: unknown[]) => void;
    let full = true;
    jest.mocked(fs.write).mockImplementation(((fd: number, ...rest: unknown[]) => {
      if (fd === 2 || !full) return write(fd, ...rest);
      const done = rest.at(-1) as (error: Error | null, written: number) => void;
      setImmediate(done, Object.assign(new Error("full"), { errno: -28 }), 0);
    }) as unknown as typeof fs.write);
    const logs = logFiles(config({ access: { path: join(folder, "access.log") } }));
    logs.open();
    const numbered = (i: number, agent: string): FakeExchange =>
      responded({ target: `/${String(i).padStart(4, "0")}`, headers: { "User-Agent": agent } });
    // Lines of 2 KiB fill it to the byte.
    const agent = "x".repeat(2_048 - combinedLine(numbered(0, "")).length);
    const fits = 4_096;
    for (let i = 0; i < fits + 10; i++) logs.mainAccess.write(numbered(i, agent));
    await logs.flush();
    full = false;
    await logs.flush();
    const lines = read("access.log").split("\n");
    expect(lines).toHaveLength(fits + 1);
    expect(lines.slice(0, 3).map((line) => /\/(\d{4}) /.exec(line)?.[1])).toEqual(["0000", "0001", "0002"]);
    expect(stderr()).toContain("is written again; 10 lines were dropped");
  });
});

describe("processes", () => {
  const using = (body: string): string => `
    const off = { virtualServers: [], logs: { access: "off", error: { path: ${JSON.stringify(join(folder, "error.log"))} } } };
    const files = new logs.LogFiles(off); files.open(); ${body}`;

  test("waiting lines are written when the process exits", async () => {
    const writes = ["one", "last words"].map((text) => `files.mainError.write("error", "${text}");`);
    await script(using(`${writes.join(" ")} process.exit(0);`));
    // From the first byte to the last.
    expect(read("error.log")).toMatch(/^\d{4}\/[^\n]+ one\n\d{4}\/[^\n]+ last words\n$/);
  });

  test("waiting lines do not keep a process alive, and none is lost at its normal end", async () => {
    await script(using('files.mainError.write("error", "the end");'));
    expect(read("error.log")).toMatch(/^\d{4}\/[^\n]+ the end\n$/);
  });

  test("lines of several workers do not mix", async () => {
    const worker = (letter: string): Promise<unknown> =>
      script(
        using(`
          for (let i = 0; i < 4000; i++) files.mainError.write("error", "${letter}".repeat(20 + (i * 37) % 400) + "#" + i);
          files.close();`),
      );
    await Promise.all(["a", "b", "c"].map(worker));
    const lines = read("error.log").split("\n").slice(0, -1);
    expect(lines).toHaveLength(12_000);
    for (const letter of ["a", "b", "c"]) {
      const own = lines.map((line) => /: (.)\1+#(\d+)$/.exec(line)).filter((match) => match?.[1] === letter);
      expect(own.map((match) => Number(match![2]))).toEqual(Array.from({ length: 4_000 }, (_, i) => i));
    }
  });
});
