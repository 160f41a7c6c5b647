import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import ts from "typescript";
import type * as z from "zod";
import { nodesAt, type SchemaNode, variants } from "../src/model/config/schema.js";
import { ROOT } from "./paths.js";

/**
 * Options that become fields of a document. Their interfaces name the schema that they are inferred from:
 * `extends InputOf<typeof limits>`, with `Pick`, `Omit` or `Partial` around. Here the same is read from the source, so that
 * `docs/api/` and the declarations of the package have every option with its type, and with the text of its field.
 *
 * A member that an interface states itself has the text of its field too, unless its docstring has one. The docstring may
 * have tags: `@remarks` is what the option means beside its field, and `@default` what the construct fills in.
 */

/** A docstring. */
export interface Doc {
  readonly text: string;
  /** What the value may be, where the schema says it. */
  readonly allowed?: string;
  readonly byDefault?: string;
  readonly params: readonly { readonly name: string; readonly text: string }[];
}

/** An option of an interface: a member that it states, or a field that it has from a schema. */
export type Option = { readonly name: string } & (
  | { readonly member: ts.TypeElement }
  | { readonly member?: undefined; readonly signature: string; readonly doc: Doc }
);

interface Field {
  readonly node: SchemaNode;
  readonly optional: boolean;
  /** Whether the interface has it from the schema; otherwise it is one that `Omit` names. */
  readonly inherited: boolean;
}
type Fields = ReadonlyMap<string, Field>;

/** The field that an option of an interface becomes. */
export const fieldOf = (owner: string, name: string): SchemaNode | undefined =>
  interfaces().get(owner)?.fields.get(name)?.node;

/** The options of an interface: those that it states in their order, and the others where their schema has them. */
export function optionsOf(declaration: ts.InterfaceDeclaration): Option[] {
  const owner = declaration.name.text;
  const stated = declaration.members.map((member) => ({ name: member.name?.getText() ?? "", member }));
  if (inferredParents(declaration).length === 0) return stated;
  const fields = [...interfaces().get(owner)!.fields];
  const order = fields.map(([name]) => name);
  const options: Option[] = [...stated];
  for (const [i, [name, field]] of fields.entries()) {
    if (!field.inherited || options.some((one) => one.name === name)) continue;
    const before = options.findLastIndex((one) => order.slice(0, i).includes(one.name));
    const after = options.findIndex((one) => order.slice(i).includes(one.name));
    const signature = `${name}${field.optional ? "?" : ""}: ${typeOf(field.node, `${owner}.${name}`)}`;
    const option = { name, signature, doc: docOfField(field.node, field.optional) };
    options.splice(before >= 0 ? before + 1 : after >= 0 ? after : options.length, 0, option);
  }
  return options;
}

/** The type of a member that is that of a field: `InputOf<typeof route>["path"]`. */
export function typeOfMember(member: ts.TypeElement): string | undefined {
  if (!ts.isInterfaceDeclaration(member.parent) || !member.getText().includes(": InputOf<")) return undefined;
  const [owner, name] = [member.parent.name.text, member.name!.getText()];
  return typeOf(fieldOf(owner, name)!, `${owner}.${name}`);
}

/** What the schema says of an interface that takes it whole, and has no docstring of its own. */
export const interfaceDoc = (declaration: ts.InterfaceDeclaration): string | undefined =>
  hasText(declaration) ? undefined : descriptionOf(declaration.name.text);

/** What the schema that an interface takes whole says of itself. */
export const descriptionOf = (owner: string): string | undefined => interfaces().get(owner)?.description;

/** The types that an interface extends: those of schemas, and all of them. */
export const inferredParents = (declaration: ts.InterfaceDeclaration): ts.ExpressionWithTypeArguments[] =>
  parentsOf(declaration).filter((parent) => /\bInputOf</.test(parent.getText()));
export const parentsOf = (declaration: ts.InterfaceDeclaration): readonly ts.ExpressionWithTypeArguments[] =>
  declaration.heritageClauses?.flatMap(({ types }) => [...types]) ?? [];

/** What the schema says of an option without a text of its own, with what it may be, its default, and its remarks. */
export function fieldDoc(owner: string, option: ts.ClassElement | ts.TypeElement): Doc | undefined {
  const field = fieldOf(owner, option.name?.getText() ?? "");
  if (field?.description === undefined || hasText(option)) return undefined;
  const doc = docOfField(field, isOptional(option));
  const remarks = tagText(option, "remarks");
  const byDefault = tagText(option, "default") ?? doc.byDefault;
  return {
    ...doc,
    text: [doc.text, ...(remarks === undefined ? [] : [remarks])].join(" "),
    ...(byDefault === undefined ? {} : { byDefault }),
  };
}

function docOfField(field: SchemaNode, optional: boolean): Doc {
  const allowed = allowedIn(field);
  // One that must be given has no default, whatever the field has.
  const byDefault = optional ? defaultOf(field) : undefined;
  return {
    text: field.description ?? "",
    params: [],
    ...(allowed === "" ? {} : { allowed }),
    byDefault,
  };
}

export const isOptional = (option: ts.ClassElement | ts.TypeElement): boolean =>
  "questionToken" in option && option.questionToken !== undefined;

const hasText = (node: ts.Node): boolean =>
  ts.getJSDocCommentsAndTags(node).some((part) => ts.isJSDoc(part) && part.comment !== undefined);

function tagText(node: ts.Node, name: string): string | undefined {
  const tag = ts.getJSDocTags(node).find(({ tagName }) => tagName.text === name);
  return tag && ts.getTextOfJSDocComment(tag.comment)?.replace(/\s+/g, " ");
}

/** What a number, a text or each item of a list may be, in words. */
function allowedIn(field: SchemaNode): string {
  const kinds = variants([field.items ?? field]);
  const { minimum, maximum, unit = field.unit } = kinds.find((one) => one.minimum !== undefined) ?? {};
  const shapes = kinds.flatMap(({ patternErrorMessage }) => patternErrorMessage ?? []);
  const range =
    minimum === undefined || maximum === Number.MAX_SAFE_INTEGER
      ? []
      : [`${minimum} to ${maximum}${unit === undefined ? "" : ` ${unit}`}`];
  const all = [...new Set([...range, ...shapes])].join("; or ");
  return field.items === undefined || all === "" ? all : `each ${all}`;
}

function defaultOf({ default: byDefault, properties }: SchemaNode): string | undefined {
  const value = JSON.stringify(byDefault);
  if (["[]", '""'].includes(value)) return "- none";
  if (value !== "{}") return value;
  return properties === undefined ? "- none" : "- an object with the defaults of its fields";
}

/** The type of a field's value. One with an object in it is stated by the interface, under the name of that object. */
function typeOf(node: SchemaNode, at: string): string {
  const { const: constant, enum: values, type, items, properties, additionalProperties: each } = node;
  const kinds = variants([node]);
  if (kinds.length > 1) {
    const types = [...new Set(kinds.map((kind) => typeOf(kind, at)))];
    return types.filter((one) => !one.startsWith('"') || !types.includes("string")).join(" | ");
  }
  if (constant !== undefined) return JSON.stringify(constant);
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (items !== undefined) {
    const item = typeOf(items, at);
    return `readonly ${item.includes(" | ") ? `(${item})` : item}[]`;
  }
  if (typeof each === "object" && properties === undefined)
    return `Readonly<Record<string, ${typeOf(each, at)}>>`;
  const scalar = { string: "string", boolean: "boolean", integer: "number", number: "number" }[type ?? ""];
  if (scalar === undefined) throw new Error(`${at}: state it in its interface, with the name of its object`);
  return scalar;
}

/** What an interface has from schemas. */
interface Inferred {
  readonly fields: Fields;
  /** Of the one schema that it takes whole. */
  readonly description: string | undefined;
}

/** Every interface of the sources that is inferred from schemas, by its name: no two have the same. */
function interfaces(): ReadonlyMap<string, Inferred> {
  if (known !== undefined) return known;
  const all = inferredInterfaces().filter(([, { fields }]) => fields.size > 0);
  const twice = all.find(([name], i) => all.findIndex(([other]) => other === name) !== i);
  if (twice !== undefined)
    throw new Error(`${twice[0]}: two interfaces of this name are inferred from schemas`);
  return (known = new Map(all));
}
let known: ReadonlyMap<string, Inferred> | undefined;

function inferredInterfaces(): [string, Inferred][] {
  const folder = path.join(ROOT, "src");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [path.join(folder, name), readFileSync(path.join(folder, name), "utf8")] as const)
    .filter(([, text]) => text.includes("InputOf<"))
    .flatMap(([file, text]) => {
      const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
      return source.statements.filter(ts.isInterfaceDeclaration).map((one): [string, Inferred] => {
        const fields = parentsOf(one).flatMap((parent) => [...fieldsIn(parent)]);
        const named = one.members.flatMap((member): [string, Field][] => {
          const node = fieldNamedBy(member);
          return node
            ? [[member.name!.getText(), { node, optional: isOptional(member), inherited: true }]]
            : [];
        });
        const whole = inferredParents(one).filter((parent) => partsOf(parent)[0] === "InputOf");
        const description =
          whole.length === 1 ? schemaNamedBy(partsOf(whole[0]!)[1]!).description : undefined;
        return [one.name.text, { fields: new Map([...fields, ...named]), description }];
      });
    });
}

/** The fields of a type that is made of schemas; of any other, none. */
function fieldsIn(type: ts.Node): Fields {
  const [name, ...args] = partsOf(type);
  if (name === "InputOf") return fieldsOfObject(schemaNamedBy(args[0]!));
  if (name !== "Pick" && name !== "Omit" && name !== "Partial") return new Map();
  const fields = [...fieldsIn(args[0]!)];
  if (name === "Partial") return new Map(fields.map(([key, field]) => [key, { ...field, optional: true }]));
  const keys = literalsIn(args[1]!);
  return new Map(
    name === "Pick"
      ? fields.filter(([key]) => keys.includes(key))
      : fields.map(([key, field]) => [key, { ...field, inherited: field.inherited && !keys.includes(key) }]),
  );
}

/** `Pick<A, B>` → `Pick`, A, B. */
function partsOf(type: ts.Node): [name: string, ...args: ts.TypeNode[]] {
  if (ts.isExpressionWithTypeArguments(type))
    return [type.expression.getText(), ...(type.typeArguments ?? [])];
  if (ts.isTypeReferenceNode(type)) return [type.typeName.getText(), ...(type.typeArguments ?? [])];
  return [""];
}

function literalsIn(type: ts.TypeNode): string[] {
  if (ts.isUnionTypeNode(type)) return type.types.flatMap(literalsIn);
  return ts.isLiteralTypeNode(type) && ts.isStringLiteral(type.literal) ? [type.literal.text] : [];
}

/** The field in `InputOf<typeof route>["path"]`. */
function fieldNamedBy(member: ts.TypeElement): SchemaNode | undefined {
  const type = ts.isPropertySignature(member) ? member.type : undefined;
  if (type === undefined || !ts.isIndexedAccessTypeNode(type)) return undefined;
  return fieldsIn(type.objectType).get(literalsIn(type.indexType)[0]!)?.node;
}

function fieldsOfObject(schema: z.ZodType): Fields {
  const { properties, required = [] } = nodesAt(schema, []).find((node) => node.properties !== undefined)!;
  const field = ([name, node]: [string, SchemaNode]): [string, Field] => [
    name,
    { node, optional: !required.includes(name), inherited: true },
  ];
  return new Map(Object.entries(properties!).map(field));
}

/** The schema in `typeof route`, from the module that the file imports it from. */
function schemaNamedBy(type: ts.TypeNode): z.ZodType {
  const name = (type as ts.TypeQueryNode).exprName.getText();
  const file = type.getSourceFile();
  const { moduleSpecifier } = file.statements
    .filter(ts.isImportDeclaration)
    .find(({ importClause }) =>
      (importClause!.namedBindings as ts.NamedImports).elements.some((one) => one.name.text === name),
    )!;
  const from = path.resolve(path.dirname(file.fileName), (moduleSpecifier as ts.StringLiteral).text);
  const module = createRequire(__filename)(from.replace(/\.js$/, ".ts")) as Record<string, z.ZodType>;
  return module[name]!;
}
