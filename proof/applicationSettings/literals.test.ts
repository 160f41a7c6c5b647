import { editPython } from "../../src/host/applicationSettings/pythonFile.js";
import { evaluate, WEB_ITEMS } from "./oracle.js";

/** Values that stand in the settings file, as `portico settings show` has them; Python says what they are. */

const found = (literal: string): string | undefined =>
  editPython(`MEDIA_URL = ${literal}\n`, WEB_ITEMS, "s.py").findings.find(({ item }) => item === "MEDIA_URL")!
    .found;

test("a string has the value that Python gives it", () => {
  const literals = [
    String.raw`'\a\b\f\n\r\t\v'`,
    String.raw`'\\\'\"'`,
    String.raw`'\0\7\12\123\1234\8\9'`,
    String.raw`'\x2f\x2F\xe9\xEB'`,
    String.raw`'\u00e9\u00EB\uFFfd'`,
    String.raw`'\U0001f600\U0001F600'`,
    String.raw`'\q\/\-\X41'`,
    "'a\\\nb'",
    "'''a\r\nb\rc\nd'''",
    String.raw`r'\n\''`,
    String.raw`R"\x41"`,
    String.raw`u'\x41'`,
    "U'a'",
    `'a' "b" """c"""`,
    String.raw`('a' r'\b')`,
    "''",
    `"""a"b"""`,
  ];
  for (const [i, result] of evaluate(literals.map((literal) => `MEDIA_URL = ${literal}\n`)).entries()) {
    const literal = literals[i]!;
    const value = "names" in result ? result.names["MEDIA_URL"] : result.error;
    expect({ literal, found: found(literal) }).toEqual({ literal, found: value });
  }
});

test("a code point that does not exist is shown as the last one", () => {
  expect(found(String.raw`'\U00110000'`)).toBe("\u{10ffff}");
});

test.each([
  ["True", "True"],
  ["(False)", "False"],
  ["False", "False"],
  ["False,", undefined],
  ["True or 1", undefined],
  ["['a', \"b\", ]", "a, b"],
  ["[]", ""],
  ["['a', 1]", undefined],
  ["['a',, 'b']", undefined],
  ["['a'] + []", undefined],
  ["['a'][0]", undefined],
  ["[['a']]", undefined],
  ["(['a'])", "a"],
  ["('a',)", undefined],
  ["('a')('b')", undefined],
  ["('a') 'b'", undefined],
  [String.raw`'\x4'`, String.raw`\x4`],
  ["['a'] 'b'", undefined],
  ["(['a'][0])", undefined],
  ["()", undefined],
])("%s is shown as %j", (literal, value) => {
  expect(found(literal)).toBe(value);
});

test.each(["b'a'", "B'a'", "rb'a'", "Br'a'", "f'a'", "F'a'", "rf'a'", String.raw`'\N{BULLET}'`, "1", "None"])(
  "%s is not a plain string",
  (literal) => expect(found(literal)).toBeUndefined(),
);
