import { type FrontEndInput, type Manifest, metadata, selectorLabels } from "./objects.js";

/** Nodes are emptied one pod at a time. */
export function disruptionBudget(input: FrontEndInput): Manifest {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadata(input, input.name),
    spec: { maxUnavailable: 1, selector: { matchLabels: selectorLabels(input) } },
  };
}

export function autoscaler(input: FrontEndInput): Manifest | undefined {
  const { name, replicas } = input;
  if (typeof replicas === "number") return undefined;
  const target = { type: "Utilization", averageUtilization: replicas.cpuPercent ?? 70 };
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: metadata(input, name),
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
      minReplicas: replicas.min,
      maxReplicas: replicas.max,
      metrics: [{ type: "Resource", resource: { name: "cpu", target } }],
    },
  };
}
