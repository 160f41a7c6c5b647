import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as prettier from "prettier";
import { ROOT } from "../build/paths.js";
import { renderReliability } from "./document.js";
import { readResults } from "./results.js";
import { TOOLS } from "./tools.js";

/** `npm run reliability [-- --check]`: writes docs/reliability.md from the recorded results, or checks that it is so. */
const FILE = join(ROOT, "docs/reliability.md");

async function main(): Promise<void> {
  const options = (await prettier.resolveConfig(FILE)) ?? {};
  const text = await prettier.format(renderReliability(TOOLS, readResults()), {
    ...options,
    parser: "markdown",
  });
  if (!process.argv.includes("--check")) return writeFileSync(FILE, text);
  if (existsSync(FILE) && readFileSync(FILE, "utf8") === text) return;
  console.error("docs/reliability.md does not say what reliability/results does: run npm run reliability");
  process.exitCode = 1;
}

void main();
