import { recordTests } from "./jestRun.js";

/** `npm run hostile`: runs the tables of `proof/hostile` and records their figures. */
void recordTests("hostile", (tests) => {
  const holds = tests.filter((test) => test.passed);
  const files = [...new Set(holds.map(({ file }) => file))].sort();
  return {
    "cases that hold": holds.length,
    "cases that do not": tests.length - holds.length,
    "cases that hold, by file": Object.fromEntries(
      files.map((name) => [name, holds.filter(({ file }) => file === name).length]),
    ),
  };
});
