import * as z from "zod";
import { cidr, filePath, text } from "../schema/fields.js";

/** Who may come in: one object of the config, and of the options of constructs. */

/** A place in a stack, as logs and messages name it. */
export const policyName = text(
  "config.bad-name",
  "a name of up to 130 letters, digits, spaces, `-`, `_`, `.` and `/` that begins and ends with a letter or digit",
  { pattern: "^[A-Za-z0-9](?:[A-Za-z0-9 ._/-]{0,128}[A-Za-z0-9])?$" },
);

const ranges = (description: string, example: string) =>
  z
    .array(cidr("An address or range.", example))
    .min(1)
    .optional()
    .meta({ description, examples: [[example]] });

export const accessPolicy = z
  .strictObject({
    allow: ranges(
      "Addresses and CIDR ranges of clients that may come in; all others are refused. Without it, all may.",
      "10.0.0.0/8",
    ),
    deny: ranges(
      "Addresses and CIDR ranges of clients that are refused, also those that `allow` has.",
      "192.0.2.0/24",
    ),
    denyFile: filePath(
      "File with addresses and CIDR ranges of clients that are refused, one on each line, with comments after `#` " +
        "or `;`; up to 64 MiB. Portico reads it again when it changes. If it then has anything else, it is refused as " +
        "a whole, and the previous list stays in use.",
      "/etc/portico/denied.txt",
    ).optional(),
    refusal: z
      .union([z.literal(403), z.literal(404), z.literal("close")])
      .default(403)
      .meta({
        description:
          "Response to clients that are refused; `close` for none: the connection is closed, over HTTP/2 the stream " +
          "is reset.",
        examples: [404],
      }),
  })
  .describe(
    "Who may come in, by the client's address: the one of the connection, or that which `trustedProxies` or a PROXY " +
      "protocol header names.",
  );

export const accessPolicies = z
  .record(policyName, accessPolicy)
  .optional()
  .meta({
    description: "Who may come in, by names to which `access` of routes refers.",
    examples: [{ "vault/admin": { allow: ["10.0.0.0/8"] } }],
  });

/** The policy of a route. */
export const access = policyName.optional().meta({
  description:
    "Name of the policy in `accessPolicies` that the clients of the route have to pass. It also applies to requests " +
    "whose path a server behind Portico may read as a path of the route. Without it, everyone may come in.",
  examples: ["vault/admin"],
});
