import { isLoopback, isWildcard, type Problem, problem, type ProxyConfig } from "../model/index.js";
import { containerProblems } from "../constructs/proxy/containerProblems.js";
import { proxyConfigText } from "../render/index.js";
import type { MountedSecret } from "../render/kubernetes/index.js";
import { LABEL_NAME, nameProblems } from "./names.js";
import type { KubernetesFrontEndProps } from "./props.js";

/** A config, and the other input of its pods. */
export interface PodPlan {
  /** Path of the construct. */
  readonly path: string;
  readonly props: KubernetesFrontEndProps;
  readonly config: ProxyConfig;
  /** Seconds that transfers get when a pod stops. */
  readonly grace: number;
  readonly secrets: readonly MountedSecret[];
}

type PodListener = ProxyConfig["listeners"][number];

/** Whether anything outside the pod can connect to it. */
export const reachable = ({ address }: PodListener): boolean => !isLoopback(address);

/** Everything that a host could do and pods cannot, each with the way out. */
export function podProblems(plan: PodPlan): Problem[] {
  return [
    ...listenerProblems(plan),
    ...checkProblems(plan),
    ...upstreamAndFileProblems(plan),
    ...certificateProblems(plan),
    ...logProblems(plan),
    ...mountProblems(plan),
    ...nodePortProblems(plan),
    ...sizeProblems(plan),
    ...graceProblems(plan),
    ...pauseProblems(plan),
  ];
}

/** A pause would have to reach each pod, and a starting pod would not know it. */
function pauseProblems({ props: { proxy } }: PodPlan): Problem[] {
  if (proxy.config.maintenance === undefined) return [];
  const fix =
    "Remove `maintenance`, and point the application's Service at a maintenance page while you work on the application.";
  const message = "has no effect: `portico maintenance` is not available in pods";
  return [problem("kubernetes.bad-value", `${proxy.node.path}.maintenance`, message, { fix })];
}

const at = ({ props }: PodPlan, kind: "listeners" | "upstreams", i: number): string =>
  props.proxy[kind][i]!.node.path;

function listenerProblems(plan: PodPlan): Problem[] {
  const { props, path, config } = plan;
  const { listeners, healthListener, metricsListener } = config;
  const heard = listeners.filter(reachable);
  const each = listeners.flatMap((listener, i) => {
    const { port, publishedPort = port, address, name } = listener;
    const where = at(plan, "listeners", i);
    const fix = `Set \`port: ${port + 8000}, publishedPort: ${publishedPort}\`: pods run without privileges.`;
    return [
      ...(port >= 1024
        ? []
        : [
            problem("kubernetes.privileged-port", `${where}.port`, "is a privileged port", {
              received: port,
              allowed: "1024 to 65535",
              fix,
            }),
          ]),
      ...(isWildcard(address) || isLoopback(address) ? [] : [badAddress(`${where}.address`, address)]),
      ...(reachable(listener) ? nameProblems(`${where}.name`, name, LABEL_NAME) : []),
    ];
  });
  const all = heard.every(({ proxyProtocol }) => proxyProtocol !== undefined);
  return [
    ...each,
    ...healthProblems(`${props.proxy.node.path}.healthListener`, healthListener),
    ...metricsProblems(`${props.proxy.node.path}.metricsListener`, metricsListener),
    ...(props.externalTrafficPolicy === "Cluster" && props.exposure !== "clusterIP" && !all
      ? [
          problem(
            "kubernetes.client-address",
            `${path}.externalTrafficPolicy`,
            "hides the clients' addresses from the pods",
            {
              received: "Cluster",
              allowed: "`Local`, or `Cluster` with `proxyProtocol` on every listener",
            },
          ),
        ]
      : []),
  ];
}

/** The kubelet asks at the pod's own address. */
function healthProblems(path: string, health: ProxyConfig["healthListener"]): Problem[] {
  if (health === undefined) {
    const allowed = "a health listener, which every front end in a cluster gets by default";
    const fix =
      "Remove the override of `healthListener`: without it Kubernetes cannot tell whether a pod is ready.";
    return [problem("kubernetes.bad-value", path, "is missing", { allowed, fix })];
  }
  if (isWildcard(health.address)) return [];
  const fix = "Remove `healthListener`, or use `0.0.0.0` with `anyAddress: true`.";
  const more = { received: health.address, allowed: "0.0.0.0, or :: for IPv6", fix };
  const message = "is not an address that the kubelet can reach";
  return [problem("kubernetes.bad-address", `${path}.address`, message, more)];
}

/** Prometheus is a separate pod, or another container of this pod. */
function metricsProblems(path: string, metrics: ProxyConfig["metricsListener"]): Problem[] {
  if (metrics === undefined || !("port" in metrics)) return [];
  if (isWildcard(metrics.address) || isLoopback(metrics.address)) return [];
  const fix = "Use `0.0.0.0` with `anyAddress: true`, or `127.0.0.1` for a program in the same pod.";
  return [badAddress(`${path}.address`, metrics.address, fix)];
}

function badAddress(path: string, received: string, fix?: string): Problem {
  const more = { received, allowed: "0.0.0.0 or 127.0.0.1, or :: or ::1 for IPv6", fix };
  return problem("kubernetes.bad-address", path, "is not an address that every pod has", more);
}

/** On loopback, and in a pod's files, there is nothing but the proxy itself. */
const upstreamAndFileProblems = ({ props: { proxy, volumes = [] }, config, secrets }: PodPlan): Problem[] =>
  containerProblems(proxy, config, {
    area: "kubernetes",
    mounted: [...volumes.map(({ mountPath }) => mountPath), ...secrets.map(({ directory }) => directory)],
    words: {
      lacking: "the pods do not have",
      itself: "the pod itself",
      url: "the URL of a Service, or of a host outside the pod",
      volumes: "one of the `volumes`",
    },
  });

/** The cluster checks the servers. */
const checkProblems = (plan: PodPlan): Problem[] =>
  plan.config.upstreams.flatMap(({ health }, i) => {
    if (health === undefined) return [];
    const fix =
      "Remove `health`, and use the URL of a Service: the cluster checks each pod of the Service (`readinessProbe`).";
    const where = `${at(plan, "upstreams", i)}.health`;
    const message = "is set, but in a cluster Kubernetes checks the servers";
    return [problem("kubernetes.bad-value", where, message, { fix })];
  });

function certificateProblems(plan: PodPlan): Problem[] {
  const { config, secrets } = plan;
  return config.listeners.flatMap(({ tls }, i) => {
    if (tls === undefined) return [];
    const path = `${at(plan, "listeners", i)}.tls`;
    return [tls, ...tls.certificates].flatMap(({ acme, certificate, key }) => {
      if (acme !== undefined) {
        const message =
          "requests a certificate by ACME from inside the pods: two pods of a rollout would both request it";
        return [problem("kubernetes.acme", path, message, { received: acme.names })];
      }
      const files = [certificate, key].filter((file) => file !== undefined);
      const lost = files.filter((file) => !secrets.some(({ directory }) => file.startsWith(`${directory}/`)));
      if (lost.length === 0) return [];
      const fix = `Set \`tls: { secretName }\` of ${plan.path}, and use \`TlsMaterial.fromSecret()\` for the listener.`;
      const more = { received: lost, fix };
      return [problem("kubernetes.no-volume", path, "names files that are in no mounted Secret", more)];
    });
  });
}

/** Log files: pods have a read-only root file system. */
function logProblems({ props: { proxy }, config }: PodPlan): Problem[] {
  const servers = proxy.virtualServers;
  const routes = config.virtualServers.flatMap(({ routes }, s) =>
    routes.map((route, r) => ({ ...route, path: servers[s]!.routes[r]?.node.path ?? servers[s]!.node.path })),
  );
  const logs = [
    ...(["access", "error"] as const).map((name) => ({
      at: `${proxy.node.path}.logs.${name}`,
      log: config.logs[name],
    })),
    ...routes.flatMap(({ path, accessLog, errorLog }) => [
      { at: `${path}.accessLog`, log: accessLog },
      { at: `${path}.errorLog`, log: errorLog },
    ]),
  ];
  return logs.flatMap(({ at, log }) =>
    typeof log !== "object" || !("path" in log)
      ? []
      : [
          problem("kubernetes.no-volume", at, "is a file, but pods cannot write files", {
            received: log.path,
            allowed: "`stdout` or `stderr`",
            fix: 'Log to a stream: `{ stream: "stdout" }`.',
          }),
        ],
  );
}

/** The API refuses two volumes at one place. */
function mountProblems({ path, props, secrets }: PodPlan): Problem[] {
  const places = [
    ...secrets.map(({ directory }) => directory),
    ...(props.volumes ?? []).map(({ mountPath }) => mountPath),
  ];
  const twice = places.filter((place, i) => places.indexOf(place) !== i);
  const fix = "Use a different directory for each Secret and volume.";
  return twice.map((received) =>
    problem("kubernetes.bad-value", path, "mounts two volumes at the same path", { received, fix }),
  );
}

function nodePortProblems({ path, props, config }: PodPlan): Problem[] {
  const { nodePorts = {}, exposure } = props;
  const names = config.listeners.filter(reachable).map(({ name }) => name);
  const inside = exposure === "clusterIP" && Object.keys(nodePorts).length > 0;
  return [
    ...(inside
      ? [
          problem(
            "kubernetes.bad-value",
            `${path}.nodePorts`,
            "has no effect: a Service of type ClusterIP has no node ports",
            {
              received: nodePorts,
              fix: 'Remove `nodePorts`, or set `exposure: "nodePort"` or `exposure: "loadBalancer"`.',
            },
          ),
        ]
      : []),
    ...Object.keys(nodePorts).flatMap((name) => {
      if (names.includes(name)) return [];
      const more = { received: name, allowed: names.join(", ") };
      const message = "is not the name of a listener";
      return [problem("config.unknown-reference", `${path}.nodePorts.${name}`, message, more)];
    }),
  ];
}

const CONFIG_MAP_BYTES_MAX = 1024 * 1024;

function sizeProblems({ path, props }: PodPlan): Problem[] {
  const texts = [proxyConfigText(props.proxy.config), ...props.proxy.files.values()];
  const received = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (received <= CONFIG_MAP_BYTES_MAX) return [];
  const more = {
    received,
    allowed: `up to ${CONFIG_MAP_BYTES_MAX} bytes`,
    fix: "Put large files on a volume.",
  };
  return [
    problem(
      "kubernetes.bad-value",
      `${path}.proxy`,
      "has a config and files that are too large for a ConfigMap",
      more,
    ),
  ];
}

function graceProblems({ path, props, config, grace }: PodPlan): Problem[] {
  const drain = config.timeouts.drainMs / 1000;
  if (grace >= drain) return [];
  const more = {
    received: props.transferGrace,
    allowed: `at least "${Math.ceil(drain)}s", the proxy's \`timeouts.drainMs\``,
  };
  return [
    problem(
      "kubernetes.short-grace",
      `${path}.transferGrace`,
      "is shorter than the drain of the proxy",
      more,
    ),
  ];
}
