import * as z from "zod";
import { ERROR_PAGE_BYTES_MAX } from "../net/errorPage.js";
import { clientRanges, count, line, MILLISECONDS_MAX } from "../schema/fields.js";
import { fieldsSet } from "../schema/responseHeaders.js";

const PAUSE_BODY_MAX = 4_096;

/** The config of pauses by command: `portico maintenance`, `portico quiesce`. */

export const maintenance = z
  .strictObject({
    allow: clientRanges(
      "Addresses and CIDR ranges of clients that are served during maintenance, such as administrators.",
    ).default([]),
    page: z
      .string()
      .min(1)
      .max(ERROR_PAGE_BYTES_MAX)
      .optional()
      .meta({
        description:
          "HTML for browsers, up to 32 KiB; other clients get a line of text. The page may have the " +
          "placeholders of `errorPages`; `{{message}}` is the message of the command. Default: the virtual " +
          "server's error page for 503, or a page that reloads every 20 seconds.",
        unit: "characters",
        examples: ['<!doctype html><meta http-equiv="refresh" content="30"><p>{{message}}'],
      }),
    graceMs: count(
      10_000,
      0,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long WebSockets stay open after maintenance begins. Then they are closed with code 1012 " +
        "(RFC 6455, 7.4.1), and clients reconnect. Other transfers run to their end.",
    ),
  })
  .prefault({})
  .describe("Settings for `portico maintenance on`, during which requests get 503 with `Retry-After`.");

export const pauseResponse = z
  .strictObject({
    contentType: line("`Content-Type` of the body.", "application/xml; charset=utf-8"),
    body: z
      .string()
      .min(1)
      .max(PAUSE_BODY_MAX)
      .meta({
        description: "Body.",
        unit: "characters",
        examples: ["<error>in maintenance</error>"],
      }),
    headers: fieldsSet.meta({ description: "Further header fields.", examples: [{ "X-Maintenance": "1" }] }),
  })
  .describe(
    "Response with 503 for programs (clients whose `Accept` does not name `text/html`) while `portico maintenance` or " +
      "`portico quiesce` refuses requests. Some sync clients take another 503 for a fault of the file. The response also " +
      "has `Retry-After`. Default: one line of text.",
  );

export const writes = z
  .enum(["byMethod", "always", "never"])
  .default("byMethod")
  .describe(
    "Which of the route's requests count as writes: `portico quiesce` refuses them while its command " +
      "runs. `byMethod`: all but GET, HEAD, OPTIONS, TRACE, PROPFIND, REPORT and SEARCH. `always`: " +
      "all, including WebSockets, which the proxy closes. `never`: none.",
  );
