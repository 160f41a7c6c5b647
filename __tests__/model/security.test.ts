import { parseConfig, type ProxyConfigInput } from "../../src/model/index.js";
import { isOpenRisk, securityFindings } from "../../src/model/review/security.js";
import { SECURITY_FINDINGS, type SecurityFindingId } from "../../src/model/review/securityFindings.js";

/** `portico check --security`: weaknesses of a config. */

const TLS = { certificate: "/etc/portico/signed.pem", key: "/etc/portico/key.pem" };
const HTTPS = { name: "https", address: "0.0.0.0", port: 443, protocol: "https", tls: TLS } as const;
const HTTP = { name: "http", address: "0.0.0.0", port: 80, protocol: "http" } as const;
const WEB = { name: "web", path: "/", action: { type: "proxy", upstream: "web" } } as const;
const ADMIN = { ...WEB, name: "admin", path: "/admin" };
const WIKI: ProxyConfigInput["virtualServers"][number] = {
  ...{ name: "wiki", serverNames: ["wiki.example.org"], default: true, listeners: ["https"] },
  ...{
    hsts: {},
    privatePaths: ["/admin"],
    routes: [WEB, { ...ADMIN, access: "home" }],
  },
};
const SOUND: ProxyConfigInput = {
  ...{ version: 1, listeners: [HTTPS], upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }] },
  ...{ accessPolicies: { home: { allow: ["10.0.0.0/8"] } }, virtualServers: [WIKI] },
};

const LOG_IN = { path: "/login", secret: "body", failed: [401] } as const;

function review(more: Partial<ProxyConfigInput>) {
  const parsed = parseConfig({ ...SOUND, ...more });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const known: Record<string, boolean> = { "/etc/portico/signed.pem": false, "/etc/portico/own.pem": true };
  return securityFindings(parsed.value, (file) => known[file]);
}

const wiki = (more: object): Partial<ProxyConfigInput> => ({ virtualServers: [{ ...WIKI, ...more }] });
const certified = (certificate: string, more: object = {}): Partial<ProxyConfigInput> => ({
  listeners: [{ ...HTTPS, tls: { ...TLS, certificate }, ...more }],
});
const plain = (more: object = {}): Partial<ProxyConfigInput> => ({
  listeners: [HTTPS, { ...HTTP, ...more }],
  ...wiki({ listeners: ["https", "http"] }),
});

const FOUND: readonly (readonly [SecurityFindingId, string, Partial<ProxyConfigInput>])[] = [
  ["security.plain-http", "listeners[1]", plain()],
  ["security.plain-http", "listeners[1]", { ...plain(), trustedProxies: ["127.0.0.1"] }],
  ["security.private-open", "virtualServers[0].routes[1]", wiki({ routes: [WEB, ADMIN] })],
  [
    "security.private-open",
    "virtualServers[0].routes[2]",
    wiki({ routes: [WEB, { ...ADMIN, access: "home" }, { ...ADMIN, name: "users", path: "/admin/users" }] }),
  ],
  [
    "security.private-open",
    "virtualServers[0].routes[1]",
    { accessPolicies: { home: { allow: ["0.0.0.0/0", "::/0"] } } },
  ],
  ["security.no-guard", "virtualServers[0]", wiki({ logIns: [LOG_IN] })],
  // The manual's path has no route of its own.
  ["security.private-open", "virtualServers[0].routes[0]", wiki({ routes: [WEB] })],
  [
    "security.private-open",
    "virtualServers[0].routes[1]",
    { accessPolicies: { home: { deny: ["192.0.2.0/24"] } } },
  ],
  ["security.no-hsts", "virtualServers[0]", wiki({ hsts: undefined })],
  ["security.self-signed", "listeners[0]", certified("/etc/portico/own.pem")],
  ["security.unknown-certificate", "listeners[0]", certified("/etc/portico/other.pem")],
  [
    "security.unused-acceptance",
    "acceptedRisks[0]",
    { acceptedRisks: [{ finding: "security.no-hsts", at: "wiki", reason: "Old devices." }] },
  ],
];

test.each(FOUND)("%s at %s", (id, place, more) => {
  expect(review(more).map((one) => [one.id, one.place])).toEqual([[id, place]]);
});

test.each<[string, Partial<ProxyConfigInput>]>([
  ["a sound config", {}],
  [
    "a log-in with a guard",
    { passwordGuards: { wiki: {} }, ...wiki({ logIns: [LOG_IN], passwordGuard: "wiki" }) },
  ],
  ["a log-in that few reach", wiki({ logIns: [{ ...LOG_IN, path: "/admin/login" }] })],
  ["http for this machine only", plain({ address: "127.0.0.1" })],
  ["http behind a proxy that speaks TLS", { ...plain(), trustedProxies: ["10.0.0.1"] }],
  ["http that only redirects", plainRedirect()],
  ["names that are addresses", wiki({ serverNames: ["192.0.2.1"], hsts: undefined })],
  // Browsers ignore the field after an error of the certificate (RFC 6797, 8.1).
  [
    "a field that the application's route sets",
    wiki({
      hsts: undefined,
      responseHeaders: { set: { "X-A": "b" } },
      routes: [{ name: "fixed", path: "/", action: { type: "respond", status: 200, body: "a" } }],
      privatePaths: [],
    }),
  ],
])("nothing of %s", (_, more) => {
  expect(review(more)).toEqual([]);
});

function plainRedirect(): Partial<ProxyConfigInput> {
  const routes = [{ name: "all", path: "/", action: { type: "redirect", scheme: "https" } as const }];
  const redirect = {
    ...WIKI,
    name: "redirect",
    listeners: ["http"],
    hsts: undefined,
    privatePaths: [],
    routes,
  };
  return { listeners: [HTTPS, HTTP], virtualServers: [WIKI, redirect] };
}

test("an accepted finding has its reason, at its place only, and is no risk to act on", () => {
  const accepted = { finding: "security.plain-http", at: "http", reason: "A lab." } as const;
  const [finding] = review({ ...plain(), acceptedRisks: [accepted] });
  expect(finding).toMatchObject({ id: "security.plain-http", accepted: "A lab." });
  expect(isOpenRisk(finding!)).toBe(false);
  const elsewhere = review({ ...plain(), acceptedRisks: [{ ...accepted, at: "other" }] });
  expect(elsewhere.map((one) => [one.id, isOpenRisk(one)])).toEqual([
    ["security.plain-http", true],
    ["security.unused-acceptance", true],
  ]);
});

test("each kind of finding has a case", () => {
  const shown = new Set(FOUND.map(([id]) => id));
  expect(Object.keys(SECURITY_FINDINGS).filter((id) => !shown.has(id as SecurityFindingId))).toEqual([]);
});
