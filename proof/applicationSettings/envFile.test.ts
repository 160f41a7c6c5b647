import fc from "../../testkit/property.js";
import type { ItemChange } from "../../src/host/applicationSettings/edit.js";
import { editEnv, revertEnv } from "../../src/host/applicationSettings/envFile.js";
import { secretEnvLines } from "../../src/host/applicationSettings/kinds.js";
import { applySplices } from "../../src/host/applicationSettings/textEdit.js";
import type { EnvItem } from "../../src/model/index.js";
import { SEED } from "../../testkit/random.js";
import { READERS } from "./envReaders.js";

/** Files of environment variables, edited in place; readers that are written for the test alone read them. */

const HOST: EnvItem = { name: "HOST", value: "files.example.org" };
const ITEMS: readonly EnvItem[] = [HOST, { name: "ON", value: true }, { name: "PORT", value: 8082 }];
const LINES = "HOST=files.example.org\nON=true\nPORT=8082";

/** Reads, edits, and checks what holds of every edit. */
function edited(text: string, items: readonly EnvItem[] = ITEMS): string | undefined {
  const { problems, splices, changes, findings } = editEnv(text, items, ".env");
  if (problems.length > 0) return undefined;
  const after = applySplices(text, splices);
  const again = editEnv(after, items, ".env");
  const wanted = Object.fromEntries(items.map(({ name, value }) => [name, String(value)]));
  const seen = Object.entries(READERS).flatMap(([reader, read]) => {
    const [was, is] = [read(text), read(after)];
    if (was === undefined) return [];
    // The one reader that takes quotes as a part of a value, where the file has the right one in quotes.
    const quoted = findings.filter(({ state }) => state === "same").map(({ item }) => [item, was[item]]);
    const odd = reader === "dockerRun" ? Object.fromEntries(quoted) : {};
    return [{ reader, is, expected: { ...was, ...wanted, ...odd } }];
  });
  expect({ text, seen: seen.map(({ reader, is }) => [reader, is]) }).toEqual({
    text,
    seen: seen.map(({ reader, expected }) => [reader, expected]),
  });
  expect({ text, ...again, findings: [] }).toMatchObject({ text, splices: [], changes: [], problems: [] });
  for (const theirs of ["", "# theirs\n"]) {
    const back = changes.reduceRight((now, change) => revertEnv(now, change).text, theirs + after);
    // What is above the byte order mark would hide it.
    if (theirs === "" || !text.startsWith("\ufeff"))
      expect({ text, back }).toEqual({ text, back: theirs + text });
  }
  return after;
}

test.each<[what: string, before: string, after: string]>([
  ["an empty file", "", `${LINES}\n`],
  ["no line end", "A=1", `A=1\n${LINES}`],
  ["carriage returns", "A=1\r\nHOST=x\r\n", "A=1\r\nHOST=files.example.org\r\nON=true\r\nPORT=8082\r\n"],
  ["the last counts", `HOST=1\n${LINES.replace("HOST=files", "HOST=")}`, `HOST=1\n${LINES}`],
  [
    "in quotes, and equal",
    `HOST='files.example.org'\nON="true"\nPORT=8082\n`,
    `HOST='files.example.org'\nON="true"\nPORT=8082\n`,
  ],
  ["in quotes, and not equal", `HOST="a\\"b"\nON='x'\nPORT=\n`, `${LINES}\n`],
  [
    "blanks in front and behind",
    "  HOST=a  \n\tON=x\t\nPORT=1 2\n",
    "  HOST=files.example.org\n\tON=true\nPORT=8082\n",
  ],
  ["a comment", "#HOST=a\n # ON='\n", `#HOST=a\n # ON='\n${LINES}\n`],
  [
    "values of others",
    `A="b\nc"\nB='it'\n${LINES}\nC=d\\e\nD=a'b"c\n`,
    `A="b\nc"\nB='it'\n${LINES}\nC=d\\e\nD=a'b"c\n`,
  ],
  ["other names", "MYHOST=a\nHOST_=b\nhost=c\n", `MYHOST=a\nHOST_=b\nhost=c\n${LINES}\n`],
  [
    "a byte order mark above",
    "\ufeff# c\nHOST=a\n",
    "\ufeff# c\nHOST=files.example.org\nON=true\nPORT=8082\n",
  ],
  ["an odd one that a later one overrides", `export HOST=a\n${LINES}\n`, `export HOST=a\n${LINES}\n`],
])("%s", (_what, before, after) => expect(edited(before)).toBe(after));

test.each<[what: string, text: string, line: number, words: RegExp]>([
  ["exported", "HOST=a\nexport HOST=a\n", 2, /exported/],
  ["a colon", "HOST: a\n", 1, /not set with `=`/],
  ["a name alone", "\nHOST\n", 2, /not set with `=`/],
  ["a blank before the sign", "HOST =a\n", 1, /blanks/],
  ["a blank behind the sign", "HOST=\ta\n", 1, /blanks/],
  ["a blank of another kind", "\u00a0HOST=a\n", 1, /blanks/],
  ["a comment behind a value", "HOST=a # b\n", 1, /comment/],
  ["a comment behind quotes", "HOST='a' # b\n", 1, /behind its quotes/],
  ["another one behind quotes", `A=1\nHOST="a" B=2\n`, 2, /behind its quotes/],
  ["quotes next to each other", `HOST="a"'b'\n`, 1, /behind its quotes/],
  ["a quote that is open", "HOST='a\nB=1\n", 1, /continue on the next line/],
  ["a value of several lines", `HOST="a\nb"\n`, 1, /continue on the next line/],
  ["a backslash at the end", "HOST=a\\\nB=1\n", 1, /continue on the next line/],
  ["below an open quote", `A="b\nHOST=a\n`, 2, /part of the value above/],
  ["in a value", `A='b\nHOST=a\n'\n`, 2, /part of the value above/],
  ["below a backslash", "A=b\\\nHOST=a\n", 2, /part of the value above/],
  ["below a comment with a backslash", "# b\\\nHOST=a\n", 2, /part of the value above/],
  ["below a quote that only one reader closes", `A='b\\'\nHOST=a\n`, 2, /part of the value above/],
  ["behind quotes", `HOST=a\nA="b" HOST=c\n`, 2, /part of the value above/],
  ["the end, in an open quote", "A=1\nB='x\n", 2, /consider unfinished/],
  ["the end, below a backslash", "B=x\\", 1, /consider unfinished/],
  ["the end, below a comment with a backslash", "A=1\n# b\\\n", 2, /consider unfinished/],
  ["below a byte order mark", "\ufeffHOST=a\n", 1, /byte order mark/],
  ["a carriage return", "A=1\rHOST=a\n", 1, /carriage return/],
  ["NUL", "A=1\n\0", 2, /NUL/],
])("refused with its line: %s", (_what, text, line, words) => {
  const { problems, findings } = editEnv(text, [HOST], ".env");
  expect(problems.map(({ path, message }) => [path, message])).toEqual([
    [`.env:${line}`, expect.stringMatching(words)],
  ]);
  expect(findings).toMatchObject([{ item: "HOST", state: "refused" }]);
});

test("generated files: an edit, another one, and an undo", () => {
  const words = [
    ..."HOST=,ON=,PORT=,A=,B,=,:,'a',\"b\",',\",\\,#, #, ,\t,export ,c,;,http://x,true".split(","),
    ...Array.from({ length: 8 }, () => "\n"),
  ];
  const texts = fc
    .tuple(fc.array(fc.constantFrom(...words), { maxLength: 16 }), fc.constantFrom("\n", "\r\n"))
    .map(([parts, end]) => parts.join("").replaceAll("\n", end));
  const all = fc.sample(texts, { numRuns: 2_000, seed: SEED });
  expect(all.filter((text) => edited(text) !== undefined).length).toBeGreaterThan(400);
});

test.each<[what: string, before: string, from: string | null, after: string, state: object]>([
  ["of a value that got quotes", "HOST='b'\n", "a", "HOST=a\n", { state: "reverted" }],
  ["of one that is not the last", "HOST=b\nHOST=c\n", "a", "HOST=a\nHOST=c\n", { state: "reverted" }],
  ["of what was changed since", "A=1\nHOST=c\n", "a", "A=1\nHOST=c\n", { state: "changed", line: 2 }],
  ["of what nobody could edit now", "export HOST=b\n", "a", "export HOST=b\n", { state: "changed", line: 1 }],
  ["of what was changed back", "HOST='a'\n", "'a'", "HOST='a'\n", { state: "gone" }],
  ["of what was removed", "A=b\n", null, "A=b\n", { state: "gone" }],
])("an undo %s", (_what, before, from, text, outcome) => {
  const change: ItemChange = { name: "HOST", from, to: "b" };
  expect(revertEnv(before, change)).toEqual({ text, ...outcome });
});

test("lines that may contain a secret are found", () => {
  const text = `A=1\nDB_PASS=x\nJWT_PRIVATE_KEY="a\nb\n"\nB=1\n# a token\nC='mysql://u:p@h/'\nKEYBOARD=1\nA="\nSECRET\nb\n`;
  expect([...secretEnvLines(text)].sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 7, 8, 10, 11, 12]);
});
