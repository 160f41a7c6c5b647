import * as z from "zod";
import {
  cidr,
  cipherString,
  count,
  filePath,
  flag,
  headerName,
  headerValue,
  ipAddress,
  line,
  milliseconds,
  name,
  port,
  routePath,
  serverName,
  upstreamUrl,
} from "./fields.js";
import { TLS_POLICIES, type TlsPolicyName } from "./tlsPolicy.js";

/**
 * The proxy config, version 1: the one table of fields. Types, checks, defaults, error texts, JSON Schema and docs
 * are derived from it. Rules that span fields are in `crossChecks.ts`.
 */

/** The only version of the config that this release reads. */
export const CONFIG_VERSION = 1;

const tlsPolicy = z
  .union([
    z.enum(Object.keys(TLS_POLICIES) as [TlsPolicyName, ...TlsPolicyName[]]),
    z.strictObject({
      minVersion: z.enum(["TLSv1.2", "TLSv1.3"]).describe("Lowest protocol version."),
      maxVersion: z.enum(["TLSv1.2", "TLSv1.3"]).describe("Highest protocol version."),
      ciphers: cipherString("OpenSSL cipher string; TLS 1.3 suites by their full names."),
      curves: z
        .array(name("A curve as OpenSSL names it."))
        .min(1)
        .describe("Key exchange groups, best first."),
      preferServerCiphers: flag(true, "Whether the server's cipher order wins."),
      sessionTimeoutSeconds: count(600, 1, 604_800, "Lifetime of a session ticket in seconds."),
    }),
  ])
  .describe(
    "What the listener negotiates: the name of a policy, or one spelled out. Default `file-sync` (spec 4.2).",
  );

const listener = z.strictObject({
  name: name("Name by which virtual servers refer to the listener."),
  address: ipAddress(
    "Local address: `0.0.0.0` or `::` for all. An IPv6 listener never takes IPv4 connections.",
  ),
  port: port("TCP port, 1 to 65535."),
  protocol: z
    .enum(["http", "https"])
    .describe("`http`: HTTP/1.1. `https`: TLS with HTTP/2 and HTTP/1.1 (ALPN)."),
  http2: flag(true, "Whether an https listener offers HTTP/2."),
  tls: z
    .strictObject({
      certificate: filePath("PEM file: the server's certificate, then its chain."),
      key: filePath("PEM file: the private key."),
      dhparam: filePath("PEM file: Diffie-Hellman parameters for DHE suites.").optional(),
      policy: tlsPolicy.default("file-sync"),
    })
    .optional()
    .describe("TLS material and policy; required by https, refused by http."),
});

const upstream = z.strictObject({
  name: name("Name by which routes refer to the upstream."),
  url: upstreamUrl("Where it listens: `http://HOST:PORT`."),
  connectTimeoutMs: milliseconds(60_000, "Time to establish a connection."),
  sendTimeoutMs: milliseconds(60_000, "Idle time allowed between two writes of a request."),
  readTimeoutMs: milliseconds(60_000, "Idle time allowed between two reads of an answer."),
  connectionsMax: count(
    4_096,
    1,
    1_000_000,
    "Most connections to it, each worker, tunnels included; the host opens up to that times `workers`, and for the " +
      "time of a reload as many again. When all are in use, requests wait.",
  ),
  queuedRequestsMax: count(
    1_024,
    0,
    1_000_000,
    "Most requests that wait for a connection, each worker; one more is 503 at once. 0 lets none wait.",
  ),
  queueTimeoutMs: milliseconds(30_000, "How long a request waits for a connection; then 503."),
  idleConnectionsMax: count(
    512,
    0,
    65_535,
    "Idle connections kept for reuse, each worker; 0 disables reuse.",
  ),
  idleTimeoutMs: milliseconds(
    1_500,
    "How long an idle connection is kept. Keep it below the upstream's own keep-alive time (gunicorn: 2 s).",
  ),
  headBytesMax: count(65_536, 1024, 1_048_576, "Longest answer head in bytes; a longer one is 502."),
});

const accessLog = z
  .union([
    z.literal("off"),
    z.strictObject({
      path: filePath("Log file."),
      format: z
        .enum(["combined", "json"])
        .default("combined")
        .describe("Line format; default `combined`, as nginx."),
    }),
  ])
  .describe("Where requests are logged, one line each; `off` for nowhere. Default: the main access log.");

const errorLog = z
  .union([z.literal("off"), z.strictObject({ path: filePath("Log file.") })])
  .describe("Where errors are logged; `off` for nowhere. Default: the main error log.");

const proxyAction = z.strictObject({
  type: z.literal("proxy"),
  upstream: name("The upstream's name."),
  strip: z
    .enum(["none", "raw", "nginx"])
    .default("none")
    .describe(
      "Whether the route's path is cut off the target: not at all, byte for byte, or as nginx's rewrite does.",
    ),
  hostHeader: z
    .enum(["client", "upstream"])
    .default("client")
    .describe(
      "`Host` sent upstream: as the client asked, port included, or the upstream's own host and port.",
    ),
  forwarded: z
    .strictObject({
      realIp: flag(true, "Send X-Real-IP: the client's address."),
      for: flag(
        true,
        "Send X-Forwarded-For: the chain the client sent with its own address appended (spec 4.1).",
      ),
      proto: flag(true, "Send X-Forwarded-Proto: the scheme the client used."),
      host: serverName("Send X-Forwarded-Host with this name; leave out to send none.").optional(),
    })
    .prefault({})
    .describe(
      "Forwarding fields this proxy sets. Those of clients outside `trustedProxies` are always dropped.",
    ),
  setHeaders: z
    .record(headerName, headerValue)
    .default({})
    .describe("Further request fields; each replaces the client's. An empty value removes the field."),
  destination: z
    .enum(["path", "absolute", "unchanged"])
    .default("path")
    .describe(
      "WebDAV `Destination` that points here: cut to its path (RFC 4918, 10.3), made absolute with the upstream's scheme and host, or left alone.",
    ),
  webSocket: flag(true, "Whether `Upgrade: websocket` passes; every other upgrade is dropped."),
});

const staticFilesAction = z.strictObject({
  type: z.literal("staticFiles"),
  directory: filePath("Directory that the part of the path behind the route's path is looked up in."),
  index: z
    .array(name("A file name."))
    .default([])
    .describe(
      "Files that answer for a directory, first match wins; none by default. Directories are never listed.",
    ),
  symlinks: z
    .enum(["inside", "anywhere", "never"])
    .default("inside")
    .describe("Symbolic links that are followed: those that stay inside the directory, all, or none."),
  cacheControl: line("Value of Cache-Control; none by default.").optional(),
});

const redirectAction = z.strictObject({
  type: z.literal("redirect"),
  status: z
    .union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)])
    .default(301)
    .describe("Status: 301 (default), 302, 303, 307 or 308. 307 and 308 keep method and body."),
  scheme: z.enum(["http", "https"]).default("https").describe("Scheme of the Location. Default https."),
  port: port(
    "Port of the Location; by default, and then not written, 443 for https and 80 for http.",
  ).optional(),
  host: serverName("Host of the Location; by default the one that was asked for.").optional(),
});

const respondAction = z.strictObject({
  type: z.literal("respond"),
  status: z.int().min(200).max(599).describe("Status, 200 to 599."),
  contentType: line("Content-Type of the body.").default("text/plain; charset=utf-8"),
  body: z.string().max(65_536).default("").describe("Body, up to 64 KiB; empty by default."),
});

const action = z
  .discriminatedUnion("type", [proxyAction, staticFilesAction, redirectAction, respondAction])
  .describe("What answers the request.");

const route = z.strictObject({
  name: name("Name of the route in logs and checks; unique in its virtual server."),
  path: routePath("Path the route answers for, compared with the normalised request path."),
  match: z
    .enum(["prefix", "segment", "exact"])
    .default("segment")
    .describe(
      "`prefix`: every path that begins so (nginx `location`). `segment`: the path itself or below it, `/` next. `exact`: only it. The longest path wins.",
    ),
  action,
  requestBodyBytesMax: z
    .int()
    .min(0)
    .max(Number.MAX_SAFE_INTEGER)
    .default(0)
    .describe("Longest request body in bytes; 0 (default) for no limit. A longer one is 413."),
  requestBodyTimeoutMs: milliseconds(
    60_000,
    "Idle time allowed between two reads of a request body; then 408.",
  ),
  sendTimeoutMs: milliseconds(60_000, "Idle time allowed between two writes to the client."),
  accessLog: accessLog.optional(),
  errorLog: errorLog.optional(),
});

const virtualServer = z.strictObject({
  name: name("Name of the virtual server."),
  serverNames: z
    .array(serverName("A name clients ask for; `_` matches none by itself."))
    .min(1)
    .describe("Server names, the main one first."),
  listeners: z.array(name("A listener's name.")).min(1).describe("Listeners it is reached through."),
  default: flag(
    false,
    "Whether it answers for unknown names on its listeners; each listener has one default.",
  ),
  versionTokens: flag(
    false,
    "Whether its `Server` header carries the version (spec 4.3 tells the servers apart by it).",
  ),
  routes: z.array(route).describe("Routes; a path that none matches is 404."),
});

const limits = z
  .strictObject({
    requestLineBytesMax: count(8_192, 256, 65_536, "Longest request line; a longer one is 414."),
    headBytesMax: count(32_768, 1_024, 1_048_576, "Longest request head; a longer one is 400."),
    headerCountMax: count(200, 8, 2_000, "Most request fields; more are 400."),
    connectionsMax: count(
      16_384,
      1,
      1_000_000,
      "Most client connections, each worker; more are closed at once.",
    ),
    connectionsPerClientMax: count(
      4_096,
      1,
      1_000_000,
      "Most connections of one client (IPv4 address or IPv6 /64 network), each worker; more are closed at once. " +
        "Addresses in `trustedProxies` are not counted; the value of `connectionsMax` disables the limit.",
    ),
    keepAliveRequestsMax: count(
      1_000,
      1,
      1_000_000_000,
      "Requests on one HTTP/1.1 connection before it is closed.",
    ),
    concurrentStreamsMax: count(128, 1, 10_000, "Most concurrent HTTP/2 streams, each connection."),
    streamResetsPerSecondMax: count(
      200,
      1,
      100_000,
      "Client stream resets a second before an HTTP/2 connection closes.",
    ),
  })
  .prefault({})
  .describe("Limits of every worker.");

const timeouts = z
  .strictObject({
    requestHeadMs: milliseconds(60_000, "Time from the first byte of a request head to its last; then 408."),
    keepAliveMs: milliseconds(75_000, "How long an idle client connection is kept."),
    tlsHandshakeMs: milliseconds(60_000, "Time for a TLS handshake."),
    drainMs: milliseconds(36_000_000, "How long a stopping worker lets running requests finish."),
  })
  .prefault({})
  .describe("Timeouts that belong to connections rather than to routes or upstreams.");

/** The whole document. */
export const configSchema = z.strictObject({
  $schema: z.string().optional().describe("Where editors find the JSON Schema; ignored by portico."),
  version: z.literal(CONFIG_VERSION).describe("Version of the config format: 1."),
  workers: z
    .union([z.literal("auto"), z.int().min(1).max(256)])
    .default("auto")
    .describe("Worker processes, 1 to 256; `auto` (default) for one a CPU."),
  trustedProxies: z
    .array(cidr("An address or range."))
    .default([])
    .describe("Clients whose forwarding fields are believed; none by default."),
  logs: z
    .strictObject({ access: accessLog.default("off"), error: errorLog.default("off") })
    .prefault({})
    .describe(
      "Main logs, for routes without logs of their own. An error log that is `off` goes to standard error.",
    ),
  limits,
  timeouts,
  listeners: z.array(listener).min(1).describe("Where connections are accepted."),
  upstreams: z.array(upstream).default([]).describe("Backends."),
  virtualServers: z.array(virtualServer).min(1).describe("Sets of names with their routes."),
});

type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** A valid config with every default filled in, frozen. */
export type ProxyConfig = DeepReadonly<z.output<typeof configSchema>>;
/** A config as it may be written: defaults left out. */
export type ProxyConfigInput = DeepReadonly<z.input<typeof configSchema>>;

export type ListenerConfig = ProxyConfig["listeners"][number];
export type UpstreamConfig = ProxyConfig["upstreams"][number];
export type VirtualServerConfig = ProxyConfig["virtualServers"][number];
export type RouteConfig = VirtualServerConfig["routes"][number];
export type ActionConfig = RouteConfig["action"];
export type ProxyActionConfig = Extract<ActionConfig, { type: "proxy" }>;
export type StaticFilesActionConfig = Extract<ActionConfig, { type: "staticFiles" }>;
export type RedirectActionConfig = Extract<ActionConfig, { type: "redirect" }>;
export type RespondActionConfig = Extract<ActionConfig, { type: "respond" }>;
export type AccessLogConfig = ProxyConfig["logs"]["access"];
export type ErrorLogConfig = ProxyConfig["logs"]["error"];

export type ListenerInput = ProxyConfigInput["listeners"][number];
export type UpstreamInput = NonNullable<ProxyConfigInput["upstreams"]>[number];
export type VirtualServerInput = ProxyConfigInput["virtualServers"][number];
export type RouteInput = VirtualServerInput["routes"][number];
export type ActionInput = RouteInput["action"];
