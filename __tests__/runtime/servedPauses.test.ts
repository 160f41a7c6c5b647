import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pass } from "node:timers/promises";
import { NOTHING_SEEN, type PauseOrder, type SeenPauses } from "../../src/runtime/dispatch/pauses.js";
import { Queue } from "../../src/runtime/queue.js";
import { ServedPauses } from "../../src/runtime/supervisor/served/servedPauses.js";
import { eventually } from "../../testkit/waiting.js";

/** The responses of a master to those who begin and end pauses, and when these end by themselves. */

const folder = mkdtempSync(join(tmpdir(), "portico-pauses-"));
afterAll(() => rmSync(folder, { recursive: true }));

const ID = "00000000-0000-4000-8000-000000000000";
const OTHER = ID.replaceAll("0", "1");
const BEGIN = { reads: false, minimumRate: 0, cutsSlow: false, refuseMs: 30_000, limitMs: 60_000 };
const has = (more: Partial<SeenPauses>): SeenPauses => ({ ...NOTHING_SEEN, ...more });
let last: PauseOrder;
let seen: (SeenPauses | undefined)[];
let lines: string[];
let served: ServedPauses;

function serving(): ServedPauses {
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
  return new ServedPauses(join(folder, "control.sock"), host, {
    write: (level, message) => void lines.push(`${level} ${message}`),
  });
}

beforeEach(() => {
  [seen, lines] = [[], []];
  served = serving();
});

afterEach(() => served.stop());

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("a renewal at the moment of the limit does not outlast it", async () => {
  expect((await served.quiesce({ id: ID, begin: { ...BEGIN, limitMs: 50 }, refuses: true })).ok).toBe(true);
  busy(100);
  expect((await served.quiesce({ id: ID })).ok).toBe(true);
  expect(last.quiesce).toBeDefined();
  await eventually(() => last.quiesce === undefined, "for the quiesce to end");
  expect((await served.quiesce({ id: ID })).ok).toBe(false);
});

test("both orders of a maintenance name the workers that do not respond", async () => {
  seen = [has({}), undefined];
  expect(codes(await served.begin({ message: "Back soon" }))).toMatch(/, workers that do not respond: 1$/);
  expect(codes(await served.end())).toBe("maintenance has ended, workers that do not respond: 1");
  seen = [has({}), has({})];
  expect(codes(await served.end())).toBe("there was no maintenance");
});

test("a maintenance whose end another command finds to be over ends", async () => {
  expect((await served.begin({ until: Date.now() + 50 })).ok).toBe(true);
  busy(100);
  expect((await served.quiesce({ id: ID, begin: BEGIN })).ok).toBe(true);
  await eventually(() => last.maintenance.length === 0, "for the maintenance to end");
  expect(last.quiesce).toBeDefined();
});

const codes = (outcome: Awaited<ReturnType<ServedPauses["list"]>>): string =>
  outcome.ok ? outcome.value.message : outcome.problems.map(({ code, path }) => `${code} ${path}`).join();
const UNKNOWN = "control.unknown-site --site";
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
  for (const site of before) expect((await served.begin({}, site)).ok).toBe(true);
  lines = [];
  expect(codes(await served.end(off))).toBe(said);
  const { value } = (await served.list()) as unknown as {
    value: { pauses: { maintenance: { site?: string }[] } };
  };
  expect(value.pauses.maintenance.map(({ site }) => site)).toEqual(left);
  const over = before
    .filter((one) => !left.includes(one))
    .map((one) => `"${one}" is no longer in maintenance`);
  expect(lines).toEqual(over.map((text) => `warn site ${text}`));
});

test("which name is wrong is said, and what to give", async () => {
  const unknown = { message: "is not the name of a site", received: '"c"', allowed: "a, b" };
  expect(await served.begin({}, "c")).toMatchObject({ problems: [unknown] });
  expect(await served.end("c")).toMatchObject({ problems: [unknown] });
  expect(codes(await served.begin({}))).toBe(
    "every site is in maintenance: requests get 503 until `portico maintenance off`",
  );
  expect(codes(await served.begin({ until: Date.UTC(2099, 4, 17) }, "a"))).toBe(
    'site "a" is in maintenance: requests get 503 until 2099-05-17T00:00:00.000Z',
  );
  const alone = "has no separate maintenance: all sites are in maintenance, or only others";
  expect(await served.end("b")).toMatchObject({
    problems: [
      { message: alone, received: '"b"', fix: expect.stringContaining("`portico maintenance off`") },
    ],
  });
});

test("a command ends, and renews, only what it has begun", async () => {
  seen = [has({ writes: 2 }), undefined, has({ writes: 3 })];
  const { limitMs: _, ...terms } = BEGIN;
  expect(codes(await served.quiesce({ id: ID }))).toBe("control.not-quiesced ");
  expect(codes(await served.quiesce({ id: ID, refuses: true }))).toBe("control.not-quiesced ");
  expect(codes(await served.quiesce({ id: ID, begin: BEGIN }))).toBe(
    "quiesced; in progress: 5, workers that do not respond: 1",
  );
  expect(codes(await served.quiesce({ id: OTHER, begin: BEGIN }))).toBe("control.quiesced ");
  expect(codes(await served.quiesce({ id: OTHER, refuses: true }))).toBe("control.quiesced ");
  expect(codes(await served.resume(OTHER))).toBe("control.not-quiesced ");
  expect(last.quiesce).toEqual({ ...terms, refuses: false });
  expect(codes(await served.list())).toBe("no request is refused");
  expect(codes(await served.quiesce({ id: ID, refuses: true }))).toMatch(/^quiesced; /);
  expect(codes(await served.quiesce({ id: ID }))).toMatch(/^quiesced; /);
  expect(last.quiesce).toEqual({ ...terms, refuses: true });
  expect(codes(await served.list())).toBe("requests are refused");
  expect((await served.quiesce({ id: ID, refuses: false })).ok).toBe(true);
  expect(last.quiesce).toEqual({ ...terms, refuses: false });
  expect((await served.quiesce({ id: ID, refuses: true })).ok).toBe(true);
  expect(codes(await served.resume(ID))).toBe("requests that write are served again");
  expect([last.quiesce, codes(await served.list())]).toEqual([undefined, "no request is refused"]);
  expect((await served.quiesce({ id: OTHER, begin: { ...BEGIN, reads: true } })).ok).toBe(true);
  expect(codes(await served.resume(OTHER))).toBe("requests that write are served again");
  expect(lines).toEqual([
    "warn requests that write get 503 (portico quiesce)",
    "warn requests that write are served again: those in progress take too long",
    "warn requests that write get 503 (portico quiesce)",
    "warn requests that write are served again: portico quiesce has ended",
  ]);
});

test("the limit counts from when requests are refused, and another master knows what is refused", async () => {
  const begin = { ...BEGIN, limitMs: 200 };
  expect((await served.quiesce({ id: ID, begin })).ok).toBe(true);
  await pass(300);
  expect(codes(await served.quiesce({ id: ID, refuses: true }))).toMatch(/^quiesced; /);
  served.stop();
  const next = serving();
  next.recall();
  expect(next.order.quiesce?.refuses).toBe(true);
  await pass(300);
  next.recall();
  expect(next.order.quiesce).toBeUndefined();
});

test("slow transfers are named and no others, whichever worker has them", async () => {
  const named = (file: string) => ({ file }) as never;
  seen = [
    has({ writes: 2, lasting: 2, transfers: [named("long")] }),
    has({ writes: 1, lasting: 1, slow: 1, transfers: [named("slow")] }),
  ];
  const outcome = await served.quiesce({ id: ID, begin: BEGIN });
  expect(outcome).toMatchObject({
    value: {
      pauses: {
        quiesce: { writes: 3, lasting: 3, slow: 1, silent: 0, transfers: [{ file: "slow" }] },
      },
    },
  });
  await served.resume(ID);
});
