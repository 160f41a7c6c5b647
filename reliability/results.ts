import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../build/paths.js";

/** What one run of a tool found: the source of docs/reliability.md. */
export interface Result {
  /** As in `reliability/tools.ts`. */
  readonly name: string;
  readonly verdict: "passed" | "failed";
  /** What leads to the same run again. */
  readonly seed?: number;
  readonly seconds: number;
  /** What was counted or measured, in words: `requests compared`. */
  readonly counts: Readonly<Record<string, number | string>>;
  /** Things to know beside the figures. */
  readonly notes?: readonly string[];
}

export interface RecordedResult extends Result {
  /** Day of the run. */
  readonly date: string;
  /** Commit that was run; `+` behind it if files had been changed. */
  readonly commit: string;
  readonly node: string;
}

const FOLDER = join(ROOT, "reliability/results");

/** Writes a result in place of the last one of the same name. */
export function writeResult(result: Result): void {
  const { name, ...found } = result;
  const date = new Date().toISOString().slice(0, 10);
  const recorded: RecordedResult = { name, date, commit: commit(), node: process.version, ...found };
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
    results.set(result.name, result);
  }
  return results;
}

function commit(): string {
  try {
    const git = (...args: string[]): string =>
      execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const changed = git("status", "--porcelain", "--", "src", "package-lock.json").trim() !== "";
    return git("rev-parse", "--short", "HEAD").trim() + (changed ? "+" : "");
  } catch {
    // A copy of the sources without their history.
    return "unknown";
  }
}
