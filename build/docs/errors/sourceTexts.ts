import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { formatProblem, PROBLEM_CODES, type Problem } from "../../../src/model/index.js";
import { ROOT } from "../../paths.js";

/**
 * Refuses a problem whose message or fix does not occur in the sources: no file has its code together with such a text.
 */
export function refuseInvented(made: Problem): void {
  const files = sourceFiles().filter(({ text }) => text.includes(`"${made.code}"`));
  const fits = (said: string): boolean => {
    const ownWords = said.replace(/ \(\d+: [^)]*\)$/, "");
    return files.some((file) => {
      file.texts ??= textsOf(file.text);
      return file.texts.some((text) => text.test(said) || text.test(ownWords));
    });
  };
  if (!fits(made.message)) throw new Error(`the sources never say so:\n${formatProblem(made)}`);
  if (made.fix !== PROBLEM_CODES[made.code] && !fits(made.fix))
    throw new Error(`the sources have no such fix:\n${formatProblem(made)}`);
}

interface SourceFile {
  readonly text: string;
  /** What its texts can become, with values filled in; read when it is first asked for. */
  texts?: readonly RegExp[];
}

let known: readonly SourceFile[] | undefined;

function sourceFiles(): readonly SourceFile[] {
  known ??= readdirSync(path.join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && name !== path.join("model", "problem.ts"))
    .map((name) => ({ text: readFileSync(path.join(ROOT, "src", name), "utf8") }));
  return known;
}

function textsOf(text: string): RegExp[] {
  const found: RegExp[] = [];
  const add = (parts: readonly string[]): void => {
    // A text that consists only of values could become anything.
    if (parts.join("").length >= 8)
      found.push(
        new RegExp(`^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "s"),
      );
  };
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) add([node.text]);
    if (ts.isTemplateExpression(node))
      add([node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)]);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("source.ts", text, ts.ScriptTarget.Latest));
  return found;
}
