import * as z from "zod";
import { canonicalIpv6, ipv4Bits, sameNetwork } from "./net/address.js";
import type { OutputOf } from "./schema/inferred.js";
import { type Problem, problem, type ProblemCode } from "./text/problem.js";

/**
 * Values that only Terraform knows, and that get into files without a schema, such as units and rules of a firewall.
 * The constructs write each into the deployment document with the rule that a known value meets at synth; the host
 * refuses those that do not fit before it changes anything.
 */

const rule = z.strictObject({
  pattern: z.string().describe("A pattern that a text must match.").optional(),
  never: z.string().describe("A pattern that a text must not match.").optional(),
  anyCase: z.literal(true).describe("Both patterns take capital letters for small ones.").optional(),
  lengthMax: z.int().describe("The greatest length of a text.").optional(),
  canonicalIpv6: z.literal(true).describe("An IPv6 address must be in canonical form.").optional(),
  minimum: z.int().describe("The least whole number.").optional(),
  maximum: z.int().describe("The greatest whole number.").optional(),
  noneOf: z
    .array(z.unknown().describe("A value that it must not be."))
    .describe("Values that it must not be.")
    .optional(),
  network: z.string().describe("An IPv4 network that must contain the address.").optional(),
});

export const lateValue = z.strictObject({
  path: z.string().describe("Construct path and prop."),
  value: z.unknown().describe("The value as Terraform made it."),
  hidden: z.literal(true).describe("The value may be a secret, which messages leave out.").optional(),
  code: z.string().describe("Code of the problem of a value that does not fit."),
  message: z.string().describe("The fault of such a value."),
  allowed: z.string().describe("The values that are accepted.").optional(),
  fix: z.string().describe("How to fix the problem."),
  rule: rule.describe("What the value must meet."),
});

type JudgedValue = OutputOf<typeof lateValue>;
export type LateRule = OutputOf<typeof rule>;

/** Problems of the values that do not fit; one that several files are made of has one. */
export function lateProblems(values: readonly JudgedValue[] = []): Problem[] {
  const found = values
    .filter(({ rule: own, value }) => !fits(own, value))
    .map(({ code, path, message, value, hidden, allowed, fix }) => {
      const more = { allowed, fix };
      return problem(code as ProblemCode, path, message, {
        ...(hidden === true ? {} : { received: value }),
        ...more,
      });
    });
  return [...new Map(found.map((one) => [JSON.stringify(one), one])).values()];
}

function fits(own: LateRule, value: unknown): boolean {
  const { minimum, maximum, pattern, never, lengthMax = Infinity, noneOf = [], network } = own;
  const like = (one: string, text: string): boolean =>
    new RegExp(one, own.anyCase === true ? "i" : "").test(text);
  if (noneOf.includes(value)) return false;
  if (minimum !== undefined || maximum !== undefined)
    return (
      Number.isInteger(value) &&
      Number(value) >= (minimum ?? -Infinity) &&
      Number(value) <= (maximum ?? Infinity)
    );
  if (network !== undefined) return isWithin(network, String(value));
  if (pattern === undefined) return true;
  return (
    typeof value === "string" &&
    value.length <= lengthMax &&
    like(pattern, value) &&
    (never === undefined || !like(never, value)) &&
    (own.canonicalIpv6 !== true || !value.includes(":") || canonicalIpv6(value) === value)
  );
}

/** Rules of their own are for what is no address. */
function isWithin(network: string, address: string): boolean {
  const [base = "", length] = network.split("/");
  const [own, other] = [ipv4Bits(base), ipv4Bits(address)];
  return own === undefined || other === undefined || sameNetwork(own, other, Number(length));
}
