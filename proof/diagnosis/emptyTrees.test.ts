import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptiedTrees, filledTrees } from "../../src/host/diagnosis/emptyTrees.js";

/** Served directories that had files. */

let folder: string;
let tree: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-trees-"));
  tree = join(folder, "tree");
  mkdirSync(join(tree, "inner"), { recursive: true });
  writeFileSync(join(tree, "inner/file"), "x");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const had = "had files when the deployment was activated";

test.each<[string, () => void, string | undefined]>([
  ["as it was", () => undefined, undefined],
  ["empty", () => mkdirSync(tree), `is empty, and ${had}`],
  ["gone", () => undefined, `does not exist, and ${had}`],
  ["a file", () => writeFileSync(tree, ""), `is not a directory, and ${had}`],
  ["a link to itself", () => symlinkSync(tree, tree), `is not a directory, and ${had}`],
  ["a link to where it is now", () => symlinkSync(join(folder, "moved"), tree), undefined],
])("a directory that is %s", async (what, change, expected) => {
  const paths = [tree, join(tree, "inner")];
  expect(await filledTrees(paths)).toEqual(paths);
  if (what !== "as it was") renameSync(tree, join(folder, "moved"));
  change();
  const fix = `Mount its disk, or put the files back; what is mounted there now: findmnt --target ${tree}`;
  // A directory inside is no other finding.
  expect(await emptiedTrees(paths)).toEqual(
    expected === undefined ? [] : [{ at: tree, what: expected, fix }],
  );
});
