import { parseConfig, parseConfigText } from "../../../src/model/index.js";
import type { Problem, Result } from "../../../src/model/index.js";
import type { ErrorEntry } from "./entry.js";

/** A config without a problem; each example changes something about it. */
const config = () => ({
  version: 1,
  listeners: [
    { name: "http", address: "0.0.0.0", port: 80, protocol: "http" },
    {
      name: "https",
      address: "0.0.0.0",
      port: 443,
      protocol: "https",
      tls: { certificate: "/etc/portico/tls/cacert.pem", key: "/etc/portico/tls/privkey.pem" },
    },
  ],
  upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
  virtualServers: [
    {
      name: "redirect",
      serverNames: ["files.example.org"],
      listeners: ["http"],
      default: true,
      routes: [{ name: "all", path: "/", action: { type: "redirect" } }],
    },
    {
      name: "application",
      serverNames: ["files.example.org"],
      listeners: ["https"],
      default: true,
      routes: [{ name: "web", path: "/files", action: { type: "proxy", upstream: "web" } }],
    },
  ],
});

function only<T>(result: Result<T>): Problem {
  if (result.ok || result.problems.length !== 1)
    throw new Error("an example of errors.md does not have exactly one problem");
  return result.problems[0]!;
}

/** The config with one field replaced: `listeners[0].port`. `undefined` removes it. */
function withField(path: string, value: unknown): ErrorEntry["example"] {
  return () => {
    const changed = config();
    const steps = path.split(/[.[\]]+/).filter((step) => step !== "");
    const last = steps.pop()!;
    const object = steps.reduce((at, step) => at[step] as Fields, changed as unknown as Fields);
    if (value === undefined) delete object[last];
    else object[last] = value;
    return only(parseConfig(changed));
  };
}

/** The config with a guard of its second virtual server. */
function guarded(more: object, address = "0.0.0.0"): Problem {
  const { listeners, virtualServers, ...rest } = config();
  const servers = virtualServers.map((one, i) =>
    i === 0 ? one : { ...one, passwordGuard: "site", ...more },
  );
  return only(
    parseConfig({
      ...{ ...rest, passwordGuards: { site: {} }, virtualServers: servers },
      listeners: [listeners[0], { ...listeners[1], address }],
    }),
  );
}

type Fields = Record<string, unknown> & { [step: string]: Fields | unknown };

/** An authority's `dns`. */
const UPDATES = {
  type: "rfc2136",
  server: { address: "192.0.2.53" },
  zone: "example.org",
  keyFile: "/etc/portico/acme-update.key",
};

/** The config with a certificate by ACME, and one thing wrong about it. */
function withAcme(acme: object, authority: object = {}, more: object = {}): ErrorEntry["example"] {
  return () => {
    const { listeners, ...rest } = config();
    const [http, https] = listeners;
    const tls = { acme: { authority: "letsencrypt", names: ["files.example.org"], ...acme }, ...more };
    const certificateAuthorities = [{ name: "letsencrypt", agreeToTerms: true, ...authority }];
    return only(parseConfig({ ...rest, certificateAuthorities, listeners: [http, { ...https, tls }] }));
  };
}

const listener = { name: "other", address: "0.0.0.0", port: 80, protocol: "http" };
const route = { name: "more", path: "/files", action: { type: "proxy", upstream: "web" } };

/** Codes of `portico.json`; the constructs report the same codes, at the path of the construct. */
export const CONFIG_ERRORS = {
  "config.not-json": {
    means:
      "The file is not valid JSON, so nothing else in it was checked. JSON has no comments, and no comma after the last item.",
    cause: '{ "version": 1, }',
    example: () => ({ ...only(parseConfigText('{ "version": 1, }')), path: "/etc/portico/portico.json" }),
  },
  "config.repeated-field": {
    means: "An object of the file has two fields of this name. Only the last one would have an effect.",
    cause: '{ "version": 1, …, "workers": 1, "workers": 2 }',
    example: () =>
      only(parseConfigText(JSON.stringify(config()).replace(/\}$/, ',"workers":1,"workers":2}'))),
  },
  "config.unsupported-version": {
    means:
      "The file has a format that this release does not know, most likely the format of a newer release. Nothing else in it was checked.",
    example: withField("version", 2),
  },
  "config.missing-field": {
    means: "A required field is missing.",
    example: withField("listeners[0].port", undefined),
  },
  "config.unknown-field": {
    means:
      "The object has no field of this name. Portico refuses unknown fields, because a misspelled field would have no effect. If a known name is similar, the fix suggests it.",
    example: withField("upstreams[0].connectTimeout", 1000),
  },
  "config.wrong-type": {
    means:
      "The value has the wrong type, such as a text instead of a number, or a single item instead of a list.",
    example: withField("listeners[0].port", "80"),
  },
  "config.out-of-range": {
    means:
      "The number is smaller or larger than the field allows, the text is too long, or the list has too few or too many items. [config.md](config.md) gives the range of every field.",
    example: withField("listeners[0].port", 70_000),
  },
  "config.not-one-of": {
    means: "The field takes one of a few values, and this value is not among them.",
    example: withField("listeners[0].protocol", "tcp"),
  },
  "config.bad-name": {
    means:
      "Names appear in logs, in checks and in other fields, so they may contain only certain characters.",
    example: withField("upstreams[0].name", "web application"),
  },
  "config.bad-address": {
    means:
      "The value is not an IP address (or a range, where the field takes one). Host names are not accepted, and an IPv6 address has no brackets. A range begins with its first address: in `10.0.0.5/8`, either the address or the range may be meant.",
    example: withField("listeners[0].address", "localhost"),
  },
  "config.bad-server-name": {
    means:
      "The proxy compares names with the host of the request, in lower case and without the port. Only server names may have a wildcard: in `*.example.org`, `*` stands for one label.",
    example: withField("virtualServers[1].serverNames", ["files.example.org:443"]),
  },
  "config.bad-url": {
    means:
      "The URL of an upstream is a host and a port for HTTP, with `https` for HTTP over TLS. A path after the port would have no effect.",
    example: withField("upstreams[0].url", "http://127.0.0.1:8000/app"),
  },
  "config.bad-file-path": {
    means: "A path on the host must be absolute and normalised, so that a file has only one path.",
    example: withField("virtualServers[1].errorPages", [{ statuses: [404], file: "pages/404.html" }]),
  },
  "config.bad-route-path": {
    means:
      "The proxy compares the path of a route with the decoded and normalised path of the request, so the path of the route must have the same form.",
    example: withField("virtualServers[1].routes[0].path", "files/"),
  },
  "config.bad-redirect-path": {
    means:
      "The proxy writes the path of a redirect into `Location` unchanged, so the path must be percent-encoded. Scheme, host and port are separate fields.",
    example: withField("virtualServers[1].routes[0].action", { type: "redirect", path: "sync/" }),
  },
  "config.bad-rewrite": {
    means:
      "The proxy sends the path of a rewrite to the upstream unchanged, in place of the route's path, so the path must be percent-encoded. The client's query follows the path.",
    example: withField("virtualServers[1].routes[0].action.rewrite", "api?x=1"),
  },
  "config.bad-header": {
    means:
      "The field name is not a token, the value contains characters that would end the line, or only the proxy may set the field: `Host`, and the fields of the connection and the framing.",
    example: withField("virtualServers[1].routes[0].action.setHeaders", { "Transfer-Encoding": "chunked" }),
  },
  "config.reserved-response-field": {
    means:
      "The value of the field depends on the response, or belongs to the connection or the framing, so a fixed value would make the response wrong or unreadable. Some of these fields may be removed; [response-headers.md](response-headers.md) lists them.",
    example: withField("virtualServers[1].responseHeaders", { set: { ETag: '"1"' } }),
  },
  "config.duplicate-response-field": {
    means:
      "A field is listed twice in one place: in `set`, in `remove` or by a separate option. Field names are case-insensitive.",
    example: withField("virtualServers[1].responseHeaders", {
      set: { "X-Frame-Options": "DENY" },
      remove: ["x-frame-options"],
    }),
  },
  "config.bad-error-page": {
    means:
      "An error page, or the page of a maintenance, is empty, longer than 32 KiB or not in UTF-8, contains too many placeholders, or contains an unknown placeholder, which users would see as a text in double braces. If the page itself needs double braces, write the first brace as `&#123;`.",
    example: withField("virtualServers[1].errorPages", [{ statuses: [502], html: "<p>Error {{code}}</p>" }]),
  },
  "config.duplicate-error-page": {
    means: "A status has two pages in one virtual server, or is listed twice.",
    example: withField("virtualServers[1].errorPages", [
      { statuses: [502, 503], html: "<p>Back soon.</p>" },
      { statuses: [503], file: "/etc/portico/pages/busy.html" },
    ]),
  },
  "config.hsts-without-tls": {
    means:
      "The proxy must not send `Strict-Transport-Security` over plain HTTP (RFC 6797, 7.2), so on this virtual server it would never send the field.",
    example: withField("virtualServers[0].hsts", {}),
  },
  "config.hsts-preload": {
    means:
      "Browsers add a name to their preload list only together with all names below it, and for at least a year. The other fields of `hsts` do not meet these rules.",
    example: withField("virtualServers[1].hsts", { preload: true }),
  },
  "config.bad-cipher-string": {
    means:
      "The text contains characters that do not occur in a list of ciphers. For ciphers that OpenSSL does not know, see [`tls.bad-policy`](#tlsbad-policy).",
    example: withField("listeners[1].tls.policy", {
      minVersion: "TLSv1.2",
      maxVersion: "TLSv1.3",
      ciphers: "ECDHE+AESGCM; DHE",
      curves: ["X25519"],
    }),
  },
  "config.bad-text": {
    means:
      "The text becomes part of a header field, a settings file or a document, where other characters would be cut off, end the line or change the meaning.",
    example: withField("virtualServers[1].routes[0].action", {
      type: "staticFiles",
      directory: "/srv/files/media",
      cacheControl: "no-cache\n",
    }),
  },
  "config.duplicate-name": {
    means: "Two items of the same kind have the same name, so a reference to the name would be ambiguous.",
    example: withField("upstreams[1]", { name: "web", url: "http://127.0.0.1:8080" }),
  },
  "config.unknown-reference": {
    means:
      "A field names a listener, an upstream or another item that does not exist, or a construct is outside the construct that it belongs to.",
    example: withField("virtualServers[1].routes[0].action.upstream", "app"),
  },
  "config.duplicate-listener": {
    means:
      "Two listeners have the same address and port. A listener can serve any number of virtual servers.",
    example: withField("listeners[0]", { ...listener, name: "http", port: 443 }),
  },
  "config.port-conflict": {
    means:
      "A listener on a wildcard address takes the port on every address of its family, so no other listener of this family can use the port. This includes the health listener and the metrics listener. In a stack, Portico also refuses the port of the host's SSH server and the ports of another proxy on the host.",
    example: withField("listeners[0]", { ...listener, name: "http", address: "192.0.2.10", port: 443 }),
  },
  "config.public-health-listener": {
    means:
      "The health listener responds to every client that can connect to it, so its address must not be public. A wildcard address, as in a container, needs `anyAddress: true`.",
    example: withField("healthListener", { address: "0.0.0.0", port: 9180 }),
  },
  "config.notification-url": {
    means:
      "A notification target has no URL, has a URL both in the config and in a file, or has a URL in the config that is not `https` or contains a user, a query or a fragment. If the URL itself is a secret, as for many services, it belongs in a file.",
    example: withField("notifications", { targets: [{ type: "webhook", name: "office" }] }),
  },
  "config.public-metrics-listener": {
    means:
      "The metrics listener shows the names of servers, routes and upstreams and the amount of traffic to every client that can connect to it. So its address must not be public, unless `allow` lists the clients that may connect.",
    example: withField("metricsListener", { address: "0.0.0.0", port: 9181 }),
  },
  "config.tls-missing": {
    means: "An https listener has no certificate.",
    example: withField("listeners[1].tls", undefined),
  },
  "config.tls-unexpected": {
    means:
      "A listener, an upstream or a virtual server without TLS has a `tls` section, which would have no effect; or an upstream with `verify: false` has `caFile`, which would have no effect either.",
    example: withField("listeners[1].protocol", "http"),
  },
  "config.certificate-source": {
    means:
      "A certificate comes either from two files or from an authority by ACME. If both are set, one of them would have no effect.",
    example: withAcme({}, {}, { key: "/etc/portico/tls/privkey.pem" }),
  },
  "acme.bad-name": {
    means:
      "The proxy requests certificates for host names and IP addresses. In a wildcard name such as `*.example.org`, `*` is the whole first label.",
    example: withAcme({ names: ["www.*.example.com"] }),
  },
  "acme.bad-directory": {
    means: "An authority is identified by the URL of its directory, which is always `https` (RFC 8555, 6.1).",
    example: withAcme({}, { directory: "http://ca.example.org/directory" }),
  },
  "acme.bad-email": {
    means: "The authority uses this address for messages about the account, if it sends any.",
    example: withAcme({}, { email: "admin" }),
  },
  "acme.terms-not-agreed": {
    means:
      "An authority issues certificates only to users who agree to its terms of service, and only you can agree. The authority's directory names the document.",
    example: withAcme({}, { agreeToTerms: false }),
  },
  "acme.private-name": {
    means:
      "Public authorities certify only names and addresses that identify the same host everywhere on the internet. Portico considers an authority with `roots` to be private; such an authority may certify any name.",
    example: withAcme({ names: ["192.168.1.10"] }),
  },
  "acme.wildcard-challenge": {
    means:
      "Authorities issue a wildcard certificate only if a DNS record of the domain proves the name (RFC 8555, 8.4). [certificates.md](certificates.md#wildcard-names-and-names-that-the-authority-cannot-reach) shows three ways to write the record.",
    example: withAcme({ names: ["*.example.com"] }),
  },
  "acme.address-challenge": {
    means: "An authority does not accept a DNS record as the proof of an IP address (RFC 8738, 7).",
    example: withAcme({ names: ["192.0.2.10"] }, { roots: "/etc/portico/roots.pem", dns: UPDATES }),
  },
  "acme.dns-missing": {
    means:
      "The challenge `dns-01` needs `dns`, which says how the DNS records are written. The other challenges do not use `dns`.",
    example: withAcme({}, { challenge: "dns-01" }),
  },
  "acme.outside-zone": {
    means:
      "An update changes one zone of a DNS server, and the record must be in this zone. The name of the record is `_acme-challenge.` followed by the name without `*.`, or the value of `alias`.",
    example: withAcme({ names: ["files.example.com"] }, { dns: UPDATES }),
  },
  "acme.key-type": {
    means:
      "The ciphers of the policy exclude this type of key, so no client could complete a handshake. The policy `file-sync` excludes ECDSA, and another policy may exclude RSA. Without `keyType`, Portico chooses a type that fits the policy.",
    example: withAcme({ keyType: "ecdsa-p256" }),
  },
  "acme.no-http-listener": {
    means:
      "For the challenge `http-01`, the authority requests a file on port 80 of each name. Without an http listener, the proxy cannot respond to the request. Behind a router, the listener may have another port.",
    example: () => {
      const certificateAuthorities = [{ name: "letsencrypt", agreeToTerms: true, challenge: "http-01" }];
      const [, https] = config().listeners;
      const tls = { acme: { authority: "letsencrypt", names: ["files.example.org"] } };
      const [, server] = config().virtualServers;
      const { version, upstreams } = config();
      return only(
        parseConfig({
          version,
          certificateAuthorities,
          listeners: [{ ...https, tls }],
          upstreams,
          virtualServers: [server],
        }),
      );
    },
  },
  "config.duplicate-server-name": {
    means:
      "Two virtual servers of a listener have the same name, or a name is listed twice, so it is ambiguous which server takes the requests.",
    example: withField("virtualServers[1].serverNames", ["files.example.org", "files.example.org"]),
  },
  "config.duplicate-default-server": {
    means:
      "Two virtual servers are the default server of the same listener, which takes requests for unknown names.",
    example: withField("virtualServers[2]", {
      name: "other",
      serverNames: ["other.example.org"],
      listeners: ["https"],
      default: true,
      routes: [],
    }),
  },
  "config.no-default-server": {
    means:
      "No virtual server would take a request for an unknown name on this listener. Portico does not choose a default server.",
    example: withField("virtualServers[1].default", false),
  },
  "config.duplicate-route": {
    means: "Two routes of a virtual server have the same path and the same kind of match.",
    example: withField("virtualServers[1].routes[1]", route),
  },
  "config.shadowed-route": {
    means:
      "A `prefix` route whose path ends in `/` never matches if there is a `segment` route with the same path, which takes all its requests.",
    example: withField("virtualServers[1].routes", [
      { ...route, path: "/media/" },
      { ...route, name: "all", path: "/media/", match: "prefix" },
    ]),
  },
  "config.redirect-loop": {
    means:
      "The redirect leads back to the same listener, name and path, possibly by other redirects, so a client would follow it forever.",
    example: withField("virtualServers[1].routes[0].action", { type: "redirect" }),
  },
  "config.placeholder": {
    means:
      "Values are sent as they are written: names that nginx, Caddy, HAProxy or Apache replace have no meaning here, and the client or the upstream would get them literally.",
    example: withField("virtualServers[1].routes[0].action", {
      type: "proxy",
      upstream: "web",
      setHeaders: { "X-Client": "$remote_addr" },
    }),
  },
  "config.body-not-allowed": {
    means: "A response with this status has no body (RFC 9110, 15).",
    example: withField("virtualServers[1].routes[0].action", { type: "respond", status: 204, body: "done" }),
  },
  "config.bad-servers": {
    means:
      "The servers of an upstream contradict each other or another field: a server is listed twice, all servers are backups, `url` is set together with `servers`, `sticky` has no cookie or two, a field that shares requests out (`sticky`, `health`, `balance`, `slowStartMs`, `weight`) is set for a single server, `holdMs` is set for several, or `spread` is set without a host name. A single server gets every request, so these fields have no effect on it.",
    example: withField("upstreams[0]", {
      name: "web",
      servers: [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.7:8000" }],
    }),
  },
  "config.used-once": {
    means:
      "A PROXY protocol header names one client for the whole connection, so the proxy uses each such connection for one request only. Fields that limit how many idle connections the proxy keeps, and for how long, have no effect.",
    example: withField("upstreams[0]", {
      name: "web",
      url: "http://10.0.0.7:8000",
      proxyProtocol: "v2",
      idleTimeoutMs: 5_000,
    }),
  },
  "config.bad-cookie": {
    means:
      "The name of a cookie is a token (RFC 6265, 4.1.1): it contains no space and no separator such as `=`, `;` or `,`. Clients accept names that begin with `__Host-` or `__Secure-` over https only.",
    example: withField("upstreams[0]", {
      name: "web",
      servers: [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000" }],
      sticky: { applicationCookie: "session id" },
    }),
  },
  "config.two-log-formats": {
    means:
      "Two logs write to one file in different formats, which no program reads. Logs of several routes may share a file in one format; the error log needs a file of its own.",
    example: withField("logs", {
      access: { path: "/var/log/portico/portico.log" },
      error: { path: "/var/log/portico/portico.log" },
    }),
  },
  "config.no-webdav-route": {
    means:
      "With `windowsDrives`, the virtual server tells Windows that it is a WebDAV server, but none of its routes leads to an upstream.",
    example: withField("virtualServers[0].windowsDrives", true),
  },
  "config.no-trusted-proxies": {
    means:
      "The setting names a header field that the proxy accepts from trusted proxies only, but `trustedProxies` is empty. So the setting has no effect, and a field that the application relies on never reaches the application.",
    example: withField("clientAddressField", "CF-Connecting-IP"),
  },
  "config.access-without-rule": {
    means: "The access policy lets every client in, and so has no effect. See [access.md](access.md).",
    example: withField("accessPolicies", { site: { refusal: 404 } }),
  },
  "config.two-log-ins": {
    means:
      "A policy asks for a password of its own, or asks a portal, which asks for passwords itself. A client has one field `Authorization` for both. See [access.md](access.md).",
    example: withField("accessPolicies", {
      site: {
        basic: { usersFile: "/etc/portico/users" },
        forwardAuth: { url: "http://127.0.0.1:9091/api/authz/forward-auth" },
      },
    }),
  },
  "config.useless-limit": {
    means:
      "`rateLimit` or `concurrencyMax` is set on a route with a redirect or a fixed response, which costs the proxy as little as a refusal does. See [rates.md](rates.md).",
    example: withField("virtualServers[1].routes[0]", {
      name: "gone",
      path: "/gone",
      action: { type: "respond", status: 410 },
      concurrencyMax: 8,
    }),
  },
  "config.limit-stops-uploads": {
    means:
      'The route takes uploads, and the limit is lower than the pace of one sync client. A client that gets 429 in the middle of an upload shows an error, or begins again. A route with `requestBodyBytesMax` of up to 1048576, or with `writes: "never"`, takes no uploads, and may have any limit. See [rates.md](rates.md).',
    example: withField("virtualServers[1].routes[0].rateLimit", { requests: 5, perMs: 60_000 }),
  },
  "config.guard-without-log-in": {
    means:
      "The guard has nothing to judge: nothing says which requests log in, and how a response to a wrong password looks. See [password-guard.md](password-guard.md).",
    example: () => guarded({}),
  },
  "config.guard-of-one-client": {
    means:
      "A program on the same host is in front of Portico, and nothing tells Portico to believe the addresses that it names. All clients would share one allowance, and one who guesses would lock out everybody.",
    example: () => guarded({ logIns: [{ path: "/login", secret: "body", failed: [401] }] }, "127.0.0.1"),
  },
  "config.password-without-tls": {
    means:
      "Clients send a password of Basic authentication, or the cookie of a portal, with each request, and without TLS everyone on the way can read it. See [access.md](access.md).",
    example: () => {
      const changed = config();
      const [server] = changed.virtualServers;
      Object.assign(changed, { accessPolicies: { site: { basic: { usersFile: "/etc/portico/users" } } } });
      Object.assign(server!.routes[0]!, { access: "site", action: { type: "respond", status: 200 } });
      return only(parseConfig(changed));
    },
  },
  "config.client-certificate-without-tls": {
    means:
      "Clients present certificates in the TLS handshake. On a listener without TLS, the site would be open, or closed to everyone. See [client-certificates.md](client-certificates.md).",
    example: withField("virtualServers[0].clientCertificate", { ca: "/etc/portico/clients-ca.pem" }),
  },
  "config.everyone-allowed": {
    means:
      "`maintenance.allow` lists the clients that a maintenance does not keep out, and `allow` of the action `status` lists the clients that may see the status page. A range that matches every address would make the list useless.",
    example: withField("maintenance", { allow: ["10.0.0.0/8", "0.0.0.0/0"] }),
  },
  "config.announced-and-trusted": {
    means:
      "Every listener accepts connections from this address only with a PROXY protocol header, which names the client. If a header names no client, the proxy would trust the header fields of the client as if they came from an HTTP proxy. See [load-balancers.md](load-balancers.md).",
    example: () => {
      const { listeners, ...rest } = config();
      const proxyProtocol = { from: ["10.0.0.0/16"] };
      const announced = listeners.map((one) => ({ ...one, proxyProtocol }));
      return only(parseConfig({ ...rest, trustedProxies: ["10.0.0.5"], listeners: announced }));
    },
  },
  "config.proxy-loop": {
    means:
      "The upstream is a listener of this proxy, so a request would loop until all connections are used up.",
    example: withField("upstreams[0].url", "http://127.0.0.1:80"),
  },
  "config.ipv6-only": {
    means: "No listener has an IPv4 address, so clients without IPv6 could not connect.",
    example: () => {
      const changed = config();
      for (const one of changed.listeners) one.address = "::";
      return only(parseConfig(changed));
    },
  },
} satisfies Record<string, ErrorEntry>;
