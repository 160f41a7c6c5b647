import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { formattedText } from "./formatted.js";
import { ROOT } from "./paths.js";

/**
 * `terraform providers schema -json > FILE; tsx build/providerResources.ts FILE [DIRECTORY]`: writes the resources of
 * `cdktn-portico`, `src/constructs/providers/cdktn/*Resources.ts` (there or below another directory), for the providers that
 * the schema has. They have the names of those of cdktf's packages, and as much of their members as is text or a number.
 */

/** Resources that front ends have, by provider. */
const RESOURCES: Readonly<Record<string, readonly string[]>> = {
  local: ["local_file", "local_sensitive_file"],
  tls: ["tls_private_key", "tls_self_signed_cert"],
  kubernetes: [
    "kubernetes_config_map_v1",
    "kubernetes_deployment_v1",
    "kubernetes_horizontal_pod_autoscaler_v2",
    "kubernetes_network_policy_v1",
    "kubernetes_pod_disruption_budget_v1",
    "kubernetes_service_v1",
  ],
};

/** Providers whose blocks have no types of their own: a pod has 800 fields, and `src/render/kubernetes/` makes them. */
const UNTYPED_BLOCKS: readonly string[] = ["kubernetes"];

/** What `terraform providers schema -json` says. */
interface Schemas {
  readonly provider_schemas: Readonly<Record<string, ProviderSchema>>;
}

interface ProviderSchema {
  readonly resource_schemas: Readonly<Record<string, { readonly block: Block }>>;
}

interface Block {
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly block_types?: Readonly<Record<string, BlockType>>;
}

interface BlockType {
  readonly nesting_mode: string;
  readonly min_items?: number;
  readonly block: Block;
}

interface Attribute {
  readonly type?: AttributeType;
  readonly required?: true;
  readonly optional?: true;
  readonly deprecated?: true;
}

type AttributeType = "string" | "number" | "bool" | "dynamic" | readonly [kind: string, of: unknown];

const resourcesFile = (provider: string): string => `src/constructs/providers/cdktn/${provider}Resources.ts`;

/** The text of a provider's file; undefined if the schemas have none of it. */
async function resourcesText(schemas: Schemas, provider: string): Promise<string | undefined> {
  const [, schema] =
    Object.entries(schemas.provider_schemas).find(([source]) => source.endsWith(`/hashicorp/${provider}`)) ??
    [];
  if (schema === undefined) return undefined;
  const classes = RESOURCES[provider]!.map((type) =>
    classText(provider, type, schema.resource_schemas[type]!.block),
  );
  const text = `// Written by build/providerResources.ts from the provider's schema. Change that, not this file.
import type { TerraformMetaArguments } from "cdktf";
import type { Construct } from "constructs";
import { OwnResource } from "./ownResource.js";

${classes.join("\n")}`;
  return formattedText(resourcesFile(provider), text);
}

function classText(provider: string, type: string, block: Block): string {
  const name = capital(camel(type.slice(provider.length + 1)));
  const typed = !UNTYPED_BLOCKS.includes(provider);
  const maps = mapNames(block);
  const listed = maps.length === 0 ? "" : `, ${JSON.stringify(maps)}`;
  const members = attributesOf(block).flatMap(([attribute, of]) => accessors(attribute, of));
  return `export interface ${name}Config extends TerraformMetaArguments ${fieldsText(block, typed)}

/** \`${type}\` */
export class ${name} extends OwnResource {
  constructor(scope: Construct, id: string, config: ${name}Config) {
    super(scope, id, "${type}", config${listed});
  }
  ${members.join("\n")}
}
`;
}

/** What a resource is told, and what it tells; without what is no longer to be used. */
const attributesOf = ({ attributes = {} }: Block): [string, Attribute][] =>
  Object.entries(attributes).filter(([name, { deprecated }]) => name !== "id" && deprecated !== true);

const isArgument = ({ required, optional }: Attribute): boolean => required === true || optional === true;

/** A type of arguments, with those of the blocks in it. */
function fieldsText(block: Block, typed: boolean): string {
  const own = attributesOf(block)
    .filter(([, attribute]) => isArgument(attribute))
    .map(([name, { type, required }]) => field(name, typeText(type), required === true));
  const blocks = Object.entries(block.block_types ?? {}).map(
    ([name, { nesting_mode, min_items = 0, block: inner }]) => {
      const one = typed ? fieldsText(inner, typed) : "object";
      return field(name, nesting_mode === "single" || !typed ? one : `readonly (${one})[]`, min_items > 0);
    },
  );
  return `{ ${[...own, ...blocks].join("\n")} }`;
}

const field = (name: string, type: string, isRequired: boolean): string =>
  `readonly ${camel(name)}${isRequired ? "" : "?"}: ${type};`;

const SIMPLE: Readonly<Record<string, string>> = { string: "string", number: "number", bool: "boolean" };

function typeText(type: unknown): string {
  if (typeof type === "string") return SIMPLE[type] ?? "unknown";
  const [kind, of] = type as readonly [string, unknown];
  if (kind === "map") return `Readonly<Record<string, ${typeText(of)}>>`;
  return kind === "list" || kind === "set" ? `readonly ${typeText(of)}[]` : "object";
}

const READERS: Readonly<Record<string, string>> = {
  string: "getStringAttribute",
  number: "getNumberAttribute",
};

/** Reading gives a reference, as in the provider's packages; what is an argument can be set. */
function accessors(name: string, attribute: Attribute): string[] {
  const { type } = attribute;
  const reader = typeof type === "string" ? READERS[type] : undefined;
  if (reader === undefined) return [];
  const get = (member: string): string =>
    `\n  get ${member}(): ${type} { return this.${reader}("${name}"); }`;
  // The packages have a capital after digits; an argument's name has to lead back to Terraform's.
  if (!isArgument(attribute)) return [get(camel(name).replace(/(?<=\d)[a-z]/g, capital))];
  const set = `\n  set ${camel(name)}(value: ${type}) { this.change("${camel(name)}", value); }`;
  return [get(camel(name)), set];
}

/** Names of arguments whose keys are data, wherever they are. */
function mapNames(block: Block): string[] {
  const names = new Set<string>();
  const others = new Set<string>();
  const visit = ({ attributes = {}, block_types = {} }: Block): void => {
    for (const [name, { type }] of Object.entries(attributes))
      (Array.isArray(type) && type[0] === "map" ? names : others).add(camel(name));
    for (const [name, { block: inner }] of Object.entries(block_types)) {
      others.add(camel(name));
      visit(inner);
    }
  };
  visit(block);
  return [...names].filter((name) => !others.has(name)).sort();
}

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

const capital = (name: string): string => name[0]!.toUpperCase() + name.slice(1);

async function main([file, directory = ROOT]: readonly string[]): Promise<void> {
  if (file === undefined) throw new Error("tsx build/providerResources.ts FILE: the file is missing");
  const schemas = JSON.parse(readFileSync(file, "utf8")) as Schemas;
  for (const provider of Object.keys(RESOURCES)) {
    const text = await resourcesText(schemas, provider);
    if (text === undefined) continue;
    const target = path.join(directory, resourcesFile(provider));
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
    console.log(target);
  }
}

main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
