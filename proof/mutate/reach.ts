import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { sideBySide } from "./sideBySide.js";
import type { MutatedTree, NumberedFault, Reached } from "./tree.js";

/** Which tests reach which faults, seen by running each of them once. */
export class Reach {
  private constructor(private readonly tests: ReadonlyMap<string, Reached>) {}

  static async of(trees: readonly MutatedTree[]): Promise<Reach> {
    const tests = new Map<string, Reached>();
    await sideBySide(trees, testsBelow(trees[0]!.root), async (tree, test) => {
      // A second time, as others keep the machine busy.
      const reached = (await tree.reach(test)) ?? (await tree.reach(test));
      // Those that read the sources themselves fail, for example.
      if (reached === undefined) console.log(`left out, as it fails without a fault: ${test}`);
      else tests.set(test, reached);
    });
    return new Reach(tests);
  }

  /** Test files that reach a fault: the one of the same name first, then those of the same folder, each by its time. */
  testsOf({ file, id }: NumberedFault): string[] {
    const folder = `__tests__/${file.split("/")[1]}/`;
    const own = basename(file).replace(/\.ts$/, ".test.ts");
    const rank = ([test, { ms }]: [string, Reached]): number =>
      ms + (basename(test) === own ? 0 : test.startsWith(folder) ? HOUR : 2 * HOUR);
    return [...this.tests]
      .filter(([, { ids }]) => ids.has(id))
      .sort((a, b) => rank(a) - rank(b))
      .map(([test]) => test);
  }

  /** As many of them as are done within a time, and at least one. */
  within(tests: readonly string[], ms: number): string[] {
    let left = ms;
    return tests.filter((test, i) => (left -= this.tests.get(test)!.ms) >= 0 || i === 0);
  }
}

const HOUR = 3_600_000;

/** Test files on hosts are left out: they take minutes. */
function testsBelow(root: string): string[] {
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder)).flatMap((name) => {
      const path = join(folder, name);
      if (statSync(join(root, path)).isDirectory()) return below(path);
      return path.endsWith(".test.ts") && !path.startsWith("proof/hosts/") ? [path] : [];
    });
  return ["__tests__", "proof"].flatMap(below);
}
