import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { writeResult } from "../kit/results.js";

/** What jest reported about test files. */
export interface JestRun {
  /** Whether all of them ran and nothing failed. */
  readonly passed: boolean;
  readonly seconds: number;
  readonly tests: readonly JestTest[];
}

export interface JestTest {
  /** Name of its file, without `.test.ts`. */
  readonly file: string;
  readonly name: string;
  readonly passed: boolean;
}

interface JestReport {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** Tests that are recorded, by the name of their result: a pattern of their files. */
export const RECORDED = {
  application: "proof/application/",
  breakages: "proof/hosts/(?:breakages|doctor)\\.test\\.ts",
  faults: "proof/faults/",
  hostile: "proof/hostile/",
  pair: "proof/hosts/pair\\.test\\.ts",
  "supply-chain": "proof/package/supplyChain\\.test\\.ts",
} as const;

/**
 * Runs tests and records the result; the exit code is the verdict.
 * @param figures what else is recorded
 */
export async function recordTests(
  name: keyof typeof RECORDED,
  figures: (tests: readonly JestTest[]) => object | Promise<object>,
): Promise<void> {
  const { passed, seconds, tests } = runJest(RECORDED[name]);
  process.exitCode = passed ? 0 : 1;
  writeResult({ name, passed, seconds, ...(await figures(tests)) });
}

/** Names of tests and whether they passed. */
export const outcomes = (tests: readonly JestTest[]): Record<string, string> =>
  Object.fromEntries(tests.map(({ name, passed }) => [name, passed ? "passed" : "not passed"]));

/** Runs the tests of a folder; what jest reports while it runs goes to the error stream. */
function runJest(tests: string): JestRun {
  const folder = mkdtempSync(join(tmpdir(), "portico-jest-"));
  const from = Date.now();
  try {
    spawnSync("npx", ["--no-install", "tsx", "proof/prepare.ts", tests], {
      cwd: ROOT,
      stdio: ["ignore", 2, 2],
    });
    const file = join(folder, "report.json");
    const args = ["--no-install", "jest", tests, "--json", `--outputFile=${file}`];
    spawnSync("npx", args, { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
    return readJestReport(readFileSync(file, "utf8"), Math.round((Date.now() - from) / 1000));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Reads a report of `jest --json`: a skipped test has not passed, and a run without tests shows nothing. */
export function readJestReport(text: string, seconds: number): JestRun {
  const { success, testResults } = JSON.parse(text) as JestReport;
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({
      file: basename(name, ".test.ts"),
      name: fullName,
      passed: status === "passed",
    })),
  );
  return { passed: success && tests.length > 0 && tests.every(({ passed }) => passed), seconds, tests };
}
