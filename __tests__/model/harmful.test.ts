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

const ACTION = "virtualServers[0].routes[0].action";

test.each<[what: string, path: string, code: string, change: Change]>([
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
])("%s is accepted", (_, change) => {
  expect(problems(change)).toEqual([]);
});
