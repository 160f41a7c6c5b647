import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { type ControlOutcome, ControlServer } from "../../src/runtime/supervisor/control/control.js";

/** The control socket, between a command and the master. */

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-process-"))));
afterEach(() => rmSync(folder, { recursive: true }));

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
    let respond!: () => void;
    const all = new Promise<void>((resolve) => (respond = resolve));
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
    respond();
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
