import { type Problem, type ProxyConfig } from "../../model/serving.js";
import { loadCertificate } from "./certificate.js";
import { certificatePlaces } from "./wantedCertificates.js";
import { nameWarnings } from "./certificateNames.js";
import { credentials, type FindCredential } from "./credentials.js";
import { loadDhparam } from "./dhParameters.js";
import { handshakeProblem, policyProblems } from "../tls/handshakeCheck.js";
import { hostPolicy } from "../tls/tlsContexts.js";
import type { CertificateContents, TlsContents } from "../tls/tlsContents.js";

export interface TlsLoad {
  /** The files by listener name; complete only if there are no problems. */
  readonly files: Record<string, TlsContents>;
  readonly problems: Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: Problem[];
}

/**
 * Reads the TLS files of every https listener and checks that they fit together, each problem on its own.
 *
 * @param expiry whether a certificate outside its time is a problem or a warning
 * @param issued the available certificates by ACME; others are left out
 */
export async function loadTlsFiles(
  config: ProxyConfig,
  expiry: "problem" | "warning",
  issued: readonly CertificateContents[],
): Promise<TlsLoad> {
  const result: TlsLoad = { files: {}, problems: [], warnings: [] };
  // Listeners usually share their files (IPv4 and IPv6): one problem is reported once, at the first of them.
  const seen = new Map<string, TlsContents | undefined>();
  const findCredential = await credentials();
  for (const [i, listener] of config.listeners.entries()) {
    if (listener.tls === undefined) continue;
    const same = JSON.stringify(listener.tls);
    if (!seen.has(same)) {
      const one = await loadListener(config, i, expiry, findCredential, issued);
      result.problems.push(...one.problems);
      result.warnings.push(...one.warnings);
      if (one.problems.length === 0)
        result.warnings.push(...nameWarnings(config, i, one.files!.certificates));
      seen.set(same, one.files);
    }
    const files = seen.get(same);
    if (files !== undefined) result.files[listener.name] = files;
  }
  return result;
}

interface Findings {
  files?: TlsContents;
  readonly problems: Problem[];
  readonly warnings: Problem[];
}

async function loadListener(
  config: ProxyConfig,
  index: number,
  expiry: "problem" | "warning",
  findCredential: FindCredential,
  issued: readonly CertificateContents[],
): Promise<Findings> {
  const found: Findings = { problems: [], warnings: [] };
  const tls = config.listeners[index]!.tls!;
  const path = `listeners[${index}].tls`;
  const all = certificatePlaces(config, index);
  const places = all.flatMap(({ source, at }) => (source.type === "files" ? { ...source, at } : []));
  const loads = await Promise.all(places.map((files) => loadCertificate(files, expiry, findCredential)));
  for (const { problems, warnings } of loads) {
    found.problems.push(...problems);
    found.warnings.push(...warnings);
  }
  const dhparam =
    tls.dhparam === undefined ? undefined : await loadDhparam(tls.dhparam, path, findCredential);
  const policy = hostPolicy(tls.policy);
  found.problems.push(
    ...(dhparam?.problems ?? []),
    ...policyProblems(policy, `${path}.policy`, typeof tls.policy === "string"),
  );
  if (found.problems.length > 0) return found;

  const failed = await Promise.all(
    loads.map(({ loaded }, i) => handshakeProblem(policy, loaded!, dhparam?.text, places[i]!.at)),
  );
  found.problems.push(...failed.filter((p) => p !== undefined));
  const contents = [...loads.map(({ loaded }) => loaded!.contents), ...issued];
  const certificates = all.flatMap(({ id }) => contents.find((one) => one.id === id) ?? []);
  found.files = { certificates, dhparam: dhparam?.text };
  return found;
}
