import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import ts from "typescript";

/** What modules start in processes of their own, or read when they build: no import shows it. */
const STARTED: Readonly<Record<string, readonly string[]>> = {
  "proof/kit/portico.ts": ["proof/kit/porticoEntry.ts"],
  "build/bundle.ts": ["src/cli/main.ts"],
  "build/paths.ts": ["src/cli/main.ts"],
};

/** Which test files reach which modules, nearest first. */
export class Reach {
  private readonly importers = new Map<string, string[]>();
  readonly tests: readonly string[];

  constructor(private readonly root: string) {
    const modules = ["src", "__tests__", "proof", "build", "demo"].flatMap((folder) => this.below(folder));
    for (const module of modules)
      for (const imported of this.importsOf(module))
        this.importers.set(imported, [...(this.importers.get(imported) ?? []), module]);
    this.tests = modules.filter(
      (module) => module.endsWith(".test.ts") && !module.startsWith("proof/hosts/"),
    );
  }

  /**
   * Test files that reach a module: first those of the same folder below `__tests__`, of these first the one of the same
   * name, then by the number of imports between.
   */
  testsOf(module: string): string[] {
    const distance = new Map([[module, 0]]);
    for (const queue = [module]; queue.length > 0;) {
      const next = queue.shift()!;
      for (const importer of this.importers.get(next) ?? []) {
        if (distance.has(importer)) continue;
        distance.set(importer, distance.get(next)! + 1);
        queue.push(importer);
      }
    }
    const folder = `__tests__/${module.split("/")[1]}/`;
    const own = basename(module).replace(/\.ts$/, ".test.ts");
    const rank = (test: string): number =>
      distance.get(test)! + (test.startsWith(folder) ? 0 : 100) - (basename(test) === own ? 50 : 0);
    return this.tests.filter((test) => distance.has(test)).sort((a, b) => rank(a) - rank(b));
  }

  private importsOf(module: string): string[] {
    const { importedFiles } = ts.preProcessFile(readFileSync(join(this.root, module), "utf8"));
    const imported = importedFiles
      .filter(({ fileName }) => fileName.startsWith("."))
      .map(({ fileName }) => resolve(this.root, dirname(module), fileName).replace(/\.js$/, ".ts"))
      .map((path) => (existsSync(path) ? path : `${path}.ts`));
    return [...imported.map((path) => relative(this.root, path)), ...(STARTED[module] ?? [])];
  }

  private below(folder: string): string[] {
    return readdirSync(join(this.root, folder)).flatMap((name) => {
      const path = join(folder, name);
      if (statSync(join(this.root, path)).isDirectory()) return this.below(path);
      return path.endsWith(".ts") ? [path] : [];
    });
  }
}
