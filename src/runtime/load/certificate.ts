import { createPrivateKey, type KeyObject, type X509Certificate } from "node:crypto";
import { type Problem, problem } from "../../model/serving.js";
import { certificatesOf, expiryWarnings, validityProblems } from "./certificateExpiry.js";
import type { FindCredential } from "./credentials.js";
import { readSecret, readText } from "./files.js";
import type { CertificateContents } from "../tls/tlsContents.js";

/** The files of a certificate, and the field that names them. */
export interface CertificateFiles {
  readonly at: string;
  readonly certificate: string;
  readonly key: string;
  /**
   * Names of the fields below `at`.
   * @default LISTENER_FIELDS
   */
  readonly fields?: { readonly certificate: string; readonly key: string };
}

const LISTENER_FIELDS = { certificate: "certificate", key: "key" };

/** The content of a certificate's files now. */
export interface CertificateLoad {
  /** Complete only if there are no problems. */
  readonly loaded?: { readonly contents: CertificateContents; readonly keyType: string | undefined };
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/**
 * Reads a certificate and its key, and makes every check that needs nothing else.
 *
 * @param expiry whether a certificate outside its time is a problem or a warning
 */
export async function loadCertificate(
  entry: CertificateFiles,
  expiry: "problem" | "warning",
  findCredential: FindCredential,
): Promise<CertificateLoad> {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const { at, fields = LISTENER_FIELDS } = entry;
  const secret = await readSecret(entry.key, `${at}.${fields.key}`, findCredential);
  problems.push(...secret.problems);
  const { file: keyFile, text: key } = secret;
  const certificateFile = (await findCredential(entry.certificate)) ?? entry.certificate;
  const label = { key: secret.label, certificate: `${at}.${fields.certificate} (${certificateFile})` };
  const read = await readText(certificateFile, label.certificate);
  if ("problem" in read) problems.push(read.problem);
  const cert = "text" in read ? read.text : undefined;
  const privateKey = key === undefined ? undefined : parseKey(key, keyFile, label.key, problems);
  const chain = cert === undefined ? undefined : parseChain(cert, label.certificate, problems);
  if (chain !== undefined) {
    const invalid = validityProblems(chain, label.certificate);
    (expiry === "problem" ? problems : warnings).push(...invalid);
    warnings.push(...expiryWarnings(chain, label.certificate));
    warnings.push(...brokenChain(chain, label.certificate));
    if (privateKey !== undefined) {
      const fix = keyFile === entry.key ? {} : { fix: HAND_OVER };
      problems.push(...mismatch(privateKey, chain, label, { certificateFile, ...fix }));
    }
  }
  warnings.push(...secret.warnings);
  if (problems.length > 0) return { problems, warnings };
  const contents = { id: entry.certificate, source: "files", key: key!, cert: cert! } as const;
  return { loaded: { contents, keyType: privateKey!.asymmetricKeyType }, problems, warnings };
}

function parseKey(pem: string, file: string, label: string, problems: Problem[]): KeyObject | undefined {
  const refuse = (message: string, fix?: string): undefined => {
    problems.push(problem("files.bad-key", label, message, fix === undefined ? {} : { fix }));
    return undefined;
  };
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(pem)) {
    return refuse(
      "is protected by a passphrase, which cannot be entered when the service starts",
      `Remove the passphrase and keep the file private: openssl pkey -in ${file} -out ${file}.plain`,
    );
  }
  if (!/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(pem)) {
    return refuse(
      `contains no private key in PEM form${pem.includes("CERTIFICATE-----") ? ", but a certificate" : ""}`,
    );
  }
  try {
    return createPrivateKey(pem);
  } catch {
    // OpenSSL's message is about its decoders and would not help; and no part of the key may be shown.
    return refuse("is damaged: OpenSSL cannot read it as a private key");
  }
}

function parseChain(pem: string, label: string, problems: Problem[]): X509Certificate[] | undefined {
  const chain = certificatesOf(pem);
  if (chain.length === 0) {
    const instead = /PRIVATE KEY-----/.test(pem) ? ", but a private key" : "";
    problems.push(problem("files.bad-certificate", label, `contains no certificate in PEM form${instead}`));
    return undefined;
  }
  const bad = chain.findIndex((cert) => cert === undefined);
  if (bad === -1) return chain as X509Certificate[];
  const which = chain.length === 1 ? "its certificate" : `certificate ${bad + 1} of ${chain.length}`;
  problems.push(problem("files.bad-certificate", label, `is damaged: OpenSSL cannot read ${which}`));
  return undefined;
}

/** Clients build the chain from the certificates they are sent; many give up if one did not sign the one before it. */
function brokenChain(chain: readonly X509Certificate[], label: string): Problem[] {
  const at = chain.findIndex((cert, i) => i > 0 && !chain[i - 1]!.checkIssued(cert));
  if (at === -1) return [];
  const message = `certificate ${at + 1} is not the issuer of certificate ${at}: clients will refuse the chain`;
  const fix =
    "Put the server's certificate first, then its issuer's, then the certificate of that issuer's issuer.";
  return [problem("files.bad-certificate", label, message, { fix })];
}

function mismatch(
  key: KeyObject,
  chain: readonly X509Certificate[],
  label: { readonly key: string; readonly certificate: string },
  { certificateFile, ...more }: { readonly certificateFile: string; readonly fix?: string },
): Problem[] {
  if (chain[0]!.checkPrivateKey(key)) return [];
  const later = chain.findIndex((cert) => cert.checkPrivateKey(key));
  if (later !== -1) {
    const message = `has the server's certificate at position ${later + 1}, but it must be the first`;
    return [problem("files.bad-certificate", label.certificate, message)];
  }
  const message = `does not belong to the certificate in ${certificateFile}`;
  return [problem("files.key-mismatch", label.key, message, more)];
}

const HAND_OVER = "Renew key and certificate together, then load both: systemctl reload portico";
