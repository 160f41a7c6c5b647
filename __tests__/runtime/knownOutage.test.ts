import {
  isNews,
  joined,
  type KnownOutage,
  NO_OUTAGE,
  OutageRecord,
} from "../../src/runtime/upstream/knownOutage.js";
import { seeded, type Random } from "../../testkit/random.js";

/** What workers tell each other about an upstream that refuses connections, in any order. */

const HOLD_MS = 5_000;
const NEW_REQUEST = { heldSince: undefined };

let now: number;
beforeEach(() => {
  now = performance.now();
  jest.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => jest.restoreAllMocks());

/** Workers and their master, whose messages arrive when the test says so. */
class Workers {
  readonly records: OutageRecord[];
  private known = NO_OUTAGE;
  private readonly toMaster: KnownOutage[] = [];
  private readonly toWorkers: { readonly to: OutageRecord; readonly told: KnownOutage }[] = [];

  constructor(count: number) {
    this.records = Array.from({ length: count }, () => new OutageRecord());
  }

  /** @returns when the outage began that it met */
  refused(i: number): number {
    this.records[i]!.refused(HOLD_MS, NEW_REQUEST);
    return this.records[i]!.began;
  }

  /** Of each worker, when the outage began that it takes to be under way. */
  get underWay(): readonly (number | undefined)[] {
    return this.records.map((one) => (one.isOver(one.began) ? undefined : one.began));
  }

  tell(): void {
    this.toMaster.push(...this.records.flatMap((record) => record.takeNews() ?? []));
  }

  /** One message arrives, not always the first. */
  deliver(random?: Random): boolean {
    const take = <T>(from: T[]): T => from.splice(random?.pick(from.length) ?? 0, 1)[0]!;
    if (this.toMaster.length > 0) {
      const known = joined(this.known, take(this.toMaster));
      if (!isNews(known, this.known)) return true;
      this.known = known;
      this.toWorkers.push(...this.records.map((to) => ({ to, told: known })));
    } else if (this.toWorkers.length > 0) {
      const { to, told } = take(this.toWorkers);
      to.learn(told);
    } else return false;
    return true;
  }

  settle(random?: Random): void {
    do this.tell();
    while (this.deliver(random));
  }
}

test(
  "the order in which findings are joined does not matter",
  seeded((random) => {
    const any = (): KnownOutage => ({
      overAt: random.pick(9),
      began: random.pick(9),
      metAt: random.pick(9),
    });
    for (let i = 0; i < 2_000; i++) {
      const [a, b, c] = [any(), any(), any()] as const;
      expect(joined(a, b)).toEqual(joined(b, a));
      expect(joined(joined(a, b), c)).toEqual(joined(a, joined(b, c)));
      expect(joined(joined(a, b), b)).toEqual(joined(a, b));
    }
  }),
);

test(
  "whatever comes late: an outage that is over is over for all, and all know the same one",
  seeded((random) => {
    for (let history = 0; history < 300; history++) {
      const workers = new Workers(2 + random.pick(4));
      const { records } = workers;
      let [isUp, refusedAt, acceptedAt] = [true, -Infinity, -Infinity];
      for (let step = 0; step < 60; step++) {
        now += random.pick(400);
        if (random.pick(6) === 0) isUp = !isUp;
        const i = random.pick(records.length);
        if (isUp) {
          records[i]!.accepted();
          acceptedAt = now;
        } else {
          workers.refused(i);
          refusedAt = now;
        }
        if (random.pick(2) === 0) workers.tell();
        if (random.pick(2) === 0) workers.deliver(random);
      }
      workers.settle(random);
      const [began, ...others] = workers.underWay;
      expect(new Set(others)).toEqual(new Set([began]));
      // Two events may have the same reading of the clock.
      if (acceptedAt > refusedAt) expect(began).toBeUndefined();
      // The worker that was refused may have taken an outage for the current one that was over: the next refusal counts.
      if (refusedAt > acceptedAt && began !== undefined) expect(began).toBeGreaterThan(acceptedAt - 1);
      now += 1_000;
      const next = workers.refused(random.pick(records.length));
      workers.settle(random);
      expect(new Set(workers.underWay)).toEqual(new Set([began ?? next]));
    }
  }),
);

test("a connection that was made after the refusal of which another worker tells ends the outage", () => {
  const workers = new Workers(2);
  workers.refused(0);
  workers.tell();
  now += 100;
  workers.records[1]!.accepted();
  workers.settle();
  expect(workers.underWay).toEqual([undefined, undefined]);
});

test("requests to one worker keep an outage known to all, and none for 30 s in any forget it", () => {
  const workers = new Workers(2);
  const first = workers.refused(0);
  for (let i = 0; i < 10; i++) {
    now += 20_000;
    expect(workers.refused(0)).toBe(first);
    workers.settle();
  }
  now += 25_000;
  expect(workers.refused(1)).toBe(first);
  workers.settle();
  now += 30_000;
  const second = workers.refused(0);
  expect(second).toBeGreaterThan(first);
  workers.settle();
  now += HOLD_MS;
  expect(workers.refused(1)).toBe(second);
});

test("an outage is forgotten even if it began at the same reading of the clock as a connection was made", () => {
  const { records } = new Workers(1);
  records[0]!.accepted();
  records[0]!.refused(HOLD_MS, NEW_REQUEST);
  const { began } = records[0]!;
  now += 40_000;
  records[0]!.refused(HOLD_MS, NEW_REQUEST);
  expect(records[0]!.isOver(began)).toBe(true);
});
