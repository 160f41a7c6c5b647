import type { TerraformStack } from "cdktf";
import {
  Action,
  Application,
  ContainerFrontEnd,
  ContainerProxy,
  type ContainerProxyProps,
  Mode,
  TlsMaterial,
} from "../../src/index.js";
import { KubernetesFrontEnd, type KubernetesFrontEndProps } from "../../src/kubernetes/index.js";
import { KubernetesProvider, newStack } from "../../testkit/stacks.js";

export const IMAGE = "registry.example/portico:0.1.0";

/** A file-sync service whose daemons are Services. */
export function fileSync(stack: TerraformStack, settings: ContainerProxyProps = {}): ContainerFrontEnd {
  return new ContainerFrontEnd(stack, "sync", {
    mode: Mode.tls(),
    serverNames: ["files.example.org"],
    upstreams: {
      web: { url: "http://web.sync.svc:8000" },
      webdav: { url: "http://webdav.sync.svc:8080" },
      fileServer: { url: "http://file-server.sync.svc:8082" },
    },
    application: Application.fileSync({ mediaDirectory: "/srv/media" }),
    proxy: settings,
  });
}

/** A proxy in containers with one https listener, and a route to one Service. */
export function proxy(stack: TerraformStack): ContainerProxy {
  const one = new ContainerProxy(stack, "proxy");
  const tls = { material: TlsMaterial.fromSecret() };
  const https = one.addListener("https", { port: 8443, publishedPort: 443, tls });
  const server = one.addVirtualServer("site", { serverNames: ["_"], listeners: [https], default: true });
  const app = one.addUpstream("app", { url: "http://app.files.svc:8000" });
  server.addRoute("app", { path: "/", action: Action.proxy(app) });
  return one;
}

export interface Site {
  readonly stack: TerraformStack;
  readonly frontEnd: KubernetesFrontEnd;
}

/** A front end with these props besides the usual ones. */
export function site(
  props: Partial<KubernetesFrontEndProps> = {},
  make: (stack: TerraformStack) => ContainerProxy = proxy,
): Site {
  const stack = newStack();
  new KubernetesProvider(stack, "kubernetes");
  const frontEnd = new KubernetesFrontEnd(stack, "files", {
    namespace: "files",
    proxy: make(stack),
    image: IMAGE,
    tls: { secretName: "files-tls" },
    ...props,
  });
  return { stack, frontEnd };
}

/** The whole service, with everything that has a prop. */
export function fullSite(): Site {
  return site(
    {
      runtime: "configMap",
      runtimeBundle: `${__dirname}/site.ts`,
      image: "registry.example/node:22.12.0-slim",
      replicas: undefined,
      autoscaling: { min: 2, max: 6, cpuPercent: 60 },
      ticketKeys: { secretName: "files-ticket-keys", rotateMs: 3_600_000 },
      exposure: "nodePort",
      nodePorts: { http: 30_080, https: 30_443 },
      transferGrace: "12h",
      resources: { cpu: "1500m", memory: "1Gi" },
      volumes: [
        { mountPath: "/srv/media", claimName: "media", subPath: "seahub/media" },
        { mountPath: "/srv/avatars", nfs: { server: "192.0.2.20", path: "/export/avatars" } },
      ],
      egressPorts: [8081],
      labels: { team: "files" },
      podAnnotations: { "example.org/scrape": "false" },
      serviceAnnotations: { "example.org/${x}": "100%{y}" },
      nodeSelector: { "kubernetes.io/os": "linux" },
      tolerations: [{ key: "edge", operator: "Exists", effect: "NoSchedule" }],
      imagePullSecrets: ["registry"],
    },
    (stack) => fileSync(stack).proxy,
  );
}
