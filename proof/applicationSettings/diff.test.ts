import { execFileSync } from "node:child_process";
import fc from "../../testkit/property.js";
import { SEED } from "../../testkit/random.js";
import { unifiedDiff } from "../../src/host/applicationSettings/diff.js";
import { applySplices, insertLines, type Splice } from "../../src/host/applicationSettings/textEdit.js";

/** What `portico settings apply --dry-run` shows, beside what Python's difflib makes of the same two texts. */

const DIFFLIB = `
import difflib, json, sys
print(json.dumps(["".join(difflib.unified_diff(a.splitlines(True), b.splitlines(True), "f", "f")) for a, b in json.load(sys.stdin)]))
`;

/** Its form of a diff, with our headings: `@@ -1 +1,2 @@` is written `@@ -1,1 +1,2 @@`. */
function difflib(pairs: readonly (readonly [string, string])[]): string[] {
  const out = execFileSync("python3", ["-c", DIFFLIB], { input: JSON.stringify(pairs) }).toString();
  return (JSON.parse(out) as string[]).map((diff) =>
    diff.replace(/^@@ .* @@$/gm, (heading) => heading.replace(/([-+]\d+)(?= )/g, "$1,1")),
  );
}

interface Case {
  readonly text: string;
  readonly splices: readonly Splice[];
}

/** Lines that are all different, some of them replaced, taken out or followed by new ones, never two side by side. */
const cases = fc
  .array(fc.constantFrom("stays", "stays", "stays", "replaced", "gone", "doubled", "new below"), {
    minLength: 1,
    maxLength: 40,
  })
  .map((fates): Case => {
    const lines = fates.map((_, i) => `line ${i}`);
    const text = lines.map((line) => `${line}\n`).join("");
    const splices = fates.flatMap((fate, i): Splice[] => {
      if (fate === "stays" || (i > 0 && fates[i - 1] !== "stays")) return [];
      const from = lines.slice(0, i).reduce((sum, line) => sum + line.length + 1, 0);
      const to = from + lines[i]!.length;
      if (fate === "gone") return [{ from, to: to + 1, text: "" }];
      if (fate === "new below") return [{ from: to + 1, to: to + 1, text: `new ${i}\n` }];
      return [{ from, to, text: fate === "replaced" ? `other ${i}` : `other ${i}\nand ${i}` }];
    });
    return { text, splices };
  });

test("generated edits: the diff is that of difflib", () => {
  const edits = fc.sample(cases, { numRuns: 500, seed: SEED });
  const expected = difflib(edits.map(({ text, splices }) => [text, applySplices(text, splices)]));
  for (const [i, { text, splices }] of edits.entries()) {
    const diff = unifiedDiff("f", text, splices, new Set());
    expect({ seed: SEED, text, diff }).toEqual({ seed: SEED, text, diff: expected[i] });
  }
});

const numbered = (count: number): string => Array.from({ length: count }, (_, i) => `${i + 10}\n`).join("");
const replaced = (line: number, text: string): Splice => ({ from: 3 * line, to: 3 * line + 2, text });

test("edits of any shape: the diff is that of difflib", () => {
  const edits: readonly (readonly [text: string, ...splices: Splice[]])[] = [
    // One of two lines that are the same.
    ["a\nb\nb\n", { from: 2, to: 6, text: "b\n" }],
    // In a line, at its begin and its end, and twice in one.
    ["abc\nd\n", { from: 1, to: 1, text: "x" }],
    ["abc\nd\n", { from: 0, to: 0, text: "x" }],
    ["abc\nd\n", { from: 3, to: 3, text: "x" }],
    ["abc\nd\n", { from: 0, to: 0, text: "x\ny" }],
    ["abc\nd\n", { from: 2, to: 3, text: "y" }, { from: 0, to: 1, text: "x" }],
    // Over several lines, of which the first and the last stay, and into another edit's.
    [numbered(9), { from: 3, to: 17, text: "11\n12\nx\ny\n15" }],
    [numbered(9), { from: 4, to: 10, text: "x" }, { from: 11, to: 11, text: "y" }],
    [numbered(9), { from: 3, to: 13, text: "x\ny" }, { from: 14, to: 14, text: "z" }],
    [
      numbered(9),
      { from: 3, to: 16, text: "x" },
      { from: 16, to: 17, text: "y" },
      { from: 22, to: 23, text: "z" },
    ],
    // As many lines apart as are shown around them, and one more.
    [numbered(30), replaced(10, "x"), replaced(17, "y")],
    [numbered(30), replaced(10, "x"), replaced(18, "y")],
    [numbered(30), replaced(10, "x\nx\nx"), replaced(18, "y"), replaced(28, "z")],
    [numbered(9), { from: 4, to: 5, text: "x" }, { from: 5, to: 10, text: "y" }],
    [numbered(3), { from: 0, to: 9, text: "" }],
    ["", { from: 0, to: 0, text: "x\n" }],
  ];
  const expected = difflib(edits.map(([text, ...splices]) => [text, applySplices(text, splices)]));
  expect(edits.map(([text, ...splices]) => unifiedDiff("f", text, splices, new Set()))).toEqual(expected);
});

test("lines that come in before a line that changes, or stays, are a change of their own", () => {
  const [inserted, changed] = [
    { from: 2, to: 2, text: "x\r\ny\r" },
    { from: 2, to: 3, text: "c" },
  ];
  expect(unifiedDiff("f", "a\nb\n", [inserted, changed], new Set())).toBe(
    "--- f\n+++ f\n@@ -1,2 +1,4 @@\n a\n+x\n+y\n-b\n+c\n",
  );
  expect(unifiedDiff("f", "a\na\n", [{ from: 0, to: 0, text: "a\n" }], new Set())).toBe(
    "--- f\n+++ f\n@@ -1,2 +1,3 @@\n+a\n a\n a\n",
  );
});

test("of two lines that are the same the second one is shown as removed", () => {
  expect(unifiedDiff("f", "a\na\nb\n", [{ from: 0, to: 2, text: "" }], new Set())).toBe(
    "--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n-a\n b\n",
  );
});

test("line ends of any kind, and none at the end", () => {
  const text = "a\r\nb\rc\nd";
  const splices = [
    { from: 3, to: 4, text: "x" },
    { from: 8, to: 8, text: "y" },
  ];
  expect(unifiedDiff("f", text, splices, new Set())).toBe(
    "--- f\n+++ f\n@@ -1,4 +1,4 @@\n a\n-b\n+x\n c\n-d\n+dy\n",
  );
});

test("lines that may contain a secret are not shown, before or after the change", () => {
  const text = "a\nb\nc\nd\n";
  const splices = [
    { from: 2, to: 3, text: "x" },
    { from: 6, to: 7, text: "y" },
  ];
  expect(unifiedDiff("f", text, splices, new Set([1, 2]))).toBe(
    "--- f\n+++ f\n@@ -1,4 +1,4 @@\n (not shown: may hold a secret)\n-(not shown: may hold a secret)\n+(not shown: may hold a secret)\n c\n-d\n+y\n",
  );
});

test("where nothing changes there is no diff", () => {
  expect(unifiedDiff("f", "a\nb\n", [], new Set())).toBe("");
});

test.each<[what: string, text: string, at: number, result: string]>([
  ["at the begin", "a\n", 0, "x\ny\na\n"],
  ["into an empty text", "", 0, "x\ny\n"],
  ["at the end", "a\n", 2, "a\nx\ny\n"],
  ["at an end without line end", "a", 1, "a\nx\ny"],
  ["after a byte order mark", "\ufeff", 1, "\ufeffx\ny\n"],
  ["after an empty line", "\r\nb\r\n", 2, "\r\nx\r\ny\r\nb\r\n"],
  ["with the line ends of the text", "a\r\n", 3, "a\r\nx\r\ny\r\n"],
  ["with the line ends above", "a\r\nb\nc\r", 5, "a\r\nb\nx\ny\nc\r"],
  ["with the line ends above, a lone carriage return", "a\nb\rc\n", 4, "a\nb\rx\ry\rc\n"],
  ["at the begin, with the first line end", "a\rb\n", 0, "x\ry\ra\rb\n"],
  ["at an end without line end, with the first line end", "a\nb\rc", 5, "a\nb\rc\nx\ny"],
])("lines are added %s", (_what, text, at, result) => {
  expect(applySplices(text, [insertLines(text, at, ["x", "y"])])).toBe(result);
});
