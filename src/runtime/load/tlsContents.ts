/** TLS material of one listener, as PEM. Never logged, never part of a message. */
export interface TlsContents {
  /** The default first. */
  readonly certificates: readonly CertificateContents[];
  readonly dhparam?: string;
}

/** A certificate with its chain, and its key. */
export interface CertificateContents {
  /** The same for as long as it is renewed in one place; for files, the path of the certificate in the config. */
  readonly id: string;
  /** Where it comes from; `temporary` stands in for one that was not issued yet. */
  readonly source: "files" | "acme" | "temporary";
  readonly key: string;
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
