import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseSync } from "@swc/core";
import ts from "typescript";
import { ROOT } from "../../build/paths.js";
import { areaOf } from "./areas.js";
import { type FaultKind, faultsOf } from "./faults.js";
import { sourceFiles } from "./sources.js";
import { apart, reachedFile, RECORD, withSwitches } from "./switches.js";

test.each<[code: string, ...faults: string[]]>([
  ["a === b;", "comparison (a) !== (b)", "step "],
  [
    "const c = a < 2 && !b;",
    "logic (a < 2) || (!b)",
    "comparison (a) <= (2)",
    "number (2 + 1)",
    "condition b",
  ],
  ["if (a) return;", "step ", "condition !(a)"],
  ["const c = a ?? b;", "default a"],
  ["const f = (a = 5, { b = true }) => a;", "default (5 + 1)", "default false"],
  ["const c = a ? b : d;", "condition a ? d : b"],
  ["const r = /^a+$/i;", "regex /a+$/i", "regex /^a+/i", "regex /^a*$/i", "regex /^a+$/"],
  ["const m = a.every(b);", "call a.some(b)"],
  ["const m = a.trim();", "call a"],
  ["const m = a?.trim().length;"],
  [
    'const t = "word"; const s = "a sentence"; const o = { "name": 1 }; import "x";',
    'text ""',
    "number (1 + 1)",
  ],
  ['const { 0: f, "name": g } = a;'],
  ["type T = 1; interface I { a: 2 }"],
])("of %s", (code, ...expected) => {
  const found = faultsOf("src/a.ts", code).map(({ kind, to }) => `${kind} ${to}`);
  expect(found.sort()).toEqual(expected.sort());
});

test("every source has faults of a known area, and can be compiled with them built in", () => {
  for (const file of sourceFiles()) {
    const text = readFileSync(join(ROOT, file), "utf8");
    const faults = apart(faultsOf(file, text)).map((fault, id) => ({ ...fault, id }));
    expect(areaOf(file)).not.toBe("");
    expect({ file, error: errorOf(withSwitches(text, faults, "/none")) }).toEqual({ file, error: undefined });
  }
});

function errorOf(code: string): string | undefined {
  try {
    parseSync(code, { syntax: "typescript" });
  } catch (error) {
    return String(error);
  }
  return undefined;
}

test("a fault does what it says when it is on, and nothing else", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-faults-"));
  const file = join(folder, "on");
  const code =
    "const seen = [1 + 2, [3, 4].every((n) => n > 3)]; if (seen[0] === 3) seen.pop(); " +
    "if (seen[0] === 4) seen.pop(); else seen.push(7); return seen;";
  const seen = (on: boolean | typeof RECORD, ...kinds: FaultKind[]): unknown => {
    const faults = apart(faultsOf("src/a.ts", code).filter(({ kind }) => kinds.includes(kind)));
    const switched = withSwitches(
      code,
      faults.map((fault, id) => ({ ...fault, id })),
      file,
    );
    writeFileSync(file, on === true ? faults.map((_, id) => id).join(" ") : on || "");
    // oxlint-disable-next-line no-eval -- what the changed code does is the question.
    return (0, eval)(`(() => { ${ts.transpile(switched)} })()`);
  };
  try {
    expect(seen(false, "step", "arithmetic", "call")).toEqual([3, 7]);
    expect(seen(true, "step")).toEqual([3, false]);
    expect(seen(true, "arithmetic", "call")).toEqual([-1, true, 7]);
    // What cannot be said at once is said later: a process may have no descriptor left.
    mkdirSync(reachedFile(file));
    expect(seen(RECORD, "step")).toEqual([3, 7]);
    rmdirSync(reachedFile(file));
    // What is reached again within moments is not said again.
    await sleep(50);
    expect(seen(RECORD, "step")).toEqual([3, 7]);
    // The `pop` of 4 is not reached.
    const steps = apart(faultsOf("src/a.ts", code).filter(({ kind }) => kind === "step"));
    const reached = readFileSync(reachedFile(file), "utf8").trim().split(" ");
    const both = ["if (seen[0] === 3) seen.pop();", "seen.push(7);"];
    expect(reached.map((id) => steps[Number(id)]!.from)).toEqual([...both, ...both]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
