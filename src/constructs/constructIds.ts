import { Construct } from "constructs";
import { problem } from "../model/index.js";
import { refuse } from "./props/checks.js";

/** @internal The id, unless the scope has a construct with it: then a problem with a code. */
export function freeId(scope: Construct, id: string): string {
  if (!Construct.isConstruct(scope) || typeof id !== "string") return id;
  const taken = id === "" ? undefined : scope.node.tryFindChild(id);
  if (taken === undefined) return id;
  const fix = "Choose another id. The `name` that configs and logs show may stay as it is.";
  const allowed = "an id that no other construct in the same scope has";
  const message = `is already the id of another ${taken.constructor.name}`;
  refuse([problem("config.duplicate-id", taken.node.path, message, { received: id, allowed, fix })]);
  return id;
}
