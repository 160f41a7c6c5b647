import {
  type HeaderList,
  CONNECT_REFUSAL,
  requestedUpgrade,
  splitAbsolute,
  TRACE_REFUSAL,
} from "../../../model/serving.js";
import { logsInConnection } from "../connectionLogin.js";
import { address, type LoggedRequest } from "../request.js";
import { REQUEST_FATES } from "./fieldNames.js";
import { type Fields, type MessageHead, HeadError, parseFields } from "./fields.js";
import { CR, IS_TARGET, IS_TOKEN, LF, SP } from "./syntax.js";

/** A request head and what it means for its connection. */
export interface Http1ParsedRequest extends LoggedRequest {
  /** Whether the connection may carry another request after this one. */
  readonly keepAlive: boolean;
  readonly expectContinue: boolean;
}

export interface Http1HeadLimits {
  readonly requestLineBytesMax: number;
  readonly headerCountMax: number;
}

/**
 * Parses a complete request head (RFC 9112, 3 and 5) by the rules of decisions 3.1.
 *
 * @throws HeadError with the status of the response
 */
export function parseRequestHead(
  head: MessageHead,
  limits: Http1HeadLimits,
  now: number,
): Http1ParsedRequest {
  const line = parseRequestLine(head, limits.requestLineBytesMax);
  const fields = parseFields(head, line.end, limits.headerCountMax, REQUEST_FATES);
  if (line.method === "CONNECT") throw new HeadError(CONNECT_REFUSAL.status, CONNECT_REFUSAL.reason);
  if (line.target === "*") throw new HeadError(400, "asterisk-form is not served");
  const where = locate(line, fields);
  if (fields.repeated !== undefined) throw new HeadError(400, `two ${fields.repeated} fields`);
  return new Http1Request(line, fields, where, checkedLength(line, fields, where.serverName), now);
}

class Http1Request implements Http1ParsedRequest {
  readonly method: string;
  readonly target: string;
  readonly path: string;
  readonly requestLine: string;
  readonly version: "1.0" | "1.1";
  readonly host: string;
  readonly serverName: string;
  readonly lengthDeclared: boolean;
  readonly upgrade: string | undefined;
  readonly connectionLogin: boolean;
  readonly keepAlive: boolean;
  readonly expectContinue: boolean;

  constructor(
    line: RequestLine,
    readonly fields: Fields,
    where: TargetParts,
    readonly bodyLength: number,
    readonly receivedAt: number,
  ) {
    const { method, version } = line;
    this.method = method;
    this.target = where.target;
    this.path = where.path;
    this.requestLine = line.text;
    this.version = version;
    this.host = where.host;
    this.serverName = where.serverName;
    this.lengthDeclared = fields.contentLength !== -1;
    this.upgrade = requestedUpgrade(line, fields, bodyLength);
    this.connectionLogin = fields.authorization !== undefined && logsInConnection(fields.authorization);
    this.keepAlive = version === "1.1" ? !fields.close : fields.keepAlive && !fields.close;
    this.expectContinue = fields.expectContinue && version === "1.1";
  }

  get headers(): HeaderList {
    return this.fields.list;
  }
}

interface RequestLine {
  readonly method: string;
  readonly target: string;
  readonly version: "1.0" | "1.1";
  /** The line without its CRLF. */
  readonly text: string;
  /** The position at which the fields begin. */
  readonly end: number;
}

function parseRequestLine(head: MessageHead, bytesMax: number): RequestLine {
  const { text, bytes, at } = head;
  let i = at;
  while (IS_TOKEN[bytes[i]!] === 1) i++;
  if (i === at || bytes[i] !== SP) throw new HeadError(400, "method is not a token");
  const method = text.slice(0, i - at);
  const from = ++i;
  while (IS_TARGET[bytes[i]!] === 1) i++;
  if (i - at + VERSION_BYTES > bytesMax) throw new HeadError(414, "request line too long");
  if (i === from || bytes[i] !== SP) throw new HeadError(400, "request line has no target or no version");
  const target = text.slice(from - at, i - at);
  const version = parseVersion(text, i - at + 1);
  const end = i + VERSION_BYTES;
  if (bytes[end] !== CR || bytes[end + 1] !== LF) throw new HeadError(400, "bytes after the version");
  return { method, target, version, text: text.slice(0, end - at), end: end - at + 2 };
}

/** The version, and the space before it. */
const VERSION_BYTES = 9;

/** `HTTP/1.0`, or any later minor version as 1.1 (RFC 9110, 2.5); other major versions are 505. */
function parseVersion(head: string, at: number): "1.0" | "1.1" {
  const text = head.slice(at, at + 8);
  if (text === "HTTP/1.1") return "1.1";
  if (text === "HTTP/1.0") return "1.0";
  if (!/HTTP\/\d\.\d/.test(text)) throw new HeadError(400, "malformed version");
  if (text[5] !== "1") throw new HeadError(505, "HTTP version not supported");
  return "1.1";
}

/** Refusals after the host is known are responses of its virtual server. */
function checkedLength(line: RequestLine, fields: Fields, serverName: string): number {
  try {
    if (line.method === "TRACE") throw new HeadError(TRACE_REFUSAL.status, TRACE_REFUSAL.reason);
    const length = requestBodyLength(fields, line.version);
    if (fields.expectsMore) throw new HeadError(417, "Expect is not 100-continue");
    return length;
  } catch (error) {
    if (error instanceof HeadError) error.serverName = serverName;
    throw error;
  }
}

interface TargetParts {
  readonly host: string;
  readonly serverName: string;
  readonly target: string;
  readonly path: string;
}

/** Requested host and path; the authority of an absolute-form target replaces Host (RFC 9112, 3.2.2). */
function locate(line: RequestLine, fields: Fields): TargetParts {
  let { target } = line;
  let authority = fields.host;
  if (authority === undefined && line.version === "1.1") throw new HeadError(400, "no Host field");
  if (authority === "") throw new HeadError(400, "empty Host field");
  if (target.charCodeAt(0) !== 0x2f) {
    const absolute = splitAbsolute(target);
    if (absolute === undefined) throw new HeadError(400, "target is neither origin-form nor absolute-form");
    if (authority !== undefined && "refuse" in address(authority, "/"))
      throw new HeadError(400, "invalid Host field");
    ({ authority, target } = absolute);
  }
  const where = address(authority ?? "", target);
  if ("refuse" in where) throw new HeadError(where.refuse, "invalid host or target");
  return where;
}

/** Length of the request body: 0 without framing fields, -1 for chunked (RFC 9112, 6.3). */
function requestBodyLength(fields: Fields, version: "1.0" | "1.1"): number {
  if (fields.transferEncoding === undefined) return fields.contentLength === -1 ? 0 : fields.contentLength;
  if (fields.contentLength !== -1) throw new HeadError(400, "Content-Length beside Transfer-Encoding");
  if (version === "1.0") throw new HeadError(400, "Transfer-Encoding in HTTP/1.0");
  if (fields.transferEncoding !== "chunked") throw new HeadError(501, "transfer coding other than chunked");
  return -1;
}

/** Stands in for a request whose head could not be read, for the error page and the log. */
export function unroutable(requestLine: string): Http1ParsedRequest {
  return {
    // A response to HEAD has no body, however broken the request: the client would read it as its next response.
    method: requestLine.startsWith("HEAD ") ? "HEAD" : "",
    target: "",
    path: "",
    requestLine,
    version: "1.1",
    headers: [],
    host: "",
    serverName: "",
    bodyLength: 0,
    lengthDeclared: false,
    upgrade: undefined,
    connectionLogin: false,
    receivedAt: performance.now(),
    keepAlive: false,
    expectContinue: false,
  };
}
