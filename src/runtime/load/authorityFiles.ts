import { readFile } from "node:fs/promises";
import { access, constants } from "node:fs/promises";
import type {
  CertificateAuthorityConfig,
  DnsProofsConfig,
  Problem,
  ProxyConfig,
} from "../../model/serving.js";
import { dnsFiles, problem, withDnsFiles } from "../../model/serving.js";
import { certificatesOf } from "./certificateExpiry.js";
import { credentials } from "./credentials.js";
import { acmeDnsAccountsIn, tsigKeyIn } from "./dnsFiles.js";
import { readText, sha256 } from "./files.js";
import { systemReason } from "./systemReason.js";

/** Problems of the files that are needed to ask authorities. */
export async function authorityFileProblems(config: ProxyConfig): Promise<Problem[]> {
  const problems: Problem[] = [];
  const authorities = await Promise.all(config.certificateAuthorities.map(withFilesFound));
  for (const [i, { roots, externalAccountBinding, dns }] of authorities.entries()) {
    const at = `certificateAuthorities[${i}]`;
    if (roots !== undefined) problems.push(...(await readRoots(roots, `${at}.roots (${roots})`)).problems);
    if (dns !== undefined) problems.push(...(await dnsFileProblems(dns, `${at}.dns`)));
    if (externalAccountBinding === undefined) continue;
    const { keyFile } = externalAccountBinding;
    const label = `${at}.externalAccountBinding.keyFile (${keyFile})`;
    const read = await readText(keyFile, label, true);
    if ("problem" in read) problems.push(read.problem);
    else if (!/^[A-Za-z0-9_-]+=*\s*$/.test(read.text))
      problems.push(problem("files.bad-key", label, "is not a key in base64url", { fix: BASE64URL }));
  }
  return problems;
}

async function dnsFileProblems(dns: DnsProofsConfig, at: string): Promise<Problem[]> {
  if (dns.type === "program") {
    const run = access(dns.command, constants.X_OK);
    const why = await run.then(() => undefined, systemReason);
    if (why !== undefined)
      return [
        problem("files.unreadable", `${at}.command (${dns.command})`, `cannot be run ${why}`, {
          fix: RUNNABLE,
        }),
      ];
  }
  const problems: Problem[] = [];
  for (const [field, file] of Object.entries(dnsFiles(dns))) {
    const label = `${at}.${field} (${file})`;
    if (field === "roots") problems.push(...(await readRoots(file, label)).problems);
    else {
      const read = await readText(file, label, true);
      if ("problem" in read) problems.push(read.problem);
      else if (field === "keyFile" && tsigKeyIn(read.text) === undefined)
        problems.push(problem("files.bad-key", label, "contains no usable TSIG key", { fix: TSIG_KEY }));
      else if (field === "accountsFile" && acmeDnsAccountsIn(read.text) === undefined)
        problems.push(problem("files.bad-key", label, "contains no account of acme-dns", { fix: ACCOUNT }));
    }
  }
  return problems;
}

const RUNNABLE = "Install the program, and let the user that runs portico execute it.";
const TSIG_KEY =
  'Write the key as `tsig-keygen -a hmac-sha256 NAME` does: key "NAME" { algorithm hmac-sha256; secret "BASE64"; };';
const ACCOUNT =
  "Write the server's response to a registration into the file (`username`, `password`, `fulldomain`, `subdomain`), or several responses by name.";

const BASE64URL = "Put the MAC key into the file as the authority gave it, in base64url on one line.";

/** Root certificates in PEM form; damaged ones are problems. */
export async function readRoots(
  file: string,
  label: string,
): Promise<{ readonly text: string; readonly problems: readonly Problem[] }> {
  const read = await readText(file, label);
  if ("problem" in read) return { text: "", problems: [read.problem] };
  const { text } = read;
  const roots = certificatesOf(text);
  if (roots.length > 0 && roots.every((root) => root !== undefined)) return { text, problems: [] };
  const message =
    roots.length === 0 ? "contains no certificate in PEM form" : "contains a damaged certificate";
  const fix = "Use the authority's root certificates in PEM form.";
  return { text, problems: [problem("files.bad-certificate", label, message, { fix })] };
}

/**
 * Changes with the contents of an authority's files, whatever they were handed over as; undefined if it names none.
 * A file that cannot be read counts as empty: the code that asks the authority reports its fault.
 */
export async function filesMark(authority: CertificateAuthorityConfig): Promise<string | undefined> {
  const { roots, externalAccountBinding, dns } = await withFilesFound(authority);
  const files = [roots, externalAccountBinding?.keyFile, ...Object.values(dnsFiles(dns))];
  if (files.every((file) => file === undefined)) return undefined;
  const read = (file?: string) => (file === undefined ? "" : readFile(file, "utf8").catch(() => ""));
  return sha256(JSON.stringify(await Promise.all(files.map(read))));
}

/** The same authority with its files where this process can read them: as credentials, if they were handed over. */
async function withFilesFound(authority: CertificateAuthorityConfig): Promise<CertificateAuthorityConfig> {
  const find = await credentials();
  const { roots, externalAccountBinding: account, dns } = authority;
  const found = new Map<string, string>();
  for (const file of Object.values(dnsFiles(dns))) found.set(file, (await find(file)) ?? file);
  const keyFile = account && ((await find(account.keyFile)) ?? account.keyFile);
  return {
    ...authority,
    ...(roots === undefined ? {} : { roots: (await find(roots)) ?? roots }),
    ...(account === undefined ? {} : { externalAccountBinding: { ...account, keyFile: keyFile! } }),
    ...(dns === undefined ? {} : { dns: withDnsFiles(dns, (path) => found.get(path) ?? path) }),
  };
}
