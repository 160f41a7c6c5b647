import * as z from "zod";
import { configSchema } from "./config.js";

/** JSON Schema (2020-12) of the config as it may be written, for editors; generated from the field table. */
export function configJsonSchema(): Record<string, unknown> {
  return { title: "Portico proxy config", ...jsonSchema(configSchema) };
}

const jsonSchema = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });

interface Node {
  properties?: Record<string, Node>;
  items?: Node;
  additionalProperties?: Node | boolean;
  anyOf?: Node[];
  oneOf?: Node[];
  const?: unknown;
  enum?: unknown[];
  type?: string;
  minimum?: number;
  maximum?: number;
}

/** Names of the fields of the object at a path; of the variant that `input` selects by its `type`. */
export function fieldNamesAt(schema: z.ZodType, path: readonly PropertyKey[], input: unknown): string[] {
  const type = (input as { type?: unknown } | undefined)?.type;
  const variants = nodesAt(schema, path).filter((n) => n.properties !== undefined);
  const chosen = variants.filter(
    (n) => n.properties!.type?.const === undefined || n.properties!.type.const === type,
  );
  return [...new Set((chosen.length > 0 ? chosen : variants).flatMap((n) => Object.keys(n.properties!)))];
}

/** What the field at a path accepts, in words. */
export function allowedAt(schema: z.ZodType, path: readonly PropertyKey[]): string {
  const words = nodesAt(schema, path).map((n) => {
    if (n.const !== undefined) return JSON.stringify(n.const);
    if (n.enum !== undefined) return n.enum.map((v) => JSON.stringify(v)).join(", ");
    if (n.properties?.type?.const !== undefined)
      return `an object with type ${JSON.stringify(n.properties.type.const)}`;
    if (n.minimum !== undefined && n.maximum !== undefined)
      return `${n.type} from ${n.minimum} to ${n.maximum}`;
    return n.properties === undefined
      ? (n.type ?? "a value")
      : `an object with ${Object.keys(n.properties).join(", ")}`;
  });
  return [...new Set(words)].join("; or ");
}

/** Trees that were asked for: a config with many problems asks for each of them. */
const roots = new WeakMap<z.ZodType, Node>();

function rootOf(schema: z.ZodType): Node {
  const known = roots.get(schema);
  if (known !== undefined) return known;
  const root = jsonSchema(schema) as Node;
  roots.set(schema, root);
  return root;
}

/** The schema nodes at a path, unions spread out. */
function nodesAt(schema: z.ZodType, path: readonly PropertyKey[]): Node[] {
  let nodes = variants([rootOf(schema)]);
  for (const step of path) {
    nodes = variants(
      nodes.flatMap((n) => {
        const next =
          typeof step === "number" ? n.items : (n.properties?.[String(step)] ?? n.additionalProperties);
        return typeof next === "object" ? [next] : [];
      }),
    );
  }
  return nodes;
}

function variants(nodes: Node[]): Node[] {
  return nodes.flatMap((n) => {
    const inner = n.anyOf ?? n.oneOf;
    return inner === undefined ? [n] : variants(inner);
  });
}
