/**
 * Diffie-Hellman parameters of 2048 bits as PEM: the ffdhe2048 group of RFC 7919, appendix A.1.
 *
 * At this size a well-known group is as strong as a private one, and many have checked it. It takes no minute of CPU
 * and no randomness, so every synthesis writes the same bytes.
 */
export function dhParametersPem(): string {
  pem ??= encodePem(derSequence(derInteger(ffdhe2048Prime()), derInteger(2n)));
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

/** DER of a non-negative INTEGER (X.690, 8.3): big-endian, a zero byte first where the top bit is set. */
function derInteger(value: bigint): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return der(0x02, bytes[0]! < 0x80 ? bytes : Buffer.concat([Buffer.of(0), bytes]));
}

/** DER of a SEQUENCE; `DHParameter` of PKCS #3 is one of prime and base. */
function derSequence(...items: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(items));
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}

function encodePem(bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN DH PARAMETERS-----\n${lines.join("\n")}\n-----END DH PARAMETERS-----\n`;
}
