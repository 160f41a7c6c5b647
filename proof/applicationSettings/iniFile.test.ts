import fc from "../../testkit/property.js";
import type { ItemChange } from "../../src/host/applicationSettings/edit.js";
import { editIni, revertIni } from "../../src/host/applicationSettings/iniFile.js";
import { type IniItem, itemLabel } from "../../src/model/index.js";
import { secretIniLines } from "../../src/host/applicationSettings/kinds.js";
import { applySplices } from "../../src/host/applicationSettings/textEdit.js";
import { HOST_PORT, parseIni, parseKeyFile, URL_ITEM } from "./oracle.js";
import { SEED } from "../../testkit/random.js";
import { cpuMs } from "../../testkit/growth.js";

/** INI files, edited in place; Python's configparser and GKeyFile read them. */

const SERVICE = "https://files.example.org/sync";
const URL_LINE = `SERVICE_URL = ${SERVICE}`;

function edited(text: string, items: readonly IniItem[]): string {
  const { problems, splices } = editIni(text, items, "c.conf");
  expect(problems).toEqual([]);
  return applySplices(text, splices);
}

/** What, items, and a file in which «A→B» is what was there, and what comes in its place. */
const MARKED: readonly [string, readonly IniItem[], string][] = [
  ["empty file", URL_ITEM, `«→[General]\n${URL_LINE}\n»`],
  ["no section", URL_ITEM, `[Other]\nA = 1«→\n\n[General]\n${URL_LINE}»`],
  ["no section, blank line at the end", URL_ITEM, `[Other]\n\n«→[General]\n${URL_LINE}\n»`],
  [
    "no key: behind the last of its section",
    URL_ITEM,
    `[General]\nID = 1\n«→${URL_LINE}\n»\n# about\n[Other]\n`,
  ],
  ["empty section", URL_ITEM, `[General]\n«→${URL_LINE}\n»[Other]\n`],
  [
    "commented out is not set",
    URL_ITEM,
    `[General]\n«→${URL_LINE}\n»#SERVICE_URL = http://x\n; SERVICE_URL = y\n`,
  ],
  ["spacing and the rest kept", URL_ITEM, `[General]\n  SERVICE_URL  =\t«http://x \t→${SERVICE}»\n\tID=1\n`],
  [
    "a comment behind a value is a part of it",
    URL_ITEM,
    `[General]\nSERVICE_URL=«http://x # y→${SERVICE}»\n`,
  ],
  ["empty value", URL_ITEM, `[General]\nSERVICE_URL =«→${SERVICE}»\n`],
  ["twice: the last wins", URL_ITEM, `[General]\nSERVICE_URL = a\nSERVICE_URL = «b→${SERVICE}»\n`],
  ["section twice", URL_ITEM, `[General]\nSERVICE_URL = a\n[X]\n[General]\nSERVICE_URL = «b→${SERVICE}»\n`],
  ["another section's key", URL_ITEM, `[Other]\nSERVICE_URL = a\n[General]\n«→${URL_LINE}\n»`],
  [
    "section in other letters is another one",
    URL_ITEM,
    `[general]\nSERVICE_URL = a\n«→\n[General]\n${URL_LINE}\n»`,
  ],
  [
    "a value in brackets is not a section",
    URL_ITEM,
    `[General]\nA = [Other]\nSERVICE_URL = «b→${SERVICE}»\n`,
  ],
  ["CRLF", URL_ITEM, `[General]\r\nSERVICE_URL = «a→${SERVICE}»\r\n[X]\r\n`],
  ["CRLF, new", URL_ITEM, `[General]\r\nID = a\r\n«→${URL_LINE}\r\n»[X]\r\n`],
  ["one there, one not", HOST_PORT, "[fileserver]\nport=«9→8082\nhost = 127.0.0.1»\n\n[database]\n"],
  ["as wanted", HOST_PORT, "[fileserver]\nport = 8082\nhost=127.0.0.1"],
  ["byte order mark", HOST_PORT, "\ufeff[fileserver]\nport = 8082\nhost=«1→127.0.0.1»"],
  [
    "values over several lines elsewhere",
    URL_ITEM,
    `[General]\nA = 1\n  2\n\n  3\n«→${URL_LINE}\n»[X]\nB = 1\n  C = 2\n`,
  ],
  [
    "indented less than the key above, but more than a comment",
    URL_ITEM,
    `[General]\n  A = 1\n# c\n SERVICE_URL = «a→${SERVICE}»\n`,
  ],
];
const MARKS = /«([^→]*)→([^»]*)»/;
const EDITS = MARKED.map(
  ([what, items, text]) => [what, text.replace(MARKS, "$1"), items, text.replace(MARKS, "$2")] as const,
);

test("edits: both readers see what is wanted, and nothing else changes", () => {
  const after = EDITS.map(([what, text, items, expected]) => {
    const result = edited(text, items);
    expect({ what, result }).toEqual({ what, result: expected });
    const { findings, notes: _notes, ...again } = editIni(result, items, "c.conf");
    expect({ what, ...again }).toEqual({ what, splices: [], changes: [], problems: [] });
    expect(findings.map(({ item, state }) => [item, state])).toEqual(
      items.map((one) => [itemLabel(one), "same"]),
    );
    return result;
  });
  const python = parseIni(after);
  const glib = parseKeyFile([...after, ...EDITS.map(([, text]) => text)]);
  for (const [i, [what, , items]] of EDITS.entries()) {
    for (const { section, name, value } of items) {
      const wanted = String(value);
      expect({ what, ...python[i] }).toMatchObject({ [section]: { [name.toLowerCase()]: wanted } });
      // Byte order marks and values of several lines it refuses, with or without our edit.
      const readable = glib[i + EDITS.length] !== undefined;
      expect({ what, readable: glib[i] !== undefined }).toEqual({ what, readable });
      if (readable) expect({ what, ...glib[i] }).toMatchObject({ [section]: { [name]: wanted } });
    }
  }
});

test("a line of blanks costs no more than its length", () => {
  const odd = `[General]\na${" ".repeat(300_000)}b\n`;
  // Minutes, if a blank is looked at again for each one before it.
  const ms = cpuMs(5_000, () => expect(edited(odd, URL_ITEM)).toBe(`${odd}${URL_LINE}\n`));
  expect(ms).toBeLessThan(5_000);
});

describe("an undo", () => {
  const SET: ItemChange = { section: "General", name: "SERVICE_URL", from: "a", to: "b" };
  const NEW: ItemChange = { ...SET, from: null, header: "added" };
  const APART: ItemChange = { ...NEW, header: "added apart" };
  const [reverted, gone] = [{ state: "reverted" }, { state: "gone" }];
  test.each<[what: string, before: string, change: ItemChange, after: string, outcome: object]>([
    ["of a value", "[General]\nSERVICE_URL = b \n", SET, "[General]\nSERVICE_URL = a\n", reverted],
    [
      "of the last of two",
      "[General]\nSERVICE_URL=b\nSERVICE_URL=b\n",
      SET,
      "[General]\nSERVICE_URL=b\nSERVICE_URL=a\n",
      reverted,
    ],
    [
      "of one that is not the last",
      "[General]\nSERVICE_URL=b\nSERVICE_URL=c\n",
      SET,
      "[General]\nSERVICE_URL=a\nSERVICE_URL=c\n",
      reverted,
    ],
    [
      "of what was changed since",
      "[General]\nSERVICE_URL=d\nSERVICE_URL=c\n",
      SET,
      "",
      { state: "changed", line: 3 },
    ],
    ["of what was changed back", "[General]\nSERVICE_URL=a \n", { ...SET, from: "a\t" }, "", gone],
    ["of what was removed", "[General]\nX=b\n[Y]\nSERVICE_URL=b\n", SET, "", gone],
    ["of a line", "[General]\nSERVICE_URL=b\nX=1\n", { ...SET, from: null }, "[General]\nX=1\n", reverted],
    [
      "of the only line of a section that was there",
      "[General]\nSERVICE_URL=b\n",
      { ...SET, from: null },
      "[General]\n",
      reverted,
    ],
    ["of a section", "\ufeff[General]\nSERVICE_URL=b\n", NEW, "\ufeff", reverted],
    ["of a section below an empty line", "A = 1\n\n[General]\nSERVICE_URL=b\n", NEW, "A = 1\n\n", reverted],
    ["of one that is apart", "A = 1\n\n[General]\nSERVICE_URL=b\n\n[X]\n", APART, "A = 1\n\n[X]\n", reverted],
    ["of one that is apart no more", "A = 1\n[General]\nSERVICE_URL=b\n", APART, "A = 1\n", reverted],
    ["of one at the begin by now", "[General]\nSERVICE_URL=b\n", APART, "", reverted],
    ["of one that has more in it", "[General]\nSERVICE_URL=b\n# c\n", NEW, "[General]\n# c\n", reverted],
    [
      "of a section at the end",
      "A = 1\n\n[General]\nSERVICE_URL=b",
      { ...APART, lineEndAdded: true },
      "A = 1",
      reverted,
    ],
  ])("%s", (_what, before, change, after, outcome) => {
    const text = outcome === reverted ? after : before;
    expect(revertIni(before, change)).toEqual({ text, ...outcome });
  });
});

describe("refused with its line", () => {
  test.each<[string, string, number, RegExp]>([
    ["other letters", "[General]\nservice_url = a\n", 2, /not every program reads/],
    ["colon", "[General]\nSERVICE_URL : a\n", 2, /set with `:`/],
    ["several lines", "[General]\nSERVICE_URL = a\n\n# c\n  b\n", 2, /several lines/],
    ["part of the value above", "[General]\nA = 1\n SERVICE_URL = a\n", 3, /as part of the value above/],
    [
      "part of the value above, then plain",
      "[General]\nA = 1\n SERVICE_URL = a\nSERVICE_URL = b\n",
      3,
      /as part of/,
    ],
    [
      "part of a value of several lines",
      "[General]\nA = 1\n  2\n  SERVICE_URL = a\n",
      4,
      /as part of the value above/,
    ],
    ["a new key above an indented line", "[General]\n [X]\n", 2, /above an indented line/],
    ["a header in a value", "[X]\nA = 1\n [General]\n", 3, /header/],
    ["a header with more on its line", "[General] ; x\nA = 1\n", 1, /header/],
    ["a header with what only some take for a line end", "[General]\u2028x\nA = 1\n", 1, /header/],
    ["lone carriage return", "[General]\nA = 1\rB = 2\n", 2, /carriage return/],
    ["NUL", "[General]\n\n\0", 3, /NUL/],
  ])("%s", (_what, text, line, words) => {
    const { problems } = editIni(text, URL_ITEM, "c.conf");
    expect(problems.map((p) => [p.path, p.message])).toEqual([
      [`c.conf:${line}`, expect.stringMatching(words)],
    ]);
  });
});

test("lines that may contain a secret are found", () => {
  const text =
    "[database]\nuser = a\npassword = b\n  c\nhost = d\n# secret\nkey = 1\nurl = mysql://u:p@h/\nn = 1\nkeyboard = 1\nurl = redis://:p@h/\nurl = ftp://u:@h/\nAPI_TOKEN = 1\n";
  expect([...secretIniLines(text)]).toEqual([3, 4, 6, 7, 8, 11, 12, 13]);
});

test("generated files: both readers see the wanted items and everything else as before", () => {
  const key = fc.constantFrom("SERVICE_URL", "service_url", "ID", "NAME", "host");
  const line = fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(
          fc.constantFrom("", "", "", " ", "\t"),
          key,
          fc.constantFrom(" = ", "=", " =", ":"),
          fc.constantFrom("", "a", "http://h/x # y", "1 = 2", `${URL_ITEM[0]!.value} `),
        )
        .map((p) => p.join("")),
    },
    { weight: 3, arbitrary: fc.constantFrom("[General]", "[Other]", "[general]") },
    {
      weight: 1,
      arbitrary: fc.constantFrom("", "# SERVICE_URL = x", "; c = 1", "A = b  ", "  more", "   # c"),
    },
  );
  const file = fc.tuple(fc.array(line, { maxLength: 8 }), fc.constantFrom("\n", "\r\n"), fc.boolean());
  const texts = file.map(([lines, end, last]) => `[First]${end}${lines.join(end)}${last ? end : ""}`);
  const edits = fc.sample(texts, { numRuns: 1_000, seed: SEED }).flatMap((text) => {
    const { problems, splices } = editIni(text, URL_ITEM, "c.conf");
    return problems.length > 0 ? [] : [{ text, after: applySplices(text, splices) }];
  });
  const both = edits.flatMap((e) => [e.text, e.after]);
  const [python, glib] = [parseIni(both), parseKeyFile(both)];
  const wanted = URL_ITEM[0]!.value;
  const faults = edits.filter(({ after }, i) => {
    const [old, now] = [python[2 * i]!, python[2 * i + 1]!];
    const general = { ...(old["General"] as object), service_url: wanted };
    const pythonSame = "error" in old || sorted(now) === sorted({ ...old, General: general });
    const [was, is] = [glib[2 * i], glib[2 * i + 1]];
    const group = { ...was?.["General"], SERVICE_URL: wanted };
    const glibSame = was === undefined || sorted(is) === sorted({ ...was, General: group });
    return !pythonSame || !glibSame || editIni(after, URL_ITEM, "").splices.length > 0;
  });
  expect(
    faults.map((f) => ({ seed: SEED, ...f })).sort((a, b) => a.text.length - b.text.length)[0],
  ).toBeUndefined();
  expect(python.filter((r) => !("error" in r)).length).toBeGreaterThan(150);
  expect(glib.filter((r) => r !== undefined).length).toBeGreaterThan(150);
});

test("after an undo a file is again what it was, to the byte; what was added since stays", () => {
  const end = fc.constantFrom("\n", "\r\n");
  const line = fc.constantFrom(
    "[General]",
    "[fileserver]",
    "host = a",
    "SERVICE_URL = x",
    "port=1",
    "# c",
    "",
    "A = 1",
  );
  const file = fc.tuple(fc.array(line, { maxLength: 6 }), end, fc.boolean());
  const texts = file.map(([lines, e, last]) => lines.join(e) + (last && lines.length > 0 ? e : ""));
  let edits = 0;
  for (const text of fc.sample(texts, { numRuns: 1_000, seed: SEED })) {
    for (const items of [URL_ITEM, HOST_PORT]) {
      const { problems, splices, changes } = editIni(text, items, "c.conf");
      if (problems.length > 0) continue;
      edits++;
      const after = applySplices(text, splices);
      const back = (from: string): string =>
        changes.reduceRight((now, change) => revertIni(now, change).text, from);
      // Above everything, where it belongs to no section of ours.
      for (const theirs of ["", "# theirs\n"]) {
        const undone = back(theirs + after);
        if (undone !== theirs + text) expect([SEED, undone]).toEqual([SEED, theirs + text]);
      }
    }
  }
  expect(edits).toBeGreaterThan(500);
});

/** The same text for the same sections and keys in whatever order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, v: unknown) =>
    typeof v === "object" && v !== null
      ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  );
}
