import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { buildSync, type Metafile, type Plugin } from "esbuild";
import { BUNDLE, ROOT } from "./paths.js";
import { manifestOf, renderSbom } from "./sbom.js";
import { divided } from "./sections.js";

export interface BuiltBundle {
  readonly file: string;
  readonly bytes: number;
  /** False if the file already had these very bytes. */
  readonly changed: boolean;
}

/**
 * Bundles the `portico` command and the runtime into one executable file without node_modules.
 *
 * The same sources give the same bytes on every machine: the bundle travels as a content-hashed artifact, and a
 * difference would restart every deployed proxy. Names stay and lines are short, so that stack traces can be read; white
 * space alone would be a tenth of the package. Its bill of materials is written beside it.
 */
export async function buildBundle(file = BUNDLE): Promise<BuiltBundle> {
  const threads: Metafile[] = [];
  const { code, metafile } = await divided(
    {
      absWorkingDir: ROOT,
      loader: { ".md": "text" },
      plugins: [loadedLate(/^node:http/), threadsAsText(threads)],
    },
    { platform: "node", logLevel: "warning", ...COMPACT },
    { entry: "src/cli/main.ts", whole: ["src/runtime/worker/worker.ts"], banner: BANNER },
  );
  refuse(forbidden(metafile, code));
  const folders = packageFolders([metafile, ...threads]);
  const bytes = Buffer.from(code + folders.map(notice).join(""));
  const changed = writeExecutable(file, bytes);
  const packages = folders.map((folder) => manifestOf(path.join(ROOT, folder)));
  writeFileSync(`${file.replace(/\.mjs$/, "")}.cdx.json`, renderSbom(bytes, packages));
  return { file, bytes: bytes.length, changed };
}

/** How code is written that is read by machines, and by people in stack traces alone. */
export const COMPACT = {
  target: "node20",
  minifySyntax: true,
  minifyWhitespace: true,
  lineLimit: 120,
  // One byte a character: V8 reads and keeps other text at twice the price.
  charset: "ascii",
  legalComments: "none",
} as const;

// Bundled CommonJS (commander) calls `require` for Node's own modules, which an ES module does not have.
const BANNER = `#!/usr/bin/env node
import { createRequire as porticoCreateRequire } from "node:module";
const require = porticoCreateRequire(import.meta.url);`;

/**
 * Node's own HTTP, which probes use, is loaded with them and not with the file: as an import it would be everybody's,
 * and take a worker longer to load than all of its own code. Packages that only some stacks need are loaded the same way.
 */
export const loadedLate = (filter: RegExp): Plugin => ({
  name: "loaded late",
  setup({ onResolve, onLoad }) {
    onResolve({ filter }, ({ path: module, kind }) =>
      kind === "require-call" ? { path: module, external: true } : { path: module, namespace: "late" },
    );
    onLoad({ filter: /^/, namespace: "late" }, ({ path: module }) => ({
      contents: `module.exports = require(${JSON.stringify(module)});`,
    }));
  },
});

/** Modules that are imported as `?text` are threads: each with all that it imports. @param built gets what went into them */
export const threadsAsText = (built: Metafile[]): Plugin => ({
  name: "threads as text",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\?text$/ }, ({ path: module, resolveDir }) => ({
      path: path.relative(ROOT, path.join(resolveDir, module.replace(/\.js\?text$/, ".ts"))),
      namespace: "thread",
    }));
    onLoad({ filter: /^/, namespace: "thread" }, ({ path: file }) => {
      const { text, metafile } = threadText(file);
      built.push(metafile);
      return { contents: text, loader: "text" };
    });
  },
});

/** A module with all that it imports, as a script. */
export function threadText(file: string): { readonly text: string; readonly metafile: Metafile } {
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: ROOT,
    entryPoints: [file],
    bundle: true,
    write: false,
    metafile: true,
    format: "cjs",
    platform: "node",
    ...COMPACT,
    logLevel: "warning",
  });
  return { text: outputFiles[0]!.text, metafile };
}

/**
 * What must never be in the bundle: the constructs (they belong to synthesis), languages of zod's messages (600 KB, which
 * its member `z` brings; `import * as z` does not), and paths of the building machine.
 */
function forbidden(metafile: Metafile, text: string): string[] {
  const inputs = Object.keys(metafile.inputs);
  const foreign = inputs.filter((file) =>
    /(?:^|\/)node_modules\/(?:@cdktf|cdktf|cdktn|constructs)\/|^(?:src\/(?:constructs|kubernetes|testing|index)|main\.ts)/.test(
      file,
    ),
  );
  const used = Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs));
  return [
    ...used.filter((file) => file.endsWith("/zod/v4/locales/de.js")).map((file) => `it contains ${file}`),
    ...foreign
      .slice(0, 5)
      .map((file) => `it contains ${file}, which src/runtime and src/cli must not import`),
    ...(text.includes(ROOT) ? [`it contains the absolute path ${ROOT}`] : []),
  ];
}

function refuse(reasons: readonly string[]): void {
  if (reasons.length > 0) throw new Error(`dist/portico.mjs is refused:\n  ${reasons.join("\n  ")}`);
}

/** Folders of the packages that are bundled, in order. */
export function packageFolders(built: readonly Metafile[]): string[] {
  const packages = new Set<string>();
  for (const file of built.flatMap(({ inputs }) => Object.keys(inputs))) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file);
    if (match !== null) packages.add(match[1]!);
  }
  return [...packages].sort();
}

/** The licences of what is bundled ask that their notices travel along. */
export function notice(folder: string): string {
  const { name, version } = manifestOf(path.join(ROOT, folder));
  const licence = ["LICENSE", "LICENSE.md", "license"]
    .map((name) => path.join(ROOT, folder, name))
    .map((file) => tryRead(file))
    .find((text) => text !== undefined);
  if (licence === undefined) throw new Error(`${folder} has no LICENSE file to carry along`);
  return `/*! ${name} ${version}\n\n${licence.trim().replaceAll("*/", "* /")}\n*/\n`;
}

function tryRead(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Replaces the file at once: a proxy or test that starts meanwhile sees the old bundle or the new one, whole. */
function writeExecutable(file: string, bytes: Buffer): boolean {
  mkdirSync(path.dirname(file), { recursive: true });
  const changed = tryRead(file) !== bytes.toString("utf8");
  if (changed) {
    const draft = `${file}.${process.pid}.tmp`;
    writeFileSync(draft, bytes, { mode: 0o755 });
    renameSync(draft, file);
  }
  // The mode given above is subject to the umask.
  chmodSync(file, 0o755);
  return changed;
}
