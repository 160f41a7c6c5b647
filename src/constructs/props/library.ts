import { TerraformStack } from "cdktf";
import type { IConstruct } from "constructs";
import { type Problem, problem } from "../../model/index.js";

/**
 * A problem if the stack is of another library than this package imports: of cdktn, cdktf's fork, which has cdktf's own
 * symbols, so that each takes the other's constructs and fails when it synthesizes them. Two copies of one library go
 * together.
 */
export function libraryProblems(construct: IConstruct): Problem[] {
  const stack = construct.node.scopes.findLast((scope) => TerraformStack.isStack(scope));
  const [own, other] = [libraryOf(TerraformStack), stack && libraryOf(stack.constructor)];
  if (other === undefined || other === own) return [];
  const more = {
    received: other,
    allowed: `constructs of ${own}`,
    fix: `Create the stack with ${own}, or import ${other}-portico in place of ${own}-portico.`,
  };
  return [problem("config.wrong-type", construct.node.path, `is in a stack of the library ${other}`, more)];
}

/** The library that a class is of, which jsii notes in it: `cdktf.TerraformStack`. */
function libraryOf(made: object): string | undefined {
  const { fqn } = (made as { [RTTI]?: { fqn?: string } })[RTTI] ?? {};
  return fqn?.split(".")[0];
}

const RTTI = Symbol.for("jsii.rtti");
