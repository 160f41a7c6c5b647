/**
 * How passwords are stored: strings of the PHC format, as `portico password`, passlib and argon2's own program make them.
 * Salt and hash are base64 without padding.
 */
export type PasswordHash = ScryptHash | Argon2Hash;

interface Salted {
  readonly salt: string;
  /** As long as what is derived from a password. */
  readonly hash: string;
}

/** RFC 7914. */
export interface ScryptHash extends Salted {
  readonly kind: "scrypt";
  /** Binary logarithm of the cost. */
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

/** RFC 9106. */
export interface Argon2Hash extends Salted {
  readonly kind: "argon2id";
  readonly memoryKib: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** Why a text is no hash that Portico verifies; completes the sentence "the file … in line 3". */
export type HashFault = "plain" | "other" | "malformed" | "weak" | "costly";

/** What is verified takes up to this much memory, so that some at a time fit in a worker. */
const MEMORY_KIB_MAX = 64 * 1024;
/** Blocks of 128 bytes that scrypt mixes, and KiB that Argon2 fills: about a second. */
const SCRYPT_WORK_MAX = 2 ** 22;
const ARGON2_WORK_MAX = 16 * MEMORY_KIB_MAX;

const SCRYPT =
  /^\$scrypt\$ln=([1-9][0-9]?),r=([1-9][0-9]?),p=([1-9][0-9]?)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;
const ARGON2ID =
  /^\$argon2id\$v=19\$m=([1-9][0-9]{0,7}),t=([1-9][0-9]{0,3}),p=([1-9][0-9]?)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** Reads what {@link hashText} writes. */
export function parsePasswordHash(text: string): PasswordHash | HashFault {
  if (!/^[${]/.test(text)) return "plain";
  const scrypt = SCRYPT.exec(text);
  if (scrypt !== null) {
    const [ln, r, p] = scrypt.slice(1, 4).map(Number) as [number, number, number];
    const [salt, hash] = scrypt.slice(4) as [string, string];
    if (!isProper(salt, hash)) return "malformed";
    if (ln < 10 || 2 ** ln * r < 2 ** 13) return "weak";
    const isCostly = (2 ** ln * r) / 8 > MEMORY_KIB_MAX || 2 ** ln * r * p > SCRYPT_WORK_MAX;
    return isCostly ? "costly" : { kind: "scrypt", ln, r, p, salt, hash };
  }
  const argon2 = ARGON2ID.exec(text);
  if (argon2 !== null) {
    const [memoryKib, passes, parallelism] = argon2.slice(1, 4).map(Number) as [number, number, number];
    const [salt, hash] = argon2.slice(4) as [string, string];
    if (!isProper(salt, hash) || parallelism > 16 || memoryKib < 8 * parallelism) return "malformed";
    if (memoryKib * passes < 4_096) return "weak";
    const isCostly = memoryKib > MEMORY_KIB_MAX || memoryKib * passes > ARGON2_WORK_MAX;
    return isCostly ? "costly" : { kind: "argon2id", memoryKib, passes, parallelism, salt, hash };
  }
  return /^\$(?:scrypt|argon2id)\$/.test(text) ? "malformed" : "other";
}

/** The same as a text. */
export function hashText(hash: PasswordHash): string {
  const { kind, salt } = hash;
  const parameters =
    kind === "scrypt"
      ? `ln=${hash.ln},r=${hash.r},p=${hash.p}`
      : `v=19$m=${hash.memoryKib},t=${hash.passes},p=${hash.parallelism}`;
  return `$${kind}$${parameters}$${salt}$${hash.hash}`;
}

/** 8 to 64 bytes of salt, 16 to 64 of hash. */
const isProper = (salt: string, hash: string): boolean =>
  [salt, hash].every(({ length }) => length % 4 !== 1 && length <= 86) &&
  salt.length >= 11 &&
  hash.length >= 22;
