import { configMap, runtimeConfigMap } from "./configMaps.js";
import { autoscaler, deployment, disruptionBudget } from "./deployment.js";
import { networkPolicy, service } from "./network.js";
import type { FrontEndInput, Manifest } from "./objects.js";

/** All objects of a front end, in the order in which they are best made. */
export function frontEndManifests(input: FrontEndInput): readonly Manifest[] {
  const all = [
    configMap(input),
    runtimeConfigMap(input),
    networkPolicy(input),
    service(input),
    deployment(input),
    disruptionBudget(input),
    autoscaler(input),
  ];
  return all.filter((manifest) => manifest !== undefined);
}

/** A manifest file: one List, as JSON, which is YAML as well. */
export function manifestsText(manifests: readonly Manifest[]): string {
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items: manifests }, null, 2)}\n`;
}
