import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { ROOT } from "./modules.js";
import { parsed } from "./parsed.js";

export const FILE_LINES_MAX = 600;
export const FUNCTION_LINES_MAX = 70;

export const linesOf = (text: string): number => text.split("\n").length - 1;

/** What is longer than it may be. @param longer files that may, with the reason */
export function tooLong(path: string, longer: Readonly<Record<string, string>>): string[] {
  const text = readFileSync(join(ROOT, path), "utf8");
  const lines = linesOf(text);
  const file = lines > FILE_LINES_MAX && !(path in longer) ? [`${path}: ${lines} lines`] : [];
  return [...file, ...longFunctions(path, text)];
}

export function longFunctions(path: string, text: string): string[] {
  const source = parsed(text);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const line = (at: number): number => source.getLineAndCharacterOfPosition(at).line;
      const lines = line(node.end) - line(node.getStart(source)) + 1;
      if (lines > FUNCTION_LINES_MAX)
        found.push(`${path}:${line(node.getStart(source)) + 1}: ${lines} lines`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}
