import ts from "typescript";
import { descriptionOf, fieldOf } from "../../build/options.js";
import { parsed } from "./parsed.js";

/** A sentence, and where it is. */
export interface Sentence {
  readonly words: string;
  readonly at: string;
}

/** Sentences of the docstrings of members of interfaces, and of their `@remarks`: `PATH: OWNER.NAME`. */
export function docSentences(path: string, text: string): Sentence[] {
  return optionsIn(text).flatMap((option) =>
    [option.own, option.remarks].flatMap((words) => sentencesOf(words, `${path}: ${nameOf(option)}`)),
  );
}

/** The same of exported interfaces and classes themselves and their members, those of a module's insides left out. */
export function publicSentences(path: string, text: string): Sentence[] {
  const exported = parsed(text).statements.filter(
    (one): one is ts.InterfaceDeclaration | ts.ClassDeclaration | ts.TypeAliasDeclaration =>
      (ts.isInterfaceDeclaration(one) || ts.isClassDeclaration(one) || ts.isTypeAliasDeclaration(one)) &&
      one.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true &&
      !isInternal(one),
  );
  return exported.flatMap((one) => {
    const owner = one.name!.text;
    const members = ts.isTypeAliasDeclaration(one) ? [] : one.members;
    const all = [one, ...members].filter((part) => !isInternal(part));
    return all.flatMap((part) => {
      const name = part === one ? "" : `.${part.name?.getText() ?? "constructor"}`;
      const tags = ts.getJSDocTags(part).filter(({ tagName }) => tagName.text === "remarks");
      return [...ts.getJSDocCommentsAndTags(part).filter(ts.isJSDoc), ...tags].flatMap(({ comment }) =>
        sentencesOf(ts.getTextOfJSDocComment(comment) ?? "", `${path}: ${owner}${name}`, PUBLIC_WORDS_MIN),
      );
    });
  });
}

const isInternal = (part: ts.Node): boolean =>
  ts.getJSDocTags(part).some(({ tagName }) => tagName.text === "internal");

interface Option {
  readonly owner: string;
  /** Undefined for the interface itself. */
  readonly name?: string;
  /** The docstring without its tags. */
  readonly own: string;
  readonly remarks: string;
}

function optionsIn(text: string): Option[] {
  const source = parsed(text);
  const wordsOf = (parts: readonly { readonly comment?: ts.JSDoc["comment"] }[]): string =>
    parts.map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? "").join(" ");
  return source.statements.filter(ts.isInterfaceDeclaration).flatMap((one) =>
    [one, ...one.members].map((part) => ({
      owner: one.name.text,
      ...(part === one ? {} : { name: part.name?.getText(source) ?? "" }),
      own: wordsOf(ts.getJSDocCommentsAndTags(part).filter(ts.isJSDoc)).trim(),
      remarks: wordsOf(ts.getJSDocTags(part).filter(({ tagName }) => tagName.text === "remarks")),
    })),
  );
}

const nameOf = ({ owner, name }: Option): string => (name === undefined ? owner : `${owner}.${name}`);

/** What the schema says of an option, or of an interface itself. */
const saidOf = ({ owner, name }: Option): string | undefined =>
  name === undefined ? descriptionOf(owner) : fieldOf(owner, name)?.description;

/** Options with a text of their own in place of that of the field that they become. */
export const ownTexts = (text: string): string[] =>
  optionsIn(text)
    .filter(({ owner, name, own }) => name !== undefined && own !== "" && fieldOf(owner, name) !== undefined)
    .map(({ owner, name }) => `${owner}.${name}`);

/**
 * Two sentences with so much of their words in common, of all that either has, say the same. Before options had the texts
 * of their fields, 107 of the 132 that said them again had a sentence above it; what is left is below 0.31.
 */
const SAME_MIN = 0.4;

/** Sentences about options that are nearly in the texts of the fields that the options become. */
export function nearDoubles(path: string, text: string): Sentence[] {
  return optionsIn(text).flatMap((option) => {
    const { own, remarks } = option;
    const said = sentencesOf(saidOf(option) ?? "", "", 1);
    return [own, remarks]
      .flatMap((words) => sentencesOf(words, `${path}: ${nameOf(option)}`, 1))
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
const PUBLIC_WORDS_MIN = 5;

const sentencesOf = (text: string, at: string, wordsMin = WORDS_MIN): Sentence[] =>
  text
    .replace(/\s+/g, " ")
    .split(/(?<=[^ ]\.) (?=[A-Z`])/)
    .filter((sentence) => sentence.endsWith(".") && sentence.split(" ").length >= wordsMin)
    .map((words) => ({ words, at }));
