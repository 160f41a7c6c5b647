import { FieldFate, isBlank } from "../../../model/serving.js";
import type { HeaderList } from "../../../model/serving.js";
import { isLoggedIn, offersConnectionLogin } from "../connectionLogin.js";
import * as name from "./fieldNames.js";
import { COLON, CR, HTAB, IS_VALUE, LF, NAME_BYTES, SP } from "./syntax.js";

/** A message head: as text, and as the bytes it was made of, which take a third of the time to look at. */
export interface MessageHead {
  /** From the first byte of its first line to the end of the blank line, one char a byte. */
  readonly text: string;
  /** The buffer with the head; valid only while it is being parsed. */
  readonly bytes: Uint8Array;
  /** The position in `bytes` at which the head begins. */
  readonly at: number;
}

/** The header fields of a message, with those for framing and connection parsed; for requests and responses. */
export class Fields {
  /** Value of the one `Host` field; undefined without one. */
  host: string | undefined = undefined;
  /** Declared length; -1 without a `Content-Length`. */
  contentLength = -1;
  /** Value of `Transfer-Encoding`, lower case; undefined without one. */
  transferEncoding: string | undefined = undefined;
  /** `Connection` options this engine acts on. */
  close = false;
  keepAlive = false;
  connectionUpgrade = false;
  /** The length of all `Connection` fields. */
  connectionCharacters = 0;
  /** A `Connection` field names other fields, or may. */
  namesOthers = false;
  /** `Upgrade` value, lower case. */
  upgrade: string | undefined = undefined;
  expectContinue = false;
  /** An `Expect` that asks for anything else (RFC 9110, 10.1.1). */
  expectsMore = false;
  /** Name of a field that a request may have only once, and this message has twice. */
  repeated: string | undefined = undefined;
  /** First values of the fields that the access log shows. */
  referer: string | undefined = undefined;
  userAgent: string | undefined = undefined;
  authorization: string | undefined = undefined;
  /** Whether the response offers or continues a log-in that belongs to the connection. */
  connectionLogin = false;
  /**
   * Lines that are passed on as they came, and the blank line after them, if every field is either passed on or
   * dropped; undefined if a rule has to decide about one of them, or one is not written the way we write them.
   */
  plainLines: string | undefined = "\r\n";

  /** @param made the list, if it is wanted at once */
  constructor(
    private readonly text: string,
    private readonly from: number,
    private made: HeaderList | undefined,
  ) {}

  /** All fields, in order. Made when it is first needed: most messages are passed on as lines. */
  get list(): HeaderList {
    return (this.made ??= listOf(this.text, this.from));
  }
}

/** Why a head was refused. The message goes to the error log, never to the peer. */
export class HeadError extends Error {
  /** Host of the request, normalised; empty if it could not be read. */
  serverName = "";
  /** Name of the field that was refused; undefined if it was none, or has no name. */
  field: string | undefined = undefined;
  /** Whether a line of the head ends with LF alone. */
  bareLineFeed = false;

  /** @param page text on the error page beyond the status (decisions 5.3) */
  constructor(
    readonly status: 400 | 405 | 408 | 413 | 414 | 417 | 501 | 505,
    message: string,
    readonly page?: string,
  ) {
    super(message);
  }
}

/** A field of a response continues on the next line: the head can be read after {@link unfolded}. */
export class FoldedField extends HeadError {}

/**
 * Parses field lines strictly (decisions 3.1): every name a token directly followed by a colon, no obs-fold, no bare CR
 * or LF, no control byte in a value.
 *
 * @param from where in the head the first field line begins
 * @param fates how each field is handled, by its name
 * @param list a list that each field is added to as well; for messages that will be wanted as a list
 */
export function parseFields(
  head: MessageHead,
  from: number,
  headerCountMax: number,
  fates: name.Fates,
  list?: HeaderList,
): Fields {
  const { text, bytes, at: base } = head;
  const fields = new Fields(text, from, list);
  const end = base + text.length - 2;
  // Lines are passed on in runs: the start of the run that is not yet in `lines`.
  let run = base + from;
  let lines = "";
  let plain = true;
  let count = 0;
  let singles = 0;
  let types = 0;
  for (let i = run; i < end; i += 2) {
    const start = i;
    let seen = 0;
    for (let kind; (kind = NAME_BYTES[bytes[i]!]!) !== 0; i++) seen |= kind;
    const colon = i;
    if (colon === start || bytes[colon] !== COLON) {
      const folded = fates.response && start > base + from && isBlank(bytes[start]!);
      const message = "field name is not a token, or no colon follows it";
      throw folded ? new FoldedField(400, message) : new HeadError(400, message);
    }
    let code = bytes[++i]!;
    while (code === SP || code === HTAB) code = bytes[++i]!;
    const valueFrom = i;
    while (IS_VALUE[code] === 1) code = bytes[++i]!;
    if (code !== CR || bytes[i + 1] !== LF)
      throw badValue(text.slice(start - base, colon - base), code === LF);
    let valueTo = i;
    while (valueTo > valueFrom && isBlank(bytes[valueTo - 1]!)) valueTo--;
    if (++count > headerCountMax) throw new HeadError(400, "too many fields");
    list?.push(text.slice(start - base, colon - base), text.slice(valueFrom - base, valueTo - base));
    const number = name.nameNumber(bytes, start, colon);
    if (number !== name.OTHER) {
      note(fields, number, text.slice(valueFrom - base, valueTo - base), fates.response);
      const bit = name.SINGLE_BITS[number]!;
      if ((singles & bit) !== 0) fields.repeated = name.NAMES[number];
      singles |= bit;
    }
    // A name without a number may have its own fate only if it is of a family, or has odd bytes.
    const fate =
      number === name.OTHER &&
      (seen > 1 || fates.families[name.beginning(bytes[start]!, bytes[start + 1]!)] === 1)
        ? fates.of(text.slice(start - base, colon - base))
        : fates.byNumber[number]!;
    if (fate === FieldFate.Drop) {
      lines += text.slice(run - base, start - base);
      run = i + 2;
    } else {
      // A single type passes; of several types only one does.
      const passes = fate === FieldFate.Pass || (fate === FieldFate.Type && ++types === 1);
      if (!passes || valueFrom !== colon + 2 || bytes[colon + 1] !== SP || valueTo !== i) plain = false;
    }
  }
  lines += text.slice(run - base);
  // A Connection field may name any other field as one that must not be passed on.
  fields.plainLines = plain && !fields.namesOthers ? lines : undefined;
  return fields;
}

function badValue(field: string, bareLineFeed: boolean): HeadError {
  return Object.assign(new HeadError(400, "control byte in a field value"), { field, bareLineFeed });
}

/**
 * The same head with a blank in place of each obs-fold (RFC 9112, 5.2).
 *
 * @param from where its fields begin
 * @throws HeadError if a field that frames the message is folded: peers differ in how they read it
 */
export function unfolded({ text }: MessageHead, from: number): MessageHead {
  const fields = text.slice(from);
  for (const { index } of fields.matchAll(/\r\n[ \t]/g)) {
    const begin = fields.lastIndexOf("\n", index) + 1;
    const [, field] = FRAMING.exec(fields.slice(begin, begin + "transfer-encoding:".length)) ?? [];
    if (field !== undefined)
      throw Object.assign(new HeadError(400, "field continues on the next line"), { field });
  }
  const whole = text.slice(0, from) + fields.replace(/\r\n[ \t]+/g, " ");
  return { text: whole, bytes: Buffer.from(whole, "latin1"), at: 0 };
}

const FRAMING = /^(content-length|transfer-encoding):/i;

/** The fields of a head that was parsed before. */
function listOf(text: string, from: number): HeaderList {
  const list: HeaderList = [];
  const end = text.length - 2;
  for (let at = from; at < end;) {
    const colon = text.indexOf(":", at);
    const lineEnd = text.indexOf("\r\n", colon);
    let valueFrom = colon + 1;
    let valueTo = lineEnd;
    while (valueFrom < valueTo && isBlank(text.charCodeAt(valueFrom))) valueFrom++;
    while (valueTo > valueFrom && isBlank(text.charCodeAt(valueTo - 1))) valueTo--;
    list.push(text.slice(at, colon), text.slice(valueFrom, valueTo));
    at = lineEnd + 2;
  }
  return list;
}

/** Records values of fields that the proxy itself uses. */
function note(fields: Fields, number: number, value: string, response: boolean): void {
  switch (number) {
    case name.HOST:
      if (fields.host !== undefined) throw new HeadError(400, "two Host fields");
      fields.host = value;
      return;
    case name.EXPECT:
      if (value.toLowerCase() === "100-continue") fields.expectContinue = true;
      else if (value !== "") fields.expectsMore = true;
      return;
    case name.UPGRADE:
      fields.upgrade = value.toLowerCase();
      return;
    case name.CONNECTION:
      fields.connectionCharacters += value.length;
      if (fields.connectionCharacters > CONNECTION_CHARACTERS_MAX)
        throw new HeadError(400, `Connection has more than ${CONNECTION_CHARACTERS_MAX} characters`);
      return noteConnection(fields, value.toLowerCase());
    case name.CONTENT_LENGTH:
      return noteContentLength(fields, value, response);
    case name.TRANSFER_ENCODING: {
      // A second field would continue the list: anything but a lone `chunked` is refused by the caller.
      const before = fields.transferEncoding;
      fields.transferEncoding = before === undefined ? value.toLowerCase() : `${before}, ${value}`;
      return;
    }
    case name.REFERER:
      fields.referer ??= value;
      return;
    case name.USER_AGENT:
      fields.userAgent ??= value;
      return;
    case name.AUTHORIZATION:
      fields.authorization ??= value;
      return;
    case name.WWW_AUTHENTICATE:
    case name.PROXY_AUTHENTICATE:
      fields.connectionLogin ||= offersConnectionLogin(value);
      return;
    case name.PERSISTENT_AUTH:
      fields.connectionLogin ||= isLoggedIn(value);
      return;
    case name.PROXY_SUPPORT:
      // `Session-Based-Authentication` (RFC 4559, 6): another proxy says it of what the client logs in on.
      fields.connectionLogin ||= value.toLowerCase().includes("session-based-authentication");
  }
}

/**
 * Each option may name a field to remove, which takes as long as a hundred bytes of another field. All options that are
 * registered, and the names of all fields of usual messages, are shorter.
 */
const CONNECTION_CHARACTERS_MAX = 1_024;

function noteConnection(fields: Fields, value: string): void {
  if (value !== "close" && value !== "keep-alive") fields.namesOthers = true;
  for (const option of value.split(",")) {
    const trimmed = option.trim();
    if (trimmed === "close") fields.close = true;
    else if (trimmed === "keep-alive") fields.keepAlive = true;
    else if (trimmed === "upgrade") fields.connectionUpgrade = true;
  }
}

function noteContentLength(fields: Fields, value: string, response: boolean): void {
  const length = decimal(value);
  // Several fields of a request are refused even where they agree: peers differ in which one they read (decisions 3.1).
  if (fields.contentLength !== -1 && !(response && length === fields.contentLength))
    throw new HeadError(400, "two Content-Length fields");
  if (length === undefined) throw new HeadError(400, "Content-Length is not a number of bytes");
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
