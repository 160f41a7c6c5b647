/** TLS material of one listener, as PEM. Never logged, never part of a message. */
export interface TlsContents {
  /** Certificates with their keys, the default first. */
  readonly certificates: readonly CertificateContents[];
  /**
   * Diffie-Hellman parameters.
   * @default - none
   */
  readonly dhparam?: string;
}

/** A certificate with its chain, and its key. */
export interface CertificateContents {
  /** Stays the same when the certificate is renewed; for files, the path of the certificate in the config. */
  readonly id: string;
  /** Where it comes from; `temporary` for a placeholder until one is issued. */
  readonly source: "files" | "acme" | "temporary";
  /** The private key. */
  readonly key: string;
  /** The certificate, then its chain. */
  readonly cert: string;
}

/** The same material with some of its certificates renewed, by their ids. */
export function withRenewed(
  tls: Readonly<Record<string, TlsContents>>,
  renewed: readonly CertificateContents[],
): Record<string, TlsContents> {
  const byId = new Map(renewed.map((certificate) => [certificate.id, certificate]));
  const contents = Object.entries(tls).map(([listener, { certificates, ...more }]) => {
    const now = certificates.map((certificate) => byId.get(certificate.id) ?? certificate);
    return [listener, { ...more, certificates: now }] as const;
  });
  return Object.fromEntries(contents);
}
