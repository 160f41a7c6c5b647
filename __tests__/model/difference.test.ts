import { parseConfig, type ProxyConfig, type ProxyConfigInput } from "../../src/model/index.js";
import { differences } from "../../src/model/review/difference.js";
import { TLS_POLICIES } from "../../src/model/net/tlsPolicy.js";
import { sayings } from "../../testkit/sayings.js";
import { type ReviewFinding, FINDINGS, type FindingId } from "../../src/model/review/findings.js";

/** What a config opens that another one does not, by what it means: case by case. */

function parsed(config: ProxyConfigInput): ProxyConfig {
  const result = parseConfig(config);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.value;
}

const TLS = { certificate: "/etc/c.pem", key: "/etc/k.pem" } as const;

type Loose = Record<string, unknown>;

/** A small site, and what a case changes of it. */
interface Site {
  readonly top?: Loose;
  readonly listener?: Loose;
  readonly upstream?: Loose;
  readonly server?: Loose;
  readonly route?: Loose;
  readonly action?: Loose;
  readonly routes?: readonly Loose[];
}

function site({ top = {}, listener, upstream, server, route, action, routes = [] }: Site = {}): ProxyConfig {
  const config: unknown = {
    version: 1,
    listeners: [
      { name: "https", address: "0.0.0.0", port: 443, protocol: "https", tls: { ...TLS }, ...listener },
    ],
    upstreams: [{ name: "app", url: "http://127.0.0.1:8000", ...upstream }],
    virtualServers: [
      {
        name: "site",
        serverNames: ["a.example.org"],
        listeners: ["https"],
        default: true,
        ...server,
        routes: [
          { name: "app", path: "/app", ...route, action: { type: "proxy", upstream: "app", ...action } },
          ...routes,
        ],
      },
    ],
    ...top,
  };
  return parsed(config as ProxyConfigInput);
}

const files = { type: "staticFiles", directory: "/srv/www" };
const withIndex = { ...files, index: ["index.html"] };
const to = (action: Loose): Site => ({ routes: [{ name: "more", path: "/more", action }] });
const policy = (name: string): Site => ({ listener: { tls: { ...TLS, policy: name } } });
const fields = (responseHeaders: Loose): Site => ({ server: { responseHeaders } });
const https = (tls: Loose): Site => ({ upstream: { url: "https://10.0.0.7:8443", tls } });
const asks = (rules: Loose = {}): Site => ({
  server: { clientCertificate: { ca: "/etc/ca.pem", ...rules } },
});
const AT_CERTIFICATE = "virtualServers[0].clientCertificate";
const plainHttp = { protocol: "http", tls: undefined };

type Case = readonly [FindingId, Site, Site, string, Partial<ReviewFinding>?];

const said = sayings("differences");

const lets = (policy?: Loose): Site =>
  policy === undefined ? {} : { top: { accessPolicies: { site: policy } }, route: { access: "site" } };
const portal = (more?: Loose): Loose => ({ forwardAuth: { url: "http://127.0.0.1:9091/", ...more } });
const basic = (more?: Loose): Site => lets({ basic: { usersFile: "/etc/users", ...more } });
const LOG_IN = { path: "/login", method: "POST", secret: "body", failed: [401] } as const;
const guarded = (guard: Loose, logIns: readonly Loose[] = [LOG_IN]): Site => ({
  top: { passwordGuards: { site: guard } },
  server: { passwordGuard: "site", logIns },
});
const AT_GUARD = "virtualServers[0].passwordGuard";
const AT_ACCESS = "virtualServers[0].routes[0].access";

const CASES: readonly Case[] = [
  [
    "access.opened",
    lets({ allow: ["10.0.0.0/8"] }),
    lets(),
    AT_ACCESS,
    { old: "10.0.0.0/8", new: "everyone" },
  ],
  ["access.opened", lets({ allow: ["10.0.0.0/9"] }), lets({ allow: ["10.0.0.0/8"] }), AT_ACCESS],
  ["access.opened", lets({ deny: ["2001:db8::/32"] }), lets({ allow: ["2001:db8::/33"] }), AT_ACCESS],
  ["access.opened", lets({ denyFile: "/etc/denied" }), lets(), AT_ACCESS, { level: "error" }],
  [
    "access.opened",
    lets({ denyFile: "/etc/a" }),
    lets({ denyFile: "/etc/b" }),
    AT_ACCESS,
    { level: "warning" },
  ],
  ["access.opened", lets(portal()), lets(), AT_ACCESS, { level: "error" }],
  ["access.opened", lets(portal()), lets(portal({ bypass: ["/api"] })), AT_ACCESS, { level: "error" }],
  [
    "access.opened",
    lets(portal()),
    lets(portal({ url: "http://127.0.0.1:9092/" })),
    AT_ACCESS,
    { level: "warning", old: "everyone, signed on at http://127.0.0.1:9091/" },
  ],
  ["access.closed", lets(), lets(portal()), AT_ACCESS],
  [
    "access.closed",
    lets(portal({ bypass: ["/api"] })),
    lets(portal()),
    AT_ACCESS,
    { old: "everyone, signed on at http://127.0.0.1:9091/ (but not for /api)" },
  ],
  ["access.closed", lets(), lets({ deny: ["192.0.2.1"] }), AT_ACCESS, { new: "everyone, but not 192.0.2.1" }],
  [
    "access.closed",
    lets({ allow: ["10.0.0.0/8"] }),
    lets({ allow: ["10.0.0.0/8"], deny: ["10.1.0.0/16"] }),
    AT_ACCESS,
  ],
  ["access.closed", lets(), lets({ denyFile: "/etc/denied" }), AT_ACCESS],
  [
    "access.opened",
    lets({ basic: { usersFile: "/etc/users" } }),
    lets(),
    AT_ACCESS,
    { level: "error", old: "everyone, with a password of /etc/users", new: "everyone" },
  ],
  [
    "access.opened",
    lets({ basic: { usersFile: "/etc/a" } }),
    lets({ basic: { usersFile: "/etc/b" } }),
    AT_ACCESS,
    { level: "warning" },
  ],
  ["access.closed", lets(), lets({ basic: { usersFile: "/etc/users" } }), AT_ACCESS],
  [
    "access.opened",
    asks({ crl: "/etc/crl.pem" }),
    {},
    AT_CERTIFICATE,
    {
      level: "error",
      old: "only certificates of /etc/ca.pem, but not those in /etc/crl.pem",
      new: "everyone, without a certificate",
    },
  ],
  ["access.opened", asks(), asks({ required: false }), AT_CERTIFICATE, { level: "error" }],
  ["access.opened", asks({ crl: "/etc/crl.pem" }), asks(), AT_CERTIFICATE, { level: "error" }],
  ["access.opened", asks({ names: ["a"] }), asks({ names: ["a", "b"] }), AT_CERTIFICATE, { level: "error" }],
  ["access.opened", asks(), asks({ ca: "/etc/b.pem" }), AT_CERTIFICATE, { level: "warning" }],
  ["access.closed", {}, asks(), AT_CERTIFICATE],
  ["access.closed", asks(), asks({ names: ["a"] }), AT_CERTIFICATE],
  ["access.opened", lets(portal()), lets(portal({ convention: "nginx" })), AT_ACCESS, { level: "warning" }],
  [
    "access.handed-on",
    basic(),
    basic({ passOn: true, userField: "Remote-User" }),
    AT_ACCESS,
    { old: "nothing", new: "the password and the user in Remote-User" },
  ],
  ["access.handed-on", lets(), basic({ userField: "Remote-User" }), AT_ACCESS],
  [
    "access.handed-on",
    basic({ userField: "Remote-User" }),
    basic({ userField: "X-Remote-User" }),
    AT_ACCESS,
    { old: "the user in Remote-User", new: "the user in X-Remote-User" },
  ],
  ["access.handed-on", basic({ passOn: true }), basic(), AT_ACCESS, { level: "note", new: "nothing" }],
  [
    "access.handed-on",
    lets(portal({ copyFields: ["Remote-User"] })),
    lets(portal({ copyFields: ["Remote-User", "Remote-Groups"] })),
    AT_ACCESS,
    { new: "Remote-User of the portal and Remote-Groups of the portal" },
  ],
  ["guard.weaker", guarded({}), { server: { logIns: [LOG_IN] } }, AT_GUARD, { old: "site", new: "none" }],
  ["guard.stronger", {}, guarded({}), AT_GUARD, { old: "none", new: "site" }],
  [
    "guard.weaker",
    guarded({}),
    guarded({ wrongSecretsMax: 40 }),
    `${AT_GUARD}.wrongSecretsMax`,
    { old: "20", new: "40" },
  ],
  ["guard.weaker", guarded({}), guarded({ slowAfter: 10 }), `${AT_GUARD}.slowAfter`],
  ["guard.weaker", guarded({}), guarded({ slowMs: 500 }), `${AT_GUARD}.slowMs`],
  ["guard.weaker", guarded({}), guarded({ windowMs: 60_000 }), `${AT_GUARD}.windowMs`],
  ["guard.weaker", guarded({}), guarded({ closeMs: 60_000 }), `${AT_GUARD}.closeMs`],
  ["guard.weaker", guarded({}), guarded({ ipv6Prefix: 128 }), `${AT_GUARD}.ipv6Prefix`],
  ["guard.stronger", guarded({}), guarded({ closeMs: 3_600_000 }), `${AT_GUARD}.closeMs`],
  [
    "guard.weaker",
    guarded({}, [LOG_IN, { ...LOG_IN, path: "/api", match: "segment" }]),
    guarded({}),
    "virtualServers[0].logIns",
    { old: "POST /api/*, secret body, failed [401]", new: "none" },
  ],
  ["way.opened", {}, to(files), "virtualServers[0].routes[1]", { old: "404", new: "files of /srv/www" }],
  [
    "way.opened",
    to({ type: "respond", status: 410 }),
    to(files),
    "virtualServers[0].routes[1]",
    { old: "410" },
  ],
  ["way.elsewhere", to(files), to({ ...files, directory: "/srv" }), "virtualServers[0].routes[1]"],
  [
    "way.elsewhere",
    to(withIndex),
    { routes: [{ name: "more", path: "/more", match: "exact", action: withIndex }] },
    "virtualServers[0].routes[1]",
    {
      old: 'files of /srv/www, below /more, index "index.html", redirect to /more/',
      new: 'files of /srv/www, below /more, index "index.html"',
    },
  ],
  [
    "way.own-response",
    to({ type: "respond", status: 410, body: "a\n" }),
    to({ type: "respond", status: 410, body: "b" }),
    "virtualServers[0].routes[1]",
    { old: "410, text/plain; charset=utf-8: a\\n", new: "410, text/plain; charset=utf-8: b" },
  ],
  ["way.elsewhere", {}, { upstream: { url: "http://127.0.0.1:8001" } }, "virtualServers[0].routes[0]"],
  ["way.elsewhere", {}, { action: { strip: "raw" } }, "virtualServers[0].routes[0]"],
  [
    "way.own-response",
    to(files),
    to({ type: "redirect", host: "b.example.org" }),
    "virtualServers[0].routes[1]",
  ],
  ["way.own-response", {}, to({ type: "respond", status: 200 }), "virtualServers[0].routes[1]"],
  [
    "status.opened",
    {},
    to({ type: "status", allow: ["192.0.2.7"] }),
    "virtualServers[0].routes[1].action.allow[0]",
    { level: "error", old: "none", new: "192.0.2.7" },
  ],
  [
    "status.opened",
    to({ type: "status", allow: ["192.0.2.7"] }),
    to({ type: "status", allow: ["192.0.2.7", "10.0.0.0/8"] }),
    "virtualServers[0].routes[1].action.allow[1]",
    { old: "192.0.2.7", new: "10.0.0.0/8" },
  ],
  [
    "status.opened",
    to({ type: "status", allow: ["192.0.2.7"] }),
    to({ type: "status", allow: ["192.0.2.7"], addresses: "whole" }),
    "virtualServers[0].routes[1].action.addresses",
    { old: "shortened", new: "whole" },
  ],
  [
    "status.opened",
    to({ type: "status", allow: ["192.0.2.7"] }),
    to({ type: "status", allow: ["192.0.2.7"], fileNames: true }),
    "virtualServers[0].routes[1].action.fileNames",
    { old: "false", new: "true" },
  ],
  ["way.closed", to(files), {}, "virtualServers[0].routes[1]", { document: "old", new: "404" }],
  [
    "way.writable",
    { route: { writes: "never" } },
    {},
    "virtualServers[0].routes[0].writes",
    { old: "nothing", new: "byMethod" },
  ],
  ["way.writable", {}, { route: { writes: "always" } }, "virtualServers[0].routes[0].writes"],
  ["way.upgrade", { action: { upgrades: [] } }, {}, "virtualServers[0].routes[0].action.upgrades"],
  [
    "files.symlinks",
    to(files),
    to({ ...files, symlinks: "anywhere" }),
    "virtualServers[0].routes[1].action.symlinks",
  ],
  [
    "listener.closed",
    { listener: { port: 8443 } },
    {},
    "listeners[0]",
    { document: "old", old: "https 0.0.0.0:8443" },
  ],
  ["listener.opened", { listener: { port: 8443 } }, {}, "listeners[0]", { new: "https 0.0.0.0:443" }],
  [
    "listener.opened",
    { listener: { address: "192.0.2.1" } },
    {},
    "listeners[0]",
    { new: "https 0.0.0.0:443" },
  ],
  ["listener.unencrypted", {}, { listener: plainHttp }, "listeners[0].protocol"],
  ["listener.encrypted", { listener: plainHttp }, {}, "listeners[0].protocol"],
  ["listener.http2", { listener: { http2: false } }, {}, "listeners[0].http2"],
  ["tls.policy-weaker", policy("mozilla-modern"), policy("mozilla-intermediate"), "listeners[0].tls.policy"],
  ["tls.policy-changed", policy("mozilla-intermediate"), policy("mozilla-modern"), "listeners[0].tls.policy"],
  ["tls.policy-weaker", policy("mozilla-intermediate"), policy("file-sync"), "listeners[0].tls.policy"],
  [
    "health.opened",
    {},
    { top: { healthListener: { address: "10.0.0.1", port: 9180 } } },
    "healthListener",
    { new: "10.0.0.1:9180" },
  ],
  [
    "health.opened",
    {},
    { top: { healthListener: { address: "127.0.0.1", port: 9180 } } },
    "healthListener",
    { level: "note" },
  ],
  [
    "metrics.opened",
    { top: { metricsListener: { address: "10.0.0.1", port: 9181, allow: ["10.0.0.2"] } } },
    { top: { metricsListener: { address: "10.0.0.1", port: 9181 } } },
    "metricsListener",
    { old: "10.0.0.1:9181, 10.0.0.2", new: "10.0.0.1:9181, everyone" },
  ],
  ["upstream.unencrypted", https({}), { upstream: { url: "http://10.0.0.7:8443" } }, "upstreams[0]"],
  ["upstream.unverified", https({}), https({ verify: false }), "upstreams[0].tls.verify"],
  ["upstream.trust", https({ caFile: "/etc/ca.pem" }), https({}), "upstreams[0].tls"],
  [
    "trust.proxies",
    { top: { trustedProxies: ["10.0.0.0/8"] } },
    { top: { trustedProxies: ["10.1.0.0/16", "172.16.0.0/12"] } },
    "trustedProxies[1]",
    { old: "10.0.0.0/8", new: "172.16.0.0/12" },
  ],
  [
    "trust.client-field",
    { top: { trustedProxies: ["10.0.0.0/8"] } },
    { top: { trustedProxies: ["10.0.0.0/8"], clientAddressField: "CF-Connecting-IP" } },
    "clientAddressField",
  ],
  [
    "trust.proxy-protocol",
    {},
    { listener: { proxyProtocol: { from: ["10.0.0.9"] } } },
    "listeners[0].proxyProtocol.from[0]",
    { old: "none", new: "10.0.0.9" },
  ],
  [
    "trust.request-fields",
    { top: { trustedProxies: ["10.0.0.7"] } },
    { top: { trustedProxies: ["10.0.0.7"] }, action: { trustedFields: ["Remote-User"] } },
    "virtualServers[0].routes[0].action.trustedFields",
  ],
  [
    "trust.request-fields",
    {},
    { action: { keepFields: ["api_key"] } },
    "virtualServers[0].routes[0].action.keepFields",
    { old: "dropped", new: "api_key of the client" },
  ],
  [
    "trust.request-fields",
    { action: { setHeaders: { "X-Site": "a" } } },
    {},
    "virtualServers[0].routes[0].action.setHeaders",
    { old: "X-Site of the proxy", new: "X-Site of the client" },
  ],
  ["maintenance.allowed", {}, { top: { maintenance: { allow: ["10.0.0.0/8"] } } }, "maintenance.allow[0]"],
  [
    "limit.raised",
    { route: { requestBodyBytesMax: 1000 } },
    {},
    "virtualServers[0].routes[0].requestBodyBytesMax",
    { old: "1000", new: "no limit" },
  ],
  [
    "limit.raised",
    { route: { concurrencyMax: 50 } },
    {},
    "virtualServers[0].routes[0].concurrencyMax",
    { old: "50", new: "no limit" },
  ],
  [
    "limit.raised",
    { route: { rateLimit: { requests: 100 } } },
    { route: { rateLimit: { requests: 100, perMs: 999 } } },
    "virtualServers[0].routes[0].rateLimit",
    {
      old: "100 requests in 1000 ms, 100 at once, IPv6 by /64",
      new: "100 requests in 999 ms, 100 at once, IPv6 by /64",
    },
  ],
  [
    "limit.raised",
    { route: { rateLimit: { requests: 100, burst: 200 } } },
    { route: { rateLimit: { requests: 100, burst: 201 } } },
    "virtualServers[0].routes[0].rateLimit",
  ],
  [
    "limit.raised",
    { route: { rateLimit: { requests: 100, ipv6Prefix: 56 } } },
    { route: { rateLimit: { requests: 100 } } },
    "virtualServers[0].routes[0].rateLimit",
  ],
  ["limit.raised", {}, { top: { limits: { headerCountMax: 300 } } }, "limits.headerCountMax"],
  ["limit.raised", {}, { upstream: { clientSharePercent: 100 } }, "upstreams[0].clientSharePercent"],
  [
    "field.removed",
    { server: { hsts: {} } },
    {},
    "virtualServers[0].responseHeaders",
    { old: "strict-transport-security: max-age=31536000" },
  ],
  ["field.removed", {}, fields({ remove: ["X-Frame-Options"] }), "virtualServers[0].responseHeaders"],
  ["field.changed", { server: { hsts: {} } }, { server: { hsts: { maxAge: 60 } } }, "virtualServers[0].hsts"],
  [
    "field.changed",
    fields({ set: { "X-Frame-Options": "DENY" } }),
    fields({ set: { "X-Frame-Options": "SAMEORIGIN" } }),
    "virtualServers[0].responseHeaders",
    { old: "x-frame-options: DENY", new: "x-frame-options: SAMEORIGIN" },
  ],
  [
    "field.cross-origin",
    {},
    fields({ set: { "Access-Control-Allow-Origin": "*" } }),
    "virtualServers[0].responseHeaders",
  ],
  [
    "version.shown",
    {},
    { server: { versionTokens: true } },
    "virtualServers[0].versionTokens",
    {
      ways: [
        { scheme: "https", at: "0.0.0.0:443", names: ["a.example.org", "any other name"], paths: ["/*"] },
      ],
    },
  ],
];

test.each(CASES.map((one) => [...one, {}] as const))("%s", (...one) => {
  const [id, old, now, place, more = {}] = one as unknown as Case;
  const found = differences(site(old), site(now));
  said(found.map((finding) => `${finding.id}: ${finding.old} -> ${finding.new}`));
  const [level, message] = FINDINGS[id];
  expect(found).toContainEqual(
    expect.objectContaining({ id, level, place, document: "new", message, ...more }),
  );
});

const OWN_POLICY = {
  ...{ minVersion: "TLSv1.2", maxVersion: "TLSv1.3" },
  ...{ ciphers: "HIGH:AES:!MD5:-SHA1", curves: ["X25519", "prime256v1"] },
};

/** In the other direction it is no weaker. */
test.each<[what: string, from: object, to: object]>([
  ["a lower version", { minVersion: "TLSv1.3" }, {}],
  ["no higher version", {}, { maxVersion: "TLSv1.2" }],
  ["another word of ciphers", { ciphers: "HIGH:!MD5:-SHA1" }, {}],
  ["an exclusion less", {}, { ciphers: "HIGH:AES:-SHA1" }],
  ["a subtraction less", {}, { ciphers: "HIGH:AES:!MD5" }],
  ["another group", { curves: ["X25519"] }, {}],
])("a policy with %s is weaker", (_what, from, to) => {
  const withPolicy = (policy: object) =>
    site({ listener: { tls: { ...TLS, policy: { ...OWN_POLICY, ...policy } } } });
  const ids = (old: object, now: object) => differences(withPolicy(old), withPolicy(now)).map(({ id }) => id);
  expect([ids(from, to), ids(to, from)]).toEqual([["tls.policy-weaker"], ["tls.policy-changed"]]);
});

test("a policy is weaker without the groups that are taken where both know them", () => {
  const { curvesIfKnown, ...own } = TLS_POLICIES["file-sync-tls13"];
  const [found] = differences(
    site(policy("file-sync-tls13")),
    site({ listener: { tls: { ...TLS, policy: own } } }),
  );
  expect(curvesIfKnown).not.toEqual([]);
  expect(found!.id).toBe("tls.policy-weaker");
});

/** Where limits are, their names, and a site that has one. */
const LIMITS: readonly (readonly [place: string, fields: readonly string[], of: (limit: Loose) => Site])[] = [
  ["limits", Object.keys(parsed(site({})).limits), (limits) => ({ top: { limits } })],
  ["timeouts", ["requestHeadMs", "keepAliveMs", "tlsHandshakeMs"], (timeouts) => ({ top: { timeouts } })],
  [
    "upstreams[0]",
    ["connectionsMax", "queuedRequestsMax", "clientSharePercent", "headBytesMax"],
    (upstream) => ({ upstream }),
  ],
  [
    "virtualServers[0].routes[0]",
    ["requestBodyBytesMax", "requestBodyTimeoutMs", "sendTimeoutMs"],
    (route) => ({ route }),
  ],
];

/** Of those that may not be {@link MANY}. */
const FEW: Readonly<Record<string, number>> = {
  headerCountMax: 300,
  concurrentStreamsMax: 300,
  clientSharePercent: 60,
};
const MANY = 20_000;

test.each(
  LIMITS.flatMap(([place, fields, of]) => fields.map((field) => [`${place}.${field}`, field, of] as const)),
)("%s is a limit: that it is one more is said, and that it is one less is not", (place, field, of) => {
  const number = FEW[field] ?? MANY;
  const less = site(of({ [field]: number }));
  const more = site(of({ [field]: number + 1 }));
  expect(differences(less, more)).toEqual([
    expect.objectContaining({ id: "limit.raised", place, old: String(number), new: String(number + 1) }),
  ]);
  expect(differences(more, less)).toEqual([]);
});

test("every kind of difference has a case", () => {
  expect(Object.keys(FINDINGS).filter((id) => !CASES.some(([one]) => one === id))).toEqual([]);
});

test("a rule for other failures is another one, and a guard of another name is the same", () => {
  const other = { ...LOG_IN, failed: [400] };
  const found = differences(site(guarded({})), site(guarded({}, [other])));
  expect(found.map(({ id, ways }) => [id, ways?.[0]?.paths])).toEqual([
    ["guard.weaker", ["/*"]],
    ["guard.stronger", ["/*"]],
  ]);
  const renamed: Site = {
    top: { passwordGuards: { another: {} } },
    server: { passwordGuard: "another", logIns: [LOG_IN] },
  };
  expect(differences(site(guarded({})), site(renamed))).toEqual([]);
});

test.each<readonly [string, Site, Site]>([
  [
    "a range in a trusted one",
    { top: { trustedProxies: ["10.0.0.0/8"] } },
    { top: { trustedProxies: ["10.0.0.7"] } },
  ],
  ["a lower limit", {}, { route: { requestBodyBytesMax: 1000 } }],
  ["fewer writes", {}, { route: { writes: "never" } }],
  ["a stricter field", { server: { hsts: { maxAge: 60 } } }, { server: { hsts: {} } }],
  [
    "a stricter frame rule",
    fields({ set: { "X-Frame-Options": "SAMEORIGIN" } }),
    fields({ set: { "X-Frame-Options": "deny" } }),
  ],
  ["a verified upstream", https({ verify: false }), https({})],
])("%s opens nothing", (_, old, now) => {
  expect(differences(site(old), site(now))).toEqual([]);
});

test("what many requests meet is said once, with all of them", () => {
  const [found, ...others] = differences(
    site({ server: { serverNames: ["a.example.org", "*.b.example.org"] } }),
    site({ server: { serverNames: ["a.example.org", "*.b.example.org"] }, ...to(files) }),
  );
  expect(others).toEqual([]);
  expect(found!.ways).toEqual([
    {
      scheme: "https",
      at: "0.0.0.0:443",
      names: ["a.example.org", "*.b.example.org", "any other name"],
      paths: ["/more", "/more/*"],
    },
  ]);
});

test("another name or place in the document is no difference", () => {
  const renamed = JSON.parse(
    JSON.stringify(site(to(files)))
      .replaceAll('"name":"', '"name":"other-')
      .replaceAll('"upstream":"', '"upstream":"other-')
      .replaceAll('"listeners":["', '"listeners":["other-'),
  ) as ProxyConfigInput & { virtualServers: { routes: unknown[] }[] };
  renamed.virtualServers[0]!.routes.reverse();
  expect(differences(site(to(files)), parsed(renamed))).toEqual([]);
});
