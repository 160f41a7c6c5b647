import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the servers ask for. */
export const CREDENTIALS = { user: "ada", password: "correct-horse" };

/** What became of one test: passed, passed with a complaint, failed with a reason, or not run. */
export interface Outcome {
  /** `copymove/move_coll#11`: suite, test and its place, since names repeat. */
  readonly test: string;
  readonly result: "pass" | "fail" | "skip";
  readonly message?: string;
}

const LITMUS_MS_MAX = 180_000;

/** Runs all suites of litmus against a WebDAV server; certificates are not checked (litmus never does). */
export async function litmus(url: string): Promise<Outcome[]> {
  // It leaves a log where it runs.
  const cwd = mkdtempSync(join(tmpdir(), "portico-litmus-"));
  try {
    const child = spawn("litmus", ["--keep-going", `${url}/`, CREDENTIALS.user, CREDENTIALS.password], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const late = setTimeout(() => child.kill("SIGKILL"), LITMUS_MS_MAX);
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (text += data));
    const signal = await new Promise<NodeJS.Signals | null>((done, failed) => {
      child.once("close", (_code, by) => done(by));
      child.once("error", failed);
    });
    clearTimeout(late);
    if (signal !== null) throw new Error(`litmus was ended by ${signal}:\n${text.slice(-2000)}`);
    return readLitmus(text);
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

const WORD =
  /-> running `(\w+)'|(\d+)\. (\w+)\.*|WARNING: ([^\n]*)|\b(pass|FAIL|SKIPPED)\b(?: \(([^\n]*)\))?/g;

/** Reads the report: suite by suite, a number and a name, warnings, then the result. */
export function readLitmus(text: string): Outcome[] {
  const outcomes: Outcome[] = [];
  let [suite, test, warning] = ["", "", ""];
  for (const [, running, number, name, complaint, result, reason] of text.matchAll(WORD)) {
    if (running !== undefined) suite = running;
    else if (name !== undefined) test = `${suite}/${name}#${number}`;
    else if (complaint !== undefined) warning = complaint.trim();
    else if (test !== "") {
      const message = result === "pass" ? warning : (reason ?? "").trim();
      const kind = result === "pass" ? "pass" : result === "FAIL" ? "fail" : "skip";
      outcomes.push({ test, result: kind, ...(message === "" ? {} : { message }) });
      [test, warning] = ["", ""];
    }
  }
  return outcomes;
}

/** What litmus 0.13 runs, in this order. A suite whose beginning fails on a server is skipped by it test by test. */
const SUITES = ["basic", "copymove", "props", "locks", "http"] as const;
export type Suite = (typeof SUITES)[number];

/**
 * Why a run without the front end is not a measure for those through it: suites that did not run, and tests that do not
 * pass in suites that must.
 */
export function unfit(direct: readonly Outcome[], mustPass: readonly Suite[]): string[] {
  const of = (suite: Suite): Outcome[] => direct.filter(({ test }) => test.startsWith(`${suite}/`));
  return [
    ...SUITES.filter((suite) => !of(suite).some(({ result }) => result === "pass")).map(
      (suite) => `${suite}: no test of it passed`,
    ),
    ...mustPass
      .flatMap(of)
      .flatMap(({ test, result, message = "" }) =>
        result === "pass" ? [] : `${test}: ${result} ${message}`,
      ),
  ];
}

/** Tests that do worse behind the front end than directly: failed or not run there, or with another complaint. */
export function worse(direct: readonly Outcome[], behind: readonly Outcome[]): string[] {
  const there = new Map(behind.map((outcome) => [outcome.test, outcome]));
  return direct.flatMap(({ test, result, message }) => {
    if (result !== "pass") return [];
    const other = there.get(test);
    if (other?.result === "pass" && other.message === message) return [];
    // One test looks at the bytes of the connection, and litmus leaves it out over TLS.
    if (other?.result === "skip" && other.message === "skipping for SSL server") return [];
    return [
      `${test}: ${other?.result ?? "missing"} ${other?.message ?? ""} (directly: ${result} ${message ?? ""})`,
    ];
  });
}
