import type { TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode, NodeRuntime, TlsMaterial } from "../../../src/index.js";

/** A family with one Debian host and a domain. */
export function family(stack: TerraformStack, vaultUrl = "http://127.0.0.1:8222"): FrontEnd {
  const front = new FrontEnd(stack, "home", {
    host: {
      address: "192.0.2.10",
      delivery: Delivery.ssh({ hostKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=" }),
    },
    mode: Mode.tls({ material: TlsMaterial.acme({ email: "admin@family.net", agreeToTerms: true }) }),
    service: { nodeRuntime: NodeRuntime.pinned() },
    firewall: {},
  });
  front.addSite("files", {
    serverNames: ["files.family.net"],
    application: Application.seafile({ version: "11", layout: "host" }),
  });
  front.addSite("vault", {
    serverNames: ["vault.family.net"],
    application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
    upstreams: { web: { url: vaultUrl } },
  });
  front.addSite("photos", {
    serverNames: ["photos.family.net"],
    application: Application.immich(),
    rootRedirect: false,
  });
  return front;
}
