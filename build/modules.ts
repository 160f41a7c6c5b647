import { writeFileSync } from "node:fs";
import path from "node:path";
import { build, type Metafile, transform } from "esbuild";
import { COMPACT, loadedLate, notice, packageFolders, threadsAsText } from "./bundle.js";
import { ROOT } from "./paths.js";

/**
 * Writes the modules of the entry points, and what several of them share, into few files: who installs the library installs
 * no other package, and hundreds of modules would take half as long again to load, in every test file of a stack.
 *
 * @param entries sources of the entry points
 * @returns how many files there are
 */
export async function buildModules(lib: string, entries: readonly string[]): Promise<number> {
  const threads: Metafile[] = [];
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [...entries],
    ...COMPACT,
    outbase: "src",
    outdir: lib,
    chunkNames: "shared-[hash]",
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    // What is shared can be split from ES modules alone; what is written is CommonJS, as cdktf is.
    format: "esm",
    platform: "node",
    external: ["cdktf", "cdktn", "constructs"],
    plugins: [loadedLate(/^@cdktf\//), threadsAsText(threads)],
    logLevel: "warning",
  });
  for (const file of outputFiles) {
    const { code } = await transform(file.text, { ...COMPACT, format: "cjs", platform: "node" });
    writeFileSync(file.path, withClassNames(code));
  }
  writeFileSync(
    path.join(lib, "licenses.txt"),
    packageFolders([metafile, ...threads])
      .map(notice)
      .join(""),
  );
  return outputFiles.length;
}

/**
 * A class that names itself is `Mode = class _Mode` after esbuild, where instances are told by the names of their classes: a
 * stack may have two copies of the library. To keep all names (`keepNames`) would cost a tenth of the time to load.
 */
function withClassNames(text: string): string {
  const names = [...text.matchAll(/\b(\w+)=class _\1\b/g)].map(([, name]) => name!);
  return names.reduce((all, name) => all.replaceAll(new RegExp(`\\b_${name}\\b`, "g"), name), text);
}
