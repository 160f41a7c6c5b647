import { createHash } from "node:crypto";
import type {
  AcmeCertificateConfig,
  CertificateAuthorityConfig,
  ListenerConfig,
  ProxyConfig,
  TlsConfig,
} from "./config.js";
import { type KeyType, keyTypeFor } from "../tlsPolicy.js";

/** Where a certificate of a listener comes from. */
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

/** A certificate that is to be had from an authority. */
export interface WantedCertificate {
  /** Stable: the same names, type of key and authority have the same, whatever else a config says. */
  readonly id: string;
  readonly names: readonly string[];
  readonly keyType: KeyType;
  readonly authority: CertificateAuthorityConfig;
  readonly challenge: "http-01" | "tls-alpn-01";
}

/** Every certificate that a valid config wants from authorities, each once. */
export function wantedCertificates(config: ProxyConfig): WantedCertificate[] {
  const wanted = config.listeners.flatMap((listener) =>
    listener.tls === undefined
      ? []
      : certificateSources(listener.tls).flatMap(({ source }) =>
          source.type === "acme" ? [wantedCertificate(config, listener, source.acme)] : [],
        ),
  );
  return [...new Map(wanted.map((one) => [one.id, one])).values()];
}

/** The certificate that an `acme` of a listener means. */
export function wantedCertificate(
  config: ProxyConfig,
  { tls }: ListenerConfig,
  { authority: named, names, keyType = keyTypeFor(tls!.policy) }: AcmeCertificateConfig,
): WantedCertificate {
  const authority = config.certificateAuthorities.find(({ name }) => name === named)!;
  const hash = createHash("sha256").update(
    JSON.stringify([authority.directory, keyType, ...[...names].sort()]),
  );
  return {
    id: `${named}-${hash.digest("hex").slice(0, ID_DIGITS)}`,
    names,
    keyType,
    authority,
    challenge: challengeOf(config, authority),
  };
}

const ID_DIGITS = 16;

/** How the names of an authority's certificates are proved: on port 80 wherever there is a listener for it. */
export function challengeOf(
  { listeners }: ProxyConfig,
  { challenge }: CertificateAuthorityConfig,
): "http-01" | "tls-alpn-01" {
  const plain = listeners.some(({ protocol, port }) => protocol === "http" && port === 80);
  return challenge ?? (plain ? "http-01" : "tls-alpn-01");
}
