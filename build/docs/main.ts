import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "../paths.js";
import { apiPages } from "./apiPages.js";
import { breakagesPage } from "./breakagesPage.js";
import { configPage } from "./configPage.js";
import { errorsPage } from "./errorsPage.js";
import { isStale, type Page } from "./page.js";
import { readmePage, reviewsPage } from "./topology.js";

/** `npm run docs`: writes the pages that come from the sources. With `--check` it says which of them are stale. */
async function main(): Promise<void> {
  const pages = [
    await configPage(),
    ...(await apiPages()),
    await errorsPage(),
    await breakagesPage(),
    await readmePage(),
    await reviewsPage(),
  ];
  const stale = pages.filter(isStale);
  const left = leftOver(pages);
  if (process.argv.includes("--check")) {
    if (stale.length + left.length === 0) return;
    const files = [...stale.map(({ file }) => file), ...left].join(", ");
    throw new Error(`${files} differ from the sources: run \`npm run docs\``);
  }
  for (const { file, text } of stale) {
    const target = path.join(ROOT, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
    console.log(file);
  }
  for (const file of left) rmSync(path.join(ROOT, file));
}

/** Pages of what is no longer there; all of `docs/api` is written. */
function leftOver(pages: readonly Page[]): string[] {
  const written = new Set(pages.map(({ file }) => file));
  return readdirSync(path.join(ROOT, "docs/api"))
    .map((name) => `docs/api/${name}`)
    .filter((file) => !written.has(file));
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
