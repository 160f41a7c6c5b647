import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatted, isStale } from "../../build/docs/page.js";
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
    const page = await formatted(name, render());
    if (!process.argv.includes("--check")) writeFileSync(join(ROOT, name), page.text);
    else if (isStale(page)) {
      console.error(`${name} differs from ${from}: run npm run reliability`);
      process.exitCode = 1;
    }
  }
}

void main();
