import { parseConfig } from "../../src/model/config/parse.js";
import { configNode, type SchemaNode, variants } from "../../src/model/config/schema.js";
import { anchor } from "./anchor.js";

/** What `docs/config.md` says, before its lines are broken: every field of `portico.json`, from the field table. */
export function configText(): string {
  const sections = sectionsOf({ path: "", name: "", node: configNode(), required: true });
  const contents = sections.map(({ title }) => `- [${title}](#${anchor(title)})`).join("\n");
  const chapters = sections.map(({ title, text }) => `## ${title}\n\n${text}`);
  return [INTRODUCTION, smallest(), contents, ...chapters].join("\n\n");
}

const INTRODUCTION = `# The proxy config: \`portico.json\`

The constructs write this file; it can be written by hand as well, and \`portico check\` reports every mistake in it. The
same rules are in the JSON Schema \`portico.schema.json\`, which editors read. What a field is not allowed to be is
refused with a code of [errors.md](errors.md); rules that span fields are listed there too.

A path such as \`listeners[].port\` means the field \`port\` of every item of the list \`listeners\`. Fields that are not
listed here are refused. Time is in milliseconds wherever a name ends in \`Ms\`, and size in bytes.`;

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
  return `A small one, everything else at its default:\n\n\`\`\`json\n${JSON.stringify(config, null, 2)}\n\`\`\``;
}

/** A field of the config and where it stands; `items[]` for an item of a list. */
interface Field {
  readonly path: string;
  readonly name: string;
  readonly node: SchemaNode;
  readonly required: boolean;
  /** Of a kind of a union, what its headings end in: ` proxy`. */
  readonly kind?: string | undefined;
}

/** An object of the config, or a union of them: a chapter of the page. */
interface Section {
  readonly title: string;
  readonly text: string;
}

/** The kinds of object that a field, or each item of its list, may be. */
const objectsOf = ({ items, ...node }: SchemaNode): SchemaNode[] =>
  variants([items ?? node]).filter(({ properties }) => properties !== undefined);

const titleOf = ({ path, node, kind = "" }: Field): string =>
  path === "" ? "The document" : `\`${path}${node.items === undefined ? "" : "[]"}\`${kind}`;

/** What a field holds, and all that is below it, in the order of the table. */
function sectionsOf(field: Field): Section[] {
  const objects = objectsOf(field.node);
  const [only, second] = objects;
  if (only === undefined) return [];
  if (second === undefined) return objectSections(titleOf(field), field, only);
  const named = objects.every(({ properties }) => properties!.type !== undefined);
  const kindTitle = ({ title, properties }: SchemaNode): string =>
    `\`${field.path}\`: ${named ? String(properties!.type!.const) : title!}`;
  const rows = objects.map(
    (kind) => `- [${kindTitle(kind)}](#${anchor(kindTitle(kind))}): ${kind.description}`,
  );
  const intro = named
    ? "The field `type` names the kind, and the kind decides which other fields there are:"
    : "There are these kinds:";
  const union = { title: titleOf(field), text: [meaning(field), intro, rows.join("\n")].join("\n\n") };
  return [
    union,
    ...objects.flatMap((kind) =>
      objectSections(kindTitle(kind), { ...field, node: kind }, kind, described({ ...field, node: kind })),
    ),
  ];
}

/** @param intro what it means; a kind of a union is described without a default, which the union has */
function objectSections(title: string, field: Field, node: SchemaNode, intro?: string): Section[] {
  const kind = kindIn(title);
  const prefix = field.path === "" ? "" : `${field.path}${field.node.items === undefined ? "" : "[]"}.`;
  const fields = Object.entries(node.properties!).map(([name, inner]) => ({
    path: `${prefix}${name}`,
    name,
    node: inner,
    required: node.required?.includes(name) === true,
    kind,
  }));
  const plain = fields.filter((inner) => objectsOf(inner.node).length === 0);
  const nested = fields.filter((inner) => objectsOf(inner.node).length > 0);
  const links = nested.map(
    (inner) => `- [${titleOf(inner)}](#${anchor(titleOf(inner))}): ${described(inner)}`,
  );
  const text = [
    ...(field.path === "" ? [] : [intro ?? meaning(field)]),
    ...plain.map(fieldText),
    ...(links.length === 0 ? [] : ["Objects below it:", links.join("\n")]),
  ];
  return [{ title, text: text.join("\n\n") }, ...nested.flatMap(sectionsOf)];
}

/** Kinds of a union have fields of the same name, so a heading of theirs names the kind. */
const kindIn = (title: string): string | undefined =>
  title.startsWith("`") ? / .*$/.exec(title)?.[0] : undefined;

const fieldText = (field: Field): string => `### \`${field.path}\`${field.kind ?? ""}\n\n${meaning(field)}`;

/** What a field means, and what it may be. */
function meaning(field: Field): string {
  const { node, name, required } = field;
  const { default: byDefault, examples } = node;
  const shown = examples?.[0] ?? exampleOf(node);
  const facts = [
    ...(node.properties === undefined ? [`- ${capital(allowedIn(node))}.`] : []),
    required
      ? "- Required."
      : byDefault === undefined
        ? "- May be left out."
        : `- Default: ${emptyDefault(node) ?? `\`${JSON.stringify(byDefault)}\``}.`,
    ...(shown === undefined ? [] : [`- Example: \`${JSON.stringify(name)}: ${JSON.stringify(shown)}\`.`]),
  ];
  return `${described(field)}\n\n${facts.join("\n")}`;
}

/** A default with nothing in it, in words. */
function emptyDefault({ default: byDefault, properties }: SchemaNode): string | undefined {
  if (JSON.stringify(byDefault) !== "{}") return undefined;
  return properties === undefined ? "none" : "an object with the defaults of its fields";
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
