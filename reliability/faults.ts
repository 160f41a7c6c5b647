import { outcomes, recordTests } from "./jestRun.js";

/** `npm run faults`: the tests of `__tests__/faults`, recorded. */
void recordTests("faults", "faults", (tests) => ({ faults: outcomes(tests) }));
