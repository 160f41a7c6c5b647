import { readLogLine, type LineRequest } from "../../src/host/diagnosis/logs/accessLogLine.js";
import { Replay } from "../../src/host/diagnosis/replay/replay.js";
import { type ReplayOutcome, outcomeIn, Side } from "../../src/host/diagnosis/replay/replayOutcome.js";
import { Random, seedOf } from "../../testkit/random.js";
import { type Asked, configAt, requestAt } from "./generate.js";
import { Front, type Served, startParts } from "./served.js";

/**
 * Requests are served with an old and with a new config, by the real runtime; the log of the old one is replayed. What
 * replay says of each request, with either config, has to be what its client got.
 */
export interface Tally {
  requests: number;
  changed: number;
  /** Requests of each kind of action, as replay says. */
  readonly actions: Record<string, number>;
  readonly wrong: string[];
}

/** Requests for one pair of configs. */
const OF_A_PAIR = 250;
const AT_ONCE = 16;
const WRONG_MAX = 5;

export async function replayedAgainstTruth(seed: number, count: number): Promise<Tally> {
  const tally: Tally = { requests: 0, changed: 0, actions: {}, wrong: [] };
  const parts = await startParts();
  try {
    for (let pair = 0; tally.requests < count && tally.wrong.length < WRONG_MAX; pair++) {
      const random = new Random(seedOf(seed, pair));
      const [old, next] = [configAt(random, parts), configAt(random, parts)];
      const format = pair % 3 === 2 ? "combined" : "json";
      const fronts = [await Front.start(old, format), await Front.start(next, format)] as const;
      const all = Array.from({ length: Math.min(OF_A_PAIR, count - tally.requests) }, (_, i) => {
        const asked = requestAt(random, i);
        // A log in this format says neither host nor scheme, nor how long a body is.
        return format === "json"
          ? asked
          : { ...asked, host: "a.example", protocol: "https" as const, body: "" };
      });
      try {
        const served = [await askAll(fronts[0], all), await askAll(fronts[1], all)] as const;
        judge(tally, fronts, all, served, await fronts[0].log());
      } finally {
        await Promise.all(fronts.map((front) => front.stop()));
      }
    }
  } finally {
    await parts.stop();
  }
  return tally;
}

async function askAll(front: Front, all: readonly Asked[]): Promise<Served[]> {
  const served: Served[] = [];
  const left = all.entries();
  const lane = async (): Promise<void> => {
    for (const [i, asked] of left) served[i] = await front.ask(asked);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return served;
}

type Pair<T> = readonly [old: T, next: T];

function judge(
  tally: Tally,
  fronts: Pair<Front>,
  all: readonly Asked[],
  served: Pair<Served[]>,
  log: string,
): void {
  const [before, after] = [fronts[0].config, fronts[1].config];
  const origin = { scheme: "https", host: "a.example" } as const;
  const replay = new Replay({ before, after, origin, secrets: true });
  const sides: Pair<Side> = [new Side(before), new Side(after)];
  const lines = new Map<number, LineRequest>();
  for (const text of log.split("\n").slice(0, -1)) {
    const line = readLogLine(text);
    if (line === undefined) tally.wrong.push(`is no line of a log: ${text}`);
    else if (typeof line !== "string") lines.set(Number(/n=(\d+)$/.exec(line.target)?.[1]), line);
  }
  for (const [i, asked] of all.entries()) {
    tally.requests++;
    const got: Pair<Served> = [served[0][i]!, served[1][i]!];
    const line = lines.get(asked.number);
    const say = (what: string): void => void tally.wrong.push(`${JSON.stringify(asked)}: ${what}`);
    if (line === undefined) {
      // What was refused before its target was known is refused with any config.
      if (got[0].status !== 400 && got[0].status !== 405) say(`has no line, and got ${got[0].status}`);
      if (got[0].status !== got[1].status)
        say(`has no line, and got ${got[0].status}, then ${got[1].status}`);
      continue;
    }
    const { scheme = origin.scheme, host = origin.host } = line;
    const outcomes = sides.map((side) => outcomeIn(side, { ...line, scheme, host }));
    outcomes.forEach((outcome, of) => {
      tally.actions[outcome.action] = (tally.actions[outcome.action] ?? 0) + 1;
      if (!isServed(outcome, asked, got[of]!))
        say(`${JSON.stringify(outcome)}, got ${JSON.stringify(got[of])}`);
    });
    const changed = replay.changed;
    replay.add(line, () => String(i));
    if (replay.changed === changed && JSON.stringify(got[0]) !== JSON.stringify(got[1]))
      say(`changes: ${JSON.stringify(got)}`);
  }
  tally.changed += replay.changed;
}

/** Whether an outcome is what the client got. */
function isServed({ action, status, to, upstream, body }: ReplayOutcome, asked: Asked, got: Served): boolean {
  if (action === "proxy") return got.upstream === `${upstream} ${asked.method} ${to}`;
  if (got.upstream !== undefined) return false;
  switch (action) {
    case "staticFile":
      if (got.status !== 200) return [301, 403, 404].includes(got.status);
      return asked.method === "HEAD" || got.body === to;
    case "redirect":
      return (
        got.status === status && Buffer.from(to!, "latin1").equals(Buffer.from(got.location ?? "", "latin1"))
      );
    case "respond":
      return got.status === status && (asked.method === "HEAD" || got.body === body);
    default:
      return got.status === status;
  }
}
