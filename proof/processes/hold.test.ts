import { join } from "node:path";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange } from "../../testkit/peers.js";
import { alive, openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { RestartingWeb } from "../../testkit/restartingWeb.js";
import { eventually } from "../../testkit/waiting.js";

/** Requests that wait for an upstream, and a front end that reloads or ends meanwhile. */

const HOLD_MS = 4_000;

let port: number;
let web: RestartingWeb;
let portico: Portico;
let control: string;

beforeEach(async () => {
  const [plain, upstream] = (await freePorts(2)) as [number, number];
  port = plain;
  web = new RestartingWeb(upstream);
  const folder = openFolder();
  control = join(folder, "control.sock");
  portico = await Portico.start(
    oneServer({
      logs: { access: "off", error: { path: join(folder, "error.log") } },
      upstreams: [{ name: "web", url: web.url, holdMs: HOLD_MS }],
      listeners: [loopback("http", port)],
      routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
    }),
    { env: { RUNTIME_DIRECTORY: folder } },
  );
});
afterEach(async () => {
  await portico.stop();
  await web.kill();
});

async function queued(): Promise<number> {
  const outcome = await askMaster(control, { command: "holdings" }, 10_000);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  const workers = outcome.value.workers!;
  return workers.reduce((sum, { holdings }) => sum + (holdings?.queuedRequests ?? 0), 0);
}

const ask = (path: string) =>
  exchange(port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`).then(({ status }) => status);

test("a reload: who waits in the old worker is served by it, and others by the new one", async () => {
  const before = portico.workers();
  const first = ask("/a");
  await eventually(async () => (await queued()) === 1);
  portico.signal("SIGHUP");
  await eventually(() => portico.workers().some((pid) => !before.includes(pid)));
  const second = ask("/b");
  await eventually(async () => (await queued()) === 2);
  await web.up();
  expect(await Promise.all([first, second])).toEqual([200, 200]);
  expect([...web.got]).toEqual(
    expect.arrayContaining([
      ["/a", 1],
      ["/b", 1],
    ]),
  );
  await eventually(() => before.every((pid) => !alive(pid)));
});

test("an end: who waits is told when the time is over, and the front end ends then", async () => {
  const first = ask("/a");
  await eventually(async () => (await queued()) === 1);
  const began = performance.now();
  portico.signal("SIGTERM");
  expect(await first).toBe(502);
  await portico.gone;
  expect(portico.code).toBe(0);
  expect(performance.now() - began).toBeLessThan(HOLD_MS + 5_000);
});
