import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pass } from "node:timers/promises";
import type { PauseOrder, SeenPauses } from "../../src/runtime/dispatch/pauses.js";
import { Queue } from "../../src/runtime/queue.js";
import { ServedPauses } from "../../src/runtime/supervisor/servedPauses.js";

/** The responses of a master to those who begin and end pauses, and when these end by themselves. */

const folder = mkdtempSync(join(tmpdir(), "portico-pauses-"));
afterAll(() => rmSync(folder, { recursive: true }));

const ID = "00000000-0000-4000-8000-000000000000";
const OTHER = ID.replaceAll("0", "1");
let last: PauseOrder;
let seen: (SeenPauses | undefined)[];
let lines: string[];
let served: ServedPauses;

beforeEach(() => {
  [seen, lines] = [[], []];
  const host = {
    loaded: () =>
      ({ config: { maintenance: { graceMs: 0 }, virtualServers: [{ name: "a" }, { name: "b" }] } }) as never,
    supervised: {
      orderServers: () => Promise.resolve([]),
      orderPauses: (order: PauseOrder) => {
        last = order;
        return Promise.resolve(seen);
      },
    },
    changes: new Queue(),
    notNow: () => undefined,
  };
  served = new ServedPauses(join(folder, "control.sock"), host, {
    write: (level, message) => void lines.push(`${level} ${message}`),
  });
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

const codes = (outcome: Awaited<ReturnType<ServedPauses["list"]>>): string =>
  outcome.ok ? outcome.value.message : outcome.problems.map(({ code, path }) => `${code} ${path}`).join();
const UNKNOWN = "control.unknown-server --server";
const ENDED = "maintenance has ended";

test.each<
  [before: (string | undefined)[], off: string | undefined, said: string, left: (string | undefined)[]]
>([
  [[], undefined, "there was no maintenance", []],
  [[], "a", "there was no maintenance", []],
  [[], "c", UNKNOWN, []],
  [["a"], "c", UNKNOWN, ["a"]],
  [["b"], "a", UNKNOWN, ["b"]],
  [[undefined], "a", UNKNOWN, [undefined]],
  [["a", "b"], "a", ENDED, ["b"]],
  [["a", "b"], undefined, ENDED, []],
  [[undefined, "b"], "b", ENDED, [undefined]],
])("with a maintenance of %j, the response to the end of that of %s: %s", async (before, off, said, left) => {
  for (const server of before) expect((await served.begin({}, server)).ok).toBe(true);
  lines = [];
  expect(codes(await served.end(off))).toBe(said);
  const { value } = (await served.list()) as unknown as {
    value: { pauses: { maintenance: { server?: string }[] } };
  };
  expect(value.pauses.maintenance.map(({ server }) => server)).toEqual(left);
  const over = before
    .filter((one) => !left.includes(one))
    .map((one) => `"${one}" is no longer in maintenance`);
  expect(lines).toEqual(over.map((text) => `warn virtual server ${text}`));
});

test("which name is wrong is said, and what to give", async () => {
  const unknown = { message: "is not the name of a virtual server", received: '"c"', allowed: "a, b" };
  expect(await served.begin({}, "c")).toMatchObject({ problems: [unknown] });
  expect(await served.end("c")).toMatchObject({ problems: [unknown] });
  expect(codes(await served.begin({}))).toBe(
    "every virtual server is in maintenance: requests get 503 until `portico maintenance off`",
  );
  expect(codes(await served.begin({ until: Date.UTC(2099, 4, 17) }, "a"))).toBe(
    'virtual server "a" is in maintenance: requests get 503 until 2099-05-17T00:00:00.000Z',
  );
  const alone = "has no separate maintenance: all virtual servers are in maintenance, or only others";
  expect(await served.end("b")).toMatchObject({
    problems: [
      { message: alone, received: '"b"', fix: expect.stringContaining("`portico maintenance off`") },
    ],
  });
});

test("a command ends, and renews, only what it has begun", async () => {
  seen = [{ writes: 2 }, undefined, { writes: 3 }];
  const begin = { reads: false, limitMs: 60_000 };
  expect(codes(await served.quiesce({ id: ID }))).toBe("control.not-quiesced ");
  expect(codes(await served.quiesce({ id: ID, begin }))).toBe(
    "quiesced; in progress: 5, workers that do not respond: 1",
  );
  expect(codes(await served.quiesce({ id: OTHER, begin }))).toBe("control.quiesced ");
  expect(codes(await served.quiesce({ id: OTHER }))).toBe("control.quiesced ");
  expect(codes(await served.resume(OTHER))).toBe("control.not-quiesced ");
  expect(last.quiesce).toEqual({ reads: false });
  expect(codes(await served.list())).toBe("requests are refused");
  expect(codes(await served.resume(ID))).toBe("requests that write are served again");
  expect([last.quiesce, codes(await served.list())]).toEqual([undefined, "no request is refused"]);
  expect((await served.quiesce({ id: OTHER, begin: { ...begin, reads: true } })).ok).toBe(true);
  expect(last.quiesce).toEqual({ reads: true });
  expect(lines).toEqual([
    "warn requests that write get 503 (portico quiesce)",
    "warn requests that write are served again: the command has ended",
    "warn all requests get 503 (portico quiesce)",
  ]);
});
