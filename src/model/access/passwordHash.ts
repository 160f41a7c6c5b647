/**
 * How passwords are stored: strings of the PHC format, as `portico password`, passlib and argon2's own program make them, or
 * those of bcrypt, as `htpasswd -B` makes them.
 */
export type PasswordHash = PhcHash | BcryptHash;

/** Salt and hash are base64 without padding. */
export type PhcHash = ScryptHash | Argon2Hash;

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

/** Provos and Mazières, "A Future-Adaptable Password Scheme", 1999. Salt and hash are in bcrypt's own base64. */
export interface BcryptHash extends Salted {
  readonly kind: "bcrypt";
  /** All mean the same: earlier ones of some programs were wrong, and changed their letter with the correction. */
  readonly version: "2a" | "2b" | "2y";
  /** Binary logarithm of the rounds. */
  readonly cost: number;
}

/** Why a text is no hash that Portico verifies; completes the sentence "the file … in line 3". */
export type HashFault = "plain" | "other" | "malformed" | "weak" | "costly";

/** What is verified takes up to this much memory, so that some at a time fit in a worker. */
const MEMORY_KIB_MAX = 64 * 1024;
/** Blocks of 128 bytes that scrypt mixes, and KiB that Argon2 fills: about a second. */
const SCRYPT_WORK_MAX = 2 ** 22;
const ARGON2_WORK_MAX = 16 * MEMORY_KIB_MAX;
/** A third of a second in JavaScript; 13 takes about a second on a small machine, and only one thread verifies them. */
export const BCRYPT_COST_MAX = 12;

const SCRYPT = /^ln=([1-9][0-9]?),r=([1-9][0-9]?),p=([1-9][0-9]?)$/;
const ARGON2 = /^m=([1-9][0-9]{0,7}),t=([1-9][0-9]{0,3}),p=([1-9][0-9]?)$/;
/** 128 bits of salt and 184 of hash: the last character of each has no bit more, or no password would match. */
const BCRYPT = /^\$(2[aby])\$([0-3][0-9])\$([./A-Za-z0-9]{21}[.Oeu])([./A-Za-z0-9]{30}[.CGKOSWaeimquy26])$/;
const BASE64 = /^[A-Za-z0-9+/]+$/;

/** Reads what {@link hashText} writes. */
export function parsePasswordHash(text: string): PasswordHash | HashFault {
  if (!/^[${]/.test(text)) return "plain";
  const [, kind, ...parts] = text.split("$");
  if (/^2[aby]$/.test(kind ?? "")) return bcryptHash(text);
  if (kind !== "scrypt" && kind !== "argon2id") return "other";
  if (kind === "argon2id" && parts.shift() !== "v=19") return "malformed";
  const [parameters = "", salt = "", hash = "", ...more] = parts;
  const found = (kind === "scrypt" ? SCRYPT : ARGON2).exec(parameters);
  if (found === null || more.length > 0 || !isProper(salt, hash)) return "malformed";
  const [first, second, p] = found.slice(1).map(Number) as [number, number, number];
  return kind === "scrypt"
    ? scryptHash({ kind, ln: first, r: second, p, salt, hash })
    : argon2Hash({ kind, memoryKib: first, passes: second, parallelism: p, salt, hash });
}

function scryptHash(given: ScryptHash): ScryptHash | HashFault {
  const { ln, r, p } = given;
  if (ln < 10 || 2 ** ln * r < 2 ** 13) return "weak";
  const isCostly = (2 ** ln * r) / 8 > MEMORY_KIB_MAX || 2 ** ln * r * p > SCRYPT_WORK_MAX;
  return isCostly ? "costly" : given;
}

function argon2Hash(given: Argon2Hash): Argon2Hash | HashFault {
  const { memoryKib, passes, parallelism } = given;
  if (parallelism > 16 || memoryKib < 8 * parallelism) return "malformed";
  if (memoryKib * passes < 4_096) return "weak";
  return memoryKib > MEMORY_KIB_MAX || memoryKib * passes > ARGON2_WORK_MAX ? "costly" : given;
}

function bcryptHash(text: string): BcryptHash | HashFault {
  const found = BCRYPT.exec(text);
  if (found === null) return "malformed";
  const [, version, cost, salt, hash] = found as unknown as [
    string,
    BcryptHash["version"],
    string,
    string,
    string,
  ];
  // The least cost of the algorithm is 4, and that of `htpasswd` 5 unless another one is given.
  if (Number(cost) < 4) return "malformed";
  return Number(cost) > BCRYPT_COST_MAX
    ? "costly"
    : { kind: "bcrypt", version, cost: Number(cost), salt, hash };
}

/** The same as a text. */
export function hashText(hash: PasswordHash): string {
  const { kind, salt } = hash;
  if (kind === "bcrypt") return `$${hash.version}$${String(hash.cost).padStart(2, "0")}$${salt}${hash.hash}`;
  const parameters =
    kind === "scrypt"
      ? `ln=${hash.ln},r=${hash.r},p=${hash.p}`
      : `v=19$m=${hash.memoryKib},t=${hash.passes},p=${hash.parallelism}`;
  return `$${kind}$${parameters}$${salt}$${hash.hash}`;
}

/** 8 to 64 bytes of salt, 16 to 64 of hash. */
const isProper = (salt: string, hash: string): boolean =>
  [salt, hash].every((one) => BASE64.test(one) && one.length % 4 !== 1 && one.length <= 86) &&
  salt.length >= 11 &&
  hash.length >= 22;
