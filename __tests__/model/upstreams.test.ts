import {
  knownServers,
  parseConfig,
  serverConfig,
  type UpstreamConfig,
  type UpstreamInput,
} from "../../src/model/index.js";
import { sayings } from "../../testkit/sayings.js";

/** Rules of upstreams with several servers, and what connections to each of them need. */

const said = sayings("upstreams");

const parsed = (upstream: Partial<UpstreamInput>) =>
  parseConfig({
    version: 1,
    listeners: [{ name: "l", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", ...upstream }],
    virtualServers: [{ name: "s", serverNames: ["_"], listeners: ["l"], default: true, routes: [] }],
  });

function valid(upstream: Partial<UpstreamInput>): UpstreamConfig {
  const result = parsed(upstream);
  if (!result.ok) throw new Error(result.problems[0]!.message);
  return result.value.upstreams[0]!;
}

const URL = "http://10.0.0.7:8000";
const TWO = [{ url: URL }, { url: "unix:/run/web.sock" }];

test.each<[field: string, Partial<UpstreamInput>]>([
  ["spread", { url: URL, spread: true }],
  ["spread", { servers: TWO, spread: true }],
  ["sticky", { url: "http://web.internal:8000", sticky: { cookie: "a" } }],
  [
    "servers",
    {
      servers: [
        { url: URL, backup: true },
        { url: "unix:/run/web.sock", backup: true },
      ],
    },
  ],
])("%s are refused where they have no effect", (field, upstream) => {
  const result = parsed(upstream);
  const problems = result.ok ? [] : said(result.problems).map(({ code, path }) => `${code} ${path}`);
  expect(problems).toEqual([`config.bad-servers upstreams[0].${field}`]);
});

test("connections with a PROXY protocol header are not kept, and how many are is refused", () => {
  const result = parsed({ url: URL, proxyProtocol: "v2", idleTimeoutMs: 1_000, idleConnectionsMax: 9 });
  const paths = result.ok ? [] : said(result.problems).map(({ code, path }) => `${code} ${path}`);
  expect(paths).toEqual([
    "config.used-once upstreams[0].idleConnectionsMax",
    "config.used-once upstreams[0].idleTimeoutMs",
  ]);
  expect(parsed({ url: URL, proxyProtocol: "v1", idleConnectionsMax: 0 }).ok).toBe(true);
});

test.each([
  ["http://undefined:3000", false],
  ["https://undefined", false],
  ["http://null:3000", false],
  ["http://undefined.example.org", false],
  ["http://app.undefined:80", false],
  ["http://undefined-app:3000", true],
  ["http://nullable.example.org", true],
])("a missing value in a URL is refused: %s", (url, ok) => {
  const result = parsed({ url });
  expect(result.ok).toBe(ok);
  if (!result.ok) expect(result.problems.map(({ code }) => code)).toEqual(["config.bad-url"]);
});

test("a single server may have checks, which watch it", () => {
  expect(parsed({ url: URL, health: {} }).ok).toBe(true);
});

test("a name that is spread may have sessions and checks", () => {
  const url = "http://web.internal:8000";
  expect(parsed({ url, spread: true, sticky: { cookie: "a" }, health: { tcp: true } }).ok).toBe(true);
});

test("known addresses of a name are servers in its place, with its weight, port and name for TLS", () => {
  const named = { url: "https://web.internal", weight: 2, backup: false };
  const upstream = valid({ servers: [named, { url: URL }], spread: true });
  expect(knownServers(upstream, {}).map(({ url }) => url)).toEqual([named.url, URL]);
  const addresses = ["https://10.0.0.8:443", "https://[2001:db8::1]:443"];
  const known = Object.fromEntries(
    [...addresses, "http://10.0.0.9:1"].map((url) => [url, { of: named.url }]),
  );
  known["http://10.0.0.9:1"] = { of: "http://other.internal" };
  const servers = knownServers(upstream, known);
  expect(servers).toEqual([
    ...addresses.map((url) => ({ ...named, url, of: named.url })),
    { url: URL, weight: 1, backup: false },
  ]);
  expect(serverConfig(upstream, servers[1]!)).toMatchObject({
    url: addresses[1],
    namedBy: named.url,
    connectTimeoutMs: 3_000,
    tls: { verify: true, serverName: "web.internal" },
  });
  expect(serverConfig(upstream, servers[2]!).tls).toBeUndefined();
});
