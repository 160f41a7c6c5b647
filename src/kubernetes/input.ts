import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import type { Construct } from "constructs";
import type { IContainerProxy } from "../constructs/proxy/proxyInterfaces.js";
import { proxyBehind } from "../constructs/proxy/proxyScope.js";
import { refuse } from "../constructs/props/checks.js";
import type { ProxyLimits } from "../constructs/proxy/proxySettings.js";
import type { ProxySettings } from "../constructs/proxy/proxySettings.js";
import { packagedBundle } from "../constructs/service/proxyService.js";
import { unknownLeaves } from "../constructs/props/tokens.js";
import { formatPath } from "../model/config/parse.js";
import {
  limitsWithin,
  isWildcard,
  parseConfig,
  problem,
  type ProxyConfig,
  type ProxyConfigInput,
  upstreamAddress,
  workersWithin,
  serversOf,
} from "../model/index.js";
import { limits } from "../model/schema/limits.js";
import { CONTAINER_PATHS, proxyConfigText } from "../render/index.js";
import {
  type FrontEndInput,
  type MountedSecret,
  type PodResources,
  quantities,
  type ServicePort,
} from "../render/kubernetes/index.js";
import { secondsOf } from "../model/text/duration.js";
import { bytesOf, wholeCpus } from "./names.js";
import { type KubernetesFrontEndProps, secretsOf } from "./props.js";
import { podProblems, reachable } from "./podProblems.js";

/** Pods stop to be endpoints within some seconds, and load balancers ask every few seconds. */
const DRAIN_DELAY_MS = 15_000;
/** From the end of the drain to the end of the process. */
const EXIT_SECONDS = 15;
const TICKET_DIRECTORY = "/etc/portico/ticket-keys";

/** Makes the input of the objects. Throws for everything that would not run in pods. */
export function frontEndInput(construct: Construct, props: KubernetesFrontEndProps): FrontEndInput {
  const { proxy, exposure = "loadBalancer", externalTrafficPolicy = "Local" } = props;
  const path = construct.node.path;
  if (!proxyBehind(proxy).give!(podSettings(props)))
    refuse([
      problem(
        "kubernetes.shared-proxy",
        `${path}.proxy`,
        "also runs in the pods of another front end, which need different settings",
      ),
    ]);
  const config = knownConfig(proxy);
  const secrets = mountedSecrets(props);
  const { drainMs, drainDelayMs } = config.timeouts;
  const grace = props.transferGrace === undefined ? drainMs / 1000 : secondsOf(props.transferGrace)!;
  refuse(podProblems({ path, props, config, grace, secrets }));
  const heard = config.listeners.filter(reachable);
  return {
    name: props.name ?? construct.node.id,
    namespace: props.namespace,
    labels: props.labels,
    podAnnotations: props.podAnnotations,
    serviceAnnotations: props.serviceAnnotations,
    config: proxyConfigText(proxy.config),
    files: new Map(proxy.files),
    image: props.image,
    imagePullSecrets: props.imagePullSecrets,
    runtime:
      props.runtime === "configMap" ? packedRuntime(props.runtimeBundle ?? packagedBundle(path)) : undefined,
    replicas: props.autoscaling ?? props.replicas ?? 2,
    secrets,
    volumes: props.volumes ?? [],
    resources: props.resources ?? {},
    graceSeconds: Math.ceil(grace) + Math.ceil(drainDelayMs / 1000) + EXIT_SECONDS,
    ports: servicePorts(heard, props.nodePorts ?? {}),
    healthPort: config.healthListener!.port,
    metricsPort: metricsPort(config),
    exposure,
    externalTrafficPolicy,
    dualStack: heard.some(({ address }) => isWildcard(address) && address.includes(":")),
    egressPorts: props.networkPolicy === false ? undefined : egressPorts(config, props.egressPorts ?? []),
    nodeSelector: props.nodeSelector,
    tolerations: props.tolerations,
  };
}

/** The port that other pods ask for metrics, if there is one. */
function metricsPort({ metricsListener: metrics }: ProxyConfig): number | undefined {
  return metrics !== undefined && "port" in metrics && isWildcard(metrics.address) ? metrics.port : undefined;
}

/** Default settings of a proxy in pods. */
function podSettings({ proxy, resources = {}, ticketKeys }: KubernetesFrontEndProps): ProxySettings {
  const { cpu, cpuLimit } = quantities(resources);
  return {
    limits: podLimits(resources, proxy.config.workers),
    // A pod that has no limit sees all CPUs of its node, and would start a worker for each.
    ...(cpuLimit === undefined ? { workers: wholeCpus(cpu) } : {}),
    timeouts: { drainDelayMs: DRAIN_DELAY_MS },
    healthListener: { address: "0.0.0.0", port: 9180, anyAddress: true },
    ticketKeys: ticketKeys && {
      file: `${TICKET_DIRECTORY}/${ticketKeys.key ?? "secret"}`,
      rotateMs: ticketKeys.rotateMs,
    },
  };
}

/** The limits of a host would let hostile clients take more memory than a pod may have. */
function podLimits(resources: PodResources, workers: ProxyConfigInput["workers"]): ProxyLimits {
  const { cpu, cpuLimit, memory } = quantities(resources);
  const bytes = bytesOf(memory);
  const room = workersWithin(bytes);
  const automatic = (): number => {
    if (cpuLimit !== undefined) return Math.min(wholeCpus(cpuLimit), room);
    return workers === "auto" ? room : wholeCpus(cpu);
  };
  // A number that is not known yet is refused with the rest of the config.
  const number = typeof workers === "number" && workers > 0 ? workers : automatic();
  const { connectionsMax, concurrentStreamsMax } = limitsWithin(bytes, number, limits.parse({}), []);
  return { connectionsMax, concurrentStreamsMax };
}

/** The config with its defaults; throws if it is not complete. */
function knownConfig(proxy: IContainerProxy): ProxyConfig {
  const { config, problems } = proxyBehind(proxy);
  const fix = "Use a literal: the name of the ConfigMap contains the hash of the config.";
  const unknown = unknownLeaves(config).map(({ path }) =>
    problem("kubernetes.not-known", `${proxy.node.path}.${formatPath(path)}`, "is not known at synthesis", {
      fix,
    }),
  );
  refuse(unknown);
  refuse(problems);
  // The JSON has no undefined fields, like the file.
  const result = parseConfig(JSON.parse(JSON.stringify(config)));
  if (!result.ok) throw new Error("a config without problems was refused");
  return result.value;
}

function mountedSecrets(props: KubernetesFrontEndProps): readonly MountedSecret[] {
  const tls = secretsOf(props).map(({ secretName, directory = CONTAINER_PATHS.tlsDirectory }, i) => ({
    volume: i === 0 ? "tls" : `tls-${i + 1}`,
    secretName,
    directory,
  }));
  if (props.ticketKeys === undefined) return tls;
  const { secretName } = props.ticketKeys;
  return [...tls, { volume: "ticket-keys", secretName, directory: TICKET_DIRECTORY }];
}

/** The ports of the Service: listeners of both families share a published port. */
function servicePorts(
  listeners: ProxyConfig["listeners"],
  nodePorts: Readonly<Record<string, number>>,
): readonly ServicePort[] {
  const ports = new Map<number, ServicePort>();
  for (const { name, port: targetPort, publishedPort: port = targetPort } of listeners) {
    if (ports.has(port)) continue;
    const nodePort = nodePorts[name];
    ports.set(port, { name, port, targetPort, nodePort });
  }
  return [...ports.values()];
}

function egressPorts({ upstreams }: ProxyConfig, further: readonly number[]): readonly number[] {
  const leads = upstreams.flatMap(serversOf).map(({ url }) => upstreamAddress(url));
  const all = [...leads.flatMap((one) => ("port" in one ? [one.port] : [])), ...further];
  return [...new Set(all)].sort((a, b) => a - b);
}

const packedRuntime = (file: string): string => gzipSync(readFileSync(file), { level: 9 }).toString("base64");
