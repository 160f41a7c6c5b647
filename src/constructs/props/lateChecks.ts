import { Fn, forExpression, type IResolvable, Lazy, Op, ref, type TerraformResource, Token } from "cdktf";
import {
  configSchema,
  type Problem,
  problem,
  type ProblemCode,
  type ProxyConfigInput,
} from "../../model/index.js";
import { formatPath } from "../../model/config/parse.js";
import { formatProblem } from "../../model/problem.js";
import { allowedBy, nodesAt, type SchemaNode } from "../../model/config/schema.js";
import type { TextRule } from "../../model/textRule.js";
import {
  argument,
  escapeTemplate,
  hasTokens,
  isWholeToken,
  textArgument,
  type TokenLeaf,
  unknownLeaves,
} from "./tokens.js";

/**
 * Checks of values that only Terraform knows, derived from the field table. They are preconditions of the file that
 * contains the values: Terraform checks them when it plans, or before it writes the file, and reports the same problems
 * that known values get at synth.
 */
export interface LateCheck {
  readonly condition: unknown;
  readonly error_message: string;
}

/**
 * Checks of everything in a config that is not known yet.
 *
 * @param at names a field as the author of the stack knows it; undefined for a field that is left out
 */
export function lateConfigChecks(
  config: ProxyConfigInput,
  at: (problem: Problem) => Problem | undefined,
): readonly LateCheck[] {
  return unknownLeaves(config).flatMap(({ path, leaf }) => {
    const nodes = nodesAt(configSchema, path, config);
    const what = at(problemOf(nodes, formatPath(path)));
    return what === undefined ? [] : lateCheck(what, nodes, leaf);
  });
}

/** The check of one value against its field's schema; none if the value is known. */
export function lateCheck(what: Problem, nodes: readonly SchemaNode[], value: unknown): LateCheck[] {
  if (value === undefined || !hasTokens(value)) return [];
  const conditions = nodes.map((node) => fits(node, value as TokenLeaf));
  // If one variant takes anything, there is nothing to check.
  if (conditions.length === 0 || conditions.includes(undefined)) return [];
  const condition = conditions.length === 1 ? conditions[0] : Fn.anytrue(conditions);
  return [{ condition, error_message: escapeTemplate(formatProblem(what)) }];
}

/** A text rule as a schema node. */
export function textNode({ pattern, never, lengthMax, canonicalIpv6 }: TextRule): SchemaNode {
  return {
    type: "string",
    pattern,
    ...(never === undefined ? {} : { not: { pattern: never } }),
    ...(lengthMax === undefined ? {} : { maxLength: lengthMax }),
    ...(canonicalIpv6 === undefined ? {} : { canonicalIpv6 }),
  };
}

/** The check of a text, with its allowed values in words. */
export function lateText(
  code: ProblemCode,
  path: string,
  rule: TextRule & { readonly allowed: string },
  value: unknown,
): LateCheck[] {
  const { allowed } = rule;
  return lateCheck(problem(code, path, `is not ${allowed}`, { allowed }), [textNode(rule)], value);
}

/** The check of a whole number. */
export function lateNumber(path: string, minimum: number, maximum: number, value: unknown): LateCheck[] {
  const allowed = `a whole number from ${minimum} to ${maximum}`;
  const what = problem("config.out-of-range", path, "is out of range", { allowed });
  return lateCheck(what, [{ type: "integer", minimum, maximum }], value);
}

export const latePort = (path: string, value: unknown): LateCheck[] => lateNumber(path, 1, 65_535, value);

/** An IPv6 address in the form that Terraform gives addresses, which is the canonical one (RFC 5952). */
export const canonicalIpv6Of = (address: string): string =>
  Fn.cidrhost(Fn.join("/", [address, "128"]), 0) as string;

function problemOf(nodes: readonly SchemaNode[], path: string): Problem {
  const allowed = allowedBy(nodes);
  const text = nodes.find((n) => n.patternErrorMessage !== undefined);
  if (text !== undefined) return problem(text.problemCode!, path, `is not ${allowed}`, { allowed });
  const values = nodes.some((n) => n.enum !== undefined || n.const !== undefined);
  if (values) return problem("config.not-one-of", path, "is not one of the allowed values", { allowed });
  if (nodes.some((n) => n.minimum !== undefined)) {
    return problem("config.out-of-range", path, "is out of range", { allowed });
  }
  const items = nodes.flatMap((n) => n.items ?? []);
  if (items.length > 0) {
    const list = `a list, each item ${allowedBy(items)}`;
    return problem("config.wrong-type", path, `is not ${list}`, { allowed: list });
  }
  return problem("config.wrong-type", path, `is not ${allowed}`, { allowed });
}

/** cdktf's operators write a bare 0 as `undefined`. */
const limit = (number: number): unknown => Fn.tonumber(String(number));

/** Makes Terraform check before it makes a resource, after the preconditions that the user of the construct added. */
export function addPreconditions(resource: TerraformResource, checks: readonly LateCheck[]): void {
  // cdktf appends a list to the existing one.
  if (checks.length > 0)
    resource.addOverride(
      "lifecycle.precondition",
      checks.map(({ condition, ...more }) => ({ condition: referring(condition), ...more })),
    );
}

/** Terraform refuses a condition that refers to nothing, as of a value from functions alone: `Fn.lower("A")`. */
const referring = (condition: unknown): IResolvable =>
  Lazy.anyValue({
    produce: (context) => {
      const text: unknown = context.resolve(condition);
      const inner = typeof text === "string" ? /^\$\{([^]*)\}$/.exec(text)?.[1] : undefined;
      if (inner === undefined || REFERENCE.test(inner.replace(QUOTED, '""'))) return text;
      return `\${(${inner}) && path.module != ""}`;
    },
  });

const QUOTED = /"(?:[^"\\]|\\.)*"/g;
/** Variables, locals, data sources, modules and resources; anything else is taken for none, which does no harm. */
const REFERENCE = /(?:^|[^\w.-])(?:var|local|data|module|[a-z0-9]+_[a-z0-9_]+)\.[a-z]/;

/**
 * The condition that a value fits a field; undefined if anything does. A value that cannot be evaluated does not fit.
 */
function fits(node: SchemaNode, leaf: TokenLeaf): string | undefined {
  const value = argument(leaf);
  // JSON shows the type; without it, a text would pass for a number.
  const json = Fn.jsonencode(value);
  const all = (...conditions: unknown[]): string => Fn.try([Fn.alltrue(conditions), false]) as string;
  const like = (pattern: string, text: string): unknown => Fn.can(Fn.regex(textArgument(pattern), text));
  if (node.const !== undefined || node.enum !== undefined) {
    const values = (node.enum ?? [node.const]).map((v) => textArgument(JSON.stringify(v)));
    return all(Fn.contains(values, json));
  }
  switch (node.type) {
    case "boolean":
      return all(like("^(?:true|false)$", json));
    case "integer":
    case "number":
      return all(
        like("^-?[0-9]+$", json),
        Op.gte(value, limit(node.minimum ?? Number.MIN_SAFE_INTEGER)),
        Op.lte(value, limit(node.maximum ?? Number.MAX_SAFE_INTEGER)),
      );
    case "string":
      return all(
        ...(isWholeToken(leaf) ? [like('^"', json)] : []),
        ...(node.pattern === undefined ? [] : [like(node.pattern, value)]),
        ...(node.not === undefined ? [] : [Op.not(like(node.not.pattern, value))]),
        ...(node.maxLength === undefined ? [] : [Op.lte(Fn.lengthOf(value), node.maxLength)]),
        ...(node.canonicalIpv6 === true
          ? [Fn.conditional(like(":", value), Op.eq(Fn.try([canonicalIpv6Of(value), ""]), value), true)]
          : []),
      );
    case "array": {
      const item = fits(node.items!, Token.asString(ref("val")));
      if (item === undefined) return undefined;
      const items = Token.asAny(forExpression(value, item));
      return all(
        Op.gte(Fn.lengthOf(value), limit(node.minItems ?? 0)),
        Fn.alltrue(items as unknown as unknown[]),
      );
    }
    default:
      return undefined;
  }
}
