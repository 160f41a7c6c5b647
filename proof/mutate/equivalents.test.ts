import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { EQUIVALENTS, isOf } from "./equivalents.js";
import { faultsOf } from "./faults.js";
import { sourceFiles } from "./sources.js";

test("every fault that is recorded as harmless exists", () => {
  const files = sourceFiles().filter((source) => EQUIVALENTS.some(({ file }) => source.startsWith(file)));
  const faults = files.flatMap((file) => faultsOf(file, readFileSync(join(ROOT, file), "utf8")));
  const gone = EQUIVALENTS.filter((one) => !faults.some((fault) => isOf(one, fault)));
  expect(gone).toEqual([]);
});
