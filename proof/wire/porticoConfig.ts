import { TerraformStack, Testing } from "cdktf";
import {
  Application,
  Action,
  FrontEnd,
  Mode as FrontEndMode,
  TlsMaterial,
  TlsPolicy,
} from "../../src/constructs/index.js";
import { proxyConfigText } from "../../src/render/index.js";
import { HOST, logsOf, type Mode, type Ports, RESPONSE_HEADERS, type SitePaths, WILDCARD } from "./site.js";

/** What a front end of the file-sync service deploys, on the test's ports and paths. */
export function porticoConfig(mode: Mode, site: SitePaths, ports: Ports): string {
  const stack = new TerraformStack(Testing.app(), "stack");
  const frontEnd = new FrontEnd(stack, "FrontEnd", {
    host: { address: "127.0.0.1", publicName: HOST },
    mode:
      mode === "plain" ? FrontEndMode.plain({ httpPort: ports.http, publicPort: 80 }) : tlsMode(site, ports),
    application: Application.fileSync({ installDirectory: site.install }),
    // An upstream that refuses connections is 502 at once, as in nginx.
    upstreams: {
      web: { url: `http://127.0.0.1:${ports.web}`, holdMs: 0 },
      fileServer: { url: `http://127.0.0.1:${ports.files}`, holdMs: 0 },
      webdav: { url: `http://127.0.0.1:${ports.dav}`, holdMs: 0 },
    },
    responseHeaders: RESPONSE_HEADERS,
    paths: { defaultPageDirectory: site.defaultPage, logDirectory: logsOf(mode, site) },
    proxy: { workers: 1 },
  });
  const wild = frontEnd.proxy.addVirtualServer("wild", {
    serverNames: [WILDCARD],
    listeners: [frontEnd.listeners.http!],
  });
  wild.addRoute("all", { path: "/", action: Action.respond(204) });
  return proxyConfigText(frontEnd.proxy.config);
}

/** Clients use port 443, which does not stand in the redirect's Location. */
function tlsMode(site: SitePaths, ports: Ports): FrontEndMode {
  const { http: httpPort, https: httpsPort } = ports;
  return FrontEndMode.tls({
    httpPort,
    httpsPort,
    publicPort: 443,
    material: TlsMaterial.fromFiles(site.tls),
    policy: TlsPolicy.fileSync(),
  });
}
