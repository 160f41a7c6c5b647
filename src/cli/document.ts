import { readFile } from "node:fs/promises";
import path from "node:path";
import { parseConfigText, problem, type ProxyConfig, type Result } from "../model/index.js";

/** Where a host keeps its config. */
export const DEFAULT_FILE = "/etc/portico/portico.json";

/** Which config a command works on, and below which folder the host's files lie. */
export interface Source {
  readonly file: string;
  readonly root?: string;
}

/** A file that is named is taken as it is named; the default one is looked up below the root. */
export function sourceOf(file: string | undefined, root: string | undefined): Source {
  const below = root === undefined ? {} : { root: path.resolve(root) };
  return { file: file ?? path.join(below.root ?? "/", DEFAULT_FILE), ...below };
}

/** Reads and checks the document alone; none of the files it names is touched. */
export async function readDocument(file: string): Promise<Result<ProxyConfig>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const fix =
      code === "ENOENT"
        ? "Name the config: `portico check FILE`, or give --root DIR if it lies below a folder."
        : undefined;
    const why = code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
    return {
      ok: false,
      problems: [problem("files.unreadable", file, why, fix === undefined ? {} : { fix })],
    };
  }
  return parseConfigText(text);
}
