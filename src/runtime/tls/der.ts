/** A value of DER (X.690). */
export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
}

/** The values in a piece of DER, in order. @throws RangeError if it is cut off */
export function values(der: Buffer): DerValue[] {
  const found: DerValue[] = [];
  for (let at = 0; at < der.length;) {
    const tag = der.readUInt8(at);
    const first = der.readUInt8(at + 1);
    const more = first < 0x80 ? 0 : first & 0x7f;
    const length = more === 0 ? first : der.readUIntBE(at + 2, more);
    const from = at + 2 + more;
    if (from + length > der.length) throw new RangeError("the DER is cut off");
    found.push({ tag, content: der.subarray(from, from + length) });
    at = from + length;
  }
  return found;
}

/**
 * DER (X.690) as far as requests and certificates of our own need it: values are written from the inside out.
 * Certificates of an authority are read by Node's `X509Certificate`; `values` is for the two fields that it does not show.
 */

function tagged(tag: number, parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

/** Up to 127 in one byte; above, the number of bytes first (X.690, 8.1.3). */
function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex");
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}

export const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, parts);
export const set = (...parts: readonly Buffer[]): Buffer => tagged(0x31, parts);
export const octets = (content: Buffer): Buffer => tagged(0x04, [content]);
/** A bit string of whole bytes. */
export const bits = (content: Buffer): Buffer => tagged(0x03, [Buffer.from([0]), content]);
export const utf8 = (text: string): Buffer => tagged(0x0c, [Buffer.from(text, "utf8")]);
export const nil = (): Buffer => tagged(0x05, []);
export const yes = (): Buffer => tagged(0x01, [Buffer.from([0xff])]);
/** @param hex contents of an object identifier, already encoded */
export const oid = (hex: string): Buffer => tagged(0x06, [Buffer.from(hex, "hex")]);
/** `[n]` around other values. */
export const explicit = (n: number, ...parts: readonly Buffer[]): Buffer => tagged(0xa0 | n, parts);
/** `[n]` in place of the tag of a string. */
export const implicit = (n: number, content: Buffer): Buffer => tagged(0x80 | n, [content]);

/** An integer that is not negative: a leading bit of one would be a sign. */
export function integer(bytes: Buffer): Buffer {
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from += 1;
  const short = bytes.subarray(from);
  return tagged(0x02, short[0]! >= 0x80 ? [Buffer.from([0]), short] : [short]);
}

/** Years up to 2049 have two digits (RFC 5280, 4.1.2.5). */
export function time(date: Date): Buffer {
  const text = `${date.toISOString().replace(/[-:T]|\.\d+/g, "")}`;
  return date.getUTCFullYear() < 2050
    ? tagged(0x17, [Buffer.from(text.slice(2), "latin1")])
    : tagged(0x18, [Buffer.from(text, "latin1")]);
}
