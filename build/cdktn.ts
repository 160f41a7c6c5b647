import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DIST, ROOT } from "./paths.js";

/**
 * `tsx build/cdktn.ts DIRECTORY`: writes the sources of the package `cdktn-portico` there, for CDK Terrain: cdktf's
 * successor, whose package has another name. Nothing differs but that name, in imports, texts and `package.json`, and the
 * modules of the providers, whose resources are those of `src/constructs/providers/cdktn`, because some registries lack
 * cdktn's provider packages.
 */

/** What the package needs in place of cdktf's packages. */
const PEERS = { cdktn: "^0.24.0", constructs: ">=10.6.0 <10.8.0" };
const DEVELOPMENT = { cdktn: "0.24.0", constructs: "~10.7.0" };

/** Modules that bring a provider's resources, and what takes their place. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "src/constructs/providers/local.ts": "./cdktn/local.js",
  "src/constructs/providers/tls.ts": "./cdktn/tls.js",
  "src/kubernetes/provider.ts": "../constructs/providers/cdktn/kubernetesResources.js",
};

/** Of cdktf alone: pages that are about both, and tests of the provider packages. */
const KEPT = ["CHANGELOG.md", "docs/versions.md", "build/cdktn.ts"];
const LEFT_OUT = ["package-lock.json", "__tests__/constructs/providers.test.ts"];

/** Files of these names are text, in which the library may be named. */
const TEXT = /\.(?:ts|js|mjs|cjs|json|md|txt|sh)$/;

/** The library, but in names that both libraries have: `cdktf.json`, `cdktf.out`, and cdktf's own packages. */
const LIBRARY = /(?<![@/\w])cdktf(?=-portico|-cli|\b)(?!\.(?:json|out))/g;

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
  return TEXT.test(file) && !KEPT.includes(file) ? content.toString().replace(LIBRARY, "cdktn") : content;
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
  } = JSON.parse(text.replace(LIBRARY, "cdktn")) as {
    readonly peerDependenciesMeta: unknown;
    readonly scripts: object;
    readonly devDependencies: Readonly<Record<string, string>>;
  };
  const others = Object.entries(devDependencies).filter(([name]) => !name.startsWith("@cdktf/"));
  const made = {
    ...fields,
    scripts: { ...fields.scripts, build: "tsx build/build.ts --library" },
    peerDependencies: PEERS,
    devDependencies: { ...Object.fromEntries(others), ...DEVELOPMENT },
  };
  return `${JSON.stringify(made, undefined, 2)}\n`;
}

main(process.argv.slice(2));
