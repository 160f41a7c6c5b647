import { configNode, meant, type SchemaNode, variants } from "../model/config/schema.js";
import type { ProxyConfigInput } from "../model/index.js";

/** The path at which editors find the JSON Schema of the config: next to the runtime it belongs to. */
export const CONFIG_SCHEMA_FILE = "/usr/lib/portico/portico.schema.json";

/**
 * The config file: indented JSON, one field order for every config, so that a diff shows changes only.
 * Fields that are left out stay out; the host fills in the same defaults.
 */
export function proxyConfigText(config: ProxyConfigInput): string {
  return `${JSON.stringify(orderProxyConfig(config), null, 2)}\n`;
}

/** The same document with its fields in the order of the field table, and without fields that are undefined. */
export function orderProxyConfig(config: ProxyConfigInput): ProxyConfigInput {
  return ordered({ $schema: CONFIG_SCHEMA_FILE, ...config }, [configNode()]) as ProxyConfigInput;
}

function ordered(value: unknown, nodes: readonly SchemaNode[]): unknown {
  const kinds = meant(variants(nodes), value);
  if (Array.isArray(value)) {
    const items = kinds.flatMap((node) => node.items ?? []);
    return value.map((item) => ordered(item, items));
  }
  if (typeof value !== "object" || value === null) return value;
  const fields = value as Record<string, unknown>;
  const table = kinds.flatMap((node) => Object.keys(node.properties ?? {}));
  // Fields that are not in the table stay in order at the end: header names, which are data, and mistakes.
  const names = [...new Set([...table, ...Object.keys(fields)])].filter((name) => fields[name] !== undefined);
  return Object.fromEntries(
    names.map((name) => [
      name,
      ordered(
        fields[name],
        kinds.flatMap((node) => node.properties?.[name] ?? []),
      ),
    ]),
  );
}
