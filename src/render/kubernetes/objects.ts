import { createHash } from "node:crypto";

/** A Kubernetes object as a manifest: plain data with the field names of the API. */
export interface Manifest {
  /** Group and version of the API: `apps/v1`. */
  readonly apiVersion: string;
  /** Kind of the object: `Deployment`. */
  readonly kind: string;
  /** Name, namespace and labels. */
  readonly metadata: ManifestMetadata;
  readonly [field: string]: unknown;
}

/** Name, namespace and labels of an object. */
export interface ManifestMetadata {
  /** Name, unique among objects of its kind in the namespace. */
  readonly name: string;
  /** Namespace. */
  readonly namespace: string;
  /** Labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** Annotations, if there are any. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The input of a front end's objects; all values are checked and known. */
export interface FrontEndInput {
  readonly name: string;
  readonly namespace: string;
  /** Labels of all objects and of the pods, besides those that select the pods. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly podAnnotations?: Readonly<Record<string, string>>;
  readonly serviceAnnotations?: Readonly<Record<string, string>>;
  /** Text of the config. */
  readonly config: string;
  /** Small files that the pods need as well, by path. */
  readonly files: ReadonlyMap<string, string>;
  readonly image: string;
  readonly imagePullSecrets?: readonly string[];
  /** The runtime, compressed by gzip, in base64; undefined if the image has it. */
  readonly runtime?: string;
  readonly replicas: number | Autoscaling;
  readonly secrets: readonly MountedSecret[];
  readonly volumes: readonly ServedVolume[];
  readonly resources: PodResources;
  readonly graceSeconds: number;
  readonly ports: readonly ServicePort[];
  readonly healthPort: number;
  /** The port that other pods ask for metrics; undefined if they cannot. */
  readonly metricsPort: number | undefined;
  readonly exposure: Exposure;
  readonly externalTrafficPolicy: "Local" | "Cluster";
  /** Whether something listens on IPv6 as well. */
  readonly dualStack: boolean;
  /** Ports that connections to upstreams may go to; undefined for no network policy. */
  readonly egressPorts?: readonly number[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
}

/** How the Service can be reached. */
export type Exposure = "loadBalancer" | "nodePort" | "clusterIP";

/** Limits of the number of pods, and the target load. */
export interface Autoscaling {
  /** Fewest pods. */
  readonly min: number;
  /** Most pods. */
  readonly max: number;
  /**
   * Target of the average CPU time of the pods, in percent of the requested CPU time: 1 to 100. More pods start above
   * the target.
   * @default 70
   */
  readonly cpuPercent?: number;
}

/** A Secret whose files the pods see in a directory. */
export interface MountedSecret {
  readonly volume: string;
  readonly secretName: string;
  readonly directory: string;
}

/** A volume with served files; the pods mount the volume read-only. */
export interface ServedVolume {
  /** Absolute path in the pods. */
  readonly mountPath: string;
  /** A PersistentVolumeClaim of the namespace that all pods can mount at once. Either this or `nfs`. */
  readonly claimName?: string;
  /** A directory of an NFS server. */
  readonly nfs?: {
    /** Name or address of the NFS server. */
    readonly server: string;
    /** Absolute path of the directory on the server. */
    readonly path: string;
  };
  /**
   * Directory in the volume.
   * @default - the whole volume
   */
  readonly subPath?: string;
}

/** CPU and memory of a pod, as Kubernetes quantities. */
export interface PodResources {
  /**
   * CPU time that each pod requests: `500m` or `2`.
   * @default "500m"
   */
  readonly cpu?: string;
  /**
   * Most CPU time of each pod.
   * @default - no limit: the remaining CPU time of the node
   */
  readonly cpuLimit?: string;
  /**
   * Memory that each pod requests, and the limit of its memory: `512Mi`.
   * @default "512Mi"
   */
  readonly memory?: string;
}

/** A taint that the pods accept. */
export interface Toleration {
  /**
   * The taint's key.
   * @default - every key
   */
  readonly key?: string;
  /**
   * Whether the taint's value has to be equal.
   * @default "Equal"
   */
  readonly operator?: "Exists" | "Equal";
  /**
   * The taint's value.
   * @default - none
   */
  readonly value?: string;
  /**
   * The taint's effect.
   * @default - every effect
   */
  readonly effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/** A port of the Service, and the port of the pods that it leads to. */
export interface ServicePort {
  readonly name: string;
  readonly port: number;
  readonly targetPort: number;
  readonly nodePort?: number;
}

/** Labels by which Service, budget and policies find the pods. They never change: a Deployment's selector cannot. */
export function selectorLabels({ name }: Pick<FrontEndInput, "name">): Record<string, string> {
  return { "app.kubernetes.io/instance": name, "app.kubernetes.io/name": "portico" };
}

export function metadata(
  input: FrontEndInput,
  name: string,
  annotations: Readonly<Record<string, string>> = {},
): ManifestMetadata {
  return {
    name,
    namespace: input.namespace,
    labels: { ...input.labels, ...selectorLabels(input) },
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  };
}

/** Ten digits: enough that no two contents of one front end ever meet. */
export const shortHash = (content: unknown): string =>
  createHash("sha256").update(JSON.stringify(content)).digest("hex").slice(0, 10);
