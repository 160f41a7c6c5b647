import * as z from "zod";
import { count, milliseconds, MILLISECONDS_MAX } from "./fields.js";

/** What a worker takes from clients at most. */
export const limits = z
  .strictObject({
    requestLineBytesMax: count(
      8_192,
      256,
      65_536,
      "bytes",
      "Maximum length of a request line; a longer line gets 414.",
    ),
    headBytesMax: count(
      32_768,
      1_024,
      1_048_576,
      "bytes",
      "Maximum length of a request head; a longer head gets 400.",
    ),
    headerCountMax: count(
      200,
      8,
      2_000,
      "fields",
      "Maximum number of request header fields; a request with more gets 400.",
    ),
    connectionsMax: count(
      16_384,
      1,
      1_000_000,
      "connections",
      "Maximum number of client connections, per worker; the proxy closes further connections at once. If " +
        "memory is limited, the default is at most the number that memory has room for.",
    ),
    connectionsPerClientMax: count(
      4_096,
      1,
      1_000_000,
      "connections",
      "Maximum number of connections of one client (IPv4 address or IPv6 /48 network), per worker; the proxy " +
        "closes further connections at once. Addresses in `trustedProxies` are not counted; the value of " +
        "`connectionsMax` disables the limit. The default is at most half of a `connectionsMax` that follows " +
        "from memory.",
    ),
    keepAliveRequestsMax: count(
      1_000,
      1,
      1_000_000_000,
      "requests",
      "Maximum number of requests on one HTTP/1.1 connection; then the proxy closes the connection.",
    ),
    concurrentStreamsMax: count(
      128,
      1,
      10_000,
      "streams",
      "Maximum number of concurrent streams of one HTTP/2 connection. If memory is limited, the default is at " +
        "most the number that memory has room for, but at least 16.",
    ),
    streamResetsPerSecondMax: count(
      200,
      1,
      100_000,
      "resets a second",
      "Number of streams that a client may reset in a second before the proxy closes its HTTP/2 connection.",
    ),
  })
  .prefault({})
  .describe("Limits of every worker.");

/** How long a worker waits for clients. */
export const timeouts = z
  .strictObject({
    requestHeadMs: milliseconds(
      60_000,
      "Time from the first byte of a request head to its last. After that an HTTP/1.1 client gets 408, and an " +
        "HTTP/2 connection ends with ENHANCE_YOUR_CALM.",
    ),
    keepAliveMs: milliseconds(75_000, "How long an idle client connection is kept."),
    tlsHandshakeMs: milliseconds(60_000, "Time for a TLS handshake; then the proxy closes the connection."),
    drainDelayMs: count(
      0,
      0,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long the proxy accepts connections after SIGTERM, while `/readyz` of its health listener fails, " +
        "before it drains. 0: the proxy drains at once. For a proxy behind a load balancer, which needs time to " +
        "notice.",
    ),
    drainMs: milliseconds(
      36_000_000,
      "How long running requests of a stopping worker may take; then the worker ends them.",
    ),
  })
  .prefault({})
  .describe("Timeouts of client connections.");
