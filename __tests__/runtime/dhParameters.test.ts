import { getDiffieHellman } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadDhparam } from "../../src/runtime/load/dhParameters.js";
import { openFolder } from "../../testkit/portico.js";

/** Which files have Diffie-Hellman parameters that can be used: DER in PEM (PKCS #3), to the byte. */

/** The content behind its tag, and its length in so many bytes (X.690, 8.1.3). */
function der(tag: number, content: Buffer, lengthBytes = 3): Buffer {
  const hex = content.length.toString(16).padStart(2 * lengthBytes, "0");
  return Buffer.concat([Buffer.of(tag, 0x80 | lengthBytes), Buffer.from(hex, "hex"), content]);
}
const integer = (hex: string): Buffer => der(0x02, Buffer.from(hex, "hex"));
const sequence = (...items: Buffer[]): Buffer => der(0x30, Buffer.concat(items));

/** A prime of 2048 bits, and what is said of others. */
const PRIME = getDiffieHellman("modp14").getPrime("hex");
const above = (more: number): string => (BigInt(`0x${PRIME}`) + BigInt(more)).toString(16);
const P = integer(`00${PRIME}`);
const TWO = integer("02");
const GOOD = Buffer.concat([P, TWO]);
const NONE = "contains no usable DH parameters in PEM form";

async function said(bytes: Buffer, begin = "DH PARAMETERS", end = begin): Promise<string | undefined> {
  const file = join(openFolder(), "dh.pem");
  const pem = `-----BEGIN ${begin}-----\n${bytes.toString("base64")}\n-----END ${end}-----\n`;
  writeFileSync(file, pem);
  const { text, problems } = await loadDhparam(file, "listeners[0].tls", () => Promise.resolve(undefined));
  expect(text).toBe(problems.length === 0 ? pem : undefined);
  return problems[0]?.message;
}

test.each<[what: string, bytes: Buffer, message: string | undefined]>([
  ["lengths of 3 bytes", sequence(P, TWO), undefined],
  ["a length of 2 bytes", der(0x30, GOOD, 2), undefined],
  ["a length of 4 bytes", der(0x30, GOOD, 4), undefined],
  ["a length of 5 bytes", der(0x30, GOOD, 5), NONE],
  ["a length of 6 bytes", der(0x30, GOOD, 6), NONE],
  ["an indefinite length", Buffer.concat([Buffer.of(0x30, 0x80), GOOD, Buffer.of(0, 0)]), NONE],
  ["a SET", der(0x31, GOOD), NONE],
  ["a prime that is no INTEGER", sequence(der(0x03, Buffer.from(`00${PRIME}`, "hex")), TWO), NONE],
  ["a base that is no INTEGER", sequence(P, der(0x04, Buffer.of(2))), NONE],
  ["a base in the short form", sequence(P, Buffer.of(0x02, 1, 2)), undefined],
  ["no base", sequence(P), NONE],
  ["an empty base", sequence(P, integer("")), NONE],
  ["an empty prime", sequence(integer(""), TWO), NONE],
  ["nothing", Buffer.of(0x30), NONE],
  ["half of a length", sequence(P, TWO).subarray(0, 3), NONE],
  ["one byte less", sequence(P, TWO).subarray(0, -1), NONE],
  ["bytes after the end", Buffer.concat([sequence(P, TWO), Buffer.of(0)]), undefined],
  ["the private length that PKCS #3 allows", sequence(P, TWO, integer("0100")), undefined],
  ["base 0", sequence(P, integer("00")), NONE],
  ["base 1", sequence(P, integer("01")), NONE],
  ["base 0x7f", sequence(P, integer("7f")), undefined],
  ["a negative base", sequence(P, integer("80")), NONE],
  ["the largest base", sequence(P, integer(`00${above(-2)}`)), undefined],
  ["the prime less 1 as base", sequence(P, integer(`00${above(-1)}`)), NONE],
  ["the prime as base", sequence(P, P), NONE],
  ["a negative prime", sequence(integer(PRIME), TWO), NONE],
  ["an even prime", sequence(integer(`00${above(1)}`), TWO), NONE],
  ["2047 bits", sequence(integer(`7f${PRIME.slice(2)}`), TWO), "has a prime of 2047 bits"],
])("%s", async (_what, bytes, message) => {
  expect(await said(bytes)).toBe(message);
});

test("both kinds of lines around them, the same at begin and end", async () => {
  const good = sequence(P, TWO);
  expect(await said(good, "X9.42 DH PARAMETERS")).toBeUndefined();
  for (const [begin, end] of [
    ["X9.42 DH PARAMETERS", "DH PARAMETERS"],
    ["DH PARAMETERS", "X9.42 DH PARAMETERS"],
    ["PARAMETERS", "PARAMETERS"],
  ])
    expect(await said(good, begin, end)).toBe(NONE);
});
