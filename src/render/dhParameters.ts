/**
 * Diffie-Hellman parameters of 2048 bits as PEM: the ffdhe2048 group of RFC 7919, appendix A.1.
 *
 * At this size a well-known group is as strong as a private one, and many have checked it. It takes no minute of CPU
 * and no randomness, so every synthesis writes the same bytes.
 */
export function dhParametersPem(): string {
  pem ??= encodePem(Buffer.from(derHex(ffdhe2048Prime()), "hex"));
  return pem;
}

let pem: string | undefined;

/** p = 2^2048 - 2^1984 + (floor(2^1918 * e) + 560316) * 2^64 - 1 */
export function ffdhe2048Prime(): bigint {
  return (1n << 2048n) - (1n << 1984n) + ((scaledE(1918n) + 560316n) << 64n) - 1n;
}

/** floor(2^bits * e), from e = 1/0! + 1/1! + 1/2! + …, with guard bits for what each division cuts off. */
function scaledE(bits: bigint): bigint {
  const guard = 64n;
  let sum = 0n;
  let term = 1n << (bits + guard);
  for (let n = 1n; term > 0n; n++) {
    sum += term;
    term /= n;
  }
  return sum >> guard;
}

/**
 * `DHParameter` of PKCS #3 in DER (X.690, 8.3): a SEQUENCE of 264 bytes, of the prime as an INTEGER of 257, a zero byte
 * first because the top bit is set, and of the base 2.
 */
const derHex = (prime: bigint): string => `308201080282010100${prime.toString(16)}020102`;

function encodePem(bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN DH PARAMETERS-----\n${lines.join("\n")}\n-----END DH PARAMETERS-----\n`;
}
