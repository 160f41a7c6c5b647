import { type KeyObject, verify, type X509Certificate } from "node:crypto";
import { type DerValue, values } from "./der.js";

/** A list of revoked certificates (RFC 5280, 5), as far as an open connection is judged by it again. */
export interface RevocationList {
  readonly pem: string;
  /** Serial numbers, as DER has them, in hex. */
  readonly revoked: ReadonlySet<string>;
  /** In milliseconds since 1970. */
  readonly thisUpdate: number;
  /** In milliseconds since 1970; infinite without an end. */
  readonly nextUpdate: number;
  /** Whether this key has signed it. */
  isSignedBy(key: KeyObject): boolean;
}

/** The lists of a PEM file. @returns a sentence that says what is wrong with the file, in place of the lists */
export function revocationListsOf(pem: string): readonly RevocationList[] | string {
  const blocks = pem.match(/-----BEGIN X509 CRL-----[^-]+-----END X509 CRL-----/g) ?? [];
  if (blocks.length === 0) return "contains no list of revoked certificates in PEM form";
  const lists: RevocationList[] = [];
  for (const block of blocks) {
    try {
      lists.push(revocationListOf(block));
    } catch (error) {
      return error instanceof UnknownPart ? error.message : "contains a damaged list of revoked certificates";
    }
  }
  return lists;
}

class UnknownPart extends Error {}

function revocationListOf(pem: string): RevocationList {
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64");
  const whole = values(der)[0]!.content;
  const [signed, algorithm, signature] = values(whole) as [DerValue, DerValue, DerValue];
  const fields = values(signed.content);
  // A version, if it is not the first; then the algorithm and the name of the authority.
  const times = fields.slice(fields[0]!.tag === INTEGER ? 3 : 2).filter(isTime);
  const behind = fields.slice(fields.indexOf(times.at(-1)!) + 1);
  refuseCritical(behind.find(({ tag }) => tag === EXTENSIONS));
  const entries = behind.find(({ tag }) => tag === SEQUENCE);
  const bytes = whole.subarray(0, endIn(whole, signed));
  const hash = hashOf(algorithm);
  return {
    pem,
    revoked: new Set(
      entries === undefined ? [] : values(entries.content).map(({ content }) => hexOf(values(content)[0]!)),
    ),
    thisUpdate: timeOf(times[0]!),
    nextUpdate: times[1] === undefined ? Infinity : timeOf(times[1]),
    isSignedBy: (key) => isSigned(hash, bytes, key, signature.content.subarray(1)),
  };
}

/** The end of a value in the bytes that have it. */
const endIn = (whole: Buffer, { content }: DerValue): number =>
  content.byteOffset - whole.byteOffset + content.length;

function isSigned(hash: string | undefined, bytes: Buffer, key: KeyObject, signature: Buffer): boolean {
  try {
    return verify(hash, bytes, key, signature);
  } catch {
    // A key of another kind than the signature.
    return false;
  }
}

/** A list with such an extension is not the whole list, or not of its authority alone (RFC 5280, 5.2.4 and 5.2.5). */
function refuseCritical(extensions: DerValue | undefined): void {
  if (extensions === undefined) return;
  for (const { content } of values(values(extensions.content)[0]!.content))
    if (values(content)[1]?.tag === BOOLEAN)
      throw new UnknownPart("contains a list that is a part of a list, or for several authorities");
}

function hashOf(algorithm: DerValue): string | undefined {
  const id = values(algorithm.content)[0]!.content.toString("hex");
  if (!(id in SIGNATURES))
    throw new UnknownPart(
      "contains a list with an unknown signature: RSA (PKCS #1) and ECDSA with SHA-2, and Ed25519, are known",
    );
  return SIGNATURES[id];
}

/** Hashes by identifiers of signatures (RFC 4055, 5; RFC 5758, 3.2; RFC 8410, 3). */
const SIGNATURES: Readonly<Record<string, string | undefined>> = {
  "2a864886f70d01010b": "sha256",
  "2a864886f70d01010c": "sha384",
  "2a864886f70d01010d": "sha512",
  "2a8648ce3d040302": "sha256",
  "2a8648ce3d040303": "sha384",
  "2a8648ce3d040304": "sha512",
  "2b6570": undefined,
};

const hexOf = ({ content }: DerValue): string => content.toString("hex");

/** The serial number of a certificate, as lists have it (RFC 5280, 4.1). */
export function serialOf({ raw }: X509Certificate): string {
  const [version, serial] = values(values(values(raw)[0]!.content)[0]!.content);
  return hexOf(version!.tag === INTEGER ? version! : serial!);
}

const isTime = ({ tag }: DerValue): boolean => tag === UTC_TIME || tag === GENERALIZED_TIME;

/** Two digits of the year are those of 1950 to 2049 (RFC 5280, 4.1.2.5.1). */
function timeOf({ tag, content }: DerValue): number {
  const text = content.toString("latin1");
  const full = tag === GENERALIZED_TIME ? text : `${text < "5" ? "20" : "19"}${text}`;
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full);
  if (match === null) throw new RangeError("not a time of RFC 5280");
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as number[];
  return Date.UTC(year!, month! - 1, day, hour, minute, second);
}

const BOOLEAN = 0x01;
const INTEGER = 0x02;
const SEQUENCE = 0x30;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const EXTENSIONS = 0xa0;
