import { AccessGuards } from "../../src/model/config/accessGuard.js";
import { AddressSet } from "../../src/model/access/addressSet.js";
import { decide, RequestMatcher } from "../../src/model/decision.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";

const STRANGER = "198.51.100.7";
const AT_HOME = "192.168.1.5";

interface Way {
  readonly path: string;
  readonly match?: string;
  readonly access?: string;
  readonly action?: object;
}

function config(
  routes: readonly Way[],
  policies: object = { home: { allow: ["192.168.0.0/16"] } },
): ProxyConfig {
  const action = { type: "proxy", upstream: "web" };
  const parsed = parseConfig({
    version: 1,
    accessPolicies: policies,
    listeners: [{ name: "http", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [
      { name: "web", url: "http://127.0.0.1:8000" },
      { name: "other", url: "http://127.0.0.1:8001" },
    ],
    virtualServers: [
      {
        name: "site",
        serverNames: ["_"],
        listeners: ["http"],
        default: true,
        routes: routes.map((route, i) => ({ name: `r${i}`, action, ...route })),
      },
    ],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

/** What a client gets: the status of an error, or the route. */
function outcome(of: ProxyConfig, target: string, client = STRANGER, method = "GET"): string | number {
  const matcher = new RequestMatcher(of);
  const match = matcher.match(of.listeners[0]!, "example.org", target);
  if (match === undefined) return 400;
  const decision = decide(match, { method, target, bodyBytes: 0, client });
  if (decision.kind === "error") return decision.status;
  return match.route!.name;
}

const CLOSED_ADMIN: readonly Way[] = [{ path: "/" }, { path: "/admin", access: "home" }];

test.each([
  ...[
    "/admin",
    "/admin/",
    "/admin/users",
    "/admin?x=1",
    "//admin",
    "///admin//users",
    "/%61dmin",
    "/%61%64min/x",
  ],
  ...["/x/../admin", "/./admin", "/x/%2e%2e/admin", "/x%2f..%2fadmin", "/admin%2fusers", "/x//../admin"],
  // Case, where a server ignores it.
  ...["/Admin", "/ADMIN/users", "/%41dmin", "/aDMIN?x"],
  // Parameters of segments.
  ...[
    "/admin;x",
    "/admin;x=1/users",
    "/;/admin",
    "/x/..;/admin",
    "/..;/admin",
    "/.;/admin",
    "/admin%3bx",
    "/x;a/..;b/admin",
  ],
  // Windows' names.
  ...[
    "/admin.",
    "/admin../",
    "/admin%20",
    "/admin .",
    "/admin./users",
    "/\\admin",
    "/x\\..\\admin",
    "/x/..%5cadmin",
  ],
  // Servers that resolve no dots, or decode twice.
  ...[
    "/admin/../x",
    "/admin/%2e%2e/x",
    "//admin/../x",
    "/admin%2f..%2fx",
    "/%2561dmin",
    "/x/%252e%252e/admin",
    "/%25%36%31dmin",
  ],
  // Several habits at once.
  ...[
    "/X/..;/ADMIN.",
    "/x/..;p/%2561dmin",
    "/x\\..;\\admin",
    "/x/..%253b/admin",
    "/x/..;/admin/%5c..%5c..%5c..%5cy",
  ],
  `/x/..;/${"a".repeat(3_000)}/../admin`,
])("%s is closed with /admin", (target) => {
  expect(outcome(config(CLOSED_ADMIN), target)).toBe(403);
  expect([outcome(config(CLOSED_ADMIN), target, AT_HOME)]).not.toEqual([403]);
});

test.each([
  "/",
  "/x",
  "/administrator",
  "/admins/",
  "/x/admin",
  "/X/Y.txt",
  "/a%20b/c;d",
  "/files/.hidden",
  "/a.b/c..d",
  "/x?p=/admin",
  "/%C3%A4/%25",
  "/admin-x/",
  "/x/%2561dmin",
])("%s is not closed with /admin", (target) => {
  expect(outcome(config(CLOSED_ADMIN), target)).toBe("r0");
});

test("an open path below a closed site opens no other path", () => {
  const of = config([{ path: "/", access: "home" }, { path: "/share" }]);
  expect(["/share", "/share/x", "/Share"].map((target) => outcome(of, target))).toEqual(["r1", "r1", 403]);
  for (const target of [
    "/share/../x",
    "/share/..%2fx",
    "/share/..;/x",
    "/share/..\\x",
    "/share/%252e%252e/x",
    "/share/.. /x",
  ])
    expect([target, outcome(of, target)]).toEqual([target, 403]);
});

test("a path that the proxy rewrites is closed by the path that the application gets", () => {
  const of = config([
    { path: "/" },
    { path: "/admin", access: "home" },
    { path: "/app", action: { type: "proxy", upstream: "web", strip: "raw" } },
    { path: "/old", action: { type: "proxy", upstream: "web", rewrite: "/admin/old" } },
    { path: "/else", action: { type: "proxy", upstream: "other", strip: "raw" } },
  ]);
  expect(
    ["/app/admin", "/app/%61dmin/x", "/app/..;/Admin", "/old/x"].map((target) => outcome(of, target)),
  ).toEqual([403, 403, 403, 403]);
  expect(["/app/x", "/else/admin"].map((target) => outcome(of, target))).toEqual(["r2", "r4"]);
});

test("an index file is closed by its own path as well", () => {
  const of = config([
    { path: "/", action: { type: "staticFiles", directory: "/srv/www", index: ["index.html"] } },
    {
      path: "/docs/index.html",
      match: "exact",
      access: "home",
      action: { type: "staticFiles", directory: "/srv/www" },
    },
  ]);
  expect(["/docs/", "/docs/index.html", "/", "/docs/x"].map((target) => outcome(of, target))).toEqual([
    403,
    403,
    "r0",
    "r0",
  ]);
});

test("routes that differ in case only are closed by both policies", () => {
  const of = config([{ path: "/" }, { path: "/Admin", access: "a" }, { path: "/admin", access: "b" }], {
    a: { deny: [STRANGER] },
    b: { allow: ["192.168.0.0/16"] },
  });
  expect(["/Admin", "/admin", "/ADMIN"].map((target) => outcome(of, target, "203.0.113.1"))).toEqual([
    403, 403, 403,
  ]);
});

test.each<[object, string, string | number]>([
  [{ allow: ["192.168.0.0/16"] }, STRANGER, 403],
  [{ allow: ["192.168.0.0/16"] }, AT_HOME, "r0"],
  [{ deny: ["198.51.100.0/24"] }, STRANGER, 403],
  [{ deny: ["198.51.100.0/24"] }, AT_HOME, "r0"],
  // The list has priority, wherever both have an address.
  [{ allow: ["198.51.100.0/24"], deny: [STRANGER] }, STRANGER, 403],
  [{ allow: ["198.51.100.0/24"], deny: [STRANGER] }, "198.51.100.8", "r0"],
  [{ allow: ["198.51.100.0/24"] }, "::ffff:198.51.100.7", "r0"],
  [{ allow: ["::ffff:198.51.100.0/120"] }, STRANGER, "r0"],
  [{ allow: ["2001:db8::/32"] }, "2001:db8::1", "r0"],
  [{ allow: ["fe80::/10"] }, "fe80::1%eth0", "r0"],
  // A client that is gone has no address.
  [{ deny: ["198.51.100.0/24"] }, "", 403],
  [{ deny: [STRANGER], refusal: 404 }, STRANGER, 404],
  [{ deny: [STRANGER], refusal: "close" }, STRANGER, 444],
])("%j for %s: %s", (policy, client, expected) => {
  expect(outcome(config([{ path: "/", access: "p" }], { p: policy }), "/", client)).toBe(expected);
});

test("files are lists that can be replaced; without the file nobody is in it", () => {
  const of = config([{ path: "/", access: "p" }], { p: { denyFile: "/etc/denied" } });
  const guards = new AccessGuards(of);
  const route = of.virtualServers[0]!.routes[0]!;
  const refused = (): string | undefined => guards.of(route)!.refusal(STRANGER, "/", "/")?.by;
  expect(refused()).toBeUndefined();
  guards.setLists({
    "/etc/denied": AddressSet.of([STRANGER]).packed,
    "/etc/other": AddressSet.of([]).packed,
  });
  expect(refused()).toBe("denyFile");
  guards.setLists({ "/etc/denied": AddressSet.of([]).packed });
  expect(refused()).toBeUndefined();
});

test("a config without access has no guard, and one site's policy is none for another", () => {
  const open = config([{ path: "/" }, { path: "/admin" }]);
  expect(new AccessGuards(open).of(open.virtualServers[0]!.routes[0]!)).toBeUndefined();
});

test.each([
  ["/", "POST", 403],
  ["/", "OPTIONS", 403],
  ["/", "TRACE", 405],
])("%s %s is judged before everything that the route checks: %s", (target, method, expected) => {
  const of = config([{ path: "/", access: "home" }]);
  expect(outcome(of, target, STRANGER, method)).toBe(expected);
});

const PORTAL = { url: "http://127.0.0.1:9091/ask", copyFields: ["Remote-User", "X-Auth-Request-Email"] };

test.each<[string, object, object, RegExp]>([
  ["keeps another spelling", PORTAL, { keepFields: ["remote_user"] }, /config\.bad-header.*keepFields\[0\]/],
  ["believes a proxy", PORTAL, { trustedFields: ["Remote-User"] }, /config\.bad-header.*trustedFields\[0\]/],
  [
    "leads back",
    { url: "http://127.0.0.1:80/ask" },
    {},
    /config\.proxy-loop.*accessPolicies\.portal\.forwardAuth\.url/,
  ],
])("a portal, and a route that %s: refused", (_, forwardAuth, more, message) => {
  const action = { type: "proxy", upstream: "web", ...more };
  const parse = () =>
    config(
      [
        { path: "/", action },
        { path: "/a", access: "portal" },
      ],
      { portal: { forwardAuth } },
    );
  expect(parse).toThrow(message);
});

test("a portal on a public address without TLS is refused", () => {
  const result = parseConfig({
    version: 1,
    accessPolicies: { portal: { forwardAuth: PORTAL } },
    listeners: [{ name: "http", address: "0.0.0.0", port: 80, protocol: "http" }],
    virtualServers: [
      {
        name: "site",
        serverNames: ["_"],
        listeners: ["http"],
        default: true,
        routes: [{ name: "a", path: "/", access: "portal", action: { type: "respond", status: 200 } }],
      },
    ],
  });
  expect(result.ok ? [] : result.problems.map(({ code, message }) => `${code} ${message}`)).toEqual([
    expect.stringContaining("config.password-without-tls lets users in by a cookie without TLS"),
  ]);
});
