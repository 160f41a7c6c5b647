import ts from "typescript";

const trees = new Map<string, ts.SourceFile>();

/** The syntax tree of a text, whose nodes know their parents. Several tests look at each file: it is parsed once. */
export function parsed(text: string): ts.SourceFile {
  const tree = trees.get(text) ?? ts.createSourceFile("code.ts", text, ts.ScriptTarget.Latest, true);
  trees.set(text, tree);
  return tree;
}
