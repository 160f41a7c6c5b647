import * as z from "zod";
import { cidr, filePath, flag, requestFieldName, secretFile, text } from "../schema/fields.js";

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

/** Basic authentication (RFC 7617). */
export const basicAuthentication = z
  .strictObject({
    usersFile: secretFile(
      "File with users and hashes of their passwords, `NAME:HASH` on each line, which `portico password NAME` makes; " +
        "comments are lines that begin with `#`. Hashes are of scrypt or, with Node.js 24.7 or newer, of argon2id, in " +
        "the PHC format. Portico reads it again when it changes. If it then has anything else, it is refused as a " +
        "whole, and the previous users stay.",
      "/etc/portico/users",
    ),
    realm: text("config.bad-text", '1 to 100 characters of visible ASCII and blanks, without `"` and `\\`', {
      pattern: "^[!#-[\\]-~](?:[ !#-[\\]-~]{0,98}[!#-[\\]-~])?$",
    })
      .default("Restricted")
      .meta({
        description:
          "Name that clients show with the question for the password. Clients send the password that they have for a " +
          "host and a realm without asking again.",
        examples: ["Family"],
      }),
    userField: requestFieldName(
      "Request field in which the upstream gets the name of the user, in UTF-8: one that the proxy drops from every " +
        "client's request, in each spelling, such as `Remote-User`, `X-Remote-User`, `X-Forwarded-User` and " +
        "`X-Auth-Request-User`. Without it, the upstream gets none.",
      "Remote-User",
    ).optional(),
    passOn: flag(
      false,
      "Whether the upstream gets `Authorization` with the password. By default it does not, because an application may " +
        "take it for a log-in of its own.",
    ),
  })
  .describe("Asks clients for a user and a password (RFC 7617), after the lists of addresses.");

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
    basic: basicAuthentication.optional(),
  })
  .describe(
    "Who may come in: by the client's address, which is the one of the connection, or that which `trustedProxies` or a " +
      "PROXY protocol header names; and by a password.",
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
