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
  url: upstreamUrl("Where it listens, as `url` of an upstream.", "http://10.0.0.7:8000"),
  weight: count(
    1,
    1,
    1_000,
    "shares",
    "How many requests it gets in comparison: one with 2 gets twice as many as one with 1.",
  ),
  backup: flag(
    false,
    "Whether it gets requests only while all servers that are no backup are down or drained.",
  ),
});

export const upstreamSticky = z
  .strictObject({
    applicationCookie: cookieName(
      "Cookie in which the application keeps a session: requests with the same value go to the same server, chosen by a hash, " +
        "so no cookie is added, hosts and pods agree without a word, and when a server goes, only its sessions move. The " +
        "response that sets the cookie may come from another server, so the servers have to share their sessions; what they " +
        "keep of one beside that (caches, uploads in parts) stays at one server.",
      "sessionid",
    ).optional(),
    cookie: cookieName(
      "Cookie of the proxy, which binds a client to the server that answered it first, for applications whose servers do not " +
        "share their sessions. It is `HttpOnly` and `SameSite=Lax`, over TLS `Secure`, and holds a keyed hash that names the " +
        "server and no address. Several hosts or pods agree if they have `ticketKeys`.",
      "portico_web",
    ).optional(),
  })
  .describe(
    "What binds the requests of a session to one of several servers, as long as that is up; exactly one.",
  );

export const upstreamHealth = z
  .strictObject({
    path: redirectPath("Path that is asked for with GET, a query if need be.", "/api2/ping/").default("/"),
    port: port("Port to ask. Without it, the server's own.", 11_001).optional(),
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
      "Whether an established connection is enough, with TLS if it has any: nothing is asked then.",
    ),
    intervalMs: count(
      5_000,
      100,
      MILLISECONDS_MAX,
      "milliseconds",
      "Time between two checks of a server, give or take a tenth. A check that takes as long, or 10 s, has failed.",
    ),
    fall: count(3, 1, 100, "checks", "How many checks in a row have to fail until the server is down."),
    rise: count(2, 1, 100, "checks", "How many checks in a row have to succeed until it is up again."),
  })
  .describe(
    "Checks of each server, by one process of the proxy. Without it, a server that does not answer is noticed by the requests " +
      "that it does not answer, and by no others.",
  );

/** How connections are kept where nothing is said. */
export const KEPT = { idleConnectionsMax: 512, idleTimeoutMs: 1_500 };

export const upstream = z.strictObject({
  name: name("Name by which routes refer to the upstream.", "web"),
  url: upstreamUrl(
    "Where it listens, if it is one server: `http://HOST:PORT`, `https://HOST:PORT` for TLS, or `unix:/PATH` for a Unix socket, to which the " +
      "proxy's user must have the right to write. A host name is looked up for each new connection, and none takes requests for longer " +
      "than ten seconds; several addresses of it are tried one after the other. A URL that leads back to a listener of the " +
      "same proxy is refused.",
    "http://127.0.0.1:8000",
  ).optional(),
  servers: z
    .array(upstreamServer)
    .min(1)
    .optional()
    .meta({
      description:
        "Its servers, in place of `url`. A request that one of them did not take goes to another, and one that does not " +
        "answer gets none for a while. Connections, and what limits them, are those of each server.",
      examples: [[{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000", weight: 2 }]],
    }),
  balance: z
    .enum(["roundRobin", "leastConnections", "clientAddress"])
    .default("roundRobin")
    .describe(
      "Which of several servers gets a request that no session binds to one: `roundRobin`: in turns, by weight. " +
        "`leastConnections`: the one with the fewest requests in progress, by weight. `clientAddress`: all requests of one " +
        "client (IPv4 address or IPv6 /48 network) the same one.",
    ),
  sticky: upstreamSticky.optional(),
  spread: flag(
    false,
    "Whether each address of a host name is a separate server. The names are looked up every 5 s: addresses that come are " +
      "servers, and those that go get no new request. Without it, the addresses of a name are tried one after the other, as one server.",
  ),
  health: upstreamHealth.optional(),
  slowStartMs: count(
    10_000,
    0,
    MILLISECONDS_MAX,
    "milliseconds",
    "How long one of several servers that came back gets a share that grows from a tenth to the whole; 0 for " +
      "the whole at once. Sessions that are bound to it come at once.",
  ),
  tls: upstreamTls.optional(),
  proxyProtocol: z
    .enum(["v1", "v2"])
    .optional()
    .meta({
      description:
        "Version of the PROXY protocol in whose header each connection to it says who the client is, before TLS if it has any: its " +
        "address, and the one that it connected to. The upstream has to expect one. Each connection is used for one request, so " +
        "`idleConnectionsMax` and `idleTimeoutMs` are refused beside it. Without it, there is no header.",
      examples: ["v2"],
    }),
  connectTimeoutMs: milliseconds(
    5_000,
    "Time to establish a connection, with TLS if it has any; then 504. Where there is another server to try, 3 s at most.",
  ),
  holdMs: count(
    5_000,
    0,
    MILLISECONDS_MAX,
    "milliseconds",
    "How long requests wait when its only server begins to refuse connections, as while it restarts; 0 " +
      "disables, and then, as afterwards, they get 502 at once. Those that wait are among `queuedRequestsMax` " +
      "and `queueTimeoutMs`, also uploads, of which nothing was read. Several servers: 0, since another one gets " +
      "the request.",
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
    "Most connections to the upstream, or to each of its servers, per worker. WebSocket tunnels count. With " +
      "two workers the host opens up to twice as many, and while old workers finish after a reload, theirs come " +
      "on top. When all are in use, requests wait; the clients take turns. The largest value in effect disables " +
      "the limit.",
  ),
  queuedRequestsMax: count(
    1_024,
    0,
    1_000_000,
    "requests",
    "Most requests that wait for a connection, per worker. One more gets 503 with `Retry-After` at once; 0 " +
      "lets none wait.",
  ),
  clientSharePercent: count(
    75,
    1,
    100,
    "percent",
    "How many of `connectionsMax` and of `queuedRequestsMax` one client may have, rounded down, but at least " +
      "one; its further requests wait for its own to end, or get 503. One client is an IPv4 address or an IPv6 " +
      "/48 network: an office behind one address has 3,072 requests in progress per worker by default, and 768 " +
      "that wait. Raise it where nearly all users share an address. 100 disables the limit.",
  ),
  queueTimeoutMs: milliseconds(
    30_000,
    "How long a request waits for a connection; then it gets 503 with `Retry-After`.",
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
    "How long an idle connection is kept. Keep it below the upstream's own keep-alive time (gunicorn: 2 s), or requests meet connections that are just being closed.",
  ),
  headBytesMax: count(65_536, 1024, 1_048_576, "bytes", "Longest head of a response; a longer one gets 502."),
});
