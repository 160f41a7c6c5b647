import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";
import { deadLinks } from "../testkit/links.js";

/** Whoever reads the project can follow every reference in it: to requirements, decisions, files and headings. */
const ROOT = join(__dirname, "..");

const name = (path: string): string => relative(ROOT, path);
const read = (path: string): string => readFileSync(path, "utf8");

const files = filesBelow(ROOT).filter((path) => path !== __filename && name(path) !== "package-lock.json");
const sources = files.filter((path) => name(path).startsWith("src/"));
const pages = files.filter((path) => path.endsWith(".md"));

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return /^\.|^(?:node_modules|dist|out|cdktf\.out|coverage)$/.test(entry.name) ? [] : filesBelow(path);
    return /\.(?:ts|mjs|js|json|md|sh)$/.test(entry.name) ? [path] : [];
  });
}

/** Numbers of the sections and items of a page: `2`, `2.1`. */
function numbersOf(page: string): ReadonlySet<string> {
  return new Set(
    [...read(join(ROOT, page)).matchAll(/^#{2,3} (\d+(?:\.\d+)?) /gm)].map(([, number]) => number!),
  );
}

const NUMBERS: Readonly<Record<string, ReadonlySet<string>>> = {
  service: numbersOf("docs/service.md"),
  decisions: numbersOf("docs/decisions.md"),
};

/** `service 2.1`, also with further numbers: `decisions 1.3, 1.4 and 2.1`. */
const CITATION = /\b(service|decisions) (\d+(?:\.\d+)?(?:(?:, | and | to )\d+\.\d+)*)/gi;

/** What was cited before these pages existed, and is nowhere to be read. */
const GONE = /\b(?:spec|design) §?\d[\d.]*|\bthe spec\b|\bspec's\b|\bnginx-semantics\b|\bsemantics\.md\b/gi;

/** References in a text that lead nowhere. */
function deadReferences(text: string): string[] {
  // A comment may break its line inside a reference.
  const joined = text.replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, " ");
  const cited = [...joined.matchAll(CITATION)].flatMap(([, page, numbers]) =>
    numbers!
      .split(/, | and | to /)
      .filter((number) => !NUMBERS[page!.toLowerCase()]!.has(number))
      .map((number) => `${page!.toLowerCase()} ${number}`),
  );
  return [...cited, ...[...joined.matchAll(GONE)].map(([found]) => found)];
}

test("every requirement and decision that is cited exists", () => {
  // What the change log says of former releases stays as it was.
  const cite = files.filter((path) => name(path) !== "CHANGELOG.md");
  expect(
    cite.flatMap((path) => deadReferences(read(path)).map((found) => `${name(path)}: ${found}`)),
  ).toEqual([]);
});

test.each([
  ["service 2.1 and decisions 1.3, 1.4 and 2.1", []],
  ["(service 99.1)", ["service 99.1"]],
  ["(decisions 1.3, 1.99)", ["decisions 1.99"]],
  ["(decisions 77)", ["decisions 77"]],
  [" * as wanted (decisions\n * 88.1)", ["decisions 88.1"]],
  ["// Service 88.2 asks for it", ["service 88.2"]],
  ["(spec 4.3)", ["spec 4.3"]],
  ["(design\n * 5.1)", ["design 5.1"]],
  ["(nginx-semantics B)", ["nginx-semantics"]],
  ["the table of the spec", ["the spec"]],
  ["see docs/semantics.md", ["semantics.md"]],
  ["const spec = { specVersion: 1 }; // by design", []],
])("in %j the dead references are %j", (text, found) => {
  expect(deadReferences(text)).toEqual(found);
});

const NUMBER = /\b(?:service|decisions|section) \d[\d.]*/gi;

/** Numbers in texts that the program shows, where they say nothing: the reason must do. */
function numbersShown(text: string): string[] {
  // Parsing takes long, and most files have none, not even in a comment.
  if (text.search(NUMBER) === -1) return [];
  const source = ts.createSourceFile("code.ts", text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      found.push(...[...node.text.matchAll(NUMBER)].map(([number]) => number));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test("no message cites a number", () => {
  const shown = sources.flatMap((path) => numbersShown(read(path)).map((found) => `${name(path)}: ${found}`));
  expect(shown).toEqual([]);
});

test("no docstring of the public interface cites a number", () => {
  // The pages are made of the docstrings.
  const api = pages.filter((path) => name(path).startsWith("docs/api/"));
  expect(api.length).toBeGreaterThan(10);
  expect(api.filter((path) => read(path).search(NUMBER) !== -1).map(name)).toEqual([]);
});

test.each([
  ['fix("Let it end in `start` (service 2.4).");', ["service 2.4"]],
  ["fix(`${unit}: see decisions 1.3`);", ["decisions 1.3"]],
  ["fix('as section 2 says');", ["section 2"]],
  ["/** Service 2.4. */ // service 2.1", []],
])("of the texts in %j, %j are numbers", (text, found) => {
  expect(numbersShown(text)).toEqual(found);
});

test("every link of a page leads to a file and a heading that exist", () => {
  const dead = pages.flatMap((path) => deadLinks(path, read(path)).map((link) => `${name(path)}: ${link}`));
  expect(dead).toEqual([]);
});

test.each([
  ["[a](README.md) [b](docs/service.md#21-configuration-items) [c](https://example.org/x#y)", []],
  ["[a](docs/none.md)", ["docs/none.md"]],
  ["[a](docs/service.md#none)", ["docs/service.md#none"]],
  ["# The `portico` command\n[a](#the-portico-command) [b](#the-command)", ["#the-command"]],
  ["## Twice\n## Twice\n[a](#twice-1) [b](#twice-2)", ["#twice-2"]],
  ["```md\n[a](none.md)\n```\n`[b](none.md)`", []],
])("of the links in %j, %j are dead", (text, dead) => {
  expect(deadLinks(join(ROOT, "page.md"), text)).toEqual(dead);
});

test("every test that a page names exists", () => {
  const tests = [__filename, ...files].map(name).filter((path) => path.endsWith(".test.ts"));
  // That of a user's own project.
  const named = pages.filter((page) => name(page) !== "docs/unit-tests.md");
  const gone = named.flatMap((page) =>
    [...read(page).matchAll(/[\w/.-]+\.test\.ts\b/g)]
      .filter(([test]) => !tests.some((path) => `/${path}`.endsWith(`/${test}`)))
      .map(([test]) => `${name(page)}: ${test}`),
  );
  expect(gone).toEqual([]);
});

describe("the privilege boundaries in SECURITY.md", () => {
  const [, section = ""] = read(join(ROOT, "SECURITY.md")).split("## Privilege boundaries\n");
  const rows = [...section.matchAll(/^\| (?!from |-)([^|]*?) *\|([^|]*)\|([^|]*)\|([^|]*)\|$/gm)].map(
    ([, from = "", what = "", checks = "", attacks = ""]) => ({ from, what: what.trim(), checks, attacks }),
  );
  const named = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);

  test("are all there", () => {
    expect(new Set(rows.map(({ from }) => from))).toEqual(
      new Set([
        "application's user",
        "service's user",
        "pair's other host",
        "authority",
        "DNS server",
        "DNS program",
        "upstream",
        "worker",
        "clients",
        "deployment's uploader",
        "local users",
        "terminal",
      ]),
    );
  });

  test("each have a file that checks and a test that attacks, and these exist", () => {
    for (const { from, what, checks, attacks } of rows) {
      const row = `${from}, ${what}`;
      const [checking, attacking] = [named(checks), named(attacks)];
      expect([row, checking.length > 0, attacking.length > 0]).toEqual([row, true, true]);
      expect([row, checking.filter((path) => !path.startsWith("src/"))]).toEqual([row, []]);
      expect([row, attacking.filter((path) => !/^(?:__tests__|proof)\/.*\.test\.ts$/.test(path))]).toEqual([
        row,
        [],
      ]);
      const absent = [...checking, ...attacking].filter((path) => !files.includes(join(ROOT, path)));
      expect([row, absent]).toEqual([row, []]);
    }
  });
});
