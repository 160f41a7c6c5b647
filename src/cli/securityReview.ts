import { X509Certificate } from "node:crypto";
import path from "node:path";
import { isOpenRisk, type SecurityFinding, securityFindings, signsItself } from "../model/review/security.js";
import { readTrustedSync } from "../runtime/files/trustedFile.js";
import { readText, refused } from "./against.js";
import type { DocumentSource } from "./document.js";
import { type CommandOutput, EXIT, json } from "./output.js";
import { sarifOfReview } from "./sarif.js";

export interface ReviewOptions {
  readonly json: boolean;
  readonly sarif: boolean;
}

/** `portico check --security`: what strangers can read, reach or guess, by the config and its certificates. */
export async function reviewSecurity(
  { file, root = "/" }: DocumentSource,
  options: ReviewOptions,
  output: CommandOutput,
): Promise<number> {
  const read = await readText(file);
  if (!read.ok) return refused(file, read.problems, options, output, EXIT.failed);
  const { config, text } = read.value;
  const findings = securityFindings(config, (certificate) => isSelfSigned(path.join(root, certificate)));
  const open = findings.filter(isOpenRisk).length;
  if (options.sarif) output.out(json(sarifOfReview(findings, { file, text })));
  else if (options.json) output.out(json({ file, ok: open === 0, open, findings }));
  else output.out(findings.map(textOf).join("") + summaryOf(file, findings, open));
  return open === 0 ? EXIT.ok : EXIT.failed;
}

function isSelfSigned(file: string): boolean | undefined {
  try {
    return signsItself(new X509Certificate(readTrustedSync(file)));
  } catch {
    // The finding says that the certificate cannot be read; `portico check` says why.
    return undefined;
  }
}

function textOf({ id, level, place, message, fix, value, accepted }: SecurityFinding): string {
  const rows = [
    ...(value === undefined ? [] : [["here:", value]]),
    accepted === undefined ? ["fix:", fix] : ["why:", accepted],
  ];
  const lines = rows.map(([label, text]) => `    ${label!.padEnd(6)}${text}\n`);
  return `${accepted === undefined ? level : "accepted"}: ${place}: ${message} [${id}]\n${lines.join("")}`;
}

function summaryOf(file: string, findings: readonly SecurityFinding[], open: number): string {
  const accepted = findings.filter(({ accepted: why }) => why !== undefined).length;
  const also = accepted === 0 ? "" : `, ${accepted} accepted`;
  return `${file}: ${open === 0 ? "no" : open} risk${open === 1 ? "" : "s"} to act on${also}\n`;
}
