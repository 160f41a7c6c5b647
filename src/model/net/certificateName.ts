import { isIP } from "node:net";
import { isDomainName, isWildcardName } from "./serverName.js";

/** The methods of a certificate that are used (Node's `X509Certificate`). */
export interface NamedCertificate {
  checkHost(name: string, options: typeof AS_BROWSERS): string | undefined;
  checkIP(address: string): string | undefined;
  readonly subjectAltName: string | undefined;
}

/** No common name counts, and in a wildcard `*` is a whole label (RFC 9525, 2 and 6.3): OpenSSL alone would take more. */
const AS_BROWSERS = { subject: "never", partialWildcards: false } as const;

/**
 * Whether clients accept a certificate for a server name: a host name, also by wildcard, or an address; for all host
 * names of a wildcard only by the same wildcard.
 */
export function coversName(certificate: NamedCertificate, serverName: string): boolean {
  if (isWildcardName(serverName)) return sniNames(certificate.subjectAltName).includes(serverName);
  const found =
    isIP(serverName) === 0 ? certificate.checkHost(serverName, AS_BROWSERS) : certificate.checkIP(serverName);
  return found !== undefined;
}

/**
 * The names by which SNI can choose a certificate, in lower case: the DNS names among its subject alternative names,
 * and those with `*` for their first label. Addresses do not come by SNI (RFC 6066, 3), and clients look at no common
 * name (RFC 9525, 2).
 *
 * @param subjectAltName as Node's `X509Certificate` writes it, which puts quotes around names with odd characters
 */
export function sniNames(subjectAltName: string | undefined): string[] {
  const dnsNames = (subjectAltName ?? "").split(", ").flatMap((entry) => /^DNS:(.*)$/.exec(entry)?.[1] ?? []);
  return dnsNames.map((name) => name.toLowerCase()).filter((name) => isDomainName(name.replace(/^\*\./, "")));
}

/** The name below which an authority looks for the proof of a name (RFC 8555, 8.4). */
export const challengeName = (name: string): string => `_acme-challenge.${name.replace(/^\*\./, "")}`;
