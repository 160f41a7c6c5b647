import type { Manifest } from "../../src/kubernetes/index.js";

/** API version and kind of the provider's resources. */
const KINDS: Readonly<Record<string, readonly [apiVersion: string, kind: string]>> = {
  kubernetes_config_map_v1: ["v1", "ConfigMap"],
  kubernetes_deployment_v1: ["apps/v1", "Deployment"],
  kubernetes_horizontal_pod_autoscaler_v2: ["autoscaling/v2", "HorizontalPodAutoscaler"],
  kubernetes_network_policy_v1: ["networking.k8s.io/v1", "NetworkPolicy"],
  kubernetes_pod_disruption_budget_v1: ["policy/v1", "PodDisruptionBudget"],
  kubernetes_service_v1: ["v1", "Service"],
};

/** The objects that the provider makes of a stack, by its documentation: blocks in, an object of the API out. */
export function manifestsOf(stack: string): Manifest[] {
  const { resource } = JSON.parse(stack) as { resource: Record<string, Record<string, Block>> };
  return Object.entries(resource).flatMap(([type, all]) => {
    const [apiVersion, kind] = KINDS[type]!;
    return Object.values(all).map(
      ({ "//": _, depends_on: __, lifecycle: ___, ...blocks }) =>
        ({ apiVersion, kind, ...(object(blocks, kind) as object) }) as Manifest,
    );
  });
}

type Block = Record<string, unknown>;

const LISTS: Readonly<Record<string, string>> = {
  container: "containers",
  init_container: "initContainers",
  metric: "metrics",
  toleration: "tolerations",
  topology_spread_constraint: "topologySpreadConstraints",
  volume: "volumes",
  volume_mount: "volumeMounts",
};
const DATA = [
  "annotations",
  "binary_data",
  "data",
  "labels",
  "limits",
  "match_labels",
  "node_selector",
  "requests",
  "selector",
];
const NUMBERS = [
  "fs_group",
  "max_surge",
  "max_unavailable",
  "port",
  "replicas",
  "run_as_group",
  "run_as_user",
  "target_port",
];

function object(value: unknown, kind: string): unknown {
  if (Array.isArray(value)) return value.map((item) => object(item, kind));
  if (typeof value === "string") return value.replace(/([$%])\1\{/g, "$1{");
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [nameOf(name, item), fieldOf(name, item, kind)]),
  );
}

function nameOf(name: string, value: unknown): string {
  if (name === "port" && Array.isArray(value)) return "ports";
  return LISTS[name] ?? name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function fieldOf(name: string, value: unknown, kind: string): unknown {
  // The selector of a Service is a map, those of other kinds are blocks.
  if (DATA.includes(name) && !(name === "selector" && kind !== "Service")) return texts(value);
  if (name === "default_mode") {
    // The provider refuses one without the zero.
    if (!/^0[0-7]{3}$/.test(String(value))) throw new Error(`${String(value)} is not a mode`);
    return Number.parseInt(value as string, 8);
  }
  if (NUMBERS.includes(name) && typeof value !== "object") {
    // The provider has numbers in the ports of a Service, and text everywhere else.
    const type = kind === "Service" && name === "port" ? "number" : "string";
    if (typeof value !== type) throw new Error(`${kind} has ${typeof value} as ${name}`);
    return /^\d+$/.test(String(value)) ? Number(value) : value;
  }
  const inner = object(value, kind);
  return name === "label_selector" ? (inner as unknown[])[0] : inner;
}

const texts = (map: unknown): unknown =>
  Object.fromEntries(
    Object.entries(map as Record<string, string>).map(([name, text]) => [object(name, ""), object(text, "")]),
  );
