import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { configJsonSchema } from "../src/model/index.js";
import { actionFields } from "../src/model/actions/table.js";
import { configSchema } from "../src/model/config/config.js";
import { nodesAt, type SchemaNode, variants } from "../src/model/config/schema.js";
import { deploymentSchema } from "../src/model/deployment.js";
import { expectation } from "../src/model/host/expect.js";
import { fieldDoc, inferredParents, interfaceDoc, optionsOf, parentsOf, typeOfMember } from "./options.js";
import { ROOT } from "./paths.js";

/**
 * The types of the documents are inferred from their schemas, so their declarations name the schema library, and with
 * `skipLibCheck: false` a user's compiler checks that library's types by the user's options. Here they are written out:
 * what the package declares needs nothing but TypeScript, Node, cdktf and constructs. Interfaces of options, which extend
 * such types, get their fields as members. All get their descriptions from the schema, so that editors show them.
 */

/** Modules whose exported types are written out, beside all that name the schema library. */
const DOCUMENTS = [
  "model/actions/table",
  "model/config/config",
  "model/deployment",
  "runtime/status/overview",
];
/** Modules that only take schemas, which no user has. */
const SCHEMA_USERS = ["model/config/parse", "model/config/schema"];
const NAMES_SCHEMAS = 'from "zod";';
/** What an interface of options extends. */
const INFERRED = "InputOf<typeof ";

/** Types that users import, by the schema that describes their fields. */
const DESCRIBED: Readonly<Record<string, readonly SchemaNode[]>> = {
  ProxyConfig: [configJsonSchema()],
  ProxyConfigInput: [configJsonSchema()],
  UpstreamInput: nodesAt(configSchema, ["upstreams", 0]),
  RouteInput: nodesAt(configSchema, ["virtualServers", 0, "routes", 0]),
  ActionInput: nodesAt(actionFields, []),
  ExpectationInput: nodesAt(expectation, []),
  DeploymentInput: nodesAt(deploymentSchema, []),
  DeploymentRow: nodesAt(deploymentSchema, ["rows", 0]),
  SettingsFile: nodesAt(deploymentSchema, ["settings", "files", 0]),
  Tree: nodesAt(deploymentSchema, ["trees", 0]),
};

/** Whether types of a module are inferred from schemas, and not only interfaces of options. */
const isDocument = ({ fileName, text }: Pick<ts.SourceFile, "fileName" | "text">): boolean =>
  text.includes(NAMES_SCHEMAS) || DOCUMENTS.some((name) => fileName.endsWith(`/${name}.d.ts`));

export function writeOutDeclarations(lib: string): void {
  const files = readdirSync(lib, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".d.ts") && !SCHEMA_USERS.includes(name.slice(0, -".d.ts".length)))
    .map((name) => path.join(lib, name))
    .filter((file) => {
      const text = readFileSync(file, "utf8");
      return isDocument({ fileName: file, text }) || text.includes(INFERRED);
    });
  const program = ts.createProgram(files, { module: ts.ModuleKind.Node16, strict: true, types: [] });
  const texts = files.map((file) => written(program, program.getSourceFile(file)!));
  files.forEach((file, i) => writeFileSync(file, texts[i]!));
  for (const name of SCHEMA_USERS) {
    const file = path.join(lib, `${name}.d.ts`);
    const text = readFileSync(file, "utf8");
    writeFileSync(
      file,
      text.replace(/^import .* from "zod";\n/m, "").replace(/\bz\.ZodType(?:<\w+>)?/g, "unknown"),
    );
  }
}

/** Gives options whose docstring has no text that of the field that they become, for editors. */
export function writeFieldTexts(lib: string): void {
  for (const name of readdirSync(lib, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".d.ts")) continue;
    const file = path.join(lib, name);
    const text = readFileSync(file, "utf8");
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    const written = source.statements.filter(ts.isInterfaceDeclaration).flatMap((one) =>
      one.members.flatMap((member) => {
        const doc = fieldDoc(one.name.text, member);
        if (doc === undefined) return [];
        const { text: words, allowed, byDefault } = doc;
        const lines = [words, allowed && `Allowed: ${allowed}.`, byDefault && `@default ${byDefault}`];
        const comment = lines.filter(Boolean).map((line) => `     * ${line}\n`);
        const [from, to] = [member.getStart(source, true), member.getStart(source)];
        return [{ from, to, comment: `/**\n${comment.join("")}     */\n    ` }];
      }),
    );
    if (written.length === 0) continue;
    const last = (parts: string, { from, to, comment }: (typeof written)[number]): string =>
      parts.slice(0, from) + comment + parts.slice(to);
    writeFileSync(file, written.reverse().reduce(last, text));
  }
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** Declarations of the entry points, in the library. */
export function entryPoints(): string[] {
  const { exports: entries } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as Manifest;
  return Object.values(entries).flatMap((entry) =>
    typeof entry === "string" ? [] : [path.relative("dist/lib", entry.types)],
  );
}

/** Removes declarations that no entry point leads to: no compiler of a user reads them. */
export function withoutUnreachable(lib: string): void {
  const reached = new Set<string>();
  const reach = (file: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const { fileName } of ts.preProcessFile(readFileSync(file, "utf8")).importedFiles)
      if (fileName.startsWith("."))
        reach(path.join(path.dirname(file), fileName.replace(/(?:\.js)?$/, ".d.ts")));
  };
  for (const entry of entryPoints()) reach(path.join(lib, entry));
  for (const name of readdirSync(lib, { recursive: true, encoding: "utf8" })) {
    const file = path.join(lib, name);
    if (name.endsWith(".d.ts") && !reached.has(file)) rmSync(file);
  }
}

/** The module's declarations with their types in full; what is made of a schema alone is left out. */
function written(program: ts.Program, file: ts.SourceFile): string {
  const checker = program.getTypeChecker();
  const body = file.statements.flatMap((statement) => writtenStatement(checker, file, statement)).join("\n");
  // Names that only a type that is written out named: of schemas, and the type that takes them.
  const schemas = [
    "InputOf",
    "OutputOf",
    ...[...file.text.matchAll(/\b(?:In|Out)putOf<typeof (\w+)>/g)].map(([, name]) => name!),
  ];
  const used = file.statements
    .filter((statement) => ts.isImportDeclaration(statement))
    .map((statement) => statement.getText(file))
    .filter((text) => !text.includes(NAMES_SCHEMAS))
    .filter((text) => names(text).some((name) => body.includes(name) && !schemas.includes(name)))
    .map((text) => withoutNames(text, schemas));
  return `${[...used, body, "export {};"].join("\n")}\n`;
}

function writtenStatement(checker: ts.TypeChecker, file: ts.SourceFile, statement: ts.Statement): string[] {
  if (ts.isImportDeclaration(statement) || statement.getText(file) === "export {};") return [];
  if (ts.isTypeAliasDeclaration(statement) && statement.typeParameters === undefined && isDocument(file)) {
    const symbol = checker.getSymbolAtLocation(statement.name)!;
    const docs = ts.displayPartsToString(symbol.getDocumentationComment(checker));
    const comment = docs === "" ? "" : `/** ${docs.replaceAll("\n", "\n * ")} */\n`;
    const nodes = DESCRIBED[symbol.name] ?? [];
    const scope = statement.modifiers?.map((one) => `${one.getText(file)} `).join("") ?? "";
    return [
      `${comment}${scope}type ${symbol.name} = ${typeText(checker, checker.getDeclaredTypeOfSymbol(symbol), nodes)};`,
    ];
  }
  if (ts.isInterfaceDeclaration(statement) && statement.getText(file).includes(INFERRED))
    return [writtenInterface(file, statement)];
  const text = statement.getFullText(file).trim();
  return /\bz\./.test(text) ? [] : [text];
}

/** The interface with the fields that it has from schemas among its members. */
function writtenInterface(file: ts.SourceFile, statement: ts.InterfaceDeclaration): string {
  const schemas = inferredParents(statement);
  const parents = parentsOf(statement).filter((parent) => !schemas.includes(parent));
  const above = parents.length === 0 ? "" : ` extends ${parents.map((one) => one.getText(file)).join(", ")}`;
  const types = statement.typeParameters?.map((one) => one.getText(file)).join(", ");
  const head = `${statement.name.text}${types === undefined ? "" : `<${types}>`}${above}`;
  const members = optionsOf(statement).map((option) => {
    if (option.member === undefined) return `    readonly ${option.signature};`;
    const type = typeOfMember(option.member);
    const docs = option.member.getFullText(file).trimEnd().replace(/^\n/, "");
    return type === undefined ? docs : docs.replace(/(?<=: )InputOf<.*(?=;$)/, type);
  });
  const stated = file.text.slice(statement.getFullStart(), statement.getStart(file)).trim();
  const inferred = interfaceDoc(statement);
  const docs = inferred === undefined ? stated : `/** ${inferred} */`;
  return `${docs}\nexport interface ${head} {\n${members.join("\n")}\n}`;
}

const withoutNames = (importText: string, gone: readonly string[]): string =>
  importText.replace(/\{[^}]*\}/, (list) => {
    const kept = list
      .slice(1, -1)
      .split(",")
      .filter((one) => !gone.includes(one.replace(/^\s*type\s+/, "").trim()));
    return `{${kept.join(",")}}`;
  });

const names = (importText: string): string[] =>
  /\{([^}]*)\}/
    .exec(importText)?.[1]
    ?.split(",")
    .map((name) => name.replace(/^\s*type\s+/, "").trim())
    .filter(Boolean) ?? [];

/**
 * A type with no names but those of the language.
 *
 * @param described what the schema says about it; empty for a type without hover text
 */
function typeText(
  checker: ts.TypeChecker,
  type: ts.Type,
  described: readonly SchemaNode[],
  indent = "",
): string {
  const nodes = variants(described);
  if (type.isUnion()) {
    // `true | false` is one word, and `undefined` of an optional field is said by its question mark.
    const parts = type.types.map((part) => typeText(checker, part, nodes, indent));
    const words = parts.includes("true") && parts.includes("false") ? ["boolean"] : [];
    const rest = parts.filter((part) => words.length === 0 || (part !== "true" && part !== "false"));
    return [...new Set([...rest, ...words])].join(" | ");
  }
  if (checker.isArrayType(type)) {
    const [item] = checker.getTypeArguments(type as ts.TypeReference);
    const items = nodes.flatMap((node) => node.items ?? []);
    const text = typeText(checker, item!, items, indent);
    const list = text.includes(" | ") ? `(${text})[]` : `${text}[]`;
    return (type.symbol.name === "ReadonlyArray" ? "readonly " : "") + list;
  }
  if ((type.flags & ts.TypeFlags.Object) === 0) return checker.typeToString(type);
  const inner = `${indent}  `;
  const kind = kindOf(checker, type);
  const own = nodes.filter(({ properties }) => (properties?.type?.const ?? kind) === kind);
  const fields = type.getProperties().map((property) => {
    const optional = (property.flags & ts.SymbolFlags.Optional) !== 0;
    const of = checker.getTypeOfSymbol(property);
    const fields = own.flatMap(({ properties }) => properties?.[property.name] ?? []);
    const text = typeText(checker, optional ? checker.getNonNullableType(of) : of, fields, inner);
    const words = fields[0]?.description;
    const comment = words === undefined ? "" : `${inner}/** ${words} */\n`;
    const name = /^[$\w]+$/.test(property.name) ? property.name : JSON.stringify(property.name);
    return `${comment}${inner}readonly ${name}${optional ? "?: " : ": "}${text}${optional ? " | undefined" : ""};\n`;
  });
  // The fields of an object whose names the author chooses.
  const each = own.flatMap(({ additionalProperties: one }) => (typeof one === "object" ? [one] : []));
  const indexes = checker
    .getIndexInfosOfType(type)
    .map(
      ({ keyType, type: of }) =>
        `${inner}readonly [name: ${checker.typeToString(keyType)}]: ${typeText(checker, of, each, inner)};\n`,
    );
  return fields.length + indexes.length === 0 ? "{}" : `{\n${fields.join("")}${indexes.join("")}${indent}}`;
}

/** The value of the field `type` by which kinds of objects differ; undefined for any other object. */
function kindOf(checker: ts.TypeChecker, type: ts.Type): unknown {
  const field = type.getProperty("type");
  const value = field && checker.getTypeOfSymbol(field);
  return value?.isStringLiteral() === true ? value.value : undefined;
}
