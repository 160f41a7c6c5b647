import { outcomes, recordTests } from "./jestRun.js";

/** `npm run faults`: the tests of `proof/faults`, recorded. */
void recordTests("faults", (tests) => ({ faults: outcomes(tests) }));
