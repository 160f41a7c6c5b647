import { parseConfig } from "../../src/model/index.js";
import { RouteLimits } from "../../src/runtime/rates/routeLimits.js";
import { ClientLimits } from "../../src/runtime/rates/clientLimits.js";
import { SharedLimits } from "../../src/runtime/rates/sharedLimits.js";
import { Random } from "../../testkit/random.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";

const limit = (requests: number, perMs: number, burst?: number) => ({
  ...{ requests, perMs, ipv6Prefix: 64 },
  ...(burst === undefined ? {} : { burst }),
});

/**
 * A request is one too many if, since any of the allowed ones before, more would have come than `burst` and what the time
 * since then gives.
 */
function isAllowed(before: readonly number[], now: number, burst: number, shareMs: number): boolean {
  return before.every((first, i) => before.length - i + 1 <= burst + (now - first) / shareMs);
}

test("200,000 random histories are judged as by a judge that remembers every request", () => {
  const random = new Random();
  let base = 1_000_000;
  let [allowed, refused] = [0, 0];
  for (let kind = 0; kind < 400; kind++) {
    const [shareMs, requests, burst] = [1 + random.pick(50), 1 + random.pick(20), 1 + random.pick(8)];
    const limits = new RouteLimits({ name: "a", rateLimit: limit(requests, shareMs * requests, burst) });
    for (let history = 0; history < 500; history++) {
      const address = `10.${kind & 255}.${history >> 8}.${history & 255}`;
      const before: number[] = [];
      let now = base;
      for (let i = 3 + random.pick(14); i > 0; i--) {
        now += random.is(0.3) ? 0 : random.pick(3 * shareMs);
        const got = typeof limits.begin(address, now) === "string";
        const wanted = isAllowed(before, now, burst, shareMs);
        if (got !== wanted) throw new Error(JSON.stringify({ shareMs, requests, burst, before, now, got }));
        if (got) before.push(now);
        if (got) allowed++;
        else refused++;
      }
      base = now;
    }
  }
  expect([allowed > 500_000, refused > 100_000]).toEqual([true, true]);
}, 120_000);

const addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];

/** Workers that report at every `reportMs`, in the same process. */
function workersOf(count: number, route: object) {
  const parsed = parseConfig(
    oneServer({
      listeners: [loopback("http", 80)],
      upstreams: [{ name: "web", url: "http://127.0.0.1:1" }],
      routes: [
        {
          ...{ name: "a", path: "/", requestBodyBytesMax: 1, ...route },
          action: { type: "proxy", upstream: "web" },
        },
      ],
    }),
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const { value: config } = parsed;
  const shared = new SharedLimits<ClientLimits>(() => 0);
  shared.add(config);
  const workers = Array.from({ length: count }, () => new ClientLimits(config));
  const report = (worker: ClientLimits, now = 0): void => {
    const made = worker.report();
    if (made === undefined) return;
    const newsFor = shared.heard(worker, JSON.parse(JSON.stringify(made)) as typeof made);
    for (const one of workers) one.learn(JSON.parse(JSON.stringify(newsFor(one))) as never, now);
  };
  const of = (worker: ClientLimits): RouteLimits => worker.of(config.virtualServers[0]!.routes[0]!)!;
  return { workers, report, of, shared, config };
}

test("several workers let no client have more than the stated error, and none less than one worker does", () => {
  const random = new Random();
  for (let history = 0; history < 1_500; history++) {
    const [shareMs, burst, count] = [5 + random.pick(200), 1 + random.pick(10), 2 + random.pick(3)];
    const { workers, report, of } = workersOf(count, { rateLimit: limit(1, shareMs, burst) });
    const reportAt = workers.map(() => 1_000 + random.pick(250));
    const address = random.of(...addresses);
    const start = 1_000;
    let allowed = 0;
    let now = start;
    for (let i = 0; i < 150; i++) {
      now += random.is(0.5) ? 0 : random.pick(shareMs * 2);
      for (const [w, worker] of workers.entries()) {
        if (reportAt[w]! > now) continue;
        report(worker, now);
        reportAt[w] = now + 250;
      }
      if (typeof of(random.of(...workers)).begin(address, now) === "string") allowed++;
    }
    const single = burst + (now - start) / shareMs;
    // Each further worker has a burst of its own. Until a worker hears of the others, which is two reports at most, it
    // allows what it would alone; and a report does not tell of pauses within it. Here a report is as late as the next
    // request, which is up to two shares.
    const error = (count - 1) * burst + (count * 2 * (250 + 2 * shareMs)) / shareMs;
    expect(allowed).toBeLessThanOrEqual(single + error + 1);
  }
}, 60_000);

test("a steady client that keeps to the limit is never refused, whichever workers it comes to", () => {
  const { workers, report, of } = workersOf(3, { rateLimit: limit(1, 100, 1) });
  for (let i = 0; i < 300; i++) {
    const now = 5_000 + i * 100;
    if (i % 3 === 0) workers.forEach((one) => report(one, now));
    expect(of(workers[i % 3]!).begin(addresses[0]!, now)).toBe(addresses[0]);
  }
});

test("requests in progress count in all workers, until they are over or their worker is gone", () => {
  const { workers, report, of, shared } = workersOf(2, { concurrencyMax: 2 });
  const [one, two] = workers as [ClientLimits, ClientLimits];
  const keys = [of(one).begin("192.0.2.1"), of(one).begin("192.0.2.1")] as string[];
  report(one);
  expect(of(two).begin("192.0.2.1")).toMatchObject({ limit: "concurrencyMax" });
  of(one).over(keys[0]!);
  report(one);
  expect(of(two).begin("192.0.2.1")).toBe("192.0.2.1");
  report(two);
  expect(of(one).begin("192.0.2.1")).toMatchObject({ limit: "concurrencyMax" });
  const newsFor = shared.gone(two);
  one.learn(newsFor(one));
  expect(of(one).begin("192.0.2.1")).toBe("192.0.2.1");
});

test("a worker that starts begins with all counts, and with those of a limit that has not changed alone", () => {
  const { workers, report, of, shared, config } = workersOf(1, {
    ...{ rateLimit: limit(1, 3_600_000), concurrencyMax: 1 },
  });
  of(workers[0]!).begin("192.0.2.1");
  report(workers[0]!);
  const next = new ClientLimits(config);
  next.learn(shared.all);
  expect(of(next).begin("192.0.2.1")).toMatchObject({ limit: "concurrencyMax" });
  of(workers[0]!).over("192.0.2.1");
  report(workers[0]!);
  const last = new ClientLimits(config);
  last.learn(shared.all);
  expect(of(last).begin("192.0.2.1")).toMatchObject({ limit: "rateLimit" });
  expect(of(last).begin("192.0.2.2")).toBe("192.0.2.2");
});
