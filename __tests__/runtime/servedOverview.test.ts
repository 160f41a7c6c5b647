import { loopback, oneServer } from "../../testkit/oneServer.js";
import { eventually } from "../../testkit/waiting.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";
import type { Counts } from "../../src/runtime/counting/counts.js";
import type { PauseOrder } from "../../src/runtime/dispatch/pauses.js";
import type { SeenTransfers } from "../../src/runtime/dispatch/transfers.js";
import type { OverviewServer } from "../../src/runtime/status/overview.js";
import type { ListedServer, ListedUpstream } from "../../src/runtime/supervisor/control/listedUpstreams.js";
import { masterGauges } from "../../src/runtime/supervisor/served/servedCounts.js";
import { ServedOverview } from "../../src/runtime/supervisor/served/servedOverview.js";
import { Outcomes } from "../../src/runtime/supervisor/served/serverStates.js";

/** What the status page, its data and `portico status` are told, by what those know who make it up. */

const URLS = [1, 2, 3, 4, 5].map((n) => `http://10.0.0.${n}:80`);
const DAY_MS = 86_400_000;
const FAILING = { state: "failing" as const, why: "connection_refused" };

function parsed(): ProxyConfig {
  const result = parseConfig(
    oneServer({
      listeners: [loopback("http", 80)],
      upstreams: [
        { name: "one", url: "http://10.0.0.9:80" },
        { name: "web", servers: URLS.map((url) => ({ url })) },
      ],
      routes: [
        { name: "a", path: "/a", action: { type: "proxy", upstream: "one" } },
        { name: "b", path: "/b", action: { type: "proxy", upstream: "one" } },
        { name: "c", path: "/c", action: { type: "proxy", upstream: "web" } },
      ],
    }),
  );
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

const CONFIG = parsed();

interface Known {
  readonly listed?: readonly ListedUpstream[];
  readonly servers?: readonly ListedServer[];
  readonly seen?: readonly (readonly [number, SeenTransfers | undefined])[];
  readonly pauses?: PauseOrder;
  readonly certificates?: readonly object[];
  readonly isStopping?: boolean;
}

let counts: Counts;
let outcomes: Outcomes;
let served: ServedOverview | undefined;
beforeEach(() => {
  counts = {};
  outcomes = new Outcomes();
});
afterEach(() => served?.stop());

function overviewOf({
  listed,
  servers = [],
  seen = [],
  pauses,
  certificates = [],
  isStopping = false,
}: Known = {}) {
  const sources = {
    supervised: { transfers: () => Promise.resolve(seen) },
    upstreams: {
      list: () =>
        Promise.resolve({ message: "", warnings: [], upstreams: listed ?? [{ name: "web", servers }] }),
    },
    pauses: { order: pauses ?? { maintenance: [] } },
    certificates: { list: () => ({ certificates: certificates as never }), clientAuthorities: () => [] },
    counts: { now: () => Promise.resolve(counts), outcomes },
  };
  const logs = { recent: { list: [] } } as never;
  served = new ServedOverview(sources, logs, () => ({ config: CONFIG, generation: 3, isStopping }));
  return served;
}

test("the state of one of several servers is the strongest that there is", async () => {
  const usual = {
    backup: false,
    inProgress: 0,
    drained: false,
    down: false,
    outIn: 0,
    ignoredIn: 0,
    checked: true,
  };
  const states = [
    { drained: true, down: true, outIn: 1 },
    { down: true, outIn: 1 },
    {},
    { outIn: 2, ignoredIn: 1 },
    { ignoredIn: 2 },
  ];
  const servers = states.map((state, i) => ({ ...usual, url: URLS[i]!, ...state }));
  servers[1] = { ...servers[1]!, why: "refused", inProgress: 7, backup: true } as never;
  const { upstreams } = await overviewOf({ servers }).now();
  const shown = { backup: false, failures: 0, inProgress: 0 };
  expect(upstreams[1]!.servers).toEqual([
    { ...shown, url: URLS[0], state: "drained" },
    { ...shown, url: URLS[1], state: "down", inProgress: 7, backup: true, why: "refused" },
    { ...shown, url: URLS[2], state: "up" },
    { ...shown, url: URLS[3], state: "out" },
    { ...shown, url: URLS[4], state: "failing" },
  ]);
});

test("a single server fails as often as requests of its routes did in the last minute, mostly for one reason", async () => {
  const failed = (...values: number[]): Counts => ({
    failures: [
      { labels: ["only", "a", "connection_refused"], values: [values[0]!] },
      { labels: ["only", "a", "dns_error"], values: [values[1]!] },
      { labels: ["only", "b", "dns_error"], values: [values[2]!] },
      { labels: ["only", "c", "tls_protocol_error"], values: [values[3]!] },
    ],
  });
  const one = { url: "http://10.0.0.9:80", backup: false };
  expect((await overviewOf().now()).upstreams[0]!.servers).toEqual([
    { ...one, state: "unasked", failures: 0 },
  ]);
  outcomes.add({ upstreamResponses: [{ labels: ["one", one.url], values: [1] }] });
  counts = failed(9, 1, 0, 0);
  const overview = overviewOf();
  overview.begin();
  await new Promise(setImmediate);
  counts = failed(12, 3, 2, 50);
  expect((await overview.now()).upstreams[0]!.servers).toEqual([
    { ...one, state: "up", failures: 7, why: "dns_error" },
  ]);
});

const ONE = "http://10.0.0.9:80";
const responses = (n: number): Counts => ({ upstreamResponses: [{ labels: ["one", ONE], values: [n] }] });
const refusals = (n: number): Counts => ({
  upstreamFailures: [{ labels: ["one", ONE, "connection_refused"], values: [n] }],
});
type State = Pick<OverviewServer, "state" | "inProgress" | "why">;
const DOWN = { down: true, checked: true, why: "status 500" };

test.each<[what: string, batches: Counts[], checks: Partial<ListedServer> | undefined, state: State]>([
  ["nobody asked", [], undefined, { state: "unasked" }],
  ["workers counted nothing", [{ ...responses(0), ...refusals(0) }], undefined, { state: "unasked" }],
  ["responded", [responses(3)], undefined, { state: "up" }],
  ["responded before it failed", [responses(3), refusals(1), {}], undefined, FAILING],
  ["responded after it failed", [refusals(1), responses(3)], undefined, { state: "up" }],
  ["responded to a repeated request", [{ ...refusals(1), ...responses(1) }], undefined, { state: "up" }],
  ["no check has reached", [], { checked: false }, { state: "unasked", inProgress: 4 }],
  ["checks reach", [], { checked: true }, { state: "up", inProgress: 4 }],
  ["fails its checks", [responses(1)], DOWN, { state: "down", why: "status 500", inProgress: 4 }],
  ["checks reach, and a request does not", [refusals(1)], { checked: true }, { ...FAILING, inProgress: 4 }],
])(
  "the only server of an upstream that %s: page and metrics show one state",
  async (_, batches, checks, state) => {
    for (const batch of batches) outcomes.add(batch);
    const server = {
      url: ONE,
      backup: false,
      inProgress: 4,
      drained: false,
      down: false,
      outIn: 0,
      ignoredIn: 0,
    };
    const listed =
      checks === undefined ? [] : [{ name: "one", servers: [{ ...server, checked: false, ...checks }] }];
    const overview = overviewOf({ listed });
    overview.begin();
    const { upstreams } = await overview.now();
    expect(upstreams[0]!.servers).toEqual([{ url: ONE, backup: false, failures: 0, ...state }]);
    const gauges = masterGauges([], listed, CONFIG, outcomes).upstreamUp!;
    const up = gauges.find(({ labels: [name] }) => name === "one")?.values[0];
    expect(up).toBe(state.state === "unasked" ? undefined : Number(state.state === "up"));
  },
);

test("of the transfers of all workers those are shown that moved most, the oldest first; the others are counted", async () => {
  const of = (from: number, more: number): SeenTransfers =>
    ({
      transfers: Array.from({ length: 100 }, (_, i) => ({
        id: from + i,
        ageMs: from + i,
        bytesIn: from + i,
        bytesOut: 1,
      })),
      more,
    }) as never;
  const { transfers, moreTransfers, workers, state, generation } = await overviewOf({
    seen: [
      [7, of(0, 4)],
      [8, of(100, 0)],
      [9, undefined],
      [10, of(200, 5)],
    ],
  }).now();
  expect(transfers.map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, i) => 299 - i));
  expect([transfers[0]!.pid, transfers.at(-1)!.pid, moreTransfers]).toEqual([10, 8, 109]);
  expect([workers, state, generation]).toEqual([{ running: 4, silent: 1 }, "serving", 3]);
});

test.each([
  [2.5, 90, 2, "last"],
  [0.5, 90, 0, "last"],
  [-0.5, 90, -1, "ended"],
  [13.5, 90, 13, "soon"],
  [14.5, 90, 14, "later"],
  [13.5, 3_650, 13, "soon"],
  // Those of an address, which are renewed when three days are left.
  [5.5, 6, 5, "later"],
  [2.5, 6, 2, "later"],
  [1.4, 6, 1, "soon"],
  [0.5, 6, 0, "last"],
])(
  "a certificate that ends in %d days, of %d, has %d whole days left: %s",
  async (days, of, daysLeft, end) => {
    const certificate = { names: ["a"], listeners: ["http"], issuer: "CA", source: "files" };
    const notAfter = Date.now() + days * DAY_MS;
    const notBefore = notAfter - of * DAY_MS;
    const lastError = { code: "dns", message: "no", fix: "Look.", at: 0 };
    const { certificates } = await overviewOf({
      certificates: [
        { ...certificate, notBefore, notAfter },
        { ...certificate, notBefore, notAfter, lastError },
      ],
    }).now();
    const shown = { ...certificate, notAfter, daysLeft, end };
    expect(certificates).toEqual([shown, { ...shown, problem: { message: "no", fix: "Look." } }]);
  },
);

const UNTIL = Date.UTC(2026, 2, 1, 12, 30, 5);
const QUIESCE = { reads: false, refuses: true, minimumRate: 500, cutsSlow: false, refuseMs: 30_000 };
test.each<[PauseOrder, string[]]>([
  [{ maintenance: [] }, []],
  [
    {
      maintenance: [
        { until: UNTIL, closesTunnels: true },
        { site: "b", message: "Later.", closesTunnels: true },
      ],
    },
    [
      "Every site is in maintenance until 2026-03-01 12:30:05 UTC",
      "Site b is in maintenance until `portico maintenance off`: Later.",
    ],
  ],
  [{ maintenance: [], quiesce: { ...QUIESCE, refuses: false } }, []],
  [{ maintenance: [], quiesce: QUIESCE }, ["Requests that write are refused while a command runs"]],
  [
    { maintenance: [], quiesce: { ...QUIESCE, reads: true } },
    ["All requests are refused while a command runs"],
  ],
  [
    { maintenance: [], quiesce: { ...QUIESCE, site: "b" } },
    ["Requests that write to site b are refused while a command runs"],
  ],
])("an order of %j is %j", async (pauses, said) => {
  expect((await overviewOf({ pauses }).now()).pauses).toEqual(said);
});

test("one that finishes what is in progress says so, and who asks soon after another gets the same", async () => {
  const overview = overviewOf({ isStopping: true });
  const first = await overview.now();
  expect(first.state).toBe("stopping");
  await eventually(async () => (await overview.now()) !== first, "for a newer one", { ms: 20_000 });
  const [one, another] = await Promise.all([overview.now(), overview.now()]);
  expect(one).toBe(another);
});

test("the metrics listener shows it once there is something to show", async () => {
  const pages = new Map<
    string,
    (asked: { query: string }, bySocket: boolean) => Promise<{ status: number }>
  >();
  const overview = overviewOf();
  overview.showOn({ add: (path: string, page: never) => void pages.set(path, page) } as never);
  const asked = async (path: string, query = "") => (await pages.get(path)!({ query }, false)).status;
  expect([...pages.keys()]).toEqual(["/status", "/status.json"]);
  expect([await asked("/status"), await asked("/status.json")]).toEqual([503, 503]);
  overview.begin();
  expect([await asked("/status"), await asked("/status.json"), await asked("/status", "x")]).toEqual([
    200, 200, 404,
  ]);
});
