import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { foreignCloses } from "./descriptors.js";
import { docSentences, nearDoubles, ownTexts, publicSentences, schemaSentences } from "./doubledTexts.js";
import { lateFields } from "./fields.js";
import { circles, wrongImports } from "./layers.js";
import { loadedFrom, type Module, moduleOf, modulesBelow, ROOT } from "./modules.js";
import { nodeInternals } from "./nodeInternals.js";
import { filesOpened, OPENED_ELSEWHERE, WITH_SECRETS } from "./opened.js";
import { FILE_LINES_MAX, FUNCTION_LINES_MAX, linesOf, longFunctions, tooLong } from "./sizes.js";

/** The style, executed: where things are, who may import whom, how large files and functions get. */

/** Node modules whose functions compute only; everything else touches disk, network or clock. */
const PURE_MODULES = ["node:crypto", "node:net", "node:tls", "zod"];
/** Files that may be longer, with the reason. */
const LONGER_FILES: Readonly<Record<string, string>> = {};

const sources = [...modulesBelow("src"), moduleOf(join(ROOT, "main.ts"))];
const all = [...sources, ...["build", "demo", "testkit", "proof", "bench"].flatMap(modulesBelow)];
const textOf = ({ path }: Module): string => readFileSync(join(ROOT, path), "utf8");

test("layers and folders import only what is below them", () => {
  expect(wrongImports(all)).toEqual([]);
});

test("unit tests import no module of a proof", () => {
  const wrong = modulesBelow("__tests__").flatMap(({ path, imports }) =>
    imports
      .filter((to) => to.startsWith("proof/") && to.endsWith(".ts"))
      .map((to) => `${path} imports ${to}`),
  );
  expect(wrong).toEqual([]);
});

test("no modules import each other", () => {
  expect(circles(all)).toEqual([]);
});

test("__tests__ mirrors src", () => {
  const folders = (path: string): string[] =>
    readdirSync(join(ROOT, path), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  expect(folders("__tests__").filter((name) => name !== "tidy" && !folders("src").includes(name))).toEqual(
    [],
  );
});

const planted = (path: string, ...imports: string[]): Module => ({ path, imports, packages: [] });

test.each([
  ["a layer above", "src/model/config/router.ts", "src/render/index.ts"],
  ["a layer that is none of its business", "src/constructs/host/host.ts", "src/runtime/index.ts"],
  [
    "a folder above in its layer",
    "src/runtime/dispatch/dispatch.ts",
    "src/runtime/server/http1Connection.ts",
  ],
  ["a folder that the order does not name", "src/runtime/dispatch/dispatch.ts", "src/runtime/new/a.ts"],
  ["what its own index shows", "src/model/config/router.ts", "src/model/index.ts"],
  ["the tests", "testkit/peers.ts", "__tests__/tidy/layers.ts"],
  ["one proof from the kit of all", "testkit/peers.ts", "proof/hostile/stage.ts"],
  ["what only its own command needs", "bench/lib/site.ts", "proof/hosts/fileSyncHost.ts"],
  ["the bench from the front end", "src/cli/main.ts", "bench/main.ts"],
])("an import of %s is found", (_, from, to) => {
  expect(wrongImports([planted(from, to)])).toEqual([`${from} imports ${to}`]);
});

test("a circle is found, however long it is", () => {
  const modules = [planted("a.ts", "b.ts"), planted("b.ts", "c.ts", "d.ts"), planted("c.ts", "a.ts")];
  expect(circles(modules)).toEqual(["a.ts -> b.ts -> c.ts -> a.ts"]);
});

test("only constructs, kubernetes, testing and main.ts import cdktf; model and render are pure", () => {
  const importing = (names: RegExp, not: RegExp): string[] =>
    sources
      .filter(({ path }) => !not.test(path))
      .flatMap(({ path, packages }) => packages.filter((one) => names.test(one)).map((one) => [path, one]))
      .map(([path, one]) => `${path} imports ${one}`);
  expect(
    importing(/^(@?cdktf|constructs)(\/|$)/, /^(src\/(constructs|kubernetes|testing)\/|main\.ts)/),
  ).toEqual([]);
  // An optional peer: who does not use it installs nothing.
  expect(importing(/^@cdktf\/provider-kubernetes/, /^src\/kubernetes\//)).toEqual([]);
  const pure = sources.filter(({ path }) => /^src\/(model|render)\//.test(path));
  const impure = pure.flatMap(({ packages }) => packages.filter((one) => !PURE_MODULES.includes(one)));
  expect(impure).toEqual([]);
});

test("only src/host/asOwner touches the application's trees", () => {
  const apart = ["src/host/applicationSettings/databaseOverrides.ts"];
  const concerned =
    /^src\/host\/(?:applicationSettings\/|diagnosis\/(?:tree|image)|activation\/(?:settingsEdits|treeModes))/;
  const touching = /^node:(?:fs|child_process)|systemctl|runtime\/load\/files/;
  const wrong = sources
    .filter(({ path }) => concerned.test(path) && !apart.includes(path))
    .flatMap(({ path, imports, packages }) =>
      [...imports, ...packages].filter((one) => touching.test(one)).map((one) => `${path} imports ${one}`),
    );
  expect(wrong).toEqual([]);
});

test("files that others name are opened by src/runtime/files/trustedFile.ts, or for a reason", () => {
  const opening = sources
    .filter((module) => WITH_SECRETS.test(module.path) && filesOpened(textOf(module)).length > 0)
    .map(({ path }) => path);
  expect(opening.sort()).toEqual(Object.keys(OPENED_ELSEWHERE).sort());
});

test.each([
  ['import { readFile } from "node:fs/promises"; readFile(path);', ["readFile"]],
  ['import fs from "node:fs"; fs.openSync(path, "r"); fs.promises.open(path);', ["openSync", "open"]],
  ['import * as files from "node:fs"; files.createReadStream(path);', ["createReadStream"]],
  ['import fs from "node:fs"; const open = promisify(fs.open);', ["open"]],
  ['import { copyFile } from "node:fs/promises"; copyFile(from, to);', ["copyFile"]],
  ['import { readFileSync } from "node:fs"; readFileSync("/proc/self/status");', []],
  ['import { stat } from "node:fs/promises"; stat(path); this.open(path); pool.open(path);', []],
])("of %s the tidy test finds %j", (code, found) => {
  expect(filesOpened(code)).toEqual(found);
});

test("a worker loads neither parser nor command line; serve loads no other command, and neither loads Node's HTTP", () => {
  const worker = loadedFrom("src/runtime/worker/worker.ts");
  expect(worker.files).toContain("src/runtime/server/http2Connection.ts");
  expect(worker.files.filter((path) => !/^src\/(runtime|model)\//.test(path))).toEqual([]);
  expect(worker.packages).toEqual(["mrmime"]);
  const serve = loadedFrom("src/cli/program.ts");
  expect(serve.files).toContain("src/model/config/parse.ts");
  expect(
    serve.files.filter((path) =>
      /diagnosis|activation|[sS]ettings|http[12]|runtime\/server|deployment/.test(path),
    ),
  ).toEqual([]);
  expect(serve.packages).toEqual(["commander", "zod"]);
});

test("TLS contexts of the proxy are made in one module", () => {
  const withText = (text: RegExp): string[] =>
    sources.filter((module) => text.test(textOf(module))).map(({ path }) => path);
  expect(withText(/createSecureContext\(/)).toEqual([
    "src/model/net/openssl.ts",
    "src/runtime/tls/tlsContexts.ts",
  ]);
  // Other options are a name, a protocol and callbacks. The probe of Node's own parts makes a connection to itself.
  expect(withText(/\b(?:ca|minVersion): (?:["[]|NO_ROOTS|roots)/)).toEqual([
    "src/model/net/openssl.ts",
    "src/model/net/tlsPolicy.ts",
    "src/runtime/sockets/node/probe.ts",
    "src/runtime/tls/tlsContexts.ts",
  ]);
});

test("parts of Node without a public name are used only in src/runtime/sockets/node", () => {
  const wrong = sources
    .filter(({ path }) => !path.startsWith("src/runtime/sockets/node/"))
    .flatMap((module) => nodeInternals(textOf(module)).map((found) => `${module.path}: ${found}`));
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

test(`files have at most ${FILE_LINES_MAX} lines, functions ${FUNCTION_LINES_MAX}`, () => {
  expect(sources.flatMap(({ path }) => tooLong(path, LONGER_FILES))).toEqual([]);
});

test("a function that is too long is found", () => {
  const text = `function long() {\n${"  work();\n".repeat(FUNCTION_LINES_MAX)}}\n`;
  expect(longFunctions("a.ts", text)).toEqual([`a.ts:1: ${FUNCTION_LINES_MAX + 2} lines`]);
});

test("tests close by number only what they opened", () => {
  const tests = ["__tests__", "testkit", "proof"].flatMap(modulesBelow);
  const wrong = tests.flatMap((module) =>
    foreignCloses(textOf(module)).map((found) => `${module.path}:${found}`),
  );
  expect(wrong).toEqual([]);
});

test.each([
  ["fs.closeSync(descriptorOf(path)!);", true],
  ["once(path, (fd) => fs.closeSync(fd));", true],
  ["for (const fd of readdirSync('/proc/self/fd')) closeSync(Number(fd));", true],
  ["fs.close(socket.fd, done);", true],
  ["let fd = openSync(path); fd = found; closeSync(fd);", true],
  ["const fd = fs.openSync(path); fs.closeSync(fd);", false],
  ["const fd = openSync(path); fs.close(fd, done);", false],
  ["let all: number[] = []; all.push(openSync(path)); for (const fd of all.splice(0)) closeSync(fd);", false],
  ["const fds = paths.map((path) => openSync(path, 'r')); for (const fd of fds) closeSync(fd);", false],
  ["server.close();", false],
])("a close of another's descriptor in %s: %s", (code, found) => {
  expect(foreignCloses(code)).toHaveLength(found ? 1 : 0);
});

test("bodies of tests are random bytes: a repeated byte is right wherever it comes from", () => {
  const repeated =
    /Buffer\.alloc\([^;\n"]*, ?"[^"\\]*"(?:, ?"latin1")?\)|\b(?:const|let) (?:body|BODY|piece|chunk) = "[^"]*"\.repeat\(/;
  const tests = ["__tests__", "testkit", "proof", "bench"].flatMap(modulesBelow);
  const fix = "make it with randomBody or randomText of testkit/random.ts";
  const wrong = tests.filter((module) => repeated.test(textOf(module))).map(({ path }) => `${path}: ${fix}`);
  expect(wrong).toEqual([]);
  for (const code of ["const body = @.repeat(9);", "socket.write(Buffer.alloc(9, @));"])
    expect(code.replace("@", '"x"')).toMatch(repeated);
});

test("fields of a class are at its top", () => {
  expect(sources.flatMap((module) => lateFields(module.path, textOf(module)))).toEqual([]);
  const late = "class A {\n  early = 1;\n  run() {}\n  late = 2;\n  bound = () => 3;\n}";
  expect(lateFields("a.ts", late)).toEqual(["a.ts:4: late"]);
});

test("exceptions that are no longer needed are gone", () => {
  const needless = Object.keys(LONGER_FILES).filter(
    (path) => linesOf(readFileSync(join(ROOT, path), "utf8")) <= FILE_LINES_MAX,
  );
  expect(needless).toEqual([]);
});

test("ARCHITECTURE.md names every folder, and no folder that is gone", () => {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const below = (folder: string): string[] =>
    readdirSync(join(ROOT, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => [`${folder}/${entry.name}`, ...below(`${folder}/${entry.name}`)]);
  const proofs = readdirSync(join(ROOT, "proof"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `proof/${name}`);
  const wanted = [
    "__tests__",
    "bench",
    "build",
    "demo",
    "docs",
    "proof",
    "testkit",
    ...proofs,
    ...below("src"),
  ];
  expect(wanted.filter((folder) => !text.includes(`\`${folder}/\``))).toEqual([]);
});

/** Files of the recipes in CONTRIBUTING.md, and of a user's stack. */
const OF_OTHERS = [
  "__tests__/stack.test.ts",
  "src/cli/nameCommand.ts",
  "src/model/actions/gone.ts",
  "src/runtime/actions/gone.ts",
];

test("pages name no file that is gone", () => {
  const folders = ["bench", "build", "demo", "docs", "proof", "src", "testkit", "__tests__"];
  const all = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }),
  );
  const names = new Set([...all.map((path) => basename(path)), ...readdirSync(ROOT)]);
  const docs = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  const pages = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    ...docs.map((name) => `docs/${name}`),
  ];
  const gone = pages.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const paths = [...text.matchAll(/`((?:src|bench|build|demo|docs|proof|testkit|__tests__)\/[\w./-]*)`/g)];
    const files = [...text.matchAll(/`(\w+\.ts)`/g)];
    return [
      ...paths.filter(([, path]) => !existsSync(join(ROOT, path!)) && !OF_OTHERS.includes(path!)),
      ...files.filter(([, name]) => !names.has(name!)),
    ].map(([, named]) => `${page}: ${named}`);
  });
  expect(gone).toEqual([]);
});

/** Programs of Debian's packages that are always installed. */
const ALWAYS_HERE = ["findmnt", "flock", "prlimit", "setpriv", "unshare"];

test("CONTRIBUTING.md names every program that tests need", () => {
  const config = readFileSync(join(ROOT, "jest.config.js"), "utf8");
  const lists = [
    ...[...config.matchAll(/programs: \[(.*?)\]/g)].map(([, list]) => list!),
    ...["__tests__", "testkit", "proof"]
      .flatMap(modulesBelow)
      .flatMap((module) => [...textOf(module).matchAll(/testWith\((".*?")\)/g)].map(([, list]) => list!)),
  ];
  const programs = new Set(lists.flatMap((list) => [...list.matchAll(/"(.+?)"/g)].map(([, name]) => name!)));
  expect(programs).toContain("go");
  const [, section] = /\n## Tests\n([^]*?)\n## /.exec(readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8"))!;
  const named = (name: string): boolean => new RegExp(`\\b${name}\\b`, "i").test(section!);
  expect([...programs].filter((name) => !ALWAYS_HERE.includes(name) && !named(name))).toEqual([]);
});

test("every process of ours refuses a debugger before it does anything else", () => {
  const [first, second] = textOf(moduleOf(join(ROOT, "src/cli/main.ts")))
    .replace(/\/\*[^]*?\*\/|\/\/.*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "");
  expect([first, second]).toEqual([
    'import { refuseDebugger } from "../runtime/supervisor/processes/noDebugger.js";',
    "refuseDebugger();",
  ]);
});

const BEGINS_BADLY = /(?:\/\/|\/\*\*(?:\s+\*)?) (?:@internal )?(?:Its|Of|Where|One|Without)\b.*/g;

test("a comment begins with the thing that it explains", () => {
  const found = modulesBelow("src").flatMap((module) =>
    [...textOf(module).matchAll(BEGINS_BADLY)].map(([comment]) => `${module.path}: ${comment}`),
  );
  expect(found).toEqual([]);
  for (const planted of [
    "a; // Its turn",
    "/** Of a port. */",
    "/**\n * Where it is",
    "/** @internal One port",
  ])
    expect(planted).toMatch(new RegExp(BEGINS_BADLY, ""));
  expect("/** The source of a certificate. Where").not.toMatch(new RegExp(BEGINS_BADLY, ""));
});

/** A sentence of so many words is about one field, or a function makes it for several. */
const SCHEMA_WORDS_MIN = 8;

test("a grep for a type leads to one place", () => {
  const declared = /^(?:export )?(?:abstract )?(?:interface|type|class) (\w+)/gm;
  const places = new Map<string, string[]>();
  for (const module of sources)
    for (const name of new Set([...textOf(module).matchAll(declared)].map(([, one]) => one!)))
      places.set(name, [...(places.get(name) ?? []), module.path]);
  expect(places.size).toBeGreaterThan(1_000);
  expect([...places].filter(([, paths]) => paths.length > 1)).toEqual([]);
});

test("no sentence about an option is in a docstring and in the schema of its field", () => {
  const isSchema = ({ packages }: Module): boolean => packages.includes("zod");
  const inSchemas = sources
    .filter(isSchema)
    .flatMap((one) => schemaSentences(one.path, textOf(one)))
    .map(({ words }) => words);
  const known = new Set(inSchemas);
  const twice = sources
    .filter(({ path }) => path.startsWith("src/constructs/"))
    .flatMap((one) => [...docSentences(one.path, textOf(one)), ...publicSentences(one.path, textOf(one))])
    .filter(({ words }) => known.has(words));
  expect(twice.map(({ words, at }) => `${at}: ${words}`)).toEqual([]);
  const long = inSchemas.filter((words) => words.split(" ").length >= SCHEMA_WORDS_MIN);
  expect(long.filter((words, i) => long.indexOf(words) < i)).toEqual([]);
  const planted = "interface A {\n  /** Port of\n   * the other host. */\n  port: number;\n}";
  const words = "Port of the other host.";
  expect(docSentences("a.ts", planted)).toEqual([{ words, at: "a.ts: A.port" }]);
  expect(schemaSentences("a.ts", 'port("Port of " + "the other host.")')).toEqual([{ words, at: "a.ts" }]);
});

test("no sentence is in the docstrings of two public types", () => {
  const said = sources
    .filter(({ path }) => /^src\/(?:constructs|kubernetes|applications|model|render|testing)\//.test(path))
    .flatMap((one) => publicSentences(one.path, textOf(one)));
  const first = new Map<string, string>();
  const twice = said.filter(({ words, at }) => {
    const before = first.get(words);
    first.set(words, before ?? at);
    return before !== undefined;
  });
  expect(twice.map(({ words, at }) => `${at} and ${first.get(words)}: ${words}`)).toEqual([]);
  const planted =
    "/** Ports of a host and more. */\nexport interface A {\n  /** One port of the host. */\n  port: 1;\n}";
  expect(publicSentences("a.ts", planted)).toEqual([
    { words: "Ports of a host and more.", at: "a.ts: A" },
    { words: "One port of the host.", at: "a.ts: A.port" },
  ]);
});

/** Options that take something else than their field, with what they take. */
const OTHER_TEXTS: Readonly<Record<string, string>> = {
  "ListenerProps.tls": "a `TlsMaterial` and a `TlsPolicy`",
  "RouteProps.access": "a policy, not its name",
  "RouteProps.action": "an `Action`",
  "VirtualServerProps.listeners": "constructs, not names",
};

test("an option that is a field has the field's text; its remarks do not say the same in other words", () => {
  const own = sources.flatMap((one) => ownTexts(textOf(one)));
  expect(own.sort()).toEqual(Object.keys(OTHER_TEXTS));
  const near = sources.flatMap((one) => nearDoubles(one.path, textOf(one)));
  expect(near.map(({ words, at }) => `${at}: ${words}`)).toEqual([]);
  const planted =
    "interface UpstreamProps {\n  /** How long idle connections are kept. */\n  idleTimeoutMs: number;\n}";
  expect(ownTexts(planted)).toEqual(["UpstreamProps.idleTimeoutMs"]);
  const at = "a.ts: UpstreamProps.idleTimeoutMs";
  expect(nearDoubles("a.ts", planted)).toEqual([{ words: "How long idle connections are kept.", at }]);
  expect(nearDoubles("a.ts", planted.replace("**", "** @remarks"))).toHaveLength(1);
});
