import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as prettier from "prettier";
import { ROOT } from "../../build/paths.js";
import { renderBreakages } from "./breakagesDocument.js";
import { renderReliability } from "./document.js";
import { readResults } from "../kit/results.js";
import { TOOLS } from "./tools.js";

/**
 * `npm run reliability [-- --check]`: writes docs/reliability.md from the recorded results, and docs/breakages.md from
 * the table of breakages, or checks that they are current.
 */
const DOCUMENTS = [
  {
    name: "docs/reliability.md",
    from: "proof/report/results",
    render: () => renderReliability(TOOLS, readResults()),
  },
  { name: "docs/breakages.md", from: "proof/hosts/breakages.ts", render: renderBreakages },
];

async function main(): Promise<void> {
  for (const { name, from, render } of DOCUMENTS) {
    const file = join(ROOT, name);
    const options = (await prettier.resolveConfig(file)) ?? {};
    const text = await prettier.format(render(), { ...options, parser: "markdown" });
    if (!process.argv.includes("--check")) writeFileSync(file, text);
    else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
      console.error(`${name} differs from ${from}: run npm run reliability`);
      process.exitCode = 1;
    }
  }
}

void main();
