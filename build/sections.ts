import path from "node:path";
import {
  build,
  type BuildOptions,
  type CommonOptions,
  type Metafile,
  type OutputFile,
  type Plugin,
  transform,
} from "esbuild";

/**
 * Divides the bundle, because V8 parses all of a file before it runs any of it: for 2 MB that was a third of the time in
 * which a process starts, and 5 MB of its memory. Only what a worker needs is code of the file. Everything else is in
 * sections: comments, over which V8 skips, and which become code when something imports them.
 *
 *     src ──split──> chunks ──┬── of the worker ──> code of the file, as without chunks
 *                             └── all others ─────> sections: CommonJS, each in the comment of a function
 *
 * The text of a section comes from the function's `toString`, and not from the file, which an upgrade may have replaced.
 */
export interface Divided {
  readonly code: string;
  /** What went into it. */
  readonly metafile: Metafile;
}

/** What is code of the file, and what the file begins with. */
export interface Division {
  /** The module that runs first. */
  readonly entry: string;
  /** Modules that are code of the file, with everything that they import. */
  readonly whole: readonly string[];
  readonly banner: string;
}

/**
 * @param read how sources are read
 * @param written how code is written
 */
export async function divided(
  read: Pick<BuildOptions, "absWorkingDir" | "loader" | "plugins">,
  written: CommonOptions,
  { entry, whole, banner }: Division,
): Promise<Divided> {
  const { outputFiles, metafile } = await build({
    ...read,
    ...written,
    entryPoints: [entry],
    outdir: FOLDER,
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    format: "esm",
  });
  const chunks = new Map(outputFiles!.map((file) => [path.basename(file.path), file]));
  const inFile = withImports(metafile, [entry, ...whole]);
  const others = [...chunks.keys()].filter((name) => !inFile.has(name)).sort();
  const { outputFiles: files } = await build({
    ...written,
    entryPoints: [chunkOf(metafile, entry)],
    bundle: true,
    write: false,
    format: "esm",
    banner: { js: banner },
    plugins: [linked(chunks, others)],
  });
  const texts = await Promise.all(others.map((name, i) => section(i, chunks.get(name)!.text, written)));
  return { code: files[0]!.text + texts.join(""), metafile };
}

/** Nothing is written there; relative, so that the names of chunks are the same on every machine. */
const FOLDER = "chunks";

const chunkOf = (metafile: Metafile, source: string): string =>
  path.basename(Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === source)![0]);

/** Names of the chunks of these sources, and of all that they import. */
function withImports(metafile: Metafile, sources: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  const next = sources.map((source) => chunkOf(metafile, source));
  for (const name of next) {
    if (names.has(name)) continue;
    names.add(name);
    const { imports } = metafile.outputs[`${FOLDER}/${name}`]!;
    for (const { kind, external, path: file } of imports)
      if (kind === "import-statement" && external !== true) next.push(path.basename(file));
  }
  return names;
}

/** A comment cannot contain its end, and no code contains this. */
const END = "*##/";

async function section(index: number, chunk: string, written: CommonOptions): Promise<string> {
  const { code } = await transform(chunk, {
    ...written,
    format: "cjs",
    // An import becomes a `require`, which finds other sections.
    supported: { "dynamic-import": false },
  });
  if (code.includes(END)) throw new Error(`a section must not contain ${END}`);
  return `function porticoSection${index}(){/*\n${code.replaceAll("*/", END)}*/}\n`;
}

/** Puts the file together: chunks as modules, and a module for each section, which runs it. */
function linked(chunks: ReadonlyMap<string, OutputFile>, sections: readonly string[]): Plugin {
  return {
    name: "linked",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^node:/ }, () => ({ external: true }));
      onResolve({ filter: /^sections$/ }, () => ({ path: "sections", namespace: "sections" }));
      onResolve({ filter: /\.js$/ }, ({ path: file }) => {
        const name = path.basename(file);
        return { path: name, namespace: sections.includes(name) ? "section" : "chunk" };
      });
      onLoad({ filter: /^/, namespace: "chunk" }, ({ path: name }) => ({
        contents: chunks.get(name)!.text,
      }));
      onLoad({ filter: /^/, namespace: "section" }, ({ path: name }) => ({
        contents: `require("sections").run("${name}", porticoSection${sections.indexOf(name)}, module);`,
      }));
      onLoad({ filter: /^/, namespace: "sections" }, () => ({ contents: runner([...chunks.keys()].sort()) }));
    },
  };
}

/** The module that runs sections. In stack traces their names follow that of the file. */
const runner = (chunks: readonly string[]): string => `
import { compileFunction } from "node:vm";
import { fileURLToPath } from "node:url";
const chunks = {
${chunks.map((name) => `  "./${name}": () => require("./${name}"),`).join("\n")}
};
const imported = (id) => (chunks[id] ?? (() => require(id)))();
const file = fileURLToPath(import.meta.url);
export function run(name, commented, module) {
  const text = commented.toString();
  const code = text.slice(text.indexOf("\\n"), text.lastIndexOf("*/")).replaceAll("${END}", "*/");
  const run = compileFunction(code, ["exports", "require", "module"], { filename: file + "#" + name });
  run(module.exports, imported, module);
}
`;
