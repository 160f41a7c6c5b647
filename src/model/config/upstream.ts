import * as z from "zod";
import {
  cookieName,
  count,
  flag,
  MILLISECONDS_MAX,
  milliseconds,
  name,
  port,
  redirectPath,
  upstreamUrl,
} from "../fields.js";
import { upstreamTls } from "./tls.js";

/** Upstreams, and the servers that one may consist of. */

export const upstreamServer = z.strictObject({
  url: upstreamUrl("URL of the server, as `url` of an upstream.", "http://10.0.0.7:8000"),
  weight: count(
    1,
    1,
    1_000,
    "shares",
    "Share of the requests: a server with 2 gets twice as many requests as a server with 1.",
  ),
  backup: flag(
    false,
    "Whether the server gets requests only while all servers without `backup` are down or drained.",
  ),
});

export const upstreamSticky = z
  .strictObject({
    applicationCookie: cookieName(
      "Cookie in which the application keeps a session. Requests with the same value go to the same server, " +
        "chosen by a hash: the proxy adds no cookie, hosts and pods need no communication, and if a server " +
        "fails, only its sessions move. The servers have to share sessions, because another server may send the " +
        "response that sets the cookie; other data of a session (caches, partial uploads) stays on one server.",
      "sessionid",
    ).optional(),
    cookie: cookieName(
      "Cookie of the proxy, which binds a client to the server of its first response, for applications whose " +
        "servers do not share sessions. The cookie is `HttpOnly` and `SameSite=Lax`, over TLS `Secure`; its " +
        "value is a keyed hash that identifies the server and contains no address. Several hosts or pods use the " +
        "same hash if they have `ticketKeys`.",
      "portico_web",
    ).optional(),
  })
  .describe(
    "How a session is bound to one of several servers while this server is up. Give exactly one field.",
  );

export const upstreamHealth = z
  .strictObject({
    path: redirectPath("Path of the GET request, with or without a query.", "/api2/ping/").default("/"),
    port: port("Port of the check. Without this field, the server's own port.", 11_001).optional(),
    expect: z
      .array(z.int().min(200).max(599))
      .min(1)
      .default([200])
      .meta({
        description: "Statuses of a server that is up, each from 200 to 599.",
        examples: [[200, 204]],
      }),
    tcp: flag(
      false,
      "Whether an established connection (after the TLS handshake, for `https`) is enough; the check then " +
        "sends no request.",
    ),
    intervalMs: count(
      5_000,
      100,
      MILLISECONDS_MAX,
      "milliseconds",
      "Time between two checks of a server, give or take a tenth. A check fails after this time, and after 10 " +
        "s at the latest.",
    ),
    fall: count(
      3,
      1,
      100,
      "checks",
      "Number of checks that have to fail in a row before the server is down.",
    ),
    rise: count(
      2,
      1,
      100,
      "checks",
      "Number of checks that have to succeed in a row before the server is up again.",
    ),
  })
  .describe(
    "Checks of each server, by one process of the proxy. Without this field, the proxy notices a failed " +
      "server only when a request to the server fails.",
  );

/** How connections are kept where nothing is said. */
export const KEPT = { idleConnectionsMax: 512, idleTimeoutMs: 1_500 };

export const upstream = z.strictObject({
  name: name("Name by which routes refer to the upstream.", "web"),
  url: upstreamUrl(
    "URL of the upstream, if it is one server: `http://HOST:PORT`, `https://HOST:PORT` for TLS, or " +
      "`unix:/PATH` for a Unix socket, to which the proxy's user must have the right to write. A host name is " +
      "looked up for each new connection, and a connection takes requests for at most ten seconds; several " +
      "addresses of a name are tried one after the other. A URL that leads back to a listener of the same " +
      "proxy is refused.",
    "http://127.0.0.1:8000",
  ).optional(),
  servers: z
    .array(upstreamServer)
    .min(1)
    .optional()
    .meta({
      description:
        "Servers of the upstream, in place of `url`. If a server does not accept a request, the proxy sends the " +
        "request to another server. A server that does not respond gets no requests for a while. Connections, " +
        "and their limits, apply to each server.",
      examples: [[{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000", weight: 2 }]],
    }),
  balance: z
    .enum(["roundRobin", "leastConnections", "clientAddress"])
    .default("roundRobin")
    .describe(
      "Which of several servers gets a request that no session binds to one server. `roundRobin`: in turns, by " +
        "weight. `leastConnections`: the server with the fewest requests in progress, by weight. " +
        "`clientAddress`: the same server for all requests of one client (IPv4 address or IPv6 /48 network).",
    ),
  sticky: upstreamSticky.optional(),
  spread: flag(
    false,
    "Whether each address of a host name is a separate server. The proxy looks the names up every 5 s: a new " +
      "address becomes a server, and an address that is gone gets no new request. Without this field, the " +
      "proxy tries the addresses of a name one after the other, as one server.",
  ),
  health: upstreamHealth.optional(),
  slowStartMs: count(
    10_000,
    0,
    MILLISECONDS_MAX,
    "milliseconds",
    "Time over which the share of a server that has come back, one of several, grows from a tenth to its " +
      "full share; 0 for the full share at once. Requests of sessions that are bound to the server are not " +
      "delayed.",
  ),
  tls: upstreamTls.optional(),
  proxyProtocol: z
    .enum(["v1", "v2"])
    .optional()
    .meta({
      description:
        "Sends a PROXY protocol header of this version at the start of each connection, before TLS. The header " +
        "contains the address of the client, and the address to which the client connected. The upstream has to " +
        "expect the header. Each connection serves one request, so `idleConnectionsMax` and `idleTimeoutMs` are " +
        "refused. Without this field, the proxy sends no header.",
      examples: ["v2"],
    }),
  connectTimeoutMs: milliseconds(
    5_000,
    "Time to establish a connection, with TLS if the URL is `https`; then 504. With several servers, at most " +
      "3 s for each.",
  ),
  holdMs: count(
    5_000,
    0,
    MILLISECONDS_MAX,
    "milliseconds",
    "How long requests wait when the only server begins to refuse connections, for instance during a " +
      "restart. After this time, or with 0, requests get 502 at once. Waiting requests, uploads included, " +
      "count towards `queuedRequestsMax` and `queueTimeoutMs`; the proxy has not read their bodies. Without " +
      "effect for several servers: another server gets the request.",
  ),
  sendTimeoutMs: milliseconds(
    60_000,
    "Idle time allowed between two writes of a request; then 504. It does not limit the whole request: an upload may take any time as long as it progresses.",
  ),
  readTimeoutMs: milliseconds(
    60_000,
    "Idle time allowed between two reads of a response; 504 if the response has not begun.",
  ),
  connectionsMax: count(
    4_096,
    1,
    1_000_000,
    "connections",
    "Maximum number of connections to the upstream, or to each of its servers, per worker. WebSocket tunnels " +
      "count. With two workers the host opens up to twice as many, and after a reload the old workers keep " +
      "their own until they finish. When all are in use, requests wait; the clients take turns. The largest " +
      "value is in practice no limit.",
  ),
  queuedRequestsMax: count(
    1_024,
    0,
    1_000_000,
    "requests",
    "Maximum number of requests that wait for a connection, per worker. Every further request gets 503 with " +
      "`Retry-After` at once; with 0, no request waits.",
  ),
  clientSharePercent: count(
    75,
    1,
    100,
    "percent",
    "Share of `connectionsMax` and of `queuedRequestsMax` that one client may use, rounded down, but at " +
      "least one; further requests of the client wait until one of its requests ends, or get 503. One client " +
      "is an IPv4 address or an IPv6 /48 network: by default, an office behind one address has 3,072 requests " +
      "in progress per worker, and 768 waiting requests. Raise the value if nearly all users share an address. " +
      "100 disables the limit.",
  ),
  queueTimeoutMs: milliseconds(
    30_000,
    "How long a request waits for a connection; then the request gets 503 with `Retry-After`.",
  ),
  idleConnectionsMax: count(
    KEPT.idleConnectionsMax,
    0,
    65_535,
    "connections",
    "Idle connections kept for reuse, per worker. 0 opens a connection for every request.",
  ),
  idleTimeoutMs: milliseconds(
    KEPT.idleTimeoutMs,
    "How long an idle connection is kept. Choose a shorter time than the upstream's own keep-alive time " +
      "(gunicorn: 2 s); otherwise requests meet connections that are just being closed.",
  ),
  headBytesMax: count(65_536, 1024, 1_048_576, "bytes", "Longest head of a response; a longer one gets 502."),
});
