import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../src/cli/program.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { type Accepted, connectTo, exchange, RawUpstream } from "../../testkit/peers.js";
import {
  alive,
  installedRuntime,
  killAll,
  openFolder,
  Portico,
  processes,
  SELDOM,
} from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";

/** `portico maintenance` and `portico quiesce`, with master, workers and commands as processes. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SWITCHED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
let folder: string;
let port: number;
let upstream: RawUpstream;
let portico: Portico;
const commands = new Set<ChildProcess>();

beforeEach(async () => {
  folder = openFolder();
  port = await freePort();
  upstream = await new RawUpstream((peer: Accepted) => {
    peer.socket.on("data", () => {
      if (peer.received.includes("Upgrade: websocket")) peer.send(SWITCHED);
      else if (!peer.received.includes(" /held ")) peer.send(OK);
    });
  }).listen();
});

afterEach(async () => {
  for (const child of commands) child.kill("SIGKILL");
  killAll();
  await upstream.close();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

const config = (): ProxyConfigInput =>
  oneServer({
    workers: 2,
    logs: logsIn(folder),
    maintenance: { allow: ["127.0.0.9"], graceMs: 300 },
    listeners: [loopback("http", port)],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}`, idleConnectionsMax: 0 }],
    routes: [
      {
        name: "web",
        path: "/",
        match: "prefix",
        action: { type: "proxy", upstream: "web" },
      },
    ],
  });

const start = async (runtime?: string): Promise<void> => {
  const env = { RUNTIME_DIRECTORY: folder };
  portico = await Portico.start(config(), { env, runtime });
};

/** As systemd does after a crash: nothing of the service is left, and it starts again. */
async function crash(): Promise<void> {
  const workers = portico.workers();
  portico.signal("SIGKILL");
  for (const pid of workers) process.kill(pid, "SIGKILL");
  await portico.gone;
  await eventually(() => !workers.some(alive), "for the workers to go");
  await start();
}

const log = (): string => readFileSync(join(folder, "error.log"), "utf8");
const control = () => ["--control", join(folder, "control.sock")];

async function cli(...args: string[]): Promise<string> {
  let text = "";
  const add = (more: string): void => void (text += more);
  const all = args.includes("--") ? args : [...args, ...control()];
  const code = await run(all, { out: add, err: add });
  return `${code} ${text}`;
}

/** Statuses of several requests, so that either worker has some. */
async function statuses(method = "GET"): Promise<string> {
  const seen = new Set<number>();
  const head = `${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
  for (let i = 0; i < 12; i++) seen.add((await exchange(port, head)).status);
  return [...seen].join();
}

function statusFrom(localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, localAddress, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    asked.on("error", reject).end();
  });
}

test("maintenance holds over a worker's death, a reload, an upgrade and a crash, and lets administrators in", async () => {
  await start(await installedRuntime());
  const soon = await cli("maintenance", "on", "--until", "2h", "--message", "Back soon");
  expect(soon).toMatch(/^0 every site is in maintenance: requests get 503 until \S+Z\n$/);
  expect([await statuses(), await statusFrom("127.0.0.9")]).toEqual(["503", 200]);
  const workers = portico.workers();
  for (const pid of workers) process.kill(pid, "SIGKILL");
  await eventually(() => portico.workers().filter((pid) => !workers.includes(pid)).length === 2);
  expect(await statuses()).toBe("503");
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await statuses()).toBe("503");
  const first = portico.pid;
  expect(await cli("upgrade")).toMatch(/^0 /);
  await eventually(() => !alive(first), "for the old master to go");
  expect(await statuses()).toBe("503");
  for (const pid of [...processes("master"), ...processes("worker")]) process.kill(pid, "SIGKILL");
  await eventually(() => processes("master").length + processes("worker").length === 0);
  await start();
  expect([await statuses(), await statusFrom("127.0.0.9")]).toEqual(["503", 200]);
  const live = await cli("check", "--live", portico.configFile);
  expect(live).toMatch(/^1 FAIL .* seen not probed \| cause: site "only" is in maintenance: `portico maint/);
  portico.rewrite({ ...config(), maintenance: { allow: ["127.0.0.1"] } });
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await cli("check", "--live", portico.configFile)).toMatch(/^0 PASS /);
  expect(await cli("maintenance")).toMatch(/^0 SITE +SINCE +UNTIL +MESSAGE\nall .* Back soon\n$/);
  expect(await cli("maintenance", "off")).toBe("0 maintenance has ended\n");
  expect(await statuses()).toBe("200");
  expect(await cli("maintenance", "status")).toBe("0 no request is refused\n");
  expect(await cli("maintenance", "off")).toBe("0 there was no maintenance\n");
  expect(existsSync(join(folder, "pauses.json"))).toBe(false);
});

test("it ends when it is time, closes WebSockets after the grace, and knows the names of sites", async () => {
  await start();
  const client = await connectTo(port);
  client.send(
    "GET /held HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
  );
  await client.receives("x\r\n\r\n");
  const begun = performance.now();
  expect(await cli("maintenance", "on", "--site", "only", "--until", "3s")).toMatch(/^0 site "only" is/);
  await client.receives("\x88\x02\x03\xf4");
  expect(performance.now() - begun).toBeGreaterThan(290);
  client.socket.destroy();
  expect(await statuses()).toBe("503");
  const wrong = await cli("maintenance", "on", "--site", "other");
  expect(wrong).toMatch(
    /^1 --site: is not the name of a site \[control\.unknown-site\]\n.*"other"\n.*only\n/,
  );
  await eventually(async () => (await cli("maintenance")) === "0 no request is refused\n", "for its end");
  await eventually(
    () => log().includes("is no longer in maintenance: its end time has passed"),
    "for the log",
  );
});

interface Command {
  readonly child: ChildProcess;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  errors(): string;
}

async function quiesce(options: readonly string[], script: string): Promise<Command> {
  const args = ["quiesce", ...control(), ...options, "--", "sh", "-c", script];
  const child = spawn(process.execPath, [await sharedBundle(), ...args], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  commands.add(child);
  let errors = "";
  child.stderr.on("data", (text: Buffer) => (errors += text.toString()));
  const ended = once(child, "close").then(([code, signal]) => {
    commands.delete(child);
    return (code ?? signal) as number | NodeJS.Signals;
  });
  return { child, ended, errors: () => errors };
}

test("a command runs when uploads in progress have ended, before and after an upgrade; then all is open again", async () => {
  await start(await installedRuntime());
  const [old, young] = [await connectTo(port), await connectTo(port)];
  const upload = "PUT /held HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na";
  old.send(upload);
  await eventually(() => upstream.received.includes("/held"), "for the upload");
  expect(await cli("upgrade")).toMatch(/^0 /);
  young.send(upload);
  await eventually(() => upstream.connections.length === 2, "for the other upload");
  const marker = join(folder, "ran");
  const { ended } = await quiesce([], `touch ${marker}; sleep 1; exit 7`);
  await eventually(async () => (await statuses("POST")) === "503", "for writes to be refused");
  expect([await statuses("GET"), existsSync(marker)]).toEqual(["200", false]);
  for (const [i, client] of [old, young].entries()) {
    client.send("b");
    upstream.connections[i]!.send(OK);
    await client.receives("ok");
    client.socket.destroy();
    if (i === 0) await sleep(600);
    if (i === 0) expect(existsSync(marker)).toBe(false);
  }
  await eventually(() => existsSync(marker), "for the command");
  expect(await statuses("POST")).toBe("503");
  const second = await cli("quiesce", ...control(), "--", "true");
  expect(second).toMatch(/^125 another portico quiesce has been running since .* \[control\.quiesced\]\n/);
  expect(await ended).toBe(7);
  expect(await statuses("POST")).toBe("200");
});

test("what is in progress for too long keeps the command from running, and goes on", async () => {
  await start();
  const client = await connectTo(port);
  client.send("PUT /held HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
  await eventually(() => upstream.received.includes("/held"), "for the upload");
  const marker = join(folder, "ran");
  const { ended, errors } = await quiesce(["--wait", "1s"], `touch ${marker}`);
  expect(await ended).toBe(124);
  expect(errors()).toMatch(
    /^quiesce failed: after 1 s requests that write were still in progress: 1; the command was not run\n {2}PUT \/… of 127\.0\.0\.1: 1 B of 2 B in \d+ s\n$/,
  );
  expect([existsSync(marker), await statuses("POST")]).toEqual([false, "200"]);
  const waiting = await quiesce([], `touch ${marker}`);
  await eventually(async () => (await statuses("POST")) === "503", "for writes to be refused");
  waiting.child.kill("SIGTERM");
  expect(await waiting.ended).toBe(143);
  expect([existsSync(marker), await statuses("POST")]).toEqual([false, "200"]);
  client.send("b");
  upstream.connections[0]!.send(OK);
  await client.receives("ok");
  client.socket.destroy();
});

test("a command that is killed, cannot be run, or is told to end: all is open again, and the exit code says it", async () => {
  await start();
  expect(await (await quiesce([], "kill -9 $$")).ended).toBe(137);
  expect(await statuses("POST")).toBe("200");
  expect(await cli("quiesce", ...control(), "--", "/does/not/exist")).toBe(
    "127 quiesce failed: /does/not/exist cannot be run: ENOENT\n",
  );
  expect(await cli("quiesce", ...control(), "--", "")).toMatch(/^126 quiesce failed:  cannot be run: /);
  expect(await statuses("POST")).toBe("200");
  const told = await quiesce([], "trap 'kill $!; exit 3' TERM; sleep 60 & wait");
  await eventually(async () => (await statuses("POST")) === "503", "for writes to be refused");
  await sleep(500);
  told.child.kill("SIGTERM");
  expect(await told.ended).toBe(3);
  expect(await statuses("POST")).toBe("200");
});

test("a crash of portico in the middle of a command lets nothing through; a limit does, and is told", async () => {
  await start();
  const marker = join(folder, "ran");
  const { ended } = await quiesce([], `touch ${marker}; sleep 8`);
  await eventually(() => existsSync(marker), "for the command");
  await crash();
  expect([await statuses("POST"), await statuses("GET")]).toEqual(["503", "200"]);
  expect(await ended).toBe(0);
  expect(await statuses("POST")).toBe("200");
  const late = await quiesce(["--limit", "1s"], "sleep 7; exit 24");
  expect(await late.ended).toBe(125);
  expect(late.errors()).toMatch(/^the command ended with exit code 24\n/);
  expect(late.errors()).toMatch(/requests that write are served again \[control\.not-quiesced\]/);
}, 60_000);

test("a pause that cannot be kept is in force, and is said to be so", async () => {
  const file = join(folder, "pauses.json");
  mkdirSync(join(file, "in-the-way"), { recursive: true });
  await start();
  await eventually(() => log().includes(`earlier pauses are lost: ${file}: is a directory`), "for the log");
  expect(await cli("maintenance", "on")).toMatch(
    /^0 every [^\n]*\nwarning: \S+pauses\.json: cannot be written: .* \[control\.not-kept\]\n/,
  );
  expect(await statuses()).toBe("503");
  rmSync(file, { recursive: true });
  expect(await cli("maintenance", "on")).toMatch(/^0 every [^\n]*\n$/);
  expect(existsSync(file)).toBe(true);
});

test("a hung worker keeps a command from running, and is named when a maintenance begins", async () => {
  await start();
  const [hung] = portico.workers();
  process.kill(hung!, "SIGSTOP");
  expect(await cli("maintenance", "on")).toMatch(/Z?, workers that do not respond: 1\n$/);
  expect(await cli("maintenance", "off")).toMatch(/^0 /);
  const marker = join(folder, "ran");
  const { ended, errors } = await quiesce(["--wait", "1s"], `touch ${marker}`);
  expect(await ended).toBe(124);
  expect(errors()).toContain(
    "were still in progress: 0, and 1 worker does not respond; the command was not run",
  );
  expect(existsSync(marker)).toBe(false);
  process.kill(hung!, "SIGCONT");
}, 60_000);

test("options behind the command's name are the command's, with and without `--`", async () => {
  await start();
  const asked = [
    "quiesce",
    ...control(),
    "sh",
    "-c",
    'test "$*" = "--wait 5 -v" && exit 9',
    "sh",
    "--wait",
    "5",
    "-v",
  ];
  expect(await run(asked, { out: () => undefined, err: () => undefined })).toBe(9);
});

test("if the command line is killed, requests are let through when its lease is over", async () => {
  await start();
  const marker = join(folder, "ran");
  const { child, ended } = await quiesce([], `touch ${marker}; sleep 3`);
  await eventually(() => existsSync(marker), "for the command");
  child.kill("SIGKILL");
  expect(await ended).toBe("SIGKILL");
  expect(await statuses("POST")).toBe("503");
  await eventually(async () => (await statuses("POST")) === "200", "for the lease to end", {
    ms: 45_000,
    everyMs: 500,
  });
  const why = "requests that write are served again: its command was killed";
  await eventually(() => log().includes(why), "for the log");
}, 60_000);
