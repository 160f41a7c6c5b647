import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pass } from "node:timers/promises";
import type { PauseOrder } from "../../src/runtime/exchange/pauses.js";
import { Queue } from "../../src/runtime/queue.js";
import { ServedPauses } from "../../src/runtime/supervisor/servedPauses.js";

/** When pauses end, in a master whose loop is busy at that moment, or whose clock is set. */

const folder = mkdtempSync(join(tmpdir(), "portico-pauses-"));
afterAll(() => rmSync(folder, { recursive: true }));

const ID = "00000000-0000-4000-8000-000000000000";
let last: PauseOrder;
let served: ServedPauses;

beforeEach(() => {
  const host = {
    loaded: () => ({ config: { maintenance: { graceMs: 0 }, virtualServers: [] } }) as never,
    supervised: {
      orderServers: () => Promise.resolve([]),
      orderPauses: (order: PauseOrder) => {
        last = order;
        return Promise.resolve([]);
      },
    },
    changes: new Queue(),
    notNow: () => undefined,
  };
  served = new ServedPauses(join(folder, "control.sock"), host, { write: () => undefined });
});

afterEach(() => served.stop());

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("a renewal at the moment of the limit does not outlast it", async () => {
  expect((await served.quiesce({ id: ID, begin: { reads: false, limitMs: 50 } })).ok).toBe(true);
  busy(100);
  expect((await served.quiesce({ id: ID })).ok).toBe(true);
  expect(last.quiesce).toBeDefined();
  await pass(50);
  expect(last.quiesce).toBeUndefined();
  expect((await served.quiesce({ id: ID })).ok).toBe(false);
});

test("a maintenance whose end another command finds to be over ends", async () => {
  expect((await served.begin({ until: Date.now() + 50 })).ok).toBe(true);
  busy(100);
  expect((await served.quiesce({ id: ID, begin: { reads: false, limitMs: 60_000 } })).ok).toBe(true);
  await pass(50);
  expect(last.maintenance).toEqual([]);
  expect(last.quiesce).toBeDefined();
});
