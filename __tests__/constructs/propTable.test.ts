import { TerraformVariable, Token } from "cdktf";
import {
  any,
  choice,
  either,
  fields,
  flag,
  instance,
  judged,
  listOf,
  number,
  partial,
  produced,
  record,
  refuseId,
  refuseOptions,
  required,
  text,
  without,
} from "../../src/constructs/props/propTable.js";
import { Host } from "../../src/index.js";
import { newStack, problemsOf } from "../../proof/kit/stacks.js";

/** What is said of props of every kind. */

const stack = newStack();
const variable = new TerraformVariable(stack, "v", { type: "string" });
const host = new Host(stack, "host", { address: "192.0.2.10" });
class Base {}
class Derived extends Base {}

const INNER = { name: required(text), size: number };
const TABLE = {
  text,
  number,
  flag,
  list: listOf(text),
  choice: choice("on", true),
  fields: fields<{ name: string; size?: number }>(INNER),
  instance: instance("Base", "a Base", "Make a Base."),
  bare: instance("Base", "a Base"),
  either: either(choice(false), listOf(text)),
  simple: either(choice(false), text),
  produced: produced(text),
  any,
  record,
};
type Props = { readonly [K in keyof typeof TABLE]?: unknown };

const said = (props: unknown): unknown[] => {
  let found: readonly object[] = [];
  try {
    refuseOptions<Props>("Made.by", props as Props, TABLE);
  } catch {
    found = problemsOf(() => refuseOptions<Props>("Made.by", props as Props, TABLE));
  }
  return found.map((one) => Object.values(one));
};

test.each<[Props]>([
  [{}],
  [{ text: "", number: 0, flag: false, list: [], choice: true, fields: { name: "" }, record: {} }],
  [{ text: variable.stringValue, number: variable.numberValue, list: [variable.stringValue], choice: "on" }],
  [{ number: variable.value, fields: { name: "a", size: Token.asNumber("${a}") } }],
  [{ instance: new Base(), bare: new Derived(), either: false, produced: () => "", any: [null, new Base()] }],
  [{ either: ["a"], simple: "a", produced: "a", any: variable.listValue, record: Object.create(null) }],
])("%#: props that fit", (props) => {
  expect(said(props)).toEqual([]);
});

const LIST = "Give a list: in brackets, also for one item.";
const KNOWN = Object.keys(TABLE).join(", ");
/** @param called what it is not, where what is allowed is longer */
const wrong = (
  at: string,
  received: string,
  allowed: string,
  fix = `Give ${allowed}.`,
  called = allowed,
): string[] => ["config.wrong-type", `Made.by.${at}`, `is not ${called}`, received, allowed, fix];

test.each<[unknown, string[][]]>([
  [
    undefined,
    [
      [
        "config.missing-field",
        "Made.by",
        "has no props",
        `an object with ${KNOWN}`,
        `Give an object with ${KNOWN}.`,
      ],
    ],
  ],
  ...[null, "a", [1]].map((props): [unknown, string[][]] => [
    props,
    [
      [
        "config.wrong-type",
        "Made.by",
        "is not given an object",
        JSON.stringify(props),
        `an object with ${KNOWN}`,
        `Give an object with ${KNOWN}.`,
      ],
    ],
  ]),
  [{ txt: 1 }, [["config.unknown-field", "Made.by.txt", "does not exist", KNOWN, "Did you mean `text`?"]]],
  [
    { zzzzzz: 1 },
    [
      [
        "config.unknown-field",
        "Made.by.zzzzzz",
        "does not exist",
        KNOWN,
        "Remove the field or correct its spelling.",
      ],
    ],
  ],
  [{ text: 1 }, [wrong("text", "1", "a string")]],
  [{ text: null }, [wrong("text", "null", "a string")]],
  [{ number: "1" }, [wrong("number", '"1"', "a number")]],
  [{ number: variable }, [wrong("number", '"an instance of TerraformVariable"', "a number")]],
  [{ flag: variable.booleanValue }, [expect.arrayContaining(["config.wrong-type", "Made.by.flag"]) as never]],
  [{ list: "a" }, [wrong("list", '"a"', "a list, each item a string", LIST, "a list")]],
  [
    { list: ["a", 1, undefined] },
    [
      wrong("list[1]", "1", "a string"),
      ["config.missing-field", "Made.by.list[2]", "is missing", "a string", "Give a string."],
    ],
  ],
  [
    { list: variable.listValue },
    [
      [
        "config.wrong-type",
        "Made.by.list",
        "is not known yet",
        '"a list that Terraform knows at apply"',
        "a list of items",
        "Name the items one by one: `[Fn.element(list, 0), Fn.element(list, 1)]`.",
      ],
    ],
  ],
  [
    { either: variable.listValue },
    [
      [
        "config.wrong-type",
        "Made.by.either",
        "is not known yet",
        '"a list that Terraform knows at apply"',
        "a list of items",
        "Name the items one by one: `[Fn.element(list, 0), Fn.element(list, 1)]`.",
      ],
    ],
  ],
  [
    { choice: "off" },
    [
      [
        "config.not-one-of",
        "Made.by.choice",
        "is not one of the values allowed here",
        '"off"',
        '"on", true',
        'Give one of "on", true.',
      ],
    ],
  ],
  [{ fields: [] }, [wrong("fields", "[]", "an object with name, size", "Give an object.", "an object")]],
  [
    { fields: host },
    [wrong("fields", '"an instance of Host"', "an object with name, size", "Give an object.", "an object")],
  ],
  [
    { fields: { size: "" } },
    [
      ["config.missing-field", "Made.by.fields.name", "is missing", "a string", "Give a string."],
      wrong("fields.size", '""', "a number"),
    ],
  ],
  [{ instance: "a" }, [wrong("instance", '"a"', "a Base", "Make a Base.")]],
  [{ bare: { a: 1 } }, [wrong("bare", '{"a":1}', "a Base")]],
  [{ bare: new (class {})() }, [wrong("bare", "{}", "a Base")]],
  [{ bare: () => 1 }, [wrong("bare", '"a function"', "a Base")]],
  [
    { either: true },
    [
      wrong(
        "either",
        "true",
        "false, or a list, each item a string",
        "Give false, or a list.",
        "false, or a list",
      ),
    ],
  ],
  [{ either: [1] }, [wrong("either[0]", "1", "a string")]],
  [{ produced: 1 }, [wrong("produced", "1", "a string, or a function that gives it")]],
  [{ record: "" }, [wrong("record", '""', "an object")]],
  ...[
    [variable, ""],
    [[1, variable], "[1]"],
    [{ a: { b: variable } }, ".a.b"],
    [Object.assign(Object.create(null) as object, { a: [variable] }), ".a[0]"],
  ].map(([value, at]): [unknown, string[][]] => [
    { any: value },
    [
      [
        "config.wrong-type",
        `Made.by.any${at as string}`,
        "is a construct",
        '"an instance of TerraformVariable"',
        "a value, or a reference to one",
        "Give an attribute of it: of a variable `stringValue`, `numberValue` or `value`, of a resource `id` and others.",
      ],
    ],
  ]),
])("%#: props that do not fit", (props, problems) => {
  expect(said(props)).toEqual(problems);
});

test("what has to be given", () => {
  const table = { a: required(text), b: judged };
  const missing = (made: () => void): string[] => problemsOf(made).map(({ path }) => path);
  expect(missing(() => refuseOptions("Made.by", {} as { a: string; b: string }, table))).toEqual([
    "Made.by.a",
  ]);
  expect(() => refuseOptions("Made.by", {}, partial(table))).not.toThrow();
  expect(Object.keys(without(table, "a"))).toEqual(["b"]);
});

test("an id is a text", () => {
  expect(() => refuseId(host, "add", "a")).not.toThrow();
  for (const id of ["", undefined, 1, { port: 1 }])
    expect(
      problemsOf(() => refuseId(host, "add", id)).map(({ code, path, fix }) => [code, path, fix]),
    ).toEqual([["config.wrong-type", "stack/host.add", "Write `add(id, props)`."]]);
});
