import { editPython } from "../../src/host/applicationSettings/pythonFile.js";
import { evaluate, WEB_ITEMS } from "./oracle.js";

/** Values that stand in the settings file, as `portico settings show` has them; Python says what they are. */

const found = (literal: string): string | undefined =>
  editPython(`MEDIA_URL = ${literal}\n`, WEB_ITEMS, "s.py").findings.find(({ item }) => item === "MEDIA_URL")!
    .found;

test("a text has the value that Python gives it", () => {
  const literals = ["'a'", '"a"', "u'a'", 'U"a"', "'é'", "''", `'"'`, `"it's"`, "'#'  # c", "\\\n  'a'"];
  for (const [i, seen] of evaluate(literals.map((literal) => `MEDIA_URL = ${literal}\n`)).entries()) {
    const value = "names" in seen ? seen.names["MEDIA_URL"] : seen.error;
    expect([literals[i], found(literals[i]!)]).toEqual([literals[i], value]);
  }
});

test.each([
  ["True", "True"],
  ["False  # c", "False"],
  ["['a', \"b\", ]", "a, b"],
  ["[\n  'a',  # c\n  u'b'\n]", "a, b"],
  ["[]", ""],
])("%j is shown as %j", (literal, value) => {
  expect(found(literal)).toBe(value);
});

test.each([
  ...[
    "b'a'",
    "rb'a'",
    "r'a'",
    "f'a'",
    String.raw`'\x41'`,
    "'a' 'b'",
    "('a')",
    `"""a"""`,
    "'a',",
    "'a' + 'b'",
  ],
  ...["1", "None", "False,", "True or 1", "()", "str(1)", "'a'; A = 1", "A = 'a'", "'a' if A else 'b'"],
  ...[
    "['a', 1]",
    "['a'] + []",
    "['a'][0]",
    "[['a']]",
    "['a' 'b']",
    "['a',, 'b']",
    "(['a'])",
    "['a' for A in B]",
  ],
])("%s is an expression", (literal) => expect(found(literal)).toBeUndefined());
