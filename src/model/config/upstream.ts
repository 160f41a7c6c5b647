import * as z from "zod";
import {
  cookieName,
  ownCookieName,
  count,
  flag,
  MILLISECONDS_MAX,
  milliseconds,
  name,
  port,
  redirectPath,
  upstreamUrl,
} from "../schema/fields.js";
import { upstreamTls } from "./tls.js";

/** Upstreams, and the servers that one may consist of. */

export const upstreamServer = z.strictObject({
  url: upstreamUrl("URL of the server, in the form of an upstream's `url`.", "http://10.0.0.7:8000"),
  weight: count(
    1,
    1,
    1_000,
    "shares",
    "Relative share of requests: a server with 2 gets twice as many as a server with 1.",
  ),
  backup: flag(
    false,
    "Whether the server gets requests only while all servers without `backup` are down or drained.",
  ),
});

export const upstreamSticky = z
  .strictObject({
    applicationCookie: cookieName(
      "Cookie in which the application keeps a session. Requests with the same cookie value go to the " +
        "same server, chosen by a hash: no cookie is added, hosts and pods need no communication, and if " +
        "a server fails, only its sessions move. The servers must share their sessions, because another " +
        "server may send the response that sets the cookie; other data of a session (caches, partial " +
        "uploads) stays on one server.",
      "sessionid",
    ).optional(),
    cookie: ownCookieName(
      "Cookie that the proxy sets to bind a client to its first server, for applications whose servers " +
        "do not share sessions. The cookie is `HttpOnly` and `SameSite=Lax`, over TLS also `Secure`; its " +
        "value is a keyed hash, which does not reveal the server's address. Several hosts or pods agree " +
        "if they share `ticketKeys`.",
      "portico_web",
    ).optional(),
  })
  .describe(
    "How a session is bound to one of several servers while this server is up. Give exactly one field.",
  );

export const upstreamHealth = z
  .strictObject({
    path: redirectPath("Path of the GET request, optionally with a query.", "/api2/ping/").default("/"),
    port: port("Port of the check. Default: the server's port.", 11_001).optional(),
    expect: z
      .array(z.int().min(200).max(599))
      .min(1)
      .default([200])
      .meta({
        description: "Statuses that mean that the server is up, each from 200 to 599.",
        examples: [[200, 204]],
      }),
    tcp: flag(
      false,
      "Whether an established connection, including the TLS handshake, is enough; the check then sends " +
        "no request, and missing responses leave a server out even if its checks succeed.",
    ),
    intervalMs: count(
      5_000,
      100,
      MILLISECONDS_MAX,
      "milliseconds",
      "Time between two checks of a server, plus or minus a tenth. A check fails if it takes this " +
        "long, or 10 s.",
    ),
    fall: count(3, 1, 100, "checks", "Number of failed checks in a row after which the server is down."),
    rise: count(
      2,
      1,
      100,
      "checks",
      "Number of successful checks in a row after which the server is up again.",
    ),
  })
  .describe(
    "Checks of each server, made by one process of the proxy. While the last check of a server " +
      "succeeded, requests without a response do not leave the server out. Without this field, the " +
      "proxy notices a failed server only when requests to the server fail. A single server gets every " +
      "request, whatever its checks say: the checks then serve `portico status`, metrics and notifications.",
  );

/** Defaults for idle connections: as many as an upstream may have, since they are idle only for a moment. */
export const KEPT = { idleConnectionsMax: 4_096, idleTimeoutMs: 1_500 };

/** Defaults of what only one server has, or only several. */
export const SHARED = { balance: "roundRobin", slowStartMs: 10_000, holdMs: 5_000 } as const;

export const upstream = z.strictObject({
  name: name("Name by which routes refer to the upstream.", "web"),
  url: upstreamUrl(
    "URL of the only server: `http://HOST:PORT`, `https://HOST:PORT` for TLS, or `unix:/PATH` for a " +
      "Unix socket, to which the proxy's user must be allowed to write. A host name is looked up for " +
      "each new connection; a connection takes new requests for at most ten seconds. The addresses of " +
      "a name are tried one after the other. A URL that leads back to a listener of the same proxy is " +
      "refused.",
    "http://127.0.0.1:8000",
  ).optional(),
  servers: z
    .array(upstreamServer)
    .min(1)
    .optional()
    .meta({
      description:
        "Servers, in place of `url`. If a server does not accept a connection, the proxy sends the request " +
        "to another server, and sends this server no requests for 1 to 10 s. Three requests in a row " +
        "without a response do the same, unless the last `health` check of the server succeeded. If " +
        "failed requests would leave out all servers, they leave out none. A request is sent at most " +
        "twice. Connections and their limits apply per server.",
      examples: [[{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000", weight: 2 }]],
    }),
  balance: z
    .enum(["roundRobin", "leastConnections", "clientAddress"])
    .default(SHARED.balance)
    .describe(
      "Which of several servers gets a request without a bound session. `roundRobin`: the servers take " +
        "turns, by weight. `leastConnections`: the server with the fewest requests in progress, by " +
        "weight. `clientAddress`: the same server for all requests of one client (IPv4 address or IPv6 " +
        "/48 network).",
    ),
  sticky: upstreamSticky.optional(),
  spread: flag(
    false,
    "Whether each address of a host name is a separate server. The names are looked up every 5 s: a " +
      "new address becomes a server, and a removed address gets no new requests. With `false`, a name " +
      "is one server, whose addresses are tried one after the other.",
  ),
  health: upstreamHealth.optional(),
  slowStartMs: count(
    SHARED.slowStartMs,
    0,
    MILLISECONDS_MAX,
    "milliseconds",
    "Time over which the share of a server that has come back grows from a tenth to its full share; " +
      "0 for the full share at once. Requests of sessions that are bound to the server are not delayed.",
  ),
  tls: upstreamTls.optional(),
  proxyProtocol: z
    .enum(["v1", "v2"])
    .optional()
    .meta({
      description:
        "Sends a PROXY protocol header of this version at the start of each connection, before TLS. The " +
        "header contains the client's address and the address that the client connected to. The upstream " +
        "must expect the header. Each connection serves one request, so `idleConnectionsMax` and " +
        "`idleTimeoutMs` are refused. Without this field, the proxy sends no header.",
      examples: ["v2"],
    }),
  connectTimeoutMs: milliseconds(
    5_000,
    "Time to establish a connection, including the TLS handshake; then 504. With several servers, at " +
      "most 3 s for each.",
  ),
  holdMs: count(
    SHARED.holdMs,
    0,
    MILLISECONDS_MAX,
    "milliseconds",
    "How long requests wait when the only server begins to refuse connections, for instance during a " +
      "restart. After this time, or with 0, requests get 502 at once, until a connection succeeds or no request has come for 30 s. Waiting requests, uploads " +
      "included, count towards `queuedRequestsMax` and `queueTimeoutMs`; the proxy has not read their " +
      "bodies. Has no effect with several servers.",
  ),
  sendTimeoutMs: milliseconds(
    60_000,
    "Idle time allowed between two writes of a request; then 504. The whole request has no time " +
      "limit: an upload may take any time as long as it progresses.",
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
    "Most connections to the upstream, or to each of its servers, per worker. WebSocket tunnels " +
      "count. Two workers open up to twice as many, and after a reload the connections of old workers " +
      "come on top. When all connections are in use, requests wait, and clients take turns. 1000000 is " +
      "in practice no limit.",
  ),
  queuedRequestsMax: count(
    1_024,
    0,
    1_000_000,
    "requests",
    "Most requests that wait for a connection, per worker; others get 503 with `Retry-After` at once. 0: " +
      "none wait.",
  ),
  clientSharePercent: count(
    75,
    1,
    100,
    "percent",
    "Share of `connectionsMax` and of `queuedRequestsMax` that one client may use, rounded down, at " +
      "least one; further requests wait until a request of this client ends, or get 503. A client is " +
      "an IPv4 address or an IPv6 /48 network: by default, an office behind one address may have 3,072 " +
      "requests in progress and 768 waiting per worker. Increase the share if most users share an " +
      "address. 100 disables the limit.",
  ),
  queueTimeoutMs: milliseconds(
    30_000,
    "How long a request waits for a connection; then 503 with `Retry-After`.",
  ),
  idleConnectionsMax: count(
    KEPT.idleConnectionsMax,
    0,
    65_535,
    "connections",
    "Most idle connections kept for reuse, per worker. With 0, each request opens a connection.",
  ),
  idleTimeoutMs: milliseconds(
    KEPT.idleTimeoutMs,
    "How long an idle connection is kept. Keep it below the upstream's keep-alive time (gunicorn: 2 " +
      "s); otherwise requests meet connections that the upstream is closing.",
  ),
  headBytesMax: count(65_536, 1024, 1_048_576, "bytes", "Longest response head; a longer head gets 502."),
  bareLineFeeds: flag(
    false,
    "Whether lines of response heads may end with a line feed alone, as some devices and small servers end " +
      "them. With `false`, such a response gets 502: if the upstream is a proxy, a value with a line feed could " +
      "otherwise become further fields of the response.",
  ),
});
