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
    throw new Error("an example of errors.md has not one problem");
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

type Fields = Record<string, unknown> & { [step: string]: Fields | unknown };

/** The config with a certificate by ACME, and one thing wrong about it. */
/** An authority's `dns`. */
const UPDATES = {
  type: "rfc2136",
  server: { address: "192.0.2.53" },
  zone: "example.org",
  keyFile: "/etc/portico/acme-update.key",
};

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

/** Codes of `portico.json`; the constructs answer with the same codes, at the path of the construct. */
export const CONFIG_ERRORS = {
  "config.not-json": {
    means:
      "The file is not valid JSON, so nothing else in it was checked. JSON has no comments, and no comma after the last item.",
    cause: '{ "version": 1, }',
    example: () => ({ ...only(parseConfigText('{ "version": 1, }')), path: "/etc/portico/portico.json" }),
  },
  "config.unsupported-version": {
    means:
      "The file has a format that this release does not know, most likely that of a newer release. Nothing else in it was checked.",
    example: withField("version", 2),
  },
  "config.missing-field": {
    means: "A required field is missing.",
    example: withField("listeners[0].port", undefined),
  },
  "config.unknown-field": {
    means:
      "There is no such field here. Unknown fields are refused, because a misspelled one would have no effect. If a known name is similar, the fix suggests it.",
    example: withField("upstreams[0].connectTimeout", 1000),
  },
  "config.wrong-type": {
    means:
      "The value has the wrong type: for example a text instead of a number, or one item instead of a list.",
    example: withField("listeners[0].port", "80"),
  },
  "config.out-of-range": {
    means:
      "The number is smaller or larger than the field allows, or a list has too few items. [config.md](config.md) has the range of every field.",
    example: withField("listeners[0].port", 70_000),
  },
  "config.not-one-of": {
    means: "The field takes one of a few values, and this is not one of them.",
    example: withField("listeners[0].protocol", "tcp"),
  },
  "config.bad-name": {
    means: "Names appear in logs, in checks and in other fields, so they have to be plain words.",
    example: withField("upstreams[0].name", "web application"),
  },
  "config.bad-address": {
    means:
      "The value is not an IP address or range. Host names are not accepted, and an IPv6 address is written without brackets.",
    example: withField("listeners[0].address", "localhost"),
  },
  "config.bad-server-name": {
    means:
      "Names are compared with the host that clients ask for, in lower case and without its port. In `*.example.org`, which only server names may be, `*` stands for one label.",
    example: withField("virtualServers[1].serverNames", ["files.example.org:443"]),
  },
  "config.bad-url": {
    means:
      "An upstream is a host and a port that speak HTTP, over TLS with `https`. A path after them would not be used.",
    example: withField("upstreams[0].url", "http://127.0.0.1:8000/app"),
  },
  "config.bad-file-path": {
    means: "Paths on the host are absolute and normalised, so that a file has only one path.",
    example: withField("virtualServers[1].routes[0].errorLog", { path: "logs/error.log" }),
  },
  "config.bad-route-path": {
    means:
      "A route's path is compared with the request's path after decoding and resolving, so it must have that form itself.",
    example: withField("virtualServers[1].routes[0].path", "files/"),
  },
  "config.bad-redirect-path": {
    means:
      "The path of a redirect goes into `Location` as it is, so it must be written as URLs have it. Scheme, host and port have fields of their own.",
    example: withField("virtualServers[1].routes[0].action", { type: "redirect", path: "sync/" }),
  },
  "config.bad-rewrite": {
    means:
      "The path of a rewrite goes upstream as it is, in place of the route's path, so it must be written as URLs have it. The client's query follows it.",
    example: withField("virtualServers[1].routes[0].action.rewrite", "api?x=1"),
  },
  "config.bad-header": {
    means:
      "The field name is not a token, the value has characters that would end the line, or the field is one that only the proxy may set: `Host`, and those of framing and connection.",
    example: withField("virtualServers[1].routes[0].action.setHeaders", { "Transfer-Encoding": "chunked" }),
  },
  "config.reserved-response-field": {
    means:
      "The field is not the same in every response, or belongs to the connection or the framing, so a response with another value would be wrong or could not be read. Some of these fields may be removed; [response-headers.md](response-headers.md) lists them.",
    example: withField("virtualServers[1].responseHeaders", { set: { ETag: '"1"' } }),
  },
  "config.duplicate-response-field": {
    means:
      "A field is named twice at one place, in `set` or `remove` or by a separate option. Names are compared without case.",
    example: withField("virtualServers[1].responseHeaders", {
      set: { "X-Frame-Options": "DENY" },
      remove: ["x-frame-options"],
    }),
  },
  "config.bad-error-page": {
    means:
      "A page of `errorPages` is empty, longer than 32 KiB, not in UTF-8, or has something in double braces that is not a placeholder: the page would show the text unchanged to users. A page that needs double braces itself can write the first as `&#123;`.",
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
    means: "HSTS must not be sent over plain HTTP (RFC 6797, 7.2), so here it would never be sent.",
    example: withField("virtualServers[0].hsts", {}),
  },
  "config.hsts-preload": {
    means:
      "Browsers take a name into their list only with all names below it, and for a year at least; the rest of `hsts` says less.",
    example: withField("virtualServers[1].hsts", { preload: true }),
  },
  "config.bad-cipher-string": {
    means:
      "The text has characters that do not occur in a list of ciphers. For ciphers that OpenSSL does not know, see [`tls.bad-policy`](#tlsbad-policy).",
    example: withField("listeners[1].tls.policy", {
      minVersion: "TLSv1.2",
      maxVersion: "TLSv1.3",
      ciphers: "ECDHE+AESGCM; DHE",
      curves: ["X25519"],
    }),
  },
  "config.bad-text": {
    means:
      "The text becomes part of a header or of a settings file, where other characters would be cut off or end the line.",
    example: withField("virtualServers[1].routes[0].action", {
      type: "staticFiles",
      directory: "/srv/files/media",
      cacheControl: "no-cache\n",
    }),
  },
  "config.duplicate-name": {
    means: "Two items of the same kind have the same name, so a reference could mean either.",
    example: withField("upstreams[1]", { name: "web", url: "http://127.0.0.1:8080" }),
  },
  "config.unknown-reference": {
    means:
      "A field names a listener, an upstream or another item that does not exist, or a construct is outside of the construct it belongs to.",
    example: withField("virtualServers[1].routes[0].action.upstream", "app"),
  },
  "config.duplicate-listener": {
    means:
      "Two listeners have the same address and port. A listener can serve any number of virtual servers.",
    example: withField("listeners[0]", { ...listener, name: "http", port: 443 }),
  },
  "config.port-conflict": {
    means:
      "A wildcard address takes the port on every address, so no other listener of the family can have it; nor can the health listener have the port of a listener. A stack is also refused if the port is that of the host's SSH server or of another proxy.",
    example: withField("listeners[0]", { ...listener, name: "http", address: "192.0.2.10", port: 443 }),
  },
  "config.public-health-listener": {
    means:
      "The health listener answers everyone who reaches it, so it has no public address. A wildcard address, as in a container, has to be allowed.",
    example: withField("healthListener", { address: "0.0.0.0", port: 9180 }),
  },
  "config.notification-url": {
    means:
      "A target of notifications has no URL, or both one in the config and one in a file, or one in the config that has a user, a query or a fragment, or is not `https`. Where the URL itself is a secret, as those of many services are, it belongs into a file.",
    example: withField("notifications", { targets: [{ type: "webhook", name: "office" }] }),
  },
  "config.public-metrics-listener": {
    means:
      "The metrics listener tells everyone who reaches it what the proxy does: names of servers, routes and upstreams, and how much passes. So it has no public address, unless `allow` says who may ask.",
    example: withField("metricsListener", { address: "0.0.0.0", port: 9181 }),
  },
  "config.tls-missing": {
    means: "An https listener has no certificate and key.",
    example: withField("listeners[1].tls", undefined),
  },
  "config.tls-unexpected": {
    means:
      "A listener or an upstream without TLS has a `tls` section, which it would not use; or an upstream that has to prove nothing has `caFile`.",
    example: withField("listeners[1].protocol", "http"),
  },
  "config.certificate-source": {
    means:
      "A certificate comes from two files, or the proxy gets it from an authority by ACME. If both are given, one would not be used.",
    example: withAcme({}, {}, { key: "/etc/portico/tls/privkey.pem" }),
  },
  "acme.bad-name": {
    means:
      "An authority is asked for host names and addresses. In a wildcard name such as `*.example.org`, `*` is the whole first label.",
    example: withAcme({ names: ["www.*.example.com"] }),
  },
  "acme.bad-directory": {
    means: "An authority is given by the URL of its directory, which is always `https` (RFC 8555, 6.1).",
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
      "Public authorities certify only names and addresses that mean the same host for everyone. An authority with `roots` is considered private, and may certify any name.",
    example: withAcme({ names: ["192.168.1.10"] }),
  },
  "acme.wildcard-challenge": {
    means:
      "Authorities issue wildcard certificates only to those who can write a DNS record of the domain (RFC 8555, 8.4). [certificates.md](certificates.md#wildcard-names-and-names-that-the-authority-cannot-reach) shows three ways to do that.",
    example: withAcme({ names: ["*.example.com"] }),
  },
  "acme.address-challenge": {
    means: "Addresses are not in the DNS, so no record proves them (RFC 8738, 7).",
    example: withAcme({ names: ["192.0.2.10"] }, { roots: "/etc/portico/roots.pem", dns: UPDATES }),
  },
  "acme.dns-missing": {
    means:
      "The challenge `dns-01` needs a writer of the DNS records (`dns`), and the other challenges need none.",
    example: withAcme({}, { challenge: "dns-01" }),
  },
  "acme.outside-zone": {
    means:
      "An update changes one zone of a DNS server. The record of a name is `_acme-challenge.` and the name, without `*.`; with `alias` it is that name.",
    example: withAcme({ names: ["files.example.com"] }, { dns: UPDATES }),
  },
  "acme.key-type": {
    means:
      "Clients and the proxy would have no common cipher for the key. The policy `file-sync` excludes ECDSA, and a policy may exclude RSA. Without `keyType` a type is chosen that fits.",
    example: withAcme({ keyType: "ecdsa-p256" }),
  },
  "acme.no-http-listener": {
    means:
      "By the challenge `http-01`, the authority asks for a file on port 80 of each name. Without an http listener nothing can answer; behind a router, the listener may have another port.",
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
      "Two virtual servers have the same name on a listener, or one server has it twice, so a request for it could go to either.",
    example: withField("virtualServers[1].serverNames", ["files.example.org", "files.example.org"]),
  },
  "config.duplicate-default-server": {
    means: "Two virtual servers answer for unknown names on one listener.",
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
      "Requests on the listener for a name that no virtual server has would get no response. Portico does not choose a default server.",
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
      "The redirect leads to the listener and name that it came from, so a client would follow it forever.",
    example: withField("virtualServers[1].routes[0].action", { type: "redirect" }),
  },
  "config.body-not-allowed": {
    means: "HTTP has no body in a response of this status (RFC 9110, 15).",
    example: withField("virtualServers[1].routes[0].action", { type: "respond", status: 204, body: "done" }),
  },
  "config.bad-servers": {
    means:
      "The servers of an upstream do not go together: one is there twice, all are backups, `url` names another one, a session is bound by no cookie or by two, there is one server and something that only several can have, or `spread` and no name. A single server gets every request, whatever it answers, so nothing binds sessions to it.",
    example: withField("upstreams[0]", {
      name: "web",
      servers: [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.7:8000" }],
    }),
  },
  "config.used-once": {
    means:
      "A header of the PROXY protocol names one client for all of a connection, so each is used for one request. Fields that say how many connections are kept, and for how long, have no effect then.",
    example: withField("upstreams[0]", {
      name: "web",
      url: "http://10.0.0.7:8000",
      proxyProtocol: "v2",
      idleTimeoutMs: 5_000,
    }),
  },
  "config.bad-cookie": {
    means: "The name of a cookie is a token: no space, and none of `=;,()<>@` and the like.",
    example: withField("upstreams[0]", {
      name: "web",
      servers: [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000" }],
      sticky: { applicationCookie: "session id" },
    }),
  },
  "config.no-trusted-proxies": {
    means:
      "The field says what is believed of a trusted proxy, and no proxy is trusted. Without one it has no effect, or a field that an application relies on never arrives.",
    example: withField("clientAddressField", "CF-Connecting-IP"),
  },
  "config.everyone-allowed": {
    means:
      "`maintenance.allow` names the clients that a maintenance does not keep out, and `allow` of the action `status` the clients that may see the status page. A list with every address keeps no client out.",
    example: withField("maintenance", { allow: ["10.0.0.0/8", "0.0.0.0/0"] }),
  },
  "config.announced-and-trusted": {
    means:
      "Every listener takes connections from there with a PROXY protocol header only, so the client is the one that the header names. Where it names none, a client behind it would be believed like an HTTP proxy. See [load-balancers.md](load-balancers.md).",
    example: () => {
      const { listeners, ...rest } = config();
      const proxyProtocol = { from: ["10.0.0.0/16"] };
      const announced = listeners.map((one) => ({ ...one, proxyProtocol }));
      return only(parseConfig({ ...rest, trustedProxies: ["10.0.0.5"], listeners: announced }));
    },
  },
  "config.proxy-loop": {
    means:
      "The upstream is a listener of this proxy, so a request would go in circles until all connections are used up.",
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
