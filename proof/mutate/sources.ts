import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";

/** Every source file, by its path from the root. */
export function sourceFiles(): string[] {
  const names = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `src/${name}`)
    .sort();
}
