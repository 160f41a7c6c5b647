import { Fn, TerraformVariable, TerraformStack } from "cdktf";
import { Construct } from "constructs";
import {
  Action,
  Activation,
  ApplicationDaemons,
  ApplicationSettings,
  Delivery,
  FileSyncFrontEnd,
  FileSyncProxy,
  Firewall,
  Host,
  HostFile,
  Listener,
  Mode,
  NodeRuntime,
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
import { newStack } from "../../proof/kit/stacks.js";

/**
 * Mistakes that people make in stacks, each with what it is answered with: the code, and where. As in JavaScript, no
 * compiler is in the way.
 */

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
  frontEnd(props: Wrong): FileSyncFrontEnd;
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
  const frontEnd = (props: Wrong): FileSyncFrontEnd =>
    new FileSyncFrontEnd(stack, "files", {
      host: { address: "192.0.2.20" },
      mode: Mode.plain(),
      installDirectory: "/srv/sync",
      ...props,
      service: { runtimeBundle: __filename, ...props.service },
    });
  return { stack, host, proxy, http, server, app, unknown, frontEnd };
}

const KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const DAEMON = { command: ["/srv/d"], type: "exec", user: "sync" };
const FILES = { certificate: "/c.pem", key: "/k.pem", dhparam: false } as const;

/** What is done, the code, and where: the construct's path and the prop, or the static method and its option. */
export type Mistake = readonly [what: string, make: (site: Site) => unknown, code: string, path: string];

const of = (prefix: string, rows: readonly Mistake[]): readonly Mistake[] =>
  rows.map(([what, make, code, path]) => [`${prefix}: ${what}`, make, code, path]);

const host = (props: Wrong) => (s: Site) => new Host(s.stack, "h", props);
const hosts = of("a host", [
  ["without props", host(undefined), "config.missing-field", "stack/h"],
  ["that is a string", host("192.0.2.1"), "config.wrong-type", "stack/h"],
  ["without address", host({}), "host.ipv6-only", "stack/h.address"],
  ["with a name for an address", host({ address: "files.example" }), "host.bad-ipv4", "stack/h.address"],
  ["with an IPv6 address alone", host({ address: "2001:db8::1" }), "host.ipv6-only", "stack/h.address"],
  ["with a prefix length", host({ address: "192.0.2.1/24" }), "host.bad-ipv4", "stack/h.address"],
  ["with a multicast address", host({ address: "224.0.0.1" }), "host.bad-ipv4", "stack/h.address"],
  ["with a link-local address", host({ address: "169.254.1.1" }), "host.bad-ipv4", "stack/h.address"],
  ["with `adress`", host({ adress: "192.0.2.1" }), "config.unknown-field", "stack/h.adress"],
  ["with `ip`", host({ address: "192.0.2.1", ip: "192.0.2.1" }), "config.unknown-field", "stack/h.ip"],
  [
    "with a number for a netmask",
    host({ address: "192.0.2.1", netmask: 24 }),
    "config.wrong-type",
    "stack/h.netmask",
  ],
  [
    "with a bad netmask",
    host({ address: "192.0.2.1", netmask: "255.0.255.0" }),
    "host.bad-network",
    "stack/h.netmask",
  ],
  [
    "with the address of its subnet",
    host({ address: "192.0.2.0", netmask: "255.255.255.0" }),
    "host.bad-network",
    "stack/h.address",
  ],
  [
    "with a gateway elsewhere",
    host({ address: "192.0.2.1", netmask: "255.255.255.0", gateway: "10.0.0.1" }),
    "host.bad-network",
    "stack/h.gateway",
  ],
  [
    "with a gateway's name",
    host({ address: "192.0.2.1", gateway: "router" }),
    "host.bad-network",
    "stack/h.gateway",
  ],
  [
    "with one nameserver",
    host({ address: "192.0.2.1", nameservers: "1.1.1.1" }),
    "config.wrong-type",
    "stack/h.nameservers",
  ],
  [
    "with a nameserver's name",
    host({ address: "192.0.2.1", nameservers: ["dns"] }),
    "host.bad-nameserver",
    "stack/h.nameservers[0]",
  ],
  [
    "with an IPv6 zone",
    host({ address: "192.0.2.1", ipv6Address: "fe80::1%eth0" }),
    "host.bad-ipv6",
    "stack/h.ipv6Address",
  ],
  [
    "with a link-local IPv6 address",
    host({ address: "192.0.2.1", ipv6Address: "fe80::1" }),
    "host.bad-ipv6",
    "stack/h.ipv6Address",
  ],
  [
    "with a temporary IPv6 address",
    host({ address: "192.0.2.1", ipv6Address: "2001:db8::1", ipv6Flags: ["temporary"] }),
    "host.bad-ipv6",
    "stack/h.ipv6Flags",
  ],
  [
    "with a URL for a name",
    host({ address: "192.0.2.1", publicName: "https://x.example" }),
    "host.bad-name",
    "stack/h.publicName",
  ],
  [
    "with a port in its name",
    host({ address: "192.0.2.1", publicName: "x.example:443" }),
    "host.bad-name",
    "stack/h.publicName",
  ],
  [
    "with capitals in its name",
    host({ address: "192.0.2.1", publicName: "X.example" }),
    "host.bad-name",
    "stack/h.publicName",
  ],
  [
    "inside the router's range",
    host({ address: "192.168.1.50", dhcpRange: { from: "192.168.1.20", to: "192.168.1.99" } }),
    "host.inside-dhcp-range",
    "stack/h.address",
  ],
  [
    "with half a DHCP range",
    host({ address: "192.168.1.5", dhcpRange: { from: "192.168.1.20" } }),
    "config.missing-field",
    "stack/h.dhcpRange.to",
  ],
  [
    "with SSH on port 0",
    host({ address: "192.0.2.1", sshPort: 0 }),
    "config.out-of-range",
    "stack/h.sshPort",
  ],
  [
    "with SSH on a string",
    host({ address: "192.0.2.1", sshPort: "22" }),
    "config.wrong-type",
    "stack/h.sshPort",
  ],
  ["with SSH `true`", host({ address: "192.0.2.1", sshPort: true }), "config.wrong-type", "stack/h.sshPort"],
  [
    "with a string for a delivery",
    host({ address: "192.0.2.1", delivery: "ssh" }),
    "config.wrong-type",
    "stack/h.delivery",
  ],
  [
    "with options for a delivery",
    host({ address: "192.0.2.1", delivery: { root: "/" } }),
    "config.wrong-type",
    "stack/h.delivery",
  ],
]);

const local = (options: Wrong) => () => Delivery.local(options);
const ssh = (options: Wrong) => () => Delivery.ssh(options);
const deliveries = of("a delivery", [
  ["into `dir`", local({ dir: "out" }), "config.unknown-field", "Delivery.local.dir"],
  ["into nothing", local({ root: "" }), "host.bad-root", "Delivery.local.root"],
  ["into a home", local({ root: "~/host" }), "host.bad-root", "Delivery.local.root"],
  ["into a template", local({ root: "${path.module}/x" }), "host.bad-root", "Delivery.local.root"],
  ["into `true`", local({ root: true }), "config.wrong-type", "Delivery.local.root"],
  ["without options over ssh", ssh({}), "delivery.unverified-host", "Delivery.ssh.hostKey"],
  [
    "with a variable that is not set",
    ssh({ hostKey: undefined }),
    "delivery.unverified-host",
    "Delivery.ssh.hostKey",
  ],
  ["with an empty host key", ssh({ hostKey: "" }), "delivery.bad-connection", "Delivery.ssh.hostKey"],
  [
    "with a line of known_hosts",
    ssh({ hostKey: `192.0.2.1 ${KEY}` }),
    "delivery.bad-connection",
    "Delivery.ssh.hostKey",
  ],
  ["with a fingerprint", ssh({ hostKey: "SHA256:abc" }), "delivery.bad-connection", "Delivery.ssh.hostKey"],
  ["by `keyFile`", ssh({ hostKey: KEY, keyFile: "k" }), "config.unknown-field", "Delivery.ssh.keyFile"],
  [
    "by `privateKeyPath`",
    ssh({ hostKey: KEY, privateKeyPath: "k" }),
    "config.unknown-field",
    "Delivery.ssh.privateKeyPath",
  ],
  [
    "with a literal key",
    ssh({ hostKey: KEY, privateKey: "-----BEGIN" }),
    "delivery.clear-text-key",
    "Delivery.ssh.privateKey",
  ],
  [
    "as a user without sudo",
    ssh({ hostKey: KEY, user: "admin" }),
    "delivery.bad-connection",
    "Delivery.ssh.user",
  ],
  ["on port 70000", ssh({ hostKey: KEY, port: 70_000 }), "config.out-of-range", "Delivery.ssh.port"],
  ["on a string for a port", ssh({ hostKey: KEY, port: "22" }), "config.wrong-type", "Delivery.ssh.port"],
  [
    "to a user at a host",
    ssh({ hostKey: KEY, address: "root@host" }),
    "delivery.bad-connection",
    "Delivery.ssh.address",
  ],
  [
    "with a timeout of 0",
    ssh({ hostKey: KEY, connectTimeoutSeconds: 0 }),
    "config.out-of-range",
    "Delivery.ssh.connectTimeoutSeconds",
  ],
  [
    "that deletes on destroy",
    ssh({ hostKey: KEY, whenDestroyed: "delete" }),
    "config.wrong-type",
    "Delivery.ssh.whenDestroyed",
  ],
  ["through a string", ssh({ hostKey: KEY, bastion: "gate" }), "config.wrong-type", "Delivery.ssh.bastion"],
  [
    "through nobody",
    ssh({ hostKey: KEY, bastion: { hostKey: KEY } }),
    "config.missing-field",
    "Delivery.ssh.bastion.address",
  ],
  [
    "through a bastion that is not verified",
    ssh({ hostKey: KEY, bastion: { address: "gate" } }),
    "delivery.unverified-host",
    "Delivery.ssh.bastion.hostKey",
  ],
]);

const listener = (props: Wrong) => (s: Site) => s.proxy.addListener("l", props);
const tls = (more: Wrong) =>
  listener({ port: 443, tls: { material: TlsMaterial.fromFiles(FILES), ...more } });
const listeners = of("a listener", [
  ["without props", listener(undefined), "config.missing-field", "stack/proxy/Listeners/l"],
  ["without port", listener({}), "config.missing-field", "stack/proxy/Listeners/l.port"],
  ["on a string", listener({ port: "443" }), "config.wrong-type", "stack/proxy/Listeners/l.port"],
  ["on port 0", listener({ port: 0 }), "config.out-of-range", "stack/proxy/Listeners/l.port"],
  ["on port 65536", listener({ port: 65_536 }), "config.out-of-range", "stack/proxy/Listeners/l.port"],
  ["on half a port", listener({ port: 80.5 }), "config.wrong-type", "stack/proxy/Listeners/l.port"],
  ["with `host`", listener({ port: 81, host: "::" }), "config.unknown-field", "stack/proxy/Listeners/l.host"],
  [
    "with a name for an address",
    listener({ port: 81, address: "localhost" }),
    "config.bad-address",
    "stack/proxy/Listeners/l.address",
  ],
  [
    "with brackets",
    listener({ port: 81, address: "[::1]" }),
    "config.bad-address",
    "stack/proxy/Listeners/l.address",
  ],
  [
    "with `tls: true`",
    listener({ port: 443, tls: true }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.tls",
  ],
  [
    "without material",
    listener({ port: 443, tls: {} }),
    "config.missing-field",
    "stack/proxy/Listeners/l.tls.material",
  ],
  [
    "with paths for material",
    tls({ material: FILES }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.tls.material",
  ],
  [
    "with the name of a policy",
    tls({ policy: "modern" }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.tls.policy",
  ],
  ["with `ciphers`", tls({ ciphers: "HIGH" }), "config.unknown-field", "stack/proxy/Listeners/l.tls.ciphers"],
  [
    "with published port 0",
    listener({ port: 81, publishedPort: 0 }),
    "config.out-of-range",
    "stack/proxy/Listeners/l.publishedPort",
  ],
  [
    "with PROXY protocol from nobody",
    listener({ port: 81, proxyProtocol: { from: [] } }),
    "config.out-of-range",
    "stack/proxy/Listeners/l.proxyProtocol.from",
  ],
  [
    "with PROXY protocol from a name",
    listener({ port: 81, proxyProtocol: { from: ["balancer"] } }),
    "config.bad-address",
    "stack/proxy/Listeners/l.proxyProtocol.from[0]",
  ],
  [
    "with `proxyProtocol: true`",
    listener({ port: 81, proxyProtocol: true }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.proxyProtocol",
  ],
  [
    "with HTTP/2 `yes`",
    listener({ port: 81, http2: "yes" }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.http2",
  ],
  [
    "with a space in its name",
    listener({ port: 81, name: "a b" }),
    "config.bad-name",
    "stack/proxy/Listeners/l.name",
  ],
  [
    "directly below a stack",
    (s) => new Listener(s.stack, "l", { port: 81 }),
    "config.unknown-reference",
    "stack/l",
  ],
  [
    "on a port that is taken",
    listener({ port: 80, address: "192.0.2.10" }),
    "config.port-conflict",
    "stack/proxy/Listeners/l",
  ],
  ["on the same port", listener({ port: 80 }), "config.duplicate-listener", "stack/proxy/Listeners/l"],
  ["without a default server", listener({ port: 81 }), "config.no-default-server", "stack/proxy/Listeners/l"],
  [
    "on the SSH server's port",
    (s) => {
      const l = s.proxy.addListener("l", { port: 22 });
      s.proxy.addVirtualServer("v", { serverNames: ["_"], listeners: [l], default: true });
    },
    "config.port-conflict",
    "stack/proxy/Listeners/l.port",
  ],
]);

const upstream = (props: Wrong) => (s: Site) => s.proxy.addUpstream("u", props);
const url = (value: unknown) => upstream({ url: value });
const AT_URL = "stack/proxy/Upstreams/u.url";
const upstreams = of("an upstream", [
  ["without props", upstream(undefined), "config.missing-field", "stack/proxy/Upstreams/u"],
  ["without url", upstream({}), "config.missing-field", AT_URL],
  ["over https", url("https://10.0.0.1"), "config.bad-url", AT_URL],
  ["without scheme", url("10.0.0.1:80"), "config.bad-url", AT_URL],
  ["with a path", url("http://10.0.0.1/app"), "config.bad-url", AT_URL],
  ["with a query", url("http://10.0.0.1/?a"), "config.bad-url", AT_URL],
  ["with a user", url("http://me@10.0.0.1"), "config.bad-url", AT_URL],
  ["with capitals", url("http://App.example"), "config.bad-url", AT_URL],
  ["with port 0", url("http://10.0.0.1:0"), "config.bad-url", AT_URL],
  ["with port 99999", url("http://10.0.0.1:99999"), "config.bad-url", AT_URL],
  ["with an IPv6 address without brackets", url("http://::1:80"), "config.bad-url", AT_URL],
  ["that is a number", url(8000), "config.wrong-type", AT_URL],
  ["by `host`", upstream({ host: "10.0.0.1" }), "config.unknown-field", "stack/proxy/Upstreams/u.host"],
  [
    "with `readTimeout`",
    upstream({ url: "http://a", readTimeout: 1 }),
    "config.unknown-field",
    "stack/proxy/Upstreams/u.readTimeout",
  ],
  [
    "with a timeout of 0",
    upstream({ url: "http://a", readTimeoutMs: 0 }),
    "config.out-of-range",
    "stack/proxy/Upstreams/u.readTimeoutMs",
  ],
  [
    "with a timeout of 60s",
    upstream({ url: "http://a", readTimeoutMs: "60s" }),
    "config.wrong-type",
    "stack/proxy/Upstreams/u.readTimeoutMs",
  ],
  [
    "with too many idle connections",
    upstream({ url: "http://a", idleConnectionsMax: 1e6 }),
    "config.out-of-range",
    "stack/proxy/Upstreams/u.idleConnectionsMax",
  ],
  [
    "with a bad name",
    upstream({ url: "http://a", name: "a/b" }),
    "config.bad-name",
    "stack/proxy/Upstreams/u.name",
  ],
  ["that is the proxy itself", url("http://127.0.0.1:80"), "config.proxy-loop", AT_URL],
  ["that is the proxy by localhost", url("http://localhost"), "config.proxy-loop", AT_URL],
  ["that is the proxy by the host's address", url("http://192.0.2.10"), "config.proxy-loop", AT_URL],
  [
    "that is the proxy by a server name",
    (s) => {
      s.proxy.addVirtualServer("v", { serverNames: ["v.example"], listeners: [s.http] });
      s.proxy.addUpstream("u", { url: "http://v.example:80" });
    },
    "config.proxy-loop",
    AT_URL,
  ],
  [
    "of a name that is taken",
    upstream({ url: "http://a", name: "app" }),
    "config.duplicate-name",
    "stack/proxy/Upstreams/u.name",
  ],
]);

const server = (props: Wrong) => (s: Site) =>
  s.proxy.addVirtualServer("v", { listeners: [s.http], ...props });
const servers = of("a virtual server", [
  ["without names", server({}), "config.missing-field", "stack/proxy/VirtualServers/v.serverNames"],
  [
    "with no names",
    server({ serverNames: [] }),
    "config.out-of-range",
    "stack/proxy/VirtualServers/v.serverNames",
  ],
  [
    "with one name as a string",
    server({ serverNames: "a.example" }),
    "config.wrong-type",
    "stack/proxy/VirtualServers/v.serverNames",
  ],
  [
    "with `serverName`",
    server({ serverName: "a.example" }),
    "config.unknown-field",
    "stack/proxy/VirtualServers/v.serverName",
  ],
  [
    "with capitals",
    server({ serverNames: ["A.example"] }),
    "config.bad-server-name",
    "stack/proxy/VirtualServers/v.serverNames[0]",
  ],
  [
    "with a port",
    server({ serverNames: ["a.example:80"] }),
    "config.bad-server-name",
    "stack/proxy/VirtualServers/v.serverNames[0]",
  ],
  [
    "with a wildcard",
    server({ serverNames: ["*.example"] }),
    "config.bad-server-name",
    "stack/proxy/VirtualServers/v.serverNames[0]",
  ],
  [
    "with IPv6 in brackets",
    server({ serverNames: ["[::1]"] }),
    "config.bad-server-name",
    "stack/proxy/VirtualServers/v.serverNames[0]",
  ],
  [
    "with HSTS and no TLS",
    server({ serverNames: ["a"], hsts: {} }),
    "config.hsts-without-tls",
    "stack/proxy/VirtualServers/v.hsts",
  ],
  [
    "with HSTS and a self-signed certificate",
    (s) => {
      const https = s.proxy.addListener("https", { port: 443, tls: { material: TlsMaterial.selfSigned() } });
      return s.proxy.addVirtualServer("v", {
        serverNames: ["a"],
        listeners: [https],
        default: true,
        hsts: {},
      });
    },
    "config.hsts-self-signed",
    "stack/proxy/VirtualServers/v.hsts",
  ],
  [
    "with a field that is the connection's",
    server({ serverNames: ["a"], responseHeaders: { set: { Connection: "close" } } }),
    "config.reserved-response-field",
    "stack/proxy/VirtualServers/v.responseHeaders.set.Connection",
  ],
  [
    "without listeners",
    server({ serverNames: ["a"], listeners: undefined }),
    "config.missing-field",
    "stack/proxy/VirtualServers/v.listeners",
  ],
  [
    "with no listeners",
    server({ serverNames: ["a"], listeners: [] }),
    "config.out-of-range",
    "stack/proxy/VirtualServers/v.listeners",
  ],
  [
    "with a name for a listener",
    server({ serverNames: ["a"], listeners: ["http"] }),
    "config.wrong-type",
    "stack/proxy/VirtualServers/v.listeners[0]",
  ],
  [
    "with a port for a listener",
    server({ serverNames: ["a"], listeners: [{ port: 80 }] }),
    "config.wrong-type",
    "stack/proxy/VirtualServers/v.listeners[0]",
  ],
  [
    "that is a default twice",
    server({ serverNames: ["a"], default: true }),
    "config.duplicate-default-server",
    "stack/proxy/VirtualServers/v.default",
  ],
  [
    "with `default: 1`",
    server({ serverNames: ["a"], default: 1 }),
    "config.wrong-type",
    "stack/proxy/VirtualServers/v.default",
  ],
  [
    "with a name that is taken",
    (s) => {
      s.proxy.addVirtualServer("v", { serverNames: ["a"], listeners: [s.http] });
      s.proxy.addVirtualServer("w", { serverNames: ["a"], listeners: [s.http] });
    },
    "config.duplicate-server-name",
    "stack/proxy/VirtualServers/w.serverNames[0]",
  ],
  [
    "directly below a stack",
    (s) => new VirtualServer(s.stack, "v", { serverNames: ["a"], listeners: [s.http] }),
    "config.unknown-reference",
    "stack/v",
  ],
]);

const route = (props: Wrong) => (s: Site) =>
  s.server.addRoute("r", { action: Action.respond(200), ...props });
const AT_ROUTE = "stack/proxy/VirtualServers/site/r";
const routes = of("a route", [
  ["without path", route({}), "config.missing-field", `${AT_ROUTE}.path`],
  ["with a relative path", route({ path: "a" }), "config.bad-route-path", `${AT_ROUTE}.path`],
  ["with a query", route({ path: "/a?b" }), "config.bad-route-path", `${AT_ROUTE}.path`],
  ["with `..`", route({ path: "/a/../b" }), "config.bad-route-path", `${AT_ROUTE}.path`],
  ["with `//`", route({ path: "//a" }), "config.bad-route-path", `${AT_ROUTE}.path`],
  ["with percent-encoding", route({ path: "/a%20b" }), "config.bad-route-path", `${AT_ROUTE}.path`],
  ["with a regular expression", route({ path: /a/ }), "config.wrong-type", `${AT_ROUTE}.path`],
  ["with `pathPrefix`", route({ pathPrefix: "/a" }), "config.unknown-field", `${AT_ROUTE}.pathPrefix`],
  ["that matches a regex", route({ path: "/a", match: "regex" }), "config.not-one-of", `${AT_ROUTE}.match`],
  ["without action", route({ path: "/a", action: undefined }), "config.missing-field", `${AT_ROUTE}.action`],
  [
    "with an upstream for an action",
    (s) => route({ path: "/a", action: s.app })(s),
    "config.wrong-type",
    `${AT_ROUTE}.action`,
  ],
  [
    "with a URL for an action",
    route({ path: "/a", action: "http://x" }),
    "config.wrong-type",
    `${AT_ROUTE}.action`,
  ],
  [
    "with an object for an action",
    route({ path: "/a", action: { type: "respond" } }),
    "config.wrong-type",
    `${AT_ROUTE}.action`,
  ],
  [
    "with a body limit of 10m",
    route({ path: "/a", requestBodyBytesMax: "10m" }),
    "config.wrong-type",
    `${AT_ROUTE}.requestBodyBytesMax`,
  ],
  [
    "with a negative body limit",
    route({ path: "/a", requestBodyBytesMax: -1 }),
    "config.out-of-range",
    `${AT_ROUTE}.requestBodyBytesMax`,
  ],
  [
    "that sets a length",
    route({ path: "/a", responseHeaders: { set: { "Content-Length": "0" } } }),
    "config.reserved-response-field",
    `${AT_ROUTE}.responseHeaders.set.Content-Length`,
  ],
  [
    "that sets a field of two lines",
    route({ path: "/a", responseHeaders: { set: { "X-A": "1\r\nX-B: 2" } } }),
    "config.bad-header",
    `${AT_ROUTE}.responseHeaders.set.X-A`,
  ],
  [
    "that sets and removes a field",
    route({ path: "/a", responseHeaders: { set: { "X-A": "1" }, remove: ["x-a"] } }),
    "config.duplicate-response-field",
    `${AT_ROUTE}.responseHeaders.remove[0]`,
  ],
  [
    "with `responseHeader`",
    route({ path: "/a", responseHeader: {} }),
    "config.unknown-field",
    `${AT_ROUTE}.responseHeader`,
  ],
  [
    "with fields that are not in `set`",
    route({ path: "/a", responseHeaders: { "X-A": "1" } }),
    "config.unknown-field",
    `${AT_ROUTE}.responseHeaders.X-A`,
  ],
  [
    "with a timeout of 0",
    route({ path: "/a", sendTimeoutMs: 0 }),
    "config.out-of-range",
    `${AT_ROUTE}.sendTimeoutMs`,
  ],
  [
    "with a log path alone",
    route({ path: "/a", accessLog: "/var/log/a" }),
    "config.not-one-of",
    `${AT_ROUTE}.accessLog`,
  ],
  [
    "with a relative log",
    route({ path: "/a", errorLog: { path: "a.log" } }),
    "config.bad-file-path",
    `${AT_ROUTE}.errorLog.path`,
  ],
  [
    "with a log of another format",
    route({ path: "/a", accessLog: { path: "/a.log", format: "xml" } }),
    "config.not-one-of",
    `${AT_ROUTE}.accessLog.format`,
  ],
  ["with a path that is taken", route({ path: "/app" }), "config.duplicate-route", `${AT_ROUTE}.path`],
  [
    "with a name that is taken",
    route({ path: "/a", name: "app" }),
    "config.duplicate-name",
    `${AT_ROUTE}.name`,
  ],
  [
    "outside of a virtual server",
    (s) => new Route(s.proxy, "r", { path: "/a", action: Action.respond(200) }),
    "config.unknown-reference",
    "stack/proxy/r",
  ],
  [
    "that another one takes everything of",
    (s) => {
      s.server.addRoute("r", { path: "/d/", match: "prefix", action: Action.respond(200) });
      s.server.addRoute("q", { path: "/d/", match: "segment", action: Action.respond(200) });
    },
    "config.shadowed-route",
    `${AT_ROUTE}.path`,
  ],
  [
    "that redirects to itself",
    route({ path: "/", action: Action.redirect({ scheme: "http" }) }),
    "config.redirect-loop",
    `${AT_ROUTE}.action`,
  ],
]);

const act = (make: (s: Site) => Action) => (s: Site) =>
  s.server.addRoute("r", { path: "/r", action: make(s) });
const wrong = <T>(value: unknown): T => value as T;
const actions = of("an action", [
  [
    "that proxies to nothing",
    act(() => Action.proxy(wrong(undefined))),
    "config.missing-field",
    "Action.proxy.upstream",
  ],
  [
    "that proxies to a URL",
    act(() => Action.proxy(wrong("http://x"))),
    "config.wrong-type",
    "Action.proxy.upstream",
  ],
  [
    "that proxies to a listener",
    act((s) => Action.proxy(wrong(s.http))),
    "config.wrong-type",
    "Action.proxy.upstream",
  ],
  [
    "that strips `true`",
    act((s) => Action.proxy(s.app, wrong({ strip: true }))),
    "config.not-one-of",
    `${AT_ROUTE}.action.strip`,
  ],
  [
    "with `stripPrefix`",
    act((s) => Action.proxy(s.app, wrong({ stripPrefix: true }))),
    "config.unknown-field",
    "Action.proxy.stripPrefix",
  ],
  [
    "with `websocket`",
    act((s) => Action.proxy(s.app, wrong({ websocket: true }))),
    "config.unknown-field",
    "Action.proxy.websocket",
  ],
  [
    "with `forwarded: true`",
    act((s) => Action.proxy(s.app, wrong({ forwarded: true }))),
    "config.wrong-type",
    "Action.proxy.forwarded",
  ],
  [
    "with `forwarded.realIP`",
    act((s) => Action.proxy(s.app, wrong({ forwarded: { realIP: true } }))),
    "config.unknown-field",
    "Action.proxy.forwarded.realIP",
  ],
  [
    "that sets Host",
    act((s) => Action.proxy(s.app, { setHeaders: { Host: "x" } })),
    "config.bad-header",
    `${AT_ROUTE}.action.setHeaders.Host`,
  ],
  [
    "that sets a field with a line end",
    act((s) => Action.proxy(s.app, { setHeaders: { "X-A": "a\r\nb" } })),
    "config.bad-header",
    `${AT_ROUTE}.action.setHeaders.X-A`,
  ],
  [
    "with a secret in place of its file",
    act((s) => Action.proxy(s.app, { setHeadersFromCredential: { "X-A": "secret" } })),
    "config.bad-file-path",
    `${AT_ROUTE}.action.setHeadersFromCredential.X-A`,
  ],
  [
    "with a secret that is set as a text too",
    act((s) =>
      Action.proxy(s.app, { setHeaders: { "x-a": "1" }, setHeadersFromCredential: { "X-A": "/etc/a" } }),
    ),
    "config.duplicate-name",
    `${AT_ROUTE}.action.setHeadersFromCredential.X-A`,
  ],
  [
    "that sets a number",
    act((s) => Action.proxy(s.app, { setHeaders: { "X-A": wrong(1) } })),
    "config.wrong-type",
    `${AT_ROUTE}.action.setHeaders.X-A`,
  ],
  [
    "that trusts a spelling that never arrives",
    act((s) => Action.proxy(s.app, { trustedFields: ["REMOTE_USER"] })),
    "config.bad-header",
    `${AT_ROUTE}.action.trustedFields[0]`,
  ],
  [
    "that trusts a field and nobody who sends it",
    act((s) => Action.proxy(s.app, { trustedFields: ["Remote-User"] })),
    "config.no-trusted-proxies",
    `${AT_ROUTE}.action.trustedFields`,
  ],
  [
    "that serves nothing",
    act(() => Action.staticFiles(wrong(undefined))),
    "config.missing-field",
    "Action.staticFiles.directory",
  ],
  [
    "that serves a relative directory",
    act(() => Action.staticFiles("srv")),
    "config.bad-file-path",
    `${AT_ROUTE}.action.directory`,
  ],
  [
    "with one index as a string",
    act(() => Action.staticFiles("/s", wrong({ index: "index.html" }))),
    "config.wrong-type",
    `${AT_ROUTE}.action.index`,
  ],
  [
    "with an index in a directory",
    act(() => Action.staticFiles("/s", { index: ["a/b.html"] })),
    "config.bad-name",
    `${AT_ROUTE}.action.index[0]`,
  ],
  [
    "with `listing`",
    act(() => Action.staticFiles("/s", wrong({ listing: true }))),
    "config.unknown-field",
    "Action.staticFiles.listing",
  ],
  [
    "that follows `all` links",
    act(() => Action.staticFiles("/s", wrong({ symlinks: "all" }))),
    "config.not-one-of",
    `${AT_ROUTE}.action.symlinks`,
  ],
  [
    "that redirects with 200",
    act(() => Action.redirect(wrong({ status: 200 }))),
    "config.not-one-of",
    `${AT_ROUTE}.action.status`,
  ],
  [
    "that redirects to ftp",
    act(() => Action.redirect(wrong({ scheme: "ftp" }))),
    "config.not-one-of",
    `${AT_ROUTE}.action.scheme`,
  ],
  [
    "that redirects to a URL",
    act(() => Action.redirect(wrong("https://x"))),
    "config.wrong-type",
    "Action.redirect",
  ],
  [
    "that redirects `to`",
    act(() => Action.redirect(wrong({ to: "x" }))),
    "config.unknown-field",
    "Action.redirect.to",
  ],
  [
    "that redirects to a host with a port",
    act(() => Action.redirect({ host: "x:80" })),
    "config.bad-server-name",
    `${AT_ROUTE}.action.host`,
  ],
  [
    "that responds nothing",
    act(() => Action.respond(wrong(undefined))),
    "config.missing-field",
    "Action.respond.status",
  ],
  [
    "that responds `ok`",
    act(() => Action.respond(wrong("ok"))),
    "config.wrong-type",
    "Action.respond.status",
  ],
  ["that responds 99", act(() => Action.respond(99)), "config.out-of-range", `${AT_ROUTE}.action.status`],
  [
    "that responds an object",
    act(() => Action.respond(200, wrong({ body: {} }))),
    "config.wrong-type",
    `${AT_ROUTE}.action.body`,
  ],
  [
    "with `headers`",
    act(() => Action.respond(200, wrong({ headers: {} }))),
    "config.unknown-field",
    "Action.respond.headers",
  ],
]);

const proxy = (props: Wrong) => (s: Site) =>
  new ReverseProxy(s.stack, "p", { host: s.host, paths: { config: "/etc/p.json" }, ...props });
const proxies = of("a proxy", [
  [
    "without props",
    (s) => new ReverseProxy(s.stack, "p", wrong(undefined)),
    "config.missing-field",
    "stack/p",
  ],
  ["without host", proxy({ host: undefined }), "config.missing-field", "stack/p.host"],
  ["with an address for a host", proxy({ host: "192.0.2.1" }), "config.wrong-type", "stack/p.host"],
  ["with props for a host", proxy({ host: { address: "192.0.2.1" } }), "config.wrong-type", "stack/p.host"],
  ["with no workers", proxy({ workers: 0 }), "config.not-one-of", "stack/p.workers"],
  ["with `many` workers", proxy({ workers: "many" }), "config.not-one-of", "stack/p.workers"],
  ["with `worker`", proxy({ worker: 2 }), "config.unknown-field", "stack/p.worker"],
  [
    "that trusts a name",
    proxy({ trustedProxies: ["gate"] }),
    "config.bad-address",
    "stack/p.trustedProxies[0]",
  ],
  [
    "that trusts everyone",
    proxy({ trustedProxies: ["10.0.0.1", "0.0.0.0/0"] }),
    "config.everyone-trusted",
    "stack/p.trustedProxies",
  ],
  [
    "whose listener believes everyone",
    (s) => s.proxy.addListener("l", { port: 8080, proxyProtocol: { from: ["::/0"] } }),
    "config.everyone-trusted",
    "stack/proxy/Listeners/l.proxyProtocol.from",
  ],
  [
    "whose clients are named in another syntax",
    proxy({ clientAddressField: "Forwarded" }),
    "config.bad-header",
    "stack/p.clientAddressField",
  ],
  [
    "that trusts a string",
    proxy({ trustedProxies: "10.0.0.0/8" }),
    "config.wrong-type",
    "stack/p.trustedProxies",
  ],
  [
    "with an unknown limit",
    proxy({ limits: { connectionMax: 5 } }),
    "config.unknown-field",
    "stack/p.limits.connectionMax",
  ],
  [
    "with a limit of 0",
    proxy({ limits: { connectionsMax: 0 } }),
    "config.out-of-range",
    "stack/p.limits.connectionsMax",
  ],
  [
    "with a timeout of 1s",
    proxy({ timeouts: { keepAliveMs: "1s" } }),
    "config.wrong-type",
    "stack/p.timeouts.keepAliveMs",
  ],
  [
    "with an unknown path",
    proxy({ paths: { logs: "/var/log" } }),
    "config.unknown-field",
    "stack/p.paths.logs",
  ],
  [
    "with a relative path",
    proxy({ paths: { logDirectory: "log" } }),
    "config.bad-file-path",
    "stack/p.paths.logDirectory",
  ],
  [
    "with a log as a string",
    proxy({ logs: { access: "/a.log" } }),
    "config.not-one-of",
    "stack/p.logs.access",
  ],
  ["without listeners", proxy({}), "config.out-of-range", "stack/p.listeners"],
  [
    "with an override that has no path",
    (s) => s.proxy.addConfigOverride(undefined as Wrong, 1),
    "config.missing-field",
    "stack/proxy.addConfigOverride.path",
  ],
  [
    "with the config of another one",
    (s) => new ReverseProxy(s.stack, "p", { host: s.host }),
    "files.duplicate-path",
    "stack/p/Config",
  ],
]);

const signed = (options: Wrong) => () => TlsMaterial.selfSigned(options);
const policy = (settings: Wrong) => (s: Site) => tls({ policy: TlsPolicy.custom(settings) })(s);
const SPELLED = { minVersion: "TLSv1.2", maxVersion: "TLSv1.3", ciphers: "HIGH", curves: ["X25519"] };
const tlsParts = of("TLS", [
  [
    "valid for no day",
    signed({ validityDays: 0 }),
    "config.out-of-range",
    "TlsMaterial.selfSigned.validityDays",
  ],
  [
    "valid for a string",
    signed({ validityDays: "90" }),
    "config.wrong-type",
    "TlsMaterial.selfSigned.validityDays",
  ],
  [
    "valid for ever",
    signed({ validityDays: 1e6 }),
    "config.out-of-range",
    "TlsMaterial.selfSigned.validityDays",
  ],
  [
    "renewed from the first day on",
    signed({ validityDays: 10, renewalDays: 10 }),
    "config.out-of-range",
    "TlsMaterial.selfSigned.renewalDays",
  ],
  ["with `days`", signed({ days: 10 }), "config.unknown-field", "TlsMaterial.selfSigned.days"],
  [
    "for a name with a space",
    signed({ dnsNames: ["a b"] }),
    "config.bad-server-name",
    "TlsMaterial.selfSigned.dnsNames[0]",
  ],
  [
    "for a URL",
    signed({ dnsNames: ["https://a"] }),
    "config.bad-server-name",
    "TlsMaterial.selfSigned.dnsNames[0]",
  ],
  [
    "for an address among names",
    signed({ dnsNames: ["192.0.2.1"] }),
    "config.bad-server-name",
    "TlsMaterial.selfSigned.dnsNames[0]",
  ],
  [
    "for one name as a string",
    signed({ dnsNames: "a" }),
    "config.wrong-type",
    "TlsMaterial.selfSigned.dnsNames",
  ],
  [
    "files without key",
    () => TlsMaterial.fromFiles(wrong({ certificate: "/c" })),
    "config.missing-field",
    "TlsMaterial.fromFiles.key",
  ],
  [
    "files as a string",
    () => TlsMaterial.fromFiles(wrong("/etc/tls")),
    "config.wrong-type",
    "TlsMaterial.fromFiles",
  ],
  [
    "files by `cert`",
    () => TlsMaterial.fromFiles(wrong({ cert: "/c", key: "/k" })),
    "config.unknown-field",
    "TlsMaterial.fromFiles.cert",
  ],
  [
    "files by a relative path",
    () => TlsMaterial.fromFiles({ certificate: "c", key: "/k" }),
    "config.bad-file-path",
    "TlsMaterial.fromFiles.certificate",
  ],
  [
    "parameters `true`",
    () => TlsMaterial.fromFiles(wrong({ ...FILES, dhparam: true })),
    "config.wrong-type",
    "TlsMaterial.fromFiles.dhparam",
  ],
  [
    "the service's policy with `tls12`",
    () => TlsPolicy.fileSync(wrong({ tls12: true })),
    "config.unknown-field",
    "TlsPolicy.fileSync.tls12",
  ],
  [
    "the service's policy with a version in place of `true`",
    () => TlsPolicy.fileSync(wrong({ tls13: "TLSv1.3" })),
    "config.wrong-type",
    "TlsPolicy.fileSync.tls13",
  ],
  [
    "a policy without ciphers",
    policy({ ...SPELLED, ciphers: undefined }),
    "config.missing-field",
    "TlsPolicy.custom.ciphers",
  ],
  [
    "a policy with TLS 1.0",
    policy({ ...SPELLED, minVersion: "TLSv1" }),
    "config.wrong-type",
    "TlsPolicy.custom.minVersion",
  ],
  [
    "a policy upside down",
    policy({ ...SPELLED, minVersion: "TLSv1.3", maxVersion: "TLSv1.2" }),
    "config.out-of-range",
    "stack/proxy/Listeners/l.tls.policy.minVersion",
  ],
  [
    "a policy with `curve`",
    policy({ ...SPELLED, curve: "X25519" }),
    "config.unknown-field",
    "TlsPolicy.custom.curve",
  ],
  [
    "a policy without curves",
    policy({ ...SPELLED, curves: [] }),
    "config.out-of-range",
    "stack/proxy/Listeners/l.tls.policy.curves",
  ],
]);

const front = (props: Wrong) => (s: Site) => s.frontEnd(props);
const fronts = of("a front end", [
  [
    "without props",
    (s) => new FileSyncFrontEnd(s.stack, "files", wrong(undefined)),
    "config.missing-field",
    "stack/files",
  ],
  ["without host", front({ host: undefined }), "config.missing-field", "stack/files.host"],
  ["with an address for a host", front({ host: "192.0.2.1" }), "config.wrong-type", "stack/files.host"],
  ["with a bad host", front({ host: { address: "::1" } }), "host.ipv6-only", "stack/files/Host.address"],
  [
    "whose balancer announces clients and is trusted",
    front({
      mode: Mode.plain({ proxyProtocol: { from: ["10.0.0.0/16"] } }),
      proxy: { trustedProxies: ["192.0.2.1", "10.0.0.5"] },
    }),
    "config.announced-and-trusted",
    "stack/files/Proxy.trustedProxies[1]",
  ],
  [
    "whose clients nobody names",
    front({ proxy: { clientAddressField: "CF-Connecting-IP" } }),
    "config.no-trusted-proxies",
    "stack/files/Proxy.clientAddressField",
  ],
  ["without mode", front({ mode: undefined }), "config.missing-field", "stack/files.mode"],
  ["with a mode's name", front({ mode: "tls" }), "config.wrong-type", "stack/files.mode"],
  ["with a mode that was not called", front({ mode: Mode.tls }), "config.wrong-type", "stack/files.mode"],
  [
    "without directory",
    front({ installDirectory: undefined }),
    "config.missing-field",
    "stack/files.installDirectory",
  ],
  [
    "with a relative directory",
    front({ installDirectory: "srv" }),
    "config.bad-file-path",
    "stack/files.installDirectory",
  ],
  [
    "with a relative media directory",
    front({ mediaDirectory: "./m" }),
    "config.bad-file-path",
    "stack/files.mediaDirectory",
  ],
  [
    "with a relative avatar directory",
    front({ avatarDirectory: "m" }),
    "config.bad-file-path",
    "stack/files.avatarDirectory",
  ],
  [
    "with a path for a prefix",
    front({ pathPrefix: "/sync" }),
    "config.bad-route-path",
    "stack/files.pathPrefix",
  ],
  ["with an empty prefix", front({ pathPrefix: "" }), "config.bad-route-path", "stack/files.pathPrefix"],
  ["with `pathPrefx`", front({ pathPrefx: "x" }), "config.unknown-field", "stack/files.pathPrefx"],
  [
    "with `additionalServerName`",
    front({ additionalServerName: "x" }),
    "config.unknown-field",
    "stack/files.additionalServerName",
  ],
  [
    "with a bad name",
    front({ additionalServerNames: ["A.example"] }),
    "config.bad-server-name",
    "stack/files.additionalServerNames[0]",
  ],
  [
    "with a name in brackets",
    front({ additionalServerNames: ["[::1]"] }),
    "config.bad-server-name",
    "stack/files.additionalServerNames[0]",
  ],
  [
    "with `upstreams.webdv`",
    front({ upstreams: { webdv: {} } }),
    "config.unknown-field",
    "stack/files.upstreams.webdv",
  ],
  [
    "with a URL for an upstream",
    front({ upstreams: { web: "http://x" } }),
    "config.wrong-type",
    "stack/files.upstreams.web",
  ],
  [
    "with an https upstream",
    front({ upstreams: { web: { url: "https://x" } } }),
    "config.bad-url",
    "stack/files/Proxy/Upstreams/web.url",
  ],
  [
    "with a bad timeout",
    front({ upstreams: { web: { readTimeoutMs: 0 } } }),
    "config.out-of-range",
    "stack/files/Proxy/Upstreams/web.readTimeoutMs",
  ],
  [
    "with a body timeout of 0",
    front({ requestBodyTimeoutMs: 0 }),
    "config.out-of-range",
    "stack/files.requestBodyTimeoutMs",
  ],
  [
    "with another destination",
    front({ webdavDestination: "relative" }),
    "config.wrong-type",
    "stack/files.webdavDestination",
  ],
  ["with `firewall: true`", front({ firewall: true }), "config.wrong-type", "stack/files.firewall"],
  [
    "with `firewall.allow`",
    front({ firewall: { allow: [] } }),
    "config.unknown-field",
    "stack/files.firewall.allow",
  ],
  [
    "with an allowed port as a number",
    front({ firewall: { allowed: [9090] } }),
    "config.wrong-type",
    "stack/files.firewall.allowed[0]",
  ],
  ["with `activation: true`", front({ activation: true }), "config.wrong-type", "stack/files.activation"],
  [
    "with `proxy.wrkers`",
    front({ proxy: { wrkers: 1 } }),
    "config.unknown-field",
    "stack/files.proxy.wrkers",
  ],
  [
    "with a host for its proxy",
    front({ proxy: { host: {} } }),
    "config.unknown-field",
    "stack/files.proxy.host",
  ],
  [
    "with `service.node`",
    front({ service: { node: "/n" } }),
    "config.unknown-field",
    "stack/files.service.node",
  ],
  [
    "with a relative config",
    front({ paths: { config: "portico.json" } }),
    "config.bad-file-path",
    "stack/files.paths.config",
  ],
  [
    "with the FastCGI variant",
    front({ settings: { startCommand: ["/w.sh", "start-fastcgi"] } }),
    "unit.fastcgi-start",
    "stack/files/Settings.startCommand",
  ],
  [
    "with an unknown file server",
    (s) => s.frontEnd({ upstreams: { fileServer: { url: s.unknown } } }),
    "settings.bad-value",
    "stack/files.settings.fileServer",
  ],
  [
    "with settings for settings",
    front({ settings: { SITE_ROOT: "/x" } }),
    "config.unknown-field",
    "stack/files.settings.SITE_ROOT",
  ],
  ["with `outputs: 1`", front({ outputs: 1 }), "config.wrong-type", "stack/files.outputs"],
  ["with its page from a number", front({ defaultPage: 5 }), "config.wrong-type", "stack/files.defaultPage"],
  [
    "with units for strangers",
    front({ activation: { units: { web: "x" } } }),
    "config.unknown-field",
    "stack/files.activation.units.web",
  ],
]);

const responses = of("the response fields of a front end", [
  [
    "with a cookie for everyone",
    front({ responseHeaders: { set: { "Set-Cookie": "a=1" } } }),
    "config.reserved-response-field",
    "stack/files.responseHeaders.set.Set-Cookie",
  ],
  [
    "with a cookie for everyone on one route",
    front({ routeResponseHeaders: { media: { set: { "Set-Cookie": "a=1" } } } }),
    "config.reserved-response-field",
    "stack/files.routeResponseHeaders.media.set.Set-Cookie",
  ],
  [
    "with fields for a route that no front end has",
    front({ routeResponseHeaders: { share: {} } }),
    "config.unknown-field",
    "stack/files.routeResponseHeaders.share",
  ],
  [
    "with fields for a route that this one does not have",
    front({ routeResponseHeaders: { avatars: {} } }),
    "config.unknown-field",
    "stack/files.routeResponseHeaders.avatars",
  ],
  [
    "with one field twice",
    front({ responseHeaders: { remove: ["X-A", "x-a"] } }),
    "config.duplicate-response-field",
    "stack/files.responseHeaders.remove[1]",
  ],
  [
    "with an address to listen on that the host has no family for",
    front({ mode: Mode.plain({ ipv6Address: "::1" }) }),
    "config.bad-address",
    "stack/files.mode",
  ],
]);

const mode = (options: Wrong) => () => Mode.tls(options);
const modes = of("a mode", [
  ["with `httpPrt`", mode({ httpPrt: 80 }), "config.unknown-field", "Mode.tls.httpPrt"],
  ["with a policy's name", mode({ policy: "modern" }), "config.wrong-type", "Mode.tls.policy"],
  ["with paths for material", mode({ material: FILES }), "config.wrong-type", "Mode.tls.material"],
  ["with port 0", mode({ httpsPort: 0 }), "config.out-of-range", "Mode.tls.httpsPort"],
  ["with a string for a port", mode({ httpPort: "80" }), "config.wrong-type", "Mode.tls.httpPort"],
  [
    "with PROXY protocol from anywhere",
    mode({ proxyProtocol: {} }),
    "config.missing-field",
    "Mode.tls.proxyProtocol.from",
  ],
  ["with one port for both", mode({ httpPort: 443 }), "config.duplicate-listener", "Mode.tls.httpsPort"],
  [
    "with a public port out of range",
    mode({ publicPort: 70_000 }),
    "config.out-of-range",
    "Mode.tls.publicPort",
  ],
  ["with a name for an address", mode({ address: "localhost" }), "config.bad-address", "Mode.tls.address"],
  ["with an address and a port", mode({ address: "192.0.2.1:80" }), "config.bad-address", "Mode.tls.address"],
  ["with an IPv6 address for IPv4", mode({ address: "::1" }), "config.bad-address", "Mode.tls.address"],
  [
    "with an IPv4 address for IPv6",
    mode({ ipv6Address: "192.0.2.1" }),
    "config.bad-address",
    "Mode.tls.ipv6Address",
  ],
  [
    "with an IPv6 address in brackets",
    mode({ ipv6Address: "[::1]" }),
    "config.bad-address",
    "Mode.tls.ipv6Address",
  ],
  [
    "plain, with a number for an address",
    () => Mode.plain(wrong({ address: 127 })),
    "config.wrong-type",
    "Mode.plain.address",
  ],
  [
    "with HSTS and the self-signed certificate",
    mode({ hsts: {} }),
    "config.hsts-self-signed",
    "Mode.tls.hsts",
  ],
  [
    "with HSTS and a self-signed certificate of its own",
    () => Mode.tls({ material: TlsMaterial.selfSigned(), hsts: { force: false } }),
    "config.hsts-self-signed",
    "Mode.tls.hsts",
  ],
  ["with `hsts: true`", mode({ hsts: true }), "config.wrong-type", "Mode.tls.hsts"],
  ["with `max-age`", mode({ hsts: { "max-age": 1 } }), "config.unknown-field", "Mode.tls.hsts.max-age"],
  [
    "with HSTS for more than ten years",
    mode({ hsts: { maxAge: 1e9, force: true } }),
    "config.out-of-range",
    "Mode.tls.hsts.maxAge",
  ],
  [
    "with HSTS to preload, and no subdomains",
    mode({ hsts: { preload: true, force: true } }),
    "config.hsts-preload",
    "Mode.tls.hsts.preload",
  ],
  ["plain, with HSTS", () => Mode.plain(wrong({ hsts: {} })), "config.unknown-field", "Mode.plain.hsts"],
  [
    "plain, with TLS options",
    () => Mode.plain(wrong({ httpsPort: 443 })),
    "config.unknown-field",
    "Mode.plain.httpsPort",
  ],
  [
    "plain, on port 65536",
    () => Mode.plain({ httpPort: 65_536 }),
    "config.out-of-range",
    "Mode.plain.httpPort",
  ],
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
const daemons = (props: Wrong) => (s: Site) =>
  new ApplicationDaemons(s.stack, "d", { host: s.host, ...props });
const units = of("units", [
  ["of no proxy", service({ proxy: undefined }), "config.missing-field", "stack/s.proxy"],
  ["with a relative Node", service({ nodePath: "node" }), "config.bad-file-path", "stack/s.nodePath"],
  [
    "with a Node in a folder with a space",
    service({ nodePath: "/my node" }),
    "config.bad-file-path",
    "stack/s.nodePath",
  ],
  [
    "with a space in the log directory",
    serviceOf("/var/log/my logs", FILES),
    "unit.bad-value",
    "stack/p.paths.logDirectory",
  ],
  [
    "with a colon in the log directory",
    serviceOf("/var/log/p:/etc", FILES),
    "unit.bad-value",
    "stack/p.paths.logDirectory",
  ],
  [
    "with a space in the key's path",
    serviceOf("/var/log/p", { ...FILES, key: "/my keys/k.pem" }),
    "unit.bad-value",
    "stack/p/Listeners/l.tls.key",
  ],
  [
    "with a colon in the certificate's path",
    serviceOf("/var/log/p", { ...FILES, certificate: "/tls/c:1.pem" }),
    "unit.bad-value",
    "stack/p/Listeners/l.tls.certificate",
  ],
  ["with a version for Node", service({ nodeRuntime: "24" }), "config.wrong-type", "stack/s.nodeRuntime"],
  [
    "that stop in -1 seconds",
    service({ stopTimeoutSeconds: -1 }),
    "config.out-of-range",
    "stack/s.stopTimeoutSeconds",
  ],
  ["that keeps logs for ever", service({ logDaysKept: 1e9 }), "config.out-of-range", "stack/s.logDaysKept"],
  ["with lots of files", service({ openFilesMax: "lots" }), "config.wrong-type", "stack/s.openFilesMax"],
  ["with no files", service({ openFilesMax: 0 }), "config.out-of-range", "stack/s.openFilesMax"],
  [
    "with too little memory for a worker",
    service({ memoryMax: "64M" }),
    "unit.bad-value",
    "stack/s.memoryMax",
  ],
  [
    "without a runtime",
    service({ runtimeBundle: "/nonexistent" }),
    "files.unreadable",
    "stack/s/Runtime.source",
  ],
  ["without name", unit({ name: undefined }), "config.missing-field", "stack/u.name"],
  ["with a name of no type", unit({ name: "app" }), "unit.bad-value", "stack/u.name"],
  ["without content", unit({ unit: undefined }), "config.missing-field", "stack/u.unit"],
  [
    "without a command",
    unit({ unit: { Service: {} } }),
    "unit.missing-command",
    "stack/u.unit.Service.ExecStart",
  ],
  [
    "with a line end",
    unit({ unit: { Unit: { Description: "a\nb" } } }),
    "unit.bad-value",
    "stack/u.unit.Unit.Description",
  ],
  ["with `content`", unit({ content: "[Unit]" }), "config.unknown-field", "stack/u.content"],
  [
    "of a daemon without user",
    daemons({ webdav: { ...DAEMON, user: undefined } }),
    "config.missing-field",
    "stack/d.webdav.user",
  ],
  [
    "of a daemon with one word",
    daemons({ webdav: { ...DAEMON, command: "/srv/d" } }),
    "config.wrong-type",
    "stack/d.webdav.command",
  ],
  [
    "of a daemon of another type",
    daemons({ webdav: { ...DAEMON, type: "simple" } }),
    "config.wrong-type",
    "stack/d.webdav.type",
  ],
  ["of a daemon `webDav`", daemons({ webDav: DAEMON }), "config.unknown-field", "stack/d.webDav"],
  [
    "of a daemon with a relative program",
    daemons({ webdav: { ...DAEMON, command: ["d"] } }),
    "unit.bad-value",
    "stack/d/Webdav.unit.Service.ExecStart.command[0]",
  ],
  [
    "of a daemon with a secret",
    daemons({ webdav: { ...DAEMON, environment: { DB_PASSWORD: "x" } } }),
    "unit.secret-in-environment",
    "stack/d.webdav.environment.DB_PASSWORD",
  ],
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
const settings = (props: Wrong) => (s: Site) =>
  new ApplicationSettings(s.stack, "a", { host: s.host, scheme: "https", ...props });
const serves = (directory: string) => (s: Site) =>
  s.server.addRoute("r", { path: "/r", action: Action.staticFiles(directory) });
const served = (directory: string) => (s: Site) => {
  serves(directory)(s);
  new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
};
const AT_SERVED = `${AT_ROUTE}.action`;
const spelled = (more: Wrong) => () => TlsPolicy.custom({ ...SPELLED, ...more });
const containerised = (s: Site): FileSyncProxy => {
  const [web, webdav, fileServer] = ["a", "b", "c"].map((name) => ({ url: `http://${name}:8000` }));
  return new FileSyncProxy(s.stack, "sync", {
    mode: Mode.plain(),
    serverNames: ["files.example"],
    upstreams: { web: web!, webdav: webdav!, fileServer: fileServer! },
    mediaDirectory: "/srv/media",
  });
};

const harmful = of("harm", [
  [
    "a cipher that does not exist",
    spelled({ ciphers: "NOPE" }),
    "tls.bad-policy",
    "TlsPolicy.custom.ciphers",
  ],
  [
    "a cipher that does not exist among others",
    spelled({ ciphers: "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA255:!NOPE" }),
    "tls.bad-policy",
    "TlsPolicy.custom.ciphers",
  ],
  [
    "a suite of TLS 1.3 that does not exist",
    spelled({ ciphers: "TLS_AES_128_GCM_SHA257" }),
    "tls.bad-policy",
    "TlsPolicy.custom.ciphers",
  ],
  [
    "a group that does not exist",
    spelled({ curves: ["X25519MLKEM768", "X25519", "secp384r2"] }),
    "tls.bad-policy",
    "TlsPolicy.custom.curves[2]",
  ],
  [
    "the https listener of a front end without one",
    (s) => s.frontEnd({}).httpsListener,
    "config.unknown-reference",
    "stack/files.httpsListener",
  ],
  [
    "a container's keys as files",
    (s) =>
      containerised(s).proxy.virtualServers[0]!.addRoute("f", {
        path: "/f",
        action: Action.staticFiles("/etc/portico"),
      }),
    "config.private-directory",
    "stack/sync/Proxy/VirtualServers/default/f.action",
  ],
  [
    "the secret of a field as a file",
    (s) => {
      const setHeadersFromCredential = { "X-A": "/srv/secrets/a" };
      s.server.addRoute("a", { path: "/a", action: Action.proxy(s.app, { setHeadersFromCredential }) });
      serves("/srv/secrets")(s);
    },
    "config.private-directory",
    AT_SERVED,
  ],
  [
    "the application's name on another server in containers",
    (s) => {
      const { proxy, listeners } = containerised(s);
      proxy.addVirtualServer("v", { serverNames: ["files.example"], listeners: [listeners.http] });
    },
    "config.duplicate-server-name",
    "stack/sync/Proxy/VirtualServers/v.serverNames[0]",
  ],
  ["the whole host as files", serves("/"), "config.private-directory", AT_SERVED],
  ["the keys as files", serves("/etc/portico/tls"), "config.private-directory", AT_SERVED],
  ["the directory of the keys as files", serves("/etc/portico"), "config.private-directory", AT_SERVED],
  ["root's home as files", serves("/root/www"), "config.private-directory", AT_SERVED],
  [
    "the files around a key of one's own",
    (s) => {
      const material = TlsMaterial.fromFiles({ certificate: "/srv/tls/c.pem", key: "/srv/tls/k.pem" });
      s.proxy.addListener("l", { port: 443, tls: { material } });
      serves("/srv/tls")(s);
    },
    "config.private-directory",
    AT_SERVED,
  ],
  [
    "media with the whole application in it",
    (s) => s.frontEnd({ mediaDirectory: "/srv" }),
    "config.private-directory",
    "stack/files/Proxy/VirtualServers/application/media.action",
  ],
  [
    "media with the settings in it",
    (s) =>
      s.frontEnd({
        mediaDirectory: "/srv/conf",
        activation: { settings: { files: { webApplication: "/srv/conf/settings.py" } } },
      }),
    "config.private-directory",
    "stack/files/Proxy/VirtualServers/application/media.action",
  ],
  ["files below /tmp", served("/tmp/files"), "unit.no-access", AT_SERVED],
  ["/var/tmp as files", served("/var/tmp"), "unit.no-access", AT_SERVED],
  [
    "a log where the unit may not write",
    (s) => {
      const accessLog = { path: "/srv/log/a.log" };
      s.server.addRoute("r", { path: "/r", action: Action.respond(204), accessLog });
      new ProxyService(s.stack, "service", { proxy: s.proxy, runtimeBundle: __filename });
    },
    "unit.no-access",
    "stack/proxy",
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
    "config.duplicate-server-name",
    "stack/files/Proxy/VirtualServers/mine.serverNames[1]",
  ],
  [
    "another action for a route that was removed",
    (s) => {
      const route = s.server.addRoute("r", { path: "/r", action: Action.respond(204) });
      route.remove();
      route.replaceAction(Action.respond(410));
    },
    "config.unknown-reference",
    `${AT_ROUTE}.replaceAction`,
  ],
]);
const others = of("", [
  ["a firewall without SSH", firewall({ ports: [80, 443] }), "firewall.locks-out", "stack/w.ports"],
  ["a file of mode 644", file({ mode: "644" }), "config.wrong-type", "stack/f.mode"],
  ["a file of mode 0o644", file({ mode: 0o644 }), "config.wrong-type", "stack/f.mode"],
  ["a file at a relative path", file({ path: "f" }), "config.bad-file-path", "stack/f.path"],
  ["a file that is a directory", file({ path: "/f/" }), "config.bad-file-path", "stack/f.path"],
  ["a file without content", file({ content: undefined }), "config.missing-field", "stack/f.content"],
  ["a file with two contents", file({ source: __filename }), "config.missing-field", "stack/f.content"],
  [
    "a file from nowhere",
    file({ content: undefined, source: "/nonexistent" }),
    "files.unreadable",
    "stack/f.source",
  ],
  ["a file with `owner`", file({ owner: "root" }), "config.unknown-field", "stack/f.owner"],
  ["a file where another is", file({ path: "/etc/portico/portico.json" }), "files.duplicate-path", "stack/f"],
  [
    "a network without interface",
    network({ interface: undefined }),
    "config.missing-field",
    "stack/n.interface",
  ],
  [
    "a network with an interface's name",
    network({ interface: "eth0" }),
    "config.wrong-type",
    "stack/n.interface",
  ],
  [
    "a network with a bad interface",
    network({ interface: { name: "eth0/1" } }),
    "network.bad-interface",
    "stack/n.interface.name",
  ],
  [
    "a network without netmask",
    (s) => network({ host: s.host })(s),
    "network.bad-address",
    "stack/host.netmask",
  ],
  ["a network with `dns`", network({ dns: [] }), "config.unknown-field", "stack/n.dns"],
  ["a firewall without ports", firewall({ ports: undefined }), "config.missing-field", "stack/w.ports"],
  ["a firewall with port 0", firewall({ ports: [0] }), "config.out-of-range", "stack/w.ports[0]"],
  [
    "a firewall that opens the database",
    firewall({ ports: [3306] }),
    "firewall.loopback-port",
    "stack/w.ports[0]",
  ],
  ["a firewall with `open`", firewall({ open: [] }), "config.unknown-field", "stack/w.open"],
  [
    "a firewall with another protocol",
    firewall({ allowed: [{ port: 53, protocol: "sctp" }] }),
    "config.wrong-type",
    "stack/w.allowed[0].protocol",
  ],
  ["settings without scheme", settings({ scheme: undefined }), "config.missing-field", "stack/a.scheme"],
  ["settings with another scheme", settings({ scheme: "ftp" }), "config.wrong-type", "stack/a.scheme"],
  [
    "settings with a command as a string",
    settings({ startCommand: "/w start" }),
    "config.wrong-type",
    "stack/a.startCommand",
  ],
  [
    "settings with a command that does not start",
    settings({ startCommand: ["/w"] }),
    "unit.bad-value",
    "stack/a.startCommand",
  ],
  ["settings with `secretKey`", settings({ secretKey: "x" }), "config.unknown-field", "stack/a.secretKey"],
  [
    "an activation of nothing",
    (s) => new Activation(s.stack, "x", wrong({})),
    "config.missing-field",
    "stack/x.service",
  ],
  [
    "a Node of no version",
    () => NodeRuntime.pinned({ version: "24" }),
    "node.bad-pin",
    "NodeRuntime.pinned.version",
  ],
  [
    "a Node of an unknown platform",
    () => NodeRuntime.pinned(wrong({ platform: "darwin-x64" })),
    "config.wrong-type",
    "NodeRuntime.pinned.platform",
  ],
  [
    "a Node by `versoin`",
    () => NodeRuntime.pinned(wrong({ versoin: "24.1.0" })),
    "config.unknown-field",
    "NodeRuntime.pinned.versoin",
  ],
  [
    "a Node from nowhere",
    () => NodeRuntime.fromFile("/nonexistent"),
    "files.unreadable",
    "NodeRuntime.fromFile",
  ],
  [
    "an upstream below nothing",
    (s) => new Upstream(new Construct(s.stack, "c"), "u", wrong({ uri: "http://x" })),
    "config.unknown-field",
    "stack/c/u.uri",
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
  [
    "a variable in place of an address",
    (s) => host({ address: variable(s) })(s),
    "config.wrong-type",
    "stack/h.address",
  ],
  [
    "a variable in place of a port",
    (s) => listener({ port: variable(s) })(s),
    "config.wrong-type",
    "stack/proxy/Listeners/l.port",
  ],
  [
    "a variable in place of a limit",
    (s) => proxy({ limits: { connectionsMax: variable(s) } })(s),
    "config.wrong-type",
    "stack/p.limits.connectionsMax",
  ],
  [
    "a variable in place of seconds",
    (s) => service({ stopTimeoutSeconds: variable(s) })(s),
    "config.wrong-type",
    "stack/s.stopTimeoutSeconds",
  ],
  [
    "a list in place of nameservers",
    (s) => host({ address: "192.0.2.1", nameservers: list(s) })(s),
    "config.wrong-type",
    "stack/h.nameservers",
  ],
  [
    "a list in place of names",
    (s) => s.frontEnd({ additionalServerNames: list(s) }),
    "config.wrong-type",
    "stack/files.additionalServerNames",
  ],
  [
    "a list in place of a command",
    (s) => settings({ startCommand: list(s) })(s),
    "config.wrong-type",
    "stack/a.startCommand",
  ],
  [
    "a list in place of ranges",
    (s) => firewall({ allowed: [{ port: 9090, from: list(s) }] })(s),
    "config.wrong-type",
    "stack/w.allowed[0].from",
  ],
  [
    "a list in place of names of a certificate",
    (s) => TlsMaterial.selfSigned({ dnsNames: list(s) }),
    "config.wrong-type",
    "TlsMaterial.selfSigned.dnsNames",
  ],
  [
    "a number of days",
    (s) => TlsMaterial.selfSigned({ validityDays: variable(s).numberValue }),
    "config.wrong-type",
    "TlsMaterial.selfSigned.validityDays",
  ],
  [
    "a word of paths",
    (s) => s.frontEnd({ pathPrefix: s.unknown }),
    "config.bad-route-path",
    "stack/files.pathPrefix",
  ],
]);
const contradictions = of("what does not go together", [
  [
    "two proxies on one port of a host",
    (s) => {
      const other = new ReverseProxy(s.stack, "p", { host: s.host, paths: { config: "/etc/p.json" } });
      const l = other.addListener("l", { port: 80, address: "192.0.2.10" });
      other.addVirtualServer("v", { serverNames: ["_"], listeners: [l], default: true });
    },
    "config.port-conflict",
    "stack/p/Listeners/l.port",
  ],
  [
    "a further name that is the host's",
    front({ additionalServerNames: ["192.0.2.20"] }),
    "config.duplicate-server-name",
    "stack/files.additionalServerNames[0]",
  ],
  [
    "a further name twice, with another between",
    front({ additionalServerNames: ["a", "b", "a"] }),
    "config.duplicate-server-name",
    "stack/files.additionalServerNames[2]",
  ],
  [
    "a name twice",
    server({ serverNames: ["a", "a"] }),
    "config.duplicate-server-name",
    "stack/proxy/VirtualServers/v.serverNames[1]",
  ],
  [
    "an IPv6 gateway without an IPv6 address",
    lan({}, { ipv6Gateway: "fe80::1" }),
    "network.bad-address",
    "stack/n.ipv6Gateway",
  ],
  [
    "an IPv6 prefix without an IPv6 address",
    lan({}, { ipv6PrefixLength: 64 }),
    "network.bad-address",
    "stack/n.ipv6PrefixLength",
  ],
  [
    "a resolver file without nameservers",
    lan({}, { resolverFile: true }),
    "network.bad-address",
    "stack/l.nameservers",
  ],
  [
    "an interface by name and address",
    network({ interface: { name: "eth0", macAddress: "52:54:00:12:34:56" } }),
    "network.bad-interface",
    "stack/n.interface",
  ],
]);
const acme = (options: Wrong) => () =>
  TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true, ...options });
const shapes = of("", [
  ["no interface at all", network({ interface: {} }), "network.bad-interface", "stack/n.interface"],
  [
    "an interface by `nmae`",
    network({ interface: { nmae: "eth0" } }),
    "config.unknown-field",
    "stack/n.interface.nmae",
  ],
  [
    "a MAC address with dashes",
    network({ interface: { macAddress: "52-54-00-12-34-56" } }),
    "network.bad-interface",
    "stack/n.interface.macAddress",
  ],
  [
    "an IPv6 prefix of no bits",
    lan({ ipv6Address: "2001:db8::1" }, { ipv6PrefixLength: 0 }),
    "network.bad-address",
    "stack/n.ipv6PrefixLength",
  ],
  ["a network file of another type", network({ name: "eth0" }), "network.bad-address", "stack/n.name"],
  ["a network file elsewhere", network({ name: "../x.network" }), "network.bad-address", "stack/n.name"],
  [
    "a listener without id",
    (s) => s.proxy.addListener(wrong({ port: 81 }), wrong(undefined)),
    "config.wrong-type",
    "stack/proxy.addListener",
  ],
  [
    "a route with an empty id",
    (s) => s.server.addRoute("", { path: "/r", action: Action.respond(200) }),
    "config.wrong-type",
    "stack/proxy/VirtualServers/site.addRoute",
  ],
  [
    "an upstream with the id of another",
    (s) => s.proxy.addUpstream("app", { url: "http://127.0.0.1:3001" }),
    "config.duplicate-id",
    "stack/proxy/Upstreams/app",
  ],
  [
    "a port that is a big integer",
    listener({ port: 80n }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.port",
  ],
  [
    "a port from a variable that is not set",
    listener({ port: Number(undefined) }),
    "config.wrong-type",
    "stack/proxy/Listeners/l.port",
  ],
  ["an upstream that is a URL object", url(new URL("http://a")), "config.wrong-type", AT_URL],
  ["a mode's name for a mode's options", mode("strict"), "config.wrong-type", "Mode.tls"],
  ["a server for a host", (s) => s.frontEnd({ host: s.server }), "config.wrong-type", "stack/files.host"],
  [
    "an install directory with a slash at its end",
    front({ installDirectory: "/srv/sync/" }),
    "config.bad-file-path",
    "stack/files.installDirectory",
  ],
  [
    "a directory of settings with a slash at its end",
    settings({ directory: "/srv/" }),
    "config.bad-file-path",
    "stack/a.directory",
  ],
  [
    "a relative directory of settings",
    settings({ directory: "out" }),
    "config.bad-file-path",
    "stack/a.directory",
  ],
  ["settings for no name", settings({ serverNames: [] }), "config.missing-field", "stack/a.serverNames"],
  [
    "settings for a URL",
    settings({ serverNames: ["https://a"] }),
    "settings.bad-value",
    "stack/a.serverNames[0]",
  ],
  [
    "settings for a name with a port",
    settings({ serverNames: ["a:80"] }),
    "settings.bad-value",
    "stack/a.serverNames[0]",
  ],
  ["settings with public port 0", settings({ publicPort: 0 }), "config.out-of-range", "stack/a.publicPort"],
  [
    "settings with a path for a prefix",
    settings({ pathPrefix: "/sync" }),
    "settings.bad-value",
    "stack/a.pathPrefix",
  ],
  [
    "a file server that is a URL",
    settings({ fileServer: { host: "http://x" } }),
    "settings.bad-value",
    "stack/a.fileServer.host",
  ],
  [
    "a file server on port 65536",
    settings({ fileServer: { port: 65_536 } }),
    "config.out-of-range",
    "stack/a.fileServer.port",
  ],
  [
    "a start command with a number",
    settings({ startCommand: ["/w", "start", 5] }),
    "config.wrong-type",
    "stack/a.startCommand[2]",
  ],
  ["a firewall with ports in a string", firewall({ ports: "80,443" }), "config.wrong-type", "stack/w.ports"],
  ["a firewall with ports as strings", firewall({ ports: ["80"] }), "config.wrong-type", "stack/w.ports[0]"],
  [
    "a firewall for a name",
    firewall({ allowed: [{ port: 9090, from: ["office"] }] }),
    "config.bad-address",
    "stack/w.allowed[0].from[0]",
  ],
  [
    "a firewall without addresses",
    firewall({ allowed: [{ port: 9090, from: [] }] }),
    "config.missing-field",
    "stack/w.allowed[0].from",
  ],
  [
    "a firewall with a relative program",
    firewall({ nftPath: "nft" }),
    "config.bad-file-path",
    "stack/w.nftPath",
  ],
  ["a firewall at a relative path", firewall({ path: "fw.nft" }), "config.bad-file-path", "stack/w.path"],
  ["a file with an object for content", file({ content: { a: 1 } }), "config.wrong-type", "stack/f.content"],
  [
    "a file with bytes for content",
    file({ content: Buffer.from("a") }),
    "config.wrong-type",
    "stack/f.content",
  ],
  ["a file with null for content", file({ content: null }), "config.wrong-type", "stack/f.content"],
  ["a file of the role `confg`", file({ role: "confg" }), "config.not-one-of", "stack/f.role"],
  [
    "a file from a directory",
    file({ content: undefined, source: __dirname }),
    "files.unreadable",
    "stack/f.source",
  ],
  ["a unit that is a string", unit({ unit: "[Service]" }), "unit.bad-value", "stack/u.unit"],
  [
    "a unit with the section `service`",
    unit({ unit: { service: {} } }),
    "unit.bad-value",
    "stack/u.unit.service",
  ],
  [
    "a unit with a string for a section",
    unit({ unit: { Service: "ExecStart=/a" } }),
    "unit.bad-value",
    "stack/u.unit.Service",
  ],
  [
    "a unit with null for a command",
    unit({ unit: { Service: { ExecStart: null } } }),
    "unit.bad-value",
    "stack/u.unit.Service.ExecStart",
  ],
  [
    "a unit with a command in a string",
    unit({ unit: { Service: { ExecStart: { command: "/a b" } } } }),
    "unit.bad-value",
    "stack/u.unit.Service.ExecStart",
  ],
  [
    "a unit with a number in a command",
    unit({ unit: { Service: { ExecStart: { command: ["/a", 5] } } } }),
    "unit.bad-value",
    "stack/u.unit.Service.ExecStart",
  ],
  [
    "a daemon with a number in its command",
    daemons({ webdav: { ...DAEMON, command: ["/d", 8080] } }),
    "config.wrong-type",
    "stack/d.webdav.command[1]",
  ],
  [
    "a daemon with an object in its environment",
    daemons({ webdav: { ...DAEMON, environment: { A: { b: 1 } } } }),
    "unit.bad-value",
    "stack/d.webdav.environment.A",
  ],
  [
    "a daemon as user:group",
    daemons({ webdav: { ...DAEMON, user: "a:b" } }),
    "unit.bad-value",
    "stack/d.webdav.user",
  ],
  [
    "a daemon that takes milliseconds to start",
    daemons({ webdav: { ...DAEMON, startTimeoutSeconds: 90_000 } }),
    "config.out-of-range",
    "stack/d.webdav.startTimeoutSeconds",
  ],
  [
    "a database that is not a unit",
    daemons({ databaseUnit: "my db", webdav: DAEMON }),
    "unit.bad-value",
    "stack/d.databaseUnit",
  ],
  [
    "a Node that is a directory",
    service({ nodePath: "/usr/bin/" }),
    "config.bad-file-path",
    "stack/s.nodePath",
  ],
  [
    "a Node from a directory",
    () => NodeRuntime.fromFile(__dirname),
    "files.unreadable",
    "NodeRuntime.fromFile",
  ],
  [
    "a Node from a variable that is not set",
    () => NodeRuntime.fromFile(wrong(undefined)),
    "config.missing-field",
    "NodeRuntime.fromFile.path",
  ],
  [
    "a certificate that is a directory",
    () => TlsMaterial.fromFiles({ certificate: "/etc/tls/", key: "/k" }),
    "config.bad-file-path",
    "TlsMaterial.fromFiles.certificate",
  ],
  [
    "a probe in milliseconds",
    front({ activation: { probe: { timeoutSeconds: 60_000 } } }),
    "config.out-of-range",
    "stack/files/Activation.probe.timeoutSeconds",
  ],
  [
    "a drop-in to start when something is wrong",
    front({ activation: { doctor: { onFailure: "mail.service.d/a.conf" } } }),
    "unit.bad-value",
    "stack/files/Activation.doctor.onFailure",
  ],
  [
    "a connection that takes milliseconds",
    ssh({ hostKey: KEY, connectTimeoutSeconds: 300_000 }),
    "config.out-of-range",
    "Delivery.ssh.connectTimeoutSeconds",
  ],
  [
    "a redirect with a string for a status",
    act(() => Action.redirect(wrong({ status: "301" }))),
    "config.not-one-of",
    `${AT_ROUTE}.action.status`,
  ],
  [
    "an answer with a string for options",
    act(() => Action.respond(200, wrong("hello"))),
    "config.wrong-type",
    "Action.respond",
  ],
  [
    "a virtual server without id",
    (s) => s.proxy.addVirtualServer(wrong({ serverNames: ["a.example"] }), wrong(undefined)),
    "config.wrong-type",
    "stack/proxy.addVirtualServer",
  ],
  [
    "an upstream without id",
    (s) => s.proxy.addUpstream(wrong({ url: "http://a" }), wrong(undefined)),
    "config.wrong-type",
    "stack/proxy.addUpstream",
  ],
  [
    "an action for another one, from a variable that is not set",
    (s) => s.server.routes[0]!.replaceAction(wrong(undefined)),
    "config.missing-field",
    "stack/proxy/VirtualServers/site/app.replaceAction.action",
  ],
  [
    "a certificate by ACME with `mail`",
    acme({ mail: "admin@example.org" }),
    "config.unknown-field",
    "TlsMaterial.acme.mail",
  ],
  [
    "a certificate by ACME with an agreement in words",
    acme({ agreeToTerms: "yes" }),
    "config.wrong-type",
    "TlsMaterial.acme.agreeToTerms",
  ],
  [
    "a certificate by ACME with an account's key alone",
    acme({ externalAccountBinding: { keyFile: "/etc/portico/eab" } }),
    "config.missing-field",
    "TlsMaterial.acme.externalAccountBinding.keyId",
  ],
]);

const elsewhere = of("what other proxies do", [
  ["TLS to an upstream", upstream({ url: "https://app:8443" }), "config.bad-url", AT_URL],
  ["a Unix socket", upstream({ url: "unix:/run/app.sock" }), "config.bad-url", AT_URL],
  [
    "several servers",
    upstream({ servers: ["a", "b"] }),
    "config.unknown-field",
    "stack/proxy/Upstreams/u.servers",
  ],
  [
    "a rewrite",
    act((s) => Action.proxy(s.app, wrong({ rewrite: "/x" }))),
    "config.unknown-field",
    "Action.proxy.rewrite",
  ],
  [
    "try_files",
    act(() => Action.staticFiles("/srv/page", wrong({ try_files: "/index.html" }))),
    "config.unknown-field",
    "Action.staticFiles.try_files",
  ],
  [
    "basic authentication",
    route({ path: "/a", basicAuth: "users" }),
    "config.unknown-field",
    `${AT_ROUTE}.basicAuth`,
  ],
  [
    "address lists",
    route({ path: "/a", allow: ["10.0.0.0/8"] }),
    "config.unknown-field",
    `${AT_ROUTE}.allow`,
  ],
  ["a pattern as a path", route({ path: "~ [.]php$" }), "config.bad-route-path", `${AT_ROUTE}.path`],
  ["compression", server({ gzip: true }), "config.unknown-field", "stack/proxy/VirtualServers/v.gzip"],
  [
    "error pages",
    server({ error_page: "/e.html" }),
    "config.unknown-field",
    "stack/proxy/VirtualServers/v.error_page",
  ],
  [
    "wildcards",
    server({ serverNames: ["*.example.org"] }),
    "config.bad-server-name",
    "stack/proxy/VirtualServers/v.serverNames[0]",
  ],
  ["HTTP/3", listener({ port: 8443, http3: true }), "config.unknown-field", "stack/proxy/Listeners/l.http3"],
]);

const PROXY_OVERRIDE = "stack/proxy.addConfigOverride.value";
class StackOfAnother extends TerraformStack {}
/** As the library of a class is noted by jsii. */
const RTTI = Symbol.for("jsii.rtti");
const isFork = (TerraformStack as unknown as Record<symbol, { fqn: string }>)[RTTI]!.fqn.startsWith("cdktn.");
/** The one of cdktf and its fork that is not used. */
export const OTHER_LIBRARY = isFork ? "cdktf" : "cdktn";
Object.defineProperty(StackOfAnother, RTTI, { value: { fqn: `${OTHER_LIBRARY}.TerraformStack` } });
const withoutCompiler = of("without a compiler", [
  [
    "a host in no scope",
    () => new Host(wrong(undefined), "h", { address: "192.0.2.9" }),
    "config.wrong-type",
    "h.scope",
  ],
  [
    "a host in an app",
    (s) => new Host(s.stack.node.root, "h", { address: "192.0.2.9" }),
    "config.wrong-type",
    "h.scope",
  ],
  [
    "a host with props for an id",
    (s) => new Host(s.stack, wrong({}), wrong(undefined)),
    "config.wrong-type",
    "stack",
  ],
  [
    "`Mode.tls` of a material",
    () => Mode.tls(wrong(TlsMaterial.selfSigned())),
    "config.wrong-type",
    "Mode.tls",
  ],
  ["a proxy of a host", (s) => new ReverseProxy(s.stack, "p", wrong(s.host)), "config.wrong-type", "stack/p"],
  ["a host of a proxy", (s) => new Host(s.stack, "h", wrong(s.proxy)), "config.wrong-type", "stack/h"],
  [
    "a stack of cdktn beside cdktf",
    (s) => new Host(new StackOfAnother(s.stack, "fork"), "h", { address: "192.0.2.9" }),
    "config.wrong-type",
    "stack/fork/h",
  ],
  [
    "all listeners of a front end in the place of a list",
    (s) =>
      s.proxy.addVirtualServer("v", {
        serverNames: ["a.example"],
        listeners: wrong(s.frontEnd({}).listeners),
      }),
    "config.wrong-type",
    "stack/proxy/VirtualServers/v.listeners",
  ],
  [
    "names that Terraform knows as a list",
    (s) => server({ serverNames: Fn.split(",", s.unknown) })(s),
    "config.wrong-type",
    "stack/proxy/VirtualServers/v.serverNames",
  ],
  [
    "an override with a construct",
    (s) => s.proxy.addConfigOverride("upstreams[0].queueTimeoutMs", s.app),
    "config.wrong-type",
    PROXY_OVERRIDE,
  ],
  [
    "an override with a construct inside",
    (s) => s.proxy.addConfigOverride("upstreams[0]", { url: s.app }),
    "config.wrong-type",
    `${PROXY_OVERRIDE}.url`,
  ],
  [
    "`resolve` of nothing",
    () => resolve(wrong(undefined), "http://a/"),
    "config.missing-field",
    "resolve(target)",
  ],
  ["`resolve` of null", () => resolve(wrong(null), "http://a/"), "config.wrong-type", "resolve(target)"],
  ["`resolve` of a path", () => resolve(wrong("stack"), "http://a/"), "config.wrong-type", "resolve(target)"],
  ["`resolve` of other data", () => resolve(wrong({}), "http://a/"), "config.wrong-type", "resolve(target)"],
  [
    "`resolve` without a request",
    (s) => resolve(s.stack, wrong(undefined)),
    "config.missing-field",
    "resolve(…, request)",
  ],
  ["`resolve` with a number", (s) => resolve(s.stack, wrong(5)), "config.wrong-type", "resolve(…, request)"],
  [
    "`resolve` with a URL object",
    (s) => resolve(s.stack, wrong(new URL("http://a/"))),
    "config.wrong-type",
    "resolve(…, request)",
  ],
  [
    "`renderProxyConfig` of nothing",
    () => renderProxyConfig(wrong(undefined)),
    "config.missing-field",
    "renderProxyConfig(target)",
  ],
  [
    "`renderProxyConfig` of data",
    () => renderProxyConfig(wrong({})),
    "config.wrong-type",
    "renderProxyConfig(target)",
  ],
  [
    "`synthesizedFiles` of nothing",
    () => synthesizedFiles(wrong(undefined)),
    "config.missing-field",
    "synthesizedFiles(target)",
  ],
  [
    "`synthesizedFile` of nothing",
    () => synthesizedFile(wrong(undefined), "/a"),
    "config.missing-field",
    "synthesizedFile(target)",
  ],
  [
    "`synthesizedFile` without a path",
    (s) => synthesizedFile(s.stack, wrong(undefined)),
    "config.missing-field",
    "synthesizedFile(…, path)",
  ],
]);

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
];
