import type { NeededProgram } from "../../render/index.js";
import type { DeliveryHost } from "./way.js";

const needed = new WeakMap<DeliveryHost, NeededProgram[]>();

/** @internal Programs that a host must have: they are no part of a deployment. */
export const neededPrograms = (host: DeliveryHost): readonly NeededProgram[] => needed.get(host) ?? [];

/** @internal A delivery asks for the program before it sends anything. */
export function needProgram(host: DeliveryHost, program: NeededProgram): void {
  needed.set(host, [...neededPrograms(host), program]);
}
