import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";

/** What one run of a tool found: the source of docs/reliability.md. Whatever else a tool records is shown as it is. */
export interface Result {
  /** As in `proof/report/tools.ts`. */
  readonly name: string;
  readonly passed: boolean;
  /** What leads to the same run again. */
  readonly seed?: number;
  /** What was counted or measured, in words: `requests compared`. */
  readonly [figure: string]: unknown;
}

/** A result as it is kept. */
export interface RecordedResult extends Result {
  /** When it was recorded, ISO 8601. */
  readonly date: string;
}

const FOLDER = join(ROOT, "proof/report/results");

/** Writes a result in place of the last one of the same name. */
export function writeResult(result: Result): void {
  const { name, ...found } = result;
  const run = { date: new Date().toISOString(), commit: COMMIT, node: process.version };
  const recorded = { name, ...run, ...found };
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify(recorded, undefined, 2)}\n`);
}

/** All results there are, by name. */
export function readResults(folder = FOLDER): Map<string, RecordedResult> {
  const results = new Map<string, RecordedResult>();
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .sort()) {
    const result = JSON.parse(readFileSync(join(folder, file), "utf8")) as RecordedResult;
    if (`${result.name}.json` !== file) throw new Error(`${file} holds the result of ${result.name}`);
    if (typeof result.passed !== "boolean" || Number.isNaN(Date.parse(result.date)))
      throw new Error(`${file} does not say whether it passed, or when`);
    results.set(result.name, result);
  }
  return results;
}

/** What recording itself changes. */
const WRITTEN = [":(exclude)proof/report/results", ":(exclude)docs/reliability.md"];

/** The commit of the sources, and a `+` if they were changed since. */
function commit(): string {
  try {
    const git = (...args: string[]): string =>
      execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const changed = git("status", "--porcelain", "--", ".", ...WRITTEN).trim() !== "";
    return git("rev-parse", "--short", "HEAD").trim() + (changed ? "+" : "");
  } catch {
    // A copy of the sources without their history.
    return "unknown";
  }
}

/** Looked up as the run begins: another may be made before a long one ends. */
const COMMIT = commit();
