import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { format, resolveConfig } from "prettier";
import { ROOT } from "../paths.js";

/** A page that is written from the sources. */
export interface Page {
  /** Path in the repository. */
  readonly file: string;
  readonly text: string;
}

/** A page as it is kept: with a note where it comes from, and formatted like everything else. */
export async function page(file: string, from: string, text: string): Promise<Page> {
  const note = `<!-- Written by \`npm run docs\` from ${from}. Change that, not this page. -->`;
  const options = await resolveConfig(path.join(ROOT, file));
  return { file, text: await format(`${note}\n\n${text}\n`, { ...options, parser: "markdown" }) };
}

export function isStale({ file, text }: Page): boolean {
  const target = path.join(ROOT, file);
  return !existsSync(target) || readFileSync(target, "utf8") !== text;
}
