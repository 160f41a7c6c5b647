import { Fn, TerraformVariable, TerraformStack } from "cdktf";
import { Construct } from "constructs";
import {
  Action,
  Activation,
  Application,
  ApplicationDaemons,
  ApplicationSettings,
  ContainerFrontEnd,
  Delivery,
  Firewall,
  FrontEnd,
  Host,
  HostFile,
  Listener,
  Mode,
  NodeRuntime,
  Notification,
  ProxyService,
  ReverseProxy,
  Route,
  StaticNetwork,
  SystemdUnit,
  TlsMaterial,
  TlsPolicy,
  Upstream,
  VirtualServer,
} from "../../src/index.js";
import { renderProxyConfig, resolve, synthesizedFile, synthesizedFiles } from "../../src/testing/index.js";
import { newStack, withService } from "../../testkit/stacks.js";

/** Mistakes that people make in stacks. As in JavaScript, no compiler is in the way. */

/** One part of each kind, to make mistakes with. */
export interface Site {
  readonly stack: TerraformStack;
  readonly host: Host;
  readonly proxy: ReverseProxy;
  readonly http: Listener;
  readonly server: VirtualServer;
  readonly app: Upstream;
  /** A value that Terraform knows at apply only. */
  readonly unknown: string;
  /** A front end with these props instead of its usual ones. */
  frontEnd(props: Wrong): FrontEnd;
}

// Props as they come without a compiler.
// oxlint-disable-next-line typescript/no-explicit-any
type Wrong = any;

export function site(): Site {
  const stack = newStack();
  const host = new Host(stack, "host", { address: "192.0.2.10" });
  const proxy = new ReverseProxy(stack, "proxy", { host });
  const http = proxy.addListener("http", { port: 80 });
  const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [http], default: true });
  const app = proxy.addUpstream("app", { url: "http://127.0.0.1:3000" });
  server.addRoute("app", { path: "/app", action: Action.proxy(app) });
  const unknown = new TerraformVariable(stack, "unknown", { type: "string" }).stringValue;
  const frontEnd = (props: Wrong): FrontEnd =>
    new FrontEnd(stack, "files", {
      host: { address: "192.0.2.20" },
      mode: Mode.plain(),
      ...withService(props),
      service: { runtimeBundle: __filename, ...props.service },
    });
  return { stack, host, proxy, http, server, app, unknown, frontEnd };
}

const KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const DAEMON = { command: ["/srv/d"], type: "exec", user: "sync" };
const FILES = { certificate: "/c.pem", key: "/k.pem", dhparam: false } as const;

/** What is done; the messages are in `render/golden/mistakes.txt`. */
export type Mistake = readonly [what: string, make: (site: Site) => unknown];

const of = (prefix: string, rows: readonly Mistake[]): readonly Mistake[] =>
  rows.map(([what, make]) => [`${prefix}: ${what}`, make]);

const host = (props: Wrong) => (s: Site) => new Host(s.stack, "h", props);
const hosts = of("a host", [
  ["without address", host({})],
  ["with a multicast address", host({ address: "224.0.0.1" })],
  ["with a link-local address", host({ address: "169.254.1.1" })],
  ["with `adress`", host({ adress: "192.0.2.1" })],
  ["with a bad netmask", host({ address: "192.0.2.1", netmask: "255.0.255.0" })],
  ["with the address of its subnet", host({ address: "192.0.2.0", netmask: "255.255.255.0" })],
  ["with a gateway's name", host({ address: "192.0.2.1", gateway: "router" })],
  ["with an IPv6 zone", host({ address: "192.0.2.1", ipv6Address: "fe80::1%eth0" })],
  [
    "with a temporary IPv6 address",
    host({ address: "192.0.2.1", ipv6Address: "2001:db8::1", ipv6Flags: ["temporary"] }),
  ],
  ["with half a DHCP range", host({ address: "192.168.1.5", dhcpRange: { from: "192.168.1.20" } })],
  ["with SSH on port 0", host({ address: "192.0.2.1", sshPort: 0 })],
  ["with a string for a delivery", host({ address: "192.0.2.1", delivery: "ssh" })],
]);

const local = (options: Wrong) => () => Delivery.local(options);
const ssh = (options: Wrong) => () => Delivery.ssh(options);
const deliveries = of("a delivery", [
  ["with an empty host key", ssh({ hostKey: "" })],
  ["with a line of known_hosts", ssh({ hostKey: `192.0.2.1 ${KEY}` })],
  ["with a fingerprint", ssh({ hostKey: "SHA256:abc" })],
  ["with a host key that is not looked at", ssh({ hostKey: KEY, verifyHostKey: false })],
  ["by `privateKeyPath`", ssh({ hostKey: KEY, privateKeyPath: "k" })],
  ["on port 70000", ssh({ hostKey: KEY, port: 70_000 })],
  ["to a user at a host", ssh({ hostKey: KEY, address: "root@host" })],
  ["with a timeout of 0", ssh({ hostKey: KEY, connectTimeoutSeconds: 0 })],
  ["that deletes on destroy", ssh({ hostKey: KEY, whenDestroyed: "delete" })],
  ["through nobody", ssh({ hostKey: KEY, bastion: { hostKey: KEY } })],
  ["with an empty key file", ssh({ hostKey: KEY, privateKeyFile: "" })],
  ["with a certificate alone", ssh({ hostKey: KEY, certificate: "ssh-rsa-cert" })],
  [
    "with a public key in place of the private one",
    ssh({ hostKey: KEY, privateKeyFile: "~/.ssh/id_ed25519.pub" }),
  ],
  ["through a bastion at no address", ssh({ hostKey: KEY, bastion: { address: "", hostKey: KEY } })],
  [
    "with a key and a key file",
    (s) =>
      ssh({ hostKey: KEY, privateKey: s.unknown, privateKeyFile: "~/.ssh/id", privateKeyInState: true })(),
  ],
]);

const listener = (props: Wrong) => (s: Site) => s.proxy.addListener("l", props);
const tls = (more: Wrong) =>
  listener({ port: 443, tls: { material: TlsMaterial.fromFiles(FILES), ...more } });
const listeners = of("a listener", [
  ["on port 0", listener({ port: 0 })],
  ["on half a port", listener({ port: 80.5 })],
  ["without material", listener({ port: 443, tls: {} })],
  ["with paths for material", tls({ material: FILES })],
  ["with the name of a policy", tls({ policy: "modern" })],
  ["with `ciphers`", tls({ ciphers: "HIGH" })],
  ["with published port 0", listener({ port: 81, publishedPort: 0 })],
  ["with PROXY protocol from nobody", listener({ port: 81, proxyProtocol: { from: [] } })],
  ["with PROXY protocol from a name", listener({ port: 81, proxyProtocol: { from: ["balancer"] } })],
  ["directly below a stack", (s) => new Listener(s.stack, "l", { port: 81 })],
  [
    "on the SSH server's port",
    (s) => {
      const l = s.proxy.addListener("l", { port: 22 });
      s.proxy.addVirtualServer("v", { serverNames: ["_"], listeners: [l], default: true });
    },
  ],
]);

const TWO = [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000" }];
const upstream = (props: Wrong) => (s: Site) => s.proxy.addUpstream("u", props);
const url = (value: unknown) => upstream({ url: value });
/** Some rules run when the app is synthesized. */
const routed = (props: Wrong) => (s: Site) => {
  const to = s.proxy.addUpstream("u", props);
  s.server.addRoute("u", { path: "/u", action: Action.proxy(to) });
};
const upstreams = of("an upstream", [
  ["without url", upstream({})],
  ["over TLS to a port without TLS", upstream({ url: "http://10.0.0.1", tls: { serverName: "a" } })],
  [
    "with a client certificate without key",
    upstream({ url: "https://a", tls: { certificateFile: "/a.pem" } }),
  ],
  ["with roots that are not asked", upstream({ url: "https://a", tls: { caFile: "/a.pem", verify: false } })],
  ["with `tls.ca`", upstream({ url: "https://a", tls: { ca: "/a.pem" } })],
  ["with the name `_`", upstream({ url: "https://a", tls: { serverName: "_" } })],
  ["without scheme", url("10.0.0.1:80")],
  ["with a user", url("http://me@10.0.0.1")],
  ["with capitals", url("http://App.example")],
  ["with port 0", url("http://10.0.0.1:0")],
  ["with port 99999", url("http://10.0.0.1:99999")],
  ["with an IPv6 address without brackets", url("http://::1:80")],
  ["by `host`", upstream({ host: "10.0.0.1" })],
  ["with an endless timeout", upstream({ url: "http://a", readTimeoutMs: 2 ** 31 })],
  ["with a timeout of 0", upstream({ url: "http://a", readTimeoutMs: 0 })],
  ["with too many idle connections", upstream({ url: "http://a", idleConnectionsMax: 1e6 })],
  ["at the address that the application listens on", routed({ url: "http://0.0.0.0:3000" })],
  ["with a server at such an IPv6 address", routed({ servers: [...TWO, { url: "http://[::]:3000" }] })],
]);

const server = (props: Wrong) => (s: Site) =>
  s.proxy.addVirtualServer("v", { listeners: [s.http], ...props });
const servers = of("a virtual server", [
  ["without names", server({})],
  ["with no names", server({ serverNames: [] })],
  ["with `serverName`", server({ serverName: "a.example" })],
  ["with a wildcard within a label", server({ serverNames: ["a*.example"] })],
  [
    "with an error page that is no list",
    server({ serverNames: ["a"], errorPages: { statuses: [502], html: "" } }),
  ],
  [
    "with an error page for no error, and a placeholder of its own",
    server({ serverNames: ["a"], errorPages: [{ statuses: [502, 200], html: "{{code}}" }] }),
  ],
  [
    "with error pages from the project and from nowhere",
    server({
      serverNames: ["a"],
      errorPages: [{ statuses: [502], file: "pages/down.html" }, { statuses: [404] }],
    }),
  ],
  [
    "with a field that is the connection's",
    server({ serverNames: ["a"], responseHeaders: { set: { Connection: "close" } } }),
  ],
  ["without listeners", server({ serverNames: ["a"], listeners: undefined })],
  ["with no listeners", server({ serverNames: ["a"], listeners: [] })],
  ["with a name for a listener", server({ serverNames: ["a"], listeners: ["http"] })],
  [
    "directly below a stack",
    (s) => new VirtualServer(s.stack, "v", { serverNames: ["a"], listeners: [s.http] }),
  ],
]);

const route = (props: Wrong) => (s: Site) =>
  s.server.addRoute("r", { action: Action.respond(200), ...props });
const routes = of("a route", [
  ["without path", route({})],
  ["with a regular expression", route({ path: /a/ })],
  ["with `pathPrefix`", route({ pathPrefix: "/a" })],
  ["that matches a regex", route({ path: "/a", match: "regex" })],
  ["without action", route({ path: "/a", action: undefined })],
  ["with an upstream for an action", (s) => route({ path: "/a", action: s.app })(s)],
  ["with a negative body limit", route({ path: "/a", requestBodyBytesMax: -1 })],
  ["that sets a length", route({ path: "/a", responseHeaders: { set: { "Content-Length": "0" } } })],
  [
    "that sets a field of two lines",
    route({ path: "/a", responseHeaders: { set: { "X-A": "1\r\nX-B: 2" } } }),
  ],
  ["with fields that are not in `set`", route({ path: "/a", responseHeaders: { "X-A": "1" } })],
  ["with a timeout of 0", route({ path: "/a", sendTimeoutMs: 0 })],
  ["with a log path alone", route({ path: "/a", accessLog: "/var/log/a" })],
  ["with a log of another format", route({ path: "/a", accessLog: { path: "/a.log", format: "xml" } })],
  [
    "outside of a virtual server",
    (s) => new Route(s.proxy, "r", { path: "/a", action: Action.respond(200) }),
  ],
  [
    "that another one takes everything of",
    (s) => {
      s.server.addRoute("r", { path: "/d/", match: "prefix", action: Action.respond(200) });
      s.server.addRoute("q", { path: "/d/", match: "segment", action: Action.respond(200) });
    },
  ],
]);

const act = (make: (s: Site) => Action) => (s: Site) =>
  s.server.addRoute("r", { path: "/r", action: make(s) });
const wrong = <T>(value: unknown): T => value as T;
const actions = of("an action", [
  ["that proxies to nothing", act(() => Action.proxy(wrong(undefined)))],
  ["that proxies to a URL with a path", act(() => Action.proxy("http://x:80/y"))],
  ["that strips `true`", act((s) => Action.proxy(s.app, wrong({ strip: true })))],
  ["with `forwarded.realIP`", act((s) => Action.proxy(s.app, wrong({ forwarded: { realIP: true } })))],
  ["that sets Host", act((s) => Action.proxy(s.app, { setHeaders: { Host: "x" } }))],
  ["that sets a name with a space", act((s) => Action.proxy(s.app, { setHeaders: { "a b": "x" } }))],
  ["that sets a field with a line end", act((s) => Action.proxy(s.app, { setHeaders: { "X-A": "a\r\nb" } }))],
  [
    "with a secret in place of its file",
    act((s) => Action.proxy(s.app, { setHeadersFromCredential: { "X-A": "secret" } })),
  ],
  [
    "with a secret that is set as a text too",
    act((s) =>
      Action.proxy(s.app, { setHeaders: { "x-a": "1" }, setHeadersFromCredential: { "X-A": "/etc/a" } }),
    ),
  ],
  [
    "that sets a variable of a shell",
    act((s) => Action.proxy(s.app, { setHeaders: { "X-A": "${HOST:-a}" } })),
  ],
  ["that sets a template of Go", act((s) => Action.proxy(s.app, { setHeaders: { "X-A": "{{ .Host }}" } }))],
  [
    "that sets a shorthand of Caddy",
    act((s) => Action.proxy(s.app, { setHeaders: { "X-A": "{>User-Agent}" } })),
  ],
  ["that upgrades to `ws`", act((s) => Action.proxy(s.app, { upgrades: ["ws", "WebSockets", "*"] }))],
  ["that sets a number", act((s) => Action.proxy(s.app, { setHeaders: { "X-A": wrong(1) } }))],
  [
    "that trusts a spelling that never arrives",
    act((s) => Action.proxy(s.app, { trustedFields: ["REMOTE_USER"] })),
  ],
  [
    "that trusts a field and nobody who sends it",
    act((s) => Action.proxy(s.app, { trustedFields: ["Remote-User"] })),
  ],
  ["that serves nothing", act(() => Action.staticFiles(wrong(undefined)))],
  ["that serves a relative directory", act(() => Action.staticFiles("srv"))],
  ["with one index as a string", act(() => Action.staticFiles("/s", wrong({ index: "index.html" })))],
  ["with an index in a directory", act(() => Action.staticFiles("/s", { index: ["a/b.html"] }))],
  ["that follows `all` links", act(() => Action.staticFiles("/s", wrong({ symlinks: "all" })))],
  ["that redirects with 200", act(() => Action.redirect(wrong({ status: 200 })))],
  ["that redirects to ftp", act(() => Action.redirect(wrong({ scheme: "ftp" })))],
  ["that redirects to a host with a port", act(() => Action.redirect({ host: "x:80" }))],
  ["that redirects to port 0", act(() => Action.redirect({ port: 0 }))],
  ["that responds nothing", act(() => Action.respond(wrong(undefined)))],
  ["that responds 99", act(() => Action.respond(99))],
  ["that responds an object", act(() => Action.respond(200, wrong({ body: {} })))],
]);

const proxy = (props: Wrong) => (s: Site) =>
  new ReverseProxy(s.stack, "p", { host: s.host, paths: { config: "/etc/p.json" }, ...props });
const proxies = of("a proxy", [
  ["without props", (s) => new ReverseProxy(s.stack, "p", wrong(undefined))],
  ["without host", proxy({ host: undefined })],
  ["with an address for a host", proxy({ host: "192.0.2.1" })],
  ["with no workers", proxy({ workers: 0 })],
  ["with `many` workers", proxy({ workers: "many" })],
  ["that trusts a name", proxy({ trustedProxies: ["gate"] })],
  [
    "whose listener believes everyone",
    (s) => s.proxy.addListener("l", { port: 8080, proxyProtocol: { from: ["::/0"] } }),
  ],
  ["whose clients are named in another syntax", proxy({ clientAddressField: "Forwarded" })],
  ["with an unknown limit", proxy({ limits: { connectionMax: 5 } })],
  ["with a limit of 0", proxy({ limits: { connectionsMax: 0 } })],
  ["with an unknown path", proxy({ paths: { logs: "/var/log" } })],
  ["with a relative path", proxy({ paths: { logDirectory: "log" } })],
  ["with a log as a string", proxy({ logs: { access: "/a.log" } })],
  ["without listeners", proxy({})],
  ["with a page that is a path", proxy({ maintenance: { page: "/srv/down.html" } })],
  [
    "with ntfy and no topic",
    proxy({ notifications: { targets: [Notification.ntfy({ name: "a", url: "https://ntfy.sh/" })] } }),
  ],
  [
    "with the URL of Gotify's messages",
    proxy({
      notifications: {
        targets: [Notification.gotify({ name: "a", url: "https://g.example/message", tokenFile: "/etc/g" })],
      },
    }),
  ],
  ["with an override that has no path", (s) => s.proxy.addConfigOverride(undefined as Wrong, 1)],
]);

const signed = (options: Wrong) => () => TlsMaterial.selfSigned(options);
const policy = (settings: Wrong) => (s: Site) => tls({ policy: TlsPolicy.custom(settings) })(s);
const SPELLED = { minVersion: "TLSv1.2", maxVersion: "TLSv1.3", ciphers: "HIGH", curves: ["X25519"] };
const tlsParts = of("TLS", [
  ["valid for no day", signed({ validityDays: 0 })],
  ["valid for ever", signed({ validityDays: 1e6 })],
  ["renewed from the first day on", signed({ validityDays: 10, renewalDays: 10 })],
  ["for a name with a space", signed({ dnsNames: ["a b"] })],
  ["for a URL", signed({ dnsNames: ["https://a"] })],
  ["for an address among names", signed({ dnsNames: ["192.0.2.1"] })],
  ["files without key", () => TlsMaterial.fromFiles(wrong({ certificate: "/c" }))],
  ["files by `cert`", () => TlsMaterial.fromFiles(wrong({ cert: "/c", key: "/k" }))],
  ["files by a relative path", () => TlsMaterial.fromFiles({ certificate: "c", key: "/k" })],
  ["files by a path that climbs", () => TlsMaterial.fromFiles({ certificate: "/c", key: "/k/../l" })],
  ["a policy without ciphers", policy({ ...SPELLED, ciphers: undefined })],
  ["a policy with TLS 1.0", policy({ ...SPELLED, minVersion: "TLSv1" })],
  ["a policy upside down", policy({ ...SPELLED, minVersion: "TLSv1.3", maxVersion: "TLSv1.2" })],
  ["a policy without curves", policy({ ...SPELLED, curves: [] })],
]);

const WRONG_DAEMON = {
  restartOn: ["a", 1],
  domainChange: "stop",
  code: false,
  command: { never: 1, message: "x", fixes: "y" },
};
const WRONG_PARTS = {
  host: { address: "::1", sshPort: 0 },
  proxy: { limits: { connectionsMax: 0 } },
  service: { logDaysKept: -1 },
  firewall: { allowed: [{ port: 0 }] },
};
const front = (props: Wrong) => (s: Site) => s.frontEnd(props);
const fronts = of("a front end", [
  ["without props", (s) => new FrontEnd(s.stack, "files", wrong<never>(undefined))],
  [
    "with wrong parts of all kinds",
    front({
      ...WRONG_PARTS,
      upstreams: { web: { url: "https://x/y" } },
    }),
  ],
  [
    "of a service with wrong options of all kinds",
    front({
      daemons: { proxyUnit: "a b" },
      installDirectory: "sync",
      settings: { fileServer: { host: "127.0.0.1", port: 0 }, startCommand: ["/opt/sync/start.sh"] },
    }),
  ],
  [
    "with options of an application, and no application",
    front({
      application: undefined,
      rootRedirect: true,
      upstreams: { web: {} },
      additionalServerNames: ["a.example"],
      defaultPage: "<p>",
    }),
  ],
  [
    "with a page that nobody gets",
    front({ application: Application.server("http://127.0.0.1:1"), defaultPage: "<p>" }),
  ],
  [
    "with a page, no HTTP port, and an application at `/`",
    front({
      mode: Mode.tls({ httpPort: false }),
      application: Application.nextcloud(),
      defaultPage: "<p>",
    }),
  ],
  ["without host", front({ host: undefined })],
  ["with an address for a host", front({ host: "192.0.2.1" })],
  ["without mode", front({ mode: undefined })],
  ["with a mode's name", front({ mode: "tls" })],
  ["with an application's name", front({ application: "nextcloud" })],
  ["with settings and no file of them", front({ settings: { files: {} } })],
  ["with a mode that was not called", front({ mode: Mode.tls })],
  ["without directory", front({ installDirectory: undefined })],
  ["with a relative directory", front({ installDirectory: "srv" })],
  ["with a relative media directory", front({ mediaDirectory: "./m" })],
  ["with a relative avatar directory", front({ avatarDirectory: "m" })],
  ["with a path for a prefix", front({ pathPrefix: "/sync" })],
  ["with an empty prefix", front({ pathPrefix: "" })],
  ["with paths that are none", front({ routePaths: { web: "/", fileServer: "seafhttp", webdav: "/dav/" } })],
  ["with the path of a route that is none", front({ routePaths: { avatars: "/a" } })],
  ["with two routes at one path", front({ routePaths: { webdav: "/synchttp" } })],
  ["with a path that only Terraform knows", (s) => s.frontEnd({ routePaths: { media: s.unknown } })],
  ["with a bad name", front({ additionalServerNames: ["A.example"] })],
  ["with a name in brackets", front({ additionalServerNames: ["[::1]"] })],
  ["with `upstreams.webdv`", front({ upstreams: { webdv: {} } })],
  ["with a bad timeout", front({ upstreams: { web: { readTimeoutMs: 0 } } })],
  ["with a body timeout of 0", front({ requestBodyTimeoutMs: 0 })],
  ["with another destination", front({ webdavDestination: "relative" })],
  ["with `firewall.allow`", front({ firewall: { allow: [] } })],
  ["with an allowed port as a number", front({ firewall: { allowed: [9090] } })],
  ["with `proxy.wrkers`", front({ proxy: { wrkers: 1 } })],
  ["with a host for its proxy", front({ proxy: { host: {} } })],
  ["with `service.node`", front({ service: { node: "/n" } })],
  ["with a relative config", front({ paths: { config: "portico.json" } })],
  ["with an unknown file server", (s) => s.frontEnd({ upstreams: { fileServer: { url: s.unknown } } })],
  ["with a file server on a Unix socket", front({ upstreams: { fileServer: { url: "unix:/run/f.sock" } } })],
  [
    "with sockets that the service does not see",
    front({
      upstreams: { web: { url: "unix:/tmp/web.sock" }, webdav: { url: "unix:/home/sync/dav.sock" } },
    }),
  ],
  ["with settings for settings", front({ settings: { SITE_ROOT: "/x" } })],
  ["with units for strangers", front({ activation: { units: { web: "x" } } })],
]);

const responses = of("the response fields of a front end", [
  ["with a cookie for everyone", front({ responseHeaders: { set: { "Set-Cookie": "a=1" } } })],
  [
    "with a cookie for everyone on one route",
    front({ routeResponseHeaders: { media: { set: { "Set-Cookie": "a=1" } } } }),
  ],
  ["with fields for a route that no front end has", front({ routeResponseHeaders: { share: {} } })],
  ["with fields for a route that this one does not have", front({ routeResponseHeaders: { avatars: {} } })],
  [
    "with an address to listen on that the host has no family for",
    front({ mode: Mode.plain({ ipv6Address: "::1" }) }),
  ],
]);

const mode = (options: Wrong) => () => Mode.tls(options);
const modes = of("a mode", [
  ["with a policy's name", mode({ policy: "modern" })],
  ["with paths for material", mode({ material: FILES })],
  ["with port 0", mode({ httpsPort: 0 })],
  ["with PROXY protocol from anywhere", mode({ proxyProtocol: {} })],
  ["with one port for both", mode({ httpPort: 443 })],
  ["with a public port out of range", mode({ publicPort: 70_000 })],
  ["with a name for an address", mode({ address: "localhost" })],
  ["with an address and a port", mode({ address: "192.0.2.1:80" })],
  ["with an IPv6 address for IPv4", mode({ address: "::1" })],
  ["with an IPv4 address for IPv6", mode({ ipv6Address: "192.0.2.1" })],
  ["with an IPv6 address in brackets", mode({ ipv6Address: "[::1]" })],
  ["with `max-age`", mode({ hsts: { "max-age": 1 } })],
  ["with HSTS for more than ten years", mode({ hsts: { maxAge: 1e9, force: true } })],
  ["plain, with HSTS", () => Mode.plain(wrong({ hsts: {} }))],
  ["plain, on port 65536", () => Mode.plain({ httpPort: 65_536 })],
]);

const service = (props: Wrong) => (s: Site) =>
  new ProxyService(s.stack, "s", { proxy: s.proxy, runtimeBundle: __filename, ...props });
/** The units of another proxy, with these paths in them. */
const serviceOf = (logDirectory: string, files: Wrong) => (s: Site) => {
  const paths = { config: "/etc/p.json", logDirectory };
  const other = new ReverseProxy(s.stack, "p", { host: s.host, paths });
  const https = other.addListener("l", { port: 8443, tls: { material: TlsMaterial.fromFiles(files) } });
  other.addVirtualServer("v", { serverNames: ["_"], listeners: [https], default: true });
  new ProxyService(s.stack, "s", { proxy: other, runtimeBundle: __filename });
};
const unit = (props: Wrong) => (s: Site) =>
  new SystemdUnit(s.stack, "u", {
    host: s.host,
    name: "a.service",
    unit: { Service: { ExecStart: "/a" } },
    ...props,
  });
const fastCgi = (ExecStart: Wrong) => ({ unit: { Service: { ExecStart } } });
const daemons = (props: Wrong) => (s: Site) =>
  new ApplicationDaemons(s.stack, "d", { host: s.host, ...props });
const units = of("units", [
  ["of no proxy", service({ proxy: undefined })],
  ["with a relative Node", service({ nodePath: "node" })],
  ["with a Node in a folder with a space", service({ nodePath: "/my node" })],
  ["with a space in the log directory", serviceOf("/var/log/my logs", FILES)],
  ["with a colon in the log directory", serviceOf("/var/log/p:/etc", FILES)],
  ["with a space in the key's path", serviceOf("/var/log/p", { ...FILES, key: "/my keys/k.pem" })],
  [
    "with a colon in the certificate's path",
    serviceOf("/var/log/p", { ...FILES, certificate: "/tls/c:1.pem" }),
  ],
  [
    "with two secrets of one name",
    (s) => {
      const setHeadersFromCredential = { "X-A": "/etc/a/b/key", "X-B": "/etc/a_b/key" };
      s.server.addRoute("r", { path: "/r", action: Action.proxy(s.app, { setHeadersFromCredential }) });
      service({})(s);
    },
  ],
  ["with a version for Node", service({ nodeRuntime: "24" })],
  ["that stop in -1 seconds", service({ stopTimeoutSeconds: -1 })],
  ["that keeps logs for ever", service({ logDaysKept: 1e9 })],
  ["with no files", service({ openFilesMax: 0 })],
  ["with too little memory for a worker", service({ memoryMax: "64M" })],
  ["with a group by its number and one with a space", service({ groups: ["33", "www data"] })],
  ["without a runtime", service({ runtimeBundle: "/nonexistent" })],
  ["without name", unit({ name: undefined })],
  ["with a name of no type", unit({ name: "app" })],
  ["with a path for a name", unit({ name: "../app.service" })],
  ["without content", unit({ unit: undefined })],
  ["with a line end", unit({ unit: { Unit: { Description: "a\nb" } } })],
  ["of the FastCGI variant", unit(fastCgi({ command: ["/srv/web.sh", "start-fastcgi"] }))],
  [
    "of the FastCGI variant in a drop-in",
    unit({
      name: "web.service.d/x.conf",
      ...fastCgi(["", { command: ["/srv/web.sh", "start-fastcgi"] }]),
    }),
  ],
  ["of a daemon without user", daemons({ webdav: { ...DAEMON, user: undefined } })],
  ["of a daemon of another type", daemons({ webdav: { ...DAEMON, type: "simple" } })],
  ["of a daemon `webDav`", daemons({ webDav: DAEMON })],
]);

const file = (props: Wrong) => (s: Site) =>
  new HostFile(s.stack, "f", { host: s.host, path: "/f", content: "", ...props });
const network = (props: Wrong) => (s: Site) =>
  new StaticNetwork(s.stack, "n", {
    host: new Host(s.stack, "lan", { address: "192.168.1.5", netmask: "255.255.255.0" }),
    interface: { name: "eth0" },
    ...props,
  });
const firewall = (props: Wrong) => (s: Site) =>
  new Firewall(s.stack, "w", { host: s.host, ports: [22, 80], ...props });
/** A firewall of a host that gets files over ssh. */
const delivered =
  (options: Wrong, more: Wrong = {}) =>
  (s: Site) => {
    const delivery = Delivery.ssh({ hostKey: KEY, ...options });
    const host = new Host(s.stack, "remote", { address: "192.0.2.30", delivery, ...more });
    return new Firewall(s.stack, "w", {
      host,
      ports: [22, 80].filter((port) => port !== 22 || host.sshPort === 22),
    });
  };
const settings = (props: Wrong) => (s: Site) =>
  new ApplicationSettings(s.stack, "a", { host: s.host, scheme: "https", ...props });
const serves = (directory: string) => (s: Site) =>
  s.server.addRoute("r", { path: "/r", action: Action.staticFiles(directory) });
const served = (directory: string) => (s: Site) => {
  serves(directory)(s);
  new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
};
const spelled = (more: Wrong) => () => TlsPolicy.custom({ ...SPELLED, ...more });
const containerised = (s: Site): ContainerFrontEnd => {
  const [web, webdav, fileServer] = ["a", "b", "c"].map((name) => ({ url: `http://${name}:8000` }));
  return new ContainerFrontEnd(s.stack, "sync", {
    mode: Mode.plain(),
    serverNames: ["files.example"],
    upstreams: { web: web!, webdav: webdav!, fileServer: fileServer! },
    application: Application.fileSync({ mediaDirectory: "/srv/media" }),
  });
};

const proxyWith = (props: Wrong) => front({ proxy: props });
const fieldsSet = (set: Wrong) => route({ path: "/a", responseHeaders: { set } });

const harmful = of("harm", [
  ["an address for a range", proxyWith({ trustedProxies: ["10.0.0.5/8"] })],
  ["half of all addresses that are trusted", proxyWith({ trustedProxies: ["0.0.0.0/1", "128.0.0.0/1"] })],
  ["a directory for a log", proxyWith({ logs: { access: { path: "/var/log/portico/" } } })],
  [
    "one format too many for a log",
    route({ path: "/a", errorLog: { path: "/l" }, accessLog: { path: "/l" } }),
  ],
  ["an age without seconds", fieldsSet({ "Cache-Control": "max-age=1h" })],
  [
    "an age that is misspelled",
    route({ path: "/a", action: Action.staticFiles("/srv", { cacheControl: "max_age=60" }) }),
  ],
  [
    "credentials from every origin",
    fieldsSet({ "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true" }),
  ],
  ["a cookie for https only over http", routed({ servers: TWO, sticky: { cookie: "__Host-app" } })],
  [
    "a netmask from a function",
    (s) =>
      network({
        host: new Host(s.stack, "f", { address: "10.0.0.5", netmask: Fn.cidrnetmask("10.0.0.0/8") }),
      })(s),
  ],
  ["a cipher that does not exist", spelled({ ciphers: "NOPE" })],
  [
    "a cipher that does not exist among others",
    spelled({ ciphers: "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA255:!NOPE" }),
  ],
  ["a suite of TLS 1.3 that does not exist", spelled({ ciphers: "TLS_AES_128_GCM_SHA257" })],
  ["a group that does not exist", spelled({ curves: ["X25519MLKEM768", "X25519", "secp384r2"] })],
  ["the https listener of a front end without one", (s) => s.frontEnd({}).httpsListener],
  [
    "a container's keys as files",
    (s) =>
      containerised(s).proxy.virtualServers[0]!.addRoute("f", {
        path: "/f",
        action: Action.staticFiles("/etc/portico"),
      }),
  ],
  [
    "the secret of a field as a file",
    (s) => {
      const setHeadersFromCredential = { "X-A": "/srv/secrets/a" };
      s.server.addRoute("a", { path: "/a", action: Action.proxy(s.app, { setHeadersFromCredential }) });
      serves("/srv/secrets")(s);
    },
  ],
  [
    "the application's name on another server in containers",
    (s) => {
      const { proxy, listeners } = containerised(s);
      proxy.addVirtualServer("v", { serverNames: ["files.example"], listeners: [listeners.http!] });
    },
  ],
  ["the whole host as files", serves("/")],
  ["the directory of the keys as files", serves("/etc/portico")],
  ["root's home as files", serves("/root/www")],
  [
    "the files around a key of one's own",
    (s) => {
      const material = TlsMaterial.fromFiles({ certificate: "/srv/tls/c.pem", key: "/srv/tls/k.pem" });
      s.proxy.addListener("l", { port: 443, tls: { material } });
      serves("/srv/tls")(s);
    },
  ],
  ["media with the whole application in it", (s) => s.frontEnd({ mediaDirectory: "/srv" })],
  [
    "media with the settings in it",
    (s) =>
      s.frontEnd({
        mediaDirectory: "/srv/conf",
        settings: {
          files: {
            networkDaemon: "/srv/n.conf",
            webApplication: "/srv/conf/settings.py",
            fileServer: "/srv/f.conf",
          },
        },
      }),
  ],
  ["/var/tmp as files", served("/var/tmp")],
  [
    "an error page in a home",
    (s) => {
      const errorPages = [{ statuses: [502], file: "/home/sync/down.html" }] as const;
      s.proxy.addVirtualServer("v", { serverNames: ["v.example"], listeners: [s.http], errorPages });
      new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
    },
  ],
  [
    "an error page that the proxy would not read again",
    (s) => {
      const path = "/etc/portico/pages/down.html";
      new HostFile(s.stack, "page", { host: s.host, path, content: "<p>{{status}}" });
      const errorPages = [{ statuses: [502], file: path }] as const;
      s.proxy.addVirtualServer("v", { serverNames: ["v.example"], listeners: [s.http], errorPages });
      const service = new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
      new Activation(s.stack, "activation", { service });
    },
  ],
  [
    "a log where the unit may not write",
    (s) => {
      const accessLog = { path: "/srv/log/a.log" };
      s.server.addRoute("r", { path: "/r", action: Action.respond(204), accessLog });
      new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
    },
  ],
  [
    "a log in a directory that the unit's user can make a link",
    (s) => {
      const accessLog = { path: "/var/log/portico/site/a.log" };
      s.server.addRoute("r", { path: "/r", action: Action.respond(204), accessLog });
      new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
    },
  ],
  [
    "a virtual server with the application's name on https",
    (s) => {
      const files = s.frontEnd({ mode: Mode.tls() });
      files.proxy.addVirtualServer("mine", {
        serverNames: ["mine.example", "192.0.2.20"],
        listeners: [files.httpsListener],
      });
    },
  ],
  [
    "another action for a route that was removed",
    (s) => {
      const route = s.server.addRoute("r", { path: "/r", action: Action.respond(204) });
      route.remove();
      route.replaceAction(Action.respond(410));
    },
  ],
]);
const others = of("", [
  ["a file of mode 644", file({ mode: "644" })],
  ["a file of mode 0o644", file({ mode: 0o644 })],
  ["a file at a relative path", file({ path: "f" })],
  ["a file that is a directory", file({ path: "/f/" })],
  ["a file at a path that climbs", file({ path: "/etc/../x" })],
  ["a file at a path of two lines", file({ path: "/etc/x\n" })],
  ["a file without content", file({ content: undefined })],
  ["a file with two contents", file({ source: __filename })],
  ["a file from nowhere", file({ content: undefined, source: "/nonexistent" })],
  ["a network without interface", network({ interface: undefined })],
  ["a network with an interface's name", network({ interface: "eth0" })],
  ["a firewall without ports", firewall({ ports: undefined })],
  ["a firewall with port 0", firewall({ ports: [0] })],
  ["a firewall with another protocol", firewall({ allowed: [{ port: 53, protocol: "sctp" }] })],
  ["settings without scheme", settings({ scheme: undefined })],
  ["settings with another scheme", settings({ scheme: "ftp" })],
  ["settings with a command that does not start", settings({ startCommand: ["/w"] })],
  ["settings with a command that stops", settings({ startCommand: ["/srv/web.sh", "stop"] })],
  ["settings with a quote in a prefix", settings({ pathPrefix: "a'b" })],
  ["settings with a name of two lines", settings({ serverNames: ["a\nb"] })],
  ["an activation of nothing", (s) => new Activation(s.stack, "x", wrong({}))],
  [
    "an activation of daemons with values of other kinds",
    (s) => new Activation(s.stack, "x", wrong({ services: { daemons: [WRONG_DAEMON], firewall: 1 } })),
  ],
  ["a Node of an unknown platform", () => NodeRuntime.pinned(wrong({ platform: "darwin-x64" }))],
  ["a Node from nowhere", () => NodeRuntime.fromFile("/nonexistent")],
  [
    "an upstream below nothing",
    (s) => new Upstream(new Construct(s.stack, "c"), "u", wrong({ uri: "http://x" })),
  ],
]);

const list = (s: Site): string[] =>
  new TerraformVariable(s.stack, "list", { type: "list(string)" }).listValue;
const variable = (s: Site): Wrong => new TerraformVariable(s.stack, "variable", { type: "number" });
/** On a host of its own, which `StaticNetwork` needs. */
const lan = (more: Wrong, props: Wrong) => (s: Site) =>
  network({
    host: new Host(s.stack, "l", { address: "192.168.1.6", netmask: "255.255.255.0", ...more }),
    ...props,
  })(s);
const references = of("a reference", [
  ["a variable in place of an address", (s) => host({ address: variable(s) })(s)],
  ["a variable in place of a port", (s) => listener({ port: variable(s) })(s)],
  ["a variable in place of a limit", (s) => proxy({ limits: { connectionsMax: variable(s) } })(s)],
  ["a variable in place of seconds", (s) => service({ stopTimeoutSeconds: variable(s) })(s)],
  ["a list in place of nameservers", (s) => host({ address: "192.0.2.1", nameservers: list(s) })(s)],
  ["a list in place of names", (s) => s.frontEnd({ additionalServerNames: list(s) })],
  ["a list in place of a command", (s) => settings({ startCommand: list(s) })(s)],
  ["a list in place of ranges", (s) => firewall({ allowed: [{ port: 9090, from: list(s) }] })(s)],
  ["a list in place of names of a certificate", (s) => TlsMaterial.selfSigned({ dnsNames: list(s) })],
  ["a number of days", (s) => TlsMaterial.selfSigned({ validityDays: variable(s).numberValue })],
  ["a word of paths", (s) => s.frontEnd({ pathPrefix: s.unknown })],
]);
const contradictions = of("what does not go together", [
  [
    "two proxies on one port of a host",
    (s) => {
      const other = new ReverseProxy(s.stack, "p", { host: s.host, paths: { config: "/etc/p.json" } });
      const l = other.addListener("l", { port: 80, address: "192.0.2.10" });
      other.addVirtualServer("v", { serverNames: ["_"], listeners: [l], default: true });
    },
  ],
  ["a further name that is the host's", front({ additionalServerNames: ["192.0.2.20"] })],
  ["a further name twice, with another between", front({ additionalServerNames: ["a", "b", "a"] })],
  ["an IPv6 gateway without an IPv6 address", lan({}, { ipv6Gateway: "fe80::1" })],
  ["an IPv6 prefix without an IPv6 address", lan({}, { ipv6PrefixLength: 64 })],
  ["a resolver file without nameservers", lan({}, { resolverFile: true })],
  [
    "an interface by name and address",
    network({ interface: { name: "eth0", macAddress: "52:54:00:12:34:56" } }),
  ],
]);
const acme = (options: Wrong) => () =>
  TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true, ...options });
const shapes = of("", [
  ["no interface at all", network({ interface: {} })],
  ["an interface by `nmae`", network({ interface: { nmae: "eth0" } })],
  ["a MAC address with dashes", network({ interface: { macAddress: "52-54-00-12-34-56" } })],
  ["an IPv6 prefix of no bits", lan({ ipv6Address: "2001:db8::1" }, { ipv6PrefixLength: 0 })],
  ["a network file of another type", network({ name: "eth0" })],
  ["a network file elsewhere", network({ name: "../x.network" })],
  ["a listener without id", (s) => s.proxy.addListener(wrong({ port: 81 }), wrong(undefined))],
  ["a route with an empty id", (s) => s.server.addRoute("", { path: "/r", action: Action.respond(200) })],
  ["an upstream that is a URL object", url(new URL("http://a"))],
  ["an install directory with a slash at its end", front({ installDirectory: "/srv/sync/" })],
  ["a directory of settings with a slash at its end", settings({ directory: "/srv/" })],
  ["a relative directory of settings", settings({ directory: "out" })],
  ["settings for no name", settings({ serverNames: [] })],
  ["settings for a URL", settings({ serverNames: ["https://a"] })],
  ["settings for a name with a port", settings({ serverNames: ["a:80"] })],
  ["settings with public port 0", settings({ publicPort: 0 })],
  ["settings with a path for a prefix", settings({ pathPrefix: "/sync" })],
  ["a file server on port 65536", settings({ fileServer: { port: 65_536 } })],
  ["a start command with a number", settings({ startCommand: ["/w", "start", 5] })],
  ["a firewall for a name", firewall({ allowed: [{ port: 9090, from: ["office"] }] })],
  ["a firewall without addresses", firewall({ allowed: [{ port: 9090, from: [] }] })],
  ["a firewall that closes the delivery's port", delivered({ port: 2222 })],
  [
    "a firewall where a delivery needs the SSH server that is said not to be",
    delivered({}, { sshPort: false }),
  ],
  ["a firewall with a relative program", firewall({ nftPath: "nft" })],
  ["a firewall at a relative path", firewall({ path: "fw.nft" })],
  ["a file with an object for content", file({ content: { a: 1 } })],
  ["a file of the role `confg`", file({ role: "confg" })],
  ["a file from a directory", file({ content: undefined, source: __dirname })],
  ["a unit that is a string", unit({ unit: "[Service]" })],
  ["a unit with the section `service`", unit({ unit: { service: {} } })],
  ["a unit with a string for a section", unit({ unit: { Service: "ExecStart=/a" } })],
  ["a unit with null for a command", unit({ unit: { Service: { ExecStart: null } } })],
  ["a unit with a command in a string", unit({ unit: { Service: { ExecStart: { command: "/a b" } } } })],
  ["a unit with a number in a command", unit({ unit: { Service: { ExecStart: { command: ["/a", 5] } } } })],
  ["a daemon with a number in its command", daemons({ webdav: { ...DAEMON, command: ["/d", 8080] } })],
  [
    "a daemon with an object in its environment",
    daemons({ webdav: { ...DAEMON, environment: { A: { b: 1 } } } }),
  ],
  ["a daemon as user:group", daemons({ webdav: { ...DAEMON, user: "a:b" } })],
  [
    "a daemon that takes milliseconds to start",
    daemons({ webdav: { ...DAEMON, startTimeoutSeconds: 90_000 } }),
  ],
  ["a database that is not a unit", daemons({ databaseUnit: "my db", webdav: DAEMON })],
  ["a Node that is a directory", service({ nodePath: "/usr/bin/" })],
  ["a Node from a directory", () => NodeRuntime.fromFile(__dirname)],
  ["a Node from a variable that is not set", () => NodeRuntime.fromFile(wrong(undefined))],
  ["a certificate that is a directory", () => TlsMaterial.fromFiles({ certificate: "/etc/tls/", key: "/k" })],
  ["a probe in milliseconds", front({ activation: { probe: { timeoutSeconds: 60_000 } } })],
  [
    "a drop-in to start when something is wrong",
    front({ activation: { doctor: { onFailure: "mail.service.d/a.conf" } } }),
  ],
  ["a connection that takes milliseconds", ssh({ hostKey: KEY, connectTimeoutSeconds: 300_000 })],
  ["a redirect with a string for a status", act(() => Action.redirect(wrong({ status: "301" })))],
  [
    "a virtual server without id",
    (s) => s.proxy.addVirtualServer(wrong({ serverNames: ["a.example"] }), wrong(undefined)),
  ],
  ["an upstream without id", (s) => s.proxy.addUpstream(wrong({ url: "http://a" }), wrong(undefined))],
  [
    "an action for another one, from a variable that is not set",
    (s) => s.server.routes[0]!.replaceAction(wrong(undefined)),
  ],
  [
    "a certificate by ACME with an account's key alone",
    acme({ externalAccountBinding: { keyFile: "/etc/portico/eab" } }),
  ],
]);

const elsewhere = of("what other proxies do", [
  ["HTTP/2 to an upstream", upstream({ url: "h2c://app:8443" })],
  ["a Unix socket, as nginx writes it", upstream({ url: "http://unix:/run/app.sock" })],
  ["servers, as others write them", upstream({ servers: ["a", "b"] })],
  ["servers beside a URL", upstream({ url: "http://10.0.0.7:8000", servers: [...TWO, ...TWO] })],
  [
    "sessions that two cookies bind",
    upstream({ url: undefined, servers: TWO, sticky: { cookie: "a", applicationCookie: "b" } }),
  ],
  [
    "checks that connect and ask",
    upstream({ url: undefined, servers: TWO, health: { tcp: true, path: "/ping" } }),
  ],
  [
    "checks at a port of a Unix socket",
    upstream({ url: undefined, servers: [...TWO, { url: "unix:/run/a.sock" }], health: { port: 80 } }),
  ],
  ["a number of failures", upstream({ maxFails: 3 })],
  ["a rewrite by a pattern", act((s) => Action.proxy(s.app, wrong({ replacePathRegex: "/x" })))],
  ["try_files", act(() => Action.staticFiles("/srv/page", wrong({ try_files: "/index.html" })))],
  ["basic authentication", route({ path: "/a", basicAuth: "users" })],
  ["address lists", route({ path: "/a", allow: ["10.0.0.0/8"] })],
  ["a pattern as a path", route({ path: "~ [.]php$" })],
  ["compression", server({ gzip: true })],
  ["error pages", server({ error_page: "/e.html" })],
  ["wildcards at the end", server({ serverNames: ["www.example.*"] })],
  ["HTTP/3", listener({ port: 8443, http3: true })],
]);

const made = (type: Wrong) => () => new type();
const onFront = (method: string) => (s: Site) => (s.frontEnd({}) as Wrong)[method]("x", {});
const web = (props: Wrong) => (s: Site) =>
  new FrontEnd(s.stack, "web", {
    host: { address: "192.0.2.20" },
    mode: Mode.plain(),
    application: Application.server("http://127.0.0.1:3000"),
    ...props,
  });
const siteBeside =
  (props: Wrong, first: Wrong = {}) =>
  (s: Site) => {
    const front = s.frontEnd({});
    const wiki = Application.server("http://127.0.0.1:3000");
    front.addSite("wiki", { serverNames: ["wiki.example"], application: wiki, ...first });
    return front.addSite("more", {
      serverNames: ["more.example"],
      application: Application.immich(),
      ...props,
    });
  };
const vaultwarden = (directory: string) => Application.vaultwarden({ directory });
const siteMistakes = of("a site", [
  ["without names", siteBeside({ serverNames: [] })],
  ["with a name of another site", siteBeside({ serverNames: ["a.example", "wiki.example"] })],
  ["with a name twice", siteBeside({ serverNames: ["a.example", "a.example"] })],
  ["with a name of the host", siteBeside({ serverNames: ["192.0.2.20"] })],
  ["without an application", siteBeside({ application: undefined })],
  ["with an upstream that the application does not have", siteBeside({ upstreams: { files: {} } })],
  ["with an address by default that another site has", siteBeside({ application: vaultwarden("/srv/v") })],
  [
    "with the settings of another site",
    siteBeside(
      { application: vaultwarden("/srv/v"), upstreams: { web: { url: "http://127.0.0.1:2" } } },
      { application: vaultwarden("/srv/v"), upstreams: { web: { url: "http://127.0.0.1:1" } } },
    ),
  ],
  [
    "in containers at an address of its own container",
    (s) =>
      new ContainerFrontEnd(s.stack, "sites", { mode: Mode.plain() }).addSite("photos", {
        serverNames: ["photos.example"],
        application: Application.immich(),
      }),
  ],
  [
    "asked of a front end without one",
    (s) => new ContainerFrontEnd(s.stack, "sites", { mode: Mode.plain() }).site,
  ],
]);
const bare = of("in JavaScript", [
  ["an application made with `new`", made(Application)],
  ["an action made with `new`", made(Action)],
  ["a mode made with `new`", made(Mode)],
  ["a delivery made with `new`", made(Delivery)],
  ["a material made with `new`", made(TlsMaterial)],
  ["a policy made with `new`", made(TlsPolicy)],
  ["a runtime made with `new`", made(NodeRuntime)],
  ["`addRoute` of a front end", onFront("addRoute")],
  ["`addUpstream` of a front end", onFront("addUpstream")],
  ["`addListener` of a front end", onFront("addListener")],
  ["`addVirtualServer` of a web front end", (s) => (web({})(s) as Wrong).addVirtualServer("x", {})],
  ["`addRoute` of a proxy", (s) => (s.proxy as Wrong).addRoute("x", {})],
  ["`addUpstream` of a virtual server", (s) => (s.server as Wrong).addUpstream("x", {})],
  ["a web front end's route with a path", web({ route: { path: "/a" } })],
  ["a web front end's route with an action", web({ route: { action: Action.respond(200) } })],
  ["options of Immich", () => Application.immich({ directory: "/srv/immich" } as Wrong)],
  ["servers that Terraform knows as a list", (s) => upstream({ servers: Fn.split(",", s.unknown) })(s)],
]);

class StackOfAnother extends TerraformStack {}
/** As the library of a class is noted by jsii. */
const RTTI = Symbol.for("jsii.rtti");
Object.defineProperty(StackOfAnother, RTTI, { value: { fqn: "other.TerraformStack" } });
const withoutCompiler = of("without a compiler", [
  ["a host in no scope", () => new Host(wrong(undefined), "h", { address: "192.0.2.9" })],
  ["a host in an app", (s) => new Host(s.stack.node.root, "h", { address: "192.0.2.9" })],
  ["a host with props for an id", (s) => new Host(s.stack, wrong({}), wrong(undefined))],
  ["`Mode.tls` of a material", () => Mode.tls(wrong(TlsMaterial.selfSigned()))],
  ["a proxy of a host", (s) => new ReverseProxy(s.stack, "p", wrong(s.host))],
  ["a host of a proxy", (s) => new Host(s.stack, "h", wrong(s.proxy))],
  [
    "a stack of another library",
    (s) => new Host(new StackOfAnother(s.stack, "fork"), "h", { address: "192.0.2.9" }),
  ],
  [
    "all listeners of a front end in the place of a list",
    (s) =>
      s.proxy.addVirtualServer("v", {
        serverNames: ["a.example"],
        listeners: wrong(s.frontEnd({}).listeners),
      }),
  ],
  ["names that Terraform knows as a list", (s) => server({ serverNames: Fn.split(",", s.unknown) })(s)],
  ["an override with a construct", (s) => s.proxy.addConfigOverride("upstreams[0].queueTimeoutMs", s.app)],
  ["an override with a function", (s) => s.proxy.addConfigOverride("workers", () => 1)],
  [
    "a field that is set to a construct",
    act((s) => Action.proxy(s.app, { setHeaders: { "X-A": wrong(s.host) } })),
  ],
  ["an override with a construct inside", (s) => s.proxy.addConfigOverride("upstreams[0]", { url: s.app })],
  ["`resolve` of nothing", () => resolve(wrong(undefined), "http://a/")],
  ["`resolve` of a path", () => resolve(wrong("stack"), "http://a/")],
  ["`resolve` without a request", (s) => resolve(s.stack, wrong(undefined))],
  ["`resolve` with a number", (s) => resolve(s.stack, wrong(5))],
  ["`resolve` of a listener", (s) => resolve(s.http, "http://a/")],
  ["`resolve` with `client`", (s) => resolve(s.stack, wrong({ url: "http://a/", client: "192.0.2.1" }))],
  ["`resolve` with a client's name", (s) => resolve(s.stack, { url: "http://a/", clientAddress: "office" })],
  ["`resolve` of a path of the URL", (s) => resolve(s.stack, "/app")],
  ["`resolve` of a port that nobody listens on", (s) => resolve(s.stack, "http://a:81/app")],
  ["`resolve` of a scheme that nobody listens on", (s) => resolve(s.stack, "https://a/app")],
  [
    "`resolve` through a listener that is not there",
    (s) => resolve(s.stack, { url: "http://a/", listener: "l" }),
  ],
  ["`resolve` with a URL object", (s) => resolve(s.stack, wrong(new URL("http://a/")))],
  ["`renderProxyConfig` of nothing", () => renderProxyConfig(wrong(undefined))],
  ["`renderProxyConfig` of data", () => renderProxyConfig(wrong({}))],
  ["`synthesizedFiles` of nothing", () => synthesizedFiles(wrong(undefined))],
  ["`synthesizedFile` of nothing", () => synthesizedFile(wrong(undefined), "/a")],
  ["`synthesizedFile` without a path", (s) => synthesizedFile(s.stack, wrong(undefined))],
]);

/** Words of the schema library and of V8, and values that nobody wrote. */
export const LEAKS =
  /\binvalid[_ ]|[Ee]xpected |of type |\brecord\b|too_(?:small|big)|\[object |TypeError|is not a function|undefined \(|Cannot read/;

export const MISTAKES: readonly Mistake[] = [
  ...hosts,
  ...deliveries,
  ...listeners,
  ...upstreams,
  ...servers,
  ...routes,
  ...actions,
  ...proxies,
  ...tlsParts,
  ...fronts,
  ...responses,
  ...modes,
  ...units,
  ...harmful,
  ...others,
  ...references,
  ...contradictions,
  ...shapes,
  ...elsewhere,
  ...withoutCompiler,
  ...siteMistakes,
  ...bare,
];

const key = (options: Wrong) => ssh({ hostKey: KEY, ...options });
/** What an example of `docs/errors.md` says too, and another branch finds, or at another place. */
export const EXAMPLES_OTHERWISE: readonly Mistake[] = [
  ...["~/host", "${path.module}/x", "a%{b}", "a\nb", "a\u007f"].map((root): Mistake => [
    `a delivery into ${JSON.stringify(root)}`,
    local({ root }),
  ]),
  ["a bastion that is not verified", key({ bastion: { address: "gate" } })],
  [
    "a bastion whose key is gone at destroy",
    (s) => key({ bastion: { address: "gate", hostKey: KEY, privateKey: s.unknown } })(),
  ],
  ["an upstream that is the proxy by the host's address", url("http://192.0.2.10")],
  [
    "two error pages for one status, one with a placeholder of its own",
    server({
      serverNames: ["a"],
      errorPages: [
        { statuses: [502], html: "{{code}}" },
        { statuses: [502], html: "<p>{{status}}" },
      ],
    }),
  ],
  [
    "a virtual server with HSTS and a self-signed certificate",
    (s) => {
      const https = s.proxy.addListener("https", { port: 443, tls: { material: TlsMaterial.selfSigned() } });
      const more = { listeners: [https], default: true, hsts: {} };
      return s.proxy.addVirtualServer("v", { serverNames: ["a"], ...more });
    },
  ],
  [
    "a mode with HSTS and a self-signed certificate of its own",
    mode({ material: TlsMaterial.selfSigned(), hsts: { force: false } }),
  ],
  ["a mode with HSTS to preload, and no subdomains", mode({ hsts: { preload: true, force: true } })],
  ["a firewall that opens the database", firewall({ ports: [3306] })],
  ["a port that is a big integer", listener({ port: 80n })],
];
