import { certificateSources, challengeOf } from "../../model/config/certificates.js";
import {
  type AcmeCertificateConfig,
  keyTypeFor,
  type ListenerConfig,
  type ProxyConfig,
  type WantedCertificate,
} from "../../model/serving.js";
import { sha256 } from "./sha256.js";

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
