import { certificateSources, parseConfig, type Problem } from "../../src/model/index.js";
import { sayings } from "../../testkit/sayings.js";

/** Rules that span fields: what is still allowed, and the whole of what is said otherwise. */

const told = sayings("cross-checks");

const HTTP = { name: "http", address: "0.0.0.0", port: 80, protocol: "http" };
const FILES = { certificate: "/c.pem", key: "/k.pem" };
const https = (tls: object): object => ({
  name: "https",
  address: "0.0.0.0",
  port: 443,
  protocol: "https",
  tls,
});
const HTTPS = https(FILES);

const server = (more: object): object => ({
  name: "site",
  serverNames: ["_"],
  listeners: ["http"],
  default: true,
  routes: [],
  ...more,
});
const route = (more: object): object => ({
  name: "r",
  path: "/",
  action: { type: "respond", status: 200 },
  ...more,
});
const redirect = (action: object): object => ({
  routes: [route({ action: { type: "redirect", ...action } })],
});
const proxy = (upstream: string): object => ({ routes: [route({ action: { type: "proxy", upstream } })] });

function problemsOf(config: object): readonly Problem[] {
  const result = parseConfig({ version: 1, listeners: [HTTP], virtualServers: [server({})], ...config });
  return result.ok ? [] : told(result.problems);
}

const places = (config: object): string[] => problemsOf(config).map(({ code, path }) => `${code} ${path}`);

test("a name that is not there, beside those that are", () => {
  const said = (config: object): unknown =>
    problemsOf(config).map(({ message, allowed }) => [message, allowed]);
  const upstreams = [
    { name: "a", url: "http://127.0.0.1:1" },
    { name: "b", url: "http://127.0.0.1:2" },
  ];
  const virtualServers = [server(proxy("c"))];
  expect(said({ upstreams, virtualServers })).toEqual([["is not the name of an upstream", "a, b"]]);
  expect(said({ virtualServers })).toEqual([["is not the name of an upstream", "no upstream is defined"]]);
  expect(said({ virtualServers: [server({ listeners: ["http", "x"] })] })).toEqual([
    ["is not the name of a listener", "http"],
  ]);
});

test("one listener of IPv4 is enough", () => {
  const ipv6 = { ...HTTP, name: "ipv6", address: "::" };
  const virtualServers = [server({ listeners: ["http", "ipv6"] })];
  expect(places({ listeners: [ipv6, HTTP], virtualServers })).toEqual([]);
  expect(places({ listeners: [ipv6], virtualServers: [server({ listeners: ["ipv6"] })] })).toEqual([
    "config.ipv6-only listeners",
  ]);
});

const PUBLIC = "config.public-health-listener healthListener.address";
const TAKEN = "config.port-conflict healthListener.port";

test.each<[object, string[]]>([
  [{ address: "127.0.0.1" }, []],
  [{ address: "10.0.0.1" }, []],
  [{ address: "169.254.0.1" }, []],
  [{ address: "::1" }, []],
  [{ address: "fd00::1" }, []],
  [{ address: "fe80::1%eth0" }, []],
  [{ address: "9.9.9.9" }, [PUBLIC]],
  [{ address: "9.9.9.9", anyAddress: true }, [PUBLIC]],
  [{ address: "224.0.0.1" }, [PUBLIC]],
  [{ address: "2620:fe::9" }, [PUBLIC]],
  [{ address: "0.0.0.0" }, [PUBLIC]],
  [{ address: "::" }, [PUBLIC]],
  [{ address: "0.0.0.0", anyAddress: true }, []],
  [{ address: "::", anyAddress: true }, []],
  [{ address: "127.0.0.1", port: 80 }, [TAKEN]],
  [{ address: "::1", port: 80 }, []],
  [{ address: "127.0.0.1", port: 81 }, []],
  [{ address: "127.0.0.2", port: 81 }, [TAKEN]],
  [{ address: "0.0.0.0", anyAddress: true, port: 81 }, [TAKEN]],
  [{ address: "fd00::2", port: 82 }, []],
  [{ address: "0:0::1", port: 82 }, [TAKEN]],
])("a health listener %j beside others", (more, said) => {
  const listeners = [
    HTTP,
    { ...HTTP, name: "b", address: "127.0.0.2", port: 81 },
    { ...HTTP, name: "c", address: "::1", port: 82 },
  ];
  const virtualServers = [server({ listeners: ["http", "b", "c"] })];
  expect(places({ listeners, virtualServers, healthListener: { port: 9180, ...more } })).toEqual(said);
});

const OPEN = "config.public-metrics-listener metricsListener.address";
const TAKEN_TOO = "config.port-conflict metricsListener.port";

test.each<[object, string[]]>([
  [{ address: "127.0.0.1", port: 9181 }, []],
  [{ address: "10.0.0.1", port: 9181 }, []],
  [{ address: "9.9.9.9", port: 9181 }, [OPEN]],
  [{ address: "9.9.9.9", port: 9181, allow: ["9.9.9.0/24"] }, []],
  [{ address: "9.9.9.9", port: 9181, anyAddress: true }, [OPEN]],
  [{ address: "0.0.0.0", port: 9181 }, [OPEN]],
  [{ address: "0.0.0.0", port: 9181, allow: ["10.0.0.0/8"] }, []],
  [{ address: "::", port: 9181, anyAddress: true }, []],
  [{ address: "127.0.0.1", port: 80 }, [TAKEN_TOO]],
  [{ address: "127.0.0.1", port: 9180 }, [TAKEN_TOO]],
  [{ address: "::1", port: 9180 }, []],
  [{ path: "/run/portico/metrics.sock" }, []],
])("a metrics listener %j beside others", (metricsListener, said) => {
  const healthListener = { address: "127.0.0.1", port: 9180 };
  const virtualServers = [server({ listeners: ["http"] })];
  expect(places({ listeners: [HTTP], virtualServers, healthListener, metricsListener })).toEqual(said);
});

test("the lowest version of TLS may be the highest, and not above it", () => {
  const policy = (minVersion: string, maxVersion: string): object => ({
    listeners: [
      HTTP,
      https({ ...FILES, policy: { minVersion, maxVersion, ciphers: "HIGH", curves: ["X25519"] } }),
    ],
    virtualServers: [server({ listeners: ["http", "https"] })],
  });
  expect(places(policy("TLSv1.3", "TLSv1.3"))).toEqual([]);
  expect(places(policy("TLSv1.2", "TLSv1.3"))).toEqual([]);
  expect(problemsOf(policy("TLSv1.3", "TLSv1.2"))).toMatchObject([
    {
      code: "config.out-of-range",
      path: "listeners[1].tls.policy.minVersion",
      received: '"TLSv1.3"',
      allowed: "at most TLSv1.2",
    },
  ]);
});

test("several servers of a listener may have the catch-all name, and one of them is the default", () => {
  expect(places({ virtualServers: [server({}), server({ name: "b", default: false })] })).toEqual([]);
  expect(problemsOf({ virtualServers: [server({}), server({ name: "b" })] })).toMatchObject([
    {
      code: "config.duplicate-default-server",
      path: "virtualServers[1].default",
      received: "true",
      allowed: "one default server of each listener, which is virtualServers[0] here",
    },
  ]);
});

test.each<[string, string, string, string, string[]]>([
  ["prefix", "/a/", "segment", "/a/", ["config.shadowed-route virtualServers[0].routes[0].path"]],
  ["prefix", "/a", "segment", "/a", []],
  ["exact", "/a/", "segment", "/a/", []],
  ["prefix", "/a/", "exact", "/a/", []],
  ["prefix", "/a/", "segment", "/b/", []],
])("a route %s %s beside %s %s", (match, path, otherMatch, otherPath, said) => {
  const routes = [route({ match, path }), route({ name: "o", match: otherMatch, path: otherPath })];
  expect(places({ virtualServers: [server({ routes })] })).toEqual(said);
});

describe("redirects are followed through the proxy's own listeners", () => {
  const LOOP = (s: number): string => `config.redirect-loop virtualServers[${s}].routes[0].action`;
  const to = (scheme: string, host?: string): object => redirect({ scheme, host });
  const responses = { routes: [route({})] };
  const named = (name: string, more: object): object =>
    server({ name, serverNames: [name], default: name === "a.example", ...more });
  const tls = (more: object): object => server({ name: "tls", listeners: ["https"], ...more });

  test.each<[string, object[], string[]]>([
    ["to itself", [server(to("http")), tls(responses)], [LOOP(0)]],
    [
      "from both listeners to one of them",
      [server({ listeners: ["http", "https"], ...to("https") })],
      [LOOP(0)],
    ],
    ["back and forth", [server(to("https")), tls(to("http"))], [LOOP(0), LOOP(1)]],
    ["into a loop of another", [server(to("https")), tls(to("https"))], [LOOP(0), LOOP(1)]],
    ["to a path with a response", [server(to("https")), tls(responses)], []],
    ["to a path without a route", [server(to("https")), tls({})], []],
    ["to a host elsewhere", [server(to("http", "elsewhere.example")), tls(responses)], []],
    [
      "to a name of a wildcard",
      [
        named("a.example", to("http", "b.wild.example")),
        server({
          name: "wild",
          serverNames: ["*.wild.example"],
          default: false,
          ...to("http", "b.wild.example"),
        }),
        tls(responses),
      ],
      [LOOP(0), LOOP(1)],
    ],
    [
      "for one of two names",
      [
        server({ serverNames: ["a.example", "b.example"], ...to("https") }),
        tls({ serverNames: ["b.example"], ...responses }),
        tls({ name: "other", serverNames: ["a.example"], default: false, ...to("http") }),
      ],
      [LOOP(0), LOOP(2)],
    ],
    [
      // More redirects than listeners.
      "from name to name, until one responds",
      [
        named("a.example", to("http", "b.example")),
        named("b.example", to("http", "c.example")),
        named("c.example", to("http", "d.example")),
        named("d.example", responses),
        tls(responses),
      ],
      [],
    ],
    [
      "from name to name, and back",
      [
        named("a.example", to("http", "b.example")),
        named("b.example", to("http", "c.example")),
        named("c.example", to("http", "b.example")),
        tls(responses),
      ],
      [LOOP(0), LOOP(1), LOOP(2)],
    ],
    [
      "by a name that only a later redirect gives",
      [
        named("a.example", to("https", "b.example")),
        named("b.example", responses),
        tls({ serverNames: ["b.example"], ...to("http") }),
      ],
      [],
    ],
  ])("%s", (_, virtualServers, said) => {
    expect(places({ listeners: [HTTP, HTTPS], virtualServers })).toEqual(said);
  });
});

describe("certificates", () => {
  const acme = (more: object = {}): object => ({ authority: "ca", names: ["files.example.org"], ...more });
  const CA = { name: "ca", agreeToTerms: true };
  const config = (tls: object, authority: object = {}, listeners: object[] = [HTTP]): object => ({
    listeners: [...listeners, https(tls)],
    certificateAuthorities: [{ ...CA, ...authority }],
    virtualServers: [server({ listeners: [...listeners.map(() => "http"), "https"] })],
  });
  const AT = "listeners[1].tls";

  test.each<[string, object, string[]]>([
    ["of neither kind", {}, [`config.missing-field ${AT}.certificate`, `config.missing-field ${AT}.key`]],
    ["without key", { certificate: "/c.pem" }, [`config.missing-field ${AT}.key`]],
    ["from files", FILES, []],
    ["from an authority", { acme: acme() }, []],
    ...(["certificate", "key"] as const).map((name): [string, object, string[]] => [
      `from an authority, and a ${name}`,
      { acme: acme(), [name]: FILES[name] },
      [`config.certificate-source ${AT}.${name}`],
    ]),
    [
      "further ones",
      { ...FILES, certificates: [{ acme: acme() }, { certificate: "/d.pem" }] },
      [`config.missing-field ${AT}.certificates[1].key`],
    ],
    [
      "of another authority",
      { acme: acme({ authority: "x" }) },
      [`config.unknown-reference ${AT}.acme.authority`],
    ],
    [
      "of names twice",
      { acme: acme({ names: ["a.org", "b.org", "a.org"] }) },
      [`config.duplicate-server-name ${AT}.acme.names[2]`],
    ],
    ["with a key that the policy takes", { acme: acme({ keyType: "rsa-3072" }) }, []],
    [
      "with a key that the policy does not take",
      { acme: acme({ keyType: "ecdsa-p256" }) },
      [`acme.key-type ${AT}.acme.keyType`],
    ],
    ...[
      ...["127.0.0.1", "10.0.0.1", "fd00::1", "host", "a.local", "a.home.arpa", "a.corp", "a.localhost"],
      ...["a.test", "a.example", "a.invalid", "a.onion", "a.internal", "a.lan", "a.home"],
    ].map((name): [string, object, string[]] => [
      `for ${name}`,
      { acme: acme({ names: [name] }) },
      [`acme.private-name ${AT}.acme.names[0]`],
    ]),
    ...["9.9.9.9", "2620:fe::fe", "a.org", "a.local.org", "localcorp.org"].map(
      (name): [string, object, string[]] => [`for ${name}`, { acme: acme({ names: [name] }) }, []],
    ),
    ...["a_b.org", "*", "w.*.org", "*.9.9.9.9", "A.org", "[::1]", "a.org:80", "a..org"].map(
      (name): [string, object, string[]] => [
        `for ${name}`,
        { acme: acme({ names: [name] }) },
        [`acme.bad-name ${AT}.acme.names[0]`],
      ],
    ),
  ])("%s", (_, tls, said) => expect(places(config(tls))).toEqual(said));

  const CA_AT = "certificateAuthorities[0]";
  const dns = (more: object = {}): object => ({
    dns: { type: "rfc2136", server: { address: "192.0.2.53" }, zone: "a.org", keyFile: "/k", ...more },
  });
  const name = (i: number, code: string): string => `acme.${code} ${AT}.acme.names[${i}]`;
  const program = { dns: { type: "program", command: "/p" } };

  test.each<[string, string[], object, string[]]>([
    ["by records of their zone", ["a.org", "*.a.org", "b.a.org", "*.b.a.org"], dns(), []],
    ["by a record of another zone", ["b.org"], dns({ alias: "p.a.org" }), []],
    ["by a zone of the record alone", ["b.org"], dns({ zone: "_acme-challenge.b.org" }), []],
    ["by a program", ["b.org", "*.c.org"], program, []],
    ["by the API of a provider", ["b.org", "*.c.org"], { dns: { type: "desec", tokenFile: "/t" } }, []],
    ["by DuckDNS", ["a.duckdns.org", "*.a.duckdns.org"], { dns: { type: "duckdns", tokenFile: "/t" } }, []],
    [
      "by DuckDNS, elsewhere",
      ["b.org"],
      { dns: { type: "duckdns", tokenFile: "/t" } },
      [name(0, "outside-zone")],
    ],
    [
      "of another zone",
      ["a.org", "*.b.org", "ba.org"],
      dns(),
      [name(1, "outside-zone"), name(2, "outside-zone")],
    ],
    [
      "by an alias of another zone",
      ["b.org"],
      dns({ alias: "p.b.org" }),
      [`acme.outside-zone ${CA_AT}.dns.alias`],
    ],
    ["with a wildcard, without records", ["a.org", "*.a.org"], {}, [name(1, "wildcard-challenge")]],
    ["with an address", ["9.9.9.9"], dns(), [name(0, "address-challenge")]],
    ["by nobody", ["a.org"], { challenge: "dns-01" }, [`acme.dns-missing ${CA_AT}.dns`]],
    [
      "by what is not asked",
      ["a.org"],
      { ...program, challenge: "http-01" },
      [`acme.dns-missing ${CA_AT}.challenge`],
    ],
  ])("names that are proved %s", (_, names, authority, said) => {
    expect(places(config({ acme: acme({ names }) }, authority))).toEqual(said);
  });

  const ONLY: object[] = [];

  test.each<[string, object, object[] | undefined, string[]]>([
    ["with its own roots certifies any name", { roots: "/r.pem" }, undefined, []],
    ["without them does not", {}, undefined, [`acme.private-name ${AT}.acme.names[0]`]],
  ])("an authority %s", (_, authority, listeners, said) => {
    expect(places(config({ acme: acme({ names: ["a.lan"] }) }, authority, listeners))).toEqual(said);
  });

  test.each<[string, object, object, object[], string[]]>([
    [
      "with a holder everywhere",
      FILES,
      { holderAddress: "::" },
      [HTTP],
      [`config.bad-address ${CA_AT}.holderAddress`],
    ],
    ["with a holder", FILES, { holderAddress: "192.0.2.1" }, [HTTP], []],
    ["that is asked by HTTP", { acme: acme() }, { challenge: "http-01" }, [HTTP], []],
    ["that is asked by TLS, with no http listener", { acme: acme() }, {}, ONLY, []],
    [
      "that is asked by HTTP, with no http listener",
      { acme: acme() },
      { challenge: "http-01" },
      ONLY,
      [`acme.no-http-listener ${CA_AT}.challenge`],
    ],
    [
      "that is asked by HTTP for a further one, with no http listener",
      { ...FILES, certificates: [FILES, { acme: acme() }] },
      { challenge: "http-01" },
      ONLY,
      [`acme.no-http-listener ${CA_AT}.challenge`],
    ],
    ["that is asked by DNS, with no http listener", { acme: acme() }, program, ONLY, []],
    ["that nothing is from", FILES, { challenge: "http-01" }, ONLY, []],
    ...[FILES, { acme: acme() }].map((tls): [string, object, object, object[], string[]] => [
      "whose terms are not agreed to",
      tls,
      { agreeToTerms: false },
      [HTTP],
      [`acme.terms-not-agreed ${CA_AT}.agreeToTerms`],
    ]),
    [
      "with two mail addresses",
      FILES,
      { email: "a@example.org,b@example.org" },
      [HTTP],
      [`acme.bad-email ${CA_AT}.email`],
    ],
    [
      "with a key's id on two lines",
      FILES,
      { externalAccountBinding: { keyId: "a\nb", keyFile: "/k" } },
      [HTTP],
      [`config.bad-text ${CA_AT}.externalAccountBinding.keyId`],
    ],
  ])("an authority %s", (_, tls, authority, listeners, said) => {
    expect(places(config(tls, authority, listeners))).toEqual(said);
  });

  test("says what is known, and what the ciphers take", () => {
    const unknown = { acme: acme({ authority: "x" }) };
    expect(problemsOf(config(unknown))).toMatchObject([{ received: '"x"', allowed: "ca" }]);
    expect(problemsOf({ ...config(unknown), certificateAuthorities: [] })).toMatchObject([
      { allowed: "no certificate authority is defined" },
    ]);
    expect(problemsOf(config({ acme: acme() }, { challenge: "http-01" }, ONLY))).toMatchObject([
      { received: '"http-01"' },
    ]);
  });

  test("come from files or from an authority, the first one first", () => {
    const parsed = parseConfig({ version: 1, ...config({ ...FILES, certificates: [{ acme: acme() }] }) });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(certificateSources(parsed.value.listeners[1]!.tls!)).toEqual([
      { source: { type: "files", ...FILES }, at: "" },
      { source: { type: "acme", acme: acme() }, at: "certificates[0]" },
    ]);
  });
});

const telling = (...targets: object[]): object => ({
  notifications: { targets: targets.map((more) => ({ name: "ops", type: "webhook", ...more })) },
});
const TARGET = "config.notification-url notifications.targets[0]";

test.each<[string, object, string[]]>([
  ["a message to one URL", telling({ url: "https://a.example/b" }), []],
  ["a message to no URL", telling({}), [TARGET]],
  ["a message to two URLs", telling({ url: "https://a.example/b", urlFile: "/etc/url" }), [TARGET]],
  [
    "two messages of one name",
    telling({ url: "https://a.example/b" }, { urlFile: "/etc/url" }),
    ["config.duplicate-name notifications.targets[1].name"],
  ],
  ["an id in a field of its own", { requestId: { field: "X-Own" } }, []],
  [
    "an id in a field that names the client",
    { requestId: { field: "X-Real-IP" } },
    ["config.bad-header requestId.field"],
  ],
  [
    "two routes of one name",
    { virtualServers: [server({ routes: [route({}), route({ path: "/b" })] })] },
    ["config.duplicate-name virtualServers[0].routes[1].name"],
  ],
  ...["0.0.0.0/0", "::/0", "10.0.0.0/0"].map((all): [string, object, string[]] => [
    `a status page for ${all}`,
    {
      virtualServers: [
        server({ routes: [route({ action: { type: "status", allow: ["10.0.0.0/8", all] } })] }),
      ],
    },
    ["config.everyone-allowed virtualServers[0].routes[0].action.allow[1]"],
  ]),
])("%s", (_, config, said) => expect(places(config)).toEqual(said));

const announcing = (...from: string[]): object => ({ ...HTTP, proxyProtocol: { from } });
const ANNOUNCED = "config.announced-and-trusted trustedProxies";
const OTHER = { ...HTTP, name: "other", port: 81 };

test.each<[string[], object[], string[]]>([
  [["10.0.0.5"], [HTTP], []],
  [["10.0.0.5"], [announcing("10.0.1.0/24")], []],
  [["10.0.0.5"], [announcing("2001:db8::/32", "10.0.0.5")], [`${ANNOUNCED}[0]`]],
  [["192.0.2.1", "10.0.0.5"], [announcing("10.0.0.0/8")], [`${ANNOUNCED}[1]`]],
  [["10.0.0.0/8"], [announcing("10.0.0.5")], [`${ANNOUNCED}[0]`]],
  [["10.0.0.0/8"], [announcing("10.200.0.0/16")], [`${ANNOUNCED}[0]`]],
  [["::/0"], [announcing("10.0.0.5")], []],
  [["2001:db8::/32"], [announcing("2001:db8:1::/48")], [`${ANNOUNCED}[0]`]],
  [["::ffff:10.0.0.0/104"], [announcing("10.0.0.5")], [`${ANNOUNCED}[0]`]],
  // A balancer that forwards TCP to one listener and speaks HTTP to the other.
  [["10.0.0.5"], [announcing("10.0.0.5"), OTHER], []],
  [["10.0.0.5"], [announcing("10.0.0.5"), { ...announcing("10.0.0.6"), ...OTHER }], []],
  [
    ["10.0.0.5"],
    [announcing("10.0.0.5"), { ...OTHER, proxyProtocol: { from: ["10.0.0.4/30"] } }],
    [`${ANNOUNCED}[0]`],
  ],
])("proxies %j with listeners %j", (trustedProxies, listeners, problems) => {
  const virtualServers = [server({ listeners: listeners.map((one) => (one as { name: string }).name) })];
  expect(places({ trustedProxies, listeners, virtualServers })).toEqual(problems);
});

test.each([
  ["api_key", true],
  ["X.Trace", true],
  ["X_Real_IP", false],
  ["remote_user", false],
  ["x.forwarded_for", false],
  ["X-Original_URL", false],
  ["content_length", false],
  ["proxy_connection", false],
  ["destination_", true],
  ["_destination", true],
  ["x_site", false],
  ["X_SECRET", false],
  ["x_own_user", false],
])("a route keeps the field %s: %s", (name, isKept) => {
  const action = {
    type: "proxy",
    upstream: "web",
    keepFields: [name],
    trustedFields: ["X-Own-User"],
    setHeaders: { "X-Site": "a" },
    setHeadersFromCredential: { "x-secret": "/etc/secret" },
  };
  const config = {
    trustedProxies: ["10.0.0.5"],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [server({ routes: [route({ action }), route({ name: "s", path: "/s" })] })],
  };
  const problems = ["config.bad-header virtualServers[0].routes[0].action.keepFields[0]"];
  expect(places(config)).toEqual(isKept ? [] : problems);
});

test("what only a trusted proxy may send needs one", () => {
  const trusting = (trustedFields: string[]): object => ({
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [
      server({
        routes: [
          route({ action: { type: "proxy", upstream: "web", trustedFields } }),
          route({ name: "s", path: "/s" }),
        ],
      }),
    ],
  });
  const at = "config.no-trusted-proxies virtualServers[0].routes[0].action.trustedFields";
  expect(places(trusting([]))).toEqual([]);
  expect(places(trusting(["Remote-User"]))).toEqual([at]);
  expect(places({ ...trusting(["Remote-User"]), trustedProxies: ["10.0.0.5"] })).toEqual([]);
  expect(places({ clientAddressField: "x-forwarded-FOR" })).toEqual([]);
  expect(places({ clientAddressField: "X-Real-IP" })).toEqual([
    "config.no-trusted-proxies clientAddressField",
  ]);
  expect(places({ clientAddressField: "X-Real-IP", trustedProxies: ["10.0.0.5"] })).toEqual([]);
});
