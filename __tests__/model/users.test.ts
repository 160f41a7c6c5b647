import { parsePasswordHash, parseUsers } from "../../src/model/serving.js";

/** Which files of users are accepted, and what is said of others. */

const SALT = "c2FsdHNhbHRzYWx0c2FsdA";
const KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE";
const SCRYPT = `$scrypt$ln=15,r=8,p=3$${SALT}$${KEY}`;
const BCRYPT = "$2y$10$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui";
const ARGON2 = `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${KEY}`;

test("lines are names and hashes, however an editor writes them", () => {
  const text = `\ufeff# the family\r\n\r\nalice:${SCRYPT}\r\n  zoe\u0308:${ARGON2}  \n#bob:x`;
  expect(parseUsers(text, true)).toEqual([
    ["alice", SCRYPT],
    ["zoë", ARGON2],
  ]);
  expect(parseUsers("# nobody\n", false)).toEqual([]);
});

test("a file of htpasswd -B is accepted as it is, also on a Node without Argon2", () => {
  // `htpasswd` ends what it prints with an empty line.
  const text = `alice:${BCRYPT}\n\nbob:${BCRYPT.replace("2y$10", "2b$04")}\ncarol:${BCRYPT.replace("2y$10", "2a$12")}\n`;
  expect(parseUsers(text, false)).toHaveLength(3);
});

test.each<[string, string, RegExp]>([
  ["nothing", "", /is empty/],
  ["blanks", " \r\n\n", /is empty/],
  ["a page of an error", `alice:${SCRYPT}\n<!doctype html>\n`, /line 2/],
  ["a cut line", `alice:${SCRYPT}\nbob:${SCRYPT.slice(0, -40)}`, /malformed hash in line 2/],
  ["a password", "alice:hunter2", /no hash behind the name in line 1/],
  ["a password alone", "hunter2", /something else than a user and a hash/],
  ["a cut hash of bcrypt", `alice:${BCRYPT.slice(0, -1)}`, /malformed/],
  ["a longer hash of bcrypt", `alice:${BCRYPT}u`, /malformed/],
  ["a salt of bcrypt with more bits", `alice:${BCRYPT.replace("stuu", "stuv")}`, /malformed/],
  ["a hash of bcrypt with more bits", `alice:${BCRYPT.slice(0, -1)}z`, /malformed/],
  ["a cost of bcrypt below its least", `alice:${BCRYPT.replace("$10$", "$03$")}`, /malformed/],
  ["a high cost of bcrypt", `alice:${BCRYPT.replace("$10$", "$13$")}`, /too much to verify/],
  ["an erroneous bcrypt", `alice:${BCRYPT.replace("2y", "2x")}`, /another kind/],
  ["the first bcrypt", `alice:${BCRYPT.replace("2y", "2")}`, /another kind/],
  ["MD5", "alice:$apr1$abcdefgh$0123456789abcdefghijkl", /another kind/],
  ["SHA-512 of crypt", "alice:$6$abcdefgh$0123456789abcdefghijkl", /another kind/],
  ["DES of crypt", "alice:rl0uE.abcdefgh", /no hash behind the name/],
  ["SHA", "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", /another kind/],
  ["argon2i", `alice:${ARGON2.replace("argon2id", "argon2i")}`, /another kind/],
  ["an older Argon2", `alice:${ARGON2.replace("v=19", "v=16")}`, /malformed/],
  ["a user twice", `alice:${SCRYPT}\nalice:${SCRYPT}`, /names a user twice, again in line 2/],
  ["a user twice, in two forms of Unicode", `zoë:${SCRYPT}\nzoe\u0308:${SCRYPT}`, /twice/],
  ["no name", `:${SCRYPT}`, /bad name/],
  ["a control character", `al\u0007ice:${SCRYPT}`, /bad name/],
  ["a blank at the end of a name", `alice :${SCRYPT}`, /bad name/],
  ["a weak cost", `alice:${SCRYPT.replace("ln=15", "ln=9")}`, /too little to guess/],
  ["too much memory", `alice:${SCRYPT.replace("ln=15", "ln=17")}`, /too much to verify/],
  ["too much work", `alice:${SCRYPT.replace("p=3", "p=99")}`, /too much to verify/],
  ["too much memory of Argon2", `alice:${ARGON2.replace("19456", "65537")}`, /too much to verify/],
  ["ISO 8859-1", `zo\ufffd:${SCRYPT}`, /not text in UTF-8/],
])("%s is refused as a whole, and no message has a secret", (_, text, message) => {
  const fault = parseUsers(text, true);
  expect(fault).toHaveProperty("message", expect.stringMatching(message));
  expect(JSON.stringify(fault)).not.toMatch(/hunter2|c2Fsd|MDEy|abcdefgh|qUqP|5s2v/);
});

test("a hash of Argon2 is refused by name where Node cannot verify it", () => {
  const fault = parseUsers(`alice:${ARGON2}`, false);
  expect(fault).toMatchObject({ message: expect.stringContaining("Argon2 in line 1"), received: "alice" });
});

test.each([
  "$scrypt$",
  "$scrypt$ln=15,r=8,p=1$$",
  `${SCRYPT}=`,
  `${SCRYPT} `,
  `$scrypt$r=8,ln=15,p=1$${SALT}$${KEY}`,
])("%s is malformed", (text) => {
  expect(parsePasswordHash(text)).toBe("malformed");
});
