import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import { line } from "../fields.js";
import { BODILESS } from "../hopByHop.js";
import { problem } from "../problem.js";
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

export const respond: ActionKind<OutputOf<typeof respondFields>> = {
  upstreams: [],
  directories: [],
  redirects: undefined,
  problems: ({ status, body }, at) => {
    if (body === "" || !BODILESS.has(status)) return [];
    const message = `cannot be sent: a response of status ${status} has no body`;
    return [problem("config.body-not-allowed", `${at}.body`, message)];
  },
};
