import { isIP } from "node:net";
import * as z from "zod";
import { isCidr, isIpv6 } from "./address.js";
import type { ProblemCode } from "./problem.js";
import { isServerName } from "./serverName.js";

/**
 * Field types of the documents. Each carries its description, unit and default as metadata: the parser, the
 * error texts, the JSON Schema and the docs all read the same table.
 */

/** A string that must satisfy `accepts`; the problem carries `code` and says what is `allowed`. */
export function text(code: ProblemCode, allowed: string, accepts: (value: string) => boolean) {
  return z.string().superRefine((value, context) => {
    if (!accepts(value)) {
      context.addIssue({ code: "custom", message: `is not ${allowed}`, params: { code, allowed } });
    }
  });
}

/** Largest delay a Node timer can hold: 2^31 - 1 ms, about 24.8 days. */
export const MILLISECONDS_MAX = 2_147_483_647;

/** Milliseconds, 1 to {@link MILLISECONDS_MAX}. */
export const milliseconds = (byDefault: number, description: string) =>
  z
    .int()
    .min(1)
    .max(MILLISECONDS_MAX)
    .default(byDefault)
    .describe(`${description} Milliseconds; default ${byDefault}.`);

/** A whole number in a range. */
export const count = (byDefault: number, min: number, max: number, description: string) =>
  z
    .int()
    .min(min)
    .max(max)
    .default(byDefault)
    .describe(`${description} ${min} to ${max}; default ${byDefault}.`);

/** A switch. */
export const flag = (byDefault: boolean, description: string) =>
  z.boolean().default(byDefault).describe(`${description} Default ${byDefault}.`);

export const port = (description: string) => z.int().min(1).max(65535).describe(description);

export const name = (description: string) =>
  text(
    "config.bad-name",
    "a name: letters, digits, `-`, `_`, `.`, up to 64, first a letter or digit",
    (value) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value),
  ).describe(description);

export const ipAddress = (description: string) =>
  text(
    "config.bad-address",
    "an IPv4 or IPv6 address without brackets",
    (value) => isIP(value) !== 0,
  ).describe(description);

export const cidr = (description: string) =>
  text("config.bad-address", "an IP address or a CIDR range such as 10.0.0.0/8", isCidr).describe(
    description,
  );

export const serverName = (description: string) =>
  text(
    "config.bad-server-name",
    "a lower-case host name, an IP address without brackets, or `_`",
    isServerName,
  ).describe(description);

export const upstreamUrl = (description: string) =>
  text("config.bad-url", "http://HOST:PORT, with nothing after the port", (value) => {
    const match = /^http:\/\/(\[[0-9a-f:.]+\]|[a-z0-9_][a-z0-9._-]*)(?::(\d{1,5}))?\/?$/.exec(value);
    if (match === null) return false;
    const [, host, portText] = match;
    if (portText !== undefined && (Number(portText) < 1 || Number(portText) > 65535)) return false;
    return host!.startsWith("[") ? isIpv6(host!.slice(1, -1)) : isServerName(host!) && host !== "_";
  }).describe(description);

export const filePath = (description: string) =>
  text(
    "config.bad-file-path",
    "an absolute path without `//`, `.` or `..` segments or control characters",
    (value) => /^\/(?!.*(?:\/\/|\/\.\.?(?:\/|$)))[^\u0000-\u001f\u007f]*$/.test(value),
  ).describe(description);

export const routePath = (description: string) =>
  text(
    "config.bad-route-path",
    "a path as routes see it: `/` first, no empty, `.` or `..` segments, no `?`, `#`, `%`, space or control bytes",
    (value) => /^\/(?!.*(?:\/\/|\/\.\.?(?:\/|$)))[!-~]*$/.test(value) && !/[?#%]/.test(value),
  ).describe(description);

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// Framing and connection management belong to the codec; a rule that set them would make messages ambiguous.
const NOT_SETTABLE =
  /^(?:host|connection|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade|content-length|expect|http2-settings)$/i;

export const headerName = text(
  "config.bad-header",
  "a field name that is a token and no connection, framing or Host field",
  (value) => TOKEN.test(value) && !value.includes("_") && !NOT_SETTABLE.test(value),
);

export const headerValue = text(
  "config.bad-header",
  "visible ASCII, spaces and tabs, not at either end",
  (value) => /^(?:[!-~](?:[\t -~]*[!-~])?)?$/.test(value),
);

export const cipherString = (description: string) =>
  text("config.bad-cipher-string", "an OpenSSL cipher string", (value) =>
    /^[A-Za-z0-9!+@:=_-]+$/.test(value),
  ).describe(description);

/** Text for a header: of any other character only the low byte would be sent, which may be a line end. */
export const line = (description: string) =>
  text("config.bad-text", "visible ASCII and spaces", (value) => /^[ -~]*$/.test(value)).describe(
    description,
  );
