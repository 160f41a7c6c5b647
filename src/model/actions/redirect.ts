import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import { port, redirectPath, serverName } from "../fields.js";
import type { ActionKind } from "./kind.js";

export const redirectFields = z
  .strictObject({
    type: z.literal("redirect").describe("Kind of the action."),
    status: z
      .union([z.literal(301), z.literal(302), z.literal(303), z.literal(307), z.literal(308)])
      .default(301)
      .describe("Status. 307 and 308 keep method and body (RFC 9110, 15.4)."),
    scheme: z.enum(["http", "https"]).default("https").describe("Scheme of `Location`."),
    port: port(
      "Port of `Location`. Default: the scheme's default port, 443 or 80, which is omitted.",
      8443,
    ).optional(),
    host: serverName("Host of `Location`. Default: the requested host.", "files.example.org").optional(),
    path: redirectPath(
      "Percent-encoded path of `Location`, optionally with a query; the request's path and query are dropped. " +
        "Default: the request's path and query, byte for byte.",
      "/sync/",
    ).optional(),
  })
  .describe("A redirect to another scheme, port, host or path.");

/** The options of `Action.redirect`. */
export const redirectOptions = redirectFields.omit({ type: true });

/** Where it leads a request is in `location.ts`. */
export const redirect: ActionKind<OutputOf<typeof redirectFields>> = {
  upstreams: [],
  directories: [],
  redirects: {
    goal: (action) => action,
    withPort: (action, port) => ({ ...action, port }),
  },
  problems: () => [],
};
