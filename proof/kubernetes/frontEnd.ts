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
