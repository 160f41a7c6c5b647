import { isIP } from "node:net";
import * as z from "zod";
import { isCidr } from "../net/address.js";
import { HOP_BY_HOP, NOT_FORWARDED } from "../net/hopByHop.js";
import type { ProblemCode } from "../text/problem.js";
import { PUBLIC_NAME, SERVED_NAME, SERVER_NAME } from "../net/serverName.js";
import {
  accepting,
  DOMAIN_NAME_LENGTH_MAX,
  DOMAIN_NAME_PATTERN,
  FILE_PATH,
  IPV4_PATTERN,
  IPV6_PATTERN,
  LONG_LABEL_PATTERN,
  LOWER_IPV6_PATTERN,
  PORT_PATTERN,
  type TextRule,
} from "../text/textRule.js";

/**
 * Field types of the documents. Each carries its meaning, unit, default, range and an example as metadata: the parser,
 * the error texts, the JSON Schema and `docs/config.md` all read the same table.
 */

/** A string that must satisfy a rule; the problem has `code` and the `allowed` values. */
export function text(code: ProblemCode, allowed: string, rule: TextRule) {
  const accepts = accepting(rule);
  const { pattern, never, lengthMax, canonicalIpv6 } = rule;
  return z
    .string()
    .superRefine((value, context) => {
      if (!accepts(value)) {
        context.addIssue({ code: "custom", message: `is not ${allowed}`, params: { code, allowed } });
      }
    })
    .meta({
      pattern,
      ...(never === undefined ? {} : { not: { pattern: never } }),
      ...(lengthMax === undefined ? {} : { maxLength: lengthMax }),
      ...(canonicalIpv6 === undefined ? {} : { canonicalIpv6 }),
      patternErrorMessage: allowed,
      problemCode: code,
    });
}

/** The meaning of a field, and a value as it may be written. */
const described = (description: string, example?: unknown) =>
  example === undefined ? { description } : { description, examples: [example] };

/** Largest delay a Node timer can hold: 2^31 - 1 ms, about 24.8 days. */
export const MILLISECONDS_MAX = 2_147_483_647;

/** Milliseconds, 1 to {@link MILLISECONDS_MAX}. */
export const milliseconds = (byDefault: number, description: string) =>
  count(byDefault, 1, MILLISECONDS_MAX, "milliseconds", description);

/** A whole number of `unit` in a range. */
export const count = (byDefault: number, min: number, max: number, unit: string, description: string) =>
  z.int().min(min).max(max).default(byDefault).meta({ description, unit });

/** A switch. */
export const flag = (byDefault: boolean, description: string) =>
  z.boolean().default(byDefault).describe(description);

export const port = (description: string, example?: number) =>
  z.int().min(1).max(65535).meta(described(description, example));

export const name = (description: string, example?: string) =>
  text(
    "config.bad-name",
    "a name of up to 64 letters, digits, `-`, `_` and `.` that begins with a letter or digit",
    {
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    },
  ).meta(described(description, example));

const ZONE = "(?:%[0-9A-Za-z.:-]+)?";

export const ipAddress = (description: string, example?: string) =>
  text("config.bad-address", "an IPv4 or IPv6 address without brackets", {
    pattern: `^(?:${IPV4_PATTERN}|${IPV6_PATTERN}${ZONE})$`,
    accepts: (value) => isIP(value) !== 0,
  }).meta(described(description, example));

export const cidr = (description: string, example?: string) =>
  text("config.bad-address", "an IP address or a CIDR range such as 10.0.0.0/8", CIDR).meta(
    described(description, example),
  );

/** The rule of {@link isCidr}. */
export const CIDR: TextRule = {
  pattern:
    `^(?:${IPV4_PATTERN}(?:/0{0,2}(?:3[0-2]|[12]?[0-9]))?|` +
    `${IPV6_PATTERN}${ZONE}(?:/0{0,2}(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)$`,
  accepts: isCidr,
};

export const serverName = (description: string, example?: string) =>
  text(
    "config.bad-server-name",
    "a lower-case host name, an IP address without brackets, or `_`",
    SERVER_NAME,
  ).meta(described(description, example));

/** A name by which requests reach a virtual server. */
export const servedName = (description: string, example?: string) =>
  text(
    "config.bad-server-name",
    "a lower-case host name (with `*.` in front for a wildcard), an IP address without brackets, or `_`",
    SERVED_NAME,
  ).meta(described(description, example));

/** A name that a certificate is for. */
export const certifiedName = (description: string, example?: string) =>
  text("config.bad-server-name", PUBLIC_NAME.allowed, PUBLIC_NAME).meta(described(description, example));

/** A Unix socket has a path of at most 107 bytes (unix(7)). */
const SOCKET_PATH_PATTERN = "/[A-Za-z0-9._@+,=/-]{1,106}";

export const upstreamUrl = (description: string, example?: string) =>
  text(
    "config.bad-url",
    "http://HOST:PORT or https://HOST:PORT in lower case, with nothing after the port, or unix:/PATH",
    {
      pattern:
        `^(?:https?://(?:${DOMAIN_NAME_PATTERN}|${IPV4_PATTERN}|\\[${LOWER_IPV6_PATTERN}\\])(?::${PORT_PATTERN})?/?` +
        `|unix:${SOCKET_PATH_PATTERN})$`,
      // In a template, JavaScript writes a missing value so.
      never: `^https?://(?:[a-z0-9_.-]*\\.)?(?:undefined|null)(?:[.:/]|$)|^https?://_(?:[:/]|$)|^unix:(?:.*/\\.{0,2}(?:/|$))|^https?:.*${LONG_LABEL_PATTERN}`,
      lengthMax: "https://:65535/".length + DOMAIN_NAME_LENGTH_MAX,
    },
  ).meta(described(description, example));

/** The URL that a portal for signing on is asked at. */
export const portalUrl = (description: string, example?: string) =>
  text(
    "config.bad-url",
    "http://HOST:PORT/PATH or https://HOST:PORT/PATH, with the host in lower case, with or without a query",
    {
      pattern:
        `^https?://(?:${DOMAIN_NAME_PATTERN}|${IPV4_PATTERN}|\\[${LOWER_IPV6_PATTERN}\\])(?::${PORT_PATTERN})?` +
        `(?:/[!"$-~]*)?$`,
      never: `^https?://(?:[a-z0-9_.-]*\\.)?(?:undefined|null)(?:[.:/]|$)|^https?://[^/]*${LONG_LABEL_PATTERN}`,
      lengthMax: 2_048,
    },
  ).meta(described(description, example));

export const directoryUrl = (
  description: string,
  example?: string,
  code: ProblemCode = "acme.bad-directory",
) =>
  text(code, "https://HOST[:PORT]/PATH, without user, query or fragment", {
    pattern: `^https://(?:${DOMAIN_NAME_PATTERN}|${IPV4_PATTERN}|\\[${LOWER_IPV6_PATTERN}\\])(?::${PORT_PATTERN})?(?:/[!"$-.0->@-~]*)*$`,
    never: LONG_LABEL_PATTERN,
  }).meta(described(description, example));

export const mailAddress = (description: string, example?: string) =>
  text("acme.bad-email", "one mail address, such as admin@example.org", {
    // Used in a `mailto:` URL, which may neither list addresses nor set fields (RFC 8555, 7.3).
    pattern: "^[A-Za-z0-9!#$&'*+./=^_`{|}~-]+@[A-Za-z0-9.-]+$",
  }).meta(described(description, example));

/** A name that an authority can be asked to certify: no `_`, which is not in host names (RFC 952). */
export const publicName = (description: string, example?: string) =>
  text(
    "acme.bad-name",
    "a lower-case host name of letters, digits and `-` (with `*.` in front for a wildcard), or an IP address without brackets",
    {
      ...SERVED_NAME,
      never: `_|${LONG_LABEL_PATTERN}`,
      accepts: (name) => !name.includes("_") && accepting(SERVED_NAME)(name),
    },
  ).meta(described(description, example));

/** A name in the DNS, of whatever kind of record. */
export const domainName = (description: string, example?: string) =>
  text("acme.bad-name", "a lower-case domain name, without a dot at its end", {
    pattern: `^${DOMAIN_NAME_PATTERN}$`,
    never: LONG_LABEL_PATTERN,
    lengthMax: DOMAIN_NAME_LENGTH_MAX,
  }).meta(described(description, example));

export const filePath = (description: string, example?: string) =>
  text(
    "config.bad-file-path",
    "an absolute path without `//`, `.` or `..` segments or control characters",
    FILE_PATH,
  ).meta(described(description, example));

/** A program: after a blank, `-` would begin an option, which is no part of the path. */
export const programPath = (description: string, example?: string) =>
  text("config.bad-file-path", "the absolute path of a program, without arguments", {
    ...FILE_PATH,
    never: `${FILE_PATH.never}| -`,
  }).meta(described(description, example));

/** A file with a secret. */
export const secretFile = (description: string, example: string) =>
  filePath(`${description} Only root needs to read the file.`, example);

/** Root certificates for connections to a peer: `the authority`. */
export const rootsFile = (peer: string, example: string, or = "") =>
  filePath(
    `PEM file with the only root certificates that the proxy trusts for ${peer}; needed for a private authority${or}. ` +
      "Default: Node's root certificates.",
    example,
  );

/** Clients by their addresses, never all of them. */
export const clientRanges = (description: string) =>
  z.array(cidr("An address or range.", "10.0.0.0/8")).meta({
    description:
      `${description} Behind trusted proxies, the client is the address from \`clientAddressField\`. Ranges with ` +
      "every address are refused.",
    examples: [["10.0.0.0/8"]],
  });

export const routePath = (description: string, example?: string) =>
  text(
    "config.bad-route-path",
    "a decoded path of visible ASCII that begins with `/`, without `//`, `.` or `..` segments, `?`, `#` and `%`",
    { pattern: "^/[!-~]*$", never: "//|/\\.\\.?(?:/|$)|[?#%]" },
  ).meta(described(description, example));

// Framing and connection management belong to the codec; a rule that set them would make messages ambiguous.
const NOT_SETTABLE: readonly string[] = [...HOP_BY_HOP, "host", "expect"];
const TOKEN = "^[!#$%&'*+.^`|~0-9A-Za-z-]+$";

export const redirectPath = (description: string, example?: string) =>
  text(
    "config.bad-redirect-path",
    "a percent-encoded URL path that begins with `/`, with or without a query, without `#`",
    {
      pattern: "^/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$",
      lengthMax: 2048,
    },
  ).meta(described(description, example));

export const urlPath = (description: string, example?: string) =>
  text(
    "config.bad-rewrite",
    "a percent-encoded URL path that begins with `/`, without a query, `//` or dot segments",
    {
      pattern: "^/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$",
      never: "//|/(?:\\.|%2[Ee]){1,2}(?:/|$)",
      lengthMax: 2048,
    },
  ).meta(described(description, example));

/**
 * A protocol of `Upgrade` (RFC 9110, 7.8). Within another version of HTTP, or TLS, the client would reach every path of the
 * upstream, past all routes.
 */
export const upgradeName = (description: string, example: string) =>
  text(
    "config.bad-text",
    "the name of a protocol (a token), such as `websocket`, other than `h2c`, `h2`, `HTTP/…` and `TLS/…`",
    {
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:/[!#$%&'*+.^_`|~0-9A-Za-z-]+)?$",
      // Nobody asks for `ws` or `*` in `Upgrade`: with them, no WebSocket would be forwarded.
      never:
        "^(?:[*]|[Ww][Ss][Ss]?|[Ww][Ee][Bb][Ss][Oo][Cc][Kk][Ee][Tt][Ss]|[Hh]2[Cc]?|[Hh][Tt][Tt][Pp][Ss]?|[Tt][Ll][Ss]|[Ss][Ss][Ll])(?:/|$)",
      lengthMax: 64,
    },
  ).meta(described(description, example));

export const headerName = text(
  "config.bad-header",
  "a field name (a token) other than Host, Expect and the fields of the connection and the framing",
  // Names are keys, which Terraform cannot fill in.
  {
    pattern: TOKEN,
    accepts: (value) => new RegExp(TOKEN).test(value) && !NOT_SETTABLE.includes(value.toLowerCase()),
  },
);

/** A field that a client's request may bring: names with any other byte do not get through. */
export const requestFieldName = (description: string, example: string, refused: readonly string[] = []) => {
  const never = [...NOT_FORWARDED, ...refused].map(anyCase).join("|");
  const others = ["a hop-by-hop field", ...refused].join(", ");
  const allowed = `the name of a field that the proxy forwards: letters, digits and \`-\`, and none of: ${others}`;
  return text("config.bad-header", allowed, { pattern: "^[0-9A-Za-z-]+$", never: `^(?:${never})$` }).meta(
    described(description, example),
  );
};

/** A field whose name applications may take for another: other bytes become `_`, as `-` does (RFC 3875, 4.1.18). */
export const oddFieldName = text(
  "config.bad-header",
  "the name of a field (a token) that has another byte than letters, digits and `-`",
  { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]*[!#$%&'*+.^_`|~][!#$%&'*+.^_`|~0-9A-Za-z-]*$", lengthMax: 64 },
).meta(described("A field name.", "api_key"));

const anyCase = (name: string): string =>
  name.toLowerCase().replace(/[a-z]/g, (char) => `[${char.toUpperCase()}${char}]`);

/** Empty, or an allowed value. */
export const HEADER_VALUE: TextRule = { pattern: "^(?:[!-~](?:[\\t -~]*[!-~])?)?$" };

export const headerValue = text(
  "config.bad-header",
  "visible ASCII, with spaces and tabs only between other characters",
  HEADER_VALUE,
);

export const cookieName = (description: string, example?: string) =>
  text("config.bad-cookie", "the name of a cookie: a token (RFC 6265, 4.1.1) of up to 128 characters", {
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    lengthMax: 128,
  }).meta(described(description, example));

/** Cookies in which common frameworks keep their sessions: PHP, Java, Express, ASP.NET, Django, Flask, Rails, Laravel. */
const SESSION_COOKIES = [
  ...[
    "PHPSESSID",
    "JSESSIONID",
    "connect.sid",
    "ASP.NET_SessionId",
    "ASPSESSIONID[A-Z]*",
    ".AspNetCore.Session",
  ],
  ...["sessionid", "session", "_session_id", "laravel_session"],
];

/** A cookie that the proxy sets: one of the application's would be overwritten at each log-in. */
export const ownCookieName = (description: string, example?: string) =>
  text(
    "config.bad-cookie",
    "the name of a cookie that no framework uses for its sessions; such a cookie is `applicationCookie`",
    {
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
      never: `^(?:${SESSION_COOKIES.join("|").replaceAll(".", "[.]")})$`,
      lengthMax: 128,
    },
  ).meta(described(description, example));

export const cipherString = (description: string, example?: string) =>
  text("config.bad-cipher-string", "an OpenSSL cipher string: letters, digits and `!+@:=_-`", {
    pattern: "^[A-Za-z0-9!+@:=_-]+$",
  }).meta(described(description, example));

/** Text for a header: of any other character only the low byte would be sent, which may be a line end. */
export const line = (description: string, example?: string) =>
  text("config.bad-text", "visible ASCII and spaces", { pattern: "^[ -~]*$" }).meta(
    described(description, example),
  );
