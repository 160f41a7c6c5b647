import { serverChances } from "../../src/model/config/serverChances.js";
import { parseConfig, type UpstreamInput } from "../../src/model/index.js";

/** Which of several servers may get a request, as `portico resolve` says it. */

const [A, B, C] = ["http://10.0.0.7:8000", "http://10.0.0.8:8000", "http://10.0.0.9:8000"] as const;
const NAMED = "http://web.internal:8000";

function chancesOf(upstream: Partial<UpstreamInput>, headers: readonly string[] = [], client = "192.0.2.7") {
  const parsed = parseConfig({
    version: 1,
    listeners: [{ name: "l", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", ...upstream }],
    virtualServers: [{ name: "s", serverNames: ["_"], listeners: ["l"], default: true, routes: [] }],
  });
  if (!parsed.ok) throw new Error(parsed.problems[0]!.message);
  return serverChances(parsed.value.upstreams[0]!, headers, client);
}

const WEIGHED = [{ url: C, backup: true }, { url: A }, { url: B, weight: 2 }];
const BACKUP = "backup: gets it while all others are down or drained";
const NEXT = "gets it while those before it are down or drained";
const EACH = "each address of the name is a separate server";
const COOKIES = ["Accept", "a=1", "Cookie", "a=1; b=2"];
const bySession = { sticky: { applicationCookie: "a" } };
const byCookie = { sticky: { cookie: "b" } };

test.each<[what: string, Partial<UpstreamInput>, headers: readonly string[], why: readonly string[]]>([
  ["in turns", {}, COOKIES, ["gets 1 of 3 requests, in turns", "gets 2 of 3 requests, in turns", BACKUP]],
  [
    "the least busy one",
    { balance: "leastConnections" },
    [],
    [1, 2].map((n) => `has the fewest requests in progress, for its weight of ${n}`).concat(BACKUP),
  ],
  ["its client's", { balance: "clientAddress" }, [], ["gets it, by the client's address", NEXT, BACKUP]],
  ["its session's", bySession, COOKIES, ["gets it, by the cookie a", NEXT, BACKUP]],
  [
    "in turns without a session",
    bySession,
    ["Cookie", "ab=1"],
    ["gets 1 of 3 requests, in turns", "gets 2 of 3 requests, in turns", BACKUP],
  ],
  [
    "that of a cookie of the proxy",
    byCookie,
    COOKIES,
    [1, 2]
      .map((n) => `unless the cookie b names another server: gets ${n} of 3 requests, in turns`)
      .concat(BACKUP),
  ],
  [
    "that of a cookie, or its client's",
    { ...byCookie, balance: "clientAddress" },
    COOKIES,
    ["gets it, by the client's address", NEXT]
      .map((why) => `unless the cookie b names another server: ${why}`)
      .concat(BACKUP),
  ],
  [
    "in turns without a cookie",
    byCookie,
    ["Cookie", "a=1"],
    ["gets 1 of 3 requests, in turns", "gets 2 of 3 requests, in turns", BACKUP],
  ],
])("%s", (_what, upstream, headers, why) => {
  expect(chancesOf({ servers: WEIGHED, ...upstream }, headers).map((one) => one.why)).toEqual(why);
});

test.each<[what: string, Partial<UpstreamInput>, first: string, second: string]>([
  [
    "in turns",
    {},
    "gets requests in turns, by its weight of 3",
    "gets requests in turns, by its weight of 1",
  ],
  [
    "its client's",
    { balance: "clientAddress" },
    "may get it, by the client's address, which chooses among all addresses",
    "may get it, by the client's address, which chooses among all addresses",
  ],
])("a name whose addresses are servers: %s", (_what, upstream, first, second) => {
  const servers = [{ url: NAMED, weight: 3 }, { url: A }];
  expect(chancesOf({ servers, spread: true, ...upstream })).toEqual([
    { url: NAMED, why: `${first}; ${EACH}` },
    { url: A, why: second },
  ]);
});

test("the backups come last, and all others in their order", () => {
  expect(chancesOf({ servers: WEIGHED }).map(({ url }) => url)).toEqual([A, B, C]);
});

test("a client has an order of its own, which stays when a server is gone; a weight draws more of them", () => {
  const clients = Array.from({ length: 300 }, (_, i) => `192.0.${i >> 8}.${i & 255}`);
  const order = (client: string, urls: readonly string[], weight = 1): string[] => {
    const servers = urls.map((url) => ({ url, weight: url === B ? weight : 1 }));
    return chancesOf({ servers, balance: "clientAddress" }, [], client).map(({ url }) => url);
  };
  const firsts = (weight: number): string[] => clients.map((one) => order(one, [A, B, C], weight)[0]!);
  for (const client of clients.slice(0, 60)) {
    const whole = order(client, [A, B, C]);
    expect([...whole].sort()).toEqual([A, B, C]);
    for (const gone of [A, B, C])
      expect(
        order(
          client,
          [C, B, A].filter((url) => url !== gone),
        ),
      ).toEqual(whole.filter((u) => u !== gone));
  }
  const share = (weight: number): number => firsts(weight).filter((url) => url === B).length / clients.length;
  // A third and two thirds, each within six times what chance makes of it.
  expect(Math.abs(share(1) - 1 / 3)).toBeLessThan(0.17);
  expect(Math.abs(share(4) - 2 / 3)).toBeLessThan(0.17);
});
