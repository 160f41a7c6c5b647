import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Fault } from "./faults.js";
import { recordedRun } from "./tables.js";

const flag = (file: string, line: number): Fault => ({
  kind: "flag",
  file,
  line,
  start: 0,
  end: 4,
  from: "true",
  to: "false",
  expression: true,
});

test("what a recorded run did not notice is tried again, where it stands now", () => {
  const [model, render] = ["src/model/a.ts", "src/render/b.ts"];
  const run = {
    name: "mutate",
    date: "2026-01-01T00:00:00.000Z",
    commit: "abc1234",
    passed: false,
    faults: 40,
    noticed: 37,
    "by seed": { "seed 1": "19 of 20", "seed 2": "18 of 20" },
    "by area": { model: "18 of 20", render: "19 of 20" },
    "by kind": { flag: "8 of 10", step: "29 of 30" },
    "not noticed": [
      `seed 1: ${model}:9 flag: true -> false`,
      `seed 2: ${render}:9 flag: true -> false`,
      `seed 2: ${model}:4 step: if (a) return b; -> (left out)`,
    ],
  };
  const folder = mkdtempSync(join(tmpdir(), "portico-tables-"));
  writeFileSync(join(folder, "mutate.json"), JSON.stringify(run));
  const again = recordedRun([flag(model, 2), flag(model, 11), flag(render, 30)], () => true, folder);
  // Another one of the same words is not taken in the place of one that changes nothing.
  const changes = ({ line }: Fault): boolean => line !== 11;
  const less = recordedRun([flag(model, 2), flag(model, 11), flag(render, 30)], changes, folder);
  expect(less.faults).toEqual([{ ...flag(render, 30), seed: 2, id: 0 }]);
  rmSync(folder, { recursive: true });

  expect(again.faults).toEqual([
    { ...flag(model, 11), seed: 1, id: 0 },
    { ...flag(render, 30), seed: 2, id: 1 },
  ]);
  const left = again.faults.slice(0, 1);
  // The step is gone, and counts no more.
  expect(again.with(left)).toEqual({
    sizes: {
      "by seed": { "seed 1": 20, "seed 2": 19 },
      "by area": { model: 19, render: 20 },
      "by kind": { flag: 10, step: 29 },
    },
    left,
    first: "37 of 40, commit abc1234",
  });
});
