import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build, transform } from "esbuild";
import { notice } from "./bundle.js";
import { ROOT } from "./paths.js";

/**
 * Packages that the library uses, each as one file of it with what is used: who installs it installs nothing else, and to
 * load 95 modules of zod would take a third of the time that an import takes.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  mrmime: "mrmime",
  "prom-client": "prom-client/lib/cluster.js",
  zod: "zod",
};

/** Writes `packages/NAME.js`, and lets the library's modules require that. */
export async function bringPackages(lib: string): Promise<void> {
  const modules = modulesOf(lib);
  mkdirSync(path.join(lib, "packages"));
  for (const [name, part] of Object.entries(PACKAGES)) {
    const file = path.join(lib, "packages", `${name}.js`);
    const required = `require("${part}")`;
    const used = new Set<string>();
    for (const module of modules) {
      const text = readFileSync(module, "utf8");
      if (!text.includes(required)) continue;
      memberNames(text, required).forEach((member) => used.add(member));
      const relative = path.relative(path.dirname(module), file);
      const near = relative.startsWith(".") ? relative : `./${relative}`;
      writeFileSync(module, text.replaceAll(required, `require("${near}")`));
    }
    writeFileSync(file, `${await bundled(part, [...used].sort())}${notice(path.join("node_modules", name))}`);
  }
}

/** Editors show the comments of declarations; those of modules are a tenth of the packed library, and read at each start. */
export async function withoutComments(lib: string): Promise<void> {
  const options = { legalComments: "none", charset: "ascii", target: "node20" } as const;
  const strip = async (file: string): Promise<void> =>
    writeFileSync(file, (await transform(readFileSync(file, "utf8"), options)).code);
  await Promise.all(modulesOf(lib).map(strip));
}

const modulesOf = (lib: string): string[] =>
  readdirSync(lib, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .map((file) => path.join(lib, file));

/** What a compiled module takes of a package: `const z = __importStar(require("zod"))`, and then `z.string`. */
function memberNames(text: string, required: string): string[] {
  const [before] = text.split(required);
  const [, local] = /(\w+) = (?:\w+\()?$/.exec(before!)!;
  return [...text.matchAll(new RegExp(`\\b${local}\\s*\\.(\\w+)`, "g"))].map(([, member]) => member!);
}

async function bundled(module: string, members: readonly string[]): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: `export { ${members.join(", ")} } from "${module}";`, resolveDir: ROOT },
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
    target: "node20",
    minifySyntax: true,
    minifyWhitespace: true,
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
  });
  return outputFiles[0]!.text;
}
