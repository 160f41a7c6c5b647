import type { Difference, Pair } from "./case.js";
import { RULES, type Rule, type RuleName } from "./deviations.js";

export interface Verdict<Name extends string = RuleName> {
  /** Differences that no rule of the case explains. */
  readonly unexplained: readonly Difference[];
  /** Rules that explained one. */
  readonly used: ReadonlySet<Name>;
}

/** Compares what both did, by the rules that its case lists and those that hold everywhere. */
export function compare(pair: Pair): Verdict {
  const rules: readonly string[] = pair.row.rules ?? [];
  const names = Object.keys(RULES) as RuleName[];
  const applies = (name: RuleName): boolean =>
    rules.includes(name) || (RULES[name] as Rule).everywhere === true;
  return compareBy(
    pair,
    names.filter(applies).map((name) => [name, RULES[name]]),
  );
}

/** Compares what both did, by the given rules. */
export function compareBy<Name extends string>(
  pair: Pair,
  rules: readonly (readonly [Name, Rule])[],
): Verdict<Name> {
  const used = new Set<Name>();
  const unexplained = differences(pair).filter((difference) => {
    const by = rules.find(([, rule]) => rule.explains(difference, pair));
    if (by !== undefined) used.add(by[0]);
    return by === undefined;
  });
  return { unexplained, used };
}

function differences({ nginx, portico }: Pair): Difference[] {
  const facts = new Set([...Object.keys(nginx), ...Object.keys(portico)]);
  return [...facts]
    .filter((fact) => nginx[fact] !== portico[fact])
    .map((fact) => ({ fact, nginx: nginx[fact], portico: portico[fact] }));
}

/** A difference as text. */
export function formatDifference({ fact, nginx, portico }: Difference): string {
  return `  ${fact}\n    nginx:   ${shortened(nginx)}\n    portico: ${shortened(portico)}`;
}

const VALUE_CHARS_MAX = 400;

function shortened(value: string | undefined): string {
  if (value === undefined) return "(none)";
  const text = JSON.stringify(value);
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX)}… (${value.length} bytes)`;
}
