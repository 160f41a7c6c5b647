import { join, relative } from "node:path";
import ts from "typescript";
import { ROOT } from "./modules.js";

/**
 * Types of this package that public signatures name and no entry point exports: users could not write them down.
 * `EXPORT.MEMBER names TYPE`.
 */
export function unexportedTypes(entries: readonly string[], sources = join(ROOT, "src")): string[] {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT);
  const program = ts.createProgram([...entries], { ...options, noEmit: true });
  const checker = program.getTypeChecker();
  const declared = (symbol: ts.Symbol): ts.Symbol =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const exported = entries.flatMap((entry) =>
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)!)!).map(declared),
  );
  const known = new Set(exported);
  const isOwn = (symbol: ts.Symbol): boolean =>
    (symbol.declarations ?? []).some(({ parent }) => {
      const { fileName } = parent.getSourceFile();
      return ts.isSourceFile(parent) && !relative(sources, fileName).startsWith("..");
    });
  const found = new Set<string>();
  const visit = (node: ts.Node, at: string): void => {
    if (isHidden(node)) return;
    const name = ts.isTypeReferenceNode(node)
      ? node.typeName
      : ts.isExpressionWithTypeArguments(node)
        ? node.expression
        : undefined;
    const symbol = name === undefined ? undefined : checker.getSymbolAtLocation(name);
    if (symbol !== undefined) {
      const type = declared(symbol);
      if (isOwn(type) && !known.has(type)) found.add(`${at} names ${type.name}`);
    }
    const named = (node as { name?: ts.Node }).name;
    const place =
      ts.isClassElement(node) || ts.isTypeElement(node) ? `${at}.${named?.getText() ?? "new"}` : at;
    ts.forEachChild(node, (child) => {
      // What a function does, and how a value is made, is not part of the signature.
      if (
        child !== (node as { body?: ts.Node }).body &&
        child !== (node as { initializer?: ts.Node }).initializer
      ) {
        visit(child, place);
      }
    });
  };
  for (const symbol of exported) {
    for (const declaration of symbol.declarations ?? []) visit(declaration, symbol.name);
  }
  return [...found].sort();
}

/** Private, or for this package alone; what a class is for this package besides its members. */
function isHidden(node: ts.Node): boolean {
  if (ts.isHeritageClause(node) && node.token === ts.SyntaxKind.ImplementsKeyword) return true;
  const isPrivate =
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  return isPrivate === true || ts.getJSDocTags(node).some(({ tagName }) => tagName.text === "internal");
}
