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
  /** Id that stays the same when the certificate is renewed; for files, the path of the certificate in the config. */
  readonly id: string;
  /** Source of the certificate; `temporary` for a certificate until the configured certificate is issued. */
  readonly source: "files" | "acme" | "temporary";
  /**
   * Names of the certificate order; SNI selects the certificate by these names only.
   * @default - the names in the certificate
   */
  readonly names?: readonly string[];
  /** The private key. */
  readonly key: string;
  /** The certificate, then its chain. */
  readonly cert: string;
}

/** TLS material of one upstream, as PEM. Never logged, never part of a message. */
export interface UpstreamTlsContents {
  /**
   * Root certificates.
   * @default - the root certificates of Node
   */
  readonly roots?: string;
  /**
   * The client certificate, then its chain.
   * @default - none
   */
  readonly cert?: string;
  /**
   * Private key of the client certificate.
   * @default - none
   */
  readonly key?: string;
}

/** Only the renewed part of the material of all listeners, because there may be hundreds of certificates. */
export interface TlsRenewal {
  /** They take the place of those with their ids; ids that a listener does not have do not concern it. */
  readonly certificates?: readonly CertificateContents[];
  /** Diffie-Hellman parameters, by listener name. */
  readonly dhparams?: Readonly<Record<string, string>>;
}

/** The material with the renewed part replaced. */
export function withRenewed(
  tls: Readonly<Record<string, TlsContents>>,
  { certificates: renewed = [], dhparams = {} }: TlsRenewal,
): Record<string, TlsContents> {
  const byId = new Map(renewed.map((certificate) => [certificate.id, certificate]));
  const contents = Object.entries(tls).map(([listener, { certificates, ...more }]) => {
    const now = certificates.map((certificate) => byId.get(certificate.id) ?? certificate);
    const dhparam = dhparams[listener];
    return [listener, { ...more, certificates: now, ...(dhparam === undefined ? {} : { dhparam }) }] as const;
  });
  return Object.fromEntries(contents);
}
