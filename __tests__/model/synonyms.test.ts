import { App, TerraformStack } from "cdktf";
import { parseConfig } from "../../src/model/index.js";
import { places } from "../../src/model/config/places.js";
import { plainName, NOT_SUPPORTED } from "../../src/model/text/notSupported.js";
import { LOCAL_SYNONYMS, SYNONYMS } from "../../src/model/text/synonyms.js";
import { HOST_PROPS } from "../../src/constructs/host/host.js";
import { FRONT_END_PROPS } from "../../src/constructs/frontEnd/frontEndProps.js";
import {
  Access,
  Action,
  Application,
  FrontEnd,
  Host,
  Mode,
  type Problem,
  ProblemError,
  ReverseProxy,
  TlsMaterial,
  TlsPolicy,
} from "../../src/index.js";

/** Names that other proxies use: the message for one says which field it is here, and where the field is. */

test("each field of the table exists where the table says", () => {
  const missing = SYNONYMS.filter(
    ({ field, of }) =>
      places()
        .find(({ words }) => words === of)
        ?.names.includes(field) !== true,
  );
  expect(missing).toEqual([]);
});

const UPSTREAM = places().find(({ words }) => words === "an upstream")!.names;
const LEVELS: Readonly<Record<string, readonly string[]>> = {
  mode: Object.keys(FRONT_END_PROPS),
  material: ["material", "policy"],
  httpsPort: ["httpsPort", "httpPort"],
  publicName: Object.keys(HOST_PROPS),
  connectTimeoutMs: UPSTREAM,
};

test("each prop of a front end that the table names exists, and so does each class and method", () => {
  const methods: Readonly<Record<string, object>> = { Mode, TlsMaterial, TlsPolicy };
  for (const { beside = {} } of SYNONYMS)
    for (const [prop, use] of Object.entries(beside)) {
      const known = LEVELS[prop];
      expect([prop, known]).toEqual([prop, expect.arrayContaining([prop, /^\w+/.exec(use)![0]])]);
      for (const [, type, method] of use.matchAll(/(\w+)\.(\w+)\(/g))
        expect(methods[type!]).toHaveProperty(method!);
    }
});

test("a name is in one row, and in one of the two tables", () => {
  const names = [...SYNONYMS, ...NOT_SUPPORTED].flatMap((row) => row.names.map(plainName));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

test("a local name is in one row, is no field of its object, and each field exists", () => {
  for (const { mark, names, notes = {} } of LOCAL_SYNONYMS) {
    const all = Object.values(names).flat().map(plainName);
    expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([]);
    expect(Object.keys(names)).toEqual(expect.arrayContaining(Object.keys(notes)));
    const known = fieldsBeside(mark);
    expect([mark, known]).toEqual([mark, expect.arrayContaining([mark, ...Object.keys(names)])]);
    expect(known.filter((name) => all.includes(plainName(name)))).toEqual([]);
  }
});

/** The fields of the object that has the marked one, as the message for an unknown field lists them. */
function fieldsBeside(mark: string): readonly string[] {
  const wrong = { wordOfNoProxy: 1 };
  const objects = [
    { clientCertificate: wrong },
    { access: { basic: wrong } },
    { access: { forwardAuth: wrong } },
    { passwordGuard: wrong },
    { fail2ban: wrong },
  ].map((more) => problemsOf(more));
  const rate = (site: FrontEnd["site"]): unknown =>
    site.addRoute("r", { path: "/r", action: Action.respond(204), rateLimit: wrong as never });
  const lists = [...objects, problemsOf({}, rate)]
    .flat()
    .filter(({ code }) => code === "config.unknown-field")
    .map(({ allowed }) => allowed!.split(", "));
  return lists.find((names) => names.includes(mark)) ?? [];
}

function problemsOf(more: object, after?: (site: FrontEnd["site"]) => unknown): readonly Problem[] {
  try {
    const front = new FrontEnd(new TerraformStack(new App({ skipValidation: true }), "stack"), "web", {
      host: { address: "192.0.2.1", publicName: "www.example.org" },
      mode: Mode.tls(),
      application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
      ...more,
    });
    after?.(front.site);
  } catch (error) {
    if (error instanceof ProblemError) return error.problems;
    throw error;
  }
  return [];
}

test.each<[more: object, fix: string]>([
  [{ clientCertificate: { ca: "/ca.pem", ssl_crl: "/crl.pem" } }, "Use `crl`."],
  [{ clientCertificate: { ca: "/ca.pem", caFiles: ["/ca.pem"] } }, "Use `ca`."],
  [{ clientCertificate: { ca: "/ca.pem", trust_pool: "/ca.pem" } }, "Use `ca`."],
  [{ clientCertificate: { ca: "/ca.pem", clientAuthType: "x" } }, "Use `required`."],
  [{ access: Access.basic({ usersFile: "/u", users: [] } as never) }, "Use `usersFile`."],
  [{ access: Access.basic({ usersFile: "/u", file: "/u" } as never) }, "Use `usersFile`."],
  [{ access: { forwardAuth: { url: "http://127.0.0.1:1/", authResponseHeaders: [] } } }, "Use `copyFields`."],
  [{ access: { forwardAuth: { url: "http://127.0.0.1:1/", address: "x" } } }, "Use `url`."],
  [{ access: { allow: ["10.0.0.1"], satisfy: "any" } }, "Each condition of a policy has to hold."],
  [{ passwordGuard: { maxretry: 5 } }, "Use `wrongSecretsMax`."],
  [{ passwordGuard: { bantime: 5 } }, "Use `closeMs`. The value is in milliseconds."],
  [{ fail2ban: { bantime: "10m" } }, "Did you mean `banTimeMs`?"],
  [{ fail2ban: { action: "x" } }, "Use `banAction`."],
])("a site with %j", (more, fix) => {
  const fixes = problemsOf(more)
    .filter(({ code }) => code === "config.unknown-field")
    .map((problem) => problem.fix);
  expect(fixes).toEqual([expect.stringContaining(fix)]);
});

test("a preset that gets a URL instead of options says what it received", () => {
  const url = "http://127.0.0.1:9091";
  expect(problemsOf({ access: Access.authelia(url as never) })).toMatchObject([
    {
      code: "config.wrong-type",
      received: JSON.stringify(url),
      allowed: expect.stringContaining("an object with url"),
    },
  ]);
});

type Place = "root" | "listener" | "tls" | "upstream" | "server" | "route" | "action";

/** A config with one more field. */
function fixOf(place: Place, name: string): string {
  const more = (at: Place): object => (at === place ? { [name]: "x" } : {});
  const action = { type: "proxy", upstream: "app", ...more("action") };
  const tls = { certificate: "/c", key: "/k", ...more("tls") };
  const parsed = parseConfig({
    version: 1,
    listeners: [
      { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls, ...more("listener") },
    ],
    upstreams: [{ name: "app", url: "http://127.0.0.1:8000", ...more("upstream") }],
    virtualServers: [
      {
        ...{ name: "site", serverNames: ["_"], default: true, listeners: ["https"] },
        routes: [{ name: "all", path: "/", action, ...more("route") }],
        ...more("server"),
      },
    ],
    ...more("root"),
  });
  return parsed.ok ? "" : parsed.problems.map(({ fix }) => fix).join("\n");
}

/** What users of other proxies type, and where; a table of its own, as one from the source would agree with the source. */
test.each<[place: Place, typed: string, begin: string]>([
  ["server", "client_max_body_size", "Use `requestBodyBytesMax` of a route. The value is in bytes."],
  ["route", "client_max_body_size", "Use `requestBodyBytesMax`. The value is in bytes."],
  ["route", "proxy_set_header", "Use `setHeaders` of a `proxy` action."],
  ["action", "proxy_set_header", "Use `setHeaders`."],
  ["upstream", "preserveHost", "Use `hostHeader` of a `proxy` action."],
  ["action", "passHostHeader", "Use `hostHeader`."],
  ["root", "proxy_pass", "Use `upstream` of a `proxy` action."],
  ["route", "proxy_pass", "Use `upstream` of a `proxy` action."],
  ["server", "server_name", "Use `serverNames`."],
  ["server", "hosts", "Use `serverNames`."],
  ["server", "ssl_verify_client", "Use `clientCertificate`."],
  ["server", "mtls", "Use `clientCertificate`."],
  ["route", "hosts", "Use `serverNames` of a virtual server."],
  ["listener", "ssl_certificate", "Use `tls.certificate`."],
  ["server", "ssl_certificate_key", "Use `key` of `tls` of a listener."],
  ["tls", "ssl_protocols", "Use `policy`."],
  ["route", "return", "Use `action`. A redirect is an action of type `redirect`."],
  ["server", "forceSSL", "Use `scheme` of a `redirect` action."],
  ["upstream", "proxy_read_timeout", "Use `readTimeoutMs`."],
  ["route", "proxy_read_timeout", "Use `readTimeoutMs` of an upstream."],
  ["route", "insecureSkipVerify", "Use `verify` of `tls` of an upstream."],
  ["upstream", "insecureSkipVerify", "Use `tls.verify`."],
  ["root", "worker_connections", "Use `limits.connectionsMax`."],
  ["root", "keepalive_timeout", "Use `timeouts.keepAliveMs`."],
  ["listener", "set_real_ip_from", "Use `trustedProxies` of the proxy."],
  ["root", "worker_processes", "Use `workers`."],
  ["server", "error_page", "Use `errorPages`."],
  ["route", "root", "Use `directory` of a `staticFiles` action."],
  ["upstream", "host", "Use `url`."],
  ["upstream", "ip_hash", "Use `balance`."],
  // Fields of this proxy, a level away.
  ["listener", "trustedProxies", "The field belongs to the proxy."],
  ["root", "connectionsPerClientMax", "The field belongs to `limits` of the proxy."],
  ["server", "requestBodyBytesMax", "The field belongs to a route."],
  ["server", "rate_limit", "Use `rateLimit` of a route."],
  ["upstream", "caFile", "The field belongs to `tls` of an upstream."],
  // Neither here nor elsewhere.
  ["server", "server_names", "Did you mean `serverNames`?"],
  ["route", "pth", "Did you mean `path`?"],
  ["route", "wordOfNoProxy", "Remove the field or correct its spelling."],
])("%s: %s", (place, typed, begin) => {
  expect(fixOf(place, typed)).toMatch(new RegExp(`^${begin.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`));
});

/** In a stack, fixes name the props of the construct that the reader has. */
const inStack = (make: (stack: TerraformStack) => unknown): string => {
  try {
    make(new TerraformStack(new App({ skipValidation: true }), "stack"));
  } catch (error) {
    if (error instanceof ProblemError) return error.problems.map(({ fix }) => fix).join("\n");
    throw error;
  }
  return "";
};
const front = (more: object) =>
  inStack((stack) => {
    const props = {
      host: { address: "192.0.2.1" },
      mode: Mode.plain(),
      application: Application.server("http://127.0.0.1:1"),
      ...more,
    };
    return new FrontEnd(stack, "web", props);
  });

test.each([
  [{ trustedProxies: [] }, "Use `proxy.trustedProxies`."],
  [{ domain: "a.example" }, "Use `host.publicName`."],
  [{ serverNames: [] }, "Use `additionalServerNames`."],
  [{ forceSSL: true }, "Use `mode: Mode.tls()`."],
  [
    { ssl_certificate: "/c" },
    "Use `mode: Mode.tls({ material: TlsMaterial.fromFiles({ certificate, key }) })`.",
  ],
  [{ client_max_body_size: 1 }, "Use `requestBodyBytesMax` of a route."],
  [{ preserveHost: true }, "Use `hostHeader` of a `proxy` action."],
  [{ readTimeoutMs: 1 }, "The field belongs to an upstream."],
  [{ worker_connections: 1 }, "Use `proxy.limits.connectionsMax`."],
])("a front end with %j", (more, begin) => {
  expect(front(more)).toMatch(new RegExp(`^${begin.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`));
});

test("options of TLS", () => {
  expect(inStack(() => Mode.tls({ certificate: "/c" } as object))).toBe(
    "Use `material: TlsMaterial.fromFiles({ certificate, key })`.",
  );
});

test("a field that another field excludes is not called unknown", () => {
  const page = { statuses: [502], html: "<p>", file: "/etc/a.html" };
  const parsed = parseConfig({
    version: 1,
    listeners: [{ name: "l", address: "127.0.0.1", port: 80, protocol: "http" }],
    virtualServers: [
      { name: "s", serverNames: ["_"], default: true, listeners: ["l"], routes: [], errorPages: [page] },
    ],
  });
  expect(parsed).toMatchObject({
    problems: [
      {
        code: "config.unknown-field",
        message: "does not go together with `html`",
        fix: "Remove `file`, or remove `html`.",
      },
    ],
  });
});

test.each([
  [
    "a virtual server",
    (s: TerraformStack) => {
      const proxy = new ReverseProxy(s, "p", { host: new Host(s, "h", { address: "192.0.2.1" }) });
      const listeners = [proxy.addListener("l", { port: 80 })];
      return proxy.addVirtualServer("v", { serverNames: ["bücher.example"], listeners });
    },
  ],
  ["a host", (s: TerraformStack) => new Host(s, "h", { address: "192.0.2.1", publicName: "Bücher.example" })],
])("a name with letters beyond ASCII gets the form that the DNS has: %s", (_, make) => {
  expect(inStack(make)).toContain("`xn--bcher-kva.example`");
});
