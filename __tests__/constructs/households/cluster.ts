import type { TerraformStack } from "cdktf";
import { Application, ContainerFrontEnd, Mode, TlsMaterial } from "../../../src/index.js";
import { KubernetesFrontEnd } from "../../../src/kubernetes/index.js";

/** An association with a small cluster: a cloud and a wiki, each with a Secret of cert-manager. */
export function cluster(stack: TerraformStack): KubernetesFrontEnd {
  const front = new ContainerFrontEnd(stack, "sites", {
    mode: Mode.tls(),
    serverNames: ["cloud.club.net"],
    application: Application.nextcloud({ push: true }),
    upstreams: {
      web: { url: "http://nextcloud.cloud.svc:80" },
      push: { url: "http://push.cloud.svc:7867" },
    },
  });
  front.addSite("wiki", {
    serverNames: ["wiki.club.net"],
    application: Application.server("http://wiki.wiki.svc:3000"),
    tls: TlsMaterial.fromSecret("/etc/portico/wiki"),
  });
  return new KubernetesFrontEnd(stack, "front", {
    namespace: "front",
    proxy: front.proxy,
    image: "registry.example/portico:0.1.0",
    tls: [{ secretName: "cloud-tls" }, { secretName: "wiki-tls", directory: "/etc/portico/wiki" }],
  });
}
