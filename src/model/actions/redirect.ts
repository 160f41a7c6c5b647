import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import { port, redirectPath, serverName } from "../schema/fields.js";
import { problem } from "../text/problem.js";
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
      "Percent-encoded path of `Location`, optionally with a query; the request's path and query are dropped, unless " +
        "`keep` keeps parts of them. Default: the request's path and query, byte for byte.",
      "/sync/",
    ).optional(),
    keep: z
      .enum(["nothing", "query", "rest"])
      .default("nothing")
      .describe(
        "What follows `path` in `Location`. `query`: the request's query. `rest`: the rest of the request's path, after " +
          "the route's path, and the query: a route `/old` with the path `/new` sends `/old/a?b=c` to `/new/a?b=c`.",
      ),
  })
  .describe("A redirect to another scheme, port, host or path.");

/** The options of `Action.redirect`. */
export const redirectOptions = redirectFields.omit({ type: true });

/** The module `location.ts` decides where a request is redirected to. */
export const redirect: ActionKind<OutputOf<typeof redirectFields>> = {
  upstreams: [],
  directories: [],
  redirects: {
    goal: (action) => action,
    withPort: (action, port) => ({ ...action, port }),
  },
  problems: ({ keep, path }, at) => {
    if (keep === "nothing" || (path !== undefined && !path.includes("?"))) return [];
    const [message, fix] =
      path === undefined
        ? [
            "has no effect without `path`",
            "Remove `keep`: without `path`, all of the request's path and query is kept.",
          ]
        : ["keeps a query, and `path` has one as well", "Remove the query from `path`, or remove `keep`."];
    const more = { received: keep, allowed: '"nothing", or a `path` without a query', fix };
    return [problem("config.bad-redirect-path", `${at}.keep`, message, more)];
  },
};
