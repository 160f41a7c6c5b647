import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import { line } from "../schema/fields.js";
import { BODILESS } from "../net/hopByHop.js";
import { problem } from "../text/problem.js";
import type { ActionKind } from "./kind.js";

export const respondFields = z
  .strictObject({
    type: z.literal("respond").describe("Kind of the action."),
    status: z
      .int()
      .min(200)
      .max(599)
      .meta({ description: "Status.", examples: [404] }),
    contentType: line("`Content-Type` of the body.").default("text/plain; charset=utf-8"),
    body: z
      .string()
      .max(65_536)
      .default("")
      .meta({ description: "Body, up to 64 KiB.", unit: "characters", examples: ["Nothing here.\n"] }),
  })
  .describe("A fixed response.");

/** The options of `Action.respond`. */
export const respondOptions = respondFields.omit({ type: true, status: true });

/** RFC 9110, 15.4. */
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

export const respond: ActionKind<OutputOf<typeof respondFields>> = {
  upstreams: [],
  directories: [],
  redirects: undefined,
  problems: ({ status, body }, at) => {
    if (REDIRECTS.includes(status))
      return [
        problem(
          "config.not-one-of",
          `${at}.status`,
          "needs a `Location`, which a fixed response does not have",
          {
            received: status,
            allowed: "a status that does not redirect",
            fix: `Use \`Action.redirect({ status: ${status}, … })\`, in a config \`"type": "redirect"\`.`,
          },
        ),
      ];
    if (body === "" || !BODILESS.has(status)) return [];
    const message = `cannot be sent: a response of status ${status} has no body`;
    return [problem("config.body-not-allowed", `${at}.body`, message)];
  },
};
