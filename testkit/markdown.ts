import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../build/paths.js";

/** Code blocks of a language in a section of a page, in order; of the whole page if no section is named. */
export function codeBlocks(page: string, language: string, section?: string): string[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  const part =
    section === undefined ? text : text.split(/^## /m).find((one) => one.startsWith(`${section}\n`));
  if (part === undefined) throw new Error(`${page} has no section "${section}"`);
  const blocks = part.matchAll(/^```(\w+)\n([^]*?)^```$/gm);
  return [...blocks].flatMap(([, kind, code]) => (kind === language ? [code!] : []));
}
