import { parseConfig } from "../../src/model/index.js";
import { isOpenRisk, securityFindings } from "../../src/model/review/security.js";

/** What a config says about certificates of clients: what is refused, and what is closed. */

interface Changes {
  readonly rules?: object;
  readonly server?: object;
  readonly action?: object;
  readonly more?: object;
}

function config({ rules = {}, server, action, more }: Changes) {
  const tls = { certificate: "/c.pem", key: "/k.pem" };
  return {
    version: 1,
    listeners: [
      { name: "https", address: "0.0.0.0", port: 443, protocol: "https", tls },
      { name: "http", address: "0.0.0.0", port: 80, protocol: "http" },
    ],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [
      {
        ...{ name: "site", serverNames: ["_"], default: true, listeners: ["https"] },
        clientCertificate: { ca: "/ca.pem", ...rules },
        routes: [{ name: "web", path: "/", access: "users", action: { type: "proxy", upstream: "web" } }],
        ...server,
      },
      {
        ...{ name: "other", serverNames: ["_"], default: true, listeners: ["http"] },
        routes: [
          {
            name: "web",
            path: "/",
            action: { type: "proxy", upstream: "web", trustedFields: [], ...action },
          },
        ],
      },
    ],
    trustedProxies: ["10.0.0.1"],
    accessPolicies: { users: { basic: { usersFile: "/users", userField: "Remote-User" } } },
    ...more,
  };
}

const problemsOf = (changes: Changes): string[] => {
  const parsed = parseConfig(config(changes));
  return parsed.ok ? [] : parsed.problems.map(({ code, path }) => `${path}: ${code}`);
};

const RULES = "virtualServers[0].clientCertificate";
const ACTION = "virtualServers[1].routes[0].action";

test.each<[what: string, changes: Changes, problems: readonly string[]]>([
  ["rules", {}, []],
  [
    "all rules",
    { rules: { crl: "/crl.pem", required: false, names: ["a b"], userField: "X-Remote-User" } },
    [],
  ],
  [
    "a listener without TLS",
    { server: { listeners: ["https", "http"], default: false, serverNames: ["a.example"] } },
    [`${RULES}: config.client-certificate-without-tls`],
  ],
  ["a field of strangers", { rules: { userField: "X-User" } }, [`${RULES}.userField: config.bad-header`]],
  ["a field of a policy", { rules: { userField: "remote-USER" } }, [`${RULES}.userField: config.bad-header`]],
  ["names with an odd end", { rules: { names: ["a "] } }, [`${RULES}.names[0]: config.bad-text`]],
  ["no names", { rules: { names: [] } }, [`${RULES}.names: config.out-of-range`]],
  [
    "a field that a proxy may send, on another server",
    { action: { trustedFields: ["client-cert"] } },
    [`${ACTION}.trustedFields[0]: config.bad-header`],
  ],
  [
    "a spelling that passes, on another server",
    { action: { keepFields: ["Client_Cert-Chain"] } },
    [`${ACTION}.keepFields[0]: config.bad-header`],
  ],
  [
    "a spelling of the user's field",
    { rules: { userField: "X-Remote-User" }, action: { keepFields: ["x.remote.user"] } },
    [`${ACTION}.keepFields[0]: config.bad-header`],
  ],
])("%s", (_, changes, problems) => {
  expect(problemsOf(changes)).toEqual(problems.length === 0 ? [] : expect.arrayContaining([...problems]));
});

test("a site that needs a certificate is closed, and one that may have one is open", () => {
  const server = { privatePaths: ["/admin"], logIns: [{ path: "/login", secret: "body", failed: [401] }] };
  const routes = [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }];
  const open = (required: boolean): string[] => {
    const parsed = parseConfig(config({ rules: { required }, server: { ...server, routes } }));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    return securityFindings(parsed.value, () => false)
      .filter((one) => isOpenRisk(one) && one.place.startsWith("virtualServers[0]"))
      .map(({ id }) => id);
  };
  expect(open(true)).toEqual([]);
  expect(open(false)).toEqual(["security.private-open", "security.no-guard"]);
});
