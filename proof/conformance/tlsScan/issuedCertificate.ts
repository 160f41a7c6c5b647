import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Files of a server's certificate as a public authority gives it, by an authority made for one scan. */
export interface IssuedCertificate {
  readonly certificate: string;
  readonly key: string;
  /** The certificate of the authority, for who is to trust it. */
  readonly authority: string;
}

/**
 * What public authorities put into certificates: short-lived, with the address as subject alternative name, and with a
 * place where revocations would be told. Scanners read that place and, without being told to, ask nobody there.
 */
const extensionsFor = (address: string): string => `
[req]
distinguished_name = subject
[subject]
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyEncipherment
extendedKeyUsage = serverAuth
subjectAltName = IP:${address}
crlDistributionPoints = URI:http://authority.invalid/revoked.crl
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`;

/** testssl.sh warns of certificates that end within 60 days; authorities give at most a few months. */
const DAYS = "90";

/** Issues a certificate for an address, with a new key of 2048 bits; the files go into a folder of the caller's. */
export function issueCertificate(folder: string, address: string): IssuedCertificate {
  const config = join(folder, "extensions.conf");
  writeFileSync(config, extensionsFor(address));
  const issue = (extensions: string, name: string, ...signer: readonly string[]): void => {
    const made = ["-out", join(folder, `${extensions}.pem`), "-keyout", join(folder, `${extensions}.key`)];
    const kind = ["-config", config, "-extensions", extensions, "-subj", `/CN=${name}`, "-days", DAYS];
    const args = ["req", "-x509", "-newkey", "rsa:2048", "-noenc", "-sha256", ...kind, ...made, ...signer];
    execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
  };
  const authority = join(folder, "authority.pem");
  issue("authority", "Authority of a scan");
  issue("server", address, "-CA", authority, "-CAkey", join(folder, "authority.key"));
  return { certificate: join(folder, "server.pem"), key: join(folder, "server.key"), authority };
}
