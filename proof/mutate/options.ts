import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { numberOption } from "../kit/numberOption.js";
import { AREAS } from "./areas.js";

export interface MutateOptions {
  readonly help: boolean;
  /** Faults of each seed. */
  readonly count: number;
  readonly seeds: readonly number[];
  readonly area: string | undefined;
  readonly tests: RegExp;
  readonly near: boolean;
  readonly lanes: number;
  readonly record: boolean;
  readonly again: boolean;
  readonly progress: string | undefined;
}

const names = AREAS.map(([name]) => name);

export const HELP = `npm run mutate -- [OPTION...]

Gives src single faults chosen at random, and counts those that the tests notice. Each test runs once without a fault,
which shows what it reaches. Then each fault meets those that reach it, nearest first; what they let pass is tried
together against all others that reach it.

  --count N         how many faults of each seed (default 100)
  --seed S[,S...]   which; several share one run (default: one, printed)
  --area NAME       only of this area:
                    ${names.join("; ")}
  --tests P         only test files whose path matches this regular expression
  --near            only the nearest tests of each fault: what they let pass may be noticed by others
  --lanes N         how many faults are tried side by side (default: three a core, as tests wait most of their time)
  --record          keeps the table for docs/reliability.md
  --progress FILE   keeps in this file what is known so far; a run that was cut off goes on from there
  --again           only the faults of the recorded run that it did not notice; after tests were added. With --tests,
                    those that were added are enough
  --help            print this

100 faults take some 15 minutes on two idle cores.
`;

/** @throws Error with a text for the user */
export function parseOptions(args: readonly string[]): MutateOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean", default: false },
      count: { type: "string", default: "100" },
      seed: { type: "string", default: String(randomInt(1, 2 ** 31)) },
      area: { type: "string" },
      tests: { type: "string", default: "" },
      near: { type: "boolean", default: false },
      lanes: { type: "string", default: String(3 * availableParallelism()) },
      record: { type: "boolean", default: false },
      again: { type: "boolean", default: false },
      progress: { type: "string" },
    },
  });
  const { help, area, near, record, again, progress } = values;
  // What the recorded run did not notice, it has tried against all tests that there were.
  if ((near || values.tests !== "") && record && !again)
    throw new Error("--record keeps runs against all tests: leave out --near and --tests");
  if (area !== undefined && !names.includes(area))
    throw new Error(`--area ${area}: give one of ${names.join(", ")}`);
  return {
    help,
    count: numberOption("--count", values.count),
    seeds: values.seed.split(",").map((seed) => numberOption("--seed", seed, 0)),
    area,
    tests: regularExpression("--tests", values.tests),
    near,
    lanes: numberOption("--lanes", values.lanes),
    record,
    again,
    progress,
  };
}

function regularExpression(option: string, text: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    throw new Error(`${option} ${text}: ${(error as Error).message}`);
  }
}
