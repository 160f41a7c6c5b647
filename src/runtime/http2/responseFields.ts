import type { OutgoingHttpHeaders } from "node:http2";
import type { HeaderList } from "../exchange.js";

/**
 * Response fields as node:http2 takes them: lower-case names, one key a name, arrays for names that occur more than
 * once. Connection-specific fields have no meaning on a stream and are left out (RFC 9113, 8.2.2).
 *
 * @param fields receives them; `:status` and the like are in it already
 */
export function addResponseFields(fields: OutgoingHttpHeaders, headers: HeaderList): OutgoingHttpHeaders {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (CONNECTION_SPECIFIC.has(name)) continue;
    const value = headers[i + 1]!;
    // Not `in`: `constructor` is a valid field name.
    if (!Object.hasOwn(fields, name)) fields[name] = value;
    else if (!SINGLE_VALUE.has(name)) addValue(fields, name, value);
    else if (name === "content-encoding" || name === "content-language")
      fields[name] = `${String(fields[name])}, ${value}`;
  }
  return fields;
}

function addValue(fields: OutgoingHttpHeaders, name: string, value: string): void {
  const before = fields[name];
  if (Array.isArray(before)) before.push(value);
  else fields[name] = [String(before), value];
}

const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Names for which node:http2 throws if they are given twice (`kSingleValueHeaders` in lib/internal/http2/util.js).
 * Where such a field is no list (RFC 9110), a second value is an error of whoever sent it, and the first one counts.
 */
const SINGLE_VALUE: ReadonlySet<string> = new Set([
  "access-control-allow-credentials",
  "access-control-max-age",
  "access-control-request-method",
  "age",
  "authorization",
  "content-encoding",
  "content-language",
  "content-length",
  "content-location",
  "content-md5",
  "content-range",
  "content-type",
  "date",
  "dnt",
  "etag",
  "expires",
  "from",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "range",
  "referer",
  "retry-after",
  "server",
  "tk",
  "upgrade-insecure-requests",
  "user-agent",
  "x-content-type-options",
]);
