import { App, TerraformStack } from "cdktf";
import { Construct } from "constructs";
import { problem } from "../../model/index.js";
import { refuse } from "./checks.js";
import { removedProblems } from "./removal.js";

/** @internal The id, if a construct can have it in the scope; a problem with a code if not, or if that is no scope. */
export function freeId(scope: Construct, id: string): string {
  const at = typeof id === "string" && id !== "" ? id : "a construct";
  if (!Construct.isConstruct(scope) || (App.isApp(scope.node.root) && !isInStack(scope))) {
    const received = Construct.isConstruct(scope) ? "an app" : scope;
    const fix =
      "Pass a stack, or a construct in a stack, as the first argument: `this` in the constructor of a stack.";
    const more = { received, allowed: "a stack, or a construct in a stack", fix };
    refuse([
      problem("config.wrong-type", `${at}.scope`, "is neither a stack nor a construct in a stack", more),
    ]);
  }
  if (typeof id !== "string" || id === "") {
    const more = {
      received: id,
      allowed: "a string",
      fix: 'Pass an id before the props: `(this, "files", { … })`.',
    };
    refuse([
      problem("config.wrong-type", scope.node.path, "is the scope of a construct without an id", more),
    ]);
  }
  refuse(removedProblems(scope, `${scope.node.path}/${id}`, "added"));
  const taken = scope.node.tryFindChild(id);
  if (taken === undefined) return id;
  const fix = "Choose another id. The `name` that configs and logs show may stay as it is.";
  const allowed = "an id that no other construct in the same scope has";
  const message = `is already the id of another ${taken.constructor.name}`;
  refuse([problem("config.duplicate-id", taken.node.path, message, { received: id, allowed, fix })]);
  return id;
}

const isInStack = ({ node }: Construct): boolean => node.scopes.some((one) => TerraformStack.isStack(one));
