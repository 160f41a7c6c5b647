import fc from "fast-check";

/** Looks for cases that fail: each way to fail is found once, and shrunk to the least case that fails in that way. */

/** What the play of a case showed. */
export interface Shown {
  /** The ways in which it failed, whatever the values; empty if it did not. */
  readonly kinds: readonly string[];
}

export interface Finding extends Shown {
  /** Number of the case that showed it; leads to it again, with the seed. */
  readonly number: number;
}

export interface SearchOptions<F extends Finding> {
  /** Those who play the case of a number, each one at a time. */
  readonly players: readonly ((number: number, known: ReadonlySet<string>) => Promise<F | undefined>)[];
  /** Number of the first case. */
  readonly from: number;
  /** Whether the cases before that number are enough. */
  readonly enough: (next: number) => boolean;
  /** How many different findings are enough. */
  readonly findingsMax: number;
  /** What is looked at when nobody plays: after so many cases, and what they left behind. */
  readonly rest?: { readonly every: number; look(first: number, next: number): Promise<readonly F[]> };
}

/** Plays cases until there are enough, or enough findings. */
export async function search<F extends Finding>(
  options: SearchOptions<F>,
): Promise<{ findings: F[]; cases: number }> {
  const { players, from, enough, findingsMax, rest } = options;
  const findings: F[] = [];
  const known = new Set<string>();
  let next = from;
  const isOver = (): boolean => enough(next) || findings.length >= findingsMax;
  const note = (found: F | undefined): void => {
    if (found === undefined || found.kinds.every((kind) => known.has(kind))) return;
    for (const kind of found.kinds) known.add(kind);
    findings.push(found);
  };
  while (!isOver()) {
    const first = next;
    const last = first + (rest?.every ?? Infinity);
    const playAll = async (play: SearchOptions<F>["players"][number]): Promise<void> => {
      while (next < last && !isOver()) note(await play(next++, known));
    };
    await Promise.all(players.map(playAll));
    for (const found of (await rest?.look(first, next)) ?? []) note(found);
  }
  return { findings, cases: next - from };
}

export interface Played<C, S> {
  readonly played: C;
  readonly shown: S;
}

/**
 * Plays one case; if it fails in a way that is not known, also the least that fails in the same way: what shrinks into
 * another failure is another finding.
 *
 * @param runsMax how often at most, shrinking included
 */
export async function least<C, S extends Shown>(
  cases: fc.Arbitrary<C>,
  seed: number,
  play: (one: C) => Promise<S>,
  known: ReadonlySet<string>,
  runsMax: number,
): Promise<{ first: Played<C, S>; failed: Played<C, S> | undefined }> {
  let first: Played<C, S> | undefined;
  let failed: Played<C, S> | undefined;
  let kind: string | undefined;
  let runs = 0;
  const property = fc.asyncProperty(cases, async (one) => {
    if (++runs > runsMax) return true;
    const shown = await play(one);
    first ??= { played: one, shown };
    kind ??= shown.kinds.find((found) => !known.has(found));
    if (kind === undefined || !shown.kinds.includes(kind)) return true;
    failed = { played: one, shown };
    return false;
  });
  await fc.check(property, { seed, numRuns: 1 });
  return { first: first!, failed };
}

/** The shortest bytes found that fail in the same way, by leaving parts out. */
export function leastBytes(first: Buffer, fails: (shorter: Buffer) => boolean, ms: number): Buffer {
  let best = first;
  const deadline = Date.now() + ms;
  for (let size = best.length >> 1; size > 0; size >>= 1) {
    for (let at = 0; at + size <= best.length && Date.now() < deadline;) {
      const shorter = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      if (fails(shorter)) best = shorter;
      else at += size;
    }
  }
  return best;
}

/** One case, and by and by those that are smaller. */
export class Shrinking<C> extends fc.Arbitrary<C> {
  constructor(
    private readonly first: C,
    private readonly smaller: (one: C) => IterableIterator<C>,
  ) {
    super();
  }

  override generate(): fc.Value<C> {
    return new fc.Value(this.first, undefined);
  }

  override canShrinkWithoutContext(_one: unknown): _one is C {
    return false;
  }

  override shrink(one: C): fc.Stream<fc.Value<C>> {
    return fc.stream(this.smaller(one)).map((less) => new fc.Value(less, undefined));
  }
}
