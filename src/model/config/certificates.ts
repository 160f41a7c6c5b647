import type { AcmeCertificateConfig, CertificateAuthorityConfig, ProxyConfig, TlsConfig } from "./config.js";
import { clientPort } from "../actions/location.js";
import type { ChallengeType } from "./tls.js";
import type { KeyType } from "../net/tlsPolicy.js";

/** The source of a listener's certificate. */
export type CertificateSource =
  | { readonly type: "files"; readonly certificate: string; readonly key: string }
  | { readonly type: "acme"; readonly acme: AcmeCertificateConfig };

/** The certificates of a valid listener, the default first, each with its place below `tls`: `` or `certificates[0]`. */
export function certificateSources(
  tls: TlsConfig,
): { readonly source: CertificateSource; readonly at: string }[] {
  return certificateFields(tls).map(({ fields: { certificate, key, acme }, at }) => ({
    source:
      acme === undefined ? { type: "files", certificate: certificate!, key: key! } : { type: "acme", acme },
    at,
  }));
}

/** The same as it is written, whether valid or not. */
export function certificateFields(tls: TlsConfig) {
  const further = tls.certificates.map((fields, i) => ({ fields, at: `certificates[${i}]` }));
  return [{ fields: tls, at: "" }, ...further];
}

/** A certificate that an authority has to issue. */
export interface WantedCertificate {
  /** Depends only on names, type of key and authority, not on the rest of the config. */
  readonly id: string;
  readonly names: readonly string[];
  readonly keyType: KeyType;
  readonly authority: CertificateAuthorityConfig;
  readonly challenge: ChallengeType;
}

/** How the names of an authority's certificates are proved: by the DNS if that is set up, on port 80 if a listener is reached there. */
export function challengeOf(
  { listeners }: ProxyConfig,
  { challenge, dns }: CertificateAuthorityConfig,
): ChallengeType {
  const plain = listeners.some((one) => one.protocol === "http" && clientPort(one) === 80);
  return challenge ?? (dns !== undefined ? "dns-01" : plain ? "http-01" : "tls-alpn-01");
}
