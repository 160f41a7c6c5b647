import { applySplices } from "../../src/host/applicationSettings/textEdit.js";
import { editPython } from "../../src/host/applicationSettings/pythonFile.js";
import { revertPython } from "../../src/host/applicationSettings/pythonBlock.js";
import type { PythonItem } from "../../src/model/index.js";
import { ELSEWHERE, evaluate, type Evaluated, wantedFiles, WEB_ITEMS } from "./oracle.js";

/** A Python module and the block of lines in it; what the edit means is asked of the real Python. */

const ITEMS = Object.fromEntries(WEB_ITEMS.map(({ name, value }) => [name, value]));
const edit = (text: string, items = WEB_ITEMS) => editPython(text, items, "settings.py", ELSEWHERE);
const ORIGINS = "CSRF_TRUSTED_ORIGINS";
const THEIRS = `*(globals().get('${ORIGINS}') or ()), `;
const NEW: Readonly<Record<string, string>> = {
  FILE_SERVER_ROOT: "'https://files.example.org/synchttp'",
  SERVE_STATIC: "False",
  MEDIA_URL: "'/syncmedia/'",
  SITE_ROOT: "'/sync/'",
  LOGIN_URL: "'/sync/accounts/login/'",
  COMPRESS_URL: "'/syncmedia/'",
  STATIC_URL: "'/syncmedia/assets/'",
  ENABLE_SETTINGS_VIA_WEB: "False",
  CSRF_TRUSTED_ORIGINS: "['https://files.example.org']",
};
const BEGIN = "# BEGIN Portico (do not edit these lines: the deployment sets them)";
const END = "# END Portico";

/** The block with the items, all but some. */
function block(...without: string[]): string {
  const lines = Object.entries(NEW).filter(([item]) => !without.includes(item));
  return [BEGIN, ...lines.map(([item, value]) => `${item} = ${value}`), END]
    .map((line) => `${line}\n`)
    .join("");
}
/** The same where a line above may set the origins. */
const blockWithTheirs = (...without: string[]) =>
  block(...without).replace(`${ORIGINS} = [`, `${ORIGINS} = [${THEIRS}`);

interface Edited {
  readonly result: string;
  /** The text after the edit is undone. */
  readonly undone: string;
  readonly notes: readonly string[];
}

function edited(text: string, items = WEB_ITEMS): Edited {
  const { problems, splices, changes, notes } = edit(text, items);
  expect(problems).toEqual([]);
  const result = applySplices(text, splices);
  const undone = changes.reduceRight((now, change) => revertPython(now, change).text, result);
  return { result, undone, notes };
}

const names = (result: Evaluated): Readonly<Record<string, unknown>> => {
  if ("error" in result) throw new Error(result.error);
  return result.names;
};

const KEY = "SECRET_KEY = 'k#e;y'";
const DB = "DATABASES = {\n    'default': {'PASSWORD': 'geheim'},\n}\n";

/** Where new items go: what, and a file with `@` in their place. */
const PLACES: readonly [string, string][] = [
  ["between key and databases", `${KEY}\n@${DB}`],
  ["as far down as possible", `${KEY}  # mine\n\nA = 1\n@${DB}`],
  ["key behind databases: between them", `${DB}A = 1\n@\n${KEY}\n`],
  ["no databases", `A = 1\n${KEY}\nB = 2\n@`],
  ["no key", `A = 1\n@# the database\n${DB}`],
  ["no key, databases first", `@${DB}A = 1\n`],
  ["no key, databases below comments", `#!/usr/bin/python3\n# coding: utf-8\n@${DB}`],
  ["neither", `A = 1\n@`],
  ["empty file", "@"],
  ["key with neighbours on its line", `${KEY}; A = 1\n@${DB}`],
  ["databases with neighbours on its line", `${KEY}\n@A = 1; ${DB}`],
  ["key and databases over several lines", `SECRET_KEY = (\n  'a'\n  'b' # )\n)\n@DATABASES = (\n{}\n)\n`],
  [
    "key in a try",
    `try:\n\tSECRET_KEY = open('/nonexistent').read()\nexcept OSError:\n\tSECRET_KEY = 'x'\nelse:\n\tpass\n@${DB}`,
  ],
  ["databases in a try", `${KEY}\n@try:\n  DATABASES = A\nexcept NameError:\n  DATABASES = {}\n`],
  ["databases behind an else", `${KEY}\n@if 0: pass\nelif 0: pass\nelse: A = 1; DATABASES = {}\n`],
  ["a key in an if below databases", `${DB}@if 1:\n\tSECRET_KEY = 'x'\n`],
  ["an item without a value", `MEDIA_URL: str\n${KEY}\n@${DB}`],
  ["a second key on the line of the databases", `SECRET_KEY = 'a'\nA = 1\n@${KEY}; ${DB}`],
  ["two databases", `A = 1\n@${DB}B = 1\n${DB}`],
  ["comments above the databases", `${KEY}\n@\n# other\n\n \t# the database\n${DB}`],
  ["a key in a comment or a string is none", `# ${KEY}\nA = """\n${KEY}\n"""\n@${DB}`],
  [
    "databases in a comment or a string are none",
    `${KEY}\nA = """\nDATABASES = 1\n"""\n@# DATABASES = 2\n${DB}`,
  ],
  ["a decorator", `${KEY}\n@\n\x40staticmethod\ndef f(): pass\n`.replace("\n@\n", "\n").replace(/$/, "@")],
  [
    "strings and statements with the words of the block",
    `A = """\n${BEGIN}\n${END}\n"""\nB = (\n${BEGIN}\n1)\n${KEY}\n@${DB}`,
  ],
  ["byte order mark", `\ufeff${KEY}\n@${DB}`],
  ["byte order mark alone", "\ufeff@"],
];
const MARK = /@(?!staticmethod)/;

describe("new items", () => {
  test("go between key and databases, in one block that an undo removes to the byte", () => {
    const after = PLACES.map(([what, marked]) => {
      const text = marked.replace(MARK, "");
      const { result, undone } = edited(text);
      expect({ what, result }).toEqual({ what, result: marked.replace(MARK, block()) });
      expect({ what, undone }).toEqual({ what, undone: text });
      return result;
    });
    for (const [i, result] of evaluate(after).entries()) {
      expect({ what: PLACES[i]![0], ...names(result) }).toMatchObject(ITEMS);
    }
  });

  test.each(["\n", "\r\n", "\r"])("no final line end, and line ends of the file's own: %j", (end) => {
    const text = `A = 1\n${KEY}`.replaceAll("\n", end);
    const { result, undone } = edited(text);
    expect(`${result}${end}`).toBe(`${text}${end}${block().replaceAll("\n", end)}`);
    expect(undone).toBe(text);
  });

  test.each(["\r\n", "\r"])("line ends are the file's own: %j", (end) => {
    const text = `${KEY}\n${DB}`.replaceAll("\n", end);
    expect(edited(text).result).toBe(`${KEY}\n${block()}${DB}`.replaceAll("\n", end));
  });

  test("are added to the block, wherever its owner moved it", () => {
    const text = `${block("STATIC_URL")}${KEY}\n${DB}`;
    const { result, undone } = edited(text);
    const line = `STATIC_URL = ${NEW["STATIC_URL"]}\n`;
    expect(result).toBe(text.replace(END, `${line}${END}`));
    expect(undone).toBe(text);
  });
});

test("an item that has its value already stays where it is, also below the databases", () => {
  const own = 'MEDIA_URL: str = "/syncmedia/"  # mine\nSERVE_STATIC=False\n';
  const list = `${ORIGINS} = [\n  u'https://a',  # theirs\n  "https://files.example.org",\n]\n`;
  const text = `${KEY}\n${DB}${own}${list}`;
  const { result, undone } = edited(text);
  expect(result).toBe(`${KEY}\n${block("MEDIA_URL", "SERVE_STATIC", ORIGINS)}${DB}${own}${list}`);
  expect(undone).toBe(text);
  const all = block().split("\n").slice(1, -2).join("\n");
  expect(edited(`A = 1\n${all}`).result).toBe(`A = 1\n${all}`);
});

/** A line above the block that sets an item to something else. */
const SHADOWED: readonly string[] = [
  "MEDIA_URL = b'/syncmedia/'",
  "MEDIA_URL = '/a/' + ('/' if True else '')",
  "MEDIA_URL = '/a/',  # oops",
  "MEDIA_URL = (  # c\n  '/a'\n  '/b' )",
  'MEDIA_URL = """a\n"b"\\"""" # c',
  "SERVE_STATIC = 0",
  "A = ';'; MEDIA_URL = '/'; B = [';']",
  "if True:\n  MEDIA_URL = '/a/'",
  "from os.path import *",
  "exec('MEDIA_URL = 1')",
  "MEDIA_URL = '/b/'\ndef f(MEDIA_URL='x'):\n  MEDIA_URL = 1",
  "A, MEDIA_URL = 1, 2",
  "for MEDIA_URL in 'ab': pass",
  "from os import path as MEDIA_URL",
  "def MEDIA_URL(): pass",
  "MEDIA_URL = '/'\ndel MEDIA_URL",
  "MEDIA_URL = 'a'\nMEDIA_URL += 'a'",
  "globals()['MEDIA_URL'] = 1",
  "A = f'{(MEDIA_URL := 1)}'",
  "\fMEDIA_URL = '/b/'",
  "\uff2dEDIA_URL = '/b/'",
];

test("whatever sets an item above the block stays, and the block has priority", () => {
  const results = SHADOWED.map((line) => {
    const text = `A = 0\n${line}\n${KEY}\n${DB}`;
    const { result, undone } = edited(text);
    const inBlock = /import \*|exec|globals/.test(line) ? blockWithTheirs() : block();
    expect(result).toBe(`A = 0\n${line}\n${KEY}\n${inBlock}${DB}`);
    expect(undone).toBe(text);
    expect(edited(result).result).toBe(result);
    return result;
  });
  for (const [i, seen] of evaluate(results).entries())
    expect({ line: SHADOWED[i], ...names(seen) }).toMatchObject(ITEMS);
});

test("elements of others in a list stay, however the list is made", () => {
  const lists = [
    `${ORIGINS} = ['https://a', 'https://b']`,
    `${ORIGINS} = ('https://a', 'https://b')`,
    `${ORIGINS} = ['https://a']\n${ORIGINS} += ['https://b']`,
    `${ORIGINS} = ['https://a']\n${ORIGINS}.append('https://b')`,
    `if True:\n  ${ORIGINS} = [f'https://{c}' for c in 'ab']`,
  ];
  const results = lists.map((line) => {
    const text = `${line}\n${KEY}\n${DB}`;
    const { result, undone } = edited(text);
    expect(result).toBe(`${line}\n${KEY}\n${blockWithTheirs()}${DB}`);
    expect(undone).toBe(text);
    return result;
  });
  for (const seen of evaluate([...results, `${ORIGINS} = None\n${KEY}\n${blockWithTheirs()}`]).slice(0, -1))
    expect(names(seen)).toMatchObject({ [ORIGINS]: ["https://a", "https://b", "https://files.example.org"] });
});

test("other values replace those in the block, and an undo of each edit restores the one before", () => {
  const other = wantedFiles(undefined, {
    origins: [{ scheme: "https", host: "other.example.org", port: 443 }],
  })[1]!.items as readonly PythonItem[];
  const text = `${ORIGINS} = ['https://a']\n${KEY}\n${DB}`;
  const first = edited(text).result;
  const second = edited(first, other);
  expect(second.result).toBe(first.replaceAll("files.example.org", "other.example.org"));
  expect(second.undone).toBe(first);
  const { findings } = edit(first, other);
  expect(findings.filter(({ state }) => state !== "same")).toEqual([
    {
      item: "FILE_SERVER_ROOT",
      wanted: "https://other.example.org/synchttp",
      found: "https://files.example.org/synchttp",
      line: 4,
      state: "different",
    },
    {
      item: ORIGINS,
      wanted: "https://other.example.org",
      found: "https://files.example.org",
      line: 12,
      state: "different",
    },
  ]);
});

test("a name that only begins or ends as that of an item is not the item", () => {
  const others =
    "LOGIN_URL_EXTRA = 'mine'\nMY_LOGIN_URL = 'mine'\nLOGIN_UR = 'mine'\nSITE_ROOT2: str = '/'\n";
  expect(edited(`${KEY}\n${DB}${others}`).result).toBe(`${KEY}\n${block()}${DB}${others}`);
});

test.each([
  "A = vars(object)",
  "modules = [1]",
  "A = '{exec(1)}'; B = 'MEDIA_URL'",
  "# MEDIA_URL = 1; exec(1)",
  '"""\nMEDIA_URL = 1\nexec(1)\n"""',
  "A = f'{my_globals}{modules_of[0]}{a_exec:>{setattrs}}'",
  "A = f'{MEDIA_URL}avatars/' + SITE_ROOT.rstrip('/')",
  "if A:\n  B = [MEDIA_URL,\n    'a']",
  "A = lambda: MEDIA_URL",
  "A.MEDIA_URL = 1",
  "def f():\n  global OTHER_URL",
  "from os import path",
  "import os as modules_",
])("below the block, what sets no item is no obstacle: %s", (line) => {
  expect(edited(`${KEY}\n${DB}${line}\n`).result).toBe(`${KEY}\n${block()}${DB}${line}\n`);
});

/** Lines that may set an item if they are below the block: what the problem names. */
const BELOW: readonly [line: string, what?: string][] = [
  ["MEDIA_URL = '/'"],
  ["MEDIA_URL: str = '/'"],
  ["\uff2dEDIA_URL = '/'"],
  ["if A: MEDIA_URL = '/'"],
  ["A = 1; MEDIA_URL = '/'"],
  ["MEDIA_URL += 'a'"],
  ["MEDIA_URL[0] = 'a'"],
  ["MEDIA_URL.append(1)"],
  ["A = MEDIA_URL = '/'"],
  ["A = (MEDIA_URL\n) = 1"],
  ["A, MEDIA_URL = 1, 2"],
  ["(A,\nMEDIA_URL) = 1, 2"],
  ["*MEDIA_URL, A = 1, 2"],
  ["MEDIA_URL \\\n  = 1"],
  ["A = (MEDIA_URL := 1)"],
  ["A = f'{(MEDIA_URL := 1)}'"],
  ["for MEDIA_URL in 'ab': pass"],
  ["for A, MEDIA_URL in B: C = 1"],
  ["with open('/') as MEDIA_URL: pass"],
  ["import MEDIA_URL"],
  ["from a import (\n  b,\n  MEDIA_URL,\n)"],
  ["del A, MEDIA_URL"],
  ["def MEDIA_URL(): pass"],
  ["class MEDIA_URL: pass"],
  ["match A:\n  case [MEDIA_URL]: pass"],
  ["type MEDIA_URL = int"],
  ["from x import *", "`import *`"],
  ["from x import \\\n *", "`import *`"],
  ["exec('x')", "`exec`"],
  ["execfile('other.py')", "`execfile`"],
  ["g = globals", "`globals`"],
  ["locals().update(A=1)", "`locals`"],
  ["v = vars", "`vars`"],
  ["vars().update(A=1)", "`vars`"],
  ["setattr(A, 'B', 1)", "`setattr`"],
  ["sys.modules[__name__].X = 1", "`sys.modules`"],
  ["from sys import path, modules", "`modules`"],
  ["A = f\"{exec('B = 1')}\"", "`exec`"],
];

test.each(BELOW)("refused below the block, with its line: %s", (line, what = "the line") => {
  const first = line.includes("\n") && /^(?:match|if)/.test(line) ? 1 : 0;
  for (const [text, at, place] of [
    [`${KEY}\n${DB}${line}\n`, 5, "line 2, where the lines of Portico go"],
    [`${KEY}\n${block()}${DB}${line}\n`, 16, "line 2, where the lines of Portico begin"],
  ] as const) {
    const { problems, splices } = edit(text);
    expect(problems).toEqual([
      {
        code: "settings.refused",
        path: `settings.py:${at + first}`,
        message: expect.stringMatching(/MEDIA_URL.*: .* may set another value after the lines of Portico$/),
        fix: `Remove the line, or move it above ${place}.`,
      },
    ]);
    expect(problems[0]!.message).toContain(`: ${what} may`);
    expect(JSON.stringify({ problems, splices })).not.toMatch(/k#e;y|geheim/);
  }
});

test.each([
  ["def f():\n  global A, MEDIA_URL\n  MEDIA_URL = 1", 2, "MEDIA_URL: the line"],
  ["def f():\n  global A, \\\n   MEDIA_URL", 2, "MEDIA_URL: the line"],
  ["def f(): exec('x')", 1, "ORIGINS: `exec`"],
  ["class A:\n  def f(self): globals()['A'] = 1", 2, "ORIGINS: `globals`"],
  ["f = lambda: setattr(A, 'B', 1)", 1, "ORIGINS: `setattr`"],
])("refused above the block as well, because it may run later: %j", (text, line, words) => {
  const { problems } = edit(`${text}\n${KEY}\n${DB}`);
  expect(problems).toMatchObject([
    {
      code: "settings.refused",
      path: `settings.py:${line}`,
      fix: expect.stringMatching(/plain assignments/),
    },
  ]);
  expect(problems[0]!.message).toMatch(new RegExp(`${words} may set another value at any time$`));
});

/** A file that cannot be read, the line of the problem, and words of it. */
const UNREADABLE: readonly [string, string, number, RegExp][] = [
  ["bracket not closed", "A = 1\nB = [\n", 2, /`\[` is never closed/],
  ["bracket that closes nothing", "A = 1\n)\n", 2, /closes nothing/],
  ["string not closed", "A = 1\nB = 'a\nC = 1", 2, /never closed/],
  ["triple quotes not closed", "A = 1\nB = '''a\nC = 1", 2, /never closed/],
  ["quotes in a field, as since Python 3.12", 'A = {}\nB = f"{A["k"]}"\n', 2, /quotes in a field/],
  ["the same, with an even number of quotes", `B = f"{'"'}" + f"{'"'}"\n`, 1, /quotes in a field/],
  ["stray backslash", "A = 1 \\ 2", 1, /backslash/],
  ["backslash at the end", "A = 1\\\n", 1, /after a backslash/],
  ["backslash at the end, with a carriage return", "A = 1\\\r\n", 1, /after a backslash/],
  ["backslash in front of a comment", "A = 1\n\\\n# b", 2, /continues nothing/],
  ["NUL", "A = 1\nB = 2\0", 2, /NUL/],
  [
    "an encoding with quotes in characters",
    "#!/usr/bin/python\n# vim: set fileencoding=gb18030 :\n",
    2,
    /encoding gb18030/,
  ],
  ["an encoding below an empty line", "\n# coding: gbk", 2, /encoding gbk/],
  ["an encoding that ends like a known one", "# coding: not-ascii", 1, /encoding not-ascii/],
  ["an encoding that begins like a known one", "# coding: utf-80", 1, /encoding utf-80/],
  ["an encoding without its number", "# coding=iso-8859-x", 1, /encoding iso-8859-x/],
];

test.each(UNREADABLE)("refused with its line: %s", (_what, text, line, words) => {
  const { problems, splices, findings } = edit(text);
  expect(problems).toMatchObject([{ code: "settings.bad-syntax", path: `settings.py:${line}` }]);
  expect(problems[0]!.message).toMatch(words);
  expect([splices, new Set(findings.map(({ state }) => state))]).toEqual([[], new Set(["refused"])]);
});

const MARKERS = /not one `# BEGIN Portico` and one `# END Portico`/;
const FOREIGN = /between those of Portico and not one of them/;

test.each<[what: string, text: string, line: number, words: RegExp]>([
  ["no end", block().replace(`${END}\n`, ""), 1, MARKERS],
  ["no begin", block().replace(`${BEGIN}\n`, ""), 10, MARKERS],
  ["an end above the begin", `${END}\n${BEGIN}\n`, 1, MARKERS],
  ["two blocks", block() + block(), 12, MARKERS],
  ["an end in a string", block().replace(END, `A = '''\n${END}\n'''`), 1, MARKERS],
  ["a statement of another", block().replace(END, `import os\n${END}`), 11, FOREIGN],
  ["an item twice", block().replace(END, `SITE_ROOT = '/'\n${END}`), 11, FOREIGN],
  ["an indented line", block().replace("SITE_ROOT", "if 1:\n SITE_ROOT"), 5, FOREIGN],
  ["an expression", block().replace("'/sync/'", "str(1)"), 5, FOREIGN],
])("a damaged block is refused, and an undo leaves it: %s", (_what, text, line, words) => {
  const { problems, splices } = edit(text);
  expect(problems).toMatchObject([
    {
      code: "settings.refused",
      path: `settings.py:${line}`,
      fix: expect.stringMatching(/^Move your own lines/),
    },
  ]);
  expect(problems[0]!.message).toMatch(words);
  expect(splices).toEqual([]);
  const change = { name: "SITE_ROOT", from: null, to: "'/sync/'" };
  expect(revertPython(text, change)).toEqual({ text, state: "changed", line });
});

describe("an undo", () => {
  const change = { name: "SITE_ROOT", from: null, to: "'/sync/'" };
  const one = (value: string, more = ""): string => `${BEGIN}\nSITE_ROOT = ${value}\n${more}${END}\n`;
  const around = (text: string): string => `A = 1\nSITE_ROOT = '/old/'\n${text}B = 2\n`;

  test.each<[what: string, before: string, after: string, more?: object]>([
    ["removes the block with its last line", one("'/sync/'"), ""],
    ["removes one of two lines", one("'/sync/'", "B = True\n"), `${BEGIN}\nB = True\n${END}\n`],
    ["keeps a comment that somebody wrote into it", one("'/sync/'", "# mine\n\n"), "# mine\n\n"],
    ["restores the value of the block before", one("'/sync/'"), one("'/b/'"), { from: "'/b/'" }],
    ["removes no line end of others", one("'/sync/'"), "", { lineEndAdded: true }],
  ])("%s", (_what, before, after, more = {}) => {
    expect(revertPython(around(before), { ...change, ...more })).toEqual({
      text: around(after),
      state: "reverted",
    });
  });

  test.each<[what: string, text: string, line: number | undefined, more?: object]>([
    ["a value that was changed since", one("'/mine/'"), 4],
    ["a file that cannot be read", `${one("'/sync/'")}C = [\n`, 6],
    ["a file without the block", "", undefined],
    ["a block without the line", block("SITE_ROOT"), undefined],
    ["a file that the edit has not reached", one("'/b/'"), undefined, { from: "'/b/'" }],
  ])("leaves %s", (_what, text, line, more = {}) => {
    const state = line === undefined ? { state: "gone" } : { state: "changed", line };
    expect(revertPython(around(text), { ...change, ...more })).toEqual({ text: around(text), ...state });
  });
});

test.each<[what: string, text: string]>([
  ["of the third line", "# one\n# two\n# coding: gbk\n"],
  ["without a name", "# of coding: `gbk`\n"],
  ["in no comment", "A = 'coding: gbk'\n"],
  ...["utf-8", "UTF8", "utf-8-sig", "utf_8", "ascii", "us-ascii", "latin-1", "latin1", "iso_8859_15"].map(
    (name): [string, string] => ["that is known", `# -*- coding: ${name} -*-\n`],
  ),
  ["that is known", "# vim: set fileencoding=cp1252\n"],
])("an encoding %s is not an obstacle: %j", (_what, text) => {
  expect(edited(text).result).toBe(`${text}${block()}`);
});

test("one line that affects all items is named once, others one by one", () => {
  const { problems } = edit(`${KEY}\n${DB}SITE_ROOT += 1\nMEDIA_URL += 1\nfrom x import *\n`);
  expect(problems.map(({ path, message }) => `${path} ${message}`)).toEqual([
    expect.stringMatching(
      /^settings\.py:7 FILE_SERVER_ROOT, SERVE_STATIC, LOGIN_URL, .*ORIGINS: `import \*` /,
    ),
    "settings.py:6 MEDIA_URL: the line may set another value after the lines of Portico",
    "settings.py:5 SITE_ROOT: the line may set another value after the lines of Portico",
  ]);
});

test("findings: the values in force and their lines, also of items that cannot be set", () => {
  const text = `MEDIA_URL = '/a/'\nMEDIA_URL = '/b/'\nSITE_ROOT = '/sync/'\nLOGIN_URL = str(1)\nSERVICE_URL = 'http://old'\n${DB}STATIC_URL = '/x/'\nCOMPRESS_URL += 'x'\n`;
  const { findings, notes } = edit(text);
  expect(findings.filter((f) => f.state !== "missing")).toEqual([
    { item: "MEDIA_URL", wanted: "/syncmedia/", found: "/b/", line: 2, state: "different" },
    { item: "SITE_ROOT", wanted: "/sync/", found: "/sync/", line: 3, state: "same" },
    { item: "LOGIN_URL", wanted: "/sync/accounts/login/", line: 4, state: "different" },
    { item: "COMPRESS_URL", wanted: "/syncmedia/", line: 10, state: "refused" },
    { item: "STATIC_URL", wanted: "/syncmedia/assets/", found: "/x/", line: 9, state: "different" },
  ]);
  expect(notes).toEqual([
    "settings.py:2: MEDIA_URL is set here as well; the lines of Portico further down have priority",
    "settings.py:4: LOGIN_URL is set here as well; the lines of Portico further down have priority",
    "settings.py:5: SERVICE_URL is set here as well, and not to https://files.example.org/sync",
  ]);
});

test.each([
  ["SERVICE_URL = 'https://files.example.org/sync'", 0],
  ["SERVICE_URL = 'http://a'\nSERVICE_URL = 'https://files.example.org/sync'", 0],
  ["A = SERVICE_URL", 0],
  ["SERVICE_URL = A", 1],
])("a note where SERVICE_URL is another one: %j", (line, count) => {
  expect(edit(`${block()}${line}\n`).notes).toHaveLength(count);
});
