import type { DeploymentInput } from "../../model/deployment.js";
import { type Problem, problem, type ProblemCode } from "../../model/index.js";
import type { LateRule } from "../../model/lateValues.js";
import type { TextRule } from "../../model/text/textRule.js";
import { hasTokens } from "./tokens.js";

/** A value that only Terraform knows, with its rule: the host checks it before it changes anything. */
export type LateValue = NonNullable<DeploymentInput["lateValues"]>[number];

/** A value with the problem that it has unless it meets the rule; none if the value is known. */
export function late(
  { code, path, message, allowed, fix }: Problem,
  rule: LateRule,
  value: unknown,
): LateValue[] {
  if (value === undefined || !hasTokens([value, rule])) return [];
  return [{ path, value, code, message, allowed, fix, rule }];
}

/** A text, with its allowed values in words. */
export function lateText(
  code: ProblemCode,
  path: string,
  { allowed, ...rule }: TextRule & { readonly allowed: string },
  value: unknown,
): LateValue[] {
  return late(problem(code, path, `is not ${allowed}`, { allowed }), patternsOf(rule), value);
}

/** What of a rule can be written down. */
export const patternsOf = ({ pattern, never, lengthMax, canonicalIpv6 }: TextRule): LateRule => ({
  pattern,
  never,
  lengthMax,
  canonicalIpv6,
});

/** A whole number. */
export function lateNumber(path: string, minimum: number, maximum: number, value: unknown): LateValue[] {
  const allowed = `a whole number from ${minimum} to ${maximum}`;
  const what = problem("config.out-of-range", path, "is out of range", { allowed });
  return late(what, { minimum, maximum }, value);
}

export const latePort = (path: string, value: unknown): LateValue[] => lateNumber(path, 1, 65_535, value);
