import { applicationVersions } from "../tools/application/application.js";
import { browserVersion } from "../tools/application/browser.js";
import { runJest } from "./jestRun.js";
import { writeResult } from "./results.js";

/** `npm run application`: the tests of `__tests__/application`, with what they ran on and what they showed recorded. */
function main(): void {
  const { passed, seconds, tests } = runJest("__tests__/application");
  process.exitCode = passed ? 0 : 1;
  writeResult({
    name: "application",
    passed,
    seconds,
    ...versions(),
    "steps that passed": tests.filter((test) => test.passed).length,
    "steps that did not": tests.filter((test) => !test.passed).length,
    steps: Object.fromEntries(tests.map((test) => [test.name, test.passed ? "passed" : "not passed"])),
  });
}

/** What is missing must not keep the failure from being recorded. */
function versions(): Record<string, string> {
  try {
    return { browser: browserVersion(), ...applicationVersions() };
  } catch (error) {
    return { versions: (error as Error).message };
  }
}

main();
