import { X509Certificate } from "node:crypto";
import type { Problem } from "../../model/serving.js";
import type { LoadedConfig } from "./config.js";
import type { CertificateContents } from "./tlsContents.js";
import { handshakeProblem, hostPolicy } from "./tlsPolicyCheck.js";

/**
 * Why a listener could not use a certificate in place of the one with its id; undefined if each of them can. A worker
 * that gets one that OpenSSL refuses cannot serve.
 *
 * @param at path of the field that names it
 */
export async function unfitCertificate(
  contents: CertificateContents,
  at: string,
  { config, tls }: LoadedConfig,
): Promise<Problem | undefined> {
  const keyType = new X509Certificate(contents.cert).publicKey.asymmetricKeyType;
  for (const listener of config.listeners) {
    const current = tls[listener.name];
    if (current?.certificates.some(({ id }) => id === contents.id) !== true) continue;
    const policy = hostPolicy(listener.tls!.policy);
    const found = await handshakeProblem(policy, { contents, keyType }, current.dhparam, at);
    if (found !== undefined) return found;
  }
  return undefined;
}
