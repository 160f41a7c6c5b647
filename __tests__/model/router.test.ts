import fc from "../../testkit/property.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { parseConfig, type ProxyConfig, type RouteConfig, Router } from "../../src/model/index.js";

/** Which server has a name, and which route responds to a path (decisions 1.3), against the definition in as many words. */

/** `exact /a`: a route and its name. */
type Named = `${RouteConfig["match"]} ${string}`;

const parsed = parseConfig(
  oneServer({
    listeners: [loopback("http", 8080)],
    routes: [{ name: "any", path: "/", action: { type: "respond", status: 200 } }],
  }),
);

/** A virtual server of these routes, and of those that a check would call shadowed too. */
function configOf(names: readonly Named[]): ProxyConfig {
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const server = parsed.value.virtualServers[0]!;
  const routes = names.map((name) => {
    const [match, path] = name.split(" ") as [RouteConfig["match"], string];
    return { ...server.routes[0]!, name, match, path };
  });
  return { ...parsed.value, virtualServers: [{ ...server, routes }] };
}

function routed(names: readonly Named[]): (path: string) => string {
  const config = configOf(names);
  const router = new Router(config);
  return (path) => router.route(config.virtualServers[0]!, path)?.name ?? "none";
}

const ORDER = ["exact", "segment", "prefix"] as const;

/** The definition: of all routes that match, the longest path, then the strictest kind. */
function defined(names: readonly Named[]): (path: string) => string {
  const { routes } = configOf(names).virtualServers[0]!;
  return (path) => {
    const matching = routes.filter(({ match, path: own }) => {
      if (match === "exact") return path === own;
      if (match === "prefix") return path.startsWith(own);
      return path === own || path.startsWith(own.endsWith("/") ? own : `${own}/`);
    });
    matching.sort((a, b) => b.path.length - a.path.length || ORDER.indexOf(a.match) - ORDER.indexOf(b.match));
    return matching[0]?.name ?? "none";
  };
}

// Few and short, so that routes begin alike, have the same length, and differ within a segment.
const pathOf = (segments: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.array(fc.constantFrom("a", "b", "ab", "ba"), { maxLength: segments }), fc.boolean())
    .map(([names, slash]) => `/${names.join("/")}${slash && names.length > 0 ? "/" : ""}`);
const routeName = fc
  .tuple(fc.constantFrom(...ORDER), pathOf(3))
  .map(([match, path]): Named => `${match} ${path}`);

test("the longest literal path wins; for the same length, exact before segment before prefix", () => {
  const won = { exact: 0, segment: 0, prefix: 0, none: 0 };
  fc.assert(
    fc.property(
      fc.uniqueArray(routeName, { maxLength: 10 }),
      fc.array(pathOf(4), { minLength: 1, maxLength: 8 }),
      (names, paths) => {
        const route = routed(names);
        const matches = defined(names);
        // What routes name is asked for as well, by itself and with more after it.
        const own = names.flatMap((name) => ["", "/", "a", "/b"].map((more) => name.split(" ")[1]! + more));
        for (const path of [...paths, ...own.filter((text) => !text.includes("//"))]) {
          const winner = route(path);
          const expected = matches(path);
          // To compare is cheap, to expect is not: fifty thousand times.
          if (winner !== expected) expect([path, winner]).toEqual([path, expected]);
          won[winner.split(" ")[0] as keyof typeof won]++;
        }
      },
    ),
    { numRuns: 1000 },
  );
  for (const times of Object.values(won)) expect(times).toBeGreaterThan(300);
});

const CORNERS: readonly (readonly [routes: readonly Named[], responses: Readonly<Record<string, string>>])[] =
  [
    [
      // Looked up within a segment for the sake of the one, the other still ends at its own.
      ["prefix /ab", "segment /cd"],
      {
        "/ab": "prefix /ab",
        "/abx": "prefix /ab",
        "/cd": "segment /cd",
        "/cd/x": "segment /cd",
        "/cdx": "none",
      },
    ],
    [
      ["prefix /ab", "segment /ab"],
      { "/ab": "segment /ab", "/ab/x": "segment /ab", "/abx": "prefix /ab", "/a": "none" },
    ],
    [
      ["prefix /a", "exact /a"],
      { "/a": "exact /a", "/a/": "prefix /a", "/a/b": "prefix /a", "/ab": "prefix /a" },
    ],
    [["prefix /a", "segment /a", "exact /a"], { "/a": "exact /a", "/a/": "segment /a", "/ab": "prefix /a" }],
    [["segment /a/"], { "/a": "none", "/a/": "segment /a/", "/a/b": "segment /a/", "/ab": "none" }],
    [
      ["segment /a", "segment /a/", "exact /a/"],
      { "/a": "segment /a", "/a/": "exact /a/", "/a/b": "segment /a/" },
    ],
    [["segment /"], { "/": "segment /", "/a": "segment /", "/a/b": "segment /" }],
    [["exact /"], { "/": "exact /", "/a": "none" }],
    [["prefix /", "exact /", "segment /a"], { "/": "exact /", "/b": "prefix /", "/ab": "prefix /" }],
    [
      // What is longer, and ends within a segment, leaves the path to what is shorter.
      ["prefix /a", "segment /a/b"],
      { "/a/b": "segment /a/b", "/a/b/": "segment /a/b", "/a/bc": "prefix /a", "/a/": "prefix /a" },
    ],
    [
      ["segment /a", "exact /a/b"],
      { "/a/b": "exact /a/b", "/a/b/": "segment /a", "/a/bc": "segment /a", "/ab": "none" },
    ],
    [[], { "/": "none" }],
  ];

test.each(CORNERS)("%j", (names, responses) => {
  const asked = Object.keys(responses);
  expect(Object.fromEntries(asked.map((path) => [path, routed(names)(path)]))).toEqual(responses);
  // In whatever order they were written.
  expect(Object.fromEntries(asked.map((path) => [path, routed([...names].reverse())(path)]))).toEqual(
    responses,
  );
});

test("a name that is written out is before a wildcard, whose `*` is one label (decisions 1.8)", () => {
  const names = { wide: ["*.example.org"], one: ["a.example.org", "*.a.example.org"], rest: ["_"] };
  const config = configOf([]);
  const virtualServers = Object.entries(names).map(([name, serverNames]) => ({
    ...config.virtualServers[0]!,
    name,
    serverNames,
    default: name === "rest",
  }));
  const router = new Router({ ...config, virtualServers });
  const responses = {
    "b.example.org": "wide",
    "a.example.org": "one",
    "b.a.example.org": "one",
    "b.b.example.org": "rest",
    "example.org": "rest",
    "192.0.2.1": "rest",
    org: "rest",
    "": "rest",
  };
  const found = Object.keys(responses).map((name) => [name, router.virtualServer("http", name).name]);
  expect(Object.fromEntries(found)).toEqual(responses);
});
