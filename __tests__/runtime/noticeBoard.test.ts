import { NoticeBoard } from "../../src/runtime/notifications/noticeBoard.js";
import { noticesOf } from "../../src/runtime/notifications/notice.js";
import { disksOf, DownTimes, fullDisks, WorkerEnds } from "../../src/runtime/notifications/watch.js";
import {
  certificateState,
  type ListedCertificate,
} from "../../src/runtime/supervisor/control/certificateList.js";

/** What is told of what goes wrong, and when. Times are minutes. */

const MINUTE = 60_000;
const HOUR = 60;
const START = 1_800_000_000_000;
const at = (minutes: number): number => START + minutes * MINUTE;
const one = (key: string) => ({ key, what: `what ${key}`, fix: "fix" });

/** What a board tells from minute to minute, as `MINUTE STATE KEY`. */
class Played {
  readonly told: string[] = [];
  private minute = 0;
  constructor(readonly board = new NoticeBoard(6 * HOUR * MINUTE)) {}
  get now(): number {
    return at(this.minute);
  }
  until(minute: number): this {
    for (; this.minute <= minute; this.minute++) {
      const due = this.board.due(this.now);
      if (due.length > 0)
        this.told.push(`${this.minute}: ${due.map(({ state, key }) => `${state} ${key}`).join(", ")}`);
    }
    return this;
  }
}

test("what comes within a minute is one message, and its end another", () => {
  const played = new Played();
  played.board.raise(one("a/1"), played.now);
  played.board.happened(one("e/1"), played.now);
  played.until(0);
  played.board.raise(one("a/2"), played.now);
  played.until(10);
  expect(played.told).toEqual(["1: problem a/1, event e/1, problem a/2"]);
  played.board.resolve("a/1");
  played.until(12);
  played.board.resolve("a/2");
  played.until(20);
  expect(played.told.slice(1)).toEqual(["12: resolved a/1", "14: resolved a/2"]);
});

test("what goes on is told again after hours, and an event not before", () => {
  const played = new Played();
  for (let minute = 0; minute <= 13 * HOUR; minute++) {
    played.board.raise(one("a/1"), played.now);
    played.board.happened(one("e/1"), played.now);
    played.until(minute);
  }
  expect(played.told.map((line) => line.replace(/^\d+: /, ""))).toEqual([
    "problem a/1, event e/1",
    "problem a/1, event e/1",
    "problem a/1, event e/1",
  ]);
});

test("what was over before it was told is not told", () => {
  const played = new Played();
  played.board.raise(one("a/1"), played.now);
  played.until(0);
  played.board.resolve("a/1");
  expect(played.until(60).told).toEqual([]);
  expect(played.board.isCalm).toBe(true);
});

test("what comes and goes all the time is told less and less", () => {
  const played = new Played();
  for (let minute = 0; minute < 24 * HOUR; minute += 2) {
    played.board.raise(one("a/1"), played.now);
    played.until(minute);
    played.board.resolve("a/1");
    played.until(minute + 1);
  }
  // A pair for each: the waits double from ten minutes to six hours.
  expect(played.told.length).toBeLessThan(22);
});

test("an outage an hour after another one is told", () => {
  const played = new Played();
  played.board.raise(one("a/1"), played.now);
  played.until(5);
  played.board.resolve("a/1");
  played.until(65);
  played.board.raise(one("a/1"), played.now);
  played.until(70);
  expect(played.told).toEqual(["1: problem a/1", "7: resolved a/1", "67: problem a/1"]);
});

test("the next process tells nothing again, and the end of what was told", () => {
  const first = new Played();
  first.board.raise(one("a/1"), first.now);
  first.board.raise(one("a/2"), first.now);
  first.board.happened(one("e/1"), first.now);
  first.until(2);
  const second = new Played();
  second.board.recall(JSON.parse(JSON.stringify(first.board.kept)));
  second.until(3);
  second.board.observe("a", [one("a/1")], second.now);
  second.board.happened(one("e/1"), second.now);
  second.until(60);
  expect(second.told).toEqual(["5: resolved a/2"]);
});

const IN_NO_TIME = {
  ...{ ...one("a/1"), open: true, told: false, ended: true },
  ...{ since: 1e300, toldAt: 1, quietMs: 0 },
};

test.each([undefined, 7, [{}], [{ key: 7 }], [IN_NO_TIME], "x"])("a file with %j is no board", (kept) => {
  const played = new Played();
  played.board.recall(kept);
  expect(played.board.kept).toEqual([]);
  played.board.raise(one("a/1"), played.now);
  expect(played.until(2).told).toEqual(["1: problem a/1"]);
});

test("a clock that is set back keeps nothing quiet for longer", () => {
  const board = new NoticeBoard(6 * HOUR * MINUTE);
  board.raise(one("a/1"), at(1_000_000));
  board.due(at(1_000_000));
  expect(board.due(at(1_000_002))).toHaveLength(1);
  board.due(at(0));
  const later = [at(6 * HOUR + 1), at(6 * HOUR + 3)].flatMap((now) => board.due(now));
  expect(later).toMatchObject([{ state: "problem", key: "a/1" }]);
});

test("thousands of things take a bounded place", () => {
  const board = new NoticeBoard(MINUTE);
  for (let i = 0; i < 10_000; i++) board.happened(one(`e/${i} ${"x".repeat(1_000)}`), START);
  board.due(START);
  expect(board.due(START + MINUTE)).toHaveLength(500);
  expect(JSON.stringify(board.kept).length).toBeLessThan(1_000_000);
});

test("what is over and was told longest ago makes room for something new, what goes on does not", () => {
  const played = new Played();
  played.board.raise(one("open"), played.now);
  played.board.happened(one("late"), played.now);
  for (let i = 0; i < 498; i++) played.board.happened(one(`e/${i}`), played.now);
  played.until(7 * HOUR);
  played.told.length = 0;
  // Told again, and so the newest now.
  played.board.happened(one("late"), played.now);
  played.until(7 * HOUR + 5);
  played.board.raise(one("new"), played.now);
  for (const key of ["late", "open"]) played.board.happened(one(key), played.now);
  played.until(7 * HOUR + 10);
  expect(played.told.map((line) => line.replace(/^\d+: /, ""))).toEqual(["event late", "problem new"]);
});

const DAY = 86_400_000;
const certificate = { names: ["files.example.org"], notBefore: START - 80 * DAY };
const failure = { message: "the authority could not connect", fix: "Open port 80." };
const certificateNotices = (one: object) =>
  noticesOf("certificate", { certificates: [certificateState(one as ListedCertificate, START, 14)] });

test.each([
  [{ source: "files", notAfter: START + 15 * DAY }, undefined],
  [{ source: "files", notAfter: START + 14 * DAY + 1 }, undefined],
  [{ source: "files", notAfter: START + 14 * DAY }, "The certificate of files.example.org ends in 14 days"],
  [{ source: "files", notAfter: START + 13.5 * DAY }, "ends in 13 days"],
  [{ source: "files", notAfter: START + 2 * DAY }, "ends in 2 days"],
  [{ source: "files", notAfter: START + DAY }, "ends in 1 day"],
  [{ source: "files", notAfter: START + DAY - 1 }, "ends within a day"],
  [{ source: "files", notAfter: START + 1 }, "ends within a day"],
  [{ source: "files", notAfter: START }, "ends within a day"],
  [{ source: "files", notAfter: START - 1 }, "ended 1 day ago"],
  // One of six days.
  [{ source: "acme", notBefore: START - 3 * DAY, notAfter: START + 3 * DAY }, undefined],
  [{ source: "acme", notBefore: START - 4.5 * DAY + 4, notAfter: START + 1.5 * DAY }, undefined],
  [{ source: "acme", notBefore: START - 4.5 * DAY, notAfter: START + 1.5 * DAY }, "ends in 1 day"],
  [{ source: "acme", notBefore: START - 5 * DAY, notAfter: START + DAY }, "ends in 1 day"],
  [
    { source: "acme", notBefore: START - 5 * DAY, notAfter: START + DAY, renewAt: START + DAY / 2 },
    undefined,
  ],
  [
    { source: "acme", notBefore: START - 5 * DAY, notAfter: START + DAY, renewAt: START - DAY / 2 },
    "ends in 1 day",
  ],
  [{ source: "acme", notAfter: START + 20 * DAY, lastError: failure }, undefined],
  [
    { source: "acme", notAfter: START + 10 * DAY, lastError: failure },
    "was not renewed: the authority could not connect; it ends in 10 days",
  ],
  [{ source: "temporary", notAfter: START + 900 * DAY }, undefined],
  [
    { source: "temporary", notAfter: START + 900 * DAY, lastError: failure },
    "The certificate of files.example.org was not issued: the authority could not connect; browsers get",
  ],
] as const)("a certificate %j: %s", (more, said) => {
  const found = certificateNotices({ ...certificate, ...more });
  expect(found.map(({ what }) => what)).toEqual(said === undefined ? [] : [expect.stringContaining(said)]);
  if (found[0] !== undefined && "lastError" in more) expect(found[0].fix).toBe(failure.fix);
});

test("a certificate of several names is told of by the first one, with what to do where it is from", () => {
  const of = (source: "files" | "acme") => {
    const names = ["a.example", "b.example", "c.example"];
    return certificateNotices({ ...certificate, names, source, notAfter: START })[0]!;
  };
  expect(of("files").what).toContain("The certificate of a.example and 2 more ends");
  expect(of("files").fix).toBe("Renew its files on the host; Portico then loads them without a reload.");
  expect(of("acme").fix).toContain("`portico certificates renew` asks the authority again");
});

test("a server is down only when it was for long enough, and not up by one good look", () => {
  const times = new DownTimes();
  const down = [{ upstream: "web", url: "http://10.0.0.7:8000", why: "refused" }];
  const seen = (list: typeof down, seconds: number) => times.notices(list, 120_000, START + seconds * 1_000);
  expect(seen(down, 0)).toEqual([]);
  expect(seen([], 10)).toEqual([]);
  expect(seen(down, 20)).toEqual([]);
  expect(seen(down, 120)[0]).toMatchObject({
    key: "upstream/web http://10.0.0.7:8000",
    what: "Upstream web: its server http://10.0.0.7:8000 has been down for 2 min: refused",
  });
  expect(seen([], 160)).toEqual([]);
  expect(seen(down, 170)).toEqual([]);
});

test.each([
  [119_999, undefined],
  [120_000, "has been down for 2 min"],
  [149_999, "has been down for 2 min"],
  [150_000, "has been down for 3 min"],
])("a server that is down for %d ms: %s", (ms, said) => {
  const times = new DownTimes();
  const down = [{ upstream: "web", url: "http://10.0.0.7:8000" }];
  const seen = (list: typeof down, at: number) =>
    times.notices(list, 120_000, START + at).map(({ what }) => what.slice(what.indexOf("has been down")));
  expect(seen(down, 0)).toEqual([]);
  expect(seen(down, ms)).toEqual(said === undefined ? [] : [said]);
  // One good look does not end it, and half a minute without a bad one does.
  expect(seen([], ms + 30_000)).toEqual([]);
  expect(seen(down, ms + 150_000)).toHaveLength(1);
  expect(seen([], ms + 180_001)).toEqual([]);
  expect(seen(down, ms + 190_000)).toEqual([]);
});

test("a server is down for a minute at least", () => {
  const times = new DownTimes();
  const down = [{ upstream: "web", url: "http://10.0.0.7:8000" }];
  times.notices(down, 1_000, START);
  expect(times.notices(down, 1_000, START + 1_000)[0]!.what).toMatch(/has been down for 1 min$/);
});

test("a disk is told of by its bytes or its inodes", async () => {
  const disk = (freeBytes: number, freeInodes: number) => ({ path: "/var/log", freeBytes, freeInodes });
  const diskNotices = (one: ReturnType<typeof disk>) => noticesOf("disk", { fullDisks: fullDisks([one], 5) });
  expect(diskNotices(disk(0.05, 1))).toEqual([]);
  expect(diskNotices(disk(0.049, 1))[0]!.what).toContain("4.9 % of its bytes");
  expect(diskNotices(disk(0.01, 0.01))[0]!.what).toContain("1.0 % of its bytes");
  expect(diskNotices(disk(1, 0.001))[0]!.what).toContain("0.1 % of its inodes");
  const [found, ...others] = await disksOf([`${__dirname}/none/access.log`, __filename]);
  expect(others).toEqual([]);
  expect(found).toMatchObject({ path: __dirname });
});

test("three ends of workers in ten minutes are a loop", () => {
  const ends = new WorkerEnds();
  ends.add("exited with code 1", START);
  ends.add("was killed by SIGKILL", START + 1);
  expect(ends.notices(START + 2)).toEqual([]);
  ends.add("exited with code 1", START + 2);
  expect(ends.notices(START + 3)[0]!.what).toContain("3 in the last 10 minutes; the last one exited");
  expect(ends.notices(START + 599_999)).toHaveLength(1);
  expect(ends.notices(START + 600_000)).toEqual([]);
});
