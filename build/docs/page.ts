import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { format, type FormatConfig } from "oxfmt";
import { ROOT } from "../paths.js";

/** A page that is written from the sources. */
export interface Page {
  /** Path in the repository. */
  readonly file: string;
  readonly text: string;
}

const OPTIONS = JSON.parse(readFileSync(path.join(ROOT, ".oxfmtrc.json"), "utf8")) as FormatConfig;

/** A page as it is kept: with a note where it comes from, and formatted like everything else. */
export async function page(file: string, from: string, text: string): Promise<Page> {
  const note = `<!-- Written by \`npm run docs\` from ${from}. Change that, not this page. -->`;
  return formatted(file, `${note}\n\n${text}\n`);
}

/** As `npm run format` would leave it. */
export async function formatted(file: string, written: string): Promise<Page> {
  const { code, errors } = await format(file, written, OPTIONS);
  if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join(", ")}`);
  return { file, text: code };
}

export function isStale({ file, text }: Page): boolean {
  const target = path.join(ROOT, file);
  return !existsSync(target) || readFileSync(target, "utf8") !== text;
}
