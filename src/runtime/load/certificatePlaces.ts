import { type CertificateSource, certificateSources } from "../../model/config/certificates.js";
import type { ProxyConfig } from "../../model/serving.js";
import { wantedCertificate } from "./wantedCertificates.js";

/** Where a config names a certificate. */
export interface CertificatePlace {
  readonly source: CertificateSource;
  /** The path of the field that has it: `listeners[0].tls`, or `listeners[0].tls.certificates[1]`. */
  readonly at: string;
  /** For messages: `listeners[0].tls.certificate (/etc/portico/tls/cacert.pem)`. */
  readonly label: string;
  /** Id of its contents. */
  readonly id: string;
}

/** The certificates of a listener, the default first; none where there is no TLS. */
export function certificatePlaces(config: ProxyConfig, index: number): CertificatePlace[] {
  const listener = config.listeners[index]!;
  if (listener.tls === undefined) return [];
  return certificateSources(listener.tls).map(({ source, at: below }) => {
    const at = `listeners[${index}].tls${below === "" ? "" : `.${below}`}`;
    if (source.type === "files")
      return { source, at, label: `${at}.certificate (${source.certificate})`, id: source.certificate };
    const { id, names } = wantedCertificate(config, listener, source.acme);
    return { source, at, label: `${at}.acme (${names.join(", ")})`, id };
  });
}
