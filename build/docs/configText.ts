import { parseConfig } from "../../src/model/config/parse.js";
import { configNode, type SchemaNode, variants } from "../../src/model/config/schema.js";
import { anchor } from "./anchor.js";

/** Text of `docs/config.md`, before its lines are broken: every field of `portico.json`, from the field table. */
export function configText(): string {
  const sections = sectionsOf({ path: "", name: "", node: configNode(), required: true });
  const contents = sections.map(({ title }) => `- [${title}](#${anchor(title)})`).join("\n");
  const chapters = sections.map(({ title, text }) => `## ${title}\n\n${text}`);
  return [INTRODUCTION, smallest(), contents, ...chapters].join("\n\n");
}

const INTRODUCTION = `# The proxy config: \`portico.json\`

The constructs write this file; it can be written by hand as well, and \`portico check\` reports every mistake in it. The
same rules are in the JSON Schema \`portico.schema.json\`, which editors read. Portico refuses an invalid value with a
code that [errors.md](errors.md) explains; that page also lists the rules that span fields.

A path such as \`listeners[].port\` means the field \`port\` of every item of the list \`listeners\`. Fields that are not
listed here are refused. Fields whose names end in \`Ms\` are in milliseconds; sizes are in bytes.`;

/** A config that names what is required and nothing else. */
function smallest(): string {
  const config = {
    version: 1,
    listeners: [{ name: "http", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [
      {
        name: "application",
        serverNames: ["files.example.org"],
        listeners: ["http"],
        default: true,
        routes: [{ name: "web", path: "/", action: { type: "proxy", upstream: "web" } }],
      },
    ],
  };
  const parsed = parseConfig(config);
  if (!parsed.ok) throw new Error("the example of docs/config.md is no config");
  return `A small config; all other fields have defaults:\n\n\`\`\`json\n${JSON.stringify(config, null, 2)}\n\`\`\``;
}

/** A field of the config and where it stands; `items[]` for an item of a list. */
interface Field {
  /** The kind of object that the field is in, among several: other kinds may have a field at the same path. */
  readonly kind?: string;
  readonly path: string;
  readonly name: string;
  readonly node: SchemaNode;
  readonly required: boolean;
}

/** An object of the config, or a union of them: a chapter of the page. */
interface Section {
  readonly title: string;
  readonly text: string;
}

/** The kinds of object that a field, or each item of its list, may be. */
const objectsOf = ({ items, ...node }: SchemaNode): SchemaNode[] =>
  variants([items ?? node]).filter(({ properties }) => properties !== undefined);

const titleOf = ({ path, node, kind }: Field): string => {
  const heading = `\`${itemPath({ path, node })}\``;
  return path === "" ? "The document" : `${heading}${kind === undefined ? "" : ` ${kind}`}`;
};

/** Where the objects of a field are: its own path, or that of each item of its list. */
const itemPath = ({ path, node }: Pick<Field, "path" | "node">): string =>
  `${path}${node.items === undefined ? "" : "[]"}`;

/** What a field holds, and all that is below it, in the order of the table. */
function sectionsOf(field: Field): Section[] {
  const objects = objectsOf(field.node);
  const [only, second] = objects;
  if (only === undefined) return [];
  if (second === undefined) return objectSections(titleOf(field), field, only, meaning);
  const named = objects.every(({ properties }) => properties!.type !== undefined);
  const kindOf = ({ title, properties }: SchemaNode): string =>
    named ? String(properties!.type!.const) : title!;
  const path = itemPath(field);
  const kindTitle = (kind: SchemaNode): string => `\`${path}\`: ${kindOf(kind)}`;
  const rows = objects.map(
    (kind) => `- [${kindTitle(kind)}](#${anchor(kindTitle(kind))}): ${kind.description}`,
  );
  const intro = named ? "The field `type` selects the kind, which determines the other fields:" : "Kinds:";
  const union = { title: titleOf(field), text: [meaning(field), intro, rows.join("\n")].join("\n\n") };
  return [
    union,
    ...objects.flatMap((kind) => {
      const within = { ...field, path, node: kind, kind: kindOf(kind) };
      return objectSections(kindTitle(kind), within, kind, described);
    }),
  ];
}

function objectSections(
  title: string,
  field: Field,
  node: SchemaNode,
  intro: (field: Field) => string,
): Section[] {
  const prefix = field.path === "" ? "" : `${itemPath(field)}.`;
  const fields = Object.entries(node.properties!).map(([name, inner]) => ({
    path: `${prefix}${name}`,
    name,
    node: inner,
    required: node.required?.includes(name) === true,
    kind: field.kind,
  }));
  const plain = fields.filter((inner) => objectsOf(inner.node).length === 0);
  const nested = fields.filter((inner) => objectsOf(inner.node).length > 0);
  const links = nested.map(
    (inner) => `- [${titleOf(inner)}](#${anchor(titleOf(inner))}): ${described(inner)}`,
  );
  const text = [
    ...(field.path === "" ? [] : [intro(field)]),
    ...plain.map(fieldText),
    ...(links.length === 0 ? [] : ["Nested objects:", links.join("\n")]),
  ];
  return [{ title, text: text.join("\n\n") }, ...nested.flatMap(sectionsOf)];
}

function fieldText(field: Field): string {
  const { path, kind } = field;
  return `### \`${path}\`${kind === undefined ? "" : ` ${kind}`}\n\n${meaning(field)}`;
}

/** The text of a field, and what values it accepts. */
function meaning(field: Field): string {
  const { node, name, required } = field;
  const { default: byDefault, examples } = node;
  const shown = examples?.[0] ?? exampleOf(node);
  const facts = [
    ...(node.properties === undefined ? [`- ${capital(allowedIn(node))}.`] : []),
    required
      ? "- Required."
      : byDefault === undefined
        ? "- Optional."
        : `- Default: ${emptyDefault(node) ?? `\`${JSON.stringify(byDefault)}\``}.`,
    ...(shown === undefined ? [] : [`- Example: \`${JSON.stringify(name)}: ${JSON.stringify(shown)}\`.`]),
  ];
  return `${described(field)}\n\n${facts.join("\n")}`;
}

const OWN_DEFAULTS = "an object with the defaults of its fields";

/** A default with nothing in it, in words. */
function emptyDefault({ default: byDefault, properties }: SchemaNode): string | undefined {
  if (JSON.stringify(byDefault) !== "{}") return undefined;
  return properties === undefined ? "none" : OWN_DEFAULTS;
}

/** A value that is not the default where there are few to choose from. */
function exampleOf({ const: only, enum: values, type, default: byDefault }: SchemaNode): unknown {
  if (type === "boolean") return byDefault !== true;
  const plain = typeof byDefault === "object" ? undefined : byDefault;
  return only ?? values?.find((value) => value !== byDefault) ?? plain;
}

function described({ path, node }: Field): string {
  const text = node.description;
  if (text === undefined) throw new Error(`${path} is not described in the field table`);
  return text;
}

/** What a field accepts, in words. */
function allowedIn(node: SchemaNode): string {
  const { items, minItems, unit } = node;
  if (items !== undefined) {
    const many = minItems === undefined ? "a list" : `a list of at least ${minItems}`;
    return objectsOf(node).length > 0
      ? `${many}, each item an object`
      : `${many}, each item ${allowedIn(items)}`;
  }
  const words = variants([node]).map((one) => {
    if (one.minimum !== undefined) return `${unit ?? "a whole number"}, ${one.minimum} to ${one.maximum}`;
    if (one.properties !== undefined) return "an object";
    if (one.type === "boolean") return "`true` or `false`";
    const values = one.const === undefined ? one.enum : [one.const];
    if (values !== undefined) return values.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
    const text =
      one.patternErrorMessage ??
      (one.additionalProperties === undefined ? "text" : "an object of names and texts");
    return one.patternErrorMessage === undefined && one.maxLength !== undefined
      ? `${text} of up to ${one.maxLength} ${unit}`
      : text;
  });
  return [...new Set(words)].join(" or ");
}

/** As a sentence begins; a URL stays as it is written. */
const capital = (text: string): string =>
  text.startsWith("http") ? text : text[0]!.toUpperCase() + text.slice(1);
