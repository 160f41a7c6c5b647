import { isIP } from "node:net";
import { CUT_MARK } from "../../../model/text/onePiece.js";

/** Parses lines of access logs, of Portico and of nginx, into requests. */

/** The request of a log line; fields that the format does not have are undefined. */
export interface LineRequest {
  /** The method; a token. */
  readonly method: string;
  /** Target as the request had it, one char a byte; in JSON always in origin-form. */
  readonly target: string;
  /** Host and port as the client wrote them; empty if it named none. */
  readonly host: string | undefined;
  readonly scheme: "http" | "https" | undefined;
  /** Name of the listener that it came through. */
  readonly listener: string | undefined;
  /** Name of the virtual server that responded. */
  readonly server: string | undefined;
  /** Name of the route; null if none matched. */
  readonly route: string | null | undefined;
  /** Status that was sent; 499 if the client went away before. */
  readonly status: number;
  /** Bytes of body that were announced; -1 if that is not known. */
  readonly bodyBytes: number;
  /** `User-Agent` of OPTIONS, whose response can depend on the field; undefined for other methods. */
  readonly userAgent: string | undefined;
  /** Address of the client; undefined where the log does not show it as a whole. */
  readonly client: string | undefined;
}

/** A line about something that was no request: a scanner's bytes, a connection on which nothing came. */
export const NO_REQUEST = "none";
/** A line about a request whose target was too long for a log, and was cut. */
export const CUT_REQUEST = "cut";

type NotReplayable = typeof NO_REQUEST | typeof CUT_REQUEST;

/**
 * Parses a line in `combined` or in our JSON format.
 *
 * @param line without its line feed, one char a byte
 * @returns undefined if it is no line of an access log
 */
export function readLogLine(line: string): LineRequest | NotReplayable | undefined {
  return line.charCodeAt(0) === BRACE ? jsonRequest(line) : combinedRequest(line);
}

/** The escape of a cut in a combined line. */
const CUT_ESCAPE = "\\u2026";
const BRACE = 0x7b;
const SPACE = 0x20;
const BACKSLASH = 0x5c;

/** `ADDRESS - USER [TIME] "REQUEST" STATUS BYTES "REFERER" "USER-AGENT"`; the parts after the status may be missing. */
function combinedRequest(line: string): LineRequest | NotReplayable | undefined {
  // No field before the request can have a quote: it would be escaped.
  const time = line.indexOf('] "');
  if (time < 1 || !isDigit(line.charCodeAt(time - 1)) || !line.slice(0, time).includes(" ["))
    return undefined;
  const begin = time + 3;
  const end = closingQuote(line, begin);
  const status = end === -1 ? undefined : statusAt(line, end + 1);
  if (status === undefined) return undefined;
  const text = line.slice(begin, end);
  if (text.endsWith(CUT_ESCAPE)) return CUT_REQUEST;
  const [first, last] = [text.indexOf(" "), text.lastIndexOf(" ")];
  if (first < 1 || last <= first || !VERSION.test(text.slice(last + 1))) return NO_REQUEST;
  const method = text.slice(0, first);
  const target = unescaped(text.slice(first + 1, last));
  if (!METHOD.test(method) || target === "" || NOT_IN_TARGET.test(target)) return NO_REQUEST;
  // Requests that rarely have a body have none here.
  const bodyBytes = method === "GET" || method === "HEAD" ? 0 : -1;
  const unsaid = { host: undefined, scheme: undefined, listener: undefined, server: undefined };
  const userAgent = method === "OPTIONS" ? line.slice(end + 1).split('"')[3] : undefined;
  const client = addressOf(line.slice(0, line.indexOf(" ")));
  return { method, target, ...unsaid, route: undefined, status, bodyBytes, userAgent, client };
}

/** The end of a quoted field: nginx writes a quote in it as `\x22`, other servers as `\"`. */
function closingQuote(line: string, from: number): number {
  for (let at = line.indexOf('"', from); at !== -1; at = line.indexOf('"', at + 1)) {
    let slashes = at;
    while (line.charCodeAt(slashes - 1) === BACKSLASH && slashes > from) slashes--;
    if ((at - slashes) % 2 === 0) return at;
  }
  return -1;
}

/** A space and three digits, and then a space or the end. */
function statusAt(line: string, at: number): number | undefined {
  if (line.charCodeAt(at) !== SPACE) return undefined;
  if (line.length > at + 4 && line.charCodeAt(at + 4) !== SPACE) return undefined;
  for (let i = at + 1; i < at + 4; i++) if (!isDigit(line.charCodeAt(i))) return undefined;
  return Number(line.slice(at + 1, at + 4));
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

const VERSION = /^HTTP\/[1-3](?:\.\d)?$/;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Controls and spaces, with which no request is served, and characters that are not a byte. */
const NOT_IN_TARGET = /[^!-~\u0080-\u00ff]/;

function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(ESCAPED, unescapedChar) : text;
}

const ESCAPED = /\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g;
const unescapedChar = (_: string, hex: string | undefined, char: string): string =>
  hex === undefined ? char : String.fromCharCode(parseInt(hex, 16));

function jsonRequest(line: string): LineRequest | NotReplayable | undefined {
  let entry: Readonly<Record<string, unknown>>;
  try {
    entry = JSON.parse(line) as typeof entry;
  } catch {
    return undefined;
  }
  const { method, target, status, host, scheme, route } = entry;
  if (typeof method !== "string" || typeof target !== "string" || !isStatus(status)) return undefined;
  if (target.endsWith(CUT_MARK)) return CUT_REQUEST;
  if (!METHOD.test(method) || target === "" || NOT_IN_TARGET.test(target)) return NO_REQUEST;
  const body = entry["request_body_bytes"];
  return {
    method,
    target,
    host: textOf(host),
    scheme: scheme === "http" || scheme === "https" ? scheme : undefined,
    listener: textOf(entry["listener"]),
    server: textOf(entry["server"]),
    route: route === null ? null : textOf(route),
    status,
    bodyBytes: typeof body === "number" && Number.isSafeInteger(body) && body >= 0 ? body : -1,
    userAgent: method === "OPTIONS" ? textOf(entry["user_agent"]) : undefined,
    client: addressOf(textOf(entry["remote_addr"])),
  };
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const addressOf = (text = ""): string | undefined => (isIP(text) === 0 ? undefined : text);
const isStatus = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 999;
