import { faultsOf } from "../../../model/faults.js";
import type { EngineRow } from "../../../model/index.js";
import type { AcmeFailure } from "../../../runtime/acme/acmeHost.js";
import {
  certificateState,
  type ListedCertificate,
} from "../../../runtime/supervisor/control/certificateList.js";
import type { Evidence } from "../evidence.js";
import { explained, failure, ok, type Question, type Verdict, warning } from "../verdict.js";

const ISSUED = "acme-certificates" satisfies EngineRow;

/**
 * Questions about certificates by ACME, asked only where a config has some. Each kind of failure has its own row; the
 * kind comes from the authority's last response (RFC 8555, 6.7), or from the engine if there was no response.
 */
export const CERTIFICATE_QUESTIONS: readonly Question<EngineRow>[] = [
  kind(
    "acme-clock",
    "The clock agrees with the authority's certificate",
    ["clock"],
    "the clock of this host is wrong",
  ),
  kind(
    "acme-authority",
    "The certificate authority can be reached",
    ["unreachable", "untrusted", "badResponse", "serverInternal", "timeout"],
    "this host gets no usable response from the certificate authority",
  ),
  kind(
    "acme-account",
    "The certificate authority accepts the account",
    [
      "externalAccountRequired",
      "userActionRequired",
      "invalidContact",
      "unsupportedContact",
      "accountDoesNotExist",
      "notAllowed",
    ],
    "the certificate authority does not accept the account",
  ),
  kind(
    "acme-limit",
    "No limit of the certificate authority is reached",
    ["rateLimited"],
    "the authority's rate limit is reached",
  ),
  kind(
    "acme-dns",
    "The names of certificates resolve to this host",
    ["dns", "unauthorized", "incorrectResponse", "caa"],
    "a name has no address, resolves to another host, or has a CAA record that forbids the authority",
  ),
  kind(
    "acme-record",
    "The DNS records that prove names are published",
    ["dnsUpdate", "dnsRecord", "dnsProof"],
    "a name cannot be proved by a DNS record",
  ),
  kind(
    "acme-port",
    "The certificate authority reaches this host",
    ["connection", "tls"],
    "the certificate authority cannot connect to this host",
  ),
  {
    id: ISSUED,
    title: "Every certificate by ACME is issued, and renewed in time",
    ask: ({ certificates = [] }, failed) => askIssued(certificates, failed),
  },
];

/** A row about the last failures. */
function kind(id: EngineRow, title: string, codes: readonly string[], cause: string): Question<EngineRow> {
  const ask = ({ certificates = [] }: Evidence): Verdict => {
    const failures = certificates.flatMap(({ lastError }) => lastError ?? []);
    const found = failures.filter(({ code }) => codes.includes(code));
    if (found.length === 0) return ok();
    const seen = found.map(({ message, at }) => `${message} (${new Date(at).toISOString()})`);
    return failure(cause, seen, fixText(found));
  };
  return { id, title, ask };
}

function askIssued(certificates: readonly ListedCertificate[], failed: ReadonlySet<string>): Verdict {
  const acme = certificates.filter(({ source }) => source !== "files");
  const now = Date.now();
  const faults = acme.map((one) =>
    faultsOf({ certificates: [certificateState(one, now)] }, ({ doctor }) => doctor === ISSUED),
  );
  const lacking = acme.filter((_, i) => faults[i]!.length > 0);
  if (lacking.length === 0) return ok(...acme.map(described));
  const seen = lacking.map(described);
  const cause = CERTIFICATE_QUESTIONS.find(({ id }) => failed.has(id));
  if (cause !== undefined) return explained(cause.id, ...seen);
  const failures = lacking.flatMap(({ lastError }) => lastError ?? []);
  if (failures.length > 0) return failure(failures[0]!.message, seen, fixText(failures));
  if (lacking.every(({ source, notAfter }) => source !== "temporary" && notAfter >= now)) {
    const judge = faults.flat().some(({ level }) => level === "error") ? failure : warning;
    return judge("a certificate ends soon, and was not renewed", seen, "portico certificates renew");
  }
  if (lacking.some(({ state }) => state === undefined))
    return failure(
      "the running proxy requests no certificate, because it has no directory to store the certificate in",
      seen,
      "Set StateDirectory= in the service's unit, or run `portico serve` with the option --state.",
    );
  const elsewhere = lacking.find(({ waitsFor }) => waitsFor !== undefined)?.waitsFor;
  if (elsewhere !== undefined)
    return failure(
      "a certificate has expired, and the host that requests certificates has not shared one",
      seen,
      `Run \`portico certificates\` on the host that has the address ${elsewhere}.`,
    );
  return failure("a certificate is requested, but not issued yet", seen, WAIT);
}

/** After several failures the next attempt is hours away, and the proxy does not notice that a cause is gone. */
function fixText(failures: readonly AcmeFailure[]): string {
  const fixes = new Set(failures.map(({ fix }) => fix));
  return [...fixes, "Then request it again: portico certificates renew"].join(" ");
}

const WAIT = "Wait a minute, and look again: portico certificates";

function described({ names, source, from, notAfter, nextAttempt, waitsFor }: ListedCertificate): string {
  const what =
    source === "temporary"
      ? `a temporary certificate, until ${from} issues one`
      : `from ${from}, valid until ${new Date(notAfter).toISOString()}`;
  const next = nextAttempt === undefined ? "" : `; next attempt: ${new Date(nextAttempt).toISOString()}`;
  const waiting = waitsFor === undefined ? "" : `; waiting for the address ${waitsFor}`;
  return `${names.join(", ")}: ${what}${next}${waiting}`;
}
