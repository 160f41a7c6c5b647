import * as z from "zod";
import { count, milliseconds, MILLISECONDS_MAX } from "./fields.js";

/** Limits of a worker for its clients. */
export const limits = z
  .strictObject({
    requestLineBytesMax: count(8_192, 256, 65_536, "bytes", "Longest request line; a longer line gets 414."),
    headBytesMax: count(32_768, 1_024, 1_048_576, "bytes", "Longest request head; a longer head gets 400."),
    headerCountMax: count(200, 8, 2_000, "fields", "Most request fields; a request with more gets 400."),
    connectionsMax: count(
      16_384,
      1,
      1_000_000,
      "connections",
      "Most client connections per worker. A further connection takes the place of the connection that has waited " +
        "longest for a request (a second at least), or else is closed at once. With limited memory, the default is " +
        "lower if memory requires it.",
    ),
    connectionsPerClientMax: count(
      4_096,
      1,
      1_000_000,
      "connections",
      "Most connections of one client (IPv4 address or IPv6 /48 network), per worker; a further connection takes the " +
        "place of a waiting connection of this client, or else is closed at once. " +
        "Addresses in `trustedProxies` are not counted. The value of `connectionsMax` disables " +
        "the limit. If `connectionsMax` follows from memory, the default is at most half of it.",
    ),
    keepAliveRequestsMax: count(
      1_000,
      1,
      1_000_000_000,
      "requests",
      "Requests on one connection before the proxy closes the connection. Over HTTP/2 the proxy waits for a pause of five " +
        "seconds between requests, or for ten times as many, and requests that are running, or on their way, are served first.",
    ),
    concurrentStreamsMax: count(
      128,
      1,
      10_000,
      "streams",
      "Most concurrent streams of one HTTP/2 connection. With limited memory, the default is lower if memory " +
        "requires it, but at least 16.",
    ),
    streamResetsPerSecondMax: count(
      200,
      1,
      100_000,
      "resets a second",
      "Streams that a client may reset in a second, beyond those that it lets complete; up to three times as many at once, " +
        "as when a page with many images is scrolled. With more, further requests of the HTTP/2 connection wait: at most so many " +
        "a second are begun, and four resets of streams that wait count as one. With six times as many, the connection takes no " +
        "more streams, and closes when its running transfers are complete. A stream counts as well if the proxy resets the stream because its body " +
        "goes on after the response, for instance after a 413.",
    ),
  })
  .prefault({})
  .describe(
    "Limits of every worker. A limit cannot be turned off, but its largest value has the same effect.",
  );

/** How long a worker waits for clients. */
export const timeouts = z
  .strictObject({
    requestHeadMs: milliseconds(
      60_000,
      "Time from the first byte of a request head to its last. Then an HTTP/1.1 client gets 408, and an HTTP/2 " +
        "connection ends with `ENHANCE_YOUR_CALM`.",
    ),
    keepAliveMs: milliseconds(75_000, "How long an idle client connection is kept."),
    tlsHandshakeMs: milliseconds(60_000, "Time for a TLS handshake; then the connection is closed."),
    drainDelayMs: count(
      0,
      0,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long the proxy continues to accept connections after SIGTERM, while `/readyz` of the health " +
        "listener fails, before it drains. For a proxy behind a load balancer, which needs time to notice. 0: " +
        "drains at once.",
    ),
    drainMs: milliseconds(
      36_000_000,
      "How long a stopping worker lets running requests continue; then their connections are closed.",
    ),
  })
  .prefault({})
  .describe(
    "Timeouts of client connections and of stopping workers. Only `drainDelayMs` can be turned off; the largest " +
      "value, 2147483647 ms, is 24 days.",
  );
