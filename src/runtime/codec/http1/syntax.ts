/**
 * Byte classes of HTTP/1.1 messages (RFC 9110, 5.5 and 5.6.2; RFC 9112, 3), as tables indexed by byte.
 * Heads are parsed from latin1 strings, so a char code is a byte.
 */

/** tchar: field names and methods. */
export const IS_TOKEN = table(
  "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
);

/** The same for a field name, to notice odd bytes in it: 1 for letters, digits and `-`, 2 for every other token byte. */
export const NAME_BYTES = IS_TOKEN.map((is, byte) =>
  /[0-9A-Za-z-]/.test(String.fromCharCode(byte)) ? is : 2 * is,
);

/** Field values: HTAB, SP, VCHAR, obs-text. No other control byte (decisions 3.1). */
export const IS_VALUE = ranges([0x09, 0x09], [0x20, 0x7e], [0x80, 0xff]);

/** Request targets: every byte but controls, space and DEL, as nginx takes them (decisions 1.3). */
export const IS_TARGET = ranges([0x21, 0x7e], [0x80, 0xff]);

export const CR = 0x0d;
export const LF = 0x0a;
export const SP = 0x20;
export const HTAB = 0x09;
export const COLON = 0x3a;

function table(chars: string): Uint8Array {
  const classes = new Uint8Array(256);
  for (const char of chars) classes[char.charCodeAt(0)] = 1;
  return classes;
}

function ranges(...bounds: readonly (readonly [number, number])[]): Uint8Array {
  const classes = new Uint8Array(256);
  for (const [from, to] of bounds) classes.fill(1, from, to + 1);
  return classes;
}

/** Bytes as text, one char a byte: Node's own conversion without the look-up of its encoding, which costs more. */
export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return (bytes as Sliced).latin1Slice?.(from, to) ?? (bytes as Buffer).toString("latin1", from, to);
}

/** Every Buffer has had it since Node 0.1, though it is not documented. */
interface Sliced extends Uint8Array {
  latin1Slice?(from: number, to: number): string;
}
