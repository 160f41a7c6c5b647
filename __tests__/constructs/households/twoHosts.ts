import type { TerraformStack } from "cdktf";
import { Application, Delivery, FrontEndPair, Mode, TlsMaterial } from "../../../src/index.js";

const KEYS = ["AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=", "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY="];

/** A practice that has to stay reachable: two hosts and one address for one site, on two servers. */
export function twoHosts(stack: TerraformStack): FrontEndPair {
  const pair = new FrontEndPair(stack, "practice", {
    hosts: KEYS.map((key, index) => ({
      address: `192.0.2.${11 + index}`,
      interface: "eth0",
      delivery: Delivery.ssh({ hostKey: `ecdsa-sha2-nistp256 ${key}` }),
    })),
    virtualAddress: "192.0.2.20",
    mode: Mode.tls({ material: TlsMaterial.acme({ email: "it@practice.net", agreeToTerms: true }) }),
    firewall: {},
  });
  const sites = pair.addSite("appointments", {
    serverNames: ["practice.net", "www.practice.net"],
    application: Application.server({
      servers: [{ url: "http://192.0.2.31:8080" }, { url: "http://192.0.2.32:8080" }],
      health: { path: "/up" },
      sticky: { cookie: "practice_server" },
    }),
  });
  for (const site of sites) site.routes.web.configure({ requestBodyBytesMax: 20_000_000 });
  return pair;
}
