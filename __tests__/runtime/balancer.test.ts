import { parseConfig, type UpstreamConfig, type UpstreamInput } from "../../src/model/index.js";
import { Balancer } from "../../src/runtime/upstream/balancer.js";
import { Random } from "../../testkit/random.js";
import { brokenRule } from "../../testkit/serverHistories.js";

const SERVERS = [1, 2, 3, 1].map((weight, i) => ({ url: `http://10.0.0.${i}:80`, weight, backup: i === 3 }));

function upstream(more: Partial<UpstreamInput> = {}): UpstreamConfig {
  const parsed = parseConfig({
    version: 1,
    listeners: [{ name: "l", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", servers: SERVERS, ...more }],
    virtualServers: [{ name: "s", serverNames: ["_"], listeners: ["l"], default: true, routes: [] }],
  });
  if (!parsed.ok) throw new Error(parsed.problems[0]!.message);
  return parsed.value.upstreams[0]!;
}

const BALANCES = ["roundRobin", "leastConnections", "clientAddress"] as const;
const STEPS = 40_000;

test.each(BALANCES)("%s: each request's server is one that the rules allow", (balance) => {
  const config = upstream({ balance });
  expect(brokenRule(config, new Balancer(config), new Random(), STEPS)).toBeUndefined();
});

type Faulty = (
  balancer: Balancer,
) => Partial<Pick<Balancer, "choose" | "order" | "begun" | "responded" | "failed">>;

test.each<[rule: string, fault: Faulty]>([
  [
    "a drain",
    (b) => ({
      order: (all, now) =>
        b.order(
          all.map((one) => ({ ...one, drained: false })),
          now,
        ),
    }),
  ],
  [
    "checks",
    (b) => ({
      order: (all, now) =>
        b.order(
          all.map((one) => ({ ...one, down: false })),
          now,
        ),
    }),
  ],
  [
    "slow start",
    (b) => ({
      order: (all, now) =>
        b.order(
          all.map((one) => ({ ...one, backForMs: undefined })),
          now,
        ),
    }),
  ],
  [
    "a failed connect",
    (b) => ({ failed: (i, connected, now) => (connected ? b.failed(i, connected, now) : 0) }),
  ],
  [
    "requests without a response",
    (b) => ({ failed: (i, connected, now) => (connected ? 0 : b.failed(i, connected, now)) }),
  ],
  [
    "how long a server is out",
    (b) => ({ choose: (facts, passed, now) => b.choose(facts, passed, now + 500) }),
  ],
  ["that one request alone proves nothing", (b) => ({ failed: (i, _, now) => b.failed(i, false, now) })],
  ["that it is back", (b) => ({ responded: () => b.seen(0).out })],
  ["servers that failed it", (b) => ({ choose: (facts, _, now) => b.choose(facts, undefined, now) })],
  [
    "the proxy's cookie",
    (b) => ({ choose: (facts, ...more) => b.choose({ ...facts, bound: undefined }, ...more) }),
  ],
  ["sessions", (b) => ({ choose: (facts, ...more) => b.choose({ ...facts, session: undefined }, ...more) })],
  [
    "what cannot be repeated",
    (b) => ({ choose: (facts, ...more) => b.choose({ ...facts, repeatable: true }, ...more) }),
  ],
  ["requests in progress", () => ({ begun: () => undefined })],
  [
    "that a check got a response",
    (b) => ({
      order: (all, now) =>
        b.order(
          all.map((one) => ({ ...one, passing: false })),
          now,
        ),
    }),
  ],
  [
    "that no other server is left",
    (b) => ({
      choose: (facts, passed, now) => {
        const chosen = b.choose(facts, passed, now);
        return chosen !== -1 && b.seen(chosen).ignored ? -1 : chosen;
      },
    }),
  ],
])("a fault is found: %s is not minded", (_, fault) => {
  const config = upstream({ balance: "leastConnections" });
  const balancer = new Balancer(config);
  const whole = {
    choose: balancer.choose.bind(balancer),
    order: balancer.order.bind(balancer),
    begun: balancer.begun.bind(balancer),
    ended: balancer.ended.bind(balancer),
    responded: balancer.responded.bind(balancer),
    failed: balancer.failed.bind(balancer),
  };
  expect(brokenRule(config, { ...whole, ...fault(balancer) }, new Random(), STEPS)).toBeDefined();
});

test("a backup that counts as any other server is found", () => {
  const servers = SERVERS.map((one) => ({ ...one, backup: false }));
  const balancer = new Balancer(upstream({ servers }));
  expect(brokenRule(upstream(), balancer, new Random(), STEPS)).toBeDefined();
});

const facts = (more: object = {}) => ({ client: "", repeatable: true, ...more });

/** How many of 600 requests each server gets. */
function shares(balancer: Balancer, now = 0): number[] {
  const got = SERVERS.map(() => 0);
  for (let i = 0; i < 600; i++) got[balancer.choose(facts(), undefined, now)]!++;
  return got;
}

test("shares follow the weights; one that came back begins with a tenth of its own", () => {
  const balancer = new Balancer(upstream());
  expect(shares(balancer)).toEqual([100, 200, 300, 0]);
  balancer.failed(2, false, 0);
  expect(shares(balancer)).toEqual([200, 400, 0, 0]);
  while (balancer.choose(facts(), undefined, 1_000) !== 2);
  balancer.responded(2, 1_000);
  expect(shares(balancer, 1_000)[2]).toBeCloseTo(600 * (0.3 / 3.3), -1);
  expect(shares(balancer, 6_000)[2]).toBeCloseTo(600 * (1.5 / 4.5), -1);
  expect(shares(balancer, 11_000)[2]).toBe(300);
});

test("when a server goes, its sessions move and no others; by weight each has its part", () => {
  const balancer = new Balancer(upstream());
  const of = (i: number): number => balancer.choose(facts({ session: `session ${i}` }), undefined, 0);
  const before = Array.from({ length: 6_000 }, (_, i) => of(i));
  [1_000, 2_000, 3_000].forEach((part, server) =>
    expect(Math.abs(before.filter((one) => one === server).length - part)).toBeLessThan(200),
  );
  balancer.failed(1, false, 0);
  before.forEach((server, i) => server === 1 || expect(of(i)).toBe(server));
});

test("servers of a name come and go: who stays keeps what is known; a place is free when its last request is over", () => {
  const server = (i: number) => ({ url: `http://10.0.1.${i}:80`, weight: 1, backup: false });
  const balancer = new Balancer(
    upstream({ servers: undefined, url: "http://web.internal:80", spread: true }),
  );
  const [a, b] = balancer.setServers([server(1), server(2)]) as [number, number];
  balancer.failed(a, false, 0);
  balancer.begun(b);
  expect(balancer.choose(facts(), undefined, 0)).toBe(b);
  const [c, again] = balancer.setServers([server(3), server(1)]) as [number, number];
  expect(again).toBe(a);
  expect(c).not.toBe(b);
  expect(balancer.seen(a)).toEqual({ inProgress: 0, out: true, ignored: false });
  for (let i = 0; i < 5; i++) expect(balancer.choose(facts(), undefined, 0)).toBe(c);
  expect(balancer.choose(facts({ bound: b }), undefined, 0)).toBe(c);
  balancer.ended(b);
  expect(balancer.setServers([server(3), server(1), server(4)])[2]).toBe(b);
});

test("a server that is alone is never left out by what requests meet, but by a drain", () => {
  const balancer = new Balancer(
    upstream({ servers: undefined, url: "http://web.internal:80", spread: true }),
  );
  for (let i = 0; i < 5; i++) balancer.failed(0, false, 0);
  expect(balancer.seen(0)).toMatchObject({ out: false, ignored: true });
  expect(balancer.choose(facts({ repeatable: false }), undefined, 0)).toBe(0);
  balancer.order([{ drained: true, down: false }], 0);
  expect(balancer.choose(facts(), undefined, 0)).toBe(-1);
});

test("where no request may be repeated, a server that refused gets one after its time, a silent one 10 s later", () => {
  const balancer = new Balancer(upstream({ servers: SERVERS.slice(0, 2) }));
  const upload = facts({ repeatable: false });
  const gets = (now: number): Set<number> =>
    new Set([1, 2, 3].map(() => balancer.choose(upload, undefined, now)));
  balancer.failed(0, false, 0);
  expect(gets(999)).toEqual(new Set([1]));
  expect(gets(1_000)).toEqual(new Set([0, 1]));
  balancer.responded(0, 1_000);
  for (let i = 0; i < 3; i++) balancer.failed(0, true, 20_000);
  expect(gets(30_999)).toEqual(new Set([1]));
  expect(gets(31_000)).toEqual(new Set([0, 1]));
});

/** Three requests in a row without a response, at each of these. */
function silence(balancer: Balancer, ...servers: number[]): void {
  for (const i of servers) for (let n = 0; n < 3; n++) balancer.failed(i, true, 0);
}

test("where requests failed at all servers none is left out, until one of them responds; sessions stay", () => {
  const balancer = new Balancer(upstream({ servers: SERVERS.slice(0, 3) }));
  balancer.failed(0, false, 0);
  silence(balancer, 1);
  expect(balancer.seen(0)).toMatchObject({ out: true, ignored: false });
  silence(balancer, 2);
  expect([0, 1, 2].map((i) => balancer.seen(i))).toEqual(
    [0, 1, 2].map(() => ({ inProgress: 0, out: false, ignored: true })),
  );
  expect(shares(balancer).slice(0, 3)).toEqual([100, 200, 300]);
  expect(balancer.choose(facts({ bound: 1, repeatable: false }), undefined, 0)).toBe(1);
  expect(balancer.responded(1, 0)).toBe(true);
  expect(shares(balancer).slice(0, 3)).toEqual([0, 600, 0]);
  // A drain or a check is not ignored.
  balancer.order([UP, { drained: true, down: false }, { drained: false, down: true }], 0);
  expect(shares(balancer).slice(0, 3)).toEqual([600, 0, 0]);
});

test("failures of requests that had no other server do not keep a server out for longer", () => {
  const balancer = new Balancer(upstream({ servers: SERVERS.slice(0, 2) }));
  silence(balancer, 0);
  for (let i = 0; i < 10; i++) {
    expect(balancer.choose(facts(), new Set([1]), 500)).toBe(0);
    expect(balancer.failed(0, true, 500)).toBe(0);
  }
  expect(balancer.choose(facts(), new Set([1]), 1_000)).toBe(0);
  expect(balancer.failed(0, true, 1_000)).toBe(2_000);
});

test("missing responses count only while the last check got none; a failed connect counts always", () => {
  const balancer = new Balancer(upstream({ servers: SERVERS.slice(0, 2) }));
  const passing = { ...UP, passing: true };
  const first = (): boolean => shares(balancer, 500)[0]! > 0;
  balancer.order([passing, passing], 0);
  silence(balancer, 0, 0);
  expect(first()).toBe(true);
  balancer.order([UP, passing], 0);
  expect([balancer.failed(0, true, 0), first()]).toEqual([1_000, false]);
  balancer.order([passing, passing], 0);
  expect(first()).toBe(true);
  balancer.responded(0, 0);
  expect([balancer.failed(0, false, 0), first()]).toEqual([1_000, false]);
  // The request that tries it gets no response; but the server took its connection.
  while (balancer.choose(facts(), undefined, 1_000) !== 0);
  expect([balancer.failed(0, true, 1_000), first()]).toEqual([0, true]);
});

const UP = { drained: false, down: false };
