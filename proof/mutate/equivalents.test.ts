import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { EQUIVALENTS, isOf } from "./equivalents.js";
import { faultsOf } from "./faults.js";
import { sourceFiles } from "./sources.js";

test("every record of harmless faults has one that no other record has", () => {
  const files = sourceFiles().filter((source) => EQUIVALENTS.some(({ file }) => source.startsWith(file)));
  const faults = files.flatMap((file) => faultsOf(file, readFileSync(join(ROOT, file), "utf8")));
  const records = faults.map((fault) => EQUIVALENTS.filter((one) => isOf(one, fault)));
  const alone = new Set(records.flatMap((found) => (found.length === 1 ? found : [])));
  expect(EQUIVALENTS.filter((one) => !alone.has(one))).toEqual([]);
});
