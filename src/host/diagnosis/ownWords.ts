import { isDeepStrictEqual } from "node:util";
import { PROBLEM_CODES, type Problem, type ProxyConfig } from "../../model/index.js";
import { fixFor } from "../../runtime/acme/refusals.js";
import { wantedCertificates } from "../../runtime/load/wantedCertificates.js";
import type { ListedCertificate } from "../../runtime/supervisor/certificateList.js";

/*
 * What the running proxy says is wrong, where root shows it as a finding of root's: what to do about it is not the proxy's
 * word, for it would be believed, and its commands pasted.
 */

export function certificatesInOwnWords(
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

export function problemsInOwnWords(problems: readonly Problem[]): readonly Problem[] {
  return problems.map((one) => ({
    ...one,
    fix: Object.hasOwn(PROBLEM_CODES, one.code) ? PROBLEM_CODES[one.code] : "Read the journal of the proxy.",
  }));
}
