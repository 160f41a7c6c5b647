import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DIST, ROOT } from "./paths.js";

/**
 * `tsx build/cdktn.ts DIRECTORY`: writes the sources of the package `cdktn-portico` there, for CDK Terrain: cdktf's
 * successor, whose package has another name. Nothing differs but that name, in imports, texts and `package.json`, and the
 * modules of the providers, whose resources are those of `src/constructs/providers/cdktn`, so that a stack needs no package
 * of a provider.
 */

/** What the package needs in place of cdktf's packages. */
const PEERS = { cdktn: ">=0.24.0 <1", constructs: "^10.6.0" };
const KEYWORDS = ["cdk-terrain", "opentofu"];
const DEVELOPMENT = { cdktn: "0.24.0", constructs: "~10.7.0" };

/** What differs in commands and imports of the pages, after the library's name. */
const PAGES: readonly (readonly [RegExp, string])[] = [
  [/(npm install .*?)(?: @cdktf\/provider-(?:kubernetes|local|tls)(?:@\d+)?)+/g, "$1"],
  [/(npm install .*\bcdktn(?:@[\d.]+)?) constructs\b/g, "$1 constructs@10.7"],
  [/\b(cdktn(?:-cli)?)@0\.21\b/g, "$1@0.24"],
  [
    /"@cdktf\/provider-kubernetes\/lib\/provider";/g,
    '"./kubernetesProvider.js"; // that of docs/versions.md',
  ],
];

/** A problem that only packages of providers cause, which are not needed there. */
const MISSING_PACKAGE = /### `config\.missing-package`\n[^]*?\n(?=#{2,3} )/;

/** Modules that bring a provider's resources, and what takes their place. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "src/constructs/providers/local.ts": "./cdktn/local.js",
  "src/constructs/providers/tls.ts": "./cdktn/tls.js",
  "src/kubernetes/provider.ts": "../constructs/providers/cdktn/kubernetesResources.js",
};

/** Pages that are about both, and what is of cdktf alone. */
const KEPT = [
  "CHANGELOG.md",
  "docs/moving.md",
  "docs/versions.md",
  "build/cdktn.ts",
  "proof/terraform/cdktn/run.sh",
];
const LEFT_OUT = ["package-lock.json", "__tests__/constructs/providers.test.ts"];

/** Files of these names are text, in which the library may be named. */
const TEXT = /\.(?:ts|js|mjs|cjs|json|yml|md|txt|sh)$/;

/**
 * The library, but in names that both libraries have: `cdktf.json`, `cdktf.out`, and cdktf's own packages; also as a
 * folder of packages, `node_modules/cdktf-portico`.
 */
const LIBRARY = /(?<![@\w]|(?<!node_modules)\/)cdktf(?=-portico|-cli|\b)(?!\.(?:json|out))/g;

function main([directory]: readonly string[]): void {
  if (directory === undefined) throw new Error("tsx build/cdktn.ts DIRECTORY: the directory is missing");
  const listed = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z"];
  const files = execFileSync("git", listed, { cwd: ROOT, encoding: "utf8" }).split("\0");
  for (const file of files.filter((name) => name !== "" && !LEFT_OUT.includes(name))) {
    const target = path.join(directory, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, contentOf(file));
  }
  copyBundle(directory);
}

function contentOf(file: string): string | Buffer {
  const content = readFileSync(path.join(ROOT, file));
  const module = PROVIDERS[file];
  if (module !== undefined) return `export * from "${module}";\n`;
  if (file === "package.json") return packageOf(content.toString());
  if (!TEXT.test(file) || KEPT.includes(file)) return content;
  const text = renamed(content.toString());
  if (file === "docs/errors.md") return withoutSection(text, MISSING_PACKAGE);
  return file.endsWith(".md") ? PAGES.reduce((all, [what, by]) => all.replace(what, by), text) : text;
}

function withoutSection(text: string, section: RegExp): string {
  const rest = text.replace(section, "");
  if (rest === text) throw new Error(`docs/errors.md: nothing is like ${section}`);
  return rest;
}

/** A line that names both libraries says what they are to each other. */
function renamed(text: string): string {
  const isOfBoth = (line: string): boolean => line.includes("cdktf") && line.includes("cdktn");
  return text
    .split("\n")
    .map((line) => (isOfBoth(line) ? line : line.replace(LIBRARY, "cdktn")))
    .join("\n");
}

/** The bundle is cdktf-portico's own, to the byte: who moves a stack deploys no other runtime. */
function copyBundle(directory: string): void {
  mkdirSync(path.join(directory, "dist"), { recursive: true });
  for (const name of ["portico.mjs", "portico.cdx.json"])
    copyFileSync(path.join(DIST, name), path.join(directory, "dist", name));
}

function packageOf(text: string): string {
  const {
    peerDependenciesMeta: _,
    devDependencies,
    ...fields
  } = JSON.parse(renamed(text)) as {
    readonly peerDependenciesMeta: unknown;
    readonly keywords: readonly string[];
    readonly scripts: object;
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  const others = Object.entries(devDependencies).filter(([name]) => !name.startsWith("@cdktf/"));
  const made = {
    ...fields,
    keywords: [...fields.keywords, ...KEYWORDS],
    scripts: { ...fields.scripts, build: "tsx build/build.ts --library" },
    peerDependencies: PEERS,
    devDependencies: { ...Object.fromEntries(others), ...DEVELOPMENT },
  };
  return `${JSON.stringify(made, undefined, 2)}\n`;
}

main(process.argv.slice(2));
