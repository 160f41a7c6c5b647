import { CUT_MARK, NO_RESPONSE, onePiece, refusalText } from "../../model/serving.js";
import type { RequestHead } from "../codec/request.js";
import type { ErrorLevel, Exchange, LoggedExchange, RouteRuntime } from "../exchange/exchange.js";
import { asItIs, NOT_SHOWN, type ShownClient, shownIn } from "./loggedClient.js";
import { requestIdOf } from "../dispatch/requestId.js";
import type { RouteConfig } from "../../model/config/config.js";

/**
 * Log lines. Whatever a client sent ends up as printable ASCII inside its field, so that no request can forge a
 * line, a field or a terminal sequence. Date strings are made once a second.
 */

/** The limit of each value that a client sent: a longer value is cut, since a head may be as short as HPACK makes it. */
const VALUE_CHARACTERS_MAX = 2_048;

/**
 * nginx `combined`:
 * `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`.
 */
export function combinedLine(exchange: LoggedExchange, shown: ShownClient = asItIs): string {
  const { request } = exchange;
  const { authorization, referer, userAgent } = loggedFields(request);
  const who = combinedStart(shown(exchange.client.address), authorization);
  const result = `" ${statusOf(exchange)} ${exchange.bodyBytesSent} `;
  const query = exchange.route?.config.logQuery;
  const from = `"${orDash(referer && loggedQuery(referer, query))}" "${orDash(userAgent)}"\n`;
  const line = request.requestLine;
  return who + (line === "" ? "-" : escape(loggedQuery(line, query))) + result + from;
}

/** Up to the request: the same for all requests of one client in a second, so the last one is kept. */
function combinedStart(address: string, authorization: string | undefined): string {
  const { local } = clock();
  // Credentials are not kept.
  if (authorization !== undefined) return `${address} - ${remoteUser(authorization) ?? "-"} [${local}] "`;
  if (address !== last.address || local !== last.local) {
    last = { address, local, text: `${address} - - [${local}] "`, again: false };
  } else if (!last.again) {
    // Only from the second line in a row: if clients alternate, it would be wasted.
    last.text = onePiece(last.text);
    last.again = true;
  }
  return last.text;
}

let last = { address: "", local: "", text: "", again: false };

/** A JSON object. Bytes from 0x80 up are written as the code points U+0080 to U+00FF: lossless, and ASCII. */
export function jsonLine(exchange: LoggedExchange, shown: ShownClient = asItIs): string {
  const { client, request } = exchange;
  const fields = loggedFields(request);
  const query = exchange.route?.config.logQuery;
  const address = shown(client.address);
  const now = clock();
  const milliseconds = now.at % 1000;
  const tookMs = Math.round(performance.now() - request.receivedAt);
  return (
    `{"time":"${now.iso}.${pad3(milliseconds)}Z"` +
    `,"remote_addr":${jsonOrNull(address === NOT_SHOWN ? undefined : address)},"remote_user":${jsonOrNull(basicUser(fields.authorization))}` +
    `,"method":${json(request.method)},"target":${json(loggedQuery(request.target, query))},"http_version":"${request.version}"` +
    `,"scheme":"${client.scheme}","tls_group":${client.tlsGroup === undefined ? "null" : `"${client.tlsGroup}"`}` +
    `,"host":${json(request.host)}` +
    `,"status":${statusOf(exchange)},"body_bytes_sent":${exchange.bodyBytesSent}` +
    `,"request_time_ms":${tookMs}` +
    `,"request_body_bytes":${request.bodyLength === -1 ? "null" : request.bodyLength}` +
    `,"listener":${json(client.listener)}${placeFields(exchange)}` +
    `,"referer":${jsonOrNull(fields.referer && loggedQuery(fields.referer, query))},"user_agent":${jsonOrNull(fields.userAgent)}` +
    (exchange.guardRefusal === undefined
      ? ""
      : `,"passwordGuard":${json(`${exchange.guardRefusal.guard} ${exchange.guardRefusal.reason}`)}`) +
    (exchange.accessRefusal === undefined ? "" : `,"access":${json(refusalText(exchange.accessRefusal))}`) +
    (exchange.exceeds === undefined ? "" : `,"limit":"${exchange.exceeds}"`) +
    (exchange.requestId === undefined ? "" : `,"request_id":"${exchange.requestId}"`) +
    `${traceFields(exchange, tookMs)}}\n`
  );
}

/** How it failed, and where its time went. A wait ends with the head, or with the exchange if there was none. */
function traceFields(exchange: LoggedExchange, tookMs: number): string {
  const { errorToken, headMs, upstreamServer, upstreamBegunMs, upstreamConnectMs } = exchange;
  const head = headMs === -1 ? "null" : headMs;
  const failed = `,"error":${errorToken === undefined ? "null" : `"${errorToken}"`},"time_to_first_byte_ms":${head}`;
  if (upstreamServer === undefined) return failed + NO_SERVER;
  const end = headMs === -1 ? tookMs : headMs;
  const connect = upstreamConnectMs === -1 ? "null" : upstreamConnectMs;
  return (
    `${failed},"upstream_server":${json(upstreamServer)},"upstream_connect_ms":${connect}` +
    `,"upstream_wait_ms":${Math.max(0, end - upstreamBegunMs)}`
  );
}

const NO_SERVER = ',"upstream_server":null,"upstream_connect_ms":null,"upstream_wait_ms":null';

/** Virtual server, route and upstream. */
function placeFields({ server, route }: LoggedExchange): string {
  if (route === undefined) return `,"server":${json(server.name)},"route":null,"upstream":null`;
  let text = ofRoutes.get(route);
  if (text === undefined) ofRoutes.set(route, (text = routeFields(route)));
  return text;
}

/** The text of a route's fields, which never changes. */
const ofRoutes = new WeakMap<RouteRuntime, string>();

function routeFields({ server, config: { name, action } }: RouteRuntime): string {
  const upstream = action.type === "proxy" ? json(action.upstream) : "null";
  return onePiece(`,"server":${json(server.name)},"route":${json(name)},"upstream":${upstream}`);
}

/**
 * nginx's error format: time, level, process, connection, message, then client and request; and the id of the request,
 * if it has one, or its error page may show one.
 *
 * @param upstream URL requested from the upstream, if it is about one
 */
export function errorLine(
  level: ErrorLevel,
  message: string,
  exchange?: Exchange,
  upstream?: string,
  shown: ShownClient = asItIs,
): string {
  const start = `${clock().error} [${level}] ${process.pid}#${process.pid}: `;
  const text = escapeControls(shown === asItIs ? message : shownIn(message, shown));
  if (exchange === undefined) return `${start}${text}\n`;
  const { client, request, server } = exchange;
  const query = exchange.route?.config.logQuery;
  const referer = loggedFields(request).referer;
  return (
    `${start}*${client.connectionId} ${text}, client: ${shown(client.address)}, server: ${server.serverNames[0]}` +
    (server.errorPages.length === 0 && exchange.requestId === undefined
      ? ""
      : `, request id: ${requestIdOf(exchange)}`) +
    (request.requestLine === "" ? "" : `, request: "${escape(loggedQuery(request.requestLine, query))}"`) +
    (upstream === undefined ? "" : `, upstream: "${escape(upstream)}"`) +
    (request.host === "" ? "" : `, host: "${escape(request.host)}"`) +
    (referer === undefined ? "" : `, referrer: "${escape(loggedQuery(referer, query))}"`) +
    "\n"
  );
}

/** nginx's 499: the client went away before there was a response. */
const CLIENT_GONE = 499;

const statusOf = ({ status, accessRefusal }: Exchange): number =>
  status !== 0 ? status : accessRefusal?.refusal === "close" ? NO_RESPONSE : CLIENT_GONE;

// nginx writes `-` for an absent field and nothing for an empty one (decisions 7.1).
const orDash = (value: string | undefined): string => (value === undefined ? "-" : escape(value));

export interface LoggedFields {
  referer: string | undefined;
  userAgent: string | undefined;
  authorization: string | undefined;
}

/** The first value of each field that a log shows, in one pass over the head. */
export function loggedFields(request: RequestHead): LoggedFields {
  // Reading the list would make it.
  if (request.fields !== undefined) return request.fields;
  const { headers } = request;
  const found: LoggedFields = { referer: undefined, userAgent: undefined, authorization: undefined };
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    // Lengths first: most fields are none of the three, and need no lower-casing.
    if (name.length === 7) {
      if (name.toLowerCase() === "referer") found.referer ??= headers[i + 1];
    } else if (name.length === 10) {
      if (name.toLowerCase() === "user-agent") found.userAgent ??= headers[i + 1];
    } else if (name.length === 13) {
      if (name.toLowerCase() === "authorization") found.authorization ??= headers[i + 1];
    }
  }
  return found;
}

/**
 * User name of Basic credentials (RFC 7617), one char a byte; the password is dropped. Of longer credentials than a user
 * name that is logged whole, only the beginning is decoded.
 *
 * Servers read more than the RFC allows, even the scheme anywhere in the field. Credentials whose user only they can read
 * are shown as such: otherwise nobody who counts failures in the log would see that somebody guesses.
 */
function basicUser(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !MAYBE_BASIC.test(authorization)) return undefined;
  if (!BASIC.test(authorization)) return UNREADABLE;
  const encoded = authorization.slice(6, 6 + USER_ENCODED_MAX);
  const pair = Buffer.from(encoded, "base64").toString("latin1");
  const colon = pair.indexOf(":");
  if (colon === -1 && pair.length > VALUE_CHARACTERS_MAX) return pair;
  return colon <= 0 ? UNREADABLE : pair.slice(0, colon);
}

const MAYBE_BASIC = /basic/i;
const BASIC = /^basic /i;
/** The user of credentials without a name that can be read. */
const UNREADABLE = "?";
/** Base64 of one character more than is logged: the cut is then marked. */
const USER_ENCODED_MAX = Math.ceil((VALUE_CHARACTERS_MAX + 1) / 3) * 4;

/**
 * nginx leaves a space in a user name as it is, which shifts the fields of the line; here it is escaped. So is a name that
 * would look like none.
 */
function remoteUser(authorization: string | undefined): string | undefined {
  const user = basicUser(authorization);
  if (user === "-") return hexEscape(user.charCodeAt(0));
  return user === undefined ? undefined : escape(user).replaceAll(" ", "\\x20");
}

/** A value as {@link VALUE_CHARACTERS_MAX} allows. */
export function cutValue(text: string, max = VALUE_CHARACTERS_MAX): string {
  return text.length > max ? text.slice(0, max) + CUT_MARK : text;
}

/** `"`, `\`, control bytes and everything above 0x7e as `\xHH`, as nginx escapes its access log. */
const escape = (text: string): string => escaped(text, IN_COMBINED);

const json = (text: string): string => `"${escaped(text, IN_JSON)}"`;

/** A value as {@link cutValue} cuts it; the mark is added at last, because it would make safe text unsafe. */
function escaped(text: string, escapes: readonly Uint8Array[]): string {
  if (text.length <= VALUE_CHARACTERS_MAX) return escapedWhole(text, escapes);
  return escapedWhole(text.slice(0, VALUE_CHARACTERS_MAX), escapes) + longEscape(CUT_MARK.charCodeAt(0));
}

/** Works on bytes in a single pass: to read characters of a text, or to join texts, takes several times as long. */
function escapedWhole(text: string, escapes: readonly Uint8Array[]): string {
  if (!UNSAFE.test(text)) return text;
  const length = unescaped.write(text, "utf16le");
  let end = 0;
  for (let i = 0; i < length; i += 2) {
    const code = unescaped[i]! | (unescaped[i + 1]! << 8);
    if (IS_SAFE[code] === 1) {
      scratch[end++] = code;
      continue;
    }
    const bytes = escapes[code] ?? Buffer.from(longEscape(code));
    for (let k = 0; k < bytes.length; k++) scratch[end++] = bytes[k]!;
  }
  return scratch.toString("latin1", 0, end);
}

const UNSAFE = /[^ !#-[\]-~]/;
const ESCAPE_BYTES_MAX = "\\uHHHH".length;
const unescaped = Buffer.allocUnsafeSlow(VALUE_CHARACTERS_MAX * 2);
const scratch = Buffer.allocUnsafeSlow(VALUE_CHARACTERS_MAX * ESCAPE_BYTES_MAX);
const IS_SAFE = Uint8Array.from({ length: 256 }, (_, code) =>
  UNSAFE.test(String.fromCharCode(code)) ? 0 : 1,
);

const hexEscape = (code: number): string => `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`;
const longEscape = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`;

function inJson(code: number): string {
  const text = JSON.stringify(String.fromCharCode(code)).slice(1, -1);
  return code < 0x7f ? text : longEscape(code);
}

/** The bytes for each byte that a client can send. */
const escapesBy = (escapeOf: (code: number) => string): readonly Uint8Array[] =>
  Array.from({ length: 256 }, (_, code) => {
    const char = String.fromCharCode(code);
    return Buffer.from(UNSAFE.test(char) ? escapeOf(code) : char);
  });
const IN_COMBINED = escapesBy(hexEscape);
const IN_JSON = escapesBy(inJson);

/** Messages are our own, but may quote a path or an upstream: control characters are escaped, other characters stay. */
function escapeControls(message: string): string {
  const text = cutValue(message, MESSAGE_CHARACTERS_MAX);
  if (!CONTROL.test(text)) return text;
  let out = "";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (!isControl(code)) continue;
    out += text.slice(from, i) + (code < 0x100 ? hexEscape(code) : longEscape(code));
    from = i + 1;
  }
  return out + text.slice(from);
}

/** Long enough for the stack of a fault. */
const MESSAGE_CHARACTERS_MAX = 4 * VALUE_CHARACTERS_MAX;
// C0, DEL, C1 and the Unicode line ends.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const isControl = (code: number): boolean =>
  code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029;

const jsonOrNull = (text: string | undefined): string => (text === undefined ? "null" : json(text));

const pad2 = (n: number): string => (n < 10 ? `0${n}` : String(n));
const pad3 = (n: number): string => String(n).padStart(3, "0");

/** The time in every shape a log needs. */
interface LogTimes {
  /** Milliseconds since the epoch. */
  at: number;
  second: number;
  /** `21/Nov/2026:10:01:22 +0000`, local time. */
  local: string;
  /** `2026/11/21 10:01:22`, local time. */
  error: string;
  /** `2026-11-21T10:01:22`, UTC. */
  iso: string;
}

const shared: LogTimes = { at: 0, second: -1, local: "", error: "", iso: "" };

function clock(): LogTimes {
  const at = Date.now();
  const second = Math.floor(at / 1000);
  shared.at = at;
  if (second !== shared.second) {
    shared.second = second;
    writeClock(shared, new Date(second * 1000));
  }
  return shared;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;

function writeClock(target: LogTimes, date: Date): void {
  const day = pad2(date.getDate());
  const time = `${pad2(date.getHours())}:${pad2(date.getMinutes())}:${pad2(date.getSeconds())}`;
  const offset = -date.getTimezoneOffset();
  const minutes = Math.abs(offset);
  const zone = `${offset < 0 ? "-" : "+"}${pad2(Math.floor(minutes / 60))}${pad2(minutes % 60)}`;
  target.local = `${day}/${MONTHS[date.getMonth()]}/${date.getFullYear()}:${time} ${zone}`;
  target.error = `${date.getFullYear()}/${pad2(date.getMonth() + 1)}/${day} ${time}`;
  target.iso = date.toISOString().slice(0, 19);
}

/** The queries of a request line or a URL as `logQuery` of the route shows them. */
export function loggedQuery(text: string, how: RouteConfig["logQuery"] | undefined): string {
  if (how === undefined || how === "whole") return text;
  const at = text.indexOf("?");
  if (at === -1) return text;
  // A `Referer` may have a blank in its query, and a request line has its version behind the last one.
  const version = text.lastIndexOf(" HTTP/");
  const end = version > at ? version : text.length;
  const shown = how === "none" ? "" : text.slice(at, end).replace(/=[^&;]*/g, "=*");
  return text.slice(0, at) + shown + text.slice(end);
}
