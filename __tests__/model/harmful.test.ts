import { parseConfig, type Problem } from "../../src/model/index.js";

/** Values that work, but do harm; with each its neighbours that somebody means. */

type Change = (config: ReturnType<typeof site>) => void;

const site = () => ({
  version: 1,
  healthListener: { address: "127.0.0.1", port: 9180 },
  metricsListener: { address: "127.0.0.1", port: 9181 },
  certificateAuthorities: [
    { name: "ca", email: "a@example.org", agreeToTerms: true, dns: undefined as unknown },
  ],
  listeners: [
    { name: "http", address: "0.0.0.0", port: 80, protocol: "http", tls: undefined as unknown },
    {
      ...{ name: "https", address: "0.0.0.0", port: 443, protocol: "https" },
      tls: { certificate: "/etc/tls/fullchain.pem", key: "/etc/tls/privkey.pem" } as object,
    },
  ],
  upstreams: [{ name: "app", url: "http://127.0.0.1:8000" } as Record<string, unknown>],
  virtualServers: [
    {
      name: "site",
      serverNames: ["files.example.org"],
      listeners: ["http", "https"],
      default: true,
      errorPages: [] as unknown[],
      routes: [
        { name: "all", path: "/", action: { type: "proxy", upstream: "app" } as Record<string, unknown> },
      ],
    },
  ],
});

function problems(change: Change): readonly Problem[] {
  const config = site();
  change(config);
  const parsed = parseConfig(config);
  return parsed.ok ? [] : parsed.problems;
}

const action =
  (fields: Record<string, unknown>): Change =>
  ({ virtualServers: [server] }) => {
    server!.routes[0]!.action = fields;
  };
const proxied = (fields: object): Change => action({ type: "proxy", upstream: "app", ...fields });
const upstream =
  (fields: Record<string, unknown>): Change =>
  (config) => {
    config.upstreams = [{ name: "app", ...fields }];
  };
const one = (fields: object): Change => upstream({ url: "http://10.0.0.1:8000", ...fields });
const SERVERS = [{ url: "http://10.0.0.1:8000" }, { url: "http://10.0.0.2:8000" }];
const two = (fields: object): Change => upstream({ servers: SERVERS, ...fields });
const header = (value: string): Change => proxied({ setHeaders: { "X-A": value } });
const page =
  (html: string): Change =>
  ({ virtualServers: [server] }) => {
    server!.errorPages = [{ statuses: [502], html }];
  };
const tls =
  (certificate: string, key: string): Change =>
  ({ listeners: [, https] }) => {
    https!.tls = { certificate, key };
  };
const program =
  (command: string): Change =>
  ({ certificateAuthorities: [authority], listeners: [, https] }) => {
    authority!.dns = { type: "program", command };
    https!.tls = { acme: { authority: "ca", names: ["files.example.org"] } };
  };

const trusting =
  (...trustedProxies: string[]): Change =>
  (config) =>
    Object.assign(config, { trustedProxies });
const set =
  (fields: Record<string, string>): Change =>
  ({ virtualServers: [server] }) =>
    Object.assign(server!, { responseHeaders: { set: fields } });
const logs =
  (written: object): Change =>
  (config) =>
    Object.assign(config, { logs: written });
const drives: Change = ({ virtualServers: [server] }) => Object.assign(server!, { windowsDrives: true });

const ACTION = "virtualServers[0].routes[0].action";

test.each<[what: string, path: string, code: string, change: Change]>([
  ...["10.0.0.5/8", "192.168.178.20/24", "2001:db8::1/64", "::ffff:10.0.0.1/104"].map(
    (range): [string, string, string, Change] => [
      `the range ${range}`,
      "trustedProxies[1]",
      "config.bad-address",
      trusting("127.0.0.1", range),
    ],
  ),
  [
    "such a range for a maintenance",
    "maintenance.allow[0]",
    "config.bad-address",
    (config) => Object.assign(config, { maintenance: { allow: ["10.0.0.5/8"] } }),
  ],
  [
    "such a range for the metrics",
    "metricsListener.allow[0]",
    "config.bad-address",
    (config) => Object.assign(config.metricsListener, { allow: ["10.0.0.5/8"] }),
  ],
  [
    "such a range for the status",
    `${ACTION}.allow[0]`,
    "config.bad-address",
    action({ type: "status", allow: ["10.0.0.5/8"] }),
  ],
  ...["0.0.0.0/1", "128.0.0.0/1", "64.0.0.0/7", "2000::/3", "::/1"].map(
    (range): [string, string, string, Change] => [
      `${range} for administrators`,
      "maintenance.allow[0]",
      "config.everyone-allowed",
      (config) => Object.assign(config, { maintenance: { allow: [range] } }),
    ],
  ),
  ...[
    "nonsense here",
    "max-age: 3600",
    "max-age=1h",
    "max-age",
    "max-age=-1",
    "max_age=3600",
    "nocache",
    "public max-age=3600",
    "3600",
    "true",
  ].flatMap((value): [string, string, string, Change][] => [
    [
      `Cache-Control: ${value}`,
      "virtualServers[0].responseHeaders.set.cache-control",
      "config.bad-header",
      set({ "cache-control": value }),
    ],
    [
      `cacheControl ${value}`,
      `${ACTION}.cacheControl`,
      "config.bad-header",
      action({ type: "staticFiles", directory: "/srv", cacheControl: value }),
    ],
  ]),
  [
    "a directory for a log",
    "logs.access.path",
    "config.bad-file-path",
    logs({ access: { path: "/var/log/" } }),
  ],
  [
    "one file for two kinds of logs",
    "logs.error.path",
    "config.two-log-formats",
    logs({ access: { path: "/a.log" }, error: { path: "/a.log" } }),
  ],
  [
    "one file in two formats",
    "virtualServers[0].routes[0].accessLog.path",
    "config.two-log-formats",
    (config) => {
      logs({ access: { path: "/a.log" } })(config);
      Object.assign(config.virtualServers[0]!.routes[0]!, { accessLog: { path: "/a.log", format: "json" } });
    },
  ],
  ...["__Host-server", "__Secure-server", "__host-x"].map((cookie): [string, string, string, Change] => [
    `the cookie ${cookie} over http`,
    "upstreams[0].sticky.cookie",
    "config.bad-cookie",
    two({ sticky: { cookie } }),
  ]),
  [
    "credentials from every origin",
    "virtualServers[0].responseHeaders.set.Access-Control-Allow-Origin",
    "config.bad-header",
    set({ "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true" }),
  ],
  [
    "credentials of a route from every origin of its virtual server",
    "virtualServers[0].routes[0].responseHeaders.set.Access-Control-Allow-Credentials",
    "config.bad-header",
    (config) => {
      set({ "access-control-allow-origin": "*" })(config);
      const responseHeaders = { set: { "Access-Control-Allow-Credentials": "true" } };
      Object.assign(config.virtualServers[0]!.routes[0]!, { responseHeaders });
    },
  ],
  [
    "drives without WebDAV",
    "virtualServers[0].windowsDrives",
    "config.no-webdav-route",
    (config) => {
      drives(config);
      action({ type: "respond", status: 204 })(config);
    },
  ],
  ...[
    "$host",
    "$remote_addr",
    "for=${remote_addr}",
    "$http_x_real_ip",
    "$proxy_add_x_forwarded_for",
    "%[src]",
  ].map((value): [string, string, string, Change] => [
    `the placeholder ${value}`,
    `${ACTION}.setHeaders.X-A`,
    "config.placeholder",
    header(value),
  ]),
  ...[
    "{remote_host}",
    "{http.request.host}",
    "%{REMOTE_ADDR}s",
    "%{HTTP_HOST}",
    "{env.TOKEN}",
    "%[req.hdr(host)]",
  ].map((value): [string, string, string, Change] => [
    `the placeholder ${value}`,
    `${ACTION}.setHeaders.X-A`,
    "config.placeholder",
    header(value),
  ]),
  [
    "a group of a pattern",
    `${ACTION}.path`,
    "config.placeholder",
    action({ type: "redirect", path: "/new/$1" }),
  ],
  [
    "the path of the request",
    `${ACTION}.path`,
    "config.placeholder",
    action({ type: "redirect", path: "/a$request_uri" }),
  ],
  ["a rewrite to a group", `${ACTION}.rewrite`, "config.placeholder", proxied({ rewrite: "/$1" })],
  ["a fixed redirect", `${ACTION}.status`, "config.not-one-of", action({ type: "respond", status: 301 })],
  [
    "a fixed redirect that keeps the method",
    `${ACTION}.status`,
    "config.not-one-of",
    action({ type: "respond", status: 308 }),
  ],
  ...["/etc/portico/down.html", "./down.html", "down.html", "pages/down.htm", "~/down.html"].map(
    (html): [string, string, string, Change] => [
      `the path ${html} for a page`,
      "virtualServers[0].errorPages[0].html",
      "config.bad-error-page",
      page(html),
    ],
  ),
  ...["PHPSESSID", "JSESSIONID", "connect.sid", "sessionid", "session"].map(
    (cookie): [string, string, string, Change] => [
      `the application's cookie ${cookie}`,
      "upstreams[0].sticky.cookie",
      "config.bad-cookie",
      two({ sticky: { cookie } }),
    ],
  ),
  [
    "a choice among one server",
    "upstreams[0].balance",
    "config.bad-servers",
    one({ balance: "leastConnections" }),
  ],
  [
    "a slow start of one server",
    "upstreams[0].slowStartMs",
    "config.bad-servers",
    one({ slowStartMs: 30_000 }),
  ],
  [
    "the weight of one server",
    "upstreams[0].servers[0].weight",
    "config.bad-servers",
    upstream({ servers: [{ url: "http://10.0.0.1:8000", weight: 2 }] }),
  ],
  ["a hold for several servers", "upstreams[0].holdMs", "config.bad-servers", two({ holdMs: 60_000 })],
  [
    "the health listener's port",
    "upstreams[0].url",
    "config.proxy-loop",
    upstream({ url: "http://127.0.0.1:9180" }),
  ],
  ["the metrics' port", "upstreams[0].url", "config.proxy-loop", upstream({ url: "http://127.0.0.1:9181" })],
  [
    "key and certificate exchanged",
    "listeners[1].tls.certificate",
    "files.key-mismatch",
    tls("/etc/tls/privkey.pem", "/etc/tls/fullchain.pem"),
  ],
  [
    "exchanged by their endings",
    "listeners[1].tls.certificate",
    "files.key-mismatch",
    tls("/t/a.key", "/t/a.crt"),
  ],
  [
    "a certificate without its chain",
    "listeners[1].tls.certificate",
    "files.bad-certificate",
    tls("/etc/letsencrypt/live/example.org/cert.pem", "/etc/letsencrypt/live/example.org/privkey.pem"),
  ],
  [
    "a program with arguments",
    "certificateAuthorities[0].dns.command",
    "config.bad-file-path",
    program("/usr/local/bin/record --verbose"),
  ],
])("%s is refused", (_, path, code, change) => {
  expect(problems(change)).toMatchObject([
    { path, code, received: expect.anything(), fix: expect.anything() },
  ]);
});

test.each<[what: string, change: Change]>([
  ["no change", () => undefined],
  ...[
    "$5",
    "a$b",
    "100%",
    "$2y$10$abc",
    '{"group":"default"}',
    "<https://a/{?dns}>",
    "pa$$word",
    "%[",
    "{}",
  ].map((value): [string, Change] => [`the value ${value}`, header(value)]),
  ["an OData path", proxied({ rewrite: "/odata/$metadata" })],
  ["a body that explains nginx", action({ type: "respond", status: 200, body: "Use $host." })],
  ["a fixed response", action({ type: "respond", status: 304 })],
  ["a plain sentence as a page", page("Back soon.")],
  ["a page of one word", page("Soon")],
  ["a page with a link", page("<a href=/status.html>")],
  ["an own cookie", two({ sticky: { cookie: "portico_web" } })],
  ["the application's cookie in its place", two({ sticky: { applicationCookie: "PHPSESSID" } })],
  ["sharing among several", two({ balance: "leastConnections", slowStartMs: 30_000 })],
  ["no hold for several", two({ holdMs: 0 })],
  ["a hold for one", one({ holdMs: 60_000 })],
  ["the health listener's port of another host", upstream({ url: "http://10.0.0.1:9180" })],
  [
    "a key that is also a certificate by its name",
    tls("/etc/tls/cert-and-key.pem", "/etc/tls/cert-and-key.pem"),
  ],
  ["a certificate of another tool", tls("/etc/tls/cert.pem", "/etc/tls/privkey.pem")],
  ["a directory with a blank", program("/opt/my tools/record")],
  [
    "ranges and addresses of networks",
    trusting(
      ...["10.0.0.5", "10.0.0.0/8", "172.16.0.0/12", "10.0.0.5/32", "10.0.0.0/08", "fc00::/7", "fd00::/8"],
      ...["2001:db8::/48", "2001:db8::1/128", "2001:db8::1", "fe80::1%eth0/64", "::ffff:10.0.0.0/104"],
    ),
  ],
  ...[
    "no-store",
    "public, max-age=31536000, immutable",
    "Max-Age=0, Must-Revalidate",
    "private,no-cache",
    'no-cache="Set-Cookie, X-A", s-maxage="60"',
    "max-age=60, stale-while-revalidate=30, stale-if-error=86400",
    "no-store, ,",
    // Extensions of caches.
    'max-age=60, community="UCI", surrogate-ttl=5',
  ].map((value): [string, Change] => [`Cache-Control: ${value}`, set({ "Cache-Control": value })]),
  [
    "one file for several routes",
    (config) => {
      logs({ access: { path: "/a.log" }, error: { path: "/b.log" } })(config);
      const own = { accessLog: { path: "/a.log" }, errorLog: { path: "/b.log" } };
      Object.assign(config.virtualServers[0]!.routes[0]!, own);
    },
  ],
  [
    "such a cookie over https only",
    (config) => {
      two({ sticky: { cookie: "__Host-server" } })(config);
      config.virtualServers[0]!.listeners = ["https"];
      const routes = [{ name: "all", path: "/", action: { type: "redirect" } }];
      const plain = { ...config.virtualServers[0]!, name: "plain", listeners: ["http"], routes };
      config.virtualServers.push(plain);
    },
  ],
  [
    "such a cookie behind a proxy that may speak TLS",
    (config) => {
      two({ sticky: { cookie: "__Secure-server" } })(config);
      trusting("10.0.0.7")(config);
    },
  ],
  ["every origin", set({ "Access-Control-Allow-Origin": "*" })],
  [
    "credentials from one origin",
    set({ "Access-Control-Allow-Origin": "https://a.example", "Access-Control-Allow-Credentials": "true" }),
  ],
  ["drives of a server behind the application", drives],
])("%s is accepted", (_, change) => {
  expect(problems(change)).toEqual([]);
});
