import path from "node:path";
import type { Bench, Row } from "../lib/bench.js";
import { stop } from "../lib/children.js";
import { startHelper } from "../lib/helpers.js";
import { ABSOLUTE, type Work } from "../lib/work.js";

interface Case {
  readonly name: string;
  readonly hosts: number;
  readonly routes: number;
}

const EMPTY: Case = { name: "empty stack", hosts: 0, routes: 0 };
const CASES: readonly Case[] = [
  { name: "1 host", hosts: 1, routes: 0 },
  { name: "10 routes", hosts: 1, routes: 10 },
  { name: "100 routes", hosts: 1, routes: 100 },
  { name: "1,000 routes", hosts: 1, routes: 1_000 },
  { name: "10 hosts", hosts: 10, routes: 0 },
  { name: "100 hosts", hosts: 100, routes: 0 },
];

/** CPU seconds beyond those of an empty stack. Ten times the routes may cost ten times as much, and little more. */
export const synthesis: Work = {
  name: "synthesis",
  what: "synthesis of one stack, beyond an empty one",
  unit: "s",
  by: "cpu",
  bars: [
    { row: "1,000 routes", to: ABSOLUTE, limit: 2 },
    { row: "1,000 routes", to: "100 routes", limit: 12 },
    { row: "100 hosts", to: "10 hosts", limit: 12 },
  ],
  run: synthesizeAll,
};

async function synthesizeAll(bench: Bench): Promise<Row[]> {
  const times = new Map<Case, number[]>([EMPTY, ...CASES].map((one) => [one, []]));
  for (let round = 0; round < Math.min(bench.rounds, 3); round++) {
    for (const [one, seconds] of times) {
      bench.note(`${one.name}: round ${round + 1}`);
      seconds.push(await synthesize(bench, one));
    }
  }
  const empty = Math.min(...times.get(EMPTY)!);
  const rows = CASES.map((one): Row => {
    const samples = times.get(one)!.map((seconds) => ({ value: seconds - empty }));
    return { proxy: one.name, family: "portico", samples };
  });
  const note = "not taken off itself";
  return [{ proxy: EMPTY.name, family: "native", samples: [{ value: empty, note }] }, ...rows];
}

async function synthesize(bench: Bench, { hosts, routes }: Case): Promise<number> {
  const helper = startHelper(
    "synth",
    [hosts, routes, path.join(bench.site.folder, "synth")],
    bench.proxyCores,
  );
  try {
    return (await helper.next(120_000))["ms"]! / 1000;
  } finally {
    await stop(helper.child);
  }
}
