import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ROOT } from "../build/paths.js";
import { writeResult } from "./results.js";

/** `npm run hostile`: the tables of `__tests__/hostile`, with their figures recorded. */
interface JestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

function main(): void {
  const folder = mkdtempSync(join(tmpdir(), "portico-hostile-"));
  const from = Date.now();
  try {
    const file = join(folder, "report.json");
    const args = ["--no-install", "jest", "__tests__/hostile", "--json", `--outputFile=${file}`];
    spawnSync("npx", args, { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
    record(JSON.parse(readFileSync(file, "utf8")) as JestReport, Math.round((Date.now() - from) / 1000));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function record(report: JestReport, seconds: number): void {
  const passed = (results: JestReport["testResults"][number]["assertionResults"]): number =>
    results.filter(({ status }) => status === "passed").length;
  const files = report.testResults
    .map(({ name, assertionResults }) => [basename(name, ".test.ts"), passed(assertionResults)] as const)
    .sort(([a], [b]) => a.localeCompare(b));
  const ok = report.success && report.numPassedTests > 0;
  process.exitCode = ok ? 0 : 1;
  writeResult({
    name: "hostile",
    passed: ok,
    seconds,
    "cases that hold": report.numPassedTests,
    "cases that do not": report.numFailedTests,
    "cases that hold, by file": Object.fromEntries(files),
  });
}

main();
