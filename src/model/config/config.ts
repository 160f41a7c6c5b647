import * as z from "zod";
import { actionFields } from "../actions/table.js";
import type { InputOf, OutputOf } from "../inferred.js";
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
} from "../fields.js";
import { limits, timeouts } from "../limits.js";
import { hsts, responseHeaders } from "../responseHeaders.js";
import { errorPages } from "./errorPages.js";
import { notifications } from "./notifications.js";
import { maintenance, writes } from "./pauses.js";
import { certificateAuthority, ticketKeys, tls } from "./tls.js";
import { upstream } from "./upstream.js";

/**
 * The proxy config, version 1: the one table of fields. Types, checks, defaults, error texts, JSON Schema and
 * `docs/config.md` are derived from it. Actions are in a table of their own (`actions/table.ts`), rules that span fields
 * in `crossChecks.ts`.
 */

/** The only version of the config that this release reads. */
export const CONFIG_VERSION = 1;

/** Who may name clients. */
export const proxyProtocol = z.strictObject({
  from: z
    .array(cidr("An address or range.", "10.0.0.0/8"))
    .min(1)
    .meta({
      description: "Addresses and CIDR ranges of what sends the header, as connections come from there.",
      examples: [["10.0.0.0/8"]],
    }),
});

const listener = z.strictObject({
  name: name("Name by which virtual servers refer to the listener.", "https"),
  address: ipAddress(
    "Local address: `0.0.0.0` or `::` for all of the family. An IPv6 listener never takes IPv4 connections, and a config needs at least one IPv4 listener.",
    "0.0.0.0",
  ),
  port: port("TCP port.", 443),
  publishedPort: port(
    "Port that clients connect to, where something in front maps it: a router, a container's published port, a load " +
      "balancer. Without it, `port`.",
    443,
  ).optional(),
  protocol: z.enum(["http", "https"]).meta({
    description: "`http`: HTTP/1.1. `https`: TLS with HTTP/2 and HTTP/1.1, as the client chooses (ALPN).",
    examples: ["https"],
  }),
  http2: flag(true, "Whether an https listener offers HTTP/2 as well as HTTP/1.1."),
  proxyProtocol: proxyProtocol
    .optional()
    .describe(
      "Connections from these addresses must begin with a PROXY protocol header, version 1 or 2, and the client is the " +
        "one that it names: for load balancers that forward TCP. Without a valid one they are closed. All other connections are ordinary ones, on which a " +
        "header is a malformed request. Without this, no header is accepted.",
    ),
  tls: tls.optional(),
});

const logFormat = z
  .enum(["combined", "json"])
  .default("combined")
  .describe(
    "Line format: nginx's `combined`, or one JSON object per line. JSON has in `tls_group` the key exchange group of the TLS connection, such as `X25519MLKEM768`; null if there is none. `request_id` is the id of an error page (`errorPages`), where there is one. `request_body_bytes` is the announced length of the request's body, null if none was; `upstream` is that of the route, null if it has none. `error` is how the request failed, by the names of RFC 9209, null if it did not; `portico why` explains them. `time_to_first_byte_ms` is the time to the head of the response, null without one. `upstream_server` is the URL of the server that was asked, `upstream_connect_ms` the time that a new connection to it took, `upstream_wait_ms` that from a connection at hand to the head of the response; null where there was none.",
  );

const logStream = (longer: string) =>
  z.enum(["stdout", "stderr"]).meta({
    description:
      "Standard output or standard error of the process, which a container's engine or the journal collects. A line has " +
      `up to 4096 bytes; ${longer}.`,
    examples: ["stdout"],
  });

const LOG_PATH = "Log file; the user that runs the proxy must be able to write there.";
const LOG_FILE = { title: "file", description: "Lines are appended to a file." };
const LOG_STREAM = { title: "stream", description: "Lines go to a stream of the process." };

export const accessLogFile = z
  .strictObject({ path: filePath(LOG_PATH, "/var/log/portico/access.log"), format: logFormat })
  .meta(LOG_FILE);
export const accessLogStream = z
  .strictObject({ stream: logStream("of a longer one, what the client sent is cut"), format: logFormat })
  .meta(LOG_STREAM);
const accessLog = z
  .union([z.literal("off"), accessLogFile, accessLogStream])
  .describe("Where requests are logged, one line each; `off` to log nowhere.");

export const errorLogFile = z
  .strictObject({ path: filePath(LOG_PATH, "/var/log/portico/error.log") })
  .meta(LOG_FILE);
export const errorLogStream = z
  .strictObject({ stream: logStream("a longer one ends early") })
  .meta(LOG_STREAM);
const errorLog = z
  .union([z.literal("off"), errorLogFile, errorLogStream])
  .describe("Where errors are logged; `off` to log nowhere.");

export const route = z.strictObject({
  name: name("Name of the route in logs and checks; unique in its virtual server.", "web"),
  path: routePath(
    "Path that the route answers for, compared with the request's path after decoding, resolving `.` and `..` and merging `//`; case-sensitive.",
    "/files",
  ),
  match: z
    .enum(["prefix", "segment", "exact"])
    .default("segment")
    .describe(
      "`prefix`: every path that begins with it (like nginx `location`). `segment`: the path itself and every path below it, after a `/`. `exact`: only the path itself. The longest path wins.",
    ),
  action: actionFields,
  requestBodyBytesMax: count(
    0,
    0,
    Number.MAX_SAFE_INTEGER,
    "bytes",
    "Longest request body; a longer one gets 413. 0 for no limit.",
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
  responseHeaders,
  accessLog: accessLog
    .optional()
    .describe(
      "Where its requests are logged, one line each; `off` to log nowhere. Without it, the main access log is used.",
    ),
  errorLog: errorLog
    .optional()
    .describe("Where its errors are logged; `off` to log nowhere. Without it, the main error log is used."),
});

/** Fields with a meaning of their own, which an id must not replace. */
const REFUSED = [
  ...["Authorization", "Cookie", "Destination", "Range", "Referer", "User-Agent"],
  ...["traceparent", "tracestate"],
];

export const requestId = z
  .strictObject({
    field: requestFieldName(
      "Field in which upstreams get the id, in place of what the client sent. One of a trusted proxy is kept if it has up " +
        "to 128 letters, digits and `._:+/=-`.",
      "X-Correlation-Id",
      REFUSED,
    ).default("X-Request-Id"),
    response: flag(false, "Whether responses have the field as well, in place of what the upstream sent."),
  })
  .describe(
    "Gives each request an id: upstreams get it, and log lines and error pages have it (`{{requestId}}`). `{}` is enough. " +
      "Without this, only requests with an error page of the config have one.",
  );

const proxyStatus = name("Name of this proxy.", "edge");

const virtualServer = z.strictObject({
  name: name("Name of the virtual server.", "application"),
  serverNames: z
    .array(
      servedName(
        "A name that clients ask for. `*.example.org` is every name with one label before `.example.org` that is not itself a name of a virtual server; `_` alone matches no name.",
        "files.example.org",
      ),
    )
    .min(1)
    .meta({
      description:
        "Names that clients ask for, the main one first. Of `*.example.org`, the `*` stands for one label; a name that is written out has priority. `_` alone matches no name. Each may be given only once on a listener.",
      examples: [["files.example.org"]],
    }),
  listeners: z
    .array(name("A listener's name.", "https"))
    .min(1)
    .meta({ description: "Names of the listeners that it is reached through.", examples: [["https"]] }),
  default: flag(
    false,
    "Whether it answers for unknown names on its listeners; each listener needs exactly one such server.",
  ),
  versionTokens: flag(
    false,
    "Whether its `Server` header contains the version; `portico check --live` tells servers apart by it.",
  ),
  proxyStatus: proxyStatus
    .optional()
    .describe(
      "Name under which responses that Portico makes for a failure say what it was, in `Proxy-Status` (RFC 9209): `edge; error=connection_refused`. Without it, that of the proxy.",
    ),
  responseHeaders,
  hsts,
  errorPages,
  routes: z.array(route).describe("Its routes; a path that matches none of them gets 404."),
});

export const healthListener = z.strictObject({
  address: ipAddress(
    "Local address: loopback, private or link-local. `0.0.0.0` and `::` only with `anyAddress`. The firewall opens nothing for it.",
    "127.0.0.1",
  ),
  port: port("TCP port.", 9180),
  anyAddress: flag(
    false,
    "Whether `address` may be `0.0.0.0` or `::`. For a container, whose network is its own; on a host, everyone could ask.",
  ),
});

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
          "Who may ask: addresses and CIDR ranges, of connections and not of forwarding fields. All others are " +
          "disconnected. Empty for everyone who reaches it.",
        examples: [["10.0.0.0/8"]],
      }),
    anyAddress: flag(
      false,
      "Whether `address` may be `0.0.0.0` or `::` without `allow`. For a container, whose network is its own.",
    ),
  })
  .meta({ title: "address", description: "It listens on an address." });

export const metricsSocket = z
  .strictObject({
    path: filePath(
      "Unix socket, made with mode 0660; its directory decides who gets there.",
      "/run/portico/metrics.sock",
    ),
  })
  .meta({ title: "socket", description: "It listens on a Unix socket." });

const metricsListener = z.union([metricsAddress, metricsSocket]).meta({
  description:
    "Where monitoring asks over HTTP: `/metrics` is for Prometheus, and `/status` for people: what goes on. What it " +
    "shows is counted in any case; nothing listens without it.",
  examples: [{ address: "127.0.0.1", port: 9181 }],
});

export const logs = z
  .strictObject({
    access: accessLog.default("off"),
    error: errorLog
      .default("off")
      .describe("Where errors are logged; `off` for standard error, which systemd puts into the journal."),
  })
  .prefault({})
  .describe("Main logs, for routes without their own logs.");

/** The whole document. */
export const configSchema = z.strictObject({
  $schema: z
    .string()
    .optional()
    .meta({
      description: "Where editors find the JSON Schema; ignored by portico.",
      examples: ["/usr/lib/portico/portico.schema.json"],
    }),
  version: z.literal(CONFIG_VERSION).describe("Version of the config format."),
  workers: z
    .union([z.literal("auto"), z.int().min(1).max(256)])
    .default("auto")
    .meta({
      description:
        "Worker processes; `auto` for one per CPU that the control group allows, as long as its memory has room for them.",
      unit: "processes",
      examples: [2],
    }),
  trustedProxies: z
    .array(cidr("An address or range.", "10.0.0.0/8"))
    .default([])
    .meta({
      description:
        "HTTP proxies in front of this one, whose forwarding fields are trusted: addresses and CIDR ranges. The client " +
        "of their requests is the one that `clientAddressField` names.",
      examples: [["10.0.0.0/8"]],
    }),
  clientAddressField: requestFieldName(
    "Field in which trusted proxies name the client: the last address in it that is not in `trustedProxies`. With " +
      "something else than an address there, the client is the proxy. Any but the default needs `trustedProxies`.",
    "CF-Connecting-IP",
    ["Forwarded"],
  ).default("X-Forwarded-For"),
  requestId: requestId.optional(),
  proxyStatus: proxyStatus
    .optional()
    .describe(
      "Name in `Proxy-Status` (RFC 9209) for virtual servers that have no `proxyStatus` of their own. Without both, the field is not sent.",
    ),
  logs,
  limits,
  timeouts,
  maintenance,
  certificateAuthorities: z
    .array(certificateAuthority)
    .default([])
    .describe("Who issues certificates by ACME (RFC 8555), for `acme` of a listener's `tls`."),
  ticketKeys: ticketKeys.optional(),
  listeners: z.array(listener).min(1).describe("Where connections are accepted."),
  healthListener: healthListener
    .optional()
    .describe(
      "Where probes ask over HTTP: `/healthz` answers 200 while portico works, `/readyz` while it accepts and is not " +
        "about to stop; else 503. Nothing listens without it.",
    ),
  notifications: notifications.optional(),
  metricsListener: metricsListener.optional(),
  upstreams: z.array(upstream).default([]).describe("Backends that routes forward to."),
  virtualServers: z.array(virtualServer).min(1).describe("Sets of names with their routes."),
});

/** What a proxy as a whole is set to: all but the version, and what has constructs of its own. */
export const proxySettings = configSchema.omit({
  $schema: true,
  version: true,
  certificateAuthorities: true,
  listeners: true,
  upstreams: true,
  virtualServers: true,
});
/** What a construct takes: the rest follows from its TLS material, and from the routes below it. */
export const listenerOptions = listener.omit({ protocol: true });
export const virtualServerOptions = virtualServer.omit({ routes: true });

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
