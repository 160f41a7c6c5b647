import type { ProblemCode } from "../src/model/index.js";

/** A variable that gets into a stack: a value that is accepted, one that is not, and what is said of that one. */
export interface LateValue {
  readonly name: string;
  readonly good: unknown;
  readonly bad: string;
  /** The field of the config, or else construct path and prop, and the beginning of what is allowed. */
  readonly at: string;
  readonly allowed: string;
  /** What the host says; Terraform's checks of a connection have their own texts. */
  readonly code?: ProblemCode;
}

const value = (
  name: string,
  good: unknown,
  bad: string,
  at: string,
  allowed: string,
  code?: ProblemCode,
): LateValue => ({
  name,
  good,
  bad,
  at,
  allowed,
  ...(code && { code }),
});

const SPLIT = "an absolute path of letters, digits and ./_-+@,=~%";

const KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const URL = "http://HOST:PORT or https://HOST:PORT in lower case, with nothing after the port, or unix:/PATH";
const FILE = "an absolute path without `//`";
const SITE = "virtualServers[0]";
const GONE = `${SITE}.routes[3]`;
const NAME = "a lower-case host name or an IP address";

/** The type of the variable. */
export const typeOf = (good: unknown): string => (Array.isArray(good) ? "list(string)" : typeof good);

export const LATE_VALUES: readonly LateValue[] = [
  value("address", "93.184.216.34", "example.org", "host.address", "a static IPv4 address", "host.bad-ipv4"),
  value("ipv6", "2a00:1450::1", "2a00:1450", "host.ipv6Address", "an IPv6 address", "host.bad-ipv6"),
  value(
    "publicName",
    "files.example.org",
    "Files.example.org:8080",
    "host.publicName",
    "a domain name",
    "host.bad-name",
  ),
  value(
    "gateway",
    "93.184.216.1",
    "93.184.216.256",
    "host.gateway",
    "the router's IPv4 address",
    "host.bad-network",
  ),
  value("dnsDomain", "example.org", "Example", "host.dnsDomain", "a domain name", "host.bad-name"),
  value(
    "nameserver",
    "9.9.9.9",
    "dns9",
    "host.nameservers[1]",
    "an IPv4 or IPv6 address",
    "host.bad-nameserver",
  ),
  value("sshPort", 2222, "0", "host.sshPort", "a whole number from 1 to 65535", "config.out-of-range"),
  value(
    "interface",
    "eth0",
    "eth0/1",
    "network.interface.name",
    "a name such as eth0",
    "network.bad-interface",
  ),
  value(
    "mac",
    "52:54:00:12:34:56",
    "53:54:00:12:34:56",
    "network2.interface.macAddress",
    "an address",
    "network.bad-interface",
  ),
  value(
    "prefixLength",
    48,
    "129",
    "network.ipv6PrefixLength",
    "a whole number from 1 to 128",
    "config.out-of-range",
  ),
  value(
    "gateway6",
    "fe80::1",
    "fe80::1%eth0",
    "network.ipv6Gateway",
    "an IPv6 address",
    "network.bad-address",
  ),
  value(
    "ipv6ServerName",
    "2001:db8::a",
    "2001:db8:0::a",
    `${SITE}.serverNames[1]`,
    "a lower-case",
    "config.bad-server-name",
  ),
  value(
    "logDirectory",
    "/srv/logs",
    "/var/log/portico",
    "proxy.paths.logDirectory",
    "a directory",
    "unit.bad-value",
  ),
  value(
    "certificate",
    "/etc/ssl/site.pem",
    "/etc/ssl/my site.pem",
    "proxy/Listeners/https.tls.certificate",
    SPLIT,
    "unit.bad-value",
  ),
  value("logDays", 30, "0", "service.logDaysKept", "a whole number from 1 to 3650", "config.out-of-range"),
  value(
    "settingsName",
    "sync.example.org",
    "https://sync.example.org",
    "settings.serverNames[0]",
    NAME,
    "settings.bad-value",
  ),
  value(
    "settingsName6",
    "2001:db8::5",
    "2001:db8:0::5",
    "settings.serverNames[1]",
    NAME,
    "settings.bad-value",
  ),
  value(
    "publicPort",
    443,
    "65536",
    "settings.publicPort",
    "a whole number from 1 to 65535",
    "config.out-of-range",
  ),
  value("prefix", "sync", "/sync", "settings.pathPrefix", "one word of letters", "settings.bad-value"),
  value(
    "fileServerHost",
    "127.0.0.1",
    "127.0.0.1:8082",
    "settings.fileServer.host",
    NAME,
    "settings.bad-value",
  ),
  value(
    "fileServerPort",
    8082,
    "-1",
    "settings.fileServer.port",
    "a whole number from 1 to 65535",
    "config.out-of-range",
  ),
  value(
    "dnsName",
    "*.example.org",
    "192.0.2.7",
    "TlsMaterial.selfSigned.dnsNames[1]",
    "a lower-case",
    "config.bad-server-name",
  ),
  value(
    "startArgument",
    "--quiet",
    "--name=a b",
    "settings.startCommand[2]",
    "one word of letters",
    "unit.bad-value",
  ),
  value(
    "startWord",
    "--debug",
    "START-FASTCGI",
    "settings.startCommand",
    "a variant that speaks HTTP",
    "unit.fastcgi-start",
  ),
  value("user", "sync", "sync user", "daemons.webdav.user", "an account name of", "unit.bad-value"),
  value(
    "directory2",
    "/srv/sync",
    "/srv/../sync",
    "daemons.webdav.workingDirectory",
    "an absolute path",
    "config.bad-file-path",
  ),
  value(
    "startTimeout",
    60,
    "0",
    "daemons.webdav.startTimeoutSeconds",
    "a whole number from 1 to 86400",
    "config.out-of-range",
  ),
  value(
    "argument",
    "--port=8080",
    "--port 8080",
    "daemons/Webdav.unit.Service.ExecStart.command[1]",
    "one word of letters",
    "unit.bad-value",
  ),
  value(
    "variable",
    "info",
    "50%",
    "daemons/Webdav.unit.Service.Environment[0]",
    "one line",
    "unit.bad-value",
  ),
  value("workers", 2, "0", "workers", "at least 1", "config.out-of-range"),
  value(
    "trusted",
    ["10.0.0.0/8", "::1"],
    '["10.0.0.0/8","10.0.0.0/33"]',
    "trustedProxies[1]",
    "an IP address or",
    "config.bad-address",
  ),
  value("listenerPort", 8080, "70000", "listeners[0].port", "at most 65535", "config.out-of-range"),
  value(
    "listenerAddress",
    "0.0.0.0",
    "0.0.0.256",
    "listeners[0].address",
    "an IPv4 or IPv6 address",
    "config.bad-address",
  ),
  value(
    "listenerAddress6",
    "::",
    "[::]",
    "listeners[1].address",
    "an IPv4 or IPv6 address",
    "config.bad-address",
  ),
  value("urlHost", "10.0.0.7", "user@10.0.0.7", "upstreams[0].url", URL, "config.bad-url"),
  value("urlPort", "8000", "8000/app", "upstreams[0].url", URL, "config.bad-url"),
  value("timeout", 5000, "1.5", "upstreams[1].readTimeoutMs", "a whole number", "config.wrong-type"),
  value(
    "routePath",
    "/web",
    "/web//x",
    `${SITE}.routes[0].path`,
    "a decoded path of visible ASCII",
    "config.bad-route-path",
  ),
  value("strip", "raw", "all", `${SITE}.routes[0].action.strip`, "none, raw, nginx", "config.not-one-of"),
  value("directory", "/srv", "/srv/..", `${SITE}.routes[2].action.directory`, FILE, "config.bad-file-path"),
  value(
    "fieldValue",
    'a\tb; "c"',
    "café",
    `${GONE}.responseHeaders.set.X-Site`,
    "1 to 4096 characters",
    "config.bad-header",
  ),
  value(
    "fieldName",
    "X-Powered-By",
    "X-Powered-By:",
    `${GONE}.responseHeaders.remove[0]`,
    "a field name (a token)",
    "config.bad-header",
  ),
  value("status", 410, "600", `${GONE}.action.status`, "at most 599", "config.out-of-range"),
  value(
    "line",
    "text/html",
    "text/html; x=é",
    `${GONE}.action.contentType`,
    "visible ASCII",
    "config.bad-text",
  ),
  value("nodePath", "/usr/bin/node", "node", "service.nodePath", "an absolute path", "config.bad-file-path"),
  value(
    "stopTimeout",
    30,
    "-1",
    "service.stopTimeoutSeconds",
    "a whole number from 1 to 604800",
    "config.out-of-range",
  ),
  value(
    "openFiles",
    4096,
    "10",
    "service.openFilesMax",
    "a whole number from 256 to 1048576",
    "config.out-of-range",
  ),
  value("memory", "40%", "40", "service.memoryMax", "`128M` or more", "unit.bad-value"),
  value(
    "firewallPort",
    8080,
    "0",
    "firewall.ports[0]",
    "a whole number from 1 to 65535",
    "config.out-of-range",
  ),
  value(
    "allowedPort",
    9090,
    "65536",
    "firewall.allowed[0].port",
    "a whole number from 1 to 65535",
    "config.out-of-range",
  ),
  value(
    "range",
    "10.0.0.0/8",
    "10.0.0.0/40",
    "firewall.allowed[0].from[1]",
    "an IP address or a CIDR range",
    "config.bad-address",
  ),
  value(
    "closedPort",
    9091,
    "3306",
    "firewall.allowed[1].port",
    "a port that other hosts may reach",
    "firewall.loopback-port",
  ),
  value(
    "range6",
    "2001:db8::/32",
    "2001:db8::/129",
    "firewall.allowed[0].from[2]",
    "an IP address or",
    "config.bad-address",
  ),
  value("path", "one", "//two", "note.path", "an absolute path of a file", "config.bad-file-path"),
  value("applied", "http://127.0.0.1:9000", "ftp://127.0.0.1", "upstreams[1].url", URL, "config.bad-url"),
];

/** Values of a connection over ssh, which no host can check: nothing is made before Terraform checks them. */
export const LATE_CONNECTION: readonly LateValue[] = [
  value("sshAddress", "files.example.org", "root@files", "Delivery.ssh.address", "a host name or an IP"),
  value("sshUser", "admin", "ad min", "Delivery.ssh.user", "a user name"),
  value("hostKey", `${KEY} root@files\n`, "SHA256:abc", "Delivery.ssh.hostKey", "type and key as in"),
  value(
    "scriptPath",
    "/opt/deploy/%RAND%.sh",
    "/tmp/%RAND%.sh",
    "Delivery.ssh.scriptPath",
    "a path in a directory that only",
  ),
  value("gate", "gate", "root@gate", "Delivery.ssh.bastion.address", "a host name or an IP"),
  value("gateUser", "admin", "-admin", "Delivery.ssh.bastion.user", "a user name"),
  value("gateKey", KEY, "gate", "Delivery.ssh.bastion.hostKey", "type and key as in"),
  value("rootUser", "root", "admin", "Delivery.ssh.user", "`root`, or any user with"),
];

/** Addresses of a host, and the DNS records that it gets for them. */
export const LATE_RECORDS: readonly {
  readonly address: string;
  readonly ipv6: string;
  readonly records: readonly { readonly type: string; readonly value: string }[];
}[] = [
  { address: "192.168.1.2", ipv6: "fd00::1", records: [] },
  { address: "100.64.0.1", ipv6: "2001:db8::1", records: [] },
  { address: "8.8.8.8", ipv6: "fe80::1", records: [{ type: "A", value: "8.8.8.8" }] },
  { address: "224.0.0.1", ipv6: "2606:4700::1", records: [{ type: "AAAA", value: "2606:4700::1" }] },
  // An IPv6 address becomes canonical.
  {
    address: "8.8.8.8",
    ipv6: "2606:4700:0:0::00AB",
    records: [
      { type: "A", value: "8.8.8.8" },
      { type: "AAAA", value: "2606:4700::ab" },
    ],
  },
];
