import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import type * as net from "node:net";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { ControlOutcome } from "../../src/runtime/supervisor/control/control.js";
import { everywhere, logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { freePort } from "../../testkit/ports.js";
import { issue } from "../../testkit/certificates.js";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { NotifySocket } from "../../testkit/notifySocket.js";
import {
  alive,
  installedRuntime,
  killAll,
  openFolder,
  Portico,
  processes,
  SELDOM,
  type StartOptions,
} from "../../testkit/portico.js";
import { testWith } from "../../testkit/testWith.js";
import { eventually } from "../../testkit/waiting.js";

/** What systemd is told, by the real systemd-notify, and when. */

let folder: string;
let port: number;
let systemd: NotifySocket;
let upstream: http.Server;
let owed: http.ServerResponse[];
let portico: Portico;

const at = (name: string): string => join(folder, name);

beforeEach(async () => {
  folder = openFolder();
  port = await freePort();
  systemd = await NotifySocket.open(at("notify"));
  owed = [];
  upstream = http.createServer((_, response) => owed.push(response)).listen(0, "127.0.0.1");
  await once(upstream, "listening");
});

afterEach(async () => {
  killAll();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
  systemd.close();
  upstream.closeAllConnections();
  upstream.close();
});

function config(more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
  const { port: upstreamPort } = upstream.address() as net.AddressInfo;
  return oneServer({
    logs: logsIn(folder),
    listeners: [loopback("http", port)],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstreamPort}` }],
    routes: [everywhere({ type: "proxy", upstream: "web" })],
    ...more,
  });
}

async function start({ env, ...options }: StartOptions = {}): Promise<void> {
  portico = await Portico.start(config(), {
    // Of several directories that systemd made, the first counts.
    env: { NOTIFY_SOCKET: at("notify"), RUNTIME_DIRECTORY: `${folder}:/nowhere`, ...env },
    ...options,
  });
}

const ask = (command: "reload" | "status" | "upgrade"): Promise<ControlOutcome> =>
  askMaster(at("control.sock"), { command }, 30_000);

const serving = (generation: number, more = ""): string =>
  `STATUS=Serving http://127.0.0.1:${port}, 1 worker, generation ${generation}${more}`;

test("a running portico reports what it has loaded, whatever its file contains now", async () => {
  await start();
  const loaded = async () => {
    const outcome = await ask("status");
    return outcome.ok ? outcome.value.loaded : undefined;
  };
  const first = await loaded();
  expect(first).toEqual({
    runtime: expect.stringMatching(/^[0-9a-f]{64}$/),
    config: expect.stringMatching(/^[0-9a-f]{64}$/),
    tls: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  portico.rewrite({ ...config(), timeouts: { keepAliveMs: 4_321 } });
  expect(await loaded()).toEqual(first);
  expect((await ask("reload")).ok).toBe(true);
  const second = await loaded();
  expect([second?.config === first?.config, second?.runtime]).toEqual([false, first?.runtime]);
});

test("a log that cannot be opened prevents neither a start nor a reload; the reload reports it", async () => {
  mkdirSync(at("access.log"));
  const logs = { access: { path: at("access.log") }, error: { path: at("error.log") } };
  portico = await Portico.start({ ...config(), logs }, { env: { RUNTIME_DIRECTORY: folder } });
  expect(portico.errors).toMatch(/access\.log\): is a directory \[files\.log-not-writable\]/);
  const outcome = await ask("reload");
  expect(outcome).toMatchObject({ ok: true, value: { warnings: [{ code: "files.log-not-writable" }] } });
});

test.each([
  [1_000, false],
  [1_001, true],
])(
  "a process may open 1064 files, for %d connections and 64 others: a warning is %j",
  async (most, warned) => {
    const limits = { connectionsMax: most };
    portico = await Portico.start({ ...config(), limits }, { before: "ulimit -n 1064" });
    const warning =
      `limits.connectionsMax (${most}) cannot be reached: a process may open 1064 files here; ` +
      "raise LimitNOFILE= in the service's unit (ulimit -n), or lower connectionsMax";
    expect(portico.errors.includes(warning)).toBe(warned);
  },
);

const withSystemd = testWith("systemd-notify");

withSystemd("systemd is told once of a stop without a delay", async () => {
  await start();
  systemd.messages.length = 0;
  portico.signal("SIGTERM");
  await portico.gone;
  expect(systemd.messages).toEqual(["STATUS=Draining: waiting for running requests", "STOPPING=1"]);
});

withSystemd("systemd is notified of readiness, reloads with their outcome, and the stop", async () => {
  await start();
  expect(systemd.messages).toEqual([serving(1), "READY=1"]);
  const environment = readFileSync(`/proc/${portico.workers()[0]}/environ`, "latin1");
  expect(environment).not.toContain("NOTIFY_SOCKET");

  systemd.messages.length = 0;
  expect((await ask("reload")).ok).toBe(true);
  expect(systemd.messages.slice(0, 4)).toEqual([
    serving(1),
    "RELOADING=1",
    expect.stringMatching(`^${serving(2)}(, 1 older finishing)?$`),
    "READY=1",
  ]);
  await eventually(() => systemd.last("STATUS") === serving(2).slice(7), "for the old generation to be gone");

  systemd.messages.length = 0;
  portico.rewrite({ ...config(), workers: 0 });
  expect((await ask("reload")).ok).toBe(false);
  const refused = "; last reload refused: workers: .* [config.out-of-range]; ";
  expect(systemd.messages).toEqual([
    serving(2),
    "RELOADING=1",
    expect.stringMatching(new RegExp(`^${serving(2)}${refused.replace(/[[\]]/g, "\\$&")}`)),
    "READY=1",
  ]);

  // A signal is a request as well; what was refused is forgotten once another succeeds.
  portico.rewrite(config());
  systemd.messages.length = 0;
  portico.signal("SIGHUP");
  await eventually(() => systemd.last("STATUS") === serving(3).slice(7), "for the status");

  portico.rewrite({ ...config(), timeouts: { drainDelayMs: 100 } });
  portico.signal("SIGHUP");
  // While it still reloads, the new generation may be told of as well: when the old one is gone before.
  const isReady = (): boolean =>
    systemd.messages.lastIndexOf("READY=1") > systemd.messages.lastIndexOf("RELOADING=1");
  await eventually(() => isReady() && systemd.last("STATUS") === serving(4).slice(7), "for the delay");
  systemd.messages.length = 0;
  portico.signal("SIGTERM");
  await portico.gone;
  expect(systemd.messages).toEqual([
    ...["STATUS=Stopping: accepts connections for another 0.1 s, but is not ready", "STOPPING=1"],
    ...["STATUS=Draining: waiting for running requests", "STOPPING=1"],
  ]);
});

withSystemd(
  "systemd follows an upgrade to the new master, and stays with the old one when it fails",
  async () => {
    const runtime = await installedRuntime();
    await start({ runtime });
    systemd.messages.length = 0;
    const good = readFileSync(runtime, "utf8");
    writeFileSync(runtime, "process.exit(1)");
    expect((await ask("upgrade")).ok).toBe(false);
    expect(systemd.last("MAINPID")).toBe(String(portico.pid));
    expect(systemd.last("STATUS")).toMatch(/; last upgrade refused: the new master exited with code 1/);
    writeFileSync(runtime, good);

    const client = await KeepAliveClient.connect(port);
    client.send("/slow");
    await eventually(() => owed.length === 1, "for the upstream to be asked");
    systemd.messages.length = 0;
    expect((await ask("upgrade")).ok).toBe(true);
    const [next] = processes("master").filter((pid) => pid !== portico.pid);
    expect(systemd.last("MAINPID")).toBe(String(next));
    // The old one still serves, and keeps quiet.
    await eventually(() => systemd.last("READY") === "1", "for the new master to speak");
    expect(systemd.last("STATUS")).toBe(serving(2, ", 1 older finishing").slice(7));
    // Who still signals the old one means the service.
    portico.signal("SIGHUP");
    const reloaded = serving(3, ", 1 older finishing").slice(7);
    await eventually(() => systemd.last("STATUS") === reloaded, "for the new master to reload");
    expect(alive(portico.pid)).toBe(true);
    owed.shift()!.end("late");
    expect((await client.response()).body).toBe("late");
    await eventually(() => systemd.last("STATUS") === serving(3).slice(7), "for the old master to be gone");
    expect(systemd.last("STOPPING")).toBeUndefined();
  },
);

test("without systemd-notify the service runs, and logs once that it cannot notify", async () => {
  await start({ before: `export PATH=${folder}` });
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect(
    portico.errors.match(/the state of the service cannot be reported to systemd: systemd-notify: /g),
  ).toHaveLength(1);
  expect(systemd.messages).toEqual([]);
  const logged = (): string => readFileSync(at("error.log"), "utf8");
  await eventually(() => logged().includes("cannot be reported"), "for the log line");
  expect(logged()).toMatch(/\[warn\] \d+#\d+: the state of the service cannot be reported/);
});

test("without a service manager nothing is started", async () => {
  writeFileSync(at("systemd-notify"), `#!/bin/sh\n: > ${at("called")}\n`, { mode: 0o755 });
  await start({ env: { NOTIFY_SOCKET: "" }, before: `export PATH=${folder}` });
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect(existsSync(at("called"))).toBe(false);
});

test("a certificate that expires soon gives a warning at the start and on a reload", async () => {
  const { key, cert } = await issue({ from: -80, to: 9 });
  writeFileSync(at("key.pem"), key, { mode: 0o600 });
  writeFileSync(at("cert.pem"), cert);
  await start();
  portico.rewrite(
    config({
      listeners: [
        {
          name: "http",
          address: "127.0.0.1",
          port,
          protocol: "https",
          tls: { certificate: at("cert.pem"), key: at("key.pem") },
        },
      ],
    }),
  );
  const outcome = await ask("reload");
  expect(outcome).toMatchObject({
    ok: true,
    value: { warnings: [{ code: "files.certificate-expires-soon" }] },
  });
  expect(portico.errors).toMatch(
    /warning: listeners\[0\]\.tls\.certificate \(.*\): expires on .*, in 8 days/,
  );
  await eventually(() => readFileSync(at("error.log"), "utf8").includes("expires-soon"), "for the log line");
});
