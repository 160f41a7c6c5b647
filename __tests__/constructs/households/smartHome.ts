import type { TerraformStack } from "cdktf";
import { Application, FrontEnd, Mode, TlsMaterial } from "../../../src/index.js";

/** A house at home behind a router: Home Assistant, Jellyfin for films, and calendars, each by its name. */
export function smartHome(stack: TerraformStack): FrontEnd {
  const front = new FrontEnd(stack, "house", {
    host: { address: "192.168.1.10" },
    mode: Mode.tls({ material: TlsMaterial.acme({ email: "me@house.net", agreeToTerms: true }) }),
    activation: {},
    firewall: {},
    outputs: true,
  });
  const assistant = front.addSite("assistant", {
    serverNames: ["ha.house.net"],
    application: Application.server("http://127.0.0.1:8123"),
  });
  // 400 if Home Assistant does not trust the proxy.
  assistant.routes.web.configure({ expect: { path: "/manifest.json", status: 200 } });
  const films = front.addSite("films", {
    serverNames: ["films.house.net"],
    application: Application.server({ url: "http://192.168.1.20:8096", readTimeoutMs: 600_000 }),
  });
  // Clients put their key into the query.
  films.routes.web.configure({ logQuery: "names", expect: { path: "/health", status: 200 } });
  front.addSite("calendars", {
    serverNames: ["dav.house.net"],
    application: Application.radicale(),
  });
  return front;
}
