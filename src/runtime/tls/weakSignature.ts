import { X509Certificate } from "node:crypto";

/**
 * Hash that a certificate is signed with, if clients refuse it (RFC 8446, 4.4.2.4). OpenSSL 3.0 refuses to serve such a
 * certificate, 3.5 does not. No client checks the signature of a self-signed one.
 *
 * @param pem the certificate, which OpenSSL has read
 */
export function weakSignature(pem: string): "MD5" | "SHA-1" | undefined {
  const certificate = new X509Certificate(pem);
  if (certificate.subject === certificate.issuer) return undefined;
  return WEAK[signatureAlgorithm(certificate.raw)];
}

/** Object identifiers (RFC 3279, 2.2), as DER has them. */
const WEAK: Readonly<Record<string, "MD5" | "SHA-1">> = {
  "2a864886f70d010104": "MD5",
  "2a864886f70d010105": "SHA-1",
  "2a8648ce380403": "SHA-1",
  "2a8648ce3d0401": "SHA-1",
};

/** The identifier in a `Certificate`: the first member of its second member (RFC 5280, 4.1). */
function signatureAlgorithm(der: Buffer): string {
  const signed = content(der, content(der, 0).from);
  const { from, to } = content(der, content(der, signed.to).from);
  return der.toString("hex", from, to);
}

/** Where the content of the value at an offset lies (X.690, 8.1.3). */
function content(der: Buffer, at: number): { readonly from: number; readonly to: number } {
  const first = der[at + 1]!;
  const bytes = first < 0x80 ? 0 : first & 0x7f;
  const from = at + 2 + bytes;
  return { from, to: from + (bytes === 0 ? first : der.readUIntBE(at + 2, bytes)) };
}
