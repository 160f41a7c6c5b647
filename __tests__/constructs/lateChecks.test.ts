import { DefaultTokenResolver, StringConcat, TerraformVariable, Tokenization } from "cdktf";
import {
  addPreconditions,
  lateCheck,
  lateConfigChecks,
  lateNumber,
  latePort,
  lateText,
  textNode,
} from "../../src/constructs/props/lateChecks.js";
import { Host, HostFile } from "../../src/index.js";
import { problem, type ProxyConfigInput } from "../../src/model/index.js";
import type { SchemaNode } from "../../src/model/config/schema.js";
import { newStack, synthesize } from "../../proof/kit/stacks.js";

/** Conditions as Terraform gets them. */

const stack = newStack();
const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
const number = new TerraformVariable(stack, "n", { type: "number" }).numberValue;
const list = new TerraformVariable(stack, "l", { type: "list(string)" }).listValue;
const flag = new TerraformVariable(stack, "f", { type: "bool" }).booleanValue;
const resolver = new DefaultTokenResolver(new StringConcat());
const written = (value: unknown): string =>
  (Tokenization.resolve(value, { scope: stack, resolver }) as string).replace(/^\$\{(.*)\}$/, "$1");

const WHAT = problem("config.bad-text", "stack/part.field", "is not ${good}", { allowed: "a text" });
const conditions = (nodes: SchemaNode[], value: unknown): string[] =>
  lateCheck(WHAT, nodes, value).map(({ condition }) => written(condition));

test.each<[string, SchemaNode[], unknown, string[]]>([
  [
    "a text of any kind",
    [{ type: "string" }],
    text,
    [String.raw`try(alltrue([can(regex("^\"", jsonencode(var.t)))]), false)`],
  ],
  [
    "a text that is a part of another",
    [{ type: "string", pattern: "^a" }],
    `x${text}`,
    [String.raw`try(alltrue([can(regex("^a", join("", ["x", var.t])))]), false)`],
  ],
  [
    "a text with every rule",
    [textNode({ pattern: "^a\\d", never: "b", lengthMax: 9, canonicalIpv6: true })],
    text,
    [
      String.raw`try(alltrue([can(regex("^\"", jsonencode(var.t))), can(regex("^a\\d", var.t)), !can(regex("b", var.t)), (length(var.t) <= 9), can(regex(":", var.t)) ? (try(cidrhost(join("/", [var.t, "128"]), 0), "") == var.t) : true]), false)`,
    ],
  ],
  [
    "a truth value",
    [{ type: "boolean" }],
    text,
    [String.raw`try(alltrue([can(regex("^(?:true|false)$", jsonencode(var.t)))]), false)`],
  ],
  [
    "a number of any size",
    [{ type: "number" }],
    number,
    [
      String.raw`try(alltrue([can(regex("^-?[0-9]+$", jsonencode(var.n))), (var.n >= tonumber("-9007199254740991")), (var.n <= tonumber("9007199254740991"))]), false)`,
    ],
  ],
  [
    "a number in a range",
    [{ type: "integer", minimum: 0, maximum: 7 }],
    number,
    [
      String.raw`try(alltrue([can(regex("^-?[0-9]+$", jsonencode(var.n))), (var.n >= tonumber("0")), (var.n <= tonumber("7"))]), false)`,
    ],
  ],
  [
    "one of several values",
    [{ enum: ["a", 1] }],
    text,
    [String.raw`try(alltrue([contains(["\"a\"", "1"], jsonencode(var.t))]), false)`],
  ],
  [
    "one value",
    [{ const: true }],
    text,
    [String.raw`try(alltrue([contains(["true"], jsonencode(var.t))]), false)`],
  ],
  [
    "a list",
    [{ type: "array", items: { type: "string", pattern: "^a" } }],
    list,
    [
      String.raw`try(alltrue([(length(var.l) >= tonumber("0")), alltrue([ for key, val in var.l: try(alltrue([can(regex("^\"", jsonencode(val))), can(regex("^a", val))]), false)])]), false)`,
    ],
  ],
  [
    "a list of two at least",
    [{ type: "array", minItems: 2, items: { const: "a" } }],
    list,
    [
      String.raw`try(alltrue([(length(var.l) >= tonumber("2")), alltrue([ for key, val in var.l: try(alltrue([contains(["\"a\""], jsonencode(val))]), false)])]), false)`,
    ],
  ],
  ["a list of anything", [{ type: "array", items: {} }], list, []],
  [
    "one of two kinds",
    [{ const: "off" }, { type: "integer" }],
    text,
    [
      String.raw`anytrue([try(alltrue([contains(["\"off\""], jsonencode(var.t))]), false), try(alltrue([can(regex("^-?[0-9]+$", jsonencode(var.t))), (var.t >= tonumber("-9007199254740991")), (var.t <= tonumber("9007199254740991"))]), false)])`,
    ],
  ],
  ["of two kinds, of which one is anything", [{ const: "off" }, { type: "object" }], text, []],
  ["no kind", [], text, []],
  ["a value that is known", [{ type: "string" }], "x", []],
  ["no value", [{ type: "string" }], undefined, []],
])("%s", (_what, nodes, value, expected) => {
  expect(conditions(nodes, value)).toEqual(expected);
});

const said = (checks: readonly { error_message: string }[]): string[] =>
  checks.map(({ error_message: message }) => message);

test("what is said is what a known value gets, as a template", () => {
  expect(said(lateCheck(WHAT, [{ type: "string" }], text))).toEqual([
    [
      "stack/part.field: is not $${good} [config.bad-text]",
      "    allowed:  a text",
      "    fix:      Remove control characters.",
      "    see:      cdktf-portico/docs/errors.md#configbad-text",
    ].join("\n"),
  ]);
});

test("a port and a number have ranges", () => {
  const range = (checks: ReturnType<typeof latePort>): unknown =>
    checks.map(({ condition, error_message: message }) => [
      /tonumber\("(\d+)"\).*tonumber\("(\d+)"\)/.exec(written(condition))?.slice(1),
      message.split("\n").slice(0, 2),
    ]);
  expect(range(latePort("a.port", number))).toEqual([
    [
      ["1", "65535"],
      ["a.port: is out of range [config.out-of-range]", "    allowed:  a whole number from 1 to 65535"],
    ],
  ]);
  expect(range(lateNumber("a.days", 0, 7, number))).toEqual([
    [
      ["0", "7"],
      ["a.days: is out of range [config.out-of-range]", "    allowed:  a whole number from 0 to 7"],
    ],
  ]);
  expect(latePort("a.port", 0)).toEqual([]);
});

test("a text has a rule", () => {
  const [check, ...others] = lateText("host.bad-name", "a.name", { pattern: "^a$", allowed: "an a" }, text);
  expect(others).toEqual([]);
  expect(written(check!.condition)).toContain('can(regex("^a$", var.t))');
  expect(check!.error_message.split("\n").slice(0, 2)).toEqual([
    "a.name: is not an a [host.bad-name]",
    "    allowed:  an a",
  ]);
});

test("what is not known in a config is checked by its field, unless it is left out", () => {
  const config = {
    version: 1,
    workers: number,
    trustedProxies: list,
    listeners: [{ name: "http", address: text, port: number, protocol: "http" }],
    virtualServers: [{ name: "s", serverNames: ["_"], listeners: ["http"], default: flag, routes: [] }],
  } as unknown as ProxyConfigInput;
  const first = (checks: readonly { error_message: string }[]): string[][] =>
    said(checks).map((message) => message.split("\n").slice(0, 2));
  const range = "an IP address or a CIDR range such as 10.0.0.0/8";
  const address = "an IPv4 or IPv6 address without brackets";
  expect(first(lateConfigChecks(config, (p) => p))).toEqual([
    [
      "workers: is not one of the values allowed here [config.not-one-of]",
      '    allowed:  "auto"; or a whole number from 1 to 256',
    ],
    [
      `trustedProxies: is not a list, each item ${range} [config.wrong-type]`,
      `    allowed:  a list, each item ${range}`,
    ],
    [`listeners[0].address: is not ${address} [config.bad-address]`, `    allowed:  ${address}`],
    [
      "listeners[0].port: is out of range [config.out-of-range]",
      "    allowed:  a whole number from 1 to 65535",
    ],
    ["virtualServers[0].default: is not true or false [config.wrong-type]", "    allowed:  true or false"],
  ]);
  const named = lateConfigChecks(config, (p) => (p.path === "workers" ? { ...p, path: "w" } : undefined));
  expect(first(named).map(([title]) => title)).toEqual([
    "w: is not one of the values allowed here [config.not-one-of]",
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
