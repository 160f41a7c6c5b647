import * as z from "zod";
import {
  cidr,
  filePath,
  flag,
  milliseconds,
  portalUrl,
  requestFieldName,
  routePath,
  secretFile,
  text,
} from "../schema/fields.js";

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
        "the PHC format, or of bcrypt, as `htpasswd -B` makes them. Portico reads it again when it changes. If it then has anything else, it is refused as a " +
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

/** Asks a portal whether a request may come in: the convention of Traefik and Caddy, or that of nginx. */
export const forwardAuthentication = z
  .strictObject({
    url: portalUrl(
      "URL that the portal is asked at, with its path. The request is a GET without a body and has the client's fields, " +
        "cookies included. A response of 2xx lets the client in. Any other status up to 499 goes to the client, with " +
        "`Location`, `Set-Cookie`, `WWW-Authenticate` and a body of up to 64 KiB. If there is no response, or one of 5xx, " +
        "nobody comes in.",
      "http://127.0.0.1:9091/api/authz/forward-auth",
    ),
    convention: z
      .enum(["traefik", "nginx"])
      .default("traefik")
      .describe(
        "How the portal is told of the request. `traefik`, which Caddy uses as well: `X-Forwarded-Method`, `-Proto`, " +
          "`-Host`, `-Uri` and `-For`. `nginx`: `X-Original-URL`, `X-Original-Method` and `X-Forwarded-For`.",
      ),
    copyFields: z
      .array(
        requestFieldName(
          "A field that the proxy drops from every client's request, in each spelling.",
          "Remote-User",
        ),
      )
      .max(50)
      .default([])
      .meta({
        description:
          "Fields of the portal's response that the upstream gets: fields that the proxy drops from every client's " +
          "request, in each spelling, such as `Remote-User`, `X-Auth-Request-Email` and `X-authentik-groups`.",
        examples: [["Remote-User", "Remote-Groups"]],
      }),
    bypass: z
      .array(routePath("A path; those below it are meant as well.", "/api"))
      .max(50)
      .default([])
      .meta({
        description:
          "Paths of requests for which the portal is not asked, because programs send credentials of their own. A " +
          "request is one of them only if no server may take its path for another one. A front end or a site sets by " +
          "default the paths that its applications name.",
        examples: [["/api"]],
      }),
    connectTimeoutMs: milliseconds(2_000, "Time to establish a connection to the portal."),
    timeoutMs: milliseconds(5_000, "Time for the whole response of the portal; after that, 503."),
  })
  .describe(
    "Asks a portal for signing on whether a request may come in, after the lists of addresses. Not together with `basic`.",
  );

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
    forwardAuth: forwardAuthentication.optional(),
  })
  .describe(
    "Who may come in: by the client's address, which is the one of the connection, or that which `trustedProxies` or a " +
      "PROXY protocol header names; and by a password or a portal for signing on.",
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
