import ts from "typescript";
import { fieldOf } from "../../build/options.js";
import { parsed } from "./parsed.js";

/** A sentence, and where it is. */
export interface Sentence {
  readonly words: string;
  readonly at: string;
}

/** Sentences of the docstrings of members of interfaces, and of their `@remarks`: `PATH: OWNER.NAME`. */
export function docSentences(path: string, text: string): Sentence[] {
  return optionsIn(text).flatMap(({ owner, name, own, remarks }) =>
    [own, remarks].flatMap((words) => sentencesOf(words, `${path}: ${owner}.${name}`)),
  );
}

interface Option {
  readonly owner: string;
  readonly name: string;
  /** The docstring without its tags. */
  readonly own: string;
  readonly remarks: string;
}

function optionsIn(text: string): Option[] {
  const source = parsed(text);
  const wordsOf = (parts: readonly { readonly comment?: ts.JSDoc["comment"] }[]): string =>
    parts.map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? "").join(" ");
  return source.statements.filter(ts.isInterfaceDeclaration).flatMap((one) =>
    one.members.map((member) => ({
      owner: one.name.text,
      name: member.name?.getText(source) ?? "",
      own: wordsOf(ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc)).trim(),
      remarks: wordsOf(ts.getJSDocTags(member).filter(({ tagName }) => tagName.text === "remarks")),
    })),
  );
}

/** Options with a text of their own in place of that of the field that they become. */
export const ownTexts = (text: string): string[] =>
  optionsIn(text)
    .filter(({ owner, name, own }) => own !== "" && fieldOf(owner, name) !== undefined)
    .map(({ owner, name }) => `${owner}.${name}`);

/**
 * Two sentences with so much of their words in common, of all that either has, say the same. Before options had the texts
 * of their fields, 107 of the 132 that said them again had a sentence above it; what is left is below 0.31.
 */
const SAME_MIN = 0.4;

/** Sentences about options that are nearly in the texts of the fields that the options become. */
export function nearDoubles(path: string, text: string): Sentence[] {
  return optionsIn(text).flatMap(({ owner, name, own, remarks }) => {
    const said = sentencesOf(fieldOf(owner, name)?.description ?? "", "", 1);
    return [own, remarks]
      .flatMap((words) => sentencesOf(words, `${path}: ${owner}.${name}`, 1))
      .filter(({ words }) => said.some((field) => alike(words, field.words) >= SAME_MIN));
  });
}

/** Share of the words of two sentences that is in both. */
function alike(one: string, other: string): number {
  const [a, b] = [one, other].map((text) => new Set(text.toLowerCase().match(/[a-z0-9]+/g)));
  const common = [...a!].filter((word) => b!.has(word)).length;
  return common / (a!.size + b!.size - common);
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

const sentencesOf = (text: string, at: string, wordsMin = WORDS_MIN): Sentence[] =>
  text
    .replace(/\s+/g, " ")
    .split(/(?<=[^ ]\.) (?=[A-Z`])/)
    .filter((sentence) => sentence.endsWith(".") && sentence.split(" ").length >= wordsMin)
    .map((words) => ({ words, at }));
