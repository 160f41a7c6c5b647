import { seedOf } from "../../../testkit/random.js";
import { type Finding as Found, least, search as searchCases, type Shown } from "../../wire/search.js";
import { formatDifference } from "../compare.js";
import type { GeneratedRuleName } from "./deviations.js";
import { CASE, type GeneratedCase } from "./generate.js";
import type { Outcome, Proxies } from "./proxies.js";

export interface Finding extends Found {
  /** The least case that still fails in this way. */
  readonly minimal: GeneratedCase;
  readonly differences: string;
}

export interface SearchOptions {
  readonly seed: number;
  /** Numbers of the cases: the first, and the one after the last. */
  readonly from: number;
  readonly to: number;
  /** How many different findings are enough. */
  readonly findingsMax: number;
}

export interface Search {
  readonly findings: readonly Finding[];
  /** Requests that were compared, those of shrinking aside. */
  readonly compared: number;
  /** How often each rule explained a difference. */
  readonly rules: Readonly<Record<string, number>>;
  readonly channels: Readonly<Record<string, number>>;
}

const RUNS_MAX = 400;

/** Compares generated requests. */
export async function search(proxies: Proxies, options: SearchOptions): Promise<Search> {
  const { seed, from, to, findingsMax } = options;
  const rules: Record<string, number> = {};
  const channels: Record<string, number> = {};
  const compare = async (generated: GeneratedCase): Promise<Outcome & Shown> => {
    const outcome = await proxies.compare(generated);
    return { ...outcome, kinds: kindsOf(outcome) };
  };
  const play = async (number: number, known: ReadonlySet<string>): Promise<Finding | undefined> => {
    const { first, failed } = await least(CASE, seedOf(seed, number), compare, known, RUNS_MAX);
    const { channel } = first.played;
    channels[channel] = (channels[channel] ?? 0) + 1;
    for (const rule of first.shown.used) rules[rule] = (rules[rule] ?? 0) + 1;
    if (failed === undefined) return undefined;
    const { kinds, unexplained } = failed.shown;
    return {
      number,
      kinds,
      minimal: failed.played,
      differences: unexplained.map(formatDifference).join("\n"),
    };
  };
  const { findings, cases } = await searchCases({
    players: [play],
    from,
    enough: (next) => next >= to,
    findingsMax,
  });
  return { findings, compared: cases, rules, channels };
}

/** Which facts differ, whatever their values: all together are one way to fail. */
function kindsOf({ unexplained }: Outcome): string[] {
  const facts = unexplained.map(({ fact, nginx, portico }) =>
    fact === "status" ? `status ${nginx} ${portico}` : fact,
  );
  return facts.length === 0 ? [] : [[...new Set(facts)].sort().join(", ")];
}

/** Rules that explained something, the most used first. */
export function byUse(rules: Readonly<Record<string, number>>): [GeneratedRuleName, number][] {
  return (Object.entries(rules) as [GeneratedRuleName, number][]).sort((a, b) => b[1] - a[1]);
}
