import * as z from "zod";
import { count } from "../schema/fields.js";

/** How much one client may ask of a route. */

const DAY_MS = 86_400_000;

export const rateLimit = z
  .strictObject({
    requests: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({
        description: "Requests of one client that are allowed in `perMs` on average.",
        unit: "requests",
        examples: [10],
      }),
    perMs: z
      .int()
      .min(1)
      .max(DAY_MS)
      .default(1_000)
      .meta({ description: "Time that `requests` is about.", unit: "milliseconds" }),
    burst: z
      .int()
      .min(1)
      .max(1_000_000)
      .optional()
      .meta({
        description:
          "Requests that a client may send at once after a pause; each allows one more after `perMs` divided by " +
          "`requests`. Default: the value of `requests`.",
        unit: "requests",
        examples: [20],
      }),
    ipv6Prefix: count(
      64,
      32,
      128,
      "bits",
      "Length of the prefix of an IPv6 network that counts as one client, also for `concurrencyMax`. A site may have a " +
        "/56 or a /48, and then counts as many clients.",
    ),
  })
  .describe(
    "Most requests of one client (IPv4 address or IPv6 network); further requests get 429 with `Retry-After`, and do not " +
      "count.",
  );

export const concurrencyMax = z
  .int()
  .min(1)
  .max(1_000_000)
  .optional()
  .meta({
    description:
      "Most requests of one client (IPv4 address or IPv6 /64 network) in progress at the same time, uploads, downloads and " +
      "WebSockets as long as they last; further requests get 429. Without it, there is no limit.",
    unit: "requests",
    examples: [50],
  });
