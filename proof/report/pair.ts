import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outcomes, recordTests } from "./jestRun.js";

/** `npm run pair`: fails the hosts of a pair in every way of `proof/hosts/pair.test.ts`, recorded; takes root. */
const folder = mkdtempSync(join(tmpdir(), "portico-pair-"));
const figures = join(folder, "figures.json");
process.env["PORTICO_TEST_HOSTS"] = "1";
process.env["CI"] = "true";
process.env["PORTICO_PAIR_FIGURES"] = figures;

void recordTests("pair", (tests) => {
  try {
    return {
      "longest time without an answer, in ms": JSON.parse(readFileSync(figures, "utf8")) as object,
      tests: outcomes(tests),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
});
