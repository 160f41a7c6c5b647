import { BREAKAGES, DESTROYS } from "../hosts/breakages.js";
import { outcomes, recordTests } from "./jestRun.js";

/** `npm run breakages`: breaks a real host in every way of `proof/hosts/breakages.ts`, recorded; takes root. */
process.env["PORTICO_TEST_HOSTS"] = "1";
process.env["CI"] = "true";

void recordTests("breakages", (tests) => {
  const all = Object.values(BREAKAGES).flat();
  const passed = outcomes(tests.filter(({ passed: ok }) => !ok));
  return {
    "ways to break a host or an apply": all.length,
    "ways to break a destroy": DESTROYS.length,
    "everything is still served": all.filter(({ down }) => down === undefined).length,
    "named by a row of doctor": all.filter(({ rows }) => rows.length > 0).length,
    "nothing is left to report": all.filter(({ rows }) => rows.length === 0).length,
    "fixed by `portico activate --again`": all.filter((one) => one.heals === "again" || one.thenAgain).length,
    tests: tests.length,
    ...(Object.keys(passed).length === 0 ? {} : { notPassed: Object.keys(passed) }),
  };
});
