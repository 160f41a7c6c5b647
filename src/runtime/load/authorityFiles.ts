import { readFile } from "node:fs/promises";
import type { CertificateAuthorityConfig, Problem, ProxyConfig } from "../../model/serving.js";
import { problem } from "../../model/serving.js";
import { certificatesOf } from "./certificateExpiry.js";
import { credentials } from "./credentials.js";
import { readText } from "./files.js";
import { sha256 } from "./sha256.js";

/** Problems of the files that are needed to ask authorities. */
export async function authorityFileProblems(config: ProxyConfig): Promise<Problem[]> {
  const problems: Problem[] = [];
  const authorities = await Promise.all(config.certificateAuthorities.map(withFilesFound));
  for (const [i, { roots, externalAccountBinding }] of authorities.entries()) {
    const at = `certificateAuthorities[${i}]`;
    if (roots !== undefined) problems.push(...(await readRoots(roots, `${at}.roots (${roots})`)).problems);
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
    roots.length === 0 ? "contains no certificate in PEM form" : "has a certificate that is damaged";
  const fix = "Give the authority's root certificates in PEM form.";
  return { text, problems: [problem("files.bad-certificate", label, message, { fix })] };
}

/**
 * Changes with the contents of an authority's files, whatever they were handed over as; undefined if it names none.
 * A file that cannot be read counts as empty: the code that asks the authority reports its fault.
 */
export async function filesMark(authority: CertificateAuthorityConfig): Promise<string | undefined> {
  const { roots, externalAccountBinding } = await withFilesFound(authority);
  const files = [roots, externalAccountBinding?.keyFile];
  if (files.every((file) => file === undefined)) return undefined;
  const read = (file?: string) => (file === undefined ? "" : readFile(file, "utf8").catch(() => ""));
  return sha256(JSON.stringify(await Promise.all(files.map(read))));
}

/** The same authority with its files where this process can read them: as credentials, if they were handed over. */
async function withFilesFound(authority: CertificateAuthorityConfig): Promise<CertificateAuthorityConfig> {
  const find = await credentials();
  const { roots, externalAccountBinding: account } = authority;
  const keyFile = account && ((await find(account.keyFile)) ?? account.keyFile);
  return {
    ...authority,
    ...(roots === undefined ? {} : { roots: (await find(roots)) ?? roots }),
    ...(account === undefined ? {} : { externalAccountBinding: { ...account, keyFile: keyFile! } }),
  };
}
