import type { CertificateAuthorityConfig, Problem, ProxyConfig } from "../../model/serving.js";
import { dnsFiles, problem } from "../../model/serving.js";
import { certificatesOf } from "./certificateExpiry.js";
import { credentials, type FindCredential } from "./credentials.js";
import { acmeDnsAccountsIn, apiTokenIn, tsigKeyIn } from "./dnsFiles.js";
import { readSecret, readText, refusedProblem, sha256, textIfReadable } from "./files.js";
import { systemReason } from "../files/systemReason.js";
import { checkProgram, FileRefused } from "../files/trustedFile.js";

/** Problems and warnings of the files that are needed to ask authorities. No message contains their contents. */
export interface AuthorityFileFindings {
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** Reads the files that are needed to ask authorities. */
export async function checkAuthorityFiles(
  { certificateAuthorities }: Pick<ProxyConfig, "certificateAuthorities">,
  find: FindCredential,
): Promise<AuthorityFileFindings> {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const check = async (file: string, field: string, unfit?: Unfit): Promise<void> => {
    if (unfit === undefined) {
      const found = (await find(file)) ?? file;
      problems.push(...(await readRoots(found, `${field} (${found})`)).problems);
      return;
    }
    const { text, label, ...read } = await readSecret(file, field, find);
    problems.push(...read.problems);
    warnings.push(...read.warnings);
    if (text !== undefined && !unfit.fits(text))
      problems.push(problem("files.bad-key", label, unfit.message, { fix: unfit.fix }));
  };
  for (const [i, { roots, externalAccountBinding, dns }] of certificateAuthorities.entries()) {
    const at = `certificateAuthorities[${i}]`;
    if (roots !== undefined) await check(roots, `${at}.roots`);
    if (dns?.type === "program") problems.push(...(await programProblems(dns.command, `${at}.dns.command`)));
    for (const [field, file] of Object.entries(dnsFiles(dns)))
      await check(file, `${at}.dns.${field}`, DNS_SECRETS[field]);
    if (externalAccountBinding !== undefined)
      await check(externalAccountBinding.keyFile, `${at}.externalAccountBinding.keyFile`, ACCOUNT_KEY);
  }
  return { problems, warnings };
}

async function programProblems(command: string, field: string): Promise<Problem[]> {
  const label = `${field} (${command})`;
  try {
    await checkProgram(command);
    return [];
  } catch (error) {
    if (error instanceof FileRefused) return [refusedProblem(label, error)];
    const message = `cannot be run ${systemReason(error as Error)}`;
    return [problem("files.unreadable", label, message, { fix: RUNNABLE })];
  }
}

/** What a secret must be. */
interface Unfit {
  readonly fits: (text: string) => boolean;
  readonly message: string;
  readonly fix: string;
}

const RUNNABLE = "Install the program, and let the user that runs portico execute it.";
const TSIG_KEY =
  'Write the key as `tsig-keygen -a hmac-sha256 NAME` does: key "NAME" { algorithm hmac-sha256; secret "BASE64"; };';
const ACCOUNT =
  "Write the server's response to a registration into the file (`username`, `password`, `fulldomain`, `subdomain`), or several responses by name.";

const ACCOUNT_KEY: Unfit = {
  fits: (text) => /^[A-Za-z0-9_-]+=*\s*$/.test(text),
  message: "is not a key in base64url",
  fix: "Put the MAC key into the file as the authority gave it, in base64url on one line.",
};

/** The secrets by the field that names their file; `roots`, the only other field, is no secret. */
const DNS_SECRETS: Readonly<Record<string, Unfit>> = {
  keyFile: {
    fits: (text) => tsigKeyIn(text) !== undefined,
    message: "contains no usable TSIG key",
    fix: TSIG_KEY,
  },
  accountsFile: {
    fits: (text) => acmeDnsAccountsIn(text) !== undefined,
    message: "contains no account of acme-dns",
    fix: ACCOUNT,
  },
  tokenFile: {
    fits: (text) => apiTokenIn(text) !== undefined,
    message: "contains no API token",
    fix: "Write the token into the file as the provider showed it, on one line and without quotes.",
  },
  // Only the program knows what it has to contain.
  credentialFile: { fits: () => true, message: "", fix: "" },
};

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
  const { roots, externalAccountBinding, dns } = authority;
  const files = [roots, externalAccountBinding?.keyFile, ...Object.values(dnsFiles(dns))];
  if (files.every((file) => file === undefined)) return undefined;
  const find = await credentials();
  const read = async (file?: string): Promise<string> =>
    file === undefined ? "" : textIfReadable((await find(file)) ?? file);
  return sha256(JSON.stringify(await Promise.all(files.map(read))));
}
