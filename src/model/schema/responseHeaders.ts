import * as z from "zod";
import { count, flag, text } from "./fields.js";
import { HOP_BY_HOP } from "../net/hopByHop.js";
import type { TextRule } from "../text/textRule.js";

/** Rules of a virtual server or a route for the fields of its responses (decisions 5.5 and 5.6). */

const NAME: TextRule = { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", lengthMax: 64 };
/** Printable, so that no value can end its line (RFC 9110, 5.5; RFC 9112, 5). */
const VALUE: TextRule = { pattern: "^[!-~](?:[\\t -~]*[!-~])?$", lengthMax: 4096 };

const fieldName = text("config.bad-header", "a field name (a token) of up to 64 characters", NAME);
const fieldValue = text(
  "config.bad-header",
  "1 to 4096 characters of visible ASCII, with spaces and tabs only between other characters",
  VALUE,
);

/** Fields by name. */
export const fieldsSet = z.record(fieldName, fieldValue).default({});

export const responseHeaders = z
  .strictObject({
    set: fieldsSet.meta({
      description:
        "Fields of every response, by name, with values of up to 4096 printable characters. Each replaces all " +
        "fields of that name, from Portico and from the upstream. A route's fields have priority over its " +
        "virtual server's fields.",
      examples: [{ "X-Content-Type-Options": "nosniff" }],
    }),
    remove: z
      .array(fieldName.meta({ examples: ["X-Powered-By"] }))
      .default([])
      .meta({
        description:
          "Names of fields to remove from every response: fields from the upstream, fields that the virtual server " +
          "sets, and `Server`.",
        examples: [["X-Powered-By"]],
      }),
  })
  .prefault({})
  .describe(
    "Fields to set or remove in every response, including error pages, but not in the response to an upgrade " +
      "(101).",
  );

/** A year: the minimum for browsers' preload list. */
export const PRELOAD_MAX_AGE_MIN = 31_536_000;

export const hsts = z
  .strictObject({
    maxAge: count(
      31_536_000,
      0,
      315_360_000,
      "seconds",
      "How long browsers use only https for the name. 0 makes browsers forget the name, which turns HSTS off " +
        "for browsers that have seen the field.",
    ),
    includeSubDomains: flag(
      false,
      "Whether browsers also use only https for all names below the server's names, on any server.",
    ),
    preload: flag(
      false,
      "Whether browsers may include the name in their preload list, which takes months to undo; needs " +
        "`includeSubDomains` and a `maxAge` of at least 31536000.",
    ),
  })
  .optional()
  .describe(
    "Sends `Strict-Transport-Security` (RFC 6797) in every response over TLS; browsers then refuse http and " +
      "untrusted certificates. `{}` is enough. Refused without an `https` listener. Without this field, " +
      "`Strict-Transport-Security` is not sent.",
  );

/** Most bytes that the fields set for one route may have in all: many clients accept no head longer than 16 KiB. */
export const SET_BYTES_MAX = 8192;

/** Why the config must not set a field; some may still be removed. */
export interface Reserved {
  readonly mayRemove: boolean;
  readonly why: string;
  readonly fix?: string;
}

/** Why a field may not be set, or neither set nor removed; undefined for all others. */
export function reservedField(name: string): Reserved | undefined {
  const lower = name.toLowerCase();
  if (lower.startsWith("proxy-")) return CONNECTION;
  return RESERVED.get(lower);
}

const never = (why: string, fix?: string): Reserved => ({ mayRemove: false, why, fix });
const removeOnly = (why: string, fix?: string): Reserved => ({ mayRemove: true, why, fix });

const CONNECTION = never("belongs to the connection or the framing (RFC 9110, 7.6.1; RFC 9112, 6)");
const VALIDATOR = removeOnly("identifies one version of one resource (RFC 9110, 8.8)");
const DIGEST = removeOnly("is the digest of one content (RFC 9530)");

const RESERVED: ReadonlyMap<string, Reserved> = new Map([
  ...HOP_BY_HOP.map((name) => [name, CONNECTION] as const),
  ["date", never("is the time of the response (RFC 9110, 6.6.1)")],
  ["age", never("is the time that the response has spent in caches (RFC 9111, 5.1)")],
  [
    "content-type",
    never(
      "describes the content, and contains the boundary of multipart ranges (RFC 9110, 8.3 and 14.6)",
      "Set `contentType` of `Action.respond`; the type of a file follows from its name.",
    ),
  ],
  ["content-encoding", never("states how the content is encoded (RFC 9110, 8.4)")],
  ["content-range", never("states which part of the content the response contains (RFC 9110, 14.4)")],
  ["vary", never("lists the request fields that caches have to compare (RFC 9110, 12.5.5)")],
  ["location", never("depends on the response (RFC 9110, 10.2.2)", "Use a redirect as the route's action.")],
  ["allow", never("lists the methods that one resource supports (RFC 9110, 10.2.1)")],
  ["www-authenticate", never("is the challenge of a 401 response (RFC 9110, 11.6.1)")],
  ["etag", VALIDATOR],
  ["last-modified", VALIDATOR],
  ["content-location", removeOnly("identifies the resource of one content (RFC 9110, 8.7)")],
  ["content-digest", DIGEST],
  ["repr-digest", DIGEST],
  ["digest", DIGEST],
  ["content-md5", DIGEST],
  ["set-cookie", removeOnly("would give every client the same cookie (RFC 6265, 4.1)")],
  ["server", removeOnly("is set by the proxy itself", "Use `remove` for the field, or set `versionTokens`.")],
  [
    "strict-transport-security",
    removeOnly("must not be sent over http (RFC 6797, 7.2)", "Use `hsts` of the virtual server."),
  ],
]);
