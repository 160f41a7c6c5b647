import { TerraformStack, Testing } from "cdktf";
import { KubernetesFrontEnd } from "../../src/kubernetes/index.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { PROXY_IMAGE } from "./application.js";
import { MEDIA_DIRECTORY, site, type SiteOptions } from "./site.js";

export interface Variant extends SiteOptions {
  readonly replicas?: number;
  /** Where the certificate comes from. */
  readonly tlsSecret?: string;
}

export const NAMESPACE = "files";
/** Name of the front end. */
export const NAME = "files";
export const TLS_SECRET = "files-tls";
export const TICKET_SECRET = "files-tickets";
export const MEDIA_CLAIM = "media";

export interface FrontEnd {
  readonly manifests: readonly { readonly kind: string }[];
  readonly config: ProxyConfigInput;
}

/** What users write, with as little room for each pod as this machine asks for. */
export function frontEnd({ replicas = 2, tlsSecret = TLS_SECRET, ...options }: Variant): FrontEnd {
  const stack = new TerraformStack(Testing.app(), "cluster");
  const { proxy } = site(stack, options);
  const { manifests } = new KubernetesFrontEnd(stack, NAME, {
    namespace: NAMESPACE,
    proxy,
    image: PROXY_IMAGE,
    replicas,
    tls: { secretName: tlsSecret },
    ticketKeys: { secretName: TICKET_SECRET },
    volumes: [{ mountPath: MEDIA_DIRECTORY, claimName: MEDIA_CLAIM }],
    resources: { cpu: "20m", memory: "256Mi" },
  });
  return { manifests, config: proxy.config };
}

/** The same with everything that has a prop; no image for it is here, so it is only validated. */
export function fullFrontEnd(): FrontEnd["manifests"] {
  const { proxy } = site(new TerraformStack(Testing.app(), "cluster"), { revision: "1" });
  const { manifests } = new KubernetesFrontEnd(proxy, "full", {
    namespace: NAMESPACE,
    proxy,
    image: "registry.example/node:24.0.0",
    runtime: "configMap",
    autoscaling: { min: 2, max: 6, cpuPercent: 60 },
    tls: [{ secretName: TLS_SECRET }, { secretName: "other-tls", directory: "/etc/portico/other" }],
    ticketKeys: { secretName: TICKET_SECRET, rotateMs: 3_600_000 },
    exposure: "nodePort",
    nodePorts: { http: 30_081, https: 30_444 },
    transferGrace: "12h",
    resources: { cpu: "500m", cpuLimit: "1", memory: "256Mi" },
    volumes: [
      { mountPath: MEDIA_DIRECTORY, claimName: MEDIA_CLAIM, subPath: "media" },
      { mountPath: "/srv/avatars", nfs: { server: "192.0.2.20", path: "/export/avatars" } },
    ],
    egressPorts: [8081],
    labels: { team: "files" },
    podAnnotations: { "example.org/scrape": "false" },
    serviceAnnotations: { "example.org/class": "internal" },
    nodeSelector: { "kubernetes.io/os": "linux" },
    tolerations: [{ key: "edge", operator: "Exists", effect: "NoSchedule" }],
    imagePullSecrets: ["registry"],
  });
  return manifests;
}
