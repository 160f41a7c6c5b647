import { faultsOf } from "../../model/faults.js";
import type { ProxyConfig } from "../../model/index.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { SeenClientCertificates } from "./evidence.js";
import { failure, ok, type Verdict, warning } from "./verdict.js";

/** Asks the running proxy. @returns undefined if no virtual server asks for certificates, or the proxy does not respond */
export async function seeClientCertificates(
  { virtualServers }: ProxyConfig,
  control: string,
  timeoutMs: number,
): Promise<SeenClientCertificates | undefined> {
  if (virtualServers.every(({ clientCertificate }) => clientCertificate === undefined)) return undefined;
  const outcome = await askMaster(control, { command: "overview" }, timeoutMs);
  const overview = outcome.ok ? outcome.value.overview : undefined;
  return (
    overview && {
      clientAuthorities: overview.clientAuthorities,
      refusedCertificates: overview.refusedCertificates,
    }
  );
}

/** A client that is refused is no fault of the host; it is told why all the same. */
export function judgeClientCertificates(seen: SeenClientCertificates): Verdict {
  const { refusedCertificates = [] } = seen;
  const refused = refusedCertificates.map(
    ({ server, reason, count }) =>
      `${server}: ${count} refused since the start, ${REASONS[reason] ?? reason}`,
  );
  const [worst, ...others] = faultsOf(seen, ({ name }) => name === "client-authority-ends");
  if (worst === undefined) return ok(...refused);
  const lines = [...others.map(({ text }) => text), ...refused];
  const say = worst.level === "error" ? failure : warning;
  return say(worst.text, lines, worst.fix!);
}

/** By the labels of `portico_client_certificates_refused_total`. */
const REASONS: Readonly<Record<string, string>> = {
  none: "without a certificate",
  "unknown-authority": "with a certificate of an unknown authority",
  expired: "with a certificate that has expired",
  "not-yet-valid": "with a certificate that is not valid yet",
  revoked: "with a revoked certificate",
  "crl-expired": "because the list of revoked certificates has expired",
  name: "with a name that may not come in",
  invalid: "with a certificate that is not valid; the error log has OpenSSL's reason",
  misdirected: "on connections that were made for another server (421)",
};
