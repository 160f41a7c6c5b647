/** One value of DER (X.690). */
export interface Value {
  readonly tag: number;
  readonly content: Buffer;
}

/** The values in a piece of DER, in order. @throws RangeError if it is cut off */
export function values(der: Buffer): Value[] {
  const found: Value[] = [];
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
