import { readFileSync } from "node:fs";
import { join } from "node:path";
import { renderBreakages } from "./breakagesDocument.js";
import { BREAKAGES, DESTROYS } from "../hosts/breakages.js";

/** The table of broken hosts as a document; `proof/hosts/brokenHost.ts` shows that it is true. */
const all = Object.values(BREAKAGES).flat();

test("there are at least sixty different ways, and each says what is seen and what fixes it", () => {
  expect(all.length + DESTROYS.length).toBeGreaterThanOrEqual(60);
  const names = [...all, ...DESTROYS].map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  // Without a row of doctor it is refused, or the host fixes it.
  const unsaid = all.filter(({ rows, says, tries, heals }) =>
    rows.length > 0 ? says === undefined : tries === undefined && heals !== "itself",
  );
  expect(unsaid.map(({ name }) => name)).toEqual([]);
});

test("docs/breakages.md lists them all", () => {
  const documented = readFileSync(join(__dirname, "../../docs/breakages.md"), "utf8");
  const cells = (text: string): string => text.replace(/[ -]+/g, " ");
  expect(cells(documented)).toBe(cells(renderBreakages()));
});
