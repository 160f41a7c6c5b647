import { DefaultTokenResolver, Lazy, StringConcat, TerraformVariable, Token, Tokenization } from "cdktf";
import {
  argument,
  checkAroundTokens,
  escapeTemplate,
  hasTokens,
  isKnown,
  lateHostInUrl,
  renderAroundTokens,
  renderJsonAroundTokens,
  settleTokens,
  textArgument,
  tokenTexts,
  unknownLeaves,
} from "../../src/constructs/props/tokens.js";
import { problem } from "../../src/model/index.js";
import { newStack } from "../../testkit/stacks.js";

/** Values that Terraform knows later, on their way through texts and checks. */

const stack = newStack();
const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
const other = new TerraformVariable(stack, "o", { type: "string" }).stringValue;
const number = new TerraformVariable(stack, "n", { type: "number" }).numberValue;
const list = new TerraformVariable(stack, "l", { type: "list(string)" }).listValue;
const flag = new TerraformVariable(stack, "f", { type: "bool" }).booleanValue;
const map = Token.asStringMap(new TerraformVariable(stack, "m", { type: "map(string)" }).value);
/** As users may write one: with nothing but what a resolvable needs. */
const bare = (name: string): unknown => ({
  creationStack: [],
  resolve: () => name,
});

const resolver = new DefaultTokenResolver(new StringConcat());
const written = (value: unknown): unknown => Tokenization.resolve(value, { scope: stack, resolver });

test.each<[unknown, boolean]>([
  [text, true],
  [`a${text}b`, true],
  [number, true],
  [`http://a:${number}`, true],
  [list, true],
  [flag, true],
  [{ a: [{ b: text }] }, true],
  [map, true],
  [{ a: "b", ...map }, true],
  ["a", false],
  ["-1.8e+308", false],
  ["-1.8881545897087626e+289", false],
  [0, false],
  [null, false],
  [undefined, false],
  [{ a: [{ b: "c" }] }, false],
])("%j is not known: %s", (value, unknown) => {
  expect([hasTokens(value), isKnown(value)]).toEqual([unknown, !unknown]);
});

test("what is not known in a value, and where", () => {
  expect(unknownLeaves({ a: [1, text], b: { c: `x${number}`, d: "y" }, e: list, f: null })).toEqual([
    { path: ["a", 1], leaf: text },
    { path: ["b", "c"], leaf: expect.stringMatching(/^x\$\{TfToken/) },
    { path: ["e"], leaf: list },
  ]);
});

test("a text is rendered around them", () => {
  const value = { a: text, b: `x${text}y${other}`, c: number, d: [bare("p"), bare("q"), bare("p")], e: "z" };
  expect(written(renderAroundTokens(value, (one) => JSON.stringify(one)))).toBe(
    '{"a":"${var.t}","b":"x${var.t}y${var.o}","c":"${var.n}","d":["p","q","p"],"e":"z"}',
  );
});

test("JSON is rendered around them, each with its own type", () => {
  const value = { a: text, b: `x${text}y`, c: number, d: list, e: flag, f: text };
  const part = String.raw`${"${"}trimsuffix(trimprefix(jsonencode(var.t), "\""), "\"")}`;
  expect(written(renderJsonAroundTokens(value, (one) => JSON.stringify(one)))).toBe(
    `{"a":\${jsonencode(var.t)},"b":"x${part}y","c":\${jsonencode(var.n)},"d":\${jsonencode(var.l)},` +
      '"e":${jsonencode(var.f)},"f":${jsonencode(var.t)}}',
  );
});

test("a text becomes a template", () => {
  expect(written(escapeTemplate(`\${a} %{b} $a %a ${text}${other} %{ ${text}`))).toBe(
    "$${a} %%{b} $a %a ${var.t}${var.o} %%{ ${var.t}",
  );
  expect(escapeTemplate("a$b%c")).toBe("a$b%c");
});

test("a text becomes an argument of a function", () => {
  expect(written(textArgument('a"\\${b}%{c}'))).toBe(String.raw`a\"\\$${"$"}{b}%%{c}`);
  expect(written(textArgument(text))).toBe("${var.t}");
  expect(written(textArgument(`a\\${text}`))).toBe(String.raw`${"${"}join("", ["a\\", var.t])}`);
  expect(written(argument(number))).toBe("${var.n}");
  expect(written(argument(`a${number}`))).toBe('${join("", ["a", var.n])}');
});

test("the texts that they become", () => {
  expect(written(tokenTexts(`a${text}b${number}`))).toEqual(['${join("", [var.t])}', '${join("", [var.n])}']);
  expect(written(tokenTexts(number))).toEqual(['${join("", [var.n])}']);
});

test("a host in a URL has brackets if it turns out to be an IPv6 address", () => {
  expect([lateHostInUrl("a"), lateHostInUrl("::1")]).toEqual(["a", "[::1]"]);
  expect(written(lateHostInUrl(text))).toBe(
    '${can(regex(":", var.t)) ? join("", ["[", var.t, "]"]) : var.t}',
  );
});

test("what turns out to be a plain value is one", () => {
  const late = (value: unknown): unknown => Lazy.anyValue({ produce: () => value });
  const values = ["a", 1, true, ["a", 1], "${a}", ["a", "${a}"], { a: 1 }, undefined];
  expect(settleTokens(stack, values.map(late)).map((one) => hasTokens(one))).toEqual([
    false,
    false,
    false,
    false,
    true,
    true,
    true,
    true,
  ]);
  expect(settleTokens(stack, { a: late("b"), c: text })).toEqual({ a: "b", c: text });
});

describe("a check takes stand-ins for them", () => {
  const refused = (path: string) => problem("config.bad-text", path, "is bad");

  test("which are the same for the same value, and tried kind by kind", () => {
    const value = {
      ...{ a: text, b: text, c: other, d: number, e: number, f: list, g: list },
      ...{ h: `x${text}`, i: `http://a:${number}`, j: bare("p"), k: bare("q"), l: bare("p") },
    };
    const tried: (typeof value)[] = [];
    const { problems, placeholder } = checkAroundTokens(value, (one) => {
      tried.push(one);
      return tried.length < 3 ? [refused("c"), refused("d[0]"), refused("z")] : [refused("z")];
    });
    const name = (index: number): string => `portico-token-${index}x`;
    const first = {
      ...{ a: name(0), b: name(0), c: name(1), d: name(2), e: name(2), f: name(3), g: name(3) },
      ...{ h: `x${name(0)}`, i: "http://a:30004", j: name(5), k: name(6), l: name(7) },
    };
    const second = { ...first, c: `/${name(1)}`, d: `/${name(2)}` };
    const third = { ...first, c: `http://${name(1)}`, d: `http://${name(2)}` };
    expect(tried).toEqual([first, second, third]);
    expect([problems, placeholder]).toEqual([[refused("z")], third]);
  });

  test("until none is left: what remains against one is for Terraform", () => {
    const tried: unknown[] = [];
    const result = checkAroundTokens({ first: other, a: text, b: 1 }, ({ a }) => {
      tried.push(a);
      return [refused("a"), refused("a[1]"), refused("ab"), refused("b")];
    });
    const name = "portico-token-1x";
    expect(tried).toEqual([
      ...[
        name,
        `/${name}`,
        `http://${name}`,
        `https://${name}`,
        "192.0.2.2",
        20_001,
        2,
        true,
        [name],
        ["192.0.2.2"],
      ],
      `${"0".repeat(63)}1`,
    ]);
    expect(result).toEqual({
      problems: [refused("ab"), refused("b")],
      placeholder: { first: "portico-token-0x", a: `${"0".repeat(63)}1`, b: 1 },
    });
  });
});
