import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { formattedText } from "../formatted.js";
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
  return formatted(file, `${note}\n\n${text}\n`);
}

/** As `npm run format` would leave it. */
export async function formatted(file: string, written: string): Promise<Page> {
  return { file, text: await formattedText(file, written) };
}

export function isStale({ file, text }: Page): boolean {
  const target = path.join(ROOT, file);
  return !existsSync(target) || readFileSync(target, "utf8") !== text;
}
