import ts from "typescript";
import { anchor } from "./anchor.js";
import { type ApiExport, type ApiMember, ENTRIES, readApi, signatureOf } from "./api.js";
import { docProblems } from "./apiChecks.js";
import { type Doc, inferredParents } from "../options.js";
import { type Page, page } from "./page.js";

const FOLDER = "docs/api";

/** Where each exported name is described. */
type Links = ReadonlyMap<string, string>;

/** `docs/api/`: every construct and option, from the docstrings; a page for each module, and one that lists them. */
export async function apiPages(): Promise<Page[]> {
  const api = readApi(ENTRIES);
  const problems = docProblems(api);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const modules = [...new Set(api.map(({ module }) => module))].map((module) =>
    api.filter((one) => one.module === module),
  );
  const links = new Map(
    modules.flatMap((exports) => exports.map(({ name }) => [name, `${titleOf(exports)}.md#${anchor(name)}`])),
  );
  return Promise.all([
    page(`${FOLDER}/README.md`, FROM, index(api, links)),
    ...modules.map((exports) => page(`${FOLDER}/${titleOf(exports)}.md`, FROM, modulePage(exports, links))),
  ]);
}

/** A page has the name of the class that its module is for, or of the first thing in it. */
function titleOf(exports: readonly ApiExport[]): string {
  const inOrder = [...exports].sort((a, b) => a.declaration.pos - b.declaration.pos);
  return (inOrder.find(({ declaration }) => ts.isClassDeclaration(declaration)) ?? inOrder[0]!).name;
}

const FROM = "the docstrings and schemas of the sources";

const INTRODUCTION = `# Constructs and options

Every export of the package. The fields of \`portico.json\` that they become are in [config.md](../config.md).
\`cdktf-portico\` is for stacks, \`cdktf-portico/kubernetes\` for those that need a cluster, \`cdktf-portico/testing\` for
their unit tests, and \`cdktf-portico/runtime\` for programs that load a config or serve it themselves.`;

function index(api: readonly ApiExport[], links: Links): string {
  const sections = Object.keys(ENTRIES).map((entry) => {
    const rows = api
      .filter(({ from }) => from === entry)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, doc }) => `- [\`${name}\`](${links.get(name)!}): ${firstSentence(doc.text)}`);
    return `## \`${entry}\`\n\n${rows.join("\n")}`;
  });
  return [INTRODUCTION, ...sections].join("\n\n");
}

const firstSentence = (text: string): string =>
  /^.*?[.:](?=\s|$)/s.exec(text)?.[0].replace(/\s+/g, " ").replace(/:$/, ".") ?? text;

function modulePage(exports: readonly ApiExport[], links: Links): string {
  return [`# ${titleOf(exports)}`, ...exports.map((one) => exportText(one, links))].join("\n\n");
}

function exportText(one: ApiExport, links: Links): string {
  const { name, from, declaration, doc, construction, members } = one;
  const head = [
    `## ${name}`,
    `${kindOf(declaration, links)}, from \`${from}\``,
    docText(doc),
    ...(construction === undefined ? [] : [linked(construction, links)]),
    ...localTypes(declaration),
  ];
  return [...head, ...members.map((member) => memberText(name, member, links))].join("\n\n");
}

/** What an export is; types and constants in full. */
function kindOf(declaration: ts.Declaration, links: Links): string {
  if (ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)) {
    const word = ts.isClassDeclaration(declaration) ? "Class" : "Interface";
    const inferred: readonly ts.Node[] = ts.isInterfaceDeclaration(declaration)
      ? inferredParents(declaration)
      : [];
    const above = declaration.heritageClauses
      ?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)
      ?.types.filter((type) => !inferred.includes(type))
      .map((type) => type.getText());
    return above === undefined || above.length === 0
      ? word
      : `${word} that extends ${linked(above.join(", "), links)}`;
  }
  if (ts.isTypeAliasDeclaration(declaration)) {
    const type = declaration.type.getText();
    return isLong(declaration) ? "Type" : `Type ${linked(oneLine(type), links)}`;
  }
  if (ts.isFunctionDeclaration(declaration)) return linked(signatureOf(declaration), links);
  return "Constant";
}

/** The types of its own file that a type is made of, which users cannot import. */
function localTypes(declaration: ts.Declaration): string[] {
  if (!ts.isTypeAliasDeclaration(declaration)) return [];
  const used = declaration.type.getText();
  const local = declaration
    .getSourceFile()
    .statements.filter(
      (statement): statement is ts.TypeAliasDeclaration | ts.InterfaceDeclaration =>
        (ts.isTypeAliasDeclaration(statement) || ts.isInterfaceDeclaration(statement)) &&
        !statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) &&
        new RegExp(`\\b${statement.name.text}\\b`).test(used),
    );
  if (local.length === 0 || isLong(declaration)) return [];
  return [`\`\`\`ts\n${local.map((statement) => statement.getText()).join("\n\n")}\n\`\`\``];
}

/** A type that is inferred from a schema is in `docs/config.md`; its code says nothing to a user. */
const isLong = (declaration: ts.TypeAliasDeclaration): boolean =>
  /\bz\.|typeof/.test(declaration.type.getText()) || declaration.type.getText().length > 400;

function memberText(owner: string, { name, signature, doc }: ApiMember, links: Links): string {
  return `### ${owner}.${name}\n\n${linked(signature, links)}\n\n${docText(doc)}`;
}

function docText({ text, allowed, byDefault, params }: Doc): string {
  const facts = [
    ...params.map((param) => `- \`${param.name}\`: ${param.text}`),
    ...(allowed === undefined ? [] : [`- Allowed: ${allowed}`]),
    ...(byDefault === undefined ? [] : [`- Default: ${defaultText(byDefault)}`]),
  ];
  return facts.length === 0 ? text : `${text}\n\n${facts.join("\n")}`;
}

/** `- words` stands for a default that is no value. */
function defaultText(text: string): string {
  if (text.startsWith("- ")) return text.slice(2).replace(/\s+/g, " ");
  const [, value, words] = /^("[^"]*"|\S+)(.*)$/s.exec(text)!;
  return `\`${value}\`${words}`;
}

/** Code in which names that have a place of their own lead there. */
function linked(text: string, links: Links): string {
  return text
    .split(/\b([A-Z]\w+)\b/)
    .map((part, i) => {
      const target = i % 2 === 1 ? links.get(part) : undefined;
      return { text: part, target };
    })
    .reduce<{ text: string; target?: string | undefined }[]>((parts, part) => {
      const last = parts.at(-1);
      if (part.target !== undefined || last === undefined || last.target !== undefined)
        return [...parts, part];
      return [...parts.slice(0, -1), { text: last.text + part.text }];
    }, [])
    .filter(({ text }) => text !== "")
    .map(({ text, target }) => (target === undefined ? code(text) : `[\`${text}\`](${target})`))
    .join("");
}

/** Markdown drops spaces at the ends of code, so they stand outside. */
const code = (text: string): string =>
  text.replace(/^(\s*)(.*?)(\s*)$/s, (_, before, inner, after) =>
    inner === "" ? " " : `${before}\`${inner}\`${after}`,
  );

/** Without docstrings, and without the `|` that a union on several lines begins with. */
const oneLine = (text: string): string =>
  text
    .replace(/\/\*\*.*?\*\//gs, "")
    .replace(/\s+/g, " ")
    .replace(/^\| /, "");
