import { contentsAt, emptiness } from "./expected/emptiness.js";
import type { EvidenceFinding } from "./evidence.js";

/** Served directories that have something in them now. */
export async function filledTrees(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(paths.map(async (path) => [path, await contentsAt(path)] as const));
  return found.flatMap(([path, contents]) => (contents === "some" ? [path] : []));
}

/** Finds trees that had content and are empty or gone now: usually their disk is not mounted. */
export async function emptiedTrees(before: readonly string[]): Promise<EvidenceFinding[]> {
  const found = await Promise.all(
    before.map(async (path): Promise<EvidenceFinding[]> => {
      const now = await emptiness(path);
      if (now === undefined) return [];
      const what = `${now.what}, and had files when the deployment was activated`;
      return [{ at: path, what, fix: now.fix }];
    }),
  );
  const findings = found.flat();
  // A directory inside one that is empty is no other finding.
  return findings.filter(({ at }) => !findings.some((one) => at.startsWith(`${one.at}/`)));
}
