import { type FrontEndInput, type Manifest, metadata, selectorLabels } from "./objects.js";

const TYPES = { loadBalancer: "LoadBalancer", nodePort: "NodePort", clusterIP: "ClusterIP" } as const;

/** The Service that clients connect to. */
export function service(input: FrontEndInput): Manifest {
  const { exposure, externalTrafficPolicy, ports } = input;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(input, input.name, input.serviceAnnotations),
    spec: {
      type: TYPES[exposure],
      ...(exposure === "clusterIP" ? {} : { externalTrafficPolicy }),
      ...(input.dualStack ? { ipFamilyPolicy: "PreferDualStack" } : {}),
      selector: selectorLabels(input),
      ports: ports.map(({ name, port, targetPort, nodePort }) => ({
        name,
        port,
        targetPort,
        protocol: "TCP",
        ...(nodePort === undefined ? {} : { nodePort }),
      })),
    },
  };
}

/**
 * Clients reach the listeners, and pods reach ports of upstreams and DNS servers. The health listener is not among the
 * ports: a pod's own node, whose kubelet asks it, is never kept out. A policy cannot name a Service, so destinations are
 * not limited, just ports; they are those of the pods behind the Services. Metrics are for pods of the cluster.
 */
export function networkPolicy(input: FrontEndInput): Manifest | undefined {
  if (input.egressPorts === undefined) return undefined;
  const dns = ["UDP", "TCP"].map((protocol) => ({ port: 53, protocol }));
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: metadata(input, input.name),
    spec: {
      podSelector: { matchLabels: selectorLabels(input) },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        { ports: input.ports.map(({ targetPort }) => ({ port: targetPort, protocol: "TCP" })) },
        ...(input.metricsPort === undefined
          ? []
          : [{ from: [{ namespaceSelector: {} }], ports: [{ port: input.metricsPort, protocol: "TCP" }] }]),
      ],
      egress: [{ ports: [...dns, ...input.egressPorts.map((port) => ({ port, protocol: "TCP" }))] }],
    },
  };
}
