import path from "node:path";
import ts from "typescript";
import { ROOT } from "../paths.js";
import { type Doc, fieldDoc, interfaceDoc, isOptional, optionsOf, typeOfMember } from "../options.js";

/** What users import, read from the sources: every export, its members, and what their docstrings say. */

export interface ApiExport {
  readonly name: string;
  /** The source file. */
  readonly module: string;
  /** Where users import it from. */
  readonly from: string;
  readonly declaration: ts.Declaration;
  readonly doc: Doc;
  /** How it is made, if it is a class that users make. */
  readonly construction?: string;
  readonly members: readonly ApiMember[];
}

export interface ApiMember {
  readonly name: string;
  /** Its declaration as users see it, without `readonly`, on one line. */
  readonly signature: string;
  readonly doc: Doc;
}

/** Entry points by the names that users import. */
export const ENTRIES: Readonly<Record<string, string>> = {
  "cdktf-portico": path.join(ROOT, "src/index.ts"),
  "cdktf-portico/kubernetes": path.join(ROOT, "src/kubernetes/index.ts"),
  "cdktf-portico/testing": path.join(ROOT, "src/testing/index.ts"),
  "cdktf-portico/runtime": path.join(ROOT, "src/runtime/index.ts"),
};

export function readApi(entries: Readonly<Record<string, string>>): ApiExport[] {
  const { config } = ts.readConfigFile(path.join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, ROOT);
  // Nothing is checked here: without what only a check needs, it takes a quarter of the time.
  const host = ts.createCompilerHost(options);
  host.resolveModuleNameLiterals = (literals, from, _redirected, _options, file) =>
    literals.map((literal) =>
      literal.text.startsWith(".") && isRead(literal.parent, file)
        ? ts.resolveModuleName(literal.text, from, options, host)
        : { resolvedModule: undefined },
    );
  const program = ts.createProgram(Object.values(entries), { ...options, noLib: true, types: [] }, host);
  const checker = program.getTypeChecker();
  return Object.entries(entries).flatMap(([from, entry]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(entry)!)!;
    return checker
      .getExportsOfModule(module)
      .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
      .filter((symbol) => !isInternal(symbol))
      .map((symbol) => exportOf(symbol, from, checker));
  });
}

/** A docstring is that of an export, or of what it extends. */
function isRead(statement: ts.Node, { text }: ts.SourceFile): boolean {
  const imported = ts.isImportDeclaration(statement) && statement.importClause?.namedBindings;
  return (
    !imported ||
    !ts.isNamedImports(imported) ||
    imported.elements.some(({ name }) =>
      new RegExp(`\\b(?:extends|implements)\\b[^{]*\\b${name.text}\\b`).test(text),
    )
  );
}

function exportOf(symbol: ts.Symbol, from: string, checker: ts.TypeChecker): ApiExport {
  const declaration = symbol.declarations![0]!;
  return {
    name: symbol.name,
    module: declaration.getSourceFile().fileName,
    from,
    declaration,
    doc: docOfExport(symbol, declaration, checker),
    construction: constructionOf(symbol.name, declaration),
    members: ts.isInterfaceDeclaration(declaration)
      ? optionsOf(declaration).flatMap((one) =>
          one.member ? memberOf(symbol.name, one.member, checker) : one,
        )
      : membersOf(declaration).flatMap((member) => memberOf(symbol.name, member, checker)),
  };
}

/** The docstring of an export; an interface without one has the text of its schema. */
function docOfExport(symbol: ts.Symbol, declaration: ts.Declaration, checker: ts.TypeChecker): Doc {
  const text = ts.isInterfaceDeclaration(declaration) ? interfaceDoc(declaration) : undefined;
  return { ...docOf(symbol, checker), ...(text === undefined ? {} : { text }) };
}

function constructionOf(name: string, declaration: ts.Declaration): string | undefined {
  const maker = membersOf(declaration).find((member) => ts.isConstructorDeclaration(member));
  return maker === undefined ||
    isHidden(maker) ||
    ts.getJSDocTags(maker).some(({ tagName }) => tagName.text === "internal")
    ? undefined
    : signatureOf(maker).replace(/^constructor/, `new ${name}`);
}

function isHidden(member: ts.Declaration): boolean {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (ts.getCombinedModifierFlags(member) & hidden) !== 0;
}

function membersOf(declaration: ts.Declaration): readonly (ts.ClassElement | ts.TypeElement)[] {
  if (ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration))
    return declaration.members;
  return [];
}

/** A member of an interface; one without a docstring has the text of the field that it becomes. */
function memberOf(
  owner: string,
  member: ts.ClassElement | ts.TypeElement,
  checker: ts.TypeChecker,
): ApiMember[] {
  if (member.name === undefined || isHidden(member)) return [];
  const symbol = checker.getSymbolAtLocation(member.name)!;
  if (isInternal(symbol)) return [];
  const { name } = symbol;
  const own = docOf(symbol, checker);
  const doc = fieldDoc(owner, member) ?? own;
  return [{ name, signature: signatureOf(member), doc }];
}

/** The declaration without its body and without words that say nothing to a user. */
export function signatureOf(declaration: ts.Declaration): string {
  const inferred = ts.isPropertySignature(declaration) ? typeOfMember(declaration) : undefined;
  if (ts.isPropertySignature(declaration) && inferred !== undefined)
    return `${declaration.name!.getText()}${isOptional(declaration) ? "?" : ""}: ${inferred}`;
  const { body } = declaration as { body?: ts.Node };
  const { initializer } = declaration as { initializer?: ts.Node };
  const end = body ?? (ts.isVariableDeclaration(declaration) ? undefined : initializer);
  const file = declaration.getSourceFile();
  return file.text
    .slice(declaration.getStart(file), end?.getStart(file) ?? declaration.end)
    .replace(/\/\*\*.*?\*\/|\/\/[^\n]*/gs, "")
    .replace(/\s+/g, " ")
    .replace(/^((?:export|declare|readonly|override|abstract) )+/, "")
    .replace(/^static readonly /, "static ")
    .replace(/[;={ ]+$/, "");
}

function docOf(symbol: ts.Symbol, checker: ts.TypeChecker): Doc {
  const tags = symbol.getJsDocTags(checker);
  const textOf = (parts: readonly ts.SymbolDisplayPart[] | undefined): string =>
    ts
      .displayPartsToString([...(parts ?? [])])
      .replace(/\{@link (\w+)\s*\}/g, "`$1`")
      .trim();
  const text = textOf(symbol.getDocumentationComment(checker));
  const byDefault = tags.find(({ name }) => name === "default");
  return {
    text,
    byDefault: byDefault && textOf(byDefault.text),
    params: tags
      .filter(({ name }) => name === "param")
      .map(({ text: parts }) => {
        const [name = "", ...words] = textOf(parts).split(/\s+/);
        return { name, text: words.join(" ") };
      }),
  };
}

function isInternal(symbol: ts.Symbol): boolean {
  return symbol.getJsDocTags().some(({ name }) => name === "internal");
}
