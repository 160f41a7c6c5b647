import { type DeploymentIdentity, otherDeployment, ProblemError } from "../../model/index.js";
import type { GoodState } from "./store.js";

type Owned = Pick<GoodState, "identity">;

/**
 * Refuses a host that has another deployment: it would be replaced, and its next apply or destroy would then remove this
 * one. A run without an identity, by hand, is for whichever deployment is there.
 */
export function refuseOther(
  last: Owned | undefined,
  { identity, takeOver = false }: { readonly identity?: DeploymentIdentity; readonly takeOver?: boolean },
): void {
  if (takeOver || identity === undefined || !isOther(last, identity.id)) return;
  throw new ProblemError([otherDeployment(identity, last!.identity!.construct)]);
}

/** Whether a host has another deployment; one that has none, or none with an identity, is free to take. */
export function isOther(last: Owned | undefined, id: string): boolean {
  return last?.identity !== undefined && last.identity.id !== id;
}

/** Whether two states say the same about whose they are, the name for messages included. */
export function sameIdentity(one: Owned, other: Owned): boolean {
  return one.identity?.id === other.identity?.id && one.identity?.construct === other.identity?.construct;
}
