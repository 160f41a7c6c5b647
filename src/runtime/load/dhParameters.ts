import { type Problem, problem } from "../../model/serving.js";
import type { FindCredential } from "./credentials.js";
import { readText } from "./files.js";

/**
 * Reads Diffie-Hellman parameters and checks them; the text is there only if there are no problems.
 *
 * @param at path of the field's section: `listeners[0].tls`
 */
export async function loadDhparam(
  path: string,
  at: string,
  findCredential: FindCredential,
): Promise<{ readonly text?: string; readonly problems: readonly Problem[] }> {
  const file = (await findCredential(path)) ?? path;
  const label = `${at}.dhparam (${file})`;
  const read = await readText(file, label);
  if ("problem" in read) return { problems: [read.problem] };
  const bits = dhPrimeBits(read.text);
  if (bits !== undefined && bits >= DH_BITS_MIN) return { text: read.text, problems: [] };
  const message =
    bits === undefined ? "contains no usable DH parameters in PEM form" : `has a prime of ${bits} bits`;
  const fix = `Make new parameters: openssl dhparam -out ${file} ${DH_BITS_MIN}`;
  return {
    problems: [
      problem("files.bad-dhparam", label, message, { fix, allowed: `at least ${DH_BITS_MIN} bits` }),
    ],
  };
}

/** Service 3.1. */
const DH_BITS_MIN = 2048;

/**
 * Bits of the prime of PEM Diffie-Hellman parameters; undefined if the text holds none that can be used. Node accepts
 * anything and then silently offers no DHE suites, so we check them ourselves.
 */
export function dhPrimeBits(pem: string): number | undefined {
  const block =
    /-----BEGIN (X9\.42 )?DH PARAMETERS-----([A-Za-z0-9+/=\s]+)-----END \1DH PARAMETERS-----/.exec(pem);
  if (block === null) return undefined;
  const sequence = derContent(Buffer.from(block[2]!, "base64"), 0x30);
  const prime = sequence === undefined ? undefined : derContent(sequence.content, 0x02);
  const base = prime === undefined ? undefined : derContent(prime.rest, 0x02);
  if (base === undefined) return undefined;
  const p = unsigned(prime!.content);
  const g = unsigned(base.content);
  // An even "prime", a base of 0 or 1, or one beyond the prime: damaged, whatever OpenSSL makes of it.
  if (p === undefined || g === undefined || (p & 1n) === 0n || g < 2n || g >= p - 1n) return undefined;
  return p.toString(2).length;
}

/** Content of the DER element at the start of the bytes, and the bytes after it (X.690, 8.1). */
function derContent(bytes: Buffer, tag: number): { content: Buffer; rest: Buffer } | undefined {
  if (bytes[0] !== tag) return undefined;
  // Beyond the end it is not a number, and taken for a length of no bytes.
  const short = bytes[1]! < 0x80;
  const lengthBytes = short ? 0 : bytes[1]! & 0x7f;
  if (lengthBytes > 4 || bytes.length < 2 + lengthBytes || (!short && lengthBytes === 0)) return undefined;
  const length = short ? bytes[1]! : bytes.readUIntBE(2, lengthBytes);
  const from = 2 + lengthBytes;
  if (bytes.length < from + length) return undefined;
  return { content: bytes.subarray(from, from + length), rest: bytes.subarray(from + length) };
}

/** Value of a DER INTEGER; undefined for an empty or negative one. */
function unsigned(content: Buffer): bigint | undefined {
  return content.length === 0 || content[0]! >= 0x80 ? undefined : BigInt(`0x${content.toString("hex")}`);
}
