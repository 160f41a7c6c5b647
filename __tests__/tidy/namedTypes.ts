import { join, relative } from "node:path";
import ts from "typescript";
import { inferredParents } from "../../build/options.js";
import { ROOT } from "./modules.js";

/** A program that begins with entry points, with their types. */
export function programOf(entries: readonly string[]): ts.Program {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT);
  return ts.createProgram([...entries], { ...options, noEmit: true });
}

/**
 * Options that an interface states with a type that lacks something of what their field takes: `INTERFACE.OPTION`. `Omit` is
 * for those that take something else, so one that it leaves out, and no member states, is found too: tables of props have it.
 */
export function narrowedOptions(program: ts.Program): string[] {
  const checker = program.getTypeChecker();
  const types = program
    .getSourceFiles()
    .filter(({ fileName }) => !fileName.includes("/node_modules/"))
    .flatMap(({ statements }) => statements.filter(ts.isInterfaceDeclaration));
  return types.flatMap((one) =>
    inferredParents(one).flatMap((parent) => {
      const fields = checker.getTypeAtLocation(parent);
      const stated = one.members.map((member) => member.name?.getText());
      const [, left = ""] = /^Omit<.*,\s*([^,<>]+)>$/s.exec(parent.getText()) ?? [];
      const lost = [...left.matchAll(/"(\w+)"/g)]
        .map(([, name]) => name!)
        .filter((name) => !stated.includes(name));
      const narrowed = one.members.flatMap((member) => {
        const name = member.name?.getText() ?? "";
        const field = fields.getProperty(name);
        if (field === undefined) return [];
        const given = checker.getNonNullableType(checker.getTypeOfSymbol(field));
        const taken = checker.getTypeAtLocation(member);
        return checker.isTypeAssignableTo(given, taken) ? [] : [name];
      });
      return [...narrowed, ...lost].map((name) => `${one.name.text}.${name}`);
    }),
  );
}

/**
 * Types of this package that public signatures name and no entry point exports: users could not write them down.
 * `EXPORT.MEMBER names TYPE`.
 */
export function unexportedTypes(
  program: ts.Program,
  entries: readonly string[],
  sources = join(ROOT, "src"),
): string[] {
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
    if (isHidden(node) || isInferred(node)) return;
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

/** Types of fields of a schema, which the declarations of the package have written out. */
const isInferred = (node: ts.Node): boolean =>
  (ts.isExpressionWithTypeArguments(node) || ts.isTypeNode(node)) &&
  /^(?:(?:Pick|Omit|Partial)<\s*)*(?:In|Out)putOf<typeof /.test(node.getText());

/** Private, or for this package alone; what a class is for this package besides its members. */
function isHidden(node: ts.Node): boolean {
  if (ts.isHeritageClause(node) && node.token === ts.SyntaxKind.ImplementsKeyword) return true;
  const isPrivate =
    ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  return isPrivate === true || ts.getJSDocTags(node).some(({ tagName }) => tagName.text === "internal");
}
