import { applicationVersions } from "../application/application.js";
import { browserVersion } from "../application/browser.js";
import { outcomes, recordTests } from "./jestRun.js";

/** `npm run application`: runs the tests of `proof/application` and records what they ran on and what they showed. */
void recordTests("application", (tests) => ({ ...versions(), steps: outcomes(tests) }));

/** A missing program must not keep the failure from being recorded. */
function versions(): Record<string, string> {
  try {
    return { browser: browserVersion(), ...applicationVersions() };
  } catch (error) {
    return { versions: (error as Error).message };
  }
}
