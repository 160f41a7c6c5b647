import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "../paths.js";
import { apiPages } from "./apiPages.js";
import { configPage } from "./configPage.js";
import { errorsPage } from "./errorsPage.js";
import { isStale } from "./page.js";

/** `npm run docs`: writes the pages that come from the sources. With `--check` it says which of them are stale. */
async function main(): Promise<void> {
  const pages = [await configPage(), ...(await apiPages()), await errorsPage()];
  const stale = pages.filter(isStale);
  if (process.argv.includes("--check")) {
    if (stale.length === 0) return;
    const files = stale.map(({ file }) => file).join(", ");
    throw new Error(`${files} differ from the sources: run \`npm run docs\``);
  }
  for (const { file, text } of stale) {
    const target = path.join(ROOT, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
    console.log(file);
  }
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
