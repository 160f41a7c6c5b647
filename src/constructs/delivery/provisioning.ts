import { dependable, type ITerraformDependable, Lazy, type TerraformResource } from "cdktf";

/** Adds dependencies that are known only when the app is synthesized. */
export function dependOn(resource: TerraformResource, on: () => readonly ITerraformDependable[]): void {
  const addresses = (): string[] => on().map(dependable);
  resource.addOverride("depends_on", Lazy.listValue({ produce: addresses }));
}

/**
 * A provisioner that runs when the resource is destroyed. It may refer to nothing but `self`, so what it needs has to
 * be in the resource's `input`. (The types of cdktf know `when` for one kind of provisioner only.)
 */
export function onDestroy<P>(provisioner: P): P {
  return { ...provisioner, when: "destroy" };
}
