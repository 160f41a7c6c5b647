import type { MutatedTree } from "./tree.js";

/** Each tree takes the next one when it is done with one. */
export async function sideBySide<T>(
  trees: readonly MutatedTree[],
  all: readonly T[],
  act: (tree: MutatedTree, one: T) => Promise<void>,
): Promise<void> {
  const waiting = [...all];
  const lane = async (tree: MutatedTree): Promise<void> => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await act(tree, one);
  };
  await Promise.all(trees.map(lane));
}
