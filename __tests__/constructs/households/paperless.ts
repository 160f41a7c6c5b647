import type { TerraformStack } from "cdktf";
import { Action, Application, FrontEnd, Mode, TlsMaterial } from "../../../src/index.js";

/** An office without paper: documents for everyone who may log in, and the printer's pages for the office's network only. */
export function paperless(stack: TerraformStack): FrontEnd {
  const front = new FrontEnd(stack, "paper", {
    host: { address: "10.1.0.5" },
    mode: Mode.tls({
      material: TlsMaterial.fromFiles({ certificate: "/etc/tls/chain.pem", key: "/etc/tls/key.pem" }),
    }),
    firewall: { allowed: [{ port: 8443, from: ["10.1.0.0/16", "10.8.0.0/24"] }] },
  });
  front.addSite("paper", {
    serverNames: ["paper.office.net"],
    application: Application.server("http://127.0.0.1:8010"),
  });
  const material = TlsMaterial.fromFiles({ certificate: "/etc/tls/chain.pem", key: "/etc/tls/key.pem" });
  const inside = front.proxy.addListener("inside", { port: 8443, tls: { material } });
  front.defaultServer.addListeners(inside);
  const printer = front.proxy.addVirtualServer("printer", {
    serverNames: ["printer.office.net"],
    listeners: [inside],
  });
  printer.addRoute("pages", { path: "/", action: Action.proxy("http://10.1.0.40:80") });
  return front;
}
