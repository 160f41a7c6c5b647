import { chownSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { TerraformStack, Testing } from "cdktf";
import { buildBundle } from "../../build/bundle.js";
import { FileSyncFrontEnd, Mode as FrontEndMode, TlsMaterial } from "../../src/constructs/index.js";
import { proxyConfigText } from "../../src/render/index.js";
import { type RunningProcess, startProcess } from "./processes.js";
import { HOST, type Mode, type Ports, RESPONSE_HEADERS, type Site } from "./site.js";

/** Builds the bundle of the sources as they are, and puts it where the user of the test may read it. */
export async function installPortico(site: Site): Promise<string> {
  const { file } = await buildBundle();
  const installed = path.join(site.folder, "portico.mjs");
  copyFileSync(file, installed);
  return installed;
}

/** Starts the real `portico serve` on the config of the front end. */
export async function startPortico(
  bundle: string,
  mode: Mode,
  site: Site,
  ports: Ports,
): Promise<RunningProcess> {
  const folder = path.join(site.folder, `portico-${mode}`);
  const logs = path.join(folder, "logs");
  mkdirSync(logs, { recursive: true });
  if (site.user !== undefined) chownSync(logs, site.user.uid, site.user.gid);
  const config = path.join(folder, "portico.json");
  writeFileSync(config, porticoConfig(mode, site, ports, logs));
  return startProcess({
    command: [process.execPath, bundle, "serve", config],
    user: site.user,
    ports: mode === "tls" ? [ports.http, ports.https] : [ports.http],
  });
}

/** What FileSyncFrontEnd deploys, on the test's ports and paths. */
export function porticoConfig(mode: Mode, site: Site, ports: Ports, logDirectory: string): string {
  const stack = new TerraformStack(Testing.app(), "stack");
  const frontEnd = new FileSyncFrontEnd(stack, "FrontEnd", {
    host: { address: "127.0.0.1", publicName: HOST },
    mode:
      mode === "plain" ? FrontEndMode.plain({ httpPort: ports.http, publicPort: 80 }) : tlsMode(site, ports),
    installDirectory: site.install,
    upstreams: {
      web: { url: `http://127.0.0.1:${ports.web}` },
      fileServer: { url: `http://127.0.0.1:${ports.files}` },
      webdav: { url: `http://127.0.0.1:${ports.dav}` },
    },
    responseHeaders: RESPONSE_HEADERS,
    paths: { defaultPageDirectory: site.defaultPage, logDirectory },
    proxy: { workers: 1 },
  });
  return proxyConfigText(frontEnd.proxy.config);
}

/** Clients use port 443, which does not stand in the redirect's Location. */
function tlsMode(site: Site, ports: Ports): FrontEndMode {
  const { http: httpPort, https: httpsPort } = ports;
  return FrontEndMode.tls({
    httpPort,
    httpsPort,
    publicPort: 443,
    material: TlsMaterial.fromFiles(site.tls),
  });
}
