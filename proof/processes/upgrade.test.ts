import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync, renameSync, statSync, writeFileSync } from "node:fs";
import type * as http from "node:http";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { VERSION } from "../../src/model/text/version.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { ControlOutcome, ControlRequest } from "../../src/runtime/supervisor/control/control.js";
import { createLoadUpstream } from "../../testkit/load/loadUpstream.js";
import { type LoadReport, SteadyLoad } from "../../testkit/load/steadyLoad.js";
import { logsIn, loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { freePort, isRefused } from "../../testkit/ports.js";
import { type Issued, issue } from "../../testkit/certificates.js";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import {
  alive,
  installedRuntime,
  killAll,
  openFolder,
  Portico,
  processes,
  SELDOM,
  type StartOptions,
  workersOf,
} from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";

/** What changes while clients are served: config, certificate, runtime; and what is lost when processes are killed. */

let issued: Issued;
let folder: string;
let upstream: http.Server;
let tlsFiles: ReturnType<typeof writeCertificate>;
let httpPort: number;
let httpsPort: number;
let portico: Portico;
let load: SteadyLoad | undefined;
/** Sockets that this process holds, as systemd does. */
const held: Held[] = [];

const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  issued = await issue();
  upstream = createLoadUpstream().listen(0, "127.0.0.1");
  await once(upstream, "listening");
});

afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

beforeEach(async () => {
  folder = openFolder();
  httpPort = await freePort();
  httpsPort = await freePort();
  useCertificate(issued);
});

afterEach(async () => {
  await load?.stop();
  load = undefined;
  killAll();
  for (const socket of held.splice(0)) socket.close();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

function useCertificate(one: Issued): void {
  tlsFiles = writeCertificate(folder, one);
}

function config(more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
  const { port } = upstream.address() as net.AddressInfo;
  return oneServer({
    workers: 2,
    logs: logsIn(folder),
    listeners: [loopback("http", httpPort), loopback("https", httpsPort, tlsFiles)],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${port}` }],
    server: { versionTokens: true },
    routes: [{ name: "load", path: "/load", match: "prefix", action: { type: "proxy", upstream: "web" } }],
    ...more,
  });
}

/** Where it does not matter that several workers share what there is: each of them is a process more to start. */
const alone = (): ProxyConfigInput => config({ workers: 1 });

/** Starts a portico that listens for requests. */
async function start(options: StartOptions & { config?: ProxyConfigInput } = {}): Promise<void> {
  portico = await Portico.start(options.config ?? config(), {
    ...options,
    env: { RUNTIME_DIRECTORY: folder, ...options.env },
  });
  expect(portico.errors).toBe("");
}

function ask(request: ControlRequest): Promise<ControlOutcome> {
  return askMaster(at("control.sock"), request, 30_000);
}

async function asked(request: ControlRequest): Promise<string> {
  const outcome = await ask(request);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems, null, 2));
  return outcome.value.message;
}

async function refusal(request: ControlRequest): Promise<string> {
  const outcome = await ask(request);
  if (outcome.ok) throw new Error(`it was not refused: ${outcome.value.message}`);
  return outcome.problems.map((p) => `${p.path}: ${p.message} [${p.code}]`).join("\n");
}

/** The release that responds now, from a new connection. */
async function release(): Promise<string | undefined> {
  const client = await KeepAliveClient.connect(httpPort);
  const { head } = await client.ask("/none");
  client.socket.destroy();
  return /^Server: portico\/(.+)$/m.exec(head)?.[1]?.trim();
}

/** The same runtime with another version number. */
const another =
  (version: string) =>
  (code: string): string =>
    code.replaceAll(JSON.stringify(VERSION), JSON.stringify(version));

/** Puts another release in the place of an installed one, as a deployment does. */
async function install(runtime: string, edit: (code: string) => string): Promise<void> {
  renameSync(await installedRuntime(edit), runtime);
}

const TRANSFER_MS = 2_500;
/** Rest of a client between two small requests. */
const CALM_MS = 50;
const BUSY_MS = 2;

async function underLoad(): Promise<SteadyLoad> {
  load = new SteadyLoad({
    address: "127.0.0.1",
    host: "localhost",
    httpPort,
    httpsPort,
    path: "/load",
    transferMs: TRANSFER_MS,
    transferBytes: 3_000_000,
    clients: 2,
    pauseMs: CALM_MS,
  });
  await sleep(TRANSFER_MS / 3);
  return load;
}

/** Small requests would be lost at the moment of a change: that is when there are many of them. */
async function amid<T>(change: () => Promise<T>): Promise<T> {
  load!.pauseMs = BUSY_MS;
  await sleep(CALM_MS);
  const outcome = await change();
  await sleep(2 * CALM_MS);
  load!.pauseMs = CALM_MS;
  return outcome;
}

/**
 * Kinds of transfers that were under way at a moment. Where one ends and the next begins in that millisecond, both are.
 */
function spanning({ transfers }: LoadReport, moment: number): Set<string> {
  return new Set(transfers.filter(({ from, to }) => from <= moment && moment <= to).map(({ kind }) => kind));
}

const KINDS = ["http/1.1", "http/1.1 tls", "http/2"].flatMap((kind) => [
  `${kind} download`,
  `${kind} upload`,
]);

function expectNothingLost(report: LoadReport, moments: readonly number[]): void {
  expect(report.failures).toEqual([]);
  expect(report.transfers.filter(({ failure }) => failure !== undefined)).toEqual([]);
  for (const moment of moments) expect(spanning(report, moment)).toEqual(new Set(KINDS));
  for (const count of Object.values(report.responses)) expect(count).toBeGreaterThan(5);
}

/** A download that takes a while; resolves with its length. */
async function download(ms: number, bytes = 200_000): Promise<() => Promise<number>> {
  const client = await KeepAliveClient.connect(httpPort);
  client.send(`/load/long?bytes=${bytes}&ms=${ms}`);
  await sleep(150);
  return async () => (await client.response()).body.length;
}

/** An upload that ends when it is told to; resolves then with the status of its response. */
async function upload(): Promise<() => Promise<number>> {
  const client = await KeepAliveClient.connect(httpPort);
  client.socket.write("PUT /load/long HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na");
  await sleep(150);
  return async () => {
    client.socket.write("b");
    return (await client.response()).status;
  };
}

describe("under load nothing is lost by", () => {
  test("a changed config", async () => {
    await start();
    await underLoad();
    const moment = Date.now();
    portico.rewrite(config({ workers: 1 }));
    expect(await amid(() => asked({ command: "reload" }))).toMatch(/^configuration reloaded: .*, 1 worker$/);
    const reloaded = Date.now();
    await sleep(TRANSFER_MS);
    expectNothingLost(await load!.stop(), [moment, reloaded]);
  });

  test("a renewed certificate", async () => {
    await start();
    const before = await certificate();
    await underLoad();
    const moment = Date.now();
    useCertificate(await issue({ name: "renewed" }));
    await amid(() => asked({ command: "reload" }));
    const after = await certificate();
    expect([before, after]).toEqual(["localhost", "renewed"]);
    expectNothingLost(await load!.stop(), [moment]);
  });

  test("two upgrades in a row", async () => {
    const runtime = await installedRuntime();
    await start({ runtime });
    expect(await release()).toBe(VERSION);
    const session = await tlsSession();
    await underLoad();
    const moments: number[] = [];
    const uploads: (() => Promise<number>)[] = [];
    for (const version of ["0.2.0", "0.3.0"]) {
      // The next one comes while workers of the first still serve, however long it takes.
      uploads.push(await upload());
      await install(runtime, another(version));
      moments.push(Date.now());
      const response = await amid(() => asked({ command: "upgrade" }));
      expect(response).toMatch(/^a new master, process \d+, has taken over$/);
      expect(await release()).toBe(version);
      expect(await tlsSession(session.session)).toMatchObject({ reused: true });
    }
    expect(processes("master")).toHaveLength(3);
    for (const finish of uploads) expect(await finish()).toBe(200);
    expectNothingLost(await load!.stop(), moments);
    await eventually(() => processes("master").length === 1, "for the old masters to go", SELDOM);
    expect(processes("worker")).toHaveLength(2);
    expect(alive(portico.pid)).toBe(false);
    // The socket, the log and the config are the new master's.
    portico.rewrite(config({ workers: 1 }));
    expect(await asked({ command: "reload" })).toMatch(/1 worker$/);
    await eventually(() => processes("worker").length === 1, "for the old workers to go", SELDOM);
    process.kill(processes("master")[0]!, "SIGTERM");
    await eventually(() => processes("master").length === 0, "for the last master to go", SELDOM);
  });

  test.each(["reload", "upgrade"] as const)(
    "because a %s gets a response only when no old worker accepts",
    async (command) => {
      const runtime = await installedRuntime();
      await start({ runtime });
      const old = processes("worker");
      await install(runtime, another("0.2.0"));
      for (const pid of old) process.kill(pid, "SIGSTOP");
      let responded = false;
      const response = asked({ command }).finally(() => (responded = true));
      await eventually(() => processes("worker").length === 2 * old.length, "for the new workers", SELDOM);
      await sleep(1_000);
      expect(responded).toBe(false);
      for (const pid of old) process.kill(pid, "SIGCONT");
      await response;
      // A worker that responds now with the old release would be one that accepted after the order to drain.
      for (let i = 0; i < 20; i++) expect(await release()).toBe("0.2.0");
    },
  );

  test("upgrades that fail", async () => {
    const runtime = await installedRuntime();
    await start({ runtime });
    const pids = [processes("master"), processes("worker").sort()];
    await underLoad();
    const good = readFileSync(runtime, "utf8");
    writeFileSync(runtime, "process.exit(4);");
    expect(await refusal({ command: "upgrade" })).toBe(
      ": the new master exited with code 4 [serve.upgrade-failed]",
    );
    writeFileSync(runtime, "this is not a script");
    expect(await refusal({ command: "upgrade" })).toMatch(/exited with code 1 \[serve\.upgrade-failed\]$/);
    writeFileSync(runtime, good);
    expect(await refusal({ command: "upgrade", runtime: at("none.js") })).toMatch(/exited with code 1/);
    expect(await refusal({ command: "upgrade", node: at("none") })).toMatch(
      /could not be started: no program at .*none \[serve\.upgrade-failed\]$/,
    );
    // The shell reports it under the name that the master's own lines begin with.
    await portico.says(/^portico: .*none: /m);
    portico.rewrite({ ...config(), workers: 0 });
    expect(await refusal({ command: "upgrade" })).toMatch(/^workers: .*\[config\.out-of-range\]$/);
    portico.rewrite(config());
    writeFileSync(runtime, good.replace(/^/, `if (process.argv[2] === "worker") process.exit(3);`));
    expect(await amid(() => refusal({ command: "upgrade" }))).toMatch(
      /worker \d+ exited with code 3 before it was ready/,
    );
    writeFileSync(
      runtime,
      good.replace(/^/, `if (process.argv[2] === "serve") process.kill(process.pid, "SIGKILL");`),
    );
    expect(await amid(() => refusal({ command: "upgrade" }))).toMatch(/the new master was killed by SIGKILL/);
    expect(portico.errors).toMatch(/upgrade refused; the running portico continues: 1 problem/);
    // New workers that came so far as to accept finish what they have.
    await eventually(
      () => JSON.stringify([processes("master"), processes("worker").sort()]) === JSON.stringify(pids),
      "for the new processes to go",
      SELDOM,
    );
    const report = await load!.stop();
    expect(report.failures).toEqual([]);
    expect(report.transfers.filter(({ failure }) => failure !== undefined)).toEqual([]);
    // And then one that succeeds.
    await install(runtime, another("0.4.0"));
    portico.signal("SIGUSR2");
    await portico.says(/a new master, process \d+, has taken over/);
    // A worker that was just told to drain may accept one more connection.
    await eventually(async () => (await release()) === "0.4.0", "for the new runtime to respond");
  });
});

describe("an upgrade", () => {
  /** A release that takes its time to begin. */
  const slow = (code: string): string =>
    code.replace(
      /^/,
      `if (process.env.PORTICO_SUCCESSOR) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);`,
    );

  test("passes on sockets of systemd and sockets of its own", async () => {
    hold(httpPort);
    const runtime = await installedRuntime();
    await start({ runtime, sockets: passed() });
    for (const socket of held.splice(0)) socket.close();
    await asked({ command: "upgrade" });
    await asked({ command: "upgrade" });
    expect(await release()).toBe(VERSION);
    expect(await certificate()).toBe("localhost");
    // One of its own is given up with its listener, one of systemd's is told of.
    const { listeners } = config();
    portico.rewrite(config({ listeners: [listeners[0]!], virtualServers: only("http") }));
    await asked({ command: "reload" });
    await eventually(() => isRefused(httpsPort), "for the port to be closed");
    portico.rewrite(config({ listeners: [listeners[1]!], virtualServers: only("https") }));
    await asked({ command: "reload" });
    await portico.says(/portico\.socket: was passed by systemd, but no listener listens on/);
    expect(await certificate()).toBe("localhost");
  });

  test("that is requested with a reload and another one happens first, the others after it", async () => {
    await start({ runtime: await installedRuntime(), config: alone() });
    const responses = await Promise.all([
      asked({ command: "upgrade" }),
      asked({ command: "reload" }),
      asked({ command: "upgrade" }),
      asked({ command: "reload" }),
    ]);
    expect(responses.filter((response) => response.startsWith("a new master"))).toHaveLength(2);
    expect(new Set(responses.slice(0, 1).concat(responses[2]!)).size).toBe(2);
    await eventually(() => processes("master").length === 1, "for the old masters to go", SELDOM);
    expect(await release()).toBe(VERSION);
  });

  test("is given up by a stop, which lets running requests finish", async () => {
    const runtime = await installedRuntime();
    await start({ runtime, config: alone() });
    await install(runtime, slow);
    const whole = await download(1_000);
    const refused = refusal({ command: "upgrade" });
    await eventually(() => processes("master").length + successors() > 1, "for the new master", SELDOM);
    portico.signal("SIGTERM");
    expect(await refused).toMatch(/\[serve\.(stopping|upgrade-failed)\]/);
    expect(await whole()).toBe(200_000);
    await portico.gone;
    expect(portico.code).toBe(0);
    expect(processes("master").concat(processes("worker"))).toEqual([]);
  });

  test("in which the new master is stopped stops both, the old one first", async () => {
    await start({ runtime: await installedRuntime(), config: alone() });
    const whole = await download(1_500);
    await asked({ command: "upgrade" });
    const [next] = processes("master").filter((pid) => pid !== portico.pid);
    process.kill(next!, "SIGTERM");
    await eventually(() => isRefused(httpPort), "for the port to be closed");
    expect(alive(portico.pid) && alive(next!)).toBe(true);
    // An orphan, as systemd wants its main process to be.
    expect(parentOf(next!)).not.toBe(portico.pid);
    // A signal to the old one alone changes nothing: the new one decides.
    portico.signal("SIGTERM");
    expect(await whole()).toBe(200_000);
    await eventually(() => !alive(portico.pid), "for the old master to go");
    await eventually(() => processes("master").length === 0, "for the new master to go", SELDOM);
  });

  test("in which the new master is stopped before it takes over lets running requests finish", async () => {
    const runtime = await installedRuntime((code) =>
      code.replace(
        'this.send({ type: "takeOver", counts })',
        'process.stderr.write("the last step\\n"); setTimeout(() => $&, 1000)',
      ),
    );
    await start({ runtime, config: alone() });
    const whole = await download(1_500);
    const refused = refusal({ command: "upgrade" });
    await portico.says(/the last step/);
    process.kill(
      processes("master").find((pid) => pid !== portico.pid)!,
      "SIGTERM",
    );
    expect(await refused).toMatch(/the new master was asked to stop \[serve\.upgrade-failed\]/);
    expect(await whole()).toBe(200_000);
    await eventually(() => processes("master").length === 0, "for both masters to go", SELDOM);
  });

  test("in which the new master is stopped twice cuts running requests", async () => {
    await start({ runtime: await installedRuntime(), config: alone() });
    const whole = await download(20_000);
    await asked({ command: "upgrade" });
    const [next] = processes("master").filter((pid) => pid !== portico.pid);
    process.kill(next!, "SIGTERM");
    await eventually(() => isRefused(httpPort), "for the port to be closed");
    process.kill(next!, "SIGTERM");
    await expect(whole()).rejects.toThrow("closed without a response");
    await eventually(() => processes("master").length === 0, "for both masters to go", SELDOM);
  });

  test("that loses its old master halfway continues", async () => {
    const runtime = await installedRuntime();
    await start({ runtime, config: alone() });
    await install(runtime, slow);
    const whole = await download(2_500);
    const outcome = refusal({ command: "upgrade" });
    await eventually(() => successors() > 0, "for the new master", SELDOM);
    // A response shows that the sockets were passed on: that is done in the turn in which the process is started.
    await ask({ command: "status" });
    portico.signal("SIGKILL");
    expect(await outcome).toMatch(/portico ended before it sent a response \[control\.no-response\]/);
    expect(await whole()).toBe(200_000);
    await eventually(async () => (await ask({ command: "reload" })).ok, "for the new master to be in charge");
    expect(await release()).toBe(VERSION);
  });

  test("whose new master dies later lets the old one finish, and fail", async () => {
    await start({ runtime: await installedRuntime(), config: alone() });
    const whole = await download(1_500);
    await asked({ command: "upgrade" });
    const [next] = processes("master").filter((pid) => pid !== portico.pid);
    process.kill(next!, "SIGKILL");
    await portico.says(/the new master is gone, and no process accepts connections/);
    expect(await whole()).toBe(200_000);
    await portico.gone;
    expect(portico.code).toBe(1);
  });

  test("leaves no secret where others could see it", async () => {
    await start({ runtime: await installedRuntime(), config: alone() });
    await asked({ command: "upgrade" });
    const [next] = processes("master").filter((pid) => pid !== portico.pid);
    for (const pid of [next!, ...workersOf(next!)]) {
      const seen =
        readFileSync(`/proc/${pid}/environ`, "latin1") + readFileSync(`/proc/${pid}/cmdline`, "latin1");
      // 48 bytes in base64.
      expect(seen).not.toMatch(/[A-Za-z0-9+/]{64}/);
    }
    expect(statSync(at("control.sock")).mode & 0o777).toBe(0o600);
  });
});

describe("a request to a running portico", () => {
  test("is refused if it is not understood, or if nothing runs", async () => {
    expect(await refusal({ command: "reload" })).toMatch(
      /cannot connect to a running portico: ENOENT \[control\.not-running\]/,
    );
    await start({ config: alone() });
    for (const text of [
      "{}\n",
      "nonsense\n",
      '{"command":"stop"}\n',
      '{"command":"upgrade","node":1}\n',
      "x".repeat(20_000),
    ]) {
      const socket = net.connect(at("control.sock"));
      socket.end(text);
      let response = "";
      for await (const chunk of socket) response += String(chunk);
      expect(response).toContain("control.bad-request");
    }
    // A request is what comes up to its line end, in however many pieces.
    const slow = net.connect(at("control.sock"));
    for (const piece of ['{"comm', 'and":"stat', 'us"}\n']) {
      slow.write(piece);
      await sleep(50);
    }
    let told = "";
    for await (const chunk of slow) told += String(chunk);
    expect(JSON.parse(told)).toMatchObject({ ok: true });
    portico.signal("SIGSTOP");
    const outcome = await askMaster(at("control.sock"), { command: "reload" }, 300);
    portico.signal("SIGCONT");
    expect(outcome).toMatchObject({ ok: false, problems: [{ code: "control.no-response" }] });
    portico.signal("SIGKILL");
    await portico.gone;
    expect(await refusal({ command: "reload" })).toMatch(/ECONNREFUSED \[control\.not-running\]/);
  });

  test("from many at once is done for each, with a response to each", async () => {
    await start();
    portico.rewrite({ ...config(), workers: 0 });
    const refused = await Promise.all(Array.from({ length: 5 }, () => refusal({ command: "reload" })));
    for (const text of refused) expect(text).toMatch(/^workers: /);
    // Nobody is told of a config older than the one there was when they asked.
    portico.rewrite(config({ workers: 1 }));
    const before = asked({ command: "reload" });
    await sleep(50);
    portico.rewrite(config({ workers: 2 }));
    const after = await Promise.all([asked({ command: "reload" }), asked({ command: "reload" })]);
    // On a busy machine the master comes to it after the second change.
    expect(await before).toMatch(/1 worker$|2 workers$/);
    for (const text of after) expect(text).toMatch(/2 workers$/);
  });

  test("ends without a response when the master dies", async () => {
    await start({ config: alone() });
    portico.signal("SIGSTOP");
    const outcome = refusal({ command: "reload" });
    await sleep(100);
    portico.signal("SIGKILL");
    expect(await outcome).toMatch(/\[control\.no-response\]/);
  });
});

describe("with the sockets held by systemd", () => {
  beforeEach(() => {
    hold(httpPort);
    hold(httpsPort);
  });

  test.each([
    ["a restart", "SIGTERM"],
    ["a master that is killed", "SIGKILL"],
  ] as const)("%s refuses no connection", async (_, signal) => {
    await start({ sockets: passed() });
    await underLoad();
    const moment = Date.now();
    await amid(async () => {
      portico.signal(signal);
      await eventually(() => !alive(portico.pid), "for the master to go");
    });
    await sleep(500);
    await amid(() => start({ sockets: passed() }));
    await sleep(400);
    const report = await load!.stop();
    const refused = report.failures.filter(({ failure }) => failure.includes("ECONNREFUSED"));
    expect(refused).toEqual([]);
    // Workers finish what they have, with and without a master.
    expect(report.transfers.filter(({ failure }) => failure !== undefined)).toEqual([]);
    expect(spanning(report, moment)).toEqual(new Set(KINDS));
    expect(report.failures).toEqual([]);
    // As long as the transfers took, and the start.
    expect(report.slowestMs).toBeLessThan(20_000);
  });

  test("workers do not take them for their own", async () => {
    await start({ sockets: passed() });
    for (const pid of [portico.pid, ...portico.workers()])
      expect(readFileSync(`/proc/${pid}/environ`, "utf8").includes("LISTEN_")).toBe(pid === portico.pid);
  });

  test("a killed worker loses at most the requests it was serving", async () => {
    await start({ sockets: passed() });
    await underLoad();
    const [victim] = portico.workers();
    const connections = connectionsOf(victim!);
    const moment = Date.now();
    await amid(async () => process.kill(victim!, "SIGKILL"));
    await sleep(TRANSFER_MS / 2);
    const report = await load!.stop();
    const lost = [
      ...report.failures.map(({ at: when }) => when),
      ...report.transfers.filter(({ failure }) => failure !== undefined).map(({ from }) => from),
    ];
    expect(lost.length).toBeLessThanOrEqual(connections);
    for (const when of lost) expect(when).toBeLessThan(moment + 1_000);
    expect(report.failures.filter(({ failure }) => failure.includes("ECONNREFUSED"))).toEqual([]);
    expect(portico.workers()).toHaveLength(2);
  });
});

/**
 * Binds a port in this process and never accepts from it, as systemd does. Once a portico listened, connections wait
 * there whatever becomes of it.
 */
function hold(port: number): void {
  const { _createServerHandle: bind } = net as unknown as {
    _createServerHandle(address: string, port: number, family: 4, fd: number): Held;
  };
  held.push(bind("127.0.0.1", port, 4, -1));
}

interface Held {
  readonly fd: number;
  close(): void;
}

function passed(): { fd: number; name: string }[] {
  return held.map(({ fd }) => ({ fd, name: "portico.socket" }));
}

function only(listener: string): ProxyConfigInput["virtualServers"] {
  return config().virtualServers.map((server) => ({ ...server, listeners: [listener] }));
}

/** New masters that have not come so far as to call themselves one. */
function successors(): number {
  return processes("other").length;
}

function parentOf(pid: number): number {
  return Number(/^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]);
}

/** Connections that a process has; upstream's among them. */
function connectionsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("socket:");
    } catch {
      return false;
    }
  }).length;
}

async function tlsSession(session?: Buffer): Promise<{ session: Buffer; reused: boolean; name: string }> {
  const socket = tls.connect({
    port: httpsPort,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
    session,
    maxVersion: "TLSv1.2",
  });
  await once(socket, "secureConnect");
  const found = {
    session: socket.getSession()!,
    reused: socket.isSessionReused(),
    name: String(socket.getPeerCertificate().subject?.CN),
  };
  socket.destroy();
  return found;
}

const certificate = async (): Promise<string> => (await tlsSession()).name;
