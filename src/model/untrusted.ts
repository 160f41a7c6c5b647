import type { z } from "zod";

/**
 * JSON from hands with fewer rights than this process has. Nothing but a schema opens it, which says all of what is taken:
 * there is no other way to the bytes, for the compiler as at run time.
 */
export class Untrusted {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * What the schema makes of it; undefined if that is not what was sent.
   * @param valuesMax how many values there may be: a list of empty lists takes many times its bytes
   */
  opened<T>(schema: z.ZodType<T>, valuesMax: number): T | undefined {
    if (valuesIn(this.#bytes) > valuesMax) return undefined;
    try {
      const read = schema.safeParse(JSON.parse(this.#bytes.toString("utf8")));
      return read.success ? read.data : undefined;
    } catch {
      return undefined;
    }
  }
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = Buffer.from('"\\,[{');

/** At most how many values a text in JSON has. */
function valuesIn(bytes: Buffer): number {
  let [count, inString] = [1, false];
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (inString) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) inString = false;
    } else if (byte === QUOTE) inString = true;
    else if (byte === COMMA || byte === BRACKET || byte === BRACE) count++;
  }
  return count;
}
