import { readFileSync } from "node:fs";
import { summaryFiles } from "../bench/lib/report.js";

/** `npm run bench -- --redraw` writes them. */
test("the README of the bench and its pictures show the last complete run", () => {
  for (const [file, text] of summaryFiles()) expect(readFileSync(file, "utf8")).toBe(text);
});
