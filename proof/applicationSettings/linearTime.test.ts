import { unifiedDiff } from "../../src/host/applicationSettings/diff.js";
import { editEnv } from "../../src/host/applicationSettings/envFile.js";
import { editIni } from "../../src/host/applicationSettings/iniFile.js";
import {
  secretEnvLines,
  secretIniLines,
  secretPythonLines,
} from "../../src/host/applicationSettings/kinds.js";
import { editPython } from "../../src/host/applicationSettings/pythonFile.js";
import { revertPython } from "../../src/host/applicationSettings/pythonBlock.js";
import { cpuMs, pumped } from "../../testkit/growth.js";
import { HOST_PORT, URL_ITEM, WEB_ITEMS } from "./oracle.js";

/**
 * The application's user owns its settings, and root reads them during an activation: in a time that grows with their
 * length, whatever they contain, and without an exception.
 */

/** What takes more than this is not linear: that takes a third of it at most, its square some seconds. */
const CPU_MS_MAX = 1_000;
const BYTES = 70_000;

function planPython(text: string): void {
  unifiedDiff("a", text, editPython(text, WEB_ITEMS, "a").splices, secretPythonLines(text));
}

function planIni(text: string): void {
  unifiedDiff("a", text, editIni(text, [...URL_ITEM, ...HOST_PORT], "a").splices, secretIniLines(text));
}

function planEnv(text: string): void {
  const items = [{ name: "A", value: "b" }];
  unifiedDiff("a", text, editEnv(text, items, "a").splices, secretEnvLines(text));
}

test.each<[what: string, begin: string, middle: string, end: string]>([
  ["comments apart from the databases", "A = 1\n", "#\n", "x\nDATABASES = {}\n"],
  ["comments above the databases", "A = 1\n", "#\n", "DATABASES = {}\n"],
  ["blanks in front of a statement", "A = 1\n#", "\f", "DATABASES = {}\n"],
  ["colons after a scheme", "x://", ":", " x"],
  ["schemes", "", "x://", ":"],
  ["lines that name a secret", "", "KEY = 1\n", ""],
  ["a value that is set again and again", "", "MEDIA_URL = '/'\n", ""],
  ["a name again and again", "A = ", "MEDIA_URL, ", "1\n"],
  ["brackets", "A = ", "[", ""],
  ["lists of lists", "CSRF_TRUSTED_ORIGINS = ", "['a', ", "x"],
  ["strings of a list", "CSRF_TRUSTED_ORIGINS = [", "'a',\n", "x]\n"],
  ["blanks in a list", "CSRF_TRUSTED_ORIGINS = ['a',", " ", "'b']\n"],
  ["imports", "", "import ", "(\n"],
  ["blanks behind an import", "import", " ", "x\n"],
  ["blanks behind a name", "MEDIA_URL", "\t", "x\n"],
  ["keys with a colon", "", "SECRET_KEY:", "x\n"],
  ["keys with an escaped quote", "SECRET_KEY = ", "'\\''", "\n"],
  ["names of functions for all names", "", "vars( ", "1\n"],
  ["statements on a line", "", "DATABASES;", "\n"],
  ["brackets around a value", "MEDIA_URL = ", "(", "'/'\n"],
  ["fields in each other", "A = ", "f'{", "x"],
  ["formats in each other", "A = f'", "{a:", "x"],
  ["lines that go on", "A = 1", "\\\n", "x"],
  ["sections", "[General]\n", "[a]\n", "SERVICE_URL = x"],
  ["keys", "[General]\n", "SERVICE_URL = x\n", ""],
  ["variables", "", "A=b\n", "A='"],
  ["quotes next to each other", "A=", "'b' ", "'"],
  ["backslashes in an open quote", 'A="', "\\\\", ""],
  ["blanks before an open quote", "", " ", 'A="'],
  ["blanks behind the sign, before an open quote", "A=", " ", '"'],
  ["blanks in a name", "A", " ", "b\n"],
  ["lines of one value", "[General]\nSERVICE_URL = x\n", "  token\n", ""],
])("%s", (_, ...parts) => {
  const text = pumped(...parts, BYTES);
  for (const plan of [planPython, planIni, planEnv])
    expect(cpuMs(CPU_MS_MAX, () => plan(text))).toBeLessThan(CPU_MS_MAX);
});

test("blocks with thousands of lines, and an undo of one of them", () => {
  const change = { name: "A", from: null, to: "True" };
  for (const middle of ["B = 1\n", "# BEGIN Portico\n", "\n"]) {
    const text = pumped("# BEGIN Portico\nA = True\n", middle, "# END Portico\n", BYTES);
    expect(cpuMs(CPU_MS_MAX, () => revertPython(text, change))).toBeLessThan(CPU_MS_MAX);
    expect(cpuMs(CPU_MS_MAX, () => planPython(text))).toBeLessThan(CPU_MS_MAX);
  }
});

test("more secret keys than anybody has", () => {
  const text = Array.from({ length: 4_000 }, (_, i) => `SECRET_KEY = '${10_000 + i}'\n`).join("");
  expect(cpuMs(CPU_MS_MAX, () => planPython(text))).toBeLessThan(CPU_MS_MAX);
  const apart = (keys: number): string =>
    `${Array.from({ length: keys }, (_, i) => `SECRET_KEY = '${10_000 + i}'\n`).join("")}A = 1\n`;
  const isHidden = (keys: number): boolean => secretPythonLines(apart(keys)).has(keys + 1);
  expect([isHidden(100), isHidden(101)]).toEqual([false, true]);
});
