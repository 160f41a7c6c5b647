import * as z from "zod";
import { configSchema } from "./config.js";
import type { ProblemCode } from "../text/problem.js";

/** JSON Schema (2020-12) of the config as it may be written, for editors; generated from the field table. */
export function configJsonSchema(): Record<string, unknown> {
  const schema = jsonSchema(configSchema);
  describeFacts(schema as SchemaNode);
  return { title: "Portico proxy config", ...schema };
}

/** Editors show only a field's description, so its range and default are added to it. */
function describeFacts(node: SchemaNode): void {
  const { description, default: byDefault, unit, properties } = node;
  const { minimum, maximum } = variants([node]).find((one) => one.minimum !== undefined) ?? node;
  const facts = [
    ...(minimum === undefined ? [] : [`${minimum} to ${maximum}${unit === undefined ? "" : ` ${unit}`}`]),
    ...(byDefault === undefined ? [] : [`default ${JSON.stringify(byDefault)}`]),
  ].join("; ");
  if (description !== undefined && facts !== "" && properties === undefined)
    node.description = `${description} ${facts[0]!.toUpperCase()}${facts.slice(1)}.`;
  childrenOf(node).forEach(describeFacts);
}

function childrenOf({ properties = {}, items, anyOf = [], oneOf = [] }: SchemaNode): SchemaNode[] {
  return [...Object.values(properties), ...(items === undefined ? [] : [items]), ...anyOf, ...oneOf];
}

const jsonSchema = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input" });

/** The JSON Schema of a field. */
export interface SchemaNode {
  /** Name of one kind of object among several. */
  title?: string;
  /** The description of the field. */
  description?: string;
  default?: unknown;
  /** The unit of its number. */
  unit?: string;
  /** Values as they may be written. */
  examples?: unknown[];
  required?: string[];
  properties?: Record<string, SchemaNode>;
  items?: SchemaNode;
  additionalProperties?: SchemaNode | boolean;
  anyOf?: SchemaNode[];
  oneOf?: SchemaNode[];
  const?: unknown;
  enum?: unknown[];
  type?: string;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxLength?: number;
  /** A {@link TextRule}. */
  pattern?: string;
  not?: { pattern: string };
  canonicalIpv6?: true;
  /** A description of allowed texts, with the code of the problem for others. */
  patternErrorMessage?: string;
  problemCode?: ProblemCode;
}

/** Names of the fields of the object at a path of a document; of the variant that `input`, the object, selects. */
export function fieldNamesAt(
  schema: z.ZodType,
  path: readonly PropertyKey[],
  input: unknown,
  document: unknown,
): string[] {
  const objects = meant(nodesAt(schema, path, document), input);
  return [...new Set(objects.flatMap(({ properties = {} }) => Object.keys(properties)))];
}

/** The fields of an object that no variant of the object has together with the given field. */
export function excludedBy(
  field: string,
  schema: z.ZodType,
  path: readonly PropertyKey[],
  input: unknown,
  document: unknown,
): string[] {
  const withField = meant(nodesAt(schema, path, document), input).filter(
    ({ properties = {} }) => field in properties,
  );
  return Object.keys(input as object).filter(
    (name) => name !== field && !withField.some(({ properties = {} }) => name in properties),
  );
}

/** A description of the values that the field at a path accepts; with a document, only of the variants that fit. */
export function allowedAt(schema: z.ZodType, path: readonly PropertyKey[], document?: unknown): string {
  return allowedBy(nodesAt(schema, path, document));
}

/** Types as JSON Schema and the schema library name them. */
const TYPES: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  integer: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
};

/** A type as users say it, to follow "is not". */
export const typeInWords = (type = "object"): string => TYPES[type] ?? type;

/** A description of the values that a field accepts. */
export function allowedBy(nodes: readonly SchemaNode[]): string {
  const words = nodes.map((n) => {
    if (n.const !== undefined) return JSON.stringify(n.const);
    if (n.enum !== undefined) return n.enum.map((v) => JSON.stringify(v)).join(", ");
    const name = discriminatorOf(n);
    if (name !== undefined) return `an object with ${name} ${JSON.stringify(n.properties![name]!.const)}`;
    if (n.minimum !== undefined) return `${typeInWords(n.type)} from ${n.minimum} to ${n.maximum}`;
    return n.properties === undefined
      ? (n.patternErrorMessage ?? typeInWords(n.type))
      : `an object with ${Object.keys(n.properties).join(", ")}`;
  });
  return oneOf([...new Set(words)]);
}

/** Semicolons separate parts that contain commas. */
function oneOf(words: readonly string[]): string {
  if (words.some((text) => text.includes(","))) return words.join("; or ");
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}

/** Trees already made: a config with many problems needs one for each of them. */
const roots = new WeakMap<z.ZodType, SchemaNode>();

function rootOf(schema: z.ZodType): SchemaNode {
  const known = roots.get(schema);
  if (known !== undefined) return known;
  const root = jsonSchema(schema) as SchemaNode;
  roots.set(schema, root);
  return root;
}

/** The schema of the whole config: the field table as a tree. */
export const configNode = (): SchemaNode => rootOf(configSchema);

/** The schema nodes at a path, unions spread out; with a document, only those that fit the values above them. */
export function nodesAt(schema: z.ZodType, path: readonly PropertyKey[], document?: unknown): SchemaNode[] {
  let nodes = variants([rootOf(schema)]);
  let at = document;
  for (const step of path) {
    nodes = variants(
      meant(nodes, at).flatMap((n) => {
        const next =
          typeof step === "number" ? n.items : (n.properties?.[String(step)] ?? n.additionalProperties);
        return typeof next === "object" ? [next] : [];
      }),
    );
    at = (at as Record<PropertyKey, unknown> | undefined)?.[step];
  }
  return nodes;
}

/** The kind of object that an object names by its `type` or `kind`; all kinds if it names none of them. */
export function meant(nodes: SchemaNode[], input: unknown): SchemaNode[] {
  const given = input as Readonly<Record<string, unknown>> | undefined;
  const named = nodes.filter((n) => {
    const name = discriminatorOf(n);
    return name !== undefined && n.properties![name]!.const === given?.[name];
  });
  return named.length > 0 ? named : nodes;
}

/** The field that names the kind of an object. */
const discriminatorOf = ({ properties = {} }: SchemaNode): string | undefined =>
  ["type", "kind"].find((name) => properties[name]?.const !== undefined);

/** The kinds of value that a field takes, unions spread out. */
export function variants(nodes: readonly SchemaNode[]): SchemaNode[] {
  return nodes.flatMap((n) => {
    const inner = n.anyOf ?? n.oneOf;
    return inner === undefined ? [n] : variants(inner);
  });
}
