import {
  authorityKey,
  type ClientCertificateConfig,
  type Problem,
  problem,
  type ProxyConfig,
} from "../../model/serving.js";
import { certificateEnd, daysLeftText } from "../../model/net/certificateEnd.js";
import { DAY_MS } from "../../model/text/duration.js";
import { printableValue } from "../../model/text/printable.js";
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
function authorityEnds(authority: ClientAuthority, labels: FileLabels, now: number): Problem[] {
  return livesOf(authority).flatMap(({ name, file, notBefore, notAfter }) => {
    const of = file === "ca" ? `the authority ${name}` : `the list of the authority ${name}`;
    if (now < notBefore) {
      const message = `${of} is not valid before ${iso(notBefore)}`;
      return [problem("files.certificate-not-yet-valid", labels[file], message)];
    }
    const end = certificateEnd({ notBefore, notAfter }, now);
    if (end === "later") return [];
    const code = CODES[file][end === "ended" ? "ended" : "soon"];
    const left = end === "ended" ? "" : `, in ${daysLeftText(notAfter - now)}`;
    const then =
      end === "ended" ? ", and none of its clients comes in" : "; then none of its clients comes in";
    const message = `${of} ${end === "ended" ? "expired" : "expires"} on ${iso(notAfter)}${left}${then}`;
    return [problem(code, labels[file], message)];
  });
}

const CODES = {
  ca: { ended: "files.certificate-expired", soon: "files.certificate-expires-soon" },
  crl: { ended: "files.crl-expired", soon: "files.crl-expires-soon" },
} as const;

interface AuthorityLife {
  readonly name: string;
  readonly file: "ca" | "crl";
  readonly notBefore: number;
  readonly notAfter: number;
}

/** The lives of certificates and of lists, each once; of a list without an end none. */
function livesOf({ all }: ClientAuthority): readonly AuthorityLife[] {
  const lists = new Set<unknown>();
  return all.flatMap(({ certificate, list }) => {
    const name = oneLine(certificate.subject);
    const [notBefore, notAfter] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
    const own: AuthorityLife = { name, file: "ca", notBefore, notAfter };
    if (list === undefined || list.nextUpdate === Infinity || lists.has(list)) return [own];
    lists.add(list);
    return [own, { name, file: "crl", notBefore: list.thisUpdate, notAfter: list.nextUpdate } as const];
  });
}

/** What readers of the state see of the files in service. @param soonDays how long before its end one ends soon */
export function clientAuthorityStates(contents: ClientAuthorities, at: number, soonDays?: number) {
  return Object.values(contents).flatMap((one) => {
    const authority = ClientAuthority.of(one);
    if (!(authority instanceof ClientAuthority)) return [];
    return livesOf(authority).map(({ name, file, ...life }) => ({
      name: printableValue(name),
      file,
      daysLeft: Math.floor((life.notAfter - at) / DAY_MS),
      end: certificateEnd(life, at, soonDays),
    }));
  });
}

const iso = (ms: number): string => new Date(ms).toISOString();
