import { Fn, TerraformVariable, Testing } from "cdktf";
import { addPreconditions, lateCheck } from "../../src/constructs/props/lateChecks.js";
import { Host, HostFile } from "../../src/index.js";
import { problem } from "../../src/model/index.js";
import type { SchemaNode } from "../../src/model/config/schema.js";
import { newStack, synthesize } from "../../testkit/stacks.js";
import { lateStack } from "../../testkit/lateStack.js";
import { LATE_VALUES } from "../../testkit/lateValues.js";

/** Checks of values that Terraform knows at apply only; their conditions are in `golden/whole.txt`. */

const stack = newStack();
const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
const list = new TerraformVariable(stack, "l", { type: "list(string)" }).listValue;

const WHAT = problem("config.bad-text", "stack/part.field", "is not ${good}", { allowed: "a text" });

test.each<[string, SchemaNode[], unknown]>([
  ["a list of anything", [{ type: "array", items: {} }], list],
  ["of two kinds, of which one is anything", [{ const: "off" }, { type: "object" }], text],
  ["no kind", [], text],
  ["a value that is known", [{ type: "string" }], "x"],
  ["no value", [{ type: "string" }], undefined],
])("nothing is checked of %s", (_what, nodes, value) => {
  expect(lateCheck(WHAT, nodes, value)).toEqual([]);
});

const said = (checks: readonly { error_message: string }[]): string[] =>
  checks.map(({ error_message: message }) => message);

test("what is said is what a known value gets, as a template", () => {
  expect(said(lateCheck(WHAT, [{ type: "string" }], text))).toEqual([
    [
      "stack/part.field: is not $${good} [config.bad-text]",
      "    allowed:  a text",
      "    fix:      Use a text of the allowed form.",
      "    see:      cdktf-portico/docs/errors.md#configbad-text",
    ].join("\n"),
  ]);
});

test("checks come after those that a resource has", () => {
  const site = newStack();
  const host = new Host(site, "host", { address: "192.0.2.10" });
  const { resource } = new HostFile(site, "file", { host, path: "/a", content: "a" });
  const check = (condition: string) => ({ condition, error_message: "no" });
  addPreconditions(resource, []);
  expect(Object.values(synthesize(site).resource.local_file!)[0]).not.toHaveProperty("lifecycle");
  resource.lifecycle = { precondition: [{ condition: "own", errorMessage: "no" }] };
  addPreconditions(resource, [check("a")]);
  const { precondition } = Object.values(synthesize(site).resource.local_file!)[0].lifecycle;
  expect(precondition.map((one: { condition: string }) => one.condition)).toEqual(["own", "a"]);
});

test.each<[string, unknown, boolean]>([
  ["a function", Fn.lower("WEB"), false],
  ["a function of a function", Fn.format("%s", [Fn.cidrhost("10.0.0.0/8", 5)]), false],
  ["a file", Fn.jsondecode(Fn.file("hosts.json")), false],
  ["a variable", text, true],
  ["a function of a variable", Fn.lower(text), true],
  ["a variable in a text", Fn.lower(`a-${text}`), false],
])("the check of %s refers to something, which Terraform demands", (_, value, refers) => {
  const site = newStack();
  new TerraformVariable(site, "t", { type: "string" });
  const host = new Host(site, "host", { address: "192.0.2.10" });
  const { resource } = new HostFile(site, "file", { host, path: "/a", content: "a" });
  addPreconditions(resource, lateCheck(WHAT, [{ type: "string", pattern: "^w" }], value));
  const [{ condition }] = Object.values(synthesize(site).resource.local_file!)[0].lifecycle.precondition;
  expect(condition.startsWith("${")).toBe(true);
  expect(condition.endsWith(' && path.module != ""}')).toBe(!refers);
});

describe("a value that several files are made of", () => {
  interface Written {
    readonly depends_on?: readonly string[];
    readonly lifecycle?: { readonly precondition: readonly { condition: string; error_message: string }[] };
  }
  const app = Testing.app();
  const { resource } = synthesize(lateStack(app, "/host"));
  const files = new Map<string, Written>(
    Object.entries(resource.local_file!).map(([id, file]) => [`local_file.${id}`, file]),
  );
  const checks = (file: Written | undefined) => file?.lifecycle?.precondition ?? [];

  test.each(LATE_VALUES.map(({ name }) => name))(
    "%s: what is wrong is said once, before any is written",
    (name) => {
      const value = new RegExp(`\\bvar\\.${name}\\b`);
      const messages = [...files.values()].flatMap((file) =>
        checks(file).flatMap((one) => (value.test(one.condition) ? one.error_message : [])),
      );
      expect(messages).toEqual([...new Set(messages)]);
      const unchecked = [...files].filter(
        ([id, file]) =>
          value.test(JSON.stringify({ ...file, lifecycle: undefined })) &&
          ![id, ...(file.depends_on ?? [])].some((one) =>
            checks(files.get(one)).some(({ condition }) => value.test(condition)),
          ),
      );
      expect(unchecked.map(([id]) => id)).toEqual([]);
    },
  );
});
