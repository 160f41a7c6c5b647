import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseConfig, problem } from "../../src/model/index.js";
import { listCertificates } from "../../src/runtime/supervisor/certificateList.js";
import { askMaster } from "../../src/runtime/supervisor/askMaster.js";
import { type ControlOutcome, ControlServer } from "../../src/runtime/supervisor/control.js";
import { MasterLog } from "../../src/runtime/supervisor/masterLog.js";
import { CertificateManager } from "../../src/runtime/supervisor/certificateManager.js";
import { Health, type NotReady } from "../../src/runtime/supervisor/health.js";
import { wantedCertificates } from "../../src/runtime/load/wantedCertificates.js";
import { issue } from "../../testkit/certificates.js";
import { freePort } from "../../testkit/ports.js";

/** Parts of the master by themselves. */

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-process-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function configOf(more: object = {}) {
  const parsed = parseConfig({
    version: 1,
    workers: 2,
    listeners: [
      { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
      { name: "six", address: "::1", port: 8080, protocol: "http" },
    ],
    virtualServers: [
      { name: "v", serverNames: ["_"], default: true, listeners: ["http", "six"], routes: [] },
    ],
    ...more,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

const acmeConfig = (...names: string[]) =>
  configOf({
    certificateAuthorities: [
      { name: "ca", directory: "https://ca.example.net/dir", agreeToTerms: true, challenge: "tls-alpn-01" },
    ],
    listeners: [
      {
        ...{ name: "one", address: "127.0.0.1", port: 443, protocol: "https" },
        tls: { policy: "mozilla-intermediate", acme: { authority: "ca", names } },
      },
    ],
    virtualServers: [{ name: "v", serverNames: ["_"], default: true, listeners: ["one"], routes: [] }],
  });

describe("health", () => {
  test("ends a minute after nobody accepts, and is back when somebody does", async () => {
    const at = { address: "127.0.0.1", port: await freePort(), anyAddress: false };
    let state: NotReady | undefined;
    // Whole, so that a minute more is exactly a minute more.
    let now = Math.round(performance.now());
    const clock = jest.spyOn(performance, "now").mockImplementation(() => now);
    const health = new Health(() => state, { warn: () => undefined });
    const asked = async (path: string): Promise<string> => {
      const response = await fetch(`http://127.0.0.1:${at.port}${path}`);
      const { status, headers } = response;
      const fields = ["content-type", "cache-control", "connection", "allow"].map((name) =>
        headers.get(name),
      );
      expect(fields).toEqual(["text/plain; charset=utf-8", "no-store", "close", null]);
      return `${status} ${await response.text()}`;
    };
    try {
      await health.settle(at);
      expect([await asked("/healthz"), await asked("/readyz?x")]).toEqual(["200 ok\n", "200 ready\n"]);
      state = "no worker accepts connections";
      const nobody = `503 ${state}\n`;
      expect([await asked("/healthz"), await asked("/readyz")]).toEqual(["200 ok\n", nobody]);
      now += 60_000;
      expect(await asked("/healthz")).toBe("200 ok\n");
      now += 1;
      expect(await asked("/healthz")).toBe(nobody);
      state = "stopping";
      expect([await asked("/healthz"), await asked("/readyz")]).toEqual(["200 ok\n", "503 stopping\n"]);
      expect(await asked("/other")).toBe("404 not found\n");
      expect(await health.open(at)).toEqual([]);
      const [taken] = await new Health(() => undefined, { warn: () => undefined }).open(at);
      expect(taken).toMatchObject({ code: "listen.address-in-use", path: "healthListener" });
    } finally {
      clock.mockRestore();
      await health.settle(undefined);
    }
    await expect(fetch(`http://127.0.0.1:${at.port}/healthz`)).rejects.toThrow();
    // A config may ask for it again.
    await health.settle(at);
    expect(await asked("/readyz")).toBe("503 stopping\n");
    await health.settle(undefined);
  });
});

describe("what the master says", () => {
  let text: string;
  beforeEach(() => {
    text = "";
    jest.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      text += String(chunk);
      return true;
    });
  });
  afterEach(() => jest.restoreAllMocks());
  const p = problem("listen.failed", "p", "m", { received: "r", fix: "f" });
  const logged = (name: string): string[] =>
    readFileSync(join(folder, name), "utf8")
      .replace(/^.* (\[\w+\]) \d+#\d+: /gm, "$1 ")
      .split("\n")
      .slice(0, -1);
  const withLog = (error: object | "off") => configOf({ logs: { error } });

  test("is on standard error, and in the error log if that is a file", async () => {
    const logs = new MasterLog(true);
    logs.write("info", "before");
    await logs.use(withLog({ path: join(folder, "one.log") }));
    logs.write("info", "first");
    logs.warn(p);
    logs.refuse("refused", [p, p]);
    await logs.use(withLog({ path: join(folder, "two.log") }));
    logs.write("crit", "second");
    renameSync(join(folder, "two.log"), join(folder, "old.log"));
    mkdirSync(join(folder, "two.log"));
    logs.reopen();
    await logs.use(withLog({ stream: "stderr" }));
    logs.write("info", "third");
    await logs.use(withLog("off"));
    logs.write("info", "fourth");
    await logs.close();
    const line = expect.stringMatching(/^\[error\] .*p.*m.*; f$/) as string;
    expect(logged("one.log")).toEqual([
      ...["[info] first", expect.stringMatching(/^\[warn\] .*p.*m.*; f$/), "[error] refused: 2 problems"],
      ...[line, line],
    ]);
    const failed = `${join(folder, "two.log")}: cannot be opened for appending (21: Illegal operation on a directory)`;
    expect(logged("old.log")).toEqual(["[crit] second", `[error] ${failed}`]);
    expect(text.split("\n").filter((one) => one.startsWith("portico: "))).toEqual([
      ...["portico: before", "portico: first", expect.stringMatching(/^portico: warning: p.*m/)],
      ...["portico: refused: 2 problems", "portico: second", `portico: ${failed}`],
      ...["portico: third", "portico: fourth"],
    ]);
  });
});

test("certificates are looked at once a day", async () => {
  const { key, cert } = await issue({ type: "ec", names: ["a.example"], from: -9, to: 2 });
  const config = configOf({
    listeners: [
      {
        ...{ name: "one", address: "127.0.0.1", port: 443, protocol: "https" },
        tls: { policy: "mozilla-intermediate", certificate: "/a", key: "/k" },
      },
    ],
    virtualServers: [{ name: "v", serverNames: ["_"], default: true, listeners: ["one"], routes: [] }],
  });
  const tls = { one: { certificates: [{ id: "/a", source: "files", key, cert }] } } as const;
  const stderr = jest.spyOn(process.stderr, "write").mockReturnValue(true);
  const unused = () => Promise.reject(new Error("not for this test"));
  jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask", "Date"] });
  try {
    const certificates = new CertificateManager(undefined, new MasterLog(true), {
      ...{ loaded: () => ({ config, tls, warnings: [] }), install: unused, answerChallenges: unused },
    });
    expect(certificates.list()).toMatchObject({ message: "1 certificate", certificates: [{ from: "/a" }] });
    jest.advanceTimersByTime(86_399_999);
    expect(stderr).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(stderr.mock.calls.map(String)).toEqual([
      expect.stringMatching(/^portico: warning: .*expires on .*in \d+ days?/),
    ]);
    await certificates.stop();
    jest.advanceTimersByTime(864_000_000);
    expect(stderr).toHaveBeenCalledTimes(1);
  } finally {
    jest.useRealTimers();
    stderr.mockRestore();
  }
});

describe("certificates in use", () => {
  test("are listed once each, with their listeners, names and issuer", async () => {
    const { cert, key } = await issue({ type: "ec", names: ["a.example", "192.0.2.1"], name: "a" });
    const bare = await issue({ type: "ec", name: "only a subject" });
    const https = (name: string, port: number, ...files: string[]) => ({
      ...{ name, address: "127.0.0.1", port, protocol: "https" },
      tls: {
        ...{ policy: "mozilla-intermediate", certificate: files[0], key: "/k" },
        certificates: files.slice(1).map((certificate) => ({ certificate, key: "/k" })),
      },
    });
    const config = configOf({
      listeners: [https("one", 443, "/a", "/b"), https("two", 444, "/a")],
      virtualServers: [
        { name: "v", serverNames: ["_"], default: true, listeners: ["one", "two"], routes: [] },
      ],
    });
    const of = (id: string, pem: string) => ({ id, source: "files", key, cert: pem }) as const;
    const tls = {
      one: { certificates: [of("/a", cert), of("/b", bare.cert)] },
      two: { certificates: [of("/a", cert)] },
    };
    const status = { id: "/b", names: [], authority: "ca", state: "waiting", nextAttempt: 7 } as const;
    const listed = listCertificates({ config, tls, warnings: [] }, [status]);
    const ends = { notBefore: expect.any(Number) as number, notAfter: expect.any(Number) as number };
    expect(listed).toEqual([
      {
        ...{ names: ["a.example", "192.0.2.1"], listeners: ["one", "two"], source: "files", from: "/a" },
        ...{ issuer: "a", ...ends },
      },
      {
        ...{ names: ["CN=only a subject"], listeners: ["one"], source: "files", from: "/b" },
        ...{ issuer: "only a subject", ...ends, state: "waiting", nextAttempt: 7 },
      },
    ]);
    expect(listCertificates({ config, tls: {}, warnings: [] }, [])).toEqual([]);
  });

  test("by ACME are listed with the names that are wanted, and all that is known of them", async () => {
    const names = ["a.example.net", "b.example.net"];
    const config = acmeConfig(...names);
    const { id } = wantedCertificates(config)[0]!;
    const { key, cert } = await issue({ type: "ec", name: "x\u202e" });
    const tls = { one: { certificates: [{ id, source: "temporary", key, cert }] } } as const;
    const lastError = { code: "caa", message: "m", fix: "f", at: 7 };
    const status = {
      id,
      names: [],
      authority: "ca",
      state: "none",
      waitsFor: "192.0.2.9",
      lastError,
    } as const;
    expect(listCertificates({ config, tls, warnings: [] }, [{ ...status, id: "other" }, status])).toEqual([
      {
        ...{ names, listeners: ["one"], source: "temporary", from: "ca", issuer: "x\\u202e" },
        ...{
          notBefore: expect.any(Number),
          notAfter: expect.any(Number),
          state: "none",
          waitsFor: "192.0.2.9",
          lastError,
        },
      },
    ]);
  });
});

describe("the control socket", () => {
  const path = (): string => join(folder, "control.sock");
  const later = { code: "later.code", path: "", message: "m", fix: "f" };

  test.each<[object | string, unknown]>([
    [{ command: "reload", more: 1 }, { command: "reload" }],
    [{ command: "renew" }, { command: "renew" }],
    [
      { command: "renew", name: "a" },
      { command: "renew", name: "a" },
    ],
    [{ command: "renew", name: 7 }, undefined],
    [{ command: "upgrade" }, { command: "upgrade" }],
    [
      { command: "upgrade", node: "/n", runtime: "/r" },
      { command: "upgrade", node: "/n", runtime: "/r" },
    ],
    [{ command: "upgrade", node: 7 }, undefined],
    [{ command: "upgrade", runtime: null }, undefined],
    [{ command: "other" }, undefined],
    ["null", undefined],
    ["{", undefined],
  ])("a request of %j", async (request, expected) => {
    const seen: unknown[] = [];
    const control = await ControlServer.open(path(), (taken) => {
      seen.push(taken);
      return Promise.resolve({ ok: true, value: { message: "done", warnings: [] } });
    });
    const socket = connect(path()).setEncoding("utf8");
    socket.write(`${typeof request === "string" ? request : JSON.stringify(request)}\n`);
    let text = "";
    for await (const chunk of socket) text += chunk as string;
    control.close();
    expect(seen).toEqual(expected === undefined ? [] : [expected]);
    const outcome = JSON.parse(text) as ControlOutcome;
    expect(outcome).toMatchObject(
      expected === undefined
        ? { ok: false, problems: [{ code: "control.bad-request", path: "" }] }
        : { ok: true, value: { message: "done" } },
    );
  });

  test("a client that has ended its side still gets its response, also from a master that takes no more requests", async () => {
    const done = { ok: true, value: { message: "done", warnings: [] } } as const;
    const control = await ControlServer.open(path(), () => {
      control.close();
      return sleep(50, done);
    });
    const socket = connect({ path: path(), allowHalfOpen: true }).setEncoding("utf8");
    socket.end('{"command":"status"}\n');
    let text = "";
    for await (const chunk of socket) text += chunk as string;
    expect(JSON.parse(text)).toEqual(done);
    expect(await askMaster(path(), { command: "status" }, 1_000)).toMatchObject({
      problems: [{ code: "control.not-running" }],
    });
  });

  test("a request may come in pieces; what follows it is not read, and who goes away is not missed", async () => {
    const seen: unknown[] = [];
    const done = { ok: true, value: { message: "done", warnings: [] } } as const;
    let answer!: () => void;
    const all = new Promise<void>((resolve) => (answer = resolve));
    const control = await ControlServer.open(path(), async (request) => {
      seen.push(request);
      await sleep(50);
      await all;
      return done;
    });
    const request = Buffer.from('{"command":"renew","name":"ä"}\n');
    const middle = request.indexOf("ä") + 1;
    const socket = connect(path()).setEncoding("utf8");
    socket.write(request.subarray(0, middle));
    await sleep(20);
    socket.write(request.subarray(middle));
    await sleep(20);
    socket.write(request);
    await sleep(20);
    answer();
    let text = "";
    for await (const chunk of socket) text += chunk as string;
    const gone = connect(path());
    gone.write(request);
    await sleep(20);
    gone.destroy();
    await sleep(60);
    control.close();
    expect(JSON.parse(text)).toEqual(done);
    expect(seen).toEqual([1, 2].map(() => ({ command: "renew", name: "ä" })));
  });

  test("a master that was replaced is asked again, as its successor may be there now, until the time is over", async () => {
    let replaced = 2;
    const gone = { ok: false, problems: [{ ...later, code: "control.replaced" }] } as const;
    const done = { ok: true, value: { message: "done", warnings: [] } } as const;
    const control = await ControlServer.open(path(), () => Promise.resolve(replaced-- > 0 ? gone : done));
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const before = timers();
    expect(await askMaster(path(), { command: "status" }, 5_000)).toEqual(done);
    expect(timers()).toBeLessThanOrEqual(before);
    replaced = Infinity;
    const began = performance.now();
    expect(await askMaster(path(), { command: "status" }, 50)).toMatchObject({ ok: false });
    expect(performance.now() - began).toBeGreaterThan(45);
    control.close();
  });

  test.each([
    [16_383, undefined],
    [16_384, "control.bad-request"],
  ])("a request of %d characters without an end: %s", async (length, code) => {
    writeFileSync(`${path()}.${process.pid}`, "left by a crash");
    const control = await ControlServer.open(path(), () => new Promise(() => undefined));
    const socket = connect(path()).setEncoding("utf8");
    socket.write("x".repeat(length));
    let text = "";
    socket.on("data", (chunk: string) => (text += chunk));
    // By a reset, where the server has not read everything yet.
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    if (code !== undefined) await closed;
    else await sleep(30);
    // Who has not asked yet is not waited for.
    control.close();
    await closed;
    expect(text).toEqual(code === undefined ? "" : expect.stringContaining(code));
  });

  test("is for its owner alone, and who asks nobody is told so", async () => {
    const control = await ControlServer.open(path(), () => new Promise(() => undefined));
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    const late = await askMaster(path(), { command: "status" }, 100);
    expect(late).toMatchObject({ ok: false, problems: [{ code: "control.no-response", path: path() }] });
    control.close();
    expect(await askMaster(join(folder, "none"), { command: "status" }, 1_000)).toMatchObject({
      ok: false,
      problems: [{ code: "control.not-running", message: "cannot connect to a running portico: ENOENT" }],
    });
  });
});
