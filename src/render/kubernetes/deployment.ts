import { CONTAINER_PATHS } from "../hostPaths.js";
import { configFiles, configMap, RUNTIME_KEY, runtimeConfigMap } from "./configMaps.js";
import { type FrontEndInput, type Manifest, metadata, type PodResources, selectorLabels } from "./objects.js";

/** Directory of the unpacked runtime, for pods whose image has none. */
const RUNTIME_DIRECTORY = "/usr/lib/portico";
const PACKED_DIRECTORY = "/usr/share/portico/runtime";

/** No user of the image: the proxy needs a number, and no name. */
const USER = 65_532;

/**
 * The pods. A rollout starts one new pod at a time and stops an old one only when the new one is ready, so a config that
 * does not load stops at the first pod. A pod that stops lets its transfers finish.
 */
export function deployment(input: FrontEndInput): Manifest {
  const matchLabels = selectorLabels(input);
  const { labels } = metadata(input, input.name);
  const annotations = input.podAnnotations;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(input, input.name),
    spec: {
      // An autoscaler sets the number itself; to repeat it here would undo its choice at every apply.
      ...(typeof input.replicas === "number" ? { replicas: input.replicas } : {}),
      minReadySeconds: 5,
      progressDeadlineSeconds: 300,
      revisionHistoryLimit: 10,
      selector: { matchLabels },
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: { labels, ...(annotations === undefined ? {} : { annotations }) },
        spec: podSpec(input),
      },
    },
  };
}

function podSpec(input: FrontEndInput): object {
  const { imagePullSecrets = [], nodeSelector, tolerations = [] } = input;
  const unpack = unpacking(input);
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: input.graceSeconds,
    ...(imagePullSecrets.length === 0
      ? {}
      : { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(tolerations.length === 0 ? {} : { tolerations }),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        // A cluster with one node left is better served by two pods on it than by one.
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: selectorLabels(input) },
        // This key excludes pods of the revision that is going away.
        matchLabelKeys: ["pod-template-hash"],
      },
    ],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      // Secrets belong to root; a group without other members may read them.
      fsGroup: USER,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...(unpack === undefined ? {} : { initContainers: [unpack] }),
    containers: [proxyContainer(input)],
    volumes: volumes(input),
  };
}

const SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

function proxyContainer(input: FrontEndInput): object {
  const { cpu, cpuLimit, memory } = quantities(input.resources);
  const probe = (path: string, rest: object): object => ({ httpGet: { path, port: "health" }, ...rest });
  return {
    name: "portico",
    image: input.image,
    // Otherwise it is the image's entry point.
    ...(input.runtime === undefined ? {} : { command: ["node", `${RUNTIME_DIRECTORY}/portico.mjs`] }),
    args: ["serve", CONTAINER_PATHS.config],
    ports: [
      ...input.ports.map(({ targetPort }) => ({ containerPort: targetPort, protocol: "TCP" })),
      { name: "health", containerPort: input.healthPort, protocol: "TCP" },
      ...(input.metricsPort === undefined
        ? []
        : [{ name: "metrics", containerPort: input.metricsPort, protocol: "TCP" }]),
    ],
    // Workers start within a second; a minute is for nodes that are busy.
    startupProbe: probe("/readyz", { periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 30 }),
    readinessProbe: probe("/readyz", { periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 2 }),
    livenessProbe: probe("/healthz", { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }),
    resources: {
      requests: { cpu, memory },
      limits: { ...(cpuLimit === undefined ? {} : { cpu: cpuLimit }), memory },
    },
    securityContext: SECURITY,
    volumeMounts: [
      // Single files, so that other files of the image in these directories stay. The ConfigMap never changes.
      ...configFiles(input).map(({ key, path }) => ({
        name: "config",
        mountPath: path,
        subPath: key,
        readOnly: true,
      })),
      ...(input.runtime === undefined
        ? []
        : [{ name: "runtime", mountPath: RUNTIME_DIRECTORY, readOnly: true }]),
      // Whole directories: the kubelet changes their files when the Secret changes.
      ...input.secrets.map(({ volume, directory }) => ({
        name: volume,
        mountPath: directory,
        readOnly: true,
      })),
      ...input.volumes.map(({ mountPath, subPath }, i) => ({
        name: volumeName(i),
        mountPath,
        ...(subPath === undefined ? {} : { subPath }),
        readOnly: true,
      })),
    ],
  };
}

/** Unpacks the runtime before the proxy starts, with the Node that the proxy runs on. */
function unpacking(input: FrontEndInput): object | undefined {
  if (input.runtime === undefined) return undefined;
  const [from, to] = [`${PACKED_DIRECTORY}/${RUNTIME_KEY}`, `${RUNTIME_DIRECTORY}/portico.mjs`];
  const program =
    'const fs = require("node:fs"); const { gunzipSync } = require("node:zlib"); ' +
    `fs.writeFileSync(${JSON.stringify(to)}, gunzipSync(fs.readFileSync(${JSON.stringify(from)})));`;
  const { cpu, memory } = quantities(input.resources);
  return {
    name: "unpack",
    image: input.image,
    command: ["node", "-e", program],
    resources: { requests: { cpu, memory }, limits: { memory } },
    securityContext: SECURITY,
    volumeMounts: [
      { name: "packed-runtime", mountPath: PACKED_DIRECTORY, readOnly: true },
      { name: "runtime", mountPath: RUNTIME_DIRECTORY },
    ],
  };
}

function volumes(input: FrontEndInput): object[] {
  const runtime = runtimeConfigMap(input);
  return [
    { name: "config", configMap: { name: configMap(input).metadata.name } },
    ...(runtime === undefined
      ? []
      : [
          { name: "packed-runtime", configMap: { name: runtime.metadata.name } },
          { name: "runtime", emptyDir: { sizeLimit: "16Mi" } },
        ]),
    ...input.secrets.map(({ volume, secretName }) => ({
      name: volume,
      secret: { secretName, defaultMode: 0o440 },
    })),
    ...input.volumes.map(({ claimName, nfs }, i) => ({
      name: volumeName(i),
      ...(nfs === undefined
        ? // Read-only as a volume, or the kubelet would give its files to the pods' group.
          { persistentVolumeClaim: { claimName, readOnly: true } }
        : { nfs: { server: nfs.server, path: nfs.path, readOnly: true } }),
    })),
  ];
}

const volumeName = (i: number): string => `files-${i + 1}`;

/** The resources of a pod, including defaults. */
export const quantities = ({ cpu = "500m", cpuLimit, memory = "512Mi" }: PodResources) => ({
  cpu,
  cpuLimit,
  memory,
});

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
