import * as z from "zod";
import { count, milliseconds, routePath, text } from "../schema/fields.js";
import { policyName } from "./policySchema.js";

/** A guard against guessing: one object of the config, and of the options of constructs. */

export const passwordGuard = z
  .strictObject({
    wrongSecretsMax: count(
      20,
      1,
      40,
      "secrets",
      "Distinct wrong secrets from one address, within `windowMs`, after which the address is closed: it gets no further " +
        "new secret tried. The same wrong secret again does not count. An address that a user logged in from within a day " +
        "has three times as many.",
    ),
    slowAfter: count(
      5,
      1,
      40,
      "secrets",
      "Distinct wrong secrets after which a new one has to wait; three times as many for an address that a user logged in " +
        "from within a day.",
    ),
    slowMs: milliseconds(
      1_000,
      "The first wait for a new secret, since the last wrong one. Each further wrong secret doubles the wait, up to a minute.",
    ),
    windowMs: milliseconds(900_000, "How long a wrong secret counts."),
    closeMs: milliseconds(900_000, "How long an address stays closed after the last wrong secret."),
    ipv6Prefix: count(
      64,
      32,
      128,
      "bits",
      "Length of the IPv6 prefix that counts as one address: a provider gives each customer at least a /64.",
    ),
  })
  .describe(
    "Guard against guessing passwords: counts the distinct wrong secrets of each client address, and refuses new ones with " +
      "429. Credentials that were tried from the address before are never refused, nor are requests that do not log in.",
  );

export const passwordGuards = z
  .record(policyName, passwordGuard)
  .optional()
  .meta({
    description: "Guards against guessing, by names to which `passwordGuard` of virtual servers refers.",
    examples: [{ vault: { wrongSecretsMax: 20 } }],
  });

/** The guard of a virtual server. */
export const guardName = policyName.optional().meta({
  description:
    "Name of the guard in `passwordGuards` that judges the requests in `logIns`. Without it, none is judged.",
  examples: ["vault"],
});

const fieldName = text("config.bad-name", "a name of 1 to 100 printable characters without spaces", {
  pattern: "^[!-~]{1,100}$",
});

/** A request that tries a secret. */
const logIn = z.strictObject({
  path: routePath("Path of the request.", "/login"),
  match: z
    .enum(["exact", "segment"])
    .default("exact")
    .describe("`exact`: only `path`. `segment`: `path` and every path below it."),
  method: z
    .enum(["GET", "POST", "PROPFIND"])
    .optional()
    .meta({ description: "Method of the request. Default: any method.", examples: ["POST"] }),
  secret: z.enum(["authorization", "body"]).meta({
    description:
      "Where the secret is. `authorization`: in `Authorization: Basic`; a request without that field is none. `body`: in " +
      "the body, a form or JSON of up to 16 KiB. A body as a whole is one secret, together with the query, except for the " +
      "fields in `changing`.",
    examples: ["body"],
  }),
  changing: z
    .array(fieldName)
    .max(20)
    .default([])
    .describe(
      "Fields of the body or the query that differ from one attempt to the next: tokens against forgery.",
    ),
  accountField: fieldName.optional().meta({
    description:
      "Field of the body with the account's name. With `passwordField`, one password that is tried for many accounts counts for more.",
    examples: ["user"],
  }),
  passwordField: fieldName
    .optional()
    .meta({ description: "Field of the body with the password.", examples: ["password"] }),
  failed: z
    .array(z.int().min(200).max(499))
    .min(1)
    .max(10)
    .meta({
      description:
        "Statuses of the response to a wrong secret. A status below 400 that is not among them is a success; others tell " +
        "nothing.",
      examples: [[401]],
    }),
  failedLocation: routePath(
    "End of the path that a redirect after a wrong secret leads to, if a success has the same status and another path.",
    "/login",
  ).optional(),
  renewal: z
    .strictObject({
      field: fieldName.meta({ description: "Field of the form.", examples: ["grant_type"] }),
      value: fieldName.meta({ description: "Value of the field.", examples: ["refresh_token"] }),
    })
    .optional()
    .describe(
      "A form that has this field, and none with a password, renews a session by a token that nobody can guess: it is no " +
        "log-in.",
    ),
});

export const logIns = z
  .array(logIn)
  .min(1)
  .max(50)
  .optional()
  .meta({
    description: "Requests that try a secret, for `passwordGuard`. The first one that matches counts.",
    examples: [[{ path: "/login", method: "POST", secret: "body", failed: [401] }]],
  });
