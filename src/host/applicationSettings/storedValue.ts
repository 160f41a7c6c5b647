/** A setting as it is stored in the application's database. */
export type StoredValue =
  | { readonly kind: "text"; readonly text: string }
  /** Something is stored that cannot be read here. */
  | { readonly kind: "unreadable" };

/**
 * Reads a stored setting: plain text, JSON (also the envelope `{"__type__": …, "__value__": …}`), or a pickled string
 * in Base64. Nothing is ever executed: of the pickle format, only a single string is understood.
 */
export function readStoredValue(stored: Buffer): StoredValue {
  const text = stored.toString("utf8");
  const value = fromJson(text) ?? fromPickle(text) ?? (isUrl(text) ? text : undefined);
  return value === undefined ? { kind: "unreadable" } : { kind: "text", text: value };
}

function isUrl(text: string): boolean {
  return /^(?:https?:\/\/|\/)[!-~]*$/.test(text) || text === "";
}

function fromJson(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const inner =
      typeof value === "object" && value !== null && "__value__" in value ? value.__value__ : value;
    return typeof inner === "string" ? inner : undefined;
  } catch {
    return undefined;
  }
}

/** Opcodes of Python's pickletools that occur in the pickle of one string. */
const OPCODE = {
  stop: 0x2e,
  proto: 0x80,
  frame: 0x95,
  unicode: 0x56,
  binUnicode: 0x58,
  shortBinUnicode: 0x8c,
};

function fromPickle(text: string): string | undefined {
  if (/[^A-Za-z0-9/+=\s]/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  let at = bytes[0] === OPCODE.proto ? 2 : 0;
  if (bytes[at] === OPCODE.frame) at += 9;
  const end = bytes.length - 1;
  if (at + 2 > end || bytes[end] !== OPCODE.stop) return undefined;
  switch (bytes[at]) {
    case OPCODE.shortBinUnicode:
      return stringAt(bytes, at + 2, bytes[at + 1]!);
    case OPCODE.binUnicode:
      return at + 5 > end ? undefined : stringAt(bytes, at + 5, bytes.readUInt32LE(at + 1));
    case OPCODE.unicode: {
      const line = bytes.subarray(at + 1, bytes.indexOf("\n", at)).toString("latin1");
      return isUrl(line) && !line.includes("\\") ? line : undefined;
    }
    default:
      return undefined;
  }
}

/** The string, if only its memo and the end follow. */
function stringAt(bytes: Buffer, from: number, length: number): string | undefined {
  const rest = bytes.subarray(from + length).toString("latin1");
  // MEMOIZE, BINPUT, LONG_BINPUT, and STOP.
  const bare = /^(?:\x94|q[^]|r[^]{4})?\.$/.test(rest);
  return bare ? bytes.subarray(from, from + length).toString("utf8") : undefined;
}
