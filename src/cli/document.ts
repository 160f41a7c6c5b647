import path from "node:path";
import { parseConfigText } from "../model/config/parse.js";
import type { ProxyConfig, Result } from "../model/serving.js";
import { DEFAULT_HOST_PATHS } from "../render/hostPaths.js";
import { readParsed, STANDARD_INPUT } from "../runtime/load/files.js";

/** The path at which a host keeps its config. */
export const DEFAULT_FILE = DEFAULT_HOST_PATHS.config;

/** The config a command works on, and the folder that the host's files are in. */
export interface DocumentSource {
  readonly file: string;
  readonly root?: string;
}

/** A file that is given is used as it is, `-` is standard input; the default one is looked up below the root. */
export function sourceOf(file: string | undefined, root: string | undefined): DocumentSource {
  const below = root === undefined ? {} : { root: path.resolve(root) };
  if (file === "-") return { file: STANDARD_INPUT, ...below };
  return { file: file ?? path.join(below.root ?? "/", DEFAULT_FILE), ...below };
}

/** Reads and checks the document alone; none of the files it names is touched. */
export function readDocument(file: string): Promise<Result<ProxyConfig>> {
  return readParsed(file, parseConfigText);
}
