import fc from "fast-check";
import { formatDifference } from "../compare.js";
import type { GeneratedRuleName } from "./deviations.js";
import { CASE, type GeneratedCase } from "./generate.js";
import type { Outcome, Proxies } from "./proxies.js";

export interface Finding {
  /** Number of the case that showed it; leads to it again, with the seed. */
  readonly number: number;
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

/** Compares generated requests; each way to fail is found once, and shrunk. */
export async function search(proxies: Proxies, options: SearchOptions): Promise<Search> {
  const findings: Finding[] = [];
  const known = new Set<string>();
  const rules: Record<string, number> = {};
  const channels: Record<string, number> = {};
  let number = options.from;
  for (; number < options.to && findings.length < options.findingsMax; number++) {
    const { first, failed } = await check(proxies, seedOf(options.seed, number), known);
    channels[first.generated.channel] = (channels[first.generated.channel] ?? 0) + 1;
    for (const rule of first.outcome.used) rules[rule] = (rules[rule] ?? 0) + 1;
    if (failed === undefined) continue;
    known.add(signatureOf(failed.outcome));
    const differences = failed.outcome.unexplained.map(formatDifference).join("\n");
    findings.push({ number, minimal: failed.generated, differences });
  }
  return { findings, compared: number - options.from, rules, channels };
}

/** Seeds of cases are far apart, so that runs from neighbouring seeds share none. */
const seedOf = (seed: number, number: number): number => (Math.imul(seed, 0x9e3779b1) + number) | 0;

interface Compared {
  readonly generated: GeneratedCase;
  readonly outcome: Outcome;
}

const SHRINKS_MAX = 400;

/** Compares the case of one seed; if it fails in a new way, the least that fails in the same way as well. */
async function check(
  proxies: Proxies,
  seed: number,
  known: ReadonlySet<string>,
): Promise<{ first: Compared; failed: Compared | undefined }> {
  let first: Compared | undefined;
  let failed: Compared | undefined;
  let runs = 0;
  const property = fc.asyncProperty(CASE, async (generated) => {
    if (++runs > SHRINKS_MAX) return true;
    const compared = { generated, outcome: await proxies.compare(generated) };
    first ??= compared;
    const signature = signatureOf(compared.outcome);
    // What shrinks into another failure is another finding.
    const same = failed === undefined ? !known.has(signature) : signature === signatureOf(failed.outcome);
    if (signature === "" || !same) return true;
    failed = compared;
    return false;
  });
  await fc.check(property, { seed, numRuns: 1 });
  return { first: first!, failed };
}

/** Which facts differ, whatever their values. */
function signatureOf({ unexplained }: Outcome): string {
  const facts = unexplained.map(({ fact, nginx, portico }) =>
    fact === "status" ? `status ${nginx} ${portico}` : fact,
  );
  return [...new Set(facts)].sort().join(", ");
}

/** Rules that explained something, the most used first. */
export function byUse(rules: Readonly<Record<string, number>>): [GeneratedRuleName, number][] {
  return (Object.entries(rules) as [GeneratedRuleName, number][]).sort((a, b) => b[1] - a[1]);
}
