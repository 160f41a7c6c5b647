import { setTimeout as sleep } from "node:timers/promises";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { alive, installedRuntime, killAll, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** A worker whose event loop is held: what probes see, and when the master replaces the worker. */

let port: number;
let health: number;
let portico: Portico;

/** As released, but a worker is hung after so many seconds instead of 30. */
async function start(hungSeconds: number): Promise<void> {
  const ports = await freePorts(2);
  [port, health] = [ports[0]!, ports[1]!];
  let edits = 0;
  const runtime = await installedRuntime((code) =>
    code.replace(/\bHUNG_MS ?= ?3e4\b/, () => {
      edits++;
      return `HUNG_MS=${hungSeconds * 1_000}`;
    }),
  );
  expect(edits).toBe(1);
  const config = oneServer({
    workers: 2,
    listeners: [loopback("http", port)],
    healthListener: { address: "127.0.0.1", port: health },
    routes: [fixed("here")],
  });
  portico = await Portico.start(config, { runtime });
}
afterEach(async () => {
  for (const pid of portico.workers()) process.kill(pid, "SIGCONT");
  killAll();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

const ask = async (path: string): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${health}${path}`);
  return `${response.status} ${await response.text()}`;
};

test("a worker that does not respond: not ready, and ready again with the worker", async () => {
  await start(60);
  const [worker] = portico.workers();
  process.kill(worker!, "SIGSTOP");
  await eventually(async () => (await ask("/readyz")).startsWith("503"));
  expect(await ask("/readyz")).toMatch(
    new RegExp(`^503 worker ${worker} has not responded for [2-9]\\.\\d s\n$`),
  );
  expect(await ask("/healthz")).toBe("200 ok\n");
  process.kill(worker!, "SIGCONT");
  await eventually(async () => (await ask("/readyz")) === "200 ready\n");
  expect(portico.workers()).toContain(worker);
});

test("a hung worker is killed and replaced, and the log says so", async () => {
  await start(4);
  const [worker, other] = portico.workers();
  process.kill(worker!, "SIGSTOP");
  await eventually(() => !alive(worker!));
  await eventually(async () => portico.workers().length === 2 && (await ask("/readyz")) === "200 ready\n");
  expect(portico.workers()).toContain(other);
  expect(portico.errors).toMatch(
    new RegExp(
      `worker ${worker} has not responded for 4 s: it is killed\n(?:.*\n)*.*worker ${worker} was killed by SIGKILL; a replacement starts`,
    ),
  );
});

test("after a pause of all processes, or of the master, no worker is blamed", async () => {
  await start(4);
  const workers = portico.workers();
  for (const paused of [[portico.pid, ...workers], [portico.pid]]) {
    for (const pid of paused) process.kill(pid, "SIGSTOP");
    await sleep(6_000);
    // The master goes on first.
    for (const pid of paused) {
      process.kill(pid, "SIGCONT");
      await sleep(300);
    }
    expect(await ask("/readyz")).toBe("200 ready\n");
    await sleep(1_000);
    expect(portico.workers()).toEqual(workers);
  }
  expect(portico.errors).not.toContain("has not responded");
});
