import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript";

/** The style, executed: who may import whom, how large files and functions get, and that the map names every folder. */
const ROOT = join(__dirname, "..");

/** Layer → layers it may import from (design: data flows one way). */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  model: [],
  render: ["model"],
  constructs: ["render", "model"],
  runtime: ["model"],
  settings: ["render", "model"],
  diagnosis: ["settings", "runtime", "render", "model"],
  activation: ["diagnosis", "settings", "runtime", "render", "model"],
  cli: ["activation", "diagnosis", "settings", "runtime", "render", "model"],
  testing: ["model", "render", "constructs"],
  index: ["constructs", "model"],
  main: ["index"],
};

/** Node modules whose functions compute only; everything else touches disk, network or clock. */
const PURE_MODULES = ["node:net", "zod"];

const FILE_LINES_MAX = 400;
const FUNCTION_LINES_MAX = 70;
/** Files that may be longer, with the reason. */
const LONGER_FILES: Readonly<Record<string, string>> = {
  "src/runtime/http1/connection.ts":
    "one state machine: split, its states would have to be read in two places",
};

const sources = filesBelow(join(ROOT, "src")).concat(join(ROOT, "main.ts"));

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : path.endsWith(".ts") ? [path] : [];
  });
}

function layerOf(path: string): string {
  const [first = "", second] = relative(ROOT, path).split("/");
  if (first === "main.ts") return "main";
  return second === "index.ts" ? "index" : (second ?? "");
}

function importsOf(path: string): string[] {
  return ts.preProcessFile(readFileSync(path, "utf8")).importedFiles.map((file) => file.fileName);
}

const name = (path: string): string => relative(ROOT, path);

test("layers import only the layers below them", () => {
  const wrong = sources.flatMap((path) =>
    importsOf(path)
      .filter((specifier) => specifier.startsWith("."))
      .map((specifier) => layerOf(resolve(dirname(path), specifier).replace(/\.js$/, ".ts")))
      .filter((layer) => layer !== layerOf(path) && !MAY_IMPORT[layerOf(path)]?.includes(layer))
      .map((layer) => `${name(path)} imports ${layer}`),
  );
  expect(wrong).toEqual([]);
});

test("only constructs, testing and main.ts import cdktf; model and render are pure", () => {
  const packages = sources.flatMap((path) =>
    importsOf(path)
      .filter((specifier) => !specifier.startsWith("."))
      .map((specifier) => ({ path, layer: layerOf(path), specifier })),
  );
  const cdktf = packages.filter(
    ({ specifier, layer }) =>
      /^(@?cdktf|constructs)(\/|$)/.test(specifier) && !["constructs", "testing", "main"].includes(layer),
  );
  const impure = packages.filter(
    ({ specifier, layer }) => (layer === "model" || layer === "render") && !PURE_MODULES.includes(specifier),
  );
  expect([...cdktf, ...impure].map(({ path, specifier }) => `${name(path)} imports ${specifier}`)).toEqual(
    [],
  );
});

test("a worker loads neither parser nor command line; serve loads no other command, and nobody Node's HTTP", () => {
  const worker = loadedFrom("src/runtime/worker.ts");
  expect(worker.files).toContain("src/runtime/http2/connection.ts");
  expect(worker.files.filter((path) => !/^src\/(runtime|model)\//.test(path))).toEqual([]);
  expect(worker.packages).toEqual(["mrmime"]);
  const serve = loadedFrom("src/cli/program.ts");
  expect(serve.files).toContain("src/model/parse.ts");
  expect(
    serve.files.filter((path) => /diagnosis|activation|settings|http[12]|deployment/.test(path)),
  ).toEqual([]);
  expect(serve.packages).toEqual(["commander", "zod"]);
});

/** All that importing a module loads at once; `node:http` counts as a package, for the time it takes. */
function loadedFrom(entry: string): { files: string[]; packages: string[] } {
  const files = new Set<string>();
  const modules = new Set<string>();
  for (const next = [join(ROOT, entry)]; next.length > 0;) {
    const path = next.pop()!;
    if (files.has(path)) continue;
    files.add(path);
    for (const specifier of loadedBy(path)) {
      if (specifier.startsWith(".")) next.push(resolve(dirname(path), specifier).replace(/\.js$/, ".ts"));
      else modules.add(specifier);
    }
  }
  const packages = [...modules].filter((module) => !/^node:(?!http)/.test(module)).sort();
  return { files: [...files].map(name), packages };
}

/** Imports that are there at run time: those of types alone are not. */
function loadedBy(path: string): string[] {
  const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest);
  return source.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return [];
    const clause = ts.isImportDeclaration(statement) ? statement.importClause : statement;
    const named = ts.isImportDeclaration(statement)
      ? statement.importClause?.name === undefined && statement.importClause?.namedBindings
      : statement.exportClause;
    const typesOnly =
      !!named &&
      (ts.isNamedImports(named) || ts.isNamedExports(named)) &&
      (named.elements as readonly { isTypeOnly: boolean }[]).every(({ isTypeOnly }) => isTypeOnly);
    if (statement.moduleSpecifier === undefined || clause?.isTypeOnly === true || typesOnly) return [];
    return [(statement.moduleSpecifier as ts.StringLiteral).text];
  });
}

test(`files have at most ${FILE_LINES_MAX} lines, functions ${FUNCTION_LINES_MAX}`, () => {
  const long = sources.flatMap((path) => {
    const text = readFileSync(path, "utf8");
    const lines = text.split("\n").length - 1;
    const file =
      lines > FILE_LINES_MAX && !(name(path) in LONGER_FILES) ? [`${name(path)}: ${lines} lines`] : [];
    return [...file, ...longFunctions(path, text)];
  });
  expect(long).toEqual([]);
});

test("exceptions that are no longer needed are gone", () => {
  const needless = Object.keys(LONGER_FILES).filter(
    (path) => readFileSync(join(ROOT, path), "utf8").split("\n").length - 1 <= FILE_LINES_MAX,
  );
  expect(needless).toEqual([]);
});

function longFunctions(path: string, text: string): string[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const line = (at: number): number => source.getLineAndCharacterOfPosition(at).line;
      const lines = line(node.end) - line(node.getStart(source)) + 1;
      if (lines > FUNCTION_LINES_MAX)
        found.push(`${name(path)}:${line(node.getStart(source)) + 1}: ${lines} lines`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test("ARCHITECTURE.md names every folder, and no folder that is gone", () => {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const below = (folder: string): string[] =>
    readdirSync(join(ROOT, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => [`${folder}/${entry.name}`, ...below(`${folder}/${entry.name}`)]);
  const top = ["__tests__", "build", "demo", "docs", "tools"];
  const missing = [...top, ...below("src")].filter((folder) => !text.includes(`\`${folder}/\``));
  expect(missing).toEqual([]);
  const named = [...text.matchAll(/`((?:src|build|demo|tools|docs|__tests__)\/[\w./-]*)`/g)].map(
    (m) => m[1]!,
  );
  expect(named.filter((path) => statSync(join(ROOT, path), { throwIfNoEntry: false }) === undefined)).toEqual(
    [],
  );
});
