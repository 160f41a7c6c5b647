import type { z } from "zod";

/**
 * JSON from a process with fewer rights than this one. Only a schema can open it, so that the schema lists every value
 * that is used: neither the compiler nor the runtime gives other access to the bytes.
 */
export class Untrusted {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * The parsed value; undefined if it does not fit the schema.
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
