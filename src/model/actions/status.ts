import * as z from "zod";
import { everyoneIn } from "../net/address.js";
import type { OutputOf } from "../schema/inferred.js";
import { clientRanges } from "../schema/fields.js";
import { problem } from "../text/problem.js";
import type { ActionKind } from "./kind.js";

export const statusFields = z
  .strictObject({
    type: z.literal("status").describe("Kind of the action."),
    allow: clientRanges(
      "Addresses and CIDR ranges of clients that may see the page; all others get 403.",
    ).min(1),
    addresses: z
      .enum(["whole", "shortened"])
      .default("shortened")
      .describe("How client addresses are shown; `shortened`: IPv4 to 24 bits, IPv6 to 48."),
    fileNames: z
      .boolean()
      .default(false)
      .describe("Whether the file name at the end of a request's path is shown, shortened."),
  })
  .describe("A page that shows traffic, transfers, upstream servers, certificates and errors.");

/** The options of `Action.status`. */
export const statusOptions = statusFields.omit({ type: true });

export const status: ActionKind<OutputOf<typeof statusFields>> = {
  upstreams: [],
  directories: [],
  redirects: undefined,
  problems: ({ allow }, at) =>
    allow.flatMap((received, i) => {
      const reach = everyoneIn(received);
      if (reach === undefined) return [];
      const message = `${reach}: every client could see who uses the front end`;
      const more = { received, allowed: "addresses and ranges of administrators" };
      return [problem("config.everyone-allowed", `${at}.allow[${i}]`, message, more)];
    }),
};
