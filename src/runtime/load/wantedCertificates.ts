import { type CertificateSource, certificateSources, challengeOf } from "../../model/config/certificates.js";
import {
  type AcmeCertificateConfig,
  keyTypeFor,
  type ListenerConfig,
  type ProxyConfig,
  type WantedCertificate,
} from "../../model/serving.js";
import { sha256 } from "./files.js";

/** Every certificate that a config wants from authorities, each once. */
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

/** The certificate that a listener's `acme` describes. */
export function wantedCertificate(
  config: ProxyConfig,
  { tls }: ListenerConfig,
  { authority: named, names, keyType = keyTypeFor(tls!.policy) }: AcmeCertificateConfig,
): WantedCertificate {
  const authority = config.certificateAuthorities.find(({ name }) => name === named)!;
  const same = [authority.directory, keyType, ...[...names].sort()];
  const hash = sha256(JSON.stringify(same));
  const challenge = challengeOf(config, authority);
  return { id: `${named}-${hash.slice(0, ID_DIGITS)}`, names, keyType, authority, challenge };
}

const ID_DIGITS = 16;

/** The place at which a config names a certificate. */
export interface CertificatePlace {
  readonly source: CertificateSource;
  /** The path of the field that has it: `listeners[0].tls`, or `listeners[0].tls.certificates[1]`. */
  readonly at: string;
  /** The name in messages: `listeners[0].tls.certificate (/etc/portico/tls/cacert.pem)`. */
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
