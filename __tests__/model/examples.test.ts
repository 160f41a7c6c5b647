import { readFileSync } from "node:fs";
import { join } from "node:path";
import { configText } from "../../build/docs/configText.js";
import { configNode, type SchemaNode, variants } from "../../src/model/config/schema.js";

/** Every field of the config with its path; unions are spread out. */
function fields(node: SchemaNode, path = ""): [path: string, node: SchemaNode][] {
  return variants([node]).flatMap(({ properties = {}, items }) => [
    ...(items === undefined ? [] : fields(items, `${path}[]`)),
    ...Object.entries(properties).flatMap(([name, inner]): [string, SchemaNode][] => [
      [`${path}.${name}`, inner],
      ...fields(inner, `${path}.${name}`),
    ]),
  ]);
}

/** Whether a field takes a value, as far as its pattern, range and values say. */
function takes(node: SchemaNode, value: unknown): boolean {
  return variants([node]).some((one) => {
    if (one.enum !== undefined) return one.enum.includes(value);
    if (one.const !== undefined) return one.const === value;
    if (one.items !== undefined)
      return Array.isArray(value) && value.every((item) => takes(one.items!, item));
    if (typeof value === "number") return value >= one.minimum! && value <= one.maximum!;
    if (typeof value !== "string") return one.type === typeof value;
    const { pattern = "", not } = one;
    return new RegExp(pattern).test(value) && (not === undefined || !new RegExp(not.pattern).test(value));
  });
}

test("every example in the field table is a value that its field takes", () => {
  const given = fields(configNode()).flatMap(([path, node]) =>
    (node.examples ?? []).map((example) => ({ path, example, ok: takes(node, example) })),
  );
  expect(given.length).toBeGreaterThan(25);
  expect(given.filter(({ ok }) => !ok)).toEqual([]);
});

test("every field of the config is described, and shows a value by an example, a default or a list", () => {
  const silent = fields(configNode())
    .filter(([, node]) => !variants([node]).some((one) => one.properties ?? one.items?.properties))
    .filter(
      ([, { description, examples, default: byDefault, enum: values, const: only }]) =>
        description === undefined || (examples ?? byDefault ?? values ?? only) === undefined,
    );
  expect(silent).toEqual([]);
});

test("docs/config.md names the range, default and example that each field of the table has", () => {
  const sections = (text: string): string[] =>
    text.split(/\n(?=#)/).map((section) => section.replace(/\s+/g, ""));
  const [, ...page] = sections(readFileSync(join(__dirname, "../../docs/config.md"), "utf8"));
  expect(page).toEqual(sections(configText()));
});
