import * as z from "zod";
import { guardName, logIns, passwordGuards } from "../access/guardSchema.js";
import { access, accessPolicies } from "../access/policySchema.js";
import { acceptedRisks, privatePaths } from "./security.js";
import { actionFields } from "../actions/table.js";
import type { InputOf, OutputOf } from "../schema/inferred.js";
import {
  cidr,
  count,
  filePath,
  flag,
  ipAddress,
  milliseconds,
  name,
  port,
  requestFieldName,
  routePath,
  servedName,
} from "../schema/fields.js";
import { limits, timeouts } from "../schema/limits.js";
import { hsts, responseHeaders } from "../schema/responseHeaders.js";
import { errorPages } from "./errorPages.js";
import { notifications } from "./notifications.js";
import { accessLog, errorLog, logs } from "./logs.js";
import { concurrencyMax, rateLimit } from "./rates.js";
import { maintenance, pauseResponse, writes } from "./pauses.js";
import { certificateAuthority, ticketKeys, tls } from "./tls.js";
import { clientCertificate } from "./clientCertificate.js";
import { upstream } from "./upstream.js";

/**
 * The proxy config, version 1: the one table of fields. Types, checks, defaults, error texts, JSON Schema and
 * `docs/config.md` are derived from it. Actions are in a separate table (`actions/table.ts`), rules that span fields in
 * `crossChecks.ts`.
 */

/** The only version of the config that this release reads. */
export const CONFIG_VERSION = 1;

/** Proxies that may name clients. */
export const proxyProtocol = z.strictObject({
  from: z
    .array(cidr("An address or range.", "10.0.0.0/8"))
    .min(1)
    .meta({
      description: "Source addresses and CIDR ranges of connections that must carry the header.",
      examples: [["10.0.0.0/8"]],
    }),
});

const listener = z.strictObject({
  name: name("Name by which virtual servers refer to the listener.", "https"),
  address: ipAddress(
    "Local address; `0.0.0.0` or `::` for all addresses of the family. An IPv6 listener accepts no IPv4 " +
      "connections. A config needs at least one IPv4 listener.",
    "0.0.0.0",
  ),
  port: port("TCP port.", 443),
  publishedPort: port(
    "Port that clients connect to, if a router, a container's published port or a load balancer maps it. " +
      "Default: `port`.",
    443,
  ).optional(),
  protocol: z.enum(["http", "https"]).meta({
    description: "`http`: HTTP/1.1. `https`: TLS with HTTP/2 or HTTP/1.1, by the client's choice (ALPN).",
    examples: ["https"],
  }),
  http2: flag(true, "Whether an `https` listener offers HTTP/2 in addition to HTTP/1.1."),
  proxyProtocol: proxyProtocol
    .optional()
    .describe(
      "For load balancers that forward TCP: connections from these addresses must begin with a PROXY protocol " +
        "header, version 1 or 2, whose source address is the client. The proxy closes the connection if the " +
        "header is missing or invalid. On all other connections a header is a malformed request. Without this " +
        "field, no header is accepted.",
    ),
  tls: tls.optional(),
});

export const route = z.strictObject({
  name: name("Name of the route in logs and checks; unique in its virtual server.", "web"),
  path: routePath(
    "Path of the route. The request's path is compared after decoding, resolving `.` and `..` and merging " +
      "`//`; case-sensitive.",
    "/files",
  ),
  match: z
    .enum(["prefix", "segment", "exact"])
    .default("segment")
    .describe(
      "`prefix`: every path that begins with `path` (like nginx `location`). `segment`: `path` and every path " +
        "below it, after a `/`. `exact`: only `path`. The longest path wins.",
    ),
  action: actionFields,
  requestBodyBytesMax: count(
    0,
    0,
    Number.MAX_SAFE_INTEGER,
    "bytes",
    "Longest request body; a longer body gets 413. 0 for no limit.",
  ),
  requestBodyTimeoutMs: milliseconds(
    60_000,
    "Idle time allowed between two reads of a request body; then 408.",
  ),
  sendTimeoutMs: milliseconds(
    60_000,
    "Idle time allowed between two writes to the client; then the connection is closed.",
  ),
  writes,
  access,
  rateLimit: rateLimit.optional(),
  concurrencyMax,
  responseHeaders,
  accessLog: accessLog
    .optional()
    .describe(
      "Where the route's requests are logged, one line each; `off` for no log. Default: the main access log.",
    ),
  logQuery: z
    .enum(["whole", "names", "none"])
    .default("whole")
    .describe(
      "How the route's access and error logs show queries, of requests and of `Referer`. `whole`: as the client sent the " +
        "query. `names`: each value is `*`, as in `?access_token=*`. `none`: without the query. For applications whose " +
        "URLs contain secrets. A `Referer` with such a URL can come to any route of the same site.",
    ),
  errorLog: errorLog
    .optional()
    .describe("Where the route's errors are logged; `off` for no log. Default: the main error log."),
});

/** Fields with their own meaning, which an id must not replace. */
const REFUSED = [
  ...["Authorization", "Cookie", "Destination", "Range", "Referer", "User-Agent"],
  ...["traceparent", "tracestate"],
];

export const requestId = z
  .strictObject({
    field: requestFieldName(
      "Field with the id in upstream requests, in place of the client's field. The id from a trusted proxy is " +
        "kept if it has up to 128 letters, digits and `._:+/=-`.",
      "X-Correlation-Id",
      REFUSED,
    ).default("X-Request-Id"),
    response: flag(false, "Whether responses have the field too, in place of the upstream's field."),
  })
  .describe(
    "Gives each request an id, for upstreams, log lines and error pages (`{{requestId}}`). `{}` is enough. " +
      "Without this field, only requests with an error page of the config or a maintenance page have an id.",
  );

const proxyStatus = name("Name of this proxy.", "edge");

const virtualServer = z.strictObject({
  name: name("Name of the virtual server.", "application"),
  site: name(
    "Site of the virtual server, for commands with `--site`. Default: the virtual server is a site of its own, with its " +
      "name.",
    "vault",
  ).optional(),
  privatePaths,
  serverNames: z
    .array(
      servedName(
        "A host name that clients request. `*.example.org` covers every name with one label before `.example.org` " +
          "that is not itself a name of a virtual server; `_` alone matches no name.",
        "files.example.org",
      ),
    )
    .min(1)
    .meta({
      description:
        "Host names that clients request, the main name first. In `*.example.org`, `*` stands for one label; an " +
        "exact name has priority. `_` alone matches no name. Each name may occur only once per listener.",
      examples: [["files.example.org"]],
    }),
  listeners: z
    .array(name("A listener's name.", "https"))
    .min(1)
    .meta({ description: "Names of the listeners of the virtual server.", examples: [["https"]] }),
  default: flag(
    false,
    "Whether the virtual server gets requests for unknown names on its listeners; each listener needs " +
      "exactly one default.",
  ),
  versionTokens: flag(
    false,
    "Whether the `Server` field contains the version, by which `portico check --live` distinguishes servers.",
  ),
  windowsDrives: flag(
    false,
    "Whether the virtual server responds as a WebDAV server to `OPTIONS /` of Windows' WebDAV client " +
      "(`User-Agent`: `DavClnt` or `Microsoft-WebDAV-MiniRedir`), whatever its routes do. Windows sends this " +
      "request before it maps a network drive, also for a WebDAV route at another path than `/`, and refuses the " +
      "drive if the response is not a WebDAV server's.",
  ),
  proxyStatus: proxyStatus
    .optional()
    .describe(
      "Name of the proxy in `Proxy-Status` (RFC 9209) of responses that Portico generates for failures: `edge; " +
        "error=connection_refused`. Default: the `proxyStatus` of the document.",
    ),
  clientCertificate: clientCertificate.optional(),
  passwordGuard: guardName,
  logIns,
  responseHeaders,
  hsts,
  errorPages,
  pauseResponse: pauseResponse.optional(),
  routes: z.array(route).describe("Routes; a path that matches no route gets 404."),
});

export const healthListener = z
  .strictObject({
    address: ipAddress(
      "Local address: loopback, private or link-local; `0.0.0.0` and `::` only with `anyAddress`. Firewall " +
        "rules do not open the port.",
      "127.0.0.1",
    ),
    port: port("TCP port.", 9180),
    anyAddress: flag(
      false,
      "Whether `address` may be `0.0.0.0` or `::`. For containers, which have their own network; on a host, " +
        "everyone could connect.",
    ),
  })
  .describe(
    "Address for health probes over HTTP: `/healthz` responds with 200 while Portico works, `/readyz` while it accepts " +
      "connections, each worker responds and it is not about to stop; otherwise 503. Without this field, there is no health listener.",
  );

export const metricsAddress = z
  .strictObject({
    address: ipAddress(
      "Local address: loopback, private or link-local; a public one only with `allow`.",
      "127.0.0.1",
    ),
    port: port("TCP port.", 9181),
    allow: z
      .array(cidr("An address or range.", "10.0.0.0/8"))
      .default([])
      .meta({
        description:
          "Addresses and CIDR ranges that may connect; forwarding fields do not count. All other connections are " +
          "closed. Empty for no restriction.",
        examples: [["10.0.0.0/8"]],
      }),
    anyAddress: flag(
      false,
      "Whether `address` may be `0.0.0.0` or `::` without `allow`. For containers, which have their own " +
        "network.",
    ),
  })
  .meta({ title: "address", description: "A TCP address." });

export const metricsSocket = z
  .strictObject({
    path: filePath(
      "Path of the Unix socket, created with mode 0660; its directory limits access.",
      "/run/portico/metrics.sock",
    ),
  })
  .meta({ title: "socket", description: "A Unix socket." });

const metricsListener = z.union([metricsAddress, metricsSocket]).meta({
  description:
    "HTTP listener for monitoring: `/metrics` is for Prometheus, `/status` shows traffic and faults to " +
    "people. Portico counts in any case; without this field it serves neither page.",
  examples: [{ address: "127.0.0.1", port: 9181 }],
});

/** The whole document. */
export const configSchema = z.strictObject({
  $schema: z
    .string()
    .optional()
    .meta({
      description: "Path or URL of the JSON Schema for editors; Portico ignores it.",
      examples: ["/usr/lib/portico/portico.schema.json"],
    }),
  version: z.literal(CONFIG_VERSION).describe("Version of the config format."),
  workers: z
    .union([z.literal("auto"), z.int().min(1).max(256)])
    .default("auto")
    .meta({
      description:
        "Number of worker processes; `auto` for one per CPU of the control group, limited by its memory.",
      unit: "processes",
      examples: [2],
    }),
  trustedProxies: z
    .array(cidr("An address or range.", "10.0.0.0/8"))
    .default([])
    .meta({
      description:
        "Addresses and CIDR ranges of HTTP proxies in front of this proxy, whose forwarding fields are trusted. " +
        "The client is the address that `clientAddressField` names.",
      examples: [["10.0.0.0/8"]],
    }),
  clientAddressField: requestFieldName(
    "Request field in which trusted proxies name the client: the last address that is not in " +
      "`trustedProxies`. If the field contains something other than an address, the trusted proxy counts as " +
      "the client. A field other than the default requires `trustedProxies`.",
    "CF-Connecting-IP",
    ["Forwarded"],
  ).default("X-Forwarded-For"),
  requestId: requestId.optional(),
  proxyStatus: proxyStatus
    .optional()
    .describe(
      "Name of the proxy in `Proxy-Status` (RFC 9209), for virtual servers without `proxyStatus`. Without " +
        "either field, `Proxy-Status` is not sent.",
    ),
  logs,
  limits,
  timeouts,
  maintenance,
  accessPolicies,
  acceptedRisks,
  passwordGuards,
  certificateAuthorities: z
    .array(certificateAuthority)
    .default([])
    .describe("Certificate authorities (ACME, RFC 8555) for `acme` of a listener's `tls`."),
  ticketKeys: ticketKeys.optional(),
  listeners: z.array(listener).min(1).describe("Addresses and ports that accept connections."),
  healthListener: healthListener.optional(),
  notifications: notifications.optional(),
  metricsListener: metricsListener.optional(),
  upstreams: z.array(upstream).default([]).describe("Servers that routes forward to."),
  virtualServers: z.array(virtualServer).min(1).describe("Sets of host names with their routes."),
});

/** Settings of a proxy as a whole: all fields except the version, and those that have their own constructs. */
export const proxySettings = configSchema.omit({
  $schema: true,
  version: true,
  accessPolicies: true,
  passwordGuards: true,
  certificateAuthorities: true,
  listeners: true,
  upstreams: true,
  virtualServers: true,
});
/** The options of the construct: the other fields follow from its TLS material, and from the routes below it. */
export const listenerOptions = listener.omit({ protocol: true });
export const virtualServerOptions = virtualServer.omit({
  routes: true,
  passwordGuard: true,
  logIns: true,
  privatePaths: true,
});

/** A valid config with every default filled in, frozen. */
export type ProxyConfig = OutputOf<typeof configSchema>;
/** A config as it may be written: defaults left out. */
export type ProxyConfigInput = InputOf<typeof configSchema>;

export type CertificateAuthorityConfig = ProxyConfig["certificateAuthorities"][number];
export type TicketKeysConfig = NonNullable<ProxyConfig["ticketKeys"]>;
export type ListenerConfig = ProxyConfig["listeners"][number];
export type HealthListenerConfig = NonNullable<ProxyConfig["healthListener"]>;
export type MetricsListenerConfig = NonNullable<ProxyConfig["metricsListener"]>;
export type TlsConfig = NonNullable<ListenerConfig["tls"]>;
export type AcmeCertificateConfig = NonNullable<TlsConfig["acme"]>;
export type NotificationTargetConfig = NonNullable<ProxyConfig["notifications"]>["targets"][number];
export type UpstreamConfig = ProxyConfig["upstreams"][number];
export type UpstreamTlsConfig = NonNullable<UpstreamConfig["tls"]>;
export type VirtualServerConfig = ProxyConfig["virtualServers"][number];
export type RouteConfig = VirtualServerConfig["routes"][number];
export type AccessLogConfig = ProxyConfig["logs"]["access"];
export type ErrorLogConfig = ProxyConfig["logs"]["error"];

export type CertificateAuthorityInput = NonNullable<ProxyConfigInput["certificateAuthorities"]>[number];
export type ListenerInput = ProxyConfigInput["listeners"][number];
export type AcmeCertificateInput = NonNullable<NonNullable<ListenerInput["tls"]>["acme"]>;
/** An upstream, as it may be written. */
export type UpstreamInput = NonNullable<ProxyConfigInput["upstreams"]>[number];
export type VirtualServerInput = ProxyConfigInput["virtualServers"][number];
/** A route, as it may be written. */
export type RouteInput = ProxyConfigInput["virtualServers"][number]["routes"][number];
