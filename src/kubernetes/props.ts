import type { Construct } from "constructs";
import type { InputOf } from "../model/schema/inferred.js";
import { ticketKeys } from "../model/config/tls.js";
import { secondsOf } from "../model/text/duration.js";
import type { IContainerProxy } from "../constructs/proxy/proxyInterfaces.js";
import { CONTAINER_PROXY } from "../constructs/props/instances.js";
import { kindsOf } from "../constructs/props/fieldTable.js";
import {
  type PathOf,
  choice,
  either,
  fields,
  flag,
  listOf,
  number,
  type PropKind,
  type PropTable,
  record,
  refuseProps,
  required,
  text,
} from "../constructs/props/propTable.js";
import { unknownLeaves } from "../constructs/props/tokens.js";
import { formatPath } from "../model/config/parse.js";
import { type Problem, problem } from "../model/index.js";
import { isFilePath } from "../model/text/textRule.js";
import {
  type Autoscaling,
  type Exposure,
  type ServedVolume,
  type PodResources,
  selectorLabels,
  type Toleration,
} from "../render/kubernetes/index.js";
import {
  DURATION,
  FRONT_END_NAME,
  labelProblems,
  LABEL_NAME,
  nameProblems,
  OBJECT_NAME,
  QUANTITIES,
  quantityProblems,
} from "./names.js";

/** Options of a front end in a cluster. Every value must be known when the app is synthesized. */
export interface KubernetesFrontEndProps {
  /** Namespace of all objects; it must exist. */
  readonly namespace: string;
  /** The proxy of the pods. */
  readonly proxy: IContainerProxy;
  /**
   * Image of the pods, with a fixed tag or digest. With `runtime: "configMap"`, any image with a `node` that Portico
   * supports.
   */
  readonly image: string;
  /**
   * Source of the runtime: the image, or a ConfigMap with the runtime of this package, which needs no special image.
   * @default "image"
   */
  readonly runtime?: "image" | "configMap";
  /**
   * The runtime for `runtime: "configMap"`: `portico.mjs`, on the machine that synthesizes.
   * @default - the one of this package
   */
  readonly runtimeBundle?: string;
  /**
   * Name of the objects: lower-case letters, digits and `-`.
   * @default - the construct's id
   */
  readonly name?: string;
  /**
   * Number of pods, from 1 to 1000. Either this or `autoscaling`.
   * @default 2
   */
  readonly replicas?: number;
  /**
   * Adjusts the number of pods to their load. Needs the cluster's metrics server.
   * @default - a fixed number
   */
  readonly autoscaling?: Autoscaling;
  /**
   * Secrets of type kubernetes.io/tls with the proxy's certificates, as from cert-manager. A renewed certificate
   * needs no restart.
   * @default - none; then no listener may be https
   */
  readonly tls?: TlsSecret | readonly TlsSecret[];
  /**
   * A Secret for the keys of TLS session tickets, so that clients resume sessions with any pod.
   * @default - each pod creates its own keys
   */
  readonly ticketKeys?: SharedTicketSecret;
  /**
   * How clients reach the Service.
   * @default "loadBalancer"
   */
  readonly exposure?: Exposure;
  /**
   * Ports of the nodes, by listener: 1 to 65535, and within the cluster's range. For `nodePort` and `loadBalancer`.
   * @default - the cluster chooses
   */
  readonly nodePorts?: Readonly<Record<string, number>>;
  /**
   * `Local` keeps clients' addresses: nodes forward connections only to pods on the same node. `Cluster` loses the
   * addresses, unless every listener has `proxyProtocol` (`kubernetes.client-address`).
   * @default "Local"
   */
  readonly externalTrafficPolicy?: "Local" | "Cluster";
  /**
   * Time for the transfers of a pod that stops, before Kubernetes kills the pod: `90s`, `30m`, `10h`. Not shorter
   * than the proxy's `timeouts.drainMs` (`kubernetes.short-grace`), after which the proxy cuts the transfers. A pod
   * without transfers stops at once.
   * @default - the proxy's `timeouts.drainMs`: 10 hours
   */
  readonly transferGrace?: string;
  /**
   * CPU and memory of each pod. Without `workers` of the proxy and without a `cpuLimit`, each pod has a worker for
   * every requested CPU. The memory determines `limits.connectionsMax` and `limits.concurrentStreamsMax` that the
   * proxy does not set, so that clients cannot exceed the memory: 142 and 16 for one worker in 512 MiB.
   * @default - half a CPU and 512 MiB
   */
  readonly resources?: PodResources;
  /**
   * Volumes with the files that routes serve.
   * @default - none
   */
  readonly volumes?: readonly ServedVolume[];
  /**
   * Whether a NetworkPolicy limits the clients of the pods and the ports that the pods connect to.
   * @default true
   */
  readonly networkPolicy?: boolean;
  /**
   * Further ports that the NetworkPolicy opens for connections of the pods. Network plugins see the ports of the pods
   * behind a Service: list ports that differ from the ports of the upstreams' URLs.
   * @default - none
   */
  readonly egressPorts?: readonly number[];
  /**
   * Labels of all objects and pods.
   * @default - only the labels that select the pods
   */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * Annotations of the pods.
   * @default - none
   */
  readonly podAnnotations?: Readonly<Record<string, string>>;
  /**
   * Annotations of the Service, by which clouds configure their load balancers.
   * @default - none
   */
  readonly serviceAnnotations?: Readonly<Record<string, string>>;
  /**
   * Labels of the nodes that pods may run on.
   * @default - all nodes
   */
  readonly nodeSelector?: Readonly<Record<string, string>>;
  /**
   * Taints of nodes that pods accept.
   * @default - none
   */
  readonly tolerations?: readonly Toleration[];
  /**
   * Names of Secrets for pulling the image.
   * @default - none
   */
  readonly imagePullSecrets?: readonly string[];
}

/** A Secret of type kubernetes.io/tls. */
export interface TlsSecret {
  /** Name of the Secret. */
  readonly secretName: string;
  /**
   * Directory of `tls.crt` and `tls.key` in the pods: the directory of `TlsMaterial.fromSecret`.
   * @default "/etc/portico/tls"
   */
  readonly directory?: string;
}

/** A Secret from which all pods derive their ticket keys. */
export interface SharedTicketSecret extends Pick<InputOf<typeof ticketKeys>, "rotateMs"> {
  /** Name of the Secret. */
  readonly secretName: string;
  /**
   * Key in the Secret. The value has the content of `file` of `SharedTicketKeys`.
   * @default "secret"
   */
  readonly key?: string;
}

const CPU: PropKind = { ...text, allowed: QUANTITIES.cpu.allowed };
const MEMORY: PropKind = { ...text, allowed: QUANTITIES.memory.allowed };
const TLS_SECRET = fields<TlsSecret>({ secretName: required(text), directory: text });

const PROPS: PropTable<KubernetesFrontEndProps> = {
  namespace: required(text),
  proxy: required(CONTAINER_PROXY),
  image: required(text),
  runtime: choice("image", "configMap"),
  runtimeBundle: text,
  name: text,
  replicas: number,
  autoscaling: fields<Autoscaling>({ min: required(number), max: required(number), cpuPercent: number }),
  tls: either(TLS_SECRET, listOf(TLS_SECRET)),
  ticketKeys: fields<SharedTicketSecret>({
    secretName: required(text),
    key: text,
    ...kindsOf(ticketKeys, "rotateMs"),
  }),
  exposure: choice("loadBalancer", "nodePort", "clusterIP"),
  nodePorts: record,
  externalTrafficPolicy: choice("Local", "Cluster"),
  transferGrace: { ...text, allowed: DURATION },
  resources: fields<PodResources>({ cpu: CPU, cpuLimit: CPU, memory: MEMORY }),
  volumes: listOf(
    fields<ServedVolume>({
      mountPath: required(text),
      claimName: text,
      nfs: fields<NonNullable<ServedVolume["nfs"]>>({ server: required(text), path: required(text) }),
      subPath: text,
    }),
  ),
  networkPolicy: flag,
  egressPorts: listOf(number),
  labels: record,
  podAnnotations: record,
  serviceAnnotations: record,
  nodeSelector: record,
  tolerations: listOf(
    fields<Toleration>({
      key: text,
      operator: choice("Exists", "Equal"),
      value: text,
      effect: choice("NoSchedule", "PreferNoSchedule", "NoExecute"),
    }),
  ),
  imagePullSecrets: listOf(text),
};

/** Refuses props from which no object could be made, whatever the proxy. */
export function refuseFrontEndProps({ node }: Construct, props: KubernetesFrontEndProps): void {
  const at = (name: string): string => `${node.path}.${name}`;
  refuseProps({ node } as Construct, props, PROPS, (fit) => {
    const unknown = unknownProblems(fit, at);
    return unknown.length > 0 ? unknown : valueProblems(fit, at, node.id);
  });
}

function unknownProblems({ proxy: _, ...values }: KubernetesFit, at: PathOf): Problem[] {
  return unknownLeaves(values).map(({ path }) =>
    problem("kubernetes.not-known", at(formatPath(path)), "is not known at synthesis", {
      fix: "Use a literal: the manifests are plain data, and the name of the ConfigMap contains the hash of its content.",
    }),
  );
}

function valueProblems(props: KubernetesFit, at: PathOf, id: string): Problem[] {
  return [
    ...nameProblems(at("name"), props.name ?? id, FRONT_END_NAME),
    ...nameProblems(at("namespace"), props.namespace, LABEL_NAME),
    ...secretsOf(props).flatMap(({ secretName }) =>
      nameProblems(at("tls.secretName"), secretName, OBJECT_NAME),
    ),
    ...nameProblems(at("ticketKeys.secretName"), props.ticketKeys?.secretName, OBJECT_NAME),
    ...(props.imagePullSecrets ?? []).flatMap((name, i) =>
      nameProblems(at(`imagePullSecrets[${i}]`), name, OBJECT_NAME),
    ),
    ...quantityProblems(at("resources.cpu"), "cpu", props.resources?.cpu),
    ...quantityProblems(at("resources.cpuLimit"), "cpu", props.resources?.cpuLimit),
    ...quantityProblems(at("resources.memory"), "memory", props.resources?.memory),
    ...labelProblems(at("labels"), props.labels, Object.keys(selectorLabels({ name: "" }))),
    ...labelProblems(at("nodeSelector"), props.nodeSelector),
    ...countProblems(props, at),
    ...volumeProblems(props, at),
    ...graceProblems(props, at),
  ];
}

type KubernetesFit = Partial<KubernetesFrontEndProps>;

export function secretsOf({ tls = [] }: KubernetesFit): readonly TlsSecret[] {
  return Array.isArray(tls) ? (tls as readonly TlsSecret[]) : [tls as TlsSecret];
}

const REPLICAS_MAX = 1000;

function countProblems(
  { replicas, autoscaling, egressPorts = [], nodePorts = {} }: KubernetesFit,
  at: PathOf,
) {
  const isWhole = (value: number, min: number, max: number): boolean =>
    Number.isInteger(value) && value >= min && value <= max;
  const whole = (name: string, value: number | undefined, min: number, max: number): Problem[] => {
    if (value === undefined || isWhole(value, min, max)) return [];
    const more = { received: value, allowed: `a whole number from ${min} to ${max}` };
    return [problem("config.out-of-range", at(name), "is out of range", more)];
  };
  const both = replicas !== undefined && autoscaling !== undefined;
  const { min = 1 } = autoscaling ?? {};
  return [
    ...whole("replicas", replicas, 1, REPLICAS_MAX),
    ...whole("autoscaling.min", autoscaling?.min, 1, REPLICAS_MAX),
    // A wrong minimum is no bound.
    ...whole("autoscaling.max", autoscaling?.max, isWhole(min, 1, REPLICAS_MAX) ? min : 1, REPLICAS_MAX),
    ...whole("autoscaling.cpuPercent", autoscaling?.cpuPercent, 1, 100),
    ...egressPorts.flatMap((port, i) => whole(`egressPorts[${i}]`, port, 1, 65_535)),
    ...Object.entries(nodePorts).flatMap(([name, port]) => whole(`nodePorts.${name}`, port, 1, 65_535)),
    ...(both
      ? [
          problem("kubernetes.bad-value", at("replicas"), "is set together with `autoscaling`", {
            received: replicas,
            fix: "Set either `replicas` or `autoscaling`.",
          }),
        ]
      : []),
  ];
}

function volumeProblems({ volumes = [] }: KubernetesFit, at: PathOf): Problem[] {
  return volumes.flatMap(({ mountPath, claimName, nfs }, i) => {
    const path = at(`volumes[${i}]`);
    const more = { received: mountPath, allowed: "an absolute path in the pods" };
    return [
      ...(isFilePath(mountPath) && mountPath !== "/"
        ? []
        : [problem("config.bad-file-path", `${path}.mountPath`, "is not the path of a directory", more)]),
      ...nameProblems(`${path}.claimName`, claimName, OBJECT_NAME),
      ...((claimName === undefined) === (nfs === undefined)
        ? [
            problem(
              "kubernetes.bad-value",
              path,
              claimName === undefined ? "has no source" : "has two sources",
              {
                allowed: "either `claimName` or `nfs`",
                fix: "Set either `claimName` or `nfs`.",
              },
            ),
          ]
        : []),
    ];
  });
}

function graceProblems({ transferGrace }: KubernetesFit, at: PathOf): Problem[] {
  if (transferGrace === undefined || secondsOf(transferGrace) !== undefined) return [];
  const more = { received: transferGrace, allowed: DURATION, fix: `Use ${DURATION}.` };
  return [problem("kubernetes.bad-value", at("transferGrace"), "is not a duration", more)];
}
