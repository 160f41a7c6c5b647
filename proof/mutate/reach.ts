import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Progress } from "./progress.js";
import { sideBySide } from "./sideBySide.js";
import type { AskedTests, MutatedTree, NumberedFault, Reached } from "./tree.js";

/** Which tests reach which faults, seen by running each of them once. */
export class Reach {
  private constructor(private readonly tests: ReadonlyMap<string, Reached>) {}

  static async of(trees: readonly MutatedTree[], among: RegExp, progress: Progress): Promise<Reach> {
    const tests = new Map<string, Reached>();
    const files = testsBelow(trees[0]!.root).filter((file) => among.test(file));
    await sideBySide(trees, files, async (tree, test) => {
      // A second time, as others keep the machine busy.
      const reached = await progress.reached(
        test,
        async () => (await tree.reach(test)) ?? (await tree.reach(test)),
      );
      // Those that read the sources themselves fail, for example.
      if (reached === undefined) console.log(`left out, as it fails without a fault: ${test}`);
      else tests.set(test, reached);
    });
    const usual = [...tests].map(([file, reached]) => [file, reached.tests] as const);
    for (const tree of trees) tree.expect(usual);
    return new Reach(tests);
  }

  /** Tests that reach a fault: those of the file of the same name first, then of the same folder, each file by its time. */
  testsOf({ file, id }: NumberedFault): ReachingTests[] {
    const folder = `__tests__/${file.split("/")[1]}/`;
    const own = basename(file).replace(/\.ts$/, ".test.ts");
    const rank = (tests: ReachingTests): number =>
      tests.ms + (basename(tests.file) === own ? 0 : tests.file.startsWith(folder) ? HOUR : 2 * HOUR);
    return [...this.tests]
      .flatMap(([test, reached]) => reachingTests(test, reached, id))
      .sort((a, b) => rank(a) - rank(b));
  }
}

/** Tests of one file that reach a fault, and how long they take. */
export interface ReachingTests extends AskedTests {
  readonly ms: number;
}

function reachingTests(file: string, { tests, ms, byFault }: Reached, id: number): ReachingTests[] {
  const names = byFault.get(id);
  if (names === undefined) return [];
  if (names.has("")) return [{ file, ms }];
  const left = [...tests].reduce((sum, [name, each]) => (names.has(name) ? sum : sum + each), 0);
  return [{ file, names: [...names], ms: ms - left }];
}

/** As many of them as are done within a time, and at least one. */
export function within(tests: readonly ReachingTests[], ms: number): ReachingTests[] {
  let left = ms;
  return tests.filter((test, i) => (left -= test.ms) >= 0 || i === 0);
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
