import { isCidr, rangeMeant } from "../net/address.js";
import { CUT_MARK } from "../text/onePiece.js";
import { printableValue } from "../text/printable.js";
import { type AddressSet, AddressSetBuilder, hasBitsBehind, ipv4In, ipv6In } from "./addressSet.js";

/** A list of a million IPv6 ranges has up to 43 MB. */
export const LIST_BYTES_MAX = 64 * 1024 * 1024;

/** Why a file is no list of addresses. */
export interface ListFault {
  /** Completes the sentence "the file …". */
  readonly message: string;
  readonly received?: string;
  readonly allowed: string;
  readonly fix?: string;
}

/**
 * Reads a list: an address or a range on each line; what follows `#` or `;` is a comment. Lines may end in CRLF, and the
 * file may begin with a byte order mark, as editors of Windows write it.
 *
 * A file with anything else is refused as a whole: it is cut off, or the page of an error that was downloaded in place of
 * the list. So is a file without any text, which a failed download leaves; a comment says that a list is empty on purpose.
 */
export function parseAddressList(bytes: Uint8Array): AddressSet | ListFault {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const builder = new AddressSetBuilder();
  let at = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  let isBlank = true;
  for (let line = 1; at < text.length; line++) {
    const next = text.indexOf("\n", at);
    const end = next === -1 ? text.length : next;
    let first = at;
    let last = at;
    while (last < end && !isComment(text.charCodeAt(last))) last++;
    if (last < end) isBlank = false;
    while (first < last && isSpace(text.charCodeAt(first))) first++;
    while (last > first && isSpace(text.charCodeAt(last - 1))) last--;
    if (first < last) {
      isBlank = false;
      if (!added(builder, text, first, last)) {
        const { message, ...more } = faultOf(text.slice(first, Math.min(last, first + ENTRY_LENGTH_MAX + 1)));
        return { message: `${message} in line ${line}`, ...more };
      }
    }
    at = end + 1;
  }
  return isBlank ? NO_TEXT : builder.done();
}

/** Adds an entry; without making a text of it, because there may be a million. */
function added(builder: AddressSetBuilder, text: string, from: number, to: number): boolean {
  let slash = from;
  while (slash < to && text.charCodeAt(slash) !== SLASH) slash++;
  const bits = ipv4In(text, from, slash);
  const width = bits >= 0 ? 32 : 128;
  const length = slash === to ? width : lengthIn(text, slash + 1, to);
  if (length < 1 || length > width) return false;
  if (bits >= 0) {
    if (bits % 2 ** (32 - length) !== 0) return false;
    builder.addIpv4(bits, length);
    return true;
  }
  if (!ipv6In(text, from, slash, address) || hasBitsBehind(address, length)) return false;
  if (address[0] === 0 && address[1] === 0 && address[2] === 0xffff) builder.add(text.slice(from, to));
  else builder.addIpv6(address, length);
  return true;
}

const address = new Uint32Array(4);

/** The length of a prefix; -1 for anything else. */
function lengthIn(text: string, from: number, to: number): number {
  if (to === from || to - from > 3) return -1;
  let length = 0;
  for (let i = from; i < to; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    length = length * 10 + digit;
  }
  return length;
}

function faultOf(entry: string): ListFault {
  if (entry.length > ENTRY_LENGTH_MAX || entry.includes("%") || !isCidr(entry)) {
    const received = entry.length > SHOWN_MAX ? `${entry.slice(0, SHOWN_MAX)}${CUT_MARK}` : entry;
    return {
      message: "has something else than an address",
      received: printableValue(received),
      allowed: ALLOWED,
    };
  }
  const meant = rangeMeant(entry);
  if (meant === undefined)
    return { message: "has a range of all addresses", received: entry, allowed: ALLOWED };
  return {
    message: "has a range whose address has bits behind its prefix",
    received: entry,
    allowed: `${meant} for the range, ${entry.split("/")[0]} for the address`,
  };
}

const NO_TEXT: ListFault = {
  message: "is empty",
  allowed: "at least one entry or comment",
  fix: "If the list is empty on purpose, write a comment into it: # nobody",
};

const ALLOWED = "an IP address or a CIDR range such as 10.0.0.0/8 on each line, and comments after # or ;";
/** The longest address with a prefix. */
const ENTRY_LENGTH_MAX = 49;
const SHOWN_MAX = 40;

/** Read as latin1. */
const BYTE_ORDER_MARK = "\u00ef\u00bb\u00bf";
const SLASH = 0x2f;
const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0d;
/** `#` and `;`. */
const isComment = (code: number): boolean => code === 0x23 || code === 0x3b;
