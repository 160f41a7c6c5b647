import { createPrivateKey, type KeyObject, type X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import {
  type Problem,
  problem,
  type ProxyConfig,
  type TlsConfig,
  tlsPolicySettings,
} from "../../model/serving.js";
import { certificateSources } from "../../model/config/certificates.js";
import { certificatesOf, expiryWarnings, validityProblems } from "./certificateExpiry.js";
import { nameWarnings } from "./certificateNames.js";
import { credentials, type FindCredential } from "./credentials.js";
import { dhPrimeBits } from "./dhParameters.js";
import { readText } from "./files.js";
import { handshakeProblem, policyProblems } from "./tlsPolicyCheck.js";
import type { TlsContents } from "./tlsContents.js";

export interface TlsLoad {
  /** By listener name; complete only if there are no problems. */
  readonly files: Record<string, TlsContents>;
  readonly problems: Problem[];
  /** What does not keep a service from running. */
  readonly warnings: Problem[];
}

/**
 * Reads the TLS files of every https listener and checks that they fit together, each problem on its own.
 *
 * @param expiry whether a certificate outside its time is a problem or a warning
 */
export async function loadTlsFiles(config: ProxyConfig, expiry: "problem" | "warning"): Promise<TlsLoad> {
  const result: TlsLoad = { files: {}, problems: [], warnings: [] };
  // Listeners usually share their files (IPv4 and IPv6): one problem is reported once, at the first of them.
  const seen = new Map<string, TlsContents | undefined>();
  const findCredential = await credentials();
  for (const [i, listener] of config.listeners.entries()) {
    if (listener.tls === undefined) continue;
    const same = JSON.stringify(listener.tls);
    if (!seen.has(same)) {
      const one = await loadListener(listener.tls, `listeners[${i}].tls`, expiry, findCredential);
      result.problems.push(...one.problems);
      result.warnings.push(...one.warnings);
      const certificate = certificatesOf(one.files?.cert ?? "")[0];
      const sharing = config.listeners.filter(({ tls }) => JSON.stringify(tls) === same);
      const label = `listeners[${i}].tls.certificate (${listener.tls.certificate})`;
      if (certificate !== undefined)
        result.warnings.push(...nameWarnings(config, sharing, certificate, label));
      seen.set(same, one.files);
    }
    const files = seen.get(same);
    if (files !== undefined) result.files[listener.name] = files;
  }
  return result;
}

interface Findings {
  files?: TlsContents;
  readonly problems: Problem[];
  readonly warnings: Problem[];
}

async function loadListener(
  tls: TlsConfig,
  path: string,
  expiry: "problem" | "warning",
  findCredential: FindCredential,
): Promise<Findings> {
  const found: Findings = { problems: [], warnings: [] };
  const { source } = certificateSources(tls)[0]!;
  if (source.type !== "files") return found;
  const credential = await findCredential(source.key);
  const keyFile = credential ?? source.key;
  const certificateFile = (await findCredential(source.certificate)) ?? source.certificate;
  const dhparamFile =
    tls.dhparam === undefined ? undefined : ((await findCredential(tls.dhparam)) ?? tls.dhparam);
  const label = {
    key: `${path}.key (${keyFile})`,
    certificate: `${path}.certificate (${certificateFile})`,
    dhparam: `${path}.dhparam (${dhparamFile})`,
  };
  const take = async (file: string, at: string): Promise<string | undefined> => {
    const read = await readText(file, at, file === keyFile);
    if ("text" in read) return read.text;
    found.problems.push(read.problem);
    return undefined;
  };
  const key = await take(keyFile, label.key);
  const cert = await take(certificateFile, label.certificate);
  const dhparam = dhparamFile === undefined ? undefined : await take(dhparamFile, label.dhparam);

  const privateKey = key === undefined ? undefined : parseKey(key, keyFile, label.key, found.problems);
  const chain = cert === undefined ? undefined : parseChain(cert, label.certificate, found.problems);
  if (dhparam !== undefined) checkDhparam(dhparam, dhparamFile!, label.dhparam, found.problems);
  if (chain !== undefined) {
    const invalid = validityProblems(chain, label.certificate);
    (expiry === "problem" ? found.problems : found.warnings).push(...invalid);
    found.warnings.push(...expiryWarnings(chain, label.certificate));
    found.warnings.push(...brokenChain(chain, label.certificate));
    if (privateKey !== undefined) found.problems.push(...mismatch(privateKey, chain, label, credential));
  }
  if (key !== undefined && credential === undefined)
    found.warnings.push(...(await exposed(keyFile, label.key)));
  const policy = tlsPolicySettings(tls.policy);
  found.problems.push(...policyProblems(policy, `${path}.policy`, typeof tls.policy === "string"));
  if (found.problems.length > 0 || key === undefined || cert === undefined) return found;

  found.files = { key, cert, ...(dhparam === undefined ? {} : { dhparam }) };
  // Only real bytes show whether key type, sizes, ciphers and curves go together.
  const failed = await handshakeProblem(policy, found.files, path, privateKey!.asymmetricKeyType);
  if (failed !== undefined) found.problems.push(failed);
  return found;
}

function parseKey(pem: string, file: string, label: string, problems: Problem[]): KeyObject | undefined {
  const refuse = (message: string, fix?: string): undefined => {
    problems.push(problem("files.bad-key", label, message, fix === undefined ? {} : { fix }));
    return undefined;
  };
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(pem)) {
    return refuse(
      "is protected by a passphrase, which cannot be typed in when the service starts",
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

function checkDhparam(pem: string, file: string, label: string, problems: Problem[]): void {
  const bits = dhPrimeBits(pem);
  if (bits !== undefined && bits >= DH_BITS_MIN) return;
  const fix = { fix: `Make new ones: openssl dhparam -out ${file} ${DH_BITS_MIN}` };
  const message =
    bits === undefined ? "contains no usable DH parameters in PEM form" : `has a prime of ${bits} bits`;
  problems.push(
    problem("files.bad-dhparam", label, message, { ...fix, allowed: `at least ${DH_BITS_MIN} bits` }),
  );
}

/** Service 3.1. */
const DH_BITS_MIN = 2048;

/** Clients build the chain from the certificates they are sent; many give up if one did not sign the one before it. */
function brokenChain(chain: readonly X509Certificate[], label: string): Problem[] {
  const at = chain.findIndex((cert, i) => i > 0 && !chain[i - 1]!.checkIssued(cert));
  if (at === -1) return [];
  const message = `certificate ${at + 1} did not issue certificate ${at}: clients will refuse the chain`;
  const fix = "Put the server's certificate first, then its issuer, then the issuer's issuer.";
  return [problem("files.bad-certificate", label, message, { fix })];
}

function mismatch(
  key: KeyObject,
  chain: readonly X509Certificate[],
  label: { readonly key: string; readonly certificate: string },
  credential: string | undefined,
): Problem[] {
  if (fits(chain[0]!, key)) return [];
  const later = chain.findIndex((cert) => fits(cert, key));
  if (later > 0) {
    const message = `has the server's certificate at position ${later + 1}: it must be the first`;
    return [problem("files.bad-certificate", label.certificate, message)];
  }
  const certificate = label.certificate.replace(/^.*\((.*)\)$/, "$1");
  const more =
    credential === undefined
      ? {}
      : { fix: "Renew key and certificate together, then hand both over: systemctl reload portico" };
  return [
    problem("files.key-mismatch", label.key, `does not belong to the certificate in ${certificate}`, more),
  ];
}

function fits(certificate: X509Certificate, key: KeyObject): boolean {
  try {
    return certificate.checkPrivateKey(key);
  } catch {
    return false;
  }
}

async function exposed(file: string, label: string): Promise<Problem[]> {
  const mode = (await stat(file)).mode & 0o777;
  if ((mode & 0o066) === 0) return [];
  const who = (mode & 0o006) === 0 ? "its group" : "everyone on this host";
  const message = `can be read or written by ${who} (mode ${mode.toString(8).padStart(4, "0")})`;
  return [problem("files.key-exposed", label, message, { fix: `Keep it private: chmod 600 ${file}` })];
}
