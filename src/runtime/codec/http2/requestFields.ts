import { randomBytes } from "node:crypto";
import { type HeaderList, CONNECT_REFUSAL, TRACE_REFUSAL } from "../../../model/serving.js";
import { address, type LoggedRequest, repeatedField } from "../request.js";
import { logsInConnection } from "../connectionLogin.js";
import { FieldKind, type HpackField, isPseudo } from "./hpackTables.js";

/** A request head, or a replacement for a refused one. */
export interface Http2ParsedRequest extends LoggedRequest {
  readonly expectContinue: boolean;
}

export interface Http2HeadLimits {
  readonly requestLineBytesMax: number;
  readonly headBytesMax: number;
  readonly headerCountMax: number;
}

/** Why a head is refused. The text goes to the error log only. */
export interface HeadRefusal {
  readonly status: 400 | 405 | 414 | 417;
  readonly reason: string;
  /** Whether the request is malformed (RFC 9113, 8.1.1): if so, the stream is reset, without a response. */
  readonly malformed: boolean;
}

/**
 * Reads a request head. A head that is malformed by RFC 9113, 8.2 and 8.3, is refused as such; the rest is checked as
 * strictly as for HTTP/1.1 (decisions 3.1).
 *
 * @param fields in the order they came
 * @param ended whether END_STREAM came with the head
 */
export function parseRequestHead(
  fields: readonly HpackField[],
  ended: boolean,
  limits: Http2HeadLimits,
  now: number,
): { readonly request: Http2ParsedRequest; readonly refusal: HeadRefusal | undefined } {
  const head = readFields(fields);
  const { method, contentLength } = head;
  const declared = contentLength === undefined ? -1 : Number(contentLength);
  const request = {
    method,
    target: head.path,
    path: "",
    requestLine: requestLine(head),
    version: "2.0" as const,
    headers: head.list,
    host: "",
    serverName: "",
    bodyLength: ended ? 0 : declared,
    lengthDeclared: declared !== -1,
    upgrade: head.protocol?.toLowerCase(),
    connectionLogin: head.connectionLogin,
    receivedAt: now,
    expectContinue: !ended && head.expectContinue,
  };
  const refusal =
    malformation(head, declared, ended) ?? refuse(head, request.requestLine.length, declared, limits);
  if (refusal !== undefined) return { request, refusal };
  const where = address(head.authority, head.path);
  if ("refuse" in where) return { request, refusal: refused(400, "invalid host or target") };
  if (request.upgrade === "websocket") giveKey(head.list);
  request.path = where.path;
  request.host = where.host;
  request.serverName = where.serverName;
  return { request, refusal: undefined };
}

/**
 * A WebSocket over HTTP/2 is requested without a key (RFC 8441, 5), but HTTP/1.1 upstreams need one to prove that they
 * understood. A key that the client sends anyway is ignored (RFC 8441, 5.1).
 */
function giveKey(list: HeaderList): void {
  for (let i = list.length - 2; i >= 0; i -= 2) if (list[i] === "sec-websocket-key") list.splice(i, 2);
  list.push("Sec-WebSocket-Key", randomBytes(16).toString("base64"));
}

interface RequestFieldsState {
  readonly list: HeaderList;
  method: string;
  scheme: string;
  path: string;
  /** `:authority`, or else Host (RFC 9113, 8.3.1). */
  authority: string;
  hasHost: boolean;
  /** True if `:authority` and Host name different hosts. */
  contradicts: boolean;
  protocol: string | undefined;
  contentLength: string | undefined;
  expectContinue: boolean;
  /** An `Expect` that asks for anything else (RFC 9110, 10.1.1). */
  expectsMore: boolean;
  connectionLogin: boolean;
  /** Size of the fields in an HTTP/1.1 head. */
  bytes: number;
  /** The first thing that makes the head malformed. */
  fault: string | undefined;
}

function readFields(fields: readonly HpackField[]): RequestFieldsState {
  const head: RequestFieldsState = {
    list: [],
    method: "",
    scheme: "",
    path: "",
    authority: "",
    hasHost: false,
    contradicts: false,
    protocol: undefined,
    contentLength: undefined,
    expectContinue: false,
    expectsMore: false,
    connectionLogin: false,
    bytes: 0,
    fault: undefined,
  };
  const { list } = head;
  let cookieAt = -1;
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i]!;
    const { kind, name, value } = field;
    if (kind !== FieldKind.Plain) {
      if (isPseudo(name)) {
        notePseudo(head, field);
        continue;
      }
      if (kind === FieldKind.Cookie && cookieAt !== -1) {
        // Clients split cookies for better compression; HTTP/1.1 has only one field (RFC 9113, 8.2.3).
        list[cookieAt] += `; ${value}`;
        head.bytes += value.length + 2;
        continue;
      }
      if (kind === FieldKind.Cookie) cookieAt = list.length + 1;
      else noteField(head, field);
    }
    head.bytes += name.length + value.length + 4;
    list.push(name, value);
  }
  return head;
}

function notePseudo(head: RequestFieldsState, field: HpackField): void {
  const { kind, value } = field;
  // RFC 9113, 8.3: before all regular fields, each once.
  if (head.list.length > 0) head.fault ??= "pseudo-field after a regular one";
  if (kind === FieldKind.Method && head.method === "") head.method = value;
  else if (kind === FieldKind.Path && head.path === "") head.path = value;
  else if (kind === FieldKind.Authority && head.authority === "") head.authority = value;
  else if (kind === FieldKind.Scheme && head.scheme === "") head.scheme = value;
  else if (kind === FieldKind.Protocol && head.protocol === undefined) head.protocol = value;
  else head.fault ??= kind === FieldKind.Malformed ? "invalid pseudo-field" : "pseudo-field given twice";
}

function noteField(head: RequestFieldsState, { kind, value }: HpackField): void {
  if (kind === FieldKind.Malformed) head.fault ??= "invalid or connection-specific field";
  else if (kind === FieldKind.Host) {
    if (head.hasHost) head.fault ??= "two Host fields";
    head.hasHost = true;
    // Pseudo-fields come first, so an authority is already known.
    if (head.authority === "") head.authority = value;
    else if (head.authority !== value)
      head.contradicts = head.authority.toLowerCase() !== value.toLowerCase();
  } else if (kind === FieldKind.ContentLength) {
    // Refused even where they agree: peers differ in which one they read (decisions 3.1).
    if (head.contentLength !== undefined) head.fault ??= "two Content-Length fields";
    head.contentLength = value;
  } else if (kind === FieldKind.Expect) {
    if (value.toLowerCase() === "100-continue") head.expectContinue = true;
    else if (value !== "") head.expectsMore = true;
  } else if (kind === FieldKind.Authorization) head.connectionLogin ||= logsInConnection(value);
}

/** A text like a request line for the log; empty if not even a method was given. */
function requestLine(head: RequestFieldsState): string {
  if (head.method === "") return "";
  return `${head.method} ${head.path === "" ? head.authority : head.path} HTTP/2.0`;
}

/** RFC 9113, 8.1.1, 8.3.1 and 8.5; RFC 8441, 4. */
function malformation(head: RequestFieldsState, declared: number, ended: boolean): HeadRefusal | undefined {
  let { fault } = head;
  if (head.method === "") fault ??= "no :method";
  else if (head.authority === "") fault ??= "neither :authority nor Host";
  else if (head.method === "CONNECT" && head.protocol === undefined) {
    if (head.path !== "" || head.scheme !== "") fault ??= "CONNECT with :path or :scheme";
  } else if (head.scheme === "" || head.path === "") fault ??= "no :scheme or no :path";
  else if (head.protocol !== undefined && head.method !== "CONNECT") fault ??= ":protocol without CONNECT";
  if (ended && declared > 0) fault ??= "Content-Length without a body";
  return fault === undefined ? undefined : { status: 400, reason: fault, malformed: true };
}

function refuse(
  head: RequestFieldsState,
  lineLength: number,
  declared: number,
  limits: Http2HeadLimits,
): HeadRefusal | undefined {
  const { method } = head;
  if (lineLength > limits.requestLineBytesMax) return refused(414, "request line too long");
  if (head.list.length > limits.headerCountMax * 2) return refused(400, "too many fields");
  if (lineLength + head.bytes > limits.headBytesMax) return refused(400, "request head too long");
  if (method === "CONNECT" && head.protocol === undefined)
    return refused(CONNECT_REFUSAL.status, CONNECT_REFUSAL.reason);
  if (method === "TRACE") return refused(TRACE_REFUSAL.status, TRACE_REFUSAL.reason);
  if (head.path === "*") return refused(400, "asterisk-form is not served");
  if (head.scheme !== "https" && head.scheme !== "http")
    return refused(400, "scheme is neither https nor http");
  // With two names for one request, one peer could route by the first and the next by the second.
  if (head.contradicts) return refused(400, "Host differs from :authority");
  const twice = repeatedField(head.list);
  if (twice !== undefined) return refused(400, `two ${twice} fields`);
  // A tunnel has no body: a Content-Length would count the tunnel's bytes (RFC 9110, 9.3.6).
  if (method === "CONNECT" && declared !== -1) return refused(400, "Content-Length of a CONNECT");
  if (!Number.isSafeInteger(declared)) return refused(400, "Content-Length is out of range");
  if (head.expectsMore) return refused(417, "Expect is not 100-continue");
  return undefined;
}

const refused = (status: HeadRefusal["status"], reason: string): HeadRefusal => ({
  status,
  reason,
  malformed: false,
});
