import { isIP } from "node:net";

/** What a certificate can be asked (Node's `X509Certificate`). */
interface NamedCertificate {
  checkHost(name: string): string | undefined;
  checkIP(address: string): string | undefined;
}

/** Whether clients accept a certificate for a server name: a host name, also by wildcard, or an address (RFC 6125). */
export function coversName(certificate: NamedCertificate, serverName: string): boolean {
  const found = isIP(serverName) === 0 ? certificate.checkHost(serverName) : certificate.checkIP(serverName);
  return found !== undefined;
}
