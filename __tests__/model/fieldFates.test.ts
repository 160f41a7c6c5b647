import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  FieldFate,
  NAMED_FIELDS,
  REQUEST_FAMILIES,
  requestFieldFate,
} from "../../src/model/actions/fieldFates.js";
import { ForwardingRules, type ForwardedRequest } from "../../src/model/actions/forwarding.js";
import type { ActionOf } from "../../src/model/actions/table.js";
import { parseConfig, serverConfigsOf } from "../../src/model/index.js";

/** Which fields of a request reach an upstream, by who sends them. */

/** Where the client is and how it connected: a trusted proxy is believed. */
const CLAIMS = [
  ...["X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Ssl"],
  ...[
    "X-Forwarded",
    "X-Forwarded-Scheme",
    "X-Forwarded-Server",
    "X-Forwarded-Prefix",
    "X-Forwarded-Protocol",
  ],
  ...["X-Forwarded-By", "Forwarded", "Forwarded-For", "Client-IP", "X-Client-IP", "True-Client-IP"],
  ...["CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Pseudo-IPv4", "X-Cluster-Client-IP", "Fastly-Client-IP"],
  ...["X-Appengine-User-IP", "X-Azure-ClientIP", "X-Azure-SocketIP", "X-Envoy-External-Address"],
  ...["X-Originating-IP", "Proxy-Client-IP", "WL-Proxy-Client-IP", "CloudFront-Viewer-Address"],
  ...["Front-End-Https", "X-Url-Scheme", "X-Scheme", "X-ARR-SSL", "CF-Visitor", "CloudFront-Forwarded-Proto"],
];

/** Who the user is, and what else was asked for: a trusted proxy is believed if the route names the field. */
const IDENTITIES = [
  ...["Remote-User", "Remote-Groups", "Remote-Email", "Remote-Addr", "X-Remote-User", "X-Remote-Group"],
  ...["X-Remote-IP", "X-Remote-Addr", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Groups"],
  ...["X-Forwarded-Preferred-Username", "X-Forwarded-Access-Token", "X-Forwarded-Client-Cert"],
  ...["X-Forwarded-Tls-Client-Cert", "X-Forwarded-Uri", "X-Forwarded-Unheard-Of", "X-ForwardedUser"],
  ...["X-Auth-Request-User", "X-Authenticated-User", "X-WebAuth-User", "X-Authentik-Username"],
  ...["X-Consumer-Username", "X-Pomerium-Claim-Email", "X-Goog-Authenticated-User-Email"],
  ...[
    "X-Amzn-Oidc-Identity",
    "X-MS-Client-Principal",
    "X-MS-Client-Principal-Name",
    "X-MS-Token-AAD-Id-Token",
  ],
  ...["Tailscale-User-Login", "OIDC-Claim-Sub", "Shib-Session-ID", "X-Proxy-User", "X-Vouch-User"],
  ...["CF-Access-Authenticated-User-Email", "SSL-Client-Verify", "SSL-Client-S-DN", "X-SSL-Client-Cert"],
  ...["X-SSL-CERT", "X-Client-Cert", "X-Client-Certificate", "X-Client-Verify", "X-Client-DN"],
  ...[
    "X-TLS-Client-Subject",
    "X-Amzn-Mtls-Clientcert",
    "X-ARR-ClientCert",
    "Client-Cert",
    "Client-Cert-Chain",
  ],
  ...["X-Original-URL", "X-Original-URI", "X-Original-Host", "X-Original-Forwarded-For", "X-Rewrite-URL"],
  ...["X-Override-URL", "X-Script-Name", "X-Http-Host-Override", "X-Accel-Mapping", "X-Sendfile-Type"],
];

/** What nobody can send through. */
const ENDING = ["Proxy", "Host", "Expect", "Proxy-Authorization", "TE", "Connection", "HTTP2-Settings"];

/** What clients send, and what only looks like one of the others. */
const ORDINARY = [
  ...[
    "Accept",
    "Cookie",
    "Referer",
    "Range",
    "Authorization",
    "Sec-Fetch-Site",
    "Sec-CH-UA",
    "Via",
    "SOAPAction",
  ],
  ...["X-Requested-With", "X-Auth-Token", "X-CSRF-Token", "X-Forward", "X-Http-Method-Override", "Overwrite"],
  ...[
    "X-Remote",
    "Remote",
    "SSL",
    "Client",
    "Proxy-Status",
    "Original-URL",
    "Shibboleth",
    "Depth",
    "If",
    "Lock-Token",
  ],
  ...["Priority", "DNT", "Timeout", "Trace-Id", "Traceparent", "Origin", "Signature", "X", "Re", "S"],
];

function rulesOf(action: object): ForwardingRules {
  const config = parseConfig({
    version: 1,
    trustedProxies: ["10.0.0.1"],
    listeners: [{ name: "http", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", url: "http://10.0.0.2:8000" }],
    virtualServers: [
      {
        name: "s",
        serverNames: ["_"],
        listeners: ["http"],
        default: true,
        routes: [{ name: "r", path: "/", action: { type: "proxy", upstream: "web", ...action } }],
      },
    ],
  });
  if (!config.ok) throw new Error(JSON.stringify(config.problems));
  const route = config.value.virtualServers[0]!.routes[0]!;
  return new ForwardingRules(
    { ...route, action: route.action as ActionOf<"proxy"> },
    serverConfigsOf(config.value.upstreams[0]!)[0]!,
  );
}

const FORWARDED_OFF = { forwarded: { realIp: false, for: false, proto: false } };

function sent(rules: ForwardingRules, headers: string[], more: Partial<ForwardedRequest> = {}): string[] {
  const head = rules.requestHead(
    {
      method: "GET",
      target: "/",
      path: "/",
      headers,
      host: "a.example",
      serverName: "a.example",
      scheme: "http",
      clientAddress: "192.0.2.7",
      trusted: false,
      ...more,
    },
    "",
  );
  return head.trimEnd().split("\r\n").slice(2);
}

const passes = (rules: ForwardingRules, name: string, trusted: boolean): boolean =>
  sent(rules, [name, "1"], { trusted }).length > 0;

const cases = (name: string): string[] => [
  name,
  name.toLowerCase(),
  name.toUpperCase(),
  [...name].map((char, i) => (i % 2 === 0 ? char.toLowerCase() : char.toUpperCase())).join(""),
];
/** With other bytes that applications write as `_` too; every one of them, and one at a time. */
const otherSpellings = (name: string): string[] =>
  [..."_.+~!"]
    .flatMap((byte) => [name.replaceAll("-", byte), name.replace("-", byte), `${name}${byte}`])
    .filter((other) => other !== name);

const plain = rulesOf(FORWARDED_OFF);
const all = rulesOf({ ...FORWARDED_OFF, trustedFields: [...CLAIMS, ...IDENTITIES] });

describe.each([
  ["a claim of address or scheme", CLAIMS, { stranger: false, trusted: true, named: true }],
  ["an identity or another URL", IDENTITIES, { stranger: false, trusted: false, named: true }],
  ["a field that ends here", ENDING, { stranger: false, trusted: false, named: false }],
  ["an ordinary field", ORDINARY, { stranger: true, trusted: true, named: true }],
])("%s", (_what, names, expected) => {
  test.each(names)("%s", (name) => {
    for (const spelling of cases(name)) {
      const got = {
        stranger: passes(plain, spelling, false) || (expected.named && passes(all, spelling, false)),
        trusted: passes(plain, spelling, true),
        named: passes(all, spelling, true),
      };
      expect([spelling, got]).toEqual([spelling, expected]);
    }
    for (const spelling of cases(name).flatMap(otherSpellings))
      for (const rules of [plain, all])
        for (const trusted of [false, true])
          expect([spelling, passes(rules, spelling, trusted)]).toEqual([spelling, false]);
  });
});

test("a field that a route trusts proxies with is theirs alone, whatever it is otherwise", () => {
  const rules = rulesOf({ ...FORWARDED_OFF, trustedFields: ["x-own-user", "Forwarded"] });
  const headers = ["X-Own-User", "a", "X-OWN-USER", "b", "Forwarded", "c", "Remote-User", "d", "Accept", "e"];
  const plainLines = "X-Own-User: a\r\nAccept: e\r\n\r\n";
  expect(sent(rules, headers)).toEqual(["Accept: e"]);
  expect(
    sent(
      rules,
      headers.filter((_, i) => i < 2 || i > 7),
      { plainLines },
    ),
  ).toEqual(["Accept: e"]);
  expect(sent(rules, headers, { trusted: true })).toEqual([
    "X-Own-User: a",
    "X-OWN-USER: b",
    "Forwarded: c",
    "Accept: e",
  ]);
});

test("what the route sets, and what Connection names, does not come from a trusted proxy", () => {
  const trustedFields = ["Remote-User", "Remote-Name"];
  const rules = rulesOf({ ...FORWARDED_OFF, trustedFields, setHeaders: { "Remote-User": "own" } });
  const headers = ["Remote-User", "a", "Connection", "remote-name", "Remote-Name", "b", "Accept", "c"];
  expect(sent(rules, headers, { trusted: true })).toEqual(["Remote-User: own", "Accept: c"]);
});

test("a chain that only trusted proxies may send ends here if it is a stranger's", () => {
  const rules = rulesOf({ trustedFields: ["x-forwarded-for"] });
  const [, stranger] = sent(rules, ["X-Forwarded-For", "6.6.6.6"]);
  const [, trusted] = sent(rules, ["X-Forwarded-For", "6.6.6.6"], { trusted: true });
  expect([stranger, trusted]).toEqual(["X-Forwarded-For: 192.0.2.7", "X-Forwarded-For: 6.6.6.6, 192.0.2.7"]);
});

test("docs/load-balancers.md lists them all, each where it belongs", () => {
  const page = readFileSync(join(__dirname, "../../docs/load-balancers.md"), "utf8");
  const [, section = ""] = page.split("### Fields of trusted proxies");
  const rows = section
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(2);
  const listed = rows.flatMap((row) => {
    const [, , names = "", passes = ""] = row.split("|");
    const fate = / never /.test(passes)
      ? FieldFate.Drop
      : / yes/.test(passes)
        ? FieldFate.Claim
        : FieldFate.Named;
    return [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => ({ name: name!.toLowerCase(), fate }));
  });
  for (const { name, fate } of listed)
    expect([name, requestFieldFate(name.replace("*", "-other"))]).toEqual([name, fate]);
  const ofList = NAMED_FIELDS.filter((name) =>
    [FieldFate.Claim, FieldFate.Named].includes(requestFieldFate(name)),
  );
  const known = listed.map(({ name }) => name);
  expect(
    [...ofList, ...REQUEST_FAMILIES.map((begins) => `${begins}*`)].filter((name) => !known.includes(name)),
  ).toEqual([]);
});

describe("a request that a trusted proxy forwards", () => {
  const forwarded = { trusted: true, clientAddress: "192.0.2.7", forwardedBy: "10.0.0.1" };
  const OWN = ["X-Real-IP: 192.0.2.7", "X-Forwarded-Proto: http"];

  test.each<[string, string[], string]>([
    ["with a chain", ["X-Forwarded-For", "192.0.2.7, 10.0.0.9"], "192.0.2.7, 10.0.0.9, 10.0.0.1"],
    [
      "with a chain in two fields",
      ["X-Forwarded-For", "192.0.2.7", "x-forwarded-for", "10.0.0.9"],
      "192.0.2.7, 10.0.0.9, 10.0.0.1",
    ],
    ["whose client another field names", ["Accept", "a"], "192.0.2.7, 10.0.0.1"],
    [
      "with an address that a client may have set",
      ["X-Real-IP", "6.6.6.6", "X-Forwarded-For", "192.0.2.7"],
      "192.0.2.7, 10.0.0.1",
    ],
  ])("%s", (_what, headers, chain) => {
    const lines = sent(rulesOf({}), headers, forwarded).filter((line) => line !== "Accept: a");
    expect(lines).toEqual([OWN[0], `X-Forwarded-For: ${chain}`, OWN[1]]);
  });

  test("is not told from another by what was kept of it", () => {
    const rules = rulesOf({});
    const chainOf = (forwardedBy: string | undefined): string =>
      sent(rules, [], { ...forwarded, forwardedBy })[1]!;
    expect([chainOf("10.0.0.1"), chainOf("10.0.0.1"), chainOf("10.0.0.9"), chainOf(undefined)]).toEqual([
      "X-Forwarded-For: 192.0.2.7, 10.0.0.1",
      "X-Forwarded-For: 192.0.2.7, 10.0.0.1",
      "X-Forwarded-For: 192.0.2.7, 10.0.0.9",
      "X-Forwarded-For: 192.0.2.7",
    ]);
  });

  test("keeps its X-Real-IP where this proxy sends none", () => {
    const headers = ["X-Real-IP", "6.6.6.6"];
    expect(sent(plain, headers, forwarded)).toEqual(["X-Real-IP: 6.6.6.6"]);
  });
});
