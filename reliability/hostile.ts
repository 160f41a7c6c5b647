import { runJest } from "./jestRun.js";
import { writeResult } from "./results.js";

/** `npm run hostile`: the tables of `__tests__/hostile`, with their figures recorded. */
function main(): void {
  const { passed, seconds, tests } = runJest("__tests__/hostile");
  const holds = tests.filter((test) => test.passed);
  const files = [...new Set(holds.map(({ file }) => file))].sort();
  process.exitCode = passed ? 0 : 1;
  writeResult({
    name: "hostile",
    passed,
    seconds,
    "cases that hold": holds.length,
    "cases that do not": tests.length - holds.length,
    "cases that hold, by file": Object.fromEntries(
      files.map((name) => [name, holds.filter(({ file }) => file === name).length]),
    ),
  });
}

main();
