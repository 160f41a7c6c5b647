import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { ENTRIES, readApi } from "../../build/docs/api.js";
import { ROOT } from "../../build/paths.js";

/** What editors show of the package's declarations, asked of the language service that they ask. */
const LIB = join(ROOT, "dist/lib");
const FILE = join(ROOT, "proof/package/written.ts");
const MODULES = Object.values(ENTRIES).map((file) => file.replace(/^.*\/src\/|\.ts$/g, ""));
const IMPORTS = MODULES.map((module, i) => `import * as lib${i} from "../../dist/lib/${module}.js";`);
const OPTIONS: ts.CompilerOptions = {
  strict: true,
  types: ["node"],
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
};

function serviceOf(text: string): ts.LanguageService {
  const snapshotOf = (file: string): ts.IScriptSnapshot | undefined => {
    if (file === FILE) return ts.ScriptSnapshot.fromString(text);
    return existsSync(file) ? ts.ScriptSnapshot.fromString(readFileSync(file, "utf8")) : undefined;
  };
  return ts.createLanguageService({
    fileExists: (file) => file === FILE || ts.sys.fileExists(file),
    readFile: (file) => ts.sys.readFile(file),
    directoryExists: (folder) => ts.sys.directoryExists(folder),
    getScriptFileNames: () => [FILE],
    getScriptVersion: () => "1",
    getScriptSnapshot: snapshotOf,
    getCurrentDirectory: () => ROOT,
    getCompilationSettings: () => OPTIONS,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
  });
}

const isOwn = (symbol: ts.Symbol): boolean =>
  symbol.declarations?.some((one) => one.getSourceFile().fileName.startsWith(LIB)) ?? false;
const isPublic = (symbol: ts.Symbol): boolean =>
  symbol.declarations!.every(
    (one) => (ts.getCombinedModifierFlags(one) & ts.ModifierFlags.NonPublicAccessibilityModifier) === 0,
  );

/** Literals with every option of every parameter, each option in its place, as a user writes it. */
class Literals {
  private readonly written = new Set<ts.Type>();

  constructor(private readonly checker: ts.TypeChecker) {}

  /** Of the parameters of an exported class or function, and of its static methods. */
  of(name: string, symbol: ts.Symbol): string[] {
    const type = this.checker.getTypeOfSymbol(symbol);
    const methods = type
      .getProperties()
      .filter((one) => isOwn(one) && isPublic(one) && one.name !== "prototype");
    return [
      ...this.ofSignatures(`ConstructorParameters<typeof ${name}>`, type.getConstructSignatures()),
      ...this.ofSignatures(`Parameters<typeof ${name}>`, type.getCallSignatures()),
      ...methods.flatMap((method) =>
        this.ofSignatures(
          `Parameters<typeof ${name}.${method.name}>`,
          this.checker.getTypeOfSymbol(method).getCallSignatures(),
        ),
      ),
      ...type
        .getConstructSignatures()
        .flatMap((made) => made.getReturnType().getProperties())
        .filter((one) => isOwn(one) && isPublic(one))
        .flatMap((member) =>
          this.ofSignatures(
            `Parameters<${name}["${member.name}"]>`,
            this.checker.getTypeOfSymbol(member).getCallSignatures(),
          ),
        ),
    ];
  }

  private ofSignatures(tuple: string, signatures: readonly ts.Signature[]): string[] {
    const parameters = signatures[0]?.parameters ?? [];
    return parameters.flatMap((parameter, i) => {
      const literal = this.literal(this.checker.getTypeOfSymbol(parameter));
      const declared = parameter.valueDeclaration as ts.ParameterDeclaration;
      const type = declared.dotDotDotToken === undefined ? `${tuple}[${i}]` : tuple;
      return literal === undefined ? [] : [`const given: ${type} = ${literal};`];
    });
  }

  /** An object for each kind of it in a union: those that a field tells apart have that field. */
  private literal(type: ts.Type): string | undefined {
    const given = this.checker.getNonNullableType(type);
    if (this.written.has(given)) return undefined;
    this.written.add(given);
    if (this.checker.isArrayType(given)) {
      const item = this.literal(this.checker.getTypeArguments(given as ts.TypeReference)[0]!);
      return item && `[${item}]`;
    }
    const kinds = given.isUnion() ? given.types : [given];
    const texts = kinds.flatMap((kind) => this.object(kind) ?? []);
    return texts.length === 0
      ? undefined
      : texts.length === 1
        ? texts[0]
        : `Math.random() ? ${texts.join(" : Math.random() ? ")} : null!`;
  }

  private object(type: ts.Type): string | undefined {
    // A whole config is made by constructs.
    if (type.aliasSymbol?.name.startsWith("ProxyConfig") === true) return undefined;
    if (
      (type.flags & ts.TypeFlags.Object) === 0 ||
      ((type.symbol?.flags ?? 0) & ts.SymbolFlags.Class) !== 0 ||
      type.getCallSignatures().length > 0
    )
      return undefined;
    if (this.checker.isArrayType(type)) return this.literal(type);
    const properties = type.getProperties();
    // One of a construct is made by its class.
    if (properties.length === 0 || !properties.every(isOwn)) return undefined;
    const fields = properties.map((one) => {
      const value = this.checker.getTypeOfSymbol(one);
      const name = /^\w+$/.test(one.name) ? one.name : JSON.stringify(one.name);
      return `${name}: ${value.isStringLiteral() ? JSON.stringify(value.value) : (this.literal(value) ?? "null!")}`;
    });
    return `{ ${fields.join(", ")} }`;
  }
}

function exportsOf(program: ts.Program, module: string): ts.Symbol[] {
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(join(LIB, `${module}.d.ts`))!;
  return checker
    .getExportsOfModule(checker.getSymbolAtLocation(file)!)
    .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol));
}

const program = ts.createProgram(
  MODULES.map((module) => join(LIB, `${module}.d.ts`)),
  OPTIONS,
);

test("every option has a text at hover, wherever it is written", () => {
  const literals = new Literals(program.getTypeChecker());
  const lines = MODULES.flatMap((module, i) =>
    exportsOf(program, module)
      .filter(({ flags }) => (flags & ts.SymbolFlags.Value) !== 0)
      .flatMap((symbol) => literals.of(`lib${i}.${symbol.name}`, symbol)),
  );
  const text = [...IMPORTS, ...lines.map((line) => `{ ${line} }`)].join("\n");
  const service = serviceOf(text);
  const source = service.getProgram()!.getSourceFile(FILE)!;
  const seen: string[] = [];
  const silent: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node)) {
      const info = service.getQuickInfoAtPosition(FILE, node.name.getStart());
      const said = ts.displayPartsToString(info?.displayParts);
      seen.push(said);
      if (!info?.documentation?.length)
        silent.push(`${said} in ${text.slice(0, node.pos).split("\n").at(-1)!.slice(0, 80)}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  expect(seen.length).toBeGreaterThan(600);
  expect(silent).toEqual([]);
});

test("completions offer what docs/api/ describes, and nothing else", () => {
  const documented = new Set(readApi(ENTRIES).flatMap(({ members }) => members.map(({ name }) => name)));
  const offered = MODULES.flatMap((module) =>
    exportsOf(program, module)
      .filter(({ flags }) => (flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) !== 0)
      .flatMap((one) => program.getTypeChecker().getDeclaredTypeOfSymbol(one).getProperties())
      .filter((one) => isOwn(one) && isPublic(one))
      .map(({ name }) => name),
  );
  expect(offered.length).toBeGreaterThan(500);
  expect([...new Set(offered)].filter((name) => !documented.has(name))).toEqual([]);
});
