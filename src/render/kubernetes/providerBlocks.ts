import type { Manifest } from "./objects.js";

/**
 * The Terraform provider has the fields of the API under other names in a few places. Everything else is the same, so
 * that an object is turned into arguments by one walk over it and the tables below.
 */

/** Lists that the provider has as repeated blocks, named after one item. */
const RENAMED: Readonly<Record<string, string>> = {
  containers: "container",
  initContainers: "initContainer",
  metrics: "metric",
  ports: "port",
  tolerations: "toleration",
  topologySpreadConstraints: "topologySpreadConstraint",
  volumeMounts: "volumeMount",
  volumes: "volume",
};

/** In its network policies, the provider has kept the API's name. */
const KEPT: Readonly<Record<string, readonly string[]>> = { NetworkPolicy: ["ports"] };

/** Numbers that the provider has as text, since the API takes a name or a percentage there as well. */
const TEXTS: readonly string[] = [
  "fsGroup",
  "maxSurge",
  "maxUnavailable",
  "port",
  "replicas",
  "runAsGroup",
  "runAsUser",
  "targetPort",
];

/** The same names where the provider has numbers. */
const NUMBERS: Readonly<Record<string, readonly string[]>> = { Service: ["port"] };

/** Single objects that the provider has as a list of blocks. */
const LISTED: readonly string[] = ["labelSelector"];

/** Objects whose names are data. */
const MAPS: readonly string[] = [
  "annotations",
  "binaryData",
  "data",
  "labels",
  "limits",
  "matchLabels",
  "nodeSelector",
  "requests",
];

/** Arguments of the provider's resource, in the words of its bindings. */
export function providerArguments({ apiVersion: _, kind, ...fields }: Manifest): Record<string, unknown> {
  return converted(fields, kind) as Record<string, unknown>;
}

function converted(value: unknown, kind: string): unknown {
  if (Array.isArray(value)) return value.map((item) => converted(item, kind));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      const renamed = KEPT[kind]?.includes(name) === true ? name : (RENAMED[name] ?? name);
      return [renamed, field(name, item, kind)];
    }),
  );
}

function field(name: string, value: unknown, kind: string): unknown {
  if (MAPS.includes(name)) return value;
  if (name === "defaultMode") return (value as number).toString(8).padStart(4, "0");
  if (typeof value === "number") {
    const isText = TEXTS.includes(name) && NUMBERS[kind]?.includes(name) !== true;
    return isText ? String(value) : value;
  }
  const inner = converted(value, kind);
  return LISTED.includes(name) ? [inner] : inner;
}
