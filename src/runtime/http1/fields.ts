import type { HeaderList } from "../exchange.js";
import { COLON, CR, HTAB, IS_TOKEN, IS_VALUE, LF, SP } from "./syntax.js";

/** What the fields of a message say about its framing and its connection; the same for requests and answers. */
export interface Fields {
  readonly list: HeaderList;
  /** Value of the one `Host` field; undefined without one. */
  host: string | undefined;
  /** Declared length; -1 without a `Content-Length`. */
  contentLength: number;
  /** Value of `Transfer-Encoding`, lower case; undefined without one. */
  transferEncoding: string | undefined;
  /** `Connection` options this engine acts on. */
  close: boolean;
  keepAlive: boolean;
  connectionUpgrade: boolean;
  /** `Upgrade` value, lower case. */
  upgrade: string | undefined;
  expectContinue: boolean;
}

/** Why a head was refused. The message goes to the error log, never to the peer. */
export class HeadError extends Error {
  /** Host of the request, normalised, if it could be read. */
  serverName: string | undefined = undefined;

  /** @param page what the page says beyond the status (nginx-semantics I) */
  constructor(
    readonly status: 400 | 405 | 408 | 413 | 414 | 431 | 501 | 505,
    message: string,
    readonly page?: string,
  ) {
    super(message);
  }
}

/**
 * Parses field lines strictly (design 5.6): every name a token directly followed by a colon, no obs-fold, no bare CR
 * or LF, no control byte in a value.
 *
 * @param head the head as latin1, the blank line's CRLF CRLF included
 * @param at where the first field line begins
 */
export function parseFields(head: string, at: number, headerCountMax: number): Fields {
  const fields: Fields = {
    list: [],
    host: undefined,
    contentLength: -1,
    transferEncoding: undefined,
    close: false,
    keepAlive: false,
    connectionUpgrade: false,
    upgrade: undefined,
    expectContinue: false,
  };
  const { list } = fields;
  const end = head.length - 2;
  while (at < end) {
    let i = at;
    while (IS_TOKEN[head.charCodeAt(i)] === 1) i++;
    if (i === at || head.charCodeAt(i) !== COLON)
      throw new HeadError(400, "field name is no token, or no colon follows it");
    const name = head.slice(at, i++);
    let code = head.charCodeAt(i);
    while (code === SP || code === HTAB) code = head.charCodeAt(++i);
    const from = i;
    while (IS_VALUE[code] === 1) code = head.charCodeAt(++i);
    if (code !== CR || head.charCodeAt(i + 1) !== LF)
      throw new HeadError(400, "control byte in a field value");
    let to = i;
    while (to > from && isBlank(head.charCodeAt(to - 1))) to--;
    const value = head.slice(from, to);
    list.push(name, value);
    if (list.length > headerCountMax * 2) throw new HeadError(400, "too many fields");
    note(fields, name, value);
    at = i + 2;
  }
  return fields;
}

const isBlank = (code: number): boolean => code === SP || code === HTAB;

/** Records what the engine itself needs. Names are told apart by length first, so that most cost one switch. */
function note(fields: Fields, name: string, value: string): void {
  switch (name.length) {
    case 4:
      if (name.toLowerCase() === "host") {
        if (fields.host !== undefined) throw new HeadError(400, "two Host fields");
        fields.host = value;
      }
      return;
    case 6:
      if (name.toLowerCase() === "expect") fields.expectContinue = value.toLowerCase() === "100-continue";
      return;
    case 7:
      if (name.toLowerCase() === "upgrade") fields.upgrade = value.toLowerCase();
      return;
    case 10:
      if (name.toLowerCase() === "connection") noteConnection(fields, value.toLowerCase());
      return;
    case 14:
      if (name.toLowerCase() === "content-length") noteContentLength(fields, value);
      return;
    case 17:
      if (name.toLowerCase() === "transfer-encoding") {
        // A second field would continue the list: anything but a lone `chunked` is refused by the caller.
        const before = fields.transferEncoding;
        fields.transferEncoding =
          before === undefined ? value.toLowerCase() : `${before}, ${value.toLowerCase()}`;
      }
  }
}

function noteConnection(fields: Fields, value: string): void {
  for (const option of value.includes(",") ? value.split(",") : [value]) {
    const trimmed = option.trim();
    if (trimmed === "close") fields.close = true;
    else if (trimmed === "keep-alive") fields.keepAlive = true;
    else if (trimmed === "upgrade") fields.connectionUpgrade = true;
  }
}

function noteContentLength(fields: Fields, value: string): void {
  // Several fields are refused even where they agree: peers differ in which one they read (design 5.6).
  if (fields.contentLength !== -1) throw new HeadError(400, "two Content-Length fields");
  const length = decimal(value);
  if (length === undefined) throw new HeadError(400, "Content-Length is no number of bytes");
  fields.contentLength = length;
}

/** The value of 1 to 16 decimal digits below 2^53; undefined for anything else, signs and blanks included. */
function decimal(text: string): number | undefined {
  if (text.length === 0 || text.length > 16) return undefined;
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return Number.isSafeInteger(value) ? value : undefined;
}
