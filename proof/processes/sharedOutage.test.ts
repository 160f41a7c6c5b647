import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { WorkerHoldings } from "../../src/runtime/worker/holdings.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange } from "../../testkit/peers.js";
import { alive, openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { RestartingWeb } from "../../testkit/restartingWeb.js";
import { logEntries } from "../../testkit/logEntries.js";
import { eventually } from "../../testkit/waiting.js";

/** An upstream that refuses connections, and several workers: they hold requests once, all together. */

const HOLD_MS = 4_000;
/** A response that was not held; a busy machine may take a while for each. */
const AT_ONCE_MS = HOLD_MS / 2;
const NEW_CONNECTIONS = 16;

let port: number;
let web: RestartingWeb;
let portico: Portico;
let folder: string;
let clients: KeepAliveClient[];

beforeEach(async () => {
  const [plain, upstream] = (await freePorts(2)) as [number, number];
  port = plain;
  web = new RestartingWeb(upstream);
  folder = openFolder();
  clients = [];
  portico = await Portico.start(
    oneServer({
      workers: 3,
      logs: {
        access: { path: join(folder, "access.log"), format: "json" },
        error: { path: join(folder, "error.log") },
      },
      upstreams: [{ name: "web", url: web.url, holdMs: HOLD_MS }],
      listeners: [loopback("http", port)],
      routes: [
        { name: "own", path: "/own", action: { type: "respond", status: 200, body: "here" } },
        { name: "web", path: "/", action: { type: "proxy", upstream: "web" } },
      ],
    }),
    { env: { RUNTIME_DIRECTORY: folder } },
  );
});
afterEach(async () => {
  clients.forEach(({ socket }) => socket.destroy());
  await portico.stop();
  await web.kill();
});

async function workers(): Promise<readonly WorkerHoldings[]> {
  const outcome = await askMaster(join(folder, "control.sock"), { command: "holdings" }, 10_000);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value.workers!;
}

const queued = async (): Promise<number> =>
  (await workers()).reduce((sum, { holdings }) => sum + (holdings?.queuedRequests ?? 0), 0);
const accepting = async (): Promise<number[]> =>
  (await workers()).filter(({ accepts }) => accepts).map(({ pid }) => pid);

/** A client of each worker: others cannot accept its connection, because they are stopped meanwhile. */
async function oneOfEach(): Promise<KeepAliveClient[]> {
  const pids = await accepting();
  for (const pid of pids) {
    const others = pids.filter((one) => one !== pid);
    others.forEach((one) => process.kill(one, "SIGSTOP"));
    const client = await KeepAliveClient.connect(port);
    clients.push(client);
    expect((await client.ask("/own")).status).toBe(200);
    others.forEach((one) => process.kill(one, "SIGCONT"));
  }
  return clients.slice(-pids.length);
}

const statusOf = (client: KeepAliveClient) => client.ask("/a").then(({ status }) => status);
const newConnection = () =>
  exchange(port, "GET /new HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").then(({ status }) => status);
const errors = (): string => readFileSync(join(folder, "error.log"), "utf8");
const ends = (): number => errors().match(/no longer refuses connections/g)?.length ?? 0;

async function timed<T>(asked: Promise<T>): Promise<[T, number]> {
  const began = performance.now();
  return [await asked, performance.now() - began];
}

/** Every worker, and requests on new connections, whichever worker has them. */
async function allAreRefusedAtOnce(each: readonly KeepAliveClient[]): Promise<void> {
  const fresh = Array.from({ length: NEW_CONNECTIONS }, newConnection);
  const [statuses, took] = await timed(Promise.all([...each.map(statusOf), ...fresh]));
  expect(new Set(statuses)).toEqual(new Set([502]));
  expect(took).toBeLessThan(AT_ONCE_MS);
}

test("no worker holds requests again, and all do after the upstream was back", async () => {
  const each = await oneOfEach();
  const [first, late, last] = each as [KeepAliveClient, KeepAliveClient, KeepAliveClient];
  const began = performance.now();
  const one = statusOf(first);
  await sleep(HOLD_MS / 2);
  // It waits for the rest of the same time.
  const [[status, took], other] = await Promise.all([timed(statusOf(late)), one]);
  expect([status, other]).toEqual([502, 502]);
  expect(took).toBeLessThan(HOLD_MS);
  expect(performance.now() - began).toBeLessThan(HOLD_MS + AT_ONCE_MS);
  await allAreRefusedAtOnce(each);

  await web.up();
  expect(await statusOf(last)).toBe(200);
  // The others are told.
  await eventually(() => ends() === each.length);
  await web.kill();
  const again = each.map(statusOf);
  await eventually(async () => (await queued()) === each.length);
  await web.up();
  expect(await Promise.all(again)).toEqual([200, 200, 200]);
}, 60_000);

test("workers that start during an outage do not hold requests, after a reload and in place of another", async () => {
  expect(await newConnection()).toBe(502);
  const before = await accepting();
  portico.signal("SIGHUP");
  await eventually(() => before.every((pid) => !alive(pid)));
  await allAreRefusedAtOnce(await oneOfEach());
  const [killed] = await accepting();
  process.kill(killed!, "SIGKILL");
  await eventually(async () => !alive(killed!) && (await accepting()).length === before.length);
  await allAreRefusedAtOnce(await oneOfEach());
}, 60_000);

test("the error log does not say a longer time than the access log", async () => {
  expect(await newConnection()).toBe(502);
  const said = /this request was held for (\d+) ms, the upstream has refused connections for (\d+) ms/;
  await eventually(() => said.test(errors()));
  const [held, refused] = said.exec(errors())!.slice(1).map(Number) as [number, number];
  const log = (): string => readFileSync(join(folder, "access.log"), "utf8");
  await eventually(() => log().includes("/new"));
  const [{ request_time_ms: took }] = logEntries(log()) as [{ request_time_ms: number }];
  // They are two clocks, and each rounds.
  expect(held).toBeLessThanOrEqual(took + 2);
  expect(held).toBeGreaterThan(took - 300);
  expect(refused).toBeGreaterThanOrEqual(held);
}, 60_000);
