import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Compares a text with a golden file beside this one; `UPDATE_GOLDEN=1` writes the file instead. */
export function expectGolden(name: string, text: string): void {
  const path = join(__dirname, "golden", name);
  if (process.env.UPDATE_GOLDEN === "1") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(text).toBe(readFileSync(path, "utf8"));
}
