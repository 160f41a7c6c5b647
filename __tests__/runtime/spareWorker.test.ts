import { get } from "node:http";
import { freePorts } from "../../testkit/ports.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { killAll, Portico, processes } from "../../testkit/portico.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";

/** The deployed program starts its first worker before it has read its config. */

let runtime: string;
beforeAll(async () => void (runtime = await sharedBundle()));
afterEach(killAll);

const PAGE = "from a worker";

const response = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, agent: false }, (message) => {
      let text = "";
      message.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      message.on("end", () => resolve(text));
    }).on("error", reject);
  });

async function serving(workers: number | "auto", env: NodeJS.ProcessEnv = {}) {
  const ports = await freePorts(2);
  const listeners = ports.map((port, i) => loopback(`l${i}`, port));
  const config = oneServer({ workers, listeners, routes: [fixed(PAGE)] });
  return { ports, config, portico: await Portico.start(config, { runtime, env }) };
}

test.each<[number, NodeJS.ProcessEnv]>([
  [1, {}],
  [3, {}],
  // Such a Node has no socket that can be sent: the prepared worker is not used.
  [1, { PORTICO_NODE_WITHOUT: "boundSockets" }],
  [2, { PORTICO_NODE_WITHOUT: "singleThreadedGc" }],
])("%d workers serve on every listener, and none is left over", async (workers, env) => {
  const { ports, portico } = await serving(workers, env);
  await eventually(() => processes("worker").length === workers, "for the workers");
  expect(portico.workers()).toHaveLength(workers);
  for (const port of ports) expect(await response(port)).toBe(PAGE);
  expect(await portico.stop()).toBe(0);
  expect(processes("worker")).toEqual([]);
});

test("a worker that a reload replaces stops listening, and its successor inherits the sockets", async () => {
  const { ports, portico } = await serving(1);
  const [first] = portico.workers();
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  await eventually(() => !portico.workers().includes(first!), "for the first worker to end");
  for (const port of ports) expect(await response(port)).toBe(PAGE);
  expect(await portico.stop()).toBe(0);
  expect(portico.errors).not.toMatch(/worker \d/);
});

test("a worker that is killed is replaced, whether it was prepared or not", async () => {
  const { ports, portico } = await serving(2);
  const before = portico.workers();
  for (const pid of before) process.kill(pid, "SIGKILL");
  await eventually(
    () => portico.workers().length === 2 && !portico.workers().some((pid) => before.includes(pid)),
    "for other workers",
  );
  for (const port of ports) expect(await response(port)).toBe(PAGE);
});

test.each(["{", '{ "version": 1 }'])("a config that is refused (%s) leaves no worker", async (text) => {
  const portico = await Portico.start(text, { runtime });
  expect(await portico.stop()).toBe(1);
  await eventually(() => processes("worker").length + processes("other").length === 0, "for all to end");
});

test("an upgrade serves with the sockets of the old master", async () => {
  const { ports, portico } = await serving(1);
  const [old] = processes("master");
  portico.signal("SIGUSR2");
  await eventually(() => processes("master").some((pid) => pid !== old), "for a new master");
  await eventually(() => !processes("master").includes(old!), "for the old master to end");
  for (const port of ports) expect(await response(port)).toBe(PAGE);
});
