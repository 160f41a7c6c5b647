import { printableValue } from "../text/printable.js";
import type { ListFault } from "./addressList.js";
import { BCRYPT_COST_MAX, type HashFault, type PasswordHash, parsePasswordHash } from "./passwordHash.js";

/** Names of users, each with the hash of a password as a text. */
export type Users = readonly (readonly [name: string, hash: string])[];

/** Contents of the files of users that policies name, by path. */
export type AccessUsers = Readonly<Record<string, Users>>;

const USERS_MAX = 10_000;

/** RFC 7617 refuses control characters; a colon ends the name. A field of a request may have neither blank at an end. */
export const USER_NAME = /^(?! )[^\p{Cc}\u2028\u2029:]{1,255}(?<! )$/u;

/**
 * Reads a file of users: `NAME:HASH` on each line, as htpasswd has it, and comments in lines that begin with `#`. Lines may
 * end in CRLF, and the file may begin with a byte order mark. A file with anything else is refused as a whole. No message
 * has a part of a hash, or what may be a password.
 *
 * @param text decoded as UTF-8
 * @param hasArgon2 whether this program can verify hashes of Argon2
 */
export function parseUsers(text: string, hasArgon2: boolean): Users | ListFault {
  if (text.includes("\ufffd")) return { message: "is not text in UTF-8", allowed: ALLOWED };
  const users = new Map<string, string>();
  let isBlank = true;
  for (const [i, one] of text
    .replace(/^\ufeff/, "")
    .split("\n")
    .entries()) {
    const line = one.trim();
    if (line !== "") isBlank = false;
    if (line === "" || line.startsWith("#")) continue;
    const at = `in line ${i + 1}`;
    const colon = line.indexOf(":");
    // What has no colon may be a password.
    if (colon === -1) return { message: `has something else than a user and a hash ${at}`, allowed: ALLOWED };
    const name = line.slice(0, colon).normalize("NFC");
    const hash = line.slice(colon + 1);
    if (!USER_NAME.test(name))
      return { message: `has a bad name ${at}`, received: printableValue(name.slice(0, 40)), allowed: NAMES };
    if (users.has(name)) return { message: `names a user twice, again ${at}`, received: name, allowed: ONCE };
    const parsed = parsePasswordHash(hash);
    if (typeof parsed === "string") return { ...FAULTS[parsed](at), received: name };
    if (parsed.kind === "argon2id" && !hasArgon2) {
      const message = `has a hash of Argon2 ${at}, which this Node.js cannot verify`;
      return { message, received: name, allowed: "scrypt or bcrypt, or Node.js 24.7 or newer", fix: AGAIN };
    }
    users.set(name, hash);
  }
  if (isBlank) {
    const fix = "If nobody may come in, write a comment into it: # nobody";
    return { message: "is empty", allowed: "at least one user or comment", fix };
  }
  if (users.size > USERS_MAX)
    return { message: `has ${users.size} users`, allowed: `up to ${USERS_MAX} users` };
  return [...users];
}

/** The hash of a line that was accepted. */
export const acceptedHash = (text: string): PasswordHash => parsePasswordHash(text) as PasswordHash;

const AGAIN = "Make the line again: portico password NAME";

const FAULTS: Readonly<Record<HashFault, (at: string) => ListFault>> = {
  plain: (at) => ({ message: `has no hash behind the name ${at}`, allowed: ALLOWED, fix: AGAIN }),
  other: (at) => ({
    message: `has a hash of another kind ${at}, such as MD5 or SHA of htpasswd`,
    allowed: "hashes of scrypt and argon2id in the PHC format, and of bcrypt (htpasswd -B)",
    fix: `${AGAIN}. A hash cannot be turned into another one.`,
  }),
  malformed: (at) => ({ message: `has a malformed hash ${at}`, allowed: ALLOWED, fix: AGAIN }),
  weak: (at) => ({ message: `has a hash that costs too little to guess ${at}`, allowed: COSTS, fix: AGAIN }),
  costly: (at) => ({ message: `has a hash that costs too much to verify ${at}`, allowed: COSTS, fix: AGAIN }),
};

const ALLOWED =
  "NAME:HASH on each line, with a hash of scrypt or argon2id in the PHC format or of bcrypt, and comments after # at the start of a line";
const NAMES = "1 to 255 characters without colons and control characters";
const ONCE = "each user once";
const COSTS = `64 MiB of memory at most, and about the cost that \`portico password\` chooses; bcrypt: a cost of 4 to ${BCRYPT_COST_MAX}`;
