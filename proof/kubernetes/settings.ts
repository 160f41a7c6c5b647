/** Settings of the programs of a cluster: what one node on any machine needs, and nothing that is the machine's own. */

const PODS = "10.244.0.0/24";

export function kubeconfig(port: number, token: string): string {
  return json({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "here", cluster: { server: `https://127.0.0.1:${port}`, "insecure-skip-tls-verify": true } },
    ],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "here", context: { cluster: "here", user: "admin" } }],
    "current-context": "here",
  });
}

/** A bridge, and addresses in order. */
export function podNetwork(): string {
  const ipam = { type: "host-local", ranges: [[{ subnet: PODS }]], routes: [{ dst: "0.0.0.0/0" }] };
  return json({
    cniVersion: "0.4.0",
    name: "pods",
    plugins: [
      { type: "bridge", bridge: "pods0", isGateway: true, ipMasq: false, hairpinMode: true, ipam },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
}

export function containerdConfig(folder: string, socket: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "${folder}/containerd/root"
state = "${folder}/containerd/state"
[grpc]
  address = "${folder}/${socket}"
[${cri}]
  sandbox_image = "localhost/pause:1"
  # An ordinary container cannot lower it, and neither can what runs in one.
  restrict_oom_score_adj = true
  disable_apparmor = true
[${cri}.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "${folder}/cni"
[${cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`;
}

export interface KubeletSettings {
  readonly folder: string;
  readonly group: string;
  readonly socket: string;
  /** Where it listens, and where the cluster's DNS does. */
  readonly address: string;
}

export function kubeletConfig({ folder, group, socket, address }: KubeletSettings): string {
  return json({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    address,
    port: 20250,
    healthzPort: 20248,
    readOnlyPort: 0,
    containerRuntimeEndpoint: `unix://${folder}/${socket}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${group}`,
    // Machines of any age will do, with swap and without the right to change the kernel's settings.
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    featureGates: { KubeletInUserNamespace: true },
    localStorageCapacityIsolation: false,
    evictionHard: { "nodefs.available": "1%", "imagefs.available": "1%" },
    clusterDNS: [address],
    clusterDomain: "cluster.local",
    // A changed Secret reaches its pods with the next look at them: by default after up to a minute and a half.
    syncFrequency: "5s",
  });
}

export function proxyConfig(settings: {
  readonly kubeconfig: string;
  readonly node: string;
  readonly address: string;
}): string {
  return json({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: settings.kubeconfig },
    mode: "nftables",
    hostnameOverride: settings.node,
    clusterCIDR: PODS,
    bindAddress: "127.0.0.1",
    healthzBindAddress: "127.0.0.1:20256",
    metricsBindAddress: "127.0.0.1:20249",
    // The kernel's table belongs to the machine.
    conntrack: { maxPerCore: 0 },
    nodePortAddresses: [`${settings.address}/32`],
  });
}

export function dnsConfig({
  kubeconfig,
  address,
}: {
  readonly kubeconfig: string;
  readonly address: string;
}): string {
  return `.:53 {
  bind ${address}
  errors
  kubernetes cluster.local {
    kubeconfig ${kubeconfig} here
  }
}
`;
}

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;
