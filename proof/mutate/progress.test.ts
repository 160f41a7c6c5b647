import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Progress } from "./progress.js";
import type { NumberedFault, Reached } from "./tree.js";

const fault = (id: number, file = "src/model/a.ts"): NumberedFault => ({
  ...{ id, kind: "flag", file, line: 3, start: 0, end: 4, from: "true", to: "false", expression: true },
});
const never = (): never => {
  throw new Error("it was known");
};

test("a run that was cut off goes on from what it had found", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-progress-"));
  const file = join(folder, "progress");
  const faults = [fault(0), fault(1)];
  const reached: Reached = { ms: 9, tests: new Map([["a", 4]]), byFault: new Map([[1, new Set(["a", ""])]]) };
  const first = new Progress(file, faults);
  expect(await first.reached("a.test.ts", () => Promise.resolve(reached))).toEqual(reached);
  expect(await first.reached("b.test.ts", () => Promise.resolve(undefined))).toBeUndefined();
  expect(await first.noticed("near", faults[0]!, () => Promise.resolve("a.test.ts"))).toBe("a.test.ts");
  expect(await first.noticed("near", faults[1]!, () => Promise.resolve(undefined))).toBeUndefined();
  appendFileSync(file, '{"round":"rest","id":1,"by"');

  const next = new Progress(file, faults);
  expect(await next.reached("a.test.ts", never)).toEqual(reached);
  expect(await next.reached("b.test.ts", never)).toBeUndefined();
  expect(await next.noticed("near", faults[0]!, never)).toBe("a.test.ts");
  expect(await next.noticed("near", faults[1]!, never)).toBeUndefined();
  expect(await next.noticed("rest", faults[1]!, () => Promise.resolve("c.test.ts"))).toBe("c.test.ts");
  expect(await new Progress(file, faults).noticed("rest", faults[1]!, never)).toBe("c.test.ts");

  const before = readFileSync(file, "utf8");
  expect(() => new Progress(file, [fault(0, "src/model/b.ts")])).toThrow(
    "of other faults, or of other sources",
  );
  expect(readFileSync(file, "utf8")).toBe(before);
  rmSync(folder, { recursive: true });
});
