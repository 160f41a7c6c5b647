import { applySplices } from "../../src/host/applicationSettings/textEdit.js";
import { editPython } from "../../src/host/applicationSettings/pythonFile.js";
import { evaluate, WEB_ITEMS } from "./oracle.js";
import { cpuMs } from "../../testkit/growth.js";

/** Trusted origins: those of an earlier edit go, the wanted one comes, and those of others stay with their comments. */

const ITEM = "CSRF_TRUSTED_ORIGINS";
/** `o` and `p` are ours and no longer wanted, `w` is wanted, `a` and `b` are somebody else's. */
const ORIGINS = {
  o: "'https://old.example.org'",
  p: "'https://older.example.org'",
  w: "'https://files.example.org'",
  a: "'https://a.example.org'",
  b: "'https://b.example.org'",
};
const OURS = [ORIGINS.o, ORIGINS.p].map((literal) => literal.slice(1, -1));

const written = (list: string): string =>
  `${ITEM} = ${list.replace(/[opwab]/g, (letter) => ORIGINS[letter as keyof typeof ORIGINS])}\nB = 1\n`;

const CASES: readonly (readonly [what: string, before: string, after: string])[] = [
  ["nothing of ours", "[a, w]", "[a, w]"],
  ["on a line", "[a, o, w]", "[a, w]"],
  ["without blanks", "[a,o,w]", "[a,w]"],
  ["a blank in front of the comma", "[a , o, w]", "[a, w]"],
  ["tabs around the comma", "[a\t,\to, w]", "[a, w]"],
  ["the first", "[o, a, w]", "[a, w]"],
  ["the first two", "[o,p,  a, w]", "[a, w]"],
  ["the last", "[w, o]", "[w]"],
  ["the last, without blanks", "[w,o]", "[w]"],
  ["the last, with a comma", "[w, o,]", "[w,]"],
  ["neighbours", "[w, o, p, a]", "[w, a]"],
  ["apart", "[w, o, a, p]", "[w, a]"],
  ["the only one", "[o]", "[w]"],
  ["the only one, with a comma", "[o , ]", "[w ]"],
  ["all", "[ o,\n  p, # !\n]", "[w  # !\n]"],
  ["all, the comma after a comment", "[o # !\n  ,\n]", "[w\n]"],
  ["a line of its own", "[\n  a,\n  o,\n  w,\n]", "[\n  a,\n  w,\n]"],
  ["a line that is not indented", "[\na,\no,\nw,\n]", "[\na,\nw,\n]"],
  ["a line of its own, blanks at its end", "[\n  a,\n\to, \t\n  w,\n]", "[\n  a,\n  w,\n]"],
  ["a line of its own, tabs and blanks before it", "[\n  a,\n \t o,\n  w,\n]", "[\n  a,\n  w,\n]"],
  ["lines of their own", "[\n  a,\n  o,\n  p,\n  w,\n]", "[\n  a,\n  w,\n]"],
  ["the first lines", "[\n  o,\n  p,\n  w,\n]", "[\n  w,\n]"],
  ["the last line", "[\n  w,\n  o\n]", "[\n  w,\n]"],
  ["a line with a comment", "[\n  a,\n  o,  # !\n  w,\n]", "[\n  a,\n    # !\n  w,\n]"],
  ["a comment in front", "[a,  # !\n  o, w]", "[a,  # !\n   w]"],
  ["a line with others", "[\n  a,\n  o, w,\n]", "[\n  a,\n   w,\n]"],
  ["neighbours on one line", "[\n  w,\n  o, p,\n  a,\n]", "[\n  w,\n  a,\n]"],
  ["neighbours in front of others", "[\n  w,\n  o, p, a,\n]", "[\n  w,\n   a,\n]"],
  ["commas in front", "[\n  a\n  , o\n  , w\n]", "[\n  a\n  ,  w\n]"],
  ["commas in front, the last", "[\n  w\n  , o\n]", "[\n  w\n  , \n]"],
  ["a comment in front of a comma", "[\n  a,\n  o # !\n  , w\n]", "[\n  a,\n   w\n]"],
  ["carriage returns", "[\r\n  a,\r\n  o,\r\n  w,\r\n]", "[\r\n  a,\r\n  w,\r\n]"],
  ["added after the last that stays", "[\n  a,\n  o,\n]", "[\n  a, w,\n]"],
  ["added where one goes", "[a, o]", "[a, w]"],
  ["added to those of others", "[o, a,  b]", "[a,  b, w]"],
  ["twice", "[o, w, o]", "[w]"],
];

function edited(before: string): string {
  const text = `SECRET_KEY = 'k'\n${written(before)}`;
  const { problems, splices, changes, findings } = editPython(text, WEB_ITEMS, "settings.py", (name) =>
    name === ITEM ? OURS : [],
  );
  expect(problems).toEqual([]);
  const changed = splices.length > 0 && changes.some(({ name }) => name === ITEM);
  expect(findings.find(({ item }) => item === ITEM)!.state).toBe(changed ? "different" : "same");
  expect(changed).toBe(before !== "[a, w]");
  return applySplices(text, splices);
}

test.each(CASES)("%s", (_what, before, after) => {
  const result = edited(before);
  expect(result.slice(result.indexOf(ITEM))).toBe(written(after));
});

test("blanks without end cost no more than their length", () => {
  // Minutes, if a blank is looked at again for each one before it.
  const ms = cpuMs(5_000, () => {
    const result = edited(`[a,\n${" ".repeat(300_000)}o,\nw]`);
    expect(result.slice(result.indexOf(ITEM))).toBe(written("[a,\nw]"));
  });
  expect(ms).toBeLessThan(5_000);
});

test("Python reads the same", () => {
  for (const [i, seen] of evaluate(CASES.map(([, before]) => edited(before))).entries()) {
    const [what, , after] = CASES[i]!;
    const stay = [...after].flatMap((letter) =>
      letter in ORIGINS ? [ORIGINS[letter as keyof typeof ORIGINS].slice(1, -1)] : [],
    );
    expect({ what, ...seen }).toMatchObject({ what, names: { [ITEM]: stay, B: 1 } });
  }
});
