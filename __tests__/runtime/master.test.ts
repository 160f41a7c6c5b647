import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseConfig, type Problem, problem } from "../../src/model/index.js";
import { VERSION } from "../../src/model/version.js";
import type { FindIssued, LoadedForMaster } from "../../src/runtime/load/loadConfig.js";
import type { Handover, Predecessor, PredecessorOrders } from "../../src/runtime/supervisor/handover.js";
import { wantedCertificates } from "../../src/runtime/load/wantedCertificates.js";
import { Master, type MasterOptions } from "../../src/runtime/supervisor/master.js";
import { freePort, isRefused } from "../../proof/kit/ports.js";
import { alive } from "../../proof/kit/portico.js";
import { eventually } from "../../proof/kit/waiting.js";

/** A master by itself: its workers, the next master and systemd-notify are scripts that do what files say. */

const WORKER = `
const { appendFileSync, readFileSync } = require("node:fs");
const mode = readFileSync("FOLDER/mode", "utf8");
const failed = { type: "failed", problems: [{ code: "c", path: "p", message: "m", fix: "f" }] };
process.on("message", (message) => {
  appendFileSync("FOLDER/worker-" + process.pid, message.type + "\\n");
  if (message.type === "start") process.send(mode === "fail" ? failed : { type: "ready" });
  if (message.type === "drain") process.send({ type: "draining" }, () => mode !== "hold" && process.exit(0));
  if (message.type === "stop") process.exit(0);
});
process.on("disconnect", process.exit);
`;

/** Descriptor 3 is Node's channel: a line of JSON each way. */
const NEXT = `#!/bin/sh
say() { echo "{\\"type\\":\\"$1\\"}" >&3; }
echo "{\\"type\\":\\"started\\",\\"pid\\":$$}" >&3
. FOLDER/next-mode
while read -r line <&3; do
  echo "$line" >> FOLDER/got
  case "$line" in
    *'"start"'*) while [ -e FOLDER/wait ]; do sleep 0.01; done; say ready;;
    *takeOver*) [ "$answer" = exit ] && exit 5; say "$answer";;
    *drain*) exit 0;;
  esac
done
`;

const NOTIFY = `#!/bin/sh
for line; do echo "$line" >> FOLDER/systemd; done
while [ -e FOLDER/busy ]; do sleep 0.01; done
`;

let folder: string;
let port: number;
let said: string;
let ends: { master: Master; ended: Promise<number> }[];
const { NOTIFY_SOCKET, PATH } = process.env;

const at = (name: string): string => join(folder, name);
const write = (name: string, text = ""): void => writeFileSync(at(name), text);
const lines = (name: string): string[] =>
  existsSync(at(name)) ? readFileSync(at(name), "utf8").split("\n").slice(0, -1) : [];
const script = (name: string, text: string): void => {
  write(name, text.replaceAll("FOLDER", folder));
  chmodSync(at(name), 0o755);
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-master-"));
  port = await freePort();
  [said, ends] = ["", []];
  write("mode");
  write("next-mode", "answer=tookOver\n");
  script("worker.cjs", WORKER);
  script("next", NEXT);
  script("systemd-notify", NOTIFY);
  process.env["PATH"] = `${folder}:${PATH}`;
  for (const stream of [process.stdout, process.stderr])
    jest.spyOn(stream, "write").mockImplementation((chunk) => {
      said += String(chunk);
      return true;
    });
});
afterEach(async () => {
  for (const name of ["wait", "busy"]) rmSync(at(name), { force: true });
  for (const { master } of ends) for (let i = 0; i < 2; i++) master.shutDown();
  for (const name of readdirSync(folder).filter((one) => one.startsWith("worker-")))
    if (alive(Number(name.slice(7)))) process.kill(Number(name.slice(7)), "SIGKILL");
  await Promise.all(ends.map(({ ended }) => ended));
  // A master does not wait until systemd has its last words, which would be the first ones of the next test.
  await Promise.all(ends.map(({ master }) => master["systemd"].notify({})));
  jest.restoreAllMocks();
  if (NOTIFY_SOCKET === undefined) delete process.env["NOTIFY_SOCKET"];
  process.env["PATH"] = PATH;
  rmSync(folder, { recursive: true });
});

function loaded(more: object = {}): LoadedForMaster {
  const listeners = [{ name: "http", address: "127.0.0.1", port, protocol: "http" }];
  const parsed = parseConfig({
    version: 1,
    workers: 1,
    logs: { access: "off", error: { path: at("error.log") } },
    virtualServers: [{ name: "v", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
    listeners,
    ...more,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { config: parsed.value, tls: {}, warnings: [] };
}

const asks: string[] = [];
/** What there is to load. */
let next: (issued: FindIssued) => LoadedForMaster | readonly Problem[] | Promise<LoadedForMaster>;
beforeEach(() => {
  asks.length = 0;
  next = () => loaded();
});

function made(more: Partial<MasterOptions> = {}): Master {
  process.env["NOTIFY_SOCKET"] = "/run/notify";
  const master = new Master({
    load: async (expiry, issued) => {
      asks.push(expiry);
      const found = await next(issued);
      return "config" in found ? { ok: true, value: found } : { ok: false, problems: found };
    },
    workerCommand: [at("worker.cjs")],
    control: at("control"),
    ...more,
  });
  ends.push({ master, ended: master.run() });
  return master;
}

async function started(more: Partial<MasterOptions> = {}): Promise<Master> {
  const ready = jest.fn();
  const master = made({ onReady: ready, ...more });
  await eventually(() => ready.mock.calls.length === 1);
  return master;
}

const end = (): Promise<number> => ends[0]!.ended;
const workers = (): number[] =>
  readdirSync(folder)
    .filter((name) => name.startsWith("worker-"))
    .map((name) => Number(name.slice(7)))
    .filter(alive);
const heard = (): string[] => lines(`worker-${workers()[0]}`);
const probe = async (to: number): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${to}/readyz`);
  return `${response.status} ${await response.text()}`;
};
const status = (generation: number, more = ""): string =>
  `STATUS=Serving http://127.0.0.1:${port}, 1 worker, generation ${generation}${more}`;
const log = (): string[] => lines("error.log").map((line) => line.replace(/^.* (\[\w*\]) \d+#\d+: /, "$1 "));
const refused = (code: string, message: string) => ({ ok: false, problems: [{ code, message }] });
const p = { code: "c", path: "p", message: "m", fix: "f" } as unknown as Problem;

test("says what it does: to people, to systemd and in its log", async () => {
  const master = await started();
  expect(said).toContain(`portico ${VERSION} ready: http://127.0.0.1:${port}, 1 worker\n`);
  expect([lines("systemd"), asks]).toEqual([[status(1), "READY=1"], ["warning"]]);
  expect(master.status()).toMatchObject({ message: `serving http://127.0.0.1:${port}, 1 worker` });
  rmSync(at("systemd"));
  const reloaded = `configuration reloaded: http://127.0.0.1:${port}, 1 worker`;
  expect(await master.reload()).toEqual({ ok: true, value: { message: reloaded, warnings: [] } });
  expect(asks).toEqual(["warning", "problem"]);
  await eventually(() => log().length === 1);
  expect(log()).toEqual([`[info] ${reloaded}`]);
  await eventually(() => lines("systemd").at(-1) === status(2));
  expect(lines("systemd").slice(0, 2)).toEqual([status(1), "RELOADING=1"]);
  rmSync(at("systemd"));
  master.shutDown({ delayed: true });
  expect(await end()).toBe(0);
  await eventually(() => lines("systemd").length === 2);
  expect(lines("systemd")).toEqual(
    ["STOPPING=1", "STATUS=Finishing the requests that are running"].toReversed(),
  );
  expect([await isRefused(port), workers()]).toEqual([true, []]);
});

test("a reload that is refused is told of until another one is done", async () => {
  const master = await started();
  const [worker] = workers();
  const files = (): number => readdirSync("/proc/self/fd").length;
  const open = files();
  const verdict = "reload refused, the running configuration stays: 1 problem";
  const last = async (ok: boolean): Promise<string | undefined> => {
    expect(await master.reload()).toMatchObject({ ok });
    return lines("systemd").findLast((line) => line.startsWith("STATUS"));
  };
  next = () => [p];
  expect(await last(false)).toBe(status(1, "; last reload refused: p: m [c]; f"));
  expect(lines("systemd").at(-1)).toBe("READY=1");
  await eventually(() => log().length === 2);
  expect(log()).toEqual([`[error] ${verdict}`, "[error] p: m [c]; f"]);
  next = () => loaded();
  write("mode", "fail");
  const health = { address: "127.0.0.1", port: await freePort() };
  next = () => loaded({ healthListener: health });
  expect(await last(false)).toMatch(
    /generation 1(?:, 1 older finishing)?; last reload refused: p: m \[c\]; f$/,
  );
  expect(await isRefused(health.port)).toBe(true);
  // What it opened before it knew is closed again.
  const free = await freePort();
  const listeners = [{ name: "http", address: "127.0.0.1", port: free, protocol: "http" }];
  next = () => loaded({ listeners, healthListener: { address: "192.0.2.77", port: free } });
  expect(await last(false)).toMatch(/; last reload refused: healthListener: cannot listen/);
  expect([heard(), alive(worker!)]).toEqual([["start"], true]);
  await eventually(() => files() === open);
  write("mode");
  next = () => loaded();
  expect(await last(true)).toMatch(new RegExp(`^${status(2)}(?:, 1 older finishing)?$`));
});

describe("a start", () => {
  test("that fails is said, and ends it", async () => {
    next = () => [p];
    made();
    expect(await end()).toBe(1);
    expect(said).toMatch(/^p: m \[c\]\n[^]*\nportico: cannot start: 1 problem\n$/);
    expect([existsSync(at("control")), lines("systemd")]).toEqual([false, []]);
  });

  test("that is stopped is no failure, whatever it would have come to", async () => {
    for (const found of [loaded(), [p]]) {
      let load!: (found: LoadedForMaster) => void;
      next = () => new Promise((resolve) => (load = resolve));
      const master = made();
      await eventually(() => load !== undefined);
      // Neither harms it: there are no logs yet, and nothing that could be reloaded.
      master.reopenLogs();
      master.shutDown({ delayed: true });
      load(found as LoadedForMaster);
      expect(await ends.at(-1)!.ended).toBe(0);
    }
    expect([said, workers(), lines("systemd")]).toEqual(["", [], []]);
  });
});

test("a reload that a stop interrupts is refused, and not complained of", async () => {
  const master = await started();
  let load!: (found: LoadedForMaster) => void;
  next = () => new Promise((resolve) => (load = resolve));
  const reloading = master.reload();
  await eventually(() => load !== undefined);
  master.shutDown();
  load(loaded());
  expect(await reloading).toMatchObject(
    refused("serve.worker-failed", "portico was stopped before it was ready"),
  );
  expect(await end()).toBe(0);
  expect([said.includes("refused"), log()]).toEqual([false, []]);
});

describe("a stop with a delay", () => {
  test.each([
    [1, "0.001"],
    [60_000, "60"],
  ])("of %d ms says so, and takes no more orders", async (drainDelayMs, seconds) => {
    const healthListener = { address: "127.0.0.1", port: await freePort() };
    next = () => loaded({ timeouts: { drainDelayMs }, healthListener });
    const master = await started();
    rmSync(at("systemd"));
    write("busy");
    master.shutDown({ delayed: true });
    if (drainDelayMs > 1) {
      expect(await master.reload()).toMatchObject(
        refused("serve.stopping", "cannot reload: portico is stopping"),
      );
      expect(await master.upgrade()).toMatchObject(
        refused("serve.stopping", "cannot upgrade: portico is stopping"),
      );
      expect([heard(), await probe(healthListener.port)]).toEqual([["start"], "503 stopping\n"]);
      // Another one ends the wait.
      master.shutDown({ delayed: true });
    }
    await eventually(() => workers().length === 0);
    rmSync(at("busy"));
    expect(await end()).toBe(0);
    await eventually(() => lines("systemd").length === 4);
    expect(lines("systemd")).toEqual([
      ...[`STATUS=Stopping: accepts for ${seconds} s more, but is not ready`, "STOPPING=1"],
      ...["STATUS=Finishing the requests that are running", "STOPPING=1"],
    ]);
  });
});

test("logs are opened anew by it and its workers", async () => {
  const master = await started();
  rmSync(at("error.log"));
  master.reopenLogs();
  expect(existsSync(at("error.log"))).toBe(true);
  await eventually(() => heard().at(-1) === "reopenLogs");
});

test("that logs to standard error uses no file", async () => {
  const master = await started({ logToStderr: true });
  await master.reload();
  master.reopenLogs();
  master.shutDown();
  expect([await end(), existsSync(at("error.log"))]).toEqual([0, false]);
});

describe("an upgrade", () => {
  const program = () => ({ node: at("next"), runtime: "/r" });
  const got = (): unknown[] =>
    lines("got").map((line) => (JSON.parse(line) as { readonly type: string }).type);
  const mainPids = (): string[] => lines("systemd").filter((line) => line.startsWith("MAINPID"));

  test("is over when the next master acts, which is asked from then on", async () => {
    write("mode", "hold");
    const healthListener = { address: "127.0.0.1", port: await freePort() };
    next = () => loaded({ healthListener });
    const master = await started();
    expect(await probe(healthListener.port)).toBe("200 ready\n");
    const outcome = await master.upgrade(program());
    const pid = Number(/\d+/.exec(JSON.stringify(outcome))![0]);
    const message = `a new master, process ${pid}, has taken over`;
    expect(outcome).toEqual({ ok: true, value: { message, warnings: [] } });
    expect([got(), mainPids()]).toEqual([["start", "takeOver"], [`MAINPID=${pid}`]]);
    await eventually(() => log().length === 1);
    expect(log()).toEqual([`[info] ${message}`]);
    const replaced = refused("control.replaced", `a new master, process ${pid}, serves in place of this one`);
    expect([await master.reload(), await master.upgrade()]).toMatchObject([replaced, replaced]);
    expect([heard(), lines("systemd").at(-1)]).toEqual([["start", "drain"], `MAINPID=${pid}`]);
    process.kill(pid, "SIGKILL");
    await eventually(() => log().length === 2);
    expect(log()[1]).toBe("[crit] the new master is gone, and no process accepts connections");
    // Probes were the next master's.
    await eventually(() => isRefused(healthListener.port));
    for (const worker of workers()) process.kill(worker, "SIGKILL");
    expect(await end()).toBe(1);
  });

  test.each([
    ["exit 4", "the new master exited with code 4", []],
    [`answer=drain`, "the new master was asked to stop", undefined],
  ])("with a next master that does `%s` is refused", async (mode, message, steps) => {
    write("next-mode", `${mode}\n`);
    const master = await started();
    expect(await master.upgrade(program())).toMatchObject(refused("serve.upgrade-failed", message));
    if (steps === undefined) return;
    expect([got(), mainPids()]).toEqual([steps, [`MAINPID=${process.pid}`]]);
    await eventually(() => log().length === 2);
    expect(log()[0]).toBe("[error] upgrade refused, the running portico stays: 1 problem");
    const last = lines("systemd").findLast((line) => line.startsWith("STATUS"))!;
    expect(last).toContain(status(1, `; last upgrade refused: ${message} [serve.upgrade-failed]; `));
    expect([heard(), (await master.reload()).ok]).toEqual([["start"], true]);
  });

  test("that a stop with a delay meets halfway is given up, and the next master ends", async () => {
    next = () => loaded({ timeouts: { drainDelayMs: 60_000 } });
    const master = await started();
    write("wait");
    const upgrading = master.upgrade(program());
    await eventually(() => got().length === 1);
    master.shutDown({ delayed: true });
    rmSync(at("wait"));
    expect(await upgrading).toMatchObject(refused("serve.stopping", "cannot upgrade: portico is stopping"));
    await eventually(() => got().length === 2);
    expect([got(), mainPids(), heard()]).toEqual([
      ...[["start", "drain"], [`MAINPID=${process.pid}`], ["start"]],
    ]);
  });

  test("that a stop meets while systemd is told of the next master is given up", async () => {
    const master = await started();
    write("wait");
    const upgrading = master.upgrade(program());
    await eventually(() => got().length === 1);
    write("busy");
    rmSync(at("wait"));
    await eventually(() => mainPids().length === 1);
    master.shutDown();
    rmSync(at("busy"));
    expect(await upgrading).toMatchObject(refused("serve.stopping", "cannot upgrade: portico is stopping"));
    expect([await end(), got(), said.includes("refused")]).toEqual([0, ["start", "drain"], false]);
  });

  test("that is refused at its last step leaves it the certificates, which are another master's during the step", async () => {
    const directory = "https://127.0.0.1:9/dir";
    const ca = { name: "ca", directory, agreeToTerms: true, challenge: "tls-alpn-01" };
    const acme = { authority: "ca", names: ["a.example.net"] };
    const https = { name: "http", address: "127.0.0.1", port, protocol: "https" };
    const wanting = loaded({ certificateAuthorities: [ca], listeners: [{ ...https, tls: { acme } }] });
    const states = (): unknown[] => master.certificates.list().certificates!.map(({ state }) => state);
    const master = await started({ acmeDirectory: at("acme") });
    expect(states()).toEqual([]);
    next = async (issued) => {
      const certificates = await issued(wantedCertificates(wanting.config));
      return { ...wanting, tls: { http: { certificates } } };
    };
    expect(await master.reload()).toMatchObject({ ok: true });
    await eventually(() => states()[0] === "waiting");
    for (const answer of ["nothing", "exit"]) {
      write("next-mode", `answer=${answer}\n`);
      rmSync(at("got"), { force: true });
      const upgrading = master.upgrade(program());
      if (answer === "nothing") {
        await eventually(() => got().length === 2);
        expect(states()).toEqual([undefined]);
        process.kill(Number(mainPids().at(-1)!.slice(8)), "SIGKILL");
      }
      expect(await upgrading).toMatchObject(refused("serve.upgrade-failed", "the new master is gone"));
      await eventually(() => states()[0] === "waiting");
    }
  });

  test("is refused to the first process of a container", async () => {
    const master = await started();
    const pid = Object.getOwnPropertyDescriptor(process, "pid")!;
    Object.defineProperty(process, "pid", { ...pid, value: 1 });
    const upgrading = master.upgrade(program());
    await new Promise((resolve) => setImmediate(resolve));
    Object.defineProperty(process, "pid", pid);
    expect(await upgrading).toMatchObject(
      refused("serve.upgrade-failed", "portico is the first process of its container"),
    );
    expect(got()).toEqual([]);
  });
});

describe("after another master", () => {
  const HANDOVER: Handover = { sockets: [], ticketKeys: Buffer.alloc(48).toString("base64"), generation: 7 };
  let told: string[];
  let takeOver: () => void;
  let leaves: () => void;
  function predecessor() {
    told = [];
    const say = (what: string) => () => void told.push(what);
    return {
      handover: Promise.resolve(HANDOVER),
      takeOver: new Promise<void>((resolve) => (takeOver = resolve)),
      gone: new Promise<void>((resolve) => (leaves = resolve)),
      orders: undefined as PredecessorOrders | undefined,
      ...{ ready: say("ready"), tookOver: say("tookOver"), leave: say("leave"), broadcast: say("broadcast") },
      drain: () => (told.push("drain"), leaves()),
      stop: () => (told.push("stop"), leaves()),
      failed: (problems: readonly Problem[]) => Promise.resolve(say(`failed ${problems.length}`)()),
    };
  }
  const after = (old: ReturnType<typeof predecessor>): Master =>
    made({ predecessor: old as unknown as Predecessor });

  test("it acts when that one says so, and waits for its end", async () => {
    const master = after(predecessor());
    await eventually(() => told.length === 1);
    expect([told, said, existsSync(at("control")), lines("systemd")]).toEqual([["ready"], "", false, []]);
    takeOver();
    await eventually(() => said.includes("ready: "));
    expect([told, existsSync(at("control"))]).toEqual([["ready", "tookOver"], true]);
    expect(lines("systemd")).toEqual([status(8, ", 1 older finishing"), "READY=1"]);
    leaves();
    await eventually(() => lines("systemd").at(-1) === status(8));
    master.shutDown();
    expect([await end(), told.slice(0, 2), told.at(-1)]).toEqual([0, ["ready", "tookOver"], "leave"]);
  });

  test.each<[string, (master: Master, orders: PredecessorOrders) => void, string[]]>([
    ["that one gives it up", (_, orders) => orders.drain(false), []],
    ["that one ends it", (_, orders) => orders.stop(), []],
    ["that one leaves a stop to it", (_, orders) => orders.drain(true), ["drain"]],
    ["it is stopped, and that one with it", (master) => master.shutDown(), ["drain"]],
  ])("it ends before it acts: %s", async (_, order, steps) => {
    const old = predecessor();
    const master = after(old);
    await eventually(() => told.length === 1);
    order(master, old.orders!);
    expect([await end(), told]).toEqual([0, ["ready", ...steps, "leave"]]);
    expect([said, lines("systemd")]).toEqual(["", []]);
  });

  test("it says why it cannot start", async () => {
    next = () => [problem("serve.stopping", "", "m")];
    after(predecessor());
    expect([await end(), told]).toEqual([1, ["failed 1", "leave"]]);
  });
});
