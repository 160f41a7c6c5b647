import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Problem, problem, type ProxyConfigInput } from "../../model/index.js";
import { EXCLUDED_KEY_FIX, type KeyType, takesKeyType } from "../../model/net/tlsPolicy.js";
import type { Listener } from "./listener.js";
import type { TlsFiles } from "./tlsMaterial.js";
import { isKnown } from "../props/tokens.js";

/** Certificates that the machine that synthesizes can read, because it is the host, or has the host's files. */
interface CertificateHost {
  onThisMachine(path: string): string | undefined;
}

interface CertificatePlaces extends CertificateHost {
  readonly config: ProxyConfigInput;
  readonly listeners: readonly Listener[];
  readonly usedTlsFiles: readonly (readonly [at: string, files: TlsFiles])[];
}

/** A certificate on the host, if it is on this machine too. */
export function certificateHere(proxy: CertificateHost, path: string): X509Certificate | undefined {
  const here = isKnown(path) ? proxy.onThisMachine(path) : undefined;
  if (here === undefined) return undefined;
  try {
    return new X509Certificate(readFileSync(here));
  } catch {
    // It may not be there yet; whether it is a certificate at all is checked where it is used.
    return undefined;
  }
}

/** Keys that the policy of their listener excludes. Of others the host finds it, before it stops anything. */
export function excludedKeyProblems(proxy: CertificatePlaces): Problem[] {
  // Files that Terraform writes replace those that are there now.
  const brought = proxy.usedTlsFiles.flatMap(([, files]) => (files.anyKeyType ? files.certificate! : []));
  if (brought.length === 0) return [];
  return proxy.config.listeners.flatMap(({ tls }, i) => {
    const { node } = proxy.listeners[i]!;
    const policy = tls?.policy;
    if (tls === undefined || policy === undefined || !isKnown(policy)) return [];
    return [tls, ...(tls.certificates ?? [])].flatMap(({ certificate }) => {
      if (certificate === undefined || !brought.includes(certificate)) return [];
      const kind = KINDS[certificateHere(proxy, certificate)?.publicKey.asymmetricKeyType ?? ""];
      if (kind === undefined || takesKeyType(policy, kind.type)) return [];
      const message = `excludes ${kind.name} keys, but the certificate ${certificate} has such a key`;
      const received = typeof policy === "string" ? policy : policy.ciphers;
      const more = { received, allowed: `a policy that allows ${kind.name} keys`, fix: EXCLUDED_KEY_FIX };
      return [problem("tls.bad-policy", `${node.path}.tls.policy`, message, more)];
    });
  });
}

const KINDS: Readonly<Record<string, { readonly type: KeyType; readonly name: string }>> = {
  ec: { type: "ecdsa-p256", name: "ECDSA" },
  rsa: { type: "rsa-2048", name: "RSA" },
};
