import { applicationVersions } from "../application/application.js";
import { browserVersion } from "../application/browser.js";
import { outcomes, recordTests } from "./jestRun.js";

/** `npm run application`: the tests of `proof/application`, with what they ran on and what they showed recorded. */
void recordTests("application", "application", (tests) => ({ ...versions(), steps: outcomes(tests) }));

/** What is missing must not keep the failure from being recorded. */
function versions(): Record<string, string> {
  try {
    return { browser: browserVersion(), ...applicationVersions() };
  } catch (error) {
    return { versions: (error as Error).message };
  }
}
