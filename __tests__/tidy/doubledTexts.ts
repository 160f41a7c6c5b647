import ts from "typescript";
import { parsed } from "./parsed.js";

/** A sentence, and where it is. */
export interface Sentence {
  readonly words: string;
  readonly at: string;
}

/** Sentences of the docstrings of members of interfaces: `PATH: OWNER.NAME`. */
export function docSentences(path: string, text: string): Sentence[] {
  const source = parsed(text);
  return source.statements.filter(ts.isInterfaceDeclaration).flatMap((one) =>
    one.members.flatMap((member) => {
      const docs = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc);
      const at = `${path}: ${one.name.text}.${member.name?.getText(source)}`;
      return docs.flatMap(({ comment }) => sentencesOf(ts.getTextOfJSDocComment(comment) ?? "", at));
    }),
  );
}

/** Sentences of the texts of schemas, which are literals, or literals that are put together. */
export function schemaSentences(path: string, text: string): Sentence[] {
  const source = parsed(text);
  const found: Sentence[] = [];
  const visit = (node: ts.Node): void => {
    const literal = textOf(node);
    if (literal === undefined) ts.forEachChild(node, visit);
    else found.push(...sentencesOf(literal, path));
  };
  visit(source);
  return found;
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isBinaryExpression(node)) return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === undefined || right === undefined ? undefined : left + right;
}

/** Of fewer words two fields may have the same by chance. */
const WORDS_MIN = 4;

const sentencesOf = (text: string, at: string): Sentence[] =>
  text
    .replace(/\s+/g, " ")
    .split(/(?<=[^ ]\.) (?=[A-Z`])/)
    .filter((sentence) => sentence.endsWith(".") && sentence.split(" ").length >= WORDS_MIN)
    .map((words) => ({ words, at }));
