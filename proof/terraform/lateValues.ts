/** A variable that gets into a stack: a value that is accepted, one that is not, and what is said of that one. */
export interface LateValue {
  readonly name: string;
  readonly type: "string" | "number" | "list(string)";
  readonly good: unknown;
  readonly bad: string;
  /** Construct path and prop, and the beginning of what is allowed. */
  readonly at: string;
  readonly allowed: string;
}

const value = (
  name: string,
  type: LateValue["type"],
  good: unknown,
  bad: string,
  at: string,
  allowed: string,
): LateValue => ({ name, type, good, bad, at, allowed });

const SPLIT = "an absolute path of letters, digits and ./_-+@,=~%";

const KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const URL = "http://HOST:PORT, with nothing after the port, or unix:/PATH";
const PORT = "a whole number from 1 to 65535";
const FILE = "an absolute path without `//`";
const NAME = "a lower-case host name or an IP address";

export const LATE_VALUES: readonly LateValue[] = [
  value("address", "string", "93.184.216.34", "example.org", "host.address", "a static IPv4 address"),
  value("ipv6", "string", "2a00:1450::1", "2a00:1450", "host.ipv6Address", "an IPv6 address"),
  value(
    "publicName",
    "string",
    "files.example.org",
    "Files.example.org:8080",
    "host.publicName",
    "a domain name",
  ),
  value("lanAddress", "string", "192.168.1.5", "192.168.1", "lan.address", "a static IPv4 address"),
  value("gateway", "string", "192.168.1.1", "192.168.1.256", "lan.gateway", "the router's IPv4 address"),
  value("dnsDomain", "string", "example.org", "Example", "lan.dnsDomain", "a domain name"),
  value("nameserver", "string", "9.9.9.9", "dns9", "lan.nameservers[1]", "an IPv4 or IPv6 address"),
  value("sshPort", "number", 2222, "0", "lan.sshPort", "a whole number from 1 to 65535"),
  value("interface", "string", "eth0", "eth0/1", "network.interface.name", "a name such as eth0"),
  value(
    "mac",
    "string",
    "52:54:00:12:34:56",
    "53:54:00:12:34:56",
    "network2.interface.macAddress",
    "an address",
  ),
  value("prefixLength", "number", 48, "129", "network.ipv6PrefixLength", "a whole number from 1 to 128"),
  value(
    "gateway6",
    "string",
    "fe80::1",
    "fe80::1%eth0",
    "network.ipv6Gateway",
    "an IPv6 address without zone",
  ),
  value(
    "ipv6ServerName",
    "string",
    "2001:db8::a",
    "2001:db8:0::a",
    "proxy/VirtualServers/site.serverNames[1]",
    "a lower-case host name",
  ),
  value(
    "logDirectory",
    "string",
    "/srv/logs",
    "/var/log/portico",
    "proxy.paths.logDirectory",
    "a directory outside",
  ),
  value(
    "certificate",
    "string",
    "/etc/ssl/site.pem",
    "/etc/ssl/my site.pem",
    "proxy/Listeners/https.tls.certificate",
    SPLIT,
  ),
  value("logDays", "number", 30, "0", "service.logDaysKept", "a whole number from 1 to 3650"),
  value(
    "settingsName",
    "string",
    "sync.example.org",
    "https://sync.example.org",
    "settings.serverNames[0]",
    NAME,
  ),
  value("settingsName6", "string", "2001:db8::5", "2001:db8:0::5", "settings.serverNames[1]", NAME),
  value("publicPort", "number", 443, "65536", "settings.publicPort", "a whole number from 1 to 65535"),
  value("prefix", "string", "sync", "/sync", "settings.pathPrefix", "one word of letters"),
  value("fileServerHost", "string", "127.0.0.1", "127.0.0.1:8082", "settings.fileServer.host", NAME),
  value("fileServerPort", "number", 8082, "-1", "settings.fileServer.port", "a whole number from 1 to 65535"),
  value(
    "dnsName",
    "string",
    "*.example.org",
    "192.0.2.7",
    "TlsMaterial.selfSigned.dnsNames[1]",
    "a lower-case domain name",
  ),
  value(
    "startArgument",
    "string",
    "--quiet",
    "--name=a b",
    "settings.startCommand[2]",
    "one word of letters",
  ),
  value("user", "string", "sync", "sync user", "daemons.webdav.user", "a name of an account"),
  value(
    "directory2",
    "string",
    "/srv/sync",
    "/srv/../sync",
    "daemons.webdav.workingDirectory",
    "an absolute path",
  ),
  value(
    "startTimeout",
    "number",
    60,
    "0",
    "daemons.webdav.startTimeoutSeconds",
    "a whole number from 1 to 86400",
  ),
  value(
    "argument",
    "string",
    "--port=8080",
    "--port 8080",
    "daemons/Webdav.unit.Service.ExecStart.command[1]",
    "one word of letters",
  ),
  value(
    "variable",
    "string",
    "info",
    "50%",
    "daemons/Webdav.unit.Service.Environment[0]",
    "one line without",
  ),
  value("workers", "number", 2, "0", "proxy.workers", '"auto"; or a whole number from 1 to 256'),
  value(
    "trusted",
    "list(string)",
    ["10.0.0.0/8", "::1"],
    '["10.0.0.0/8","10.0.0.0/33"]',
    "proxy.trustedProxies",
    "a list, each item an IP address or",
  ),
  value("listenerPort", "number", 8080, "70000", "proxy/Listeners/http.port", PORT),
  value(
    "listenerAddress",
    "string",
    "0.0.0.0",
    "0.0.0.256",
    "proxy/Listeners/http.address",
    "an IPv4 or IPv6 address",
  ),
  value(
    "listenerAddress6",
    "string",
    "::",
    "[::]",
    "proxy/Listeners/https.address",
    "an IPv4 or IPv6 address",
  ),
  value("urlHost", "string", "10.0.0.7", "user@10.0.0.7", "proxy/Upstreams/web.url", URL),
  value("urlPort", "string", "8000", "8000/app", "proxy/Upstreams/web.url", URL),
  value(
    "timeout",
    "number",
    5000,
    "1.5",
    "proxy/Upstreams/other.readTimeoutMs",
    "a whole number from 1 to 2147483647",
  ),
  value(
    "routePath",
    "string",
    "/web",
    "/web//x",
    "proxy/VirtualServers/site/web.path",
    "a path as routes see it",
  ),
  value(
    "strip",
    "string",
    "raw",
    "all",
    "proxy/VirtualServers/site/web.action.strip",
    '"none", "raw", "nginx"',
  ),
  value("directory", "string", "/srv", "/srv/..", "proxy/VirtualServers/site/files.action.directory", FILE),
  value(
    "fieldValue",
    "string",
    'a\tb; "c"',
    "café",
    "proxy/VirtualServers/site/gone.responseHeaders.set.X-Site",
    "1 to 4096 characters of visible ASCII",
  ),
  value(
    "fieldName",
    "string",
    "X-Powered-By",
    "X-Powered-By:",
    "proxy/VirtualServers/site/gone.responseHeaders.remove[0]",
    "a field name: a token",
  ),
  value(
    "status",
    "number",
    410,
    "600",
    "proxy/VirtualServers/site/gone.action.status",
    "a whole number from 200 to 599",
  ),
  value(
    "line",
    "string",
    "text/html",
    "text/html; x=é",
    "proxy/VirtualServers/site/gone.action.contentType",
    "visible ASCII",
  ),
  value("nodePath", "string", "/usr/bin/node", "node", "service.nodePath", "an absolute path of letters"),
  value("stopTimeout", "number", 30, "-1", "service.stopTimeoutSeconds", "a whole number from 1 to 604800"),
  value("openFiles", "number", 4096, "10", "service.openFilesMax", "a whole number from 256 to 1048576"),
  value("memory", "string", "40%", "40", "service.memoryMax", "`128M` or more"),
  value("firewallPort", "number", 8080, "0", "firewall.ports[0]", "a whole number from 1 to 65535"),
  value("allowedPort", "number", 9090, "65536", "firewall.allowed[0].port", "a whole number from 1 to 65535"),
  value(
    "range",
    "string",
    "10.0.0.0/8",
    "10.0.0.0/40",
    "firewall.allowed[0].from[1]",
    "an IP address or a CIDR range",
  ),
  value("closedPort", "number", 9091, "3306", "firewall.allowed[1].port", "a port that is open to others"),
  value(
    "range6",
    "string",
    "2001:db8::/32",
    "2001:db8::/129",
    "firewall.allowed[0].from[2]",
    "an IP address or",
  ),
  value("path", "string", "/etc/note", "/etc/../note/", "note.path", "an absolute path of a file"),
  value("applied", "string", "http://127.0.0.1:9000", "https://127.0.0.1", "proxy/Upstreams/other.url", URL),
];

/** Values of a connection over ssh: nothing is made before they are checked. */
export const LATE_CONNECTION: readonly LateValue[] = [
  value(
    "sshAddress",
    "string",
    "files.example.org",
    "root@files",
    "Delivery.ssh.address",
    "a host name or an IP",
  ),
  value("sshPort", "number", 2222, "0", "Delivery.ssh.port", "a whole number from 1 to 65535"),
  value("sshUser", "string", "admin", "ad min", "Delivery.ssh.user", "a user name"),
  value(
    "hostKey",
    "string",
    `${KEY} root@files\n`,
    "SHA256:abc",
    "Delivery.ssh.hostKey",
    "type and key as in",
  ),
  value(
    "seconds",
    "number",
    60,
    "3601",
    "Delivery.ssh.connectTimeoutSeconds",
    "a whole number from 1 to 3600",
  ),
  value(
    "scriptPath",
    "string",
    "/opt/deploy/%RAND%.sh",
    "/tmp/%RAND%.sh",
    "Delivery.ssh.scriptPath",
    "a directory that only the user",
  ),
  value("gate", "string", "gate", "root@gate", "Delivery.ssh.bastion.address", "a host name or an IP"),
  value("gatePort", "number", 22, "65536", "Delivery.ssh.bastion.port", "a whole number from 1 to 65535"),
  value("gateUser", "string", "admin", "-admin", "Delivery.ssh.bastion.user", "a user name"),
  value("gateKey", "string", KEY, "gate", "Delivery.ssh.bastion.hostKey", "type and key as in"),
  value("rootUser", "string", "root", "admin", "Delivery.ssh.user", "`root`, or any user with"),
  value("hostAddress", "string", "192.0.2.9", "files", "files.address", "a static IPv4 address"),
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
