import type { ItemChange } from "../../src/host/applicationSettings/edit.js";
import { revertPython } from "../../src/host/applicationSettings/pythonRevert.js";

/** Edits of a Python module are taken back, whatever was done to the file meanwhile. */

const ADDED: ItemChange = { name: "MEDIA_URL", from: null, to: "'/syncmedia/'" };
const LINE = "MEDIA_URL = '/syncmedia/'";

test.each<[what: string, before: string, after: string, change?: Partial<ItemChange>]>([
  ["a line", `A = 1\n${LINE}\nB = 2\n`, "A = 1\nB = 2\n"],
  ["other line ends", `A = 1\r\n${LINE}\r\nB = 2\r\n`, "A = 1\r\nB = 2\r\n"],
  ["lone carriage returns", `A = 1\r${LINE}\rB = 2\r`, "A = 1\rB = 2\r"],
  ["the first line of all", `\ufeff${LINE}\nB = 2\n`, "\ufeffB = 2\n"],
  ["a line with a semicolon", `${LINE} ;\nB = 2\n`, "B = 2\n"],
  ["something after it", `${LINE}; B = 2\nC = 3\n`, "B = 2\nC = 3\n"],
  ["something right after it", `${LINE};B = 2\nC = 3\n`, "B = 2\nC = 3\n"],
  ["a comment after it", `${LINE}  # c\nB = 2\n`, "# c\nB = 2\n"],
  ["something before it", `A = ';'; ${LINE}\nB = 2\n`, "A = ';'\nB = 2\n"],
  ["something right before it", `A = 1;${LINE}\nB = 2\n`, "A = 1\nB = 2\n"],
  ["something on both sides", `A = 1;B = 2;  ${LINE}; C = 3\n`, "A = 1;B = 2; C = 3\n"],
  ["the end", `A = 1\n${LINE}`, "A = 1\n"],
  ["the end, with a line end that came with it", `A = 1\n${LINE}`, "A = 1", { lineEndAdded: true }],
  [
    "the end, with a line end of two that came with it",
    `A = 1\nB = 2\n${LINE}`,
    "A = 1\nB = 2",
    { lineEndAdded: true },
  ],
  [
    "something else that is no assignment",
    `MEDIA_URL += 1\n${LINE}\ndel MEDIA_URL\n`,
    "MEDIA_URL += 1\ndel MEDIA_URL\n",
  ],
  ["the end, with blanks", `A = 1\n${LINE} \t`, "A = 1\n"],
  ["no longer the end", `A = 1\n${LINE}\nB = 2\n`, "A = 1\nB = 2\n", { lineEndAdded: true }],
  ["in other words", `A = 1\nMEDIA_URL = ("/sync" 'media/')\nB = 2\n`, "A = 1\nB = 2\n"],
  ["of two the last one", `${LINE}\nA = 1\n${LINE}\n`, `${LINE}\nA = 1\n`],
  ["of two the one that is ours", `${LINE}\nMEDIA_URL = '/'\n`, "MEDIA_URL = '/'\n"],
  ["a value", `${LINE}  # c\n`, "MEDIA_URL = str(1)  # c\n", { from: "str(1)" }],
  [
    "a value in parentheses",
    "MEDIA_URL = ('/syncmedia/')\n",
    "MEDIA_URL = ('a'\n 'b')\n",
    { from: "'a'\n 'b'" },
  ],
  ["a value whose parentheses have gone", `${LINE}\n`, "MEDIA_URL = ('a'\n 'b')\n", { from: "'a'\n 'b'" }],
  ["a value on lines that are not indented", `${LINE}\n`, "MEDIA_URL = ('a'\n'b')\n", { from: "'a'\n'b'" }],
  ["a value that needs none", `${LINE}\n`, "MEDIA_URL = [\n'a']\n", { from: "[\n'a']" }],
])("an added item: %s", (_what, before, after, change = {}) => {
  expect(revertPython(before, { ...ADDED, ...change })).toEqual({ text: after, state: "reverted" });
});

test.each<[what: string, text: string, line: number | undefined, change?: Partial<ItemChange>]>([
  ["another value", "A = 1\nMEDIA_URL = '/mine/'\n", 2],
  ["an expression", "A = 1\nMEDIA_URL = '/' + A\n", 2],
  ["an empty one", "A = 1\nMEDIA_URL = ''\n", 2],
  ["a file that cannot be read", "A = 1\n\nB = (\n", 3],
  ["nothing of it", "A = 1\n", undefined],
  ["what was done is not known", `${LINE}\n`, 1, { to: "'" }],
  ["what was there before", "A = 1\nMEDIA_URL = ('/old/')\n", undefined, { from: "'/old/'" }],
])("somebody else's stays: %s", (_what, text, line, change = {}) => {
  const state = line === undefined ? { state: "gone" } : { state: "changed", line };
  expect(revertPython(text, { ...ADDED, ...change })).toEqual({ text, ...state });
});

describe("trusted origins", () => {
  const ORIGINS: ItemChange = {
    name: "CSRF_TRUSTED_ORIGINS",
    from: null,
    to: "['https://new']",
    added: ["https://new"],
  };
  const list = (...origins: string[]): string =>
    `A = 1\nCSRF_TRUSTED_ORIGINS = [${origins.map((origin) => `'https://${origin}'`).join(", ")}]\nB = 2\n`;

  test.each<[what: string, before: string, after: string, change?: Partial<ItemChange>]>([
    ["a list that was added", list("new"), "A = 1\nB = 2\n"],
    ["a list with somebody else's", list("theirs", "new"), list("theirs")],
    ["one that was there", list("new"), list(), { from: "[]" }],
    ["one that had gone", list("new"), list("old"), { from: "['https://old']", removed: ["https://old"] }],
    [
      "one that had gone, of a list that we added",
      list("new"),
      list("old"),
      { from: null, removed: ["https://old"] },
    ],
    [
      "one that had gone, of a list that we added and others added to",
      list("theirs", "new"),
      list("theirs", "old"),
      { from: null, removed: ["https://old"] },
    ],
    [
      "one that had gone and came back",
      list("old", "new"),
      list("old"),
      { from: "['https://old']", removed: ["https://old"] },
    ],
    [
      "one that had gone, where nothing came",
      list("theirs"),
      list("theirs", "old"),
      { from: "", added: [], removed: ["https://old"] },
    ],
    ["of two lists the one with ours", list("new") + list("b"), list() + list("b"), { from: "[]" }],
  ])("%s", (_what, before, after, change = {}) => {
    expect(revertPython(before, { ...ORIGINS, ...change })).toEqual({
      text: after,
      state: "reverted",
    });
  });

  test.each<[what: string, text: string, line: number | undefined, change?: Partial<ItemChange>]>([
    ["a list without ours", list("theirs"), undefined],
    ["no list", "A = 1\n", undefined],
    ["an expression", "A = 1\nCSRF_TRUSTED_ORIGINS = f()\n", 2],
    ["the expression that was there", "CSRF_TRUSTED_ORIGINS = f()\n", undefined, { from: "f()" }],
    [
      "an expression, where one had gone",
      "CSRF_TRUSTED_ORIGINS = f()\n",
      1,
      { from: "['https://old']", removed: ["https://old"] },
    ],
  ])("stay: %s", (_what, text, line, change = {}) => {
    const state = line === undefined ? { state: "gone" } : { state: "changed", line };
    expect(revertPython(text, { ...ORIGINS, ...change })).toEqual({ text, ...state });
  });
});
