import { address } from "../dispatch.js";
import type { HeaderList, RequestHead } from "../exchange.js";

/** A request head, or what stands in for one that is refused. */
export interface ParsedRequest extends RequestHead {
  readonly expectContinue: boolean;
}

export interface HeadLimits {
  readonly requestLineBytesMax: number;
  readonly headBytesMax: number;
  readonly headerCountMax: number;
}

/** Why a head that is well-formed HTTP/2 is refused all the same. The text goes to the error log only. */
export interface Refusal {
  readonly status: 400 | 405 | 414;
  readonly reason: string;
}

/**
 * Reads a request head that nghttp2 let through.
 *
 * nghttp2 resets the stream for what RFC 9113, 8.2 and 8.3 calls malformed: upper-case names, connection-specific
 * fields, `te` other than `trailers`; pseudo-fields that are missing, late, doubled or unknown; an empty `:path`; two
 * Host or Content-Length fields; a length that is no number. Regular fields whose name is no token, or whose value
 * holds a control byte or begins or ends with a blank, it takes out without a word, so they reach nobody. What is
 * left to check is what HTTP/1.1 requests are refused for as well (design 5.6).
 *
 * @param raw names and values in turn, one char a byte, pseudo-fields first
 * @param ended whether END_STREAM came with the head
 */
export function parseRequestHead(
  raw: readonly string[],
  ended: boolean,
  limits: HeadLimits,
  now: number,
): { readonly request: ParsedRequest; readonly refusal: Refusal | undefined } {
  const fields = readFields(raw);
  const { method } = fields;
  const requestLine = fields.path === "" ? `${method} ${fields.authority}` : `${method} ${fields.path}`;
  const declared = fields.contentLength === undefined ? -1 : Number(fields.contentLength);
  const request = {
    method,
    target: fields.path,
    path: "",
    requestLine: `${requestLine} HTTP/2.0`,
    version: "2.0" as const,
    headers: fields.list,
    host: "",
    serverName: "",
    bodyLength: ended ? 0 : declared,
    lengthDeclared: declared !== -1,
    upgrade: fields.protocol?.toLowerCase(),
    receivedAt: now,
    expectContinue: !ended && fields.expectContinue,
  };
  const refusal = refuse(fields, request.requestLine, declared, limits);
  if (refusal !== undefined) return { request, refusal };
  const where = address(fields.authority, fields.path);
  if ("refuse" in where) return { request, refusal: { status: 400, reason: "invalid host or target" } };
  request.path = where.path;
  request.host = where.host;
  request.serverName = where.serverName;
  return { request, refusal: undefined };
}

interface Fields {
  readonly list: HeaderList;
  method: string;
  scheme: string;
  path: string;
  /** `:authority`, or else Host (RFC 9113, 8.3.1). */
  authority: string;
  /** True if `:authority` and Host name different hosts. */
  contradicts: boolean;
  protocol: string | undefined;
  contentLength: string | undefined;
  expectContinue: boolean;
  /** What the fields would take up in an HTTP/1.1 head. */
  bytes: number;
}

function readFields(raw: readonly string[]): Fields {
  const fields: Fields = {
    list: [],
    method: "",
    scheme: "",
    path: "",
    authority: "",
    contradicts: false,
    protocol: undefined,
    contentLength: undefined,
    expectContinue: false,
    bytes: 0,
  };
  const { list } = fields;
  let cookieAt = -1;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    if (name.charCodeAt(0) === COLON) {
      notePseudo(fields, name, value);
      continue;
    }
    fields.bytes += name.length + value.length + 4;
    // Clients split cookies for better compression; HTTP/1.1 knows one field only (RFC 9113, 8.2.3).
    if (name === "cookie") {
      if (cookieAt !== -1) {
        list[cookieAt] += `; ${value}`;
        continue;
      }
      cookieAt = list.length + 1;
    } else noteField(fields, name, value);
    list.push(name, value);
  }
  return fields;
}

const COLON = 0x3a;

function notePseudo(fields: Fields, name: string, value: string): void {
  if (name === ":method") fields.method = value;
  else if (name === ":path") fields.path = value;
  else if (name === ":authority") fields.authority = value;
  else if (name === ":scheme") fields.scheme = value;
  else if (name === ":protocol") fields.protocol = value;
}

function noteField(fields: Fields, name: string, value: string): void {
  if (name === "host") {
    // Pseudo-fields come first, so an authority is known by now.
    if (fields.authority === "") fields.authority = value;
    else fields.contradicts = fields.authority.toLowerCase() !== value.toLowerCase();
  } else if (name === "content-length") fields.contentLength = value;
  else if (name === "expect") fields.expectContinue = value.toLowerCase() === "100-continue";
}

function refuse(
  fields: Fields,
  requestLine: string,
  declared: number,
  limits: HeadLimits,
): Refusal | undefined {
  const { method } = fields;
  if (requestLine.length > limits.requestLineBytesMax)
    return { status: 414, reason: "request line too long" };
  if (fields.list.length > limits.headerCountMax * 2) return { status: 400, reason: "too many fields" };
  if (requestLine.length + fields.bytes > limits.headBytesMax)
    return { status: 400, reason: "request head too long" };
  // A plain CONNECT would make this a tunnel to anywhere; TRACE shows a client's secrets to scripts (design 5.6).
  if (method === "CONNECT" && fields.protocol === undefined)
    return { status: 400, reason: "CONNECT is not served" };
  if (method === "TRACE") return { status: 405, reason: "TRACE is not served" };
  if (fields.path === "*") return { status: 400, reason: "asterisk-form is not served" };
  if (fields.scheme !== "https" && fields.scheme !== "http")
    return { status: 400, reason: "scheme is neither https nor http" };
  // Two names for one request would let one peer route by the first and the next by the second.
  if (fields.contradicts) return { status: 400, reason: "Host differs from :authority" };
  if (fields.authority === "") return { status: 400, reason: "no host" };
  if (!Number.isSafeInteger(declared)) return { status: 400, reason: "Content-Length is out of range" };
  return undefined;
}
