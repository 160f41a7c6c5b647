import type { TerraformStack } from "cdktf";
import { Application, ContainerFrontEnd, Mode, type SiteProps, TlsMaterial } from "../../../src/index.js";

/** What takes sites: containers, a cluster, a host, a pair. */
interface TakesSites {
  addSite(id: string, props: SiteProps): unknown;
}

/** Two applications whose containers have names. */
export function addSites(front: TakesSites): void {
  front.addSite("photos", {
    serverNames: ["photos.family.net"],
    application: Application.immich(),
    upstreams: { web: { url: "http://immich-server:2283" } },
  });
  front.addSite("vault", {
    serverNames: ["vault.family.net"],
    application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
    upstreams: { web: { url: "http://vaultwarden:80" } },
  });
}

/** Docker Compose alone, without Terraform on the host: the files to write beside the other Compose files. */
export function compose(stack: TerraformStack): ReadonlyMap<string, string> {
  const front = new ContainerFrontEnd(stack, "home", {
    mode: Mode.tls({ material: TlsMaterial.acme({ email: "admin@family.net", agreeToTerms: true }) }),
  });
  addSites(front);
  return front.proxy.composeFiles({
    image: "registry.example/portico:0.1.0",
    networks: ["immich", "vaultwarden"],
  });
}
