import { Construct, type IConstruct } from "constructs";
import { type Problem, problem } from "../../model/index.js";

/** Parts that were taken out of the tree: what is added to them, or changed on them, would reach no client. */

/** @internal Takes a part out of the tree. A second call leaves alone what has the id by then. */
export function removeFromTree({ node }: IConstruct): void {
  if (node.scope?.node.tryFindChild(node.id)?.node === node) node.scope.node.tryRemoveChild(node.id);
}

/** @internal The part, or the construct above it, that was removed; undefined if the tree still has the part. */
export function removedWith(part: IConstruct): IConstruct | undefined {
  return part.node.scopes.find(
    ({ node }) => node.scope !== undefined && node.scope.node.tryFindChild(node.id)?.node !== node,
  );
}

/** @internal The problem of a removed part, if that was removed. Other kinds of values have problems of their own. */
export function removedProblems(part: unknown, at: string, verb: "added" | "called" | "used"): Problem[] {
  const removed = Construct.isConstruct(part) ? removedWith(part) : undefined;
  if (removed === undefined) return [];
  const { path } = removed.node;
  const message = `is ${verb} after \`remove()\`${at.startsWith(`${path}.`) ? "" : ` of ${path}`}`;
  const more = {
    allowed: "a construct that has not been removed",
    fix: "Do this before `remove()`, or use another construct in place of the removed one.",
  };
  return [problem("config.unknown-reference", at, message, more)];
}
