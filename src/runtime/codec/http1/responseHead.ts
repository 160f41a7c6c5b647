import { RESPONSE_FATES } from "./fieldNames.js";
import { type Fields, FoldedField, type MessageHead, HeadError, parseFields, unfolded } from "./fields.js";
import { CR, IS_VALUE, LF, SP } from "./syntax.js";

/** An upstream's response head, read as strictly as a request (decisions 3.2). */
export interface ParsedResponse {
  readonly status: number;
  readonly reason: string;
  readonly fields: Fields;
  /** Bytes of body; -1 for chunked, {@link UNTIL_CLOSE} if only the end of the connection ends it. */
  readonly bodyLength: number;
  /** Announced `Content-Length`; -1 without one. Differs from `bodyLength` for HEAD and 304. */
  readonly contentLength: number;
  /** Whether the connection may be used again, under the conditions of `silentConnections.ts` if `bodiless` is set. */
  readonly keepAlive: boolean;
  /** Why it has no body; undefined if it could have one, or has `Content-Length: 0`. */
  readonly bodiless: Bodiless | undefined;
  readonly upgrade: string | undefined;
}

/** Method or status after which a response has no body (RFC 9112, 6.3). */
export type Bodiless = "HEAD" | "204" | "304";

export const UNTIL_CLOSE = -2;

/**
 * @param method of its request: decides whether a body follows (RFC 9112, 6.3)
 * @param listed whether the fields will be wanted as a list
 * @throws HeadError; the client then gets 502
 */
export function parseResponseHead(
  head: MessageHead,
  method: string,
  headerCountMax: number,
  listed: boolean,
): ParsedResponse {
  const { text, bytes, at } = head;
  const version = text.slice(0, 9);
  const http11 = version === "HTTP/1.1 ";
  if (!http11 && version !== "HTTP/1.0 ") throw new HeadError(400, "malformed status line");
  const status = statusCode(text);
  let end = 12;
  // The reason may be missing with its space, as nginx and browsers allow.
  if (bytes[at + end] !== CR && bytes[at + end] !== SP) throw new HeadError(400, "malformed status line");
  while (IS_VALUE[bytes[at + end]!] === 1) end++;
  if (bytes[at + end] !== CR || bytes[at + end + 1] !== LF) throw malformedLine(bytes[at + end] === LF);
  const fields = fieldsOf(head, end + 2, headerCountMax, listed);
  if (fields.transferEncoding !== undefined && fields.transferEncoding !== "chunked") {
    throw new HeadError(400, "transfer coding other than chunked");
  }
  if (fields.transferEncoding !== undefined && fields.contentLength !== -1) {
    throw new HeadError(400, "Content-Length beside Transfer-Encoding");
  }
  if (fields.transferEncoding !== undefined && !http11)
    throw new HeadError(400, "Transfer-Encoding in HTTP/1.0");
  const bodiless = method === "HEAD" || status < 200 || status === 204 || status === 304;
  const declared = fields.transferEncoding === undefined ? fields.contentLength : -1;
  const unframed = fields.transferEncoding === undefined && fields.contentLength === -1;
  const bodyLength = bodiless ? 0 : unframed ? UNTIL_CLOSE : declared;
  const kind = !bodiless || fields.contentLength === 0 ? undefined : kindOf(method, status);
  // After 204 and 304, servers that announce a body send it (uvicorn).
  const mayReuse =
    kind === undefined || kind === "HEAD" ? bodyLength !== UNTIL_CLOSE && status !== 101 : unframed;
  return {
    status,
    reason: text.slice(13, end),
    fields,
    bodyLength,
    contentLength: fields.contentLength,
    keepAlive: mayReuse && (http11 ? !fields.close : fields.keepAlive),
    bodiless: kind,
    upgrade: fields.connectionUpgrade ? fields.upgrade : undefined,
  };
}

function kindOf(method: string, status: number): Bodiless | undefined {
  if (method === "HEAD") return "HEAD";
  return status === 204 ? "204" : status === 304 ? "304" : undefined;
}

function fieldsOf(head: MessageHead, from: number, countMax: number, listed: boolean): Fields {
  const parse = (of: MessageHead): Fields =>
    parseFields(of, from, countMax, RESPONSE_FATES, listed ? [] : undefined);
  try {
    return parse(head);
  } catch (error) {
    if (!(error instanceof FoldedField)) throw error;
    return parse(unfolded(head, from));
  }
}

function malformedLine(bareLineFeed: boolean): HeadError {
  return Object.assign(new HeadError(400, "malformed status line"), { bareLineFeed });
}

function statusCode(head: string): number {
  const hundreds = head.charCodeAt(9) - 0x30;
  const tens = head.charCodeAt(10) - 0x30;
  const ones = head.charCodeAt(11) - 0x30;
  const digits = hundreds >= 1 && hundreds <= 9 && tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9;
  if (!digits) throw new HeadError(400, "malformed status line");
  return hundreds * 100 + tens * 10 + ones;
}
