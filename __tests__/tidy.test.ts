import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript";

/** The style, executed: who may import whom, how large files and functions get, and that the map names every folder. */
const ROOT = join(__dirname, "..");

/** Layer → layers it may import from (data flows one way). */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  model: [],
  render: ["model"],
  constructs: ["render", "model"],
  runtime: ["model"],
  asOwner: ["runtime", "model"],
  settings: ["asOwner", "runtime", "render", "model"],
  diagnosis: ["asOwner", "settings", "runtime", "render", "model"],
  activation: ["asOwner", "diagnosis", "settings", "runtime", "render", "model"],
  cli: ["asOwner", "activation", "diagnosis", "settings", "runtime", "render", "model"],
  testing: ["model", "render", "constructs"],
  index: ["constructs", "model"],
  main: ["index"],
};

/** Node modules whose functions compute only; everything else touches disk, network or clock. */
const PURE_MODULES = ["node:net", "zod"];

const FILE_LINES_MAX = 400;
const FUNCTION_LINES_MAX = 70;
/** Files that may be longer, with the reason. */
const LONGER_FILES: Readonly<Record<string, string>> = {};

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

test("what is in the application's trees is touched by src/asOwner alone", () => {
  const apart = ["src/settings/databaseOverrides.ts"];
  const concerned = /^src\/(?:settings\/|diagnosis\/media|activation\/(?:settingsEdits|mediaModes))/;
  const wrong = sources
    .filter((path) => concerned.test(name(path)) && !apart.includes(name(path)))
    .flatMap((path) =>
      importsOf(path)
        .filter((specifier) => /^node:(?:fs|child_process)|serviceManager|fileAccess/.test(specifier))
        .map((specifier) => `${name(path)} imports ${specifier}`),
    );
  expect(wrong).toEqual([]);
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

test("what Node has no public name for is named in src/runtime/node alone", () => {
  const wrong = sources
    .filter((path) => !name(path).startsWith("src/runtime/node/"))
    .flatMap((path) => nodeInternals(readFileSync(path, "utf8")).map((found) => `${name(path)}: ${found}`));
  expect(wrong).toEqual([]);
});

test.each([
  ["process.binding('tcp_wrap')", "binding"],
  ["(socket as any)._handle.fd", "_handle"],
  ["const { _parent: raw } = socket as unknown as Raw;", "_parent"],
  ["socket['_writableState']", "_writableState"],
  ["net._createServerHandle(null, -1, -1, 3)", "_createServerHandle"],
  ["handle.onread = receive", "onread"],
  ["new Socket({ handle })", "handle"],
  ["writableState.autoDestroy = false", "autoDestroy"],
  ["Object.getOwnPropertySymbols(socket)", "getOwnPropertySymbols"],
  ["spawn(node, ['--single-threaded-gc'])", "--single-threaded-gc"],
  ["v8.setFlagsFromString(flags)", "setFlagsFromString"],
  ["spawn(node, ['--max-semi-space-size=1'])", "--max-semi-space-size=1"],
  ["connect({ onread, ...options }); // makes its _handle", undefined],
])("of %s the tidy test finds %s", (code, found) => {
  expect(nodeInternals(code)).toEqual(found === undefined ? [] : [found]);
});

/** Names of Node's that are undocumented, wherever code (no comment) uses them. */
function nodeInternals(text: string): string[] {
  const source = ts.createSourceFile("code.ts", text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && isMember(node) && INTERNAL_MEMBERS.test(node.text)) found.push(node.text);
    if (ts.isStringLiteralLike(node) && INTERNAL_TEXTS.test(node.text)) found.push(node.text);
    // Documented as an option of `connect`, but not as what a handle calls.
    if (ts.isPropertyAccessExpression(node) && node.name.text === "onread") found.push("onread");
    if (
      ts.isNewExpression(node) &&
      node.expression.getText() === "Socket" &&
      /\bhandle\b/.test(node.getText())
    )
      found.push("handle");
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Whether a name belongs to an object: accessed, destructured or declared as its field. */
function isMember(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node;
  if (ts.isBindingElement(parent)) return ts.isObjectBindingPattern(parent.parent);
  return ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent);
}

/** No name of ours begins with an underscore, so whatever does is Node's. */
const INTERNAL_MEMBERS =
  /^(_[a-zA-Z]\w*|binding|internalBinding|autoDestroy|writeQueueSize|useUserBuffer|streamBaseState|(Write|Shutdown|Connect)Wrap|getOwnPropertySymbols|setFlagsFromString)$/;
/** Node's own options are documented; those that it hands on to V8 are not. */
const INTERNAL_TEXTS =
  /^(_(handle|parent|server|createServerHandle|readableState|writableState)|--(single-threaded|max-|min-|semi-|no-opt|gc-|stack-|v8-)\S*)$/;

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
