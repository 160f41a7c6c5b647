/**
 * The bytes of a text, one char a byte; the next call overwrites them. To read a char of a text takes several times as long
 * as to read a byte, and a client may make a value as long as its head.
 *
 * @returns a buffer that begins with the bytes of the text
 */
export function scratchBytes(text: string): Buffer {
  if (text.length > scratch.length) scratch = Buffer.allocUnsafeSlow(text.length * 2);
  scratch.write(text, 0, "latin1");
  return scratch;
}

/** Grows up to twice the longest head. */
let scratch = Buffer.allocUnsafeSlow(4_096);
