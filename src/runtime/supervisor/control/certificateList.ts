import { X509Certificate } from "node:crypto";
import type { AcmeFailure, CertificateStatus } from "../../acme/acmeHost.js";
import { certificateEnd } from "../../../model/net/certificateEnd.js";
import { DAY_MS } from "../../../model/text/duration.js";
import { printableName, printableValue } from "../../../model/text/printable.js";
import { certificatePlaces } from "../../load/wantedCertificates.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import type { OverviewCertificate } from "../../status/overview.js";
import type { CertificateContents } from "../../tls/tlsContents.js";

/** A certificate that a running master serves, and its state. Times are in milliseconds since 1970. */
export interface ListedCertificate {
  /** Names and addresses that it covers, or for a temporary one those that the issued one will cover. */
  readonly names: readonly string[];
  /** Names of the listeners that have it. */
  readonly listeners: readonly string[];
  /** `temporary`: in place of a certificate that was not issued yet; self-signed, or issued earlier for other names. */
  readonly source: CertificateContents["source"];
  /** The path of the certificate in the config, for `files`; the name of the authority, for `acme`. */
  readonly from: string;
  readonly issuer: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Progress of its renewal; for ACME only. */
  readonly state?: CertificateStatus["state"];
  readonly renewAt?: number;
  readonly nextAttempt?: number;
  readonly lastError?: AcmeFailure;
  /** Address that this host would have to have to ask the authority; absent if it has it, or needs none. */
  readonly waitsFor?: string;
}

/** The certificates in use, each once, in the order of the config. */
export function listCertificates(
  { config, tls }: LoadedConfig,
  statuses: readonly CertificateStatus[],
): ListedCertificate[] {
  const listed = new Map<string, ListedCertificate>();
  for (const [i, { name }] of config.listeners.entries()) {
    for (const { id, source } of certificatePlaces(config, i)) {
      const contents = tls[name]?.certificates.find((one) => one.id === id);
      if (contents === undefined) continue;
      const before = listed.get(id);
      const listeners = [...(before?.listeners ?? []), name];
      const leaf = new X509Certificate(contents.cert);
      const status = statuses.find((one) => one.id === id);
      listed.set(id, {
        names: source.type === "acme" ? source.acme.names : namesOf(leaf),
        listeners,
        source: contents.source,
        from: source.type === "acme" ? source.acme.authority : source.certificate,
        issuer: issuerOf(leaf),
        notBefore: Date.parse(leaf.validFrom),
        notAfter: Date.parse(leaf.validTo),
        state: status?.state,
        renewAt: status?.renewAt,
        nextAttempt: status?.nextAttempt,
        lastError: status?.lastError,
        waitsFor: status?.waitsFor,
      });
    }
  }
  return [...listed.values()];
}

/** What a certificate's readers see of it. */
export function certificateState(
  { names, listeners, issuer, source, notBefore, notAfter, renewAt, lastError, waitsFor }: ListedCertificate,
  at: number,
  soonDays?: number,
): OverviewCertificate {
  const daysLeft = Math.floor((notAfter - at) / DAY_MS);
  const end = certificateEnd({ notBefore, notAfter, renewAt }, at, soonDays);
  const problem = lastError && { message: lastError.message, fix: lastError.fix };
  return { names, listeners, issuer, source, notAfter, daysLeft, end, problem, waitsFor };
}

/** Subject alternative names, without their kinds. */
const namesOf = ({ subjectAltName = "", subject }: X509Certificate): string[] => {
  const names = subjectAltName.split(", ").flatMap((one) => /^(?:DNS|IP Address):(.*)$/.exec(one)?.[1] ?? []);
  return (names.length > 0 ? names : [subject]).map(printableValue);
};

/** The usual name of an issuer: its common name, or else its organization. */
const issuerOf = ({ issuer }: X509Certificate): string =>
  printableName(
    /^CN=(.*)$/m.exec(issuer)?.[1] ?? /^O=(.*)$/m.exec(issuer)?.[1] ?? issuer.replaceAll("\n", ", "),
  );

/** A time as users are shown it: `2026-03-01 12:30 UTC`. */
export const isoMinutes = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
