import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stall } from "../../testkit/waiting.js";
import { Successor } from "../../src/runtime/supervisor/processes/handover.js";
import { WorkerHandle } from "../../src/runtime/supervisor/processes/workerHandle.js";

/** Processes that start and then say nothing: when the master gives them up, and what it says. */

let folder: string;
let hung: string;
let kill: () => void;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-hung-"));
  hung = join(folder, "hung.cjs");
  // Without the test it ends.
  const text = 'process.on("disconnect", process.exit).send({ type: "started", pid: process.pid });';
  writeFileSync(hung, text);
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => void jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "performance"] }));
afterEach(() => {
  jest.useRealTimers();
  kill();
});

function startWorker(script: string) {
  const spec = { loaded: {} as never, sockets: new Map(), heap: undefined, logToStderr: false };
  const seen = { ready: false, failed: [] as string[], gone: undefined as string | undefined };
  const worker = new WorkerHandle(
    {
      ...{ ...spec, command: ["-e", `process.on("disconnect", process.exit); ${script}`] },
      guards: { state: { key: "", states: {} }, heard: () => undefined },
      ...{ ticketKeys: "", challenges: [], pauses: () => ({ maintenance: [] }) },
      upstreams: { orders: {}, heard: () => undefined },
      limits: { all: { times: {}, running: {} }, heard: () => undefined, gone: () => undefined },
    },
    {
      onReady: () => (seen.ready = true),
      onFailed: (_, problems) => seen.failed.push(...problems.map(({ message }) => message)),
      onDraining: () => undefined,
      onAcknowledged: () => undefined,
      onServers: () => undefined,
      onPauses: () => undefined,
      onCounts: () => undefined,
      onTransfers: () => undefined,
      onStatus: () => undefined,
      onGone: (_, how) => (seen.gone = how),
    },
  );
  kill = () => worker.kill();
  return { worker, seen };
}

test("a worker that is not ready after 30 seconds", async () => {
  const { worker, seen } = startWorker("");
  jest.advanceTimersByTime(29_999);
  await new Promise(setImmediate);
  expect(seen.failed).toEqual([]);
  jest.advanceTimersByTime(1);
  await new Promise(setImmediate);
  expect(seen.failed).toEqual([`worker ${worker.pid} was not ready within 30 s`]);
  while (seen.gone === undefined) await sleep(10);
  expect(seen.gone).toBe("was killed by SIGKILL");
});

test("a worker that became ready while the master had no turn", async () => {
  const said = join(folder, "said");
  const tell = `require("node:fs").writeFileSync(${JSON.stringify(said)}, "")`;
  const { seen } = startWorker(`process.send({ type: "ready" }, () => ${tell})`);
  // Where timers have their turn, before anything is read.
  await sleep(1);
  while (!existsSync(said)) stall(10);
  jest.advanceTimersByTime(30_000);
  while (!seen.ready && seen.gone === undefined) await sleep(10);
  expect(seen).toEqual({ ready: true, failed: [], gone: undefined });
});

test.each([
  ["ready", 60],
  ["takeOver", 10],
] as const)("a new master that does not respond: %s, after %i seconds", async (what, seconds) => {
  const handover = { sockets: [], ticketKeys: "", ticketKeysUntil: 0, serverOrders: {}, generation: 1 };
  const orders = {
    drain: () => undefined,
    stop: () => undefined,
    reopenLogs: () => undefined,
    pauses: async () => [],
    count: () => undefined,
    gauges: async () => [],
  };
  const successor = new Successor({ runtime: hung }, handover, {}, orders);
  kill = () => successor.signal("SIGKILL");
  while (successor.pid === undefined) await sleep(10);
  let said: readonly string[] | undefined;
  const asked = what === "ready" ? successor.ready() : successor.takeOver({});
  void asked.then((problems) => (said = problems.map(({ message }) => message)));
  jest.advanceTimersByTime(seconds * 1_000 - 1);
  await sleep(20);
  expect(said).toBeUndefined();
  jest.advanceTimersByTime(1);
  while (said === undefined) await sleep(10);
  expect(said).toEqual([expect.stringMatching(new RegExp(` did not respond within ${seconds} s$`))]);
  await successor.gone;
});
