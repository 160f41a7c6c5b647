import * as z from "zod";
import { ERROR_PAGE_BYTES_MAX } from "../errorPage.js";
import { cidr, count, MILLISECONDS_MAX } from "../fields.js";

/** What the config says of times at which requests are refused by command: `portico maintenance`, `portico quiesce`. */

export const maintenance = z
  .strictObject({
    allow: z
      .array(cidr("An address or range.", "10.0.0.0/8"))
      .default([])
      .meta({
        description:
          "Addresses and CIDR ranges of clients that are served all the same: administrators, who look before all others do. " +
          "Behind trusted proxies the client is the one that they name. Ranges with every address are refused.",
        examples: [["10.0.0.0/8"]],
      }),
    page: z
      .string()
      .min(1)
      .max(ERROR_PAGE_BYTES_MAX)
      .optional()
      .meta({
        description:
          "HTML for browsers, up to 32 KiB; programs get a line of text. It may have the placeholders of " +
          "`errorPages`; `{{message}}` is that of the command. Without it, the virtual server's error page for 503, " +
          "or a page that asks again every 20 seconds.",
        unit: "characters",
        examples: ['<!doctype html><meta http-equiv="refresh" content="30"><p>{{message}}'],
      }),
    graceMs: count(
      10_000,
      0,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long WebSockets stay open when a maintenance begins; then they are closed with code 1012 (RFC 6455, " +
        "7.4.1), and clients connect anew. Other transfers end when they are done.",
    ),
  })
  .prefault({})
  .describe("What holds while `portico maintenance on` is in force, and requests get 503.");

export const writes = z
  .enum(["byMethod", "always", "never"])
  .default("byMethod")
  .describe(
    "Which of its requests can change something in the application, and are refused while `portico quiesce` runs a command. " +
      "`byMethod`: all but GET, HEAD, OPTIONS, TRACE, PROPFIND, REPORT and SEARCH. `always`: every request, WebSockets too, " +
      "which are closed. `never`: none.",
  );
