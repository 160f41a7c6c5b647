import {
  least,
  type Finding as Found,
  type Played as Outcome,
  search as searchCases,
  Shrinking,
} from "../wire/search.js";
import { type Exchange, nameOf, type Played, smaller } from "./case.js";
import { caseAt } from "./generate.js";
import type { Proxy } from "./proxy.js";

/** What a case broke. */
export interface Finding extends Found {
  readonly faults: readonly string[];
}

export interface SearchOptions {
  readonly seed: number;
  /** Exchanges that are enough. */
  readonly exchanges: number;
  readonly findingsMax: number;
}

export interface Search {
  readonly findings: readonly Finding[];
  readonly cases: number;
  readonly exchanges: number;
  readonly bytes: number;
  /** How many exchanges of which ways failed. */
  readonly failed: ReadonlyMap<string, number>;
}

/** Cases that are played at the same time. */
const LANES = 16;
/** So many cases are played before all has to be at rest. */
const BATCH = 256;
const PATIENCE_MS = 60_000;
const REST_MS = 10_000;
/** Alone a case is done in a second. */
const ALONE_PATIENCE_MS = 10_000;
const COPIES = 12;
const RUNS_MAX = 80;

/** Plays the matrix until there are enough exchanges or findings. */
export async function search(
  proxy: Proxy,
  { seed, exchanges: enough, findingsMax }: SearchOptions,
): Promise<Search> {
  const failed = new Map<string, number>();
  let [exchanges, bytes] = [0, 0];
  const finding = (number: number, faults: readonly { exchange: Exchange; text: string }[]): Finding => {
    for (const one of new Set(faults.map(({ exchange }) => exchange)))
      failed.set(nameOf(one), (failed.get(nameOf(one)) ?? 0) + 1);
    const texts = faults.map(({ exchange, text }) => `${nameOf(exchange)}: ${text}`);
    return { number, faults: texts, kinds: kindsOf(texts) };
  };
  const play = async (number: number): Promise<Finding> => {
    const one = caseAt(seed, number);
    exchanges += one.exchanges.length;
    for (const { up, down } of one.exchanges) bytes += up + down;
    return finding(number, await proxy.play(one, number, PATIENCE_MS));
  };
  const look = async (first: number, next: number): Promise<Finding[]> => {
    const { laws, late } = await proxy.atRest(REST_MS);
    const faults = laws.map((law) => `${law}, after cases ${first} to ${next - 1}`);
    return [
      ...faults.map((fault) => ({ number: first, faults: [fault], kinds: kindsOf([fault]) })),
      ...late.map((one) => finding(one.number, [one])),
    ];
  };
  const { findings, cases } = await searchCases<Finding>({
    players: Array.from({ length: LANES }, () => play),
    from: 0,
    enough: () => exchanges >= enough,
    findingsMax,
    rest: { every: BATCH, look },
  });
  return { findings, cases, exchanges, bytes, failed };
}

/** Faults are of one kind if they differ only in numbers. */
const kindsOf = (faults: readonly string[]): string[] => [
  ...new Set(faults.map((fault) => fault.replace(/\d{2,}|\b\d\b/g, "#"))),
];

interface Alone {
  readonly kinds: readonly string[];
  readonly faults: readonly string[];
}

/** Plays one case some times at once, with nothing else beside it; if it fails, also the least that fails in the same way. */
export async function playAlone(
  proxy: Proxy,
  seed: number,
  number: number,
): Promise<Outcome<Played, Alone> | undefined> {
  const play = async ({ copies, one }: Played): Promise<Alone> => {
    const all = Array.from({ length: copies }, () => proxy.play(one, number, ALONE_PATIENCE_MS));
    const found = (await Promise.all(all)).flat();
    const { laws, late } = await proxy.atRest(REST_MS);
    const faults = [
      ...laws,
      ...[...found, ...late].map(({ exchange, text }) => `${nameOf(exchange)}: ${text}`),
    ];
    return { faults, kinds: kindsOf(faults) };
  };
  const from = new Shrinking({ copies: COPIES, one: caseAt(seed, number) }, smaller);
  return (await least(from, 0, play, new Set(), RUNS_MAX)).failed;
}
