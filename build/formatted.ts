import { readFileSync } from "node:fs";
import path from "node:path";
import { format, type FormatConfig } from "oxfmt";
import { ROOT } from "./paths.js";

const OPTIONS = JSON.parse(readFileSync(path.join(ROOT, ".oxfmtrc.json"), "utf8")) as FormatConfig;

/** What a written file is after `npm run format`. */
export async function formattedText(file: string, written: string): Promise<string> {
  const { code, errors } = await format(file, written, OPTIONS);
  if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join(", ")}`);
  return code;
}
