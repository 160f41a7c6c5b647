import { execFileSync } from "node:child_process";
import fc from "../../proof/kit/property.js";
import { SEED } from "../../proof/kit/random.js";
import { unifiedDiff } from "../../src/applicationSettings/diff.js";
import { applySplices, insertLines, type Splice } from "../../src/applicationSettings/textEdit.js";

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
  ["with the line ends of the text", "a\r\n", 3, "a\r\nx\r\ny\r\n"],
  ["with the line ends above", "a\r\nb\nc\r", 5, "a\r\nb\nx\ny\nc\r"],
  ["with the line ends above, a lone carriage return", "a\nb\rc\n", 4, "a\nb\rx\ry\rc\n"],
  ["at the begin, with the first line end", "a\rb\n", 0, "x\ry\ra\rb\n"],
  ["at an end without line end, with the first line end", "a\nb\rc", 5, "a\nb\rc\nx\ny"],
])("lines are added %s", (_what, text, at, result) => {
  expect(applySplices(text, [insertLines(text, at, ["x", "y"])])).toBe(result);
});
