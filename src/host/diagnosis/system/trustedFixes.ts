import { isDeepStrictEqual } from "node:util";
import { PROBLEM_CODES, type Problem, type ProxyConfig } from "../../../model/index.js";
import { fixFor } from "../../../runtime/acme/refusals.js";
import { wantedCertificates } from "../../../runtime/load/wantedCertificates.js";
import type { ListedCertificate } from "../../../runtime/supervisor/control/certificateList.js";

/*
 * Problems that the running proxy reports, where a command of root shows them: the fixes are replaced by those of this
 * program. A reader would believe a fix of the proxy, and paste its commands.
 */

export function certificatesWithTrustedFixes(
  certificates: readonly ListedCertificate[],
  config: ProxyConfig,
): readonly ListedCertificate[] {
  const wanted = wantedCertificates(config);
  return certificates.map((one) => {
    const { names, from, lastError } = one;
    if (lastError === undefined) return one;
    const its = wanted.find((each) => each.authority.name === from && isDeepStrictEqual(each.names, names));
    const fix = its === undefined ? PROBLEM_CODES["acme.not-issued"] : fixFor(lastError, its);
    return { ...one, lastError: { ...lastError, fix } };
  });
}

export function problemsWithTrustedFixes(problems: readonly Problem[]): readonly Problem[] {
  return problems.map((one) => ({
    ...one,
    fix: Object.hasOwn(PROBLEM_CODES, one.code) ? PROBLEM_CODES[one.code] : "Read the journal of the proxy.",
  }));
}
