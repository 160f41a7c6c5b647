import fc from "../../testkit/property.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";
import { type Resolution, resolution } from "../../src/model/resolution.js";
import { differences } from "../../src/model/review/difference.js";
import type { FoundWay } from "../../src/model/review/findings.js";

/** What is said of two configs, against what the rules of the runtime do with requests. */

type Loose = Record<string, unknown>;

/** Configs that differ in a few places out of many that could matter. */
const actions: fc.Arbitrary<Loose> = fc.constantFrom<Loose>(
  { type: "proxy", upstream: "one" },
  { type: "proxy", upstream: "two" },
  { type: "proxy", upstream: "one", strip: "raw" },
  { type: "proxy", upstream: "one", rewrite: "/x" },
  { type: "staticFiles", directory: "/srv/a" },
  { type: "staticFiles", directory: "/srv/b" },
  { type: "staticFiles", directory: "/srv/a", index: ["index.html"] },
  { type: "redirect" },
  { type: "redirect", host: "a.test", path: "/elsewhere" },
  { type: "redirect", host: "a.test", path: "/elsewhere", keep: "rest" },
  { type: "respond", status: 200, body: "a" },
  { type: "respond", status: 200, body: "b" },
);
const paths = fc
  .tuple(fc.array(fc.constantFrom("a", "b", "ab"), { maxLength: 2 }), fc.boolean())
  .map(([names, slash]) => `/${names.join("/")}${slash && names.length > 0 ? "/" : ""}`);
const routes = fc.uniqueArray(
  fc.record({ path: paths, match: fc.constantFrom("prefix", "segment", "exact"), action: actions }),
  { maxLength: 4, selector: ({ path, match }) => `${match} ${path}` },
);
const NAMES = ["a.test", "b.test", "*.test", "x.y.test", "*.y.test"];
const servers = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 3 }),
    fc.array(routes, { minLength: 3, maxLength: 3 }),
  )
  .map(([names, tables]) => [
    ...(names.length === 0 ? [] : [{ serverNames: names.slice(0, 1), routes: tables[0]! }]),
    ...(names.length < 2 ? [] : [{ serverNames: names.slice(1), routes: tables[1]! }]),
    { serverNames: ["_"], default: true, routes: tables[2]! },
  ]);
const listeners = fc.uniqueArray(
  fc.record({
    address: fc.constantFrom("0.0.0.0", "192.0.2.1", "192.0.2.2", "::"),
    port: fc.constantFrom(80, 81),
  }),
  { minLength: 1, maxLength: 3, selector: ({ address, port }) => `${address} ${port}` },
);

/** Undefined if the parser refuses it, as for two routes of which one hides the other. */
const configs = fc
  .record({ listeners, servers })
  .map((given) => {
    const result = parseConfig({
      version: 1,
      listeners: given.listeners.map((one, i) => ({ name: `l${i}`, protocol: "http", ...one })),
      upstreams: ["one", "two"].map((name, i) => ({ name, url: `http://127.0.0.1:${8000 + i}` })),
      virtualServers: given.servers.map(({ routes: own, ...server }, i) => ({
        name: `v${i}`,
        listeners: given.listeners.map((_, j) => `l${j}`),
        ...server,
        routes: own.map((route, j) => ({ name: `r${j}`, ...route })),
      })),
    });
    return result.ok ? result.value : undefined;
  })
  .filter((config) => config !== undefined);

interface Request {
  readonly address: string;
  readonly port: number;
  readonly name: string;
  readonly path: string;
}

const requests: fc.Arbitrary<Request> = fc.record({
  address: fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"),
  port: fc.constantFrom(80, 81),
  name: fc.constantFrom("a.test", "b.test", "c.test", "x.y.test", "z.y.test", "c.other"),
  path: fc
    .tuple(paths, fc.constantFrom("", "b", "/b", "zz", "/zz"))
    .map(([a, b]) => (a + b).replace("//", "/")),
});

/** What the runtime's own rules do with a request; undefined if nothing listens, or no route has the path. */
function served(config: ProxyConfig, { address, port, name, path }: Request): string | undefined {
  const isV6 = address.includes(":");
  const there = config.listeners.filter((one) => one.port === port && one.address.includes(":") === isV6);
  const listener =
    there.find((one) => one.address === address) ??
    there.find((one) => /^(?:0\.0\.0\.0|::)$/.test(one.address));
  if (listener === undefined) return undefined;
  const response = resolution(config, { url: `http://${name}:${port}${path}`, listener: listener.name });
  return response.route === undefined ? undefined : goalOf(response);
}

function goalOf(response: Resolution): string {
  switch (response.kind) {
    case "proxy":
      return `${response.upstreamUrl} ${response.requestLine}`;
    case "staticFile":
      return response.file;
    case "redirect":
      return `${response.status} ${response.location}`;
    case "respond":
      return `${response.status} ${response.body}`;
    case "status":
      return "status";
    case "error":
      return `${response.status}`;
  }
}

/** Whether a finding names a request: as a reader would take it, by its text. */
function names(
  { at, names: named, paths: patterns }: FoundWay,
  { address, port, name, path }: Request,
): boolean {
  const any = address.includes(":") ? `[::]:${port}` : `0.0.0.0:${port}`;
  const byName = (one: string): boolean =>
    one === name || one.startsWith("any ") || (one.startsWith("*.") && name.replace(/^[^.]+/, "*") === one);
  const byPath = (pattern: string): boolean =>
    new RegExp(`^${pattern.replaceAll("[^/]*", "§").replaceAll("*", ".*").replaceAll("§", "[^/].*")}$`).test(
      path,
    );
  return [any, `${address}:${port}`].includes(at) && named.some(byName) && patterns.some(byPath);
}

test("whatever a request gets that it did not get is named", () => {
  const seen = { same: 0, opened: 0, closed: 0, elsewhere: 0 };
  fc.assert(
    fc.property(configs, configs, fc.array(requests, { minLength: 20, maxLength: 20 }), (old, now, asked) => {
      const found = differences(old, now);
      for (const { id, old: before, new: after } of found) expect([id, before]).not.toEqual([id, after]);
      for (const request of asked) {
        const [was, is] = [served(old, request), served(now, request)];
        if (was === is) {
          seen.same++;
          continue;
        }
        seen[was === undefined ? "opened" : is === undefined ? "closed" : "elsewhere"]++;
        const named = found.filter(({ ways = [] }) => ways.some((way) => names(way, request)));
        const shut = found.some(({ id }) => id === "listener.closed");
        const ids = named.map(({ id }) => id);
        const fitting =
          is === undefined
            ? ["way.closed"]
            : ["way.opened", "way.elsewhere", "way.own-response", "listener.opened"];
        if (!(is === undefined && shut))
          expect({ request, was, is, ids }).toEqual({
            request,
            was,
            is,
            ids: expect.arrayContaining([expect.stringMatching(`^(?:${fitting.join("|")})$`)]),
          });
      }
    }),
    { numRuns: 300 },
  );
  // The generator reaches every kind.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(50);
});

test("a redirect that keeps the rest of the path leads elsewhere from another route", () => {
  const [old, now] = ["/", "/a"].map((path) => {
    const action = { type: "redirect", host: "a.test", path: "/elsewhere", keep: "rest" } as const;
    const config = parseConfig({
      version: 1,
      listeners: [{ name: "l", address: "0.0.0.0", port: 80, protocol: "http" }],
      virtualServers: [
        {
          ...{ name: "v", serverNames: ["_"], default: true, listeners: ["l"] },
          routes: [{ name: "r", path, match: "prefix", action }],
        },
      ],
    });
    if (!config.ok) throw new Error(JSON.stringify(config.problems));
    return config.value;
  }) as [ProxyConfig, ProxyConfig];
  const request = { address: "192.0.2.1", port: 80, name: "a.test", path: "/a/b" };
  expect(served(old, request)).not.toBe(served(now, request));
  const named = differences(old, now).filter(({ ways = [] }) => ways.some((way) => names(way, request)));
  expect(named.map(({ id }) => id)).toContain("way.own-response");
});

test("a config does not differ from itself", () => {
  fc.assert(
    fc.property(configs, (config) => expect(differences(config, config)).toEqual([])),
    { numRuns: 200 },
  );
});
