import {
  authorityKey,
  type ClientCertificateConfig,
  type Problem,
  problem,
  type ProxyConfig,
} from "../../model/serving.js";
import { certificateEnd, daysLeftText } from "../../model/net/certificateEnd.js";
import { contextOf } from "../../model/net/openssl.js";
import { ClientAuthority, type ClientAuthorityContents, oneLine } from "../tls/clientAuthority.js";
import type { ClientAuthorities } from "../tls/clientCertificates.js";
import { readText } from "./files.js";

/** Contents of the files of `clientCertificate`. */
export interface LoadedClientAuthorities {
  /** Undefined if no virtual server asks for certificates. */
  readonly authorities: ClientAuthorities | undefined;
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** The files of authorities, and the first field that names them. */
export interface ClientAuthorityFiles extends Pick<ClientCertificateConfig, "ca" | "crl"> {
  readonly at: string;
}

/** The files by `authorityKey`, each pair once: virtual servers share them. */
export function clientAuthorityFiles({
  virtualServers,
}: Pick<ProxyConfig, "virtualServers">): ReadonlyMap<string, ClientAuthorityFiles> {
  const files = new Map<string, ClientAuthorityFiles>();
  for (const [s, { clientCertificate }] of virtualServers.entries()) {
    if (clientCertificate === undefined) continue;
    const { ca, crl } = clientCertificate;
    const key = authorityKey(clientCertificate);
    if (!files.has(key)) files.set(key, { ca, crl, at: `virtualServers[${s}].clientCertificate` });
  }
  return files;
}

/** Reads the files. @param expiry whether a file whose time has ended is a problem or a warning */
export async function loadClientAuthorities(
  config: Pick<ProxyConfig, "virtualServers">,
  expiry: "problem" | "warning",
): Promise<LoadedClientAuthorities> {
  const authorities: Record<string, ClientAuthorityContents> = {};
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const [key, files] of clientAuthorityFiles(config)) {
    const read = await readClientAuthority(files, expiry);
    problems.push(...read.problems);
    warnings.push(...read.warnings);
    if (read.contents !== undefined) authorities[key] = read.contents;
  }
  return {
    authorities: Object.keys(authorities).length === 0 ? undefined : authorities,
    problems,
    warnings,
  };
}

/** Reads the files of one virtual server. */
export async function readClientAuthority(
  files: ClientAuthorityFiles,
  expiry: "problem" | "warning",
): Promise<{
  readonly contents?: ClientAuthorityContents;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}> {
  const labels = labelsOf(files);
  const ca = await readText(files.ca, labels.ca);
  const crl = files.crl === undefined ? undefined : await readText(files.crl, labels.crl);
  const unread = [ca, crl].flatMap((read) => (read !== undefined && "problem" in read ? [read.problem] : []));
  if (unread.length > 0) return { problems: unread, warnings: [] };
  const text = (read: typeof crl): string => (read as { readonly text: string }).text;
  const contents = { ca: text(ca), ...(crl === undefined ? {} : { crl: text(crl) }) };
  const authority = ClientAuthority.of(contents);
  if (!(authority instanceof ClientAuthority)) {
    const { file, message } = authority;
    const code = file === "ca" ? "files.bad-authority" : "files.bad-crl";
    return { problems: [problem(code, labels[file], message)], warnings: [] };
  }
  const context = contextOf(authority.options);
  if ("refused" in context) {
    const message = `cannot be used: ${context.refused}`;
    return { problems: [problem("files.bad-authority", labels.ca, message)], warnings: [] };
  }
  const ends = authorityEnds(authority, labels, Date.now());
  const ended = ends.filter(({ code }) => ENDED.some((one) => one === code));
  if (expiry === "problem" && ended.length > 0) return { problems: ended, warnings: [] };
  return { contents, problems: [], warnings: ends };
}

const labelsOf = ({ at, ca, crl = "" }: ClientAuthorityFiles): FileLabels => ({
  ca: `${at}.ca (${ca})`,
  crl: `${at}.crl (${crl})`,
});

interface FileLabels {
  readonly ca: string;
  readonly crl: string;
}

const ENDED = ["files.certificate-expired", "files.certificate-not-yet-valid", "files.crl-expired"];

/** Daily warnings for the administrator about the files in service. */
export function clientAuthorityWarnings(
  config: Pick<ProxyConfig, "virtualServers">,
  contents: ClientAuthorities,
  now = Date.now(),
): readonly Problem[] {
  return [...clientAuthorityFiles(config)].flatMap(([key, files]) => {
    const authority = contents[key] && ClientAuthority.of(contents[key]);
    return authority instanceof ClientAuthority ? authorityEnds(authority, labelsOf(files), now) : [];
  });
}

/** Ends of certificates and lists that are over, or near. */
function authorityEnds({ all }: ClientAuthority, labels: FileLabels, now: number): Problem[] {
  const certificates = all.flatMap(({ certificate }) => {
    const [notBefore, notAfter] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
    const of = `the authority ${oneLine(certificate.subject)}`;
    if (now < notBefore)
      return [
        problem("files.certificate-not-yet-valid", labels.ca, `${of} is not valid before ${iso(notBefore)}`),
      ];
    const end = certificateEnd({ notBefore, notAfter }, now);
    if (end === "later") return [];
    const ended = end === "ended";
    const code = ended ? "files.certificate-expired" : "files.certificate-expires-soon";
    return [problem(code, labels.ca, `${of} ${endText(notAfter, now)}`)];
  });
  const lists = new Map(all.flatMap(({ certificate, list }) => (list ? [[list, certificate] as const] : [])));
  return [
    ...certificates,
    ...[...lists].flatMap(([{ thisUpdate, nextUpdate }, { subject }]) => {
      if (nextUpdate === Infinity) return [];
      const end = certificateEnd({ notBefore: thisUpdate, notAfter: nextUpdate }, now);
      if (end === "later") return [];
      const code = end === "ended" ? "files.crl-expired" : "files.crl-expires-soon";
      const then = end === "ended" ? ", and no client comes in" : "; then no client comes in";
      const message = `the list of the authority ${oneLine(subject)} ${endText(nextUpdate, now)}${then}`;
      return [problem(code, labels.crl, message)];
    }),
  ];
}

const endText = (at: number, now: number): string =>
  at < now ? `expired on ${iso(at)}` : `expires on ${iso(at)}, in ${daysLeftText(at - now)}`;

const iso = (ms: number): string => new Date(ms).toISOString();
