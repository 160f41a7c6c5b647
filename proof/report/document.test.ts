import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { renderReliability } from "./document.js";
import { readJestReport, RECORDED } from "./jestRun.js";
import { readResults, type RecordedResult } from "../kit/results.js";
import { TOOLS } from "./tools.js";
import { ROOT } from "../../build/paths.js";
import { failures, readReport } from "../conformance/h2spec/report.js";

const RESULT: RecordedResult = {
  name: "fuzz",
  date: "2026-01-02T03:04:05.678Z",
  passed: true,
  seed: 7,
  seconds: 60,
  mutationsEach: 3,
  targets: [
    { name: "chunks", inputs: 12_345, "slowest input, ms": 1.5 },
    { name: "frames", inputs: 7, found: { crashes: 1 } },
  ],
};

test("what was not run is listed as not run", () => {
  const text = renderReliability(TOOLS, new Map());
  for (const { command } of TOOLS)
    expect(text).toContain(`Not run: no result of \`${command}\` is recorded.`);
  expect(text).not.toMatch(/\| passed|Passed on/);
});

test("a result shows with its figures and the command that repeats it", () => {
  const text = renderReliability(TOOLS, new Map([["fuzz", RESULT]]));
  expect(text).toContain("Passed on 2026-01-02, 60 s: `npm run fuzz -- --seed 7`");
  expect(text).toMatch(/\| mutations each +\| 3 +\|/);
  const table = text.slice(text.indexOf("Targets:")).split("\n").slice(2, 6);
  expect(table.map((line) => line.replace(/ +/g, " "))).toEqual([
    "| name | inputs | slowest input, ms | found: crashes |",
    expect.stringMatching(/^[| -]+$/),
    "| chunks | 12,345 | 1.5 | |",
    "| frames | 7 | | 1 |",
  ]);
  expect(text).toMatch(/\| Coverage-guided fuzzing +\| `npm run fuzz` +\| passed +\| 2026-01-02 \|/);
  const failed = renderReliability(TOOLS, new Map([["fuzz", { ...RESULT, passed: false }]]));
  expect(failed).toContain("**Failed** on 2026-01-02");
});

test("a path with underscores is text, not bold", () => {
  const text = renderReliability(TOOLS, new Map([["fuzz", { ...RESULT, folder: "__tests__/runtime" }]]));
  expect(text).toContain("| \\_\\_tests\\_\\_/runtime");
});

test("items with many figures become columns", () => {
  const many = (name: string) => ({ name, a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 });
  const text = renderReliability(TOOLS, new Map([["fuzz", { ...RESULT, targets: [many("x"), many("y")] }]]));
  const table = text.slice(text.indexOf("Targets:")).split("\n").slice(2);
  expect(table[0]).toMatch(/^\| name +\| x +\| y +\|$/);
  expect(table[8]).toMatch(/^\| g +\| 7 +\| 7 +\|$/);
});

test("a result without a tool or without a verdict is refused", () => {
  expect(() => renderReliability(TOOLS, new Map([["other", { ...RESULT, name: "other" }]]))).toThrow(
    "other.json",
  );
  const folder = mkdtempSync(join(tmpdir(), "portico-results-"));
  try {
    writeFileSync(join(folder, "fuzz.json"), JSON.stringify({ ...RESULT, passed: "yes" }));
    expect(() => readResults(folder)).toThrow("fuzz.json does not say whether it passed");
    writeFileSync(join(folder, "fuzz.json"), JSON.stringify({ ...RESULT, name: "soak" }));
    expect(() => readResults(folder)).toThrow("fuzz.json holds the result of soak");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("h2spec is judged by its report: what failed, broke or was skipped has not passed", () => {
  const report = `<?xml version="1.0"?><testsuites><testsuite name="a">
    <testcase package="http2/3.5" classname="Sends &#34;x&#34;" time="0.1"></testcase>
    <testcase package="http2/4.1" classname="b" time="0.1"><failure>GOAWAY</failure></testcase>
    <testcase package="http2/4.2" classname="c" time="0.1"><skipped></skipped></testcase>
    <testcase package="http2/4.3" classname="d" time="0.1"><error>lost</error></testcase>
    </testsuite></testsuites>`;
  const cases = readReport(report);
  expect(cases).toHaveLength(4);
  expect(cases[0]).toEqual({ section: "http2/3.5", name: 'Sends "x"', outcome: "passed" });
  expect(failures(cases).map(({ section }) => section)).toEqual(["http2/4.1", "http2/4.2", "http2/4.3"]);
});

test("a jest run is judged by its report: what failed, was skipped or never ran has not passed", () => {
  const run = (success: boolean, ...statuses: string[]) => {
    const assertionResults = statuses.map((status, i) => ({ fullName: `test ${i}`, status }));
    const testResults = [{ name: "/somewhere/smuggling.test.ts", assertionResults }];
    return readJestReport(JSON.stringify({ success, testResults }), 3);
  };
  expect(run(true, "passed", "passed")).toEqual({
    passed: true,
    seconds: 3,
    tests: [
      { file: "smuggling", name: "test 0", passed: true },
      { file: "smuggling", name: "test 1", passed: true },
    ],
  });
  expect(run(false, "passed", "failed").tests.map(({ passed }) => passed)).toEqual([true, false]);
  // A file that does not load has no tests, and fails the run.
  for (const { passed } of [run(false, "passed"), run(true, "passed", "pending"), run(true), run(false)])
    expect(passed).toBe(false);
});

test.each(Object.entries(RECORDED))("the tests that `%s` records exist", (name, pattern) => {
  expect(TOOLS.map((tool) => tool.name)).toContain(name);
  const files = readdirSync(join(ROOT, "proof"), { recursive: true, encoding: "utf8" });
  const tests = files.map((file) => `proof/${file}`).filter((file) => file.endsWith(".test.ts"));
  expect(tests.filter((file) => new RegExp(pattern).test(file))).not.toEqual([]);
});
