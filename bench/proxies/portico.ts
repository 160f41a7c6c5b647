import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { TerraformStack, Testing } from "cdktf";
import { buildBundle } from "../../build/bundle.js";
import { ROOT } from "../../build/paths.js";
import {
  Application,
  Action,
  FrontEnd,
  Mode,
  TlsMaterial,
  TlsPolicy,
  type UpstreamProps,
} from "../../src/constructs/index.js";
import { proxyConfigText } from "../../src/render/index.js";
import { HOST } from "../lib/site.js";
import { BEFORE } from "../lib/work.js";
import { withStep } from "./requestSteps.js";
import { applicationServers, bulkUpstreams, type ProxyKind, type Setup } from "../lib/proxy.js";

const { version: VERSION } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as {
  version: string;
};

/** The bundle that is measured; {@link buildPortico} sets it. */
let bundle: string | undefined;
/** The Node that runs it. */
let node = process.execPath;

/** Builds the bundle of the sources as they are into the run's own folder: what others build meanwhile stays out. */
export async function buildPortico(folder: string, by: string): Promise<void> {
  node = by;
  bundle = (await buildBundle(path.join(folder, "portico.mjs"))).file;
}

/** The command line that is measured. */
export function porticoCommand(): readonly string[] {
  return [node, bundle!];
}

/** What is measured: the bundle and the config as a front end of the file-sync service deploys them, nothing switched off. */
export const portico: ProxyKind = build("portico", porticoCommand);

/** An earlier build, with the same config. */
export const porticoBefore = (file: string): ProxyKind => build(BEFORE, () => [node, file]);

function build(name: string, program: () => readonly string[]): ProxyKind {
  return {
    name,
    family: "portico",
    abilities: ["http1", "tls", "http2", "static", "upstreamTls"],
    version: () => VERSION,
    prepare(setup) {
      const config = path.join(setup.folder, "portico.json");
      writeFileSync(config, porticoConfig(setup));
      return { command: [...program(), "serve", config] };
    },
  };
}

function porticoConfig(setup: Setup): string {
  const { site } = setup;
  const { files, dav } = bulkUpstreams(setup);
  const stack = new TerraformStack(Testing.app(), "stack");
  const served = {
    application: Application.fileSync({ installDirectory: site.install }),
    upstreams: {
      web: webUpstream(setup),
      fileServer: bulkUpstream(setup, files),
      webdav: bulkUpstream(setup, dav),
    },
  };
  const frontEnd = new FrontEnd(stack, "FrontEnd", {
    host: { address: HOST },
    mode: mode(setup),
    ...served,
    paths: { defaultPageDirectory: site.defaultPage, logDirectory: path.join(setup.folder, "logs") },
    proxy: {
      workers: setup.workers,
      timeouts: { keepAliveMs: setup.keepAliveSeconds * 1000 },
      limits: { keepAliveRequestsMax: setup.requestsPerConnection },
    },
  });
  for (let i = 0; i < (setup.extraRoutes ?? 0); i++) {
    frontEnd.site.virtualServer.addRoute(`extra-${i}`, {
      path: `/extra-${i}`,
      action: Action.proxy(frontEnd.site.upstreams.web),
    });
  }
  for (let i = 0; i < (setup.extraServers ?? 0); i++) {
    const listeners = [frontEnd.listeners.https ?? frontEnd.listeners.http!];
    const server = frontEnd.proxy.addVirtualServer(`extra-${i}`, {
      serverNames: [`extra-${i}.example`],
      listeners,
    });
    server.addRoute("all", { path: "/", action: Action.proxy(frontEnd.site.upstreams.web) });
  }
  for (const name of setup.furtherSites ?? []) {
    frontEnd.addSite(name.split(".")[0]!, { serverNames: [name], ...served });
  }
  const config = withStep(frontEnd.proxy.config, setup);
  // Only the address differs from what is deployed: a benchmark must not be reachable from outside.
  return proxyConfigText({ ...config, listeners: config.listeners.map((l) => ({ ...l, address: HOST })) });
}

function webUpstream(setup: Setup): Pick<UpstreamProps, "url" | "servers"> {
  const servers = applicationServers(setup).map((at) => ({ url: `http://${at}` }));
  return servers.length === 1 ? servers[0]! : { servers };
}

function bulkUpstream({ upstreamTls, site }: Setup, port: number): Pick<UpstreamProps, "url" | "tls"> {
  if (upstreamTls !== true) return { url: `http://127.0.0.1:${port}` };
  return { url: `https://127.0.0.1:${port}`, tls: { caFile: site.tls.certificate } };
}

function mode({ mode: name, port, redirectPort, site }: Setup): Mode {
  if (name === "plain") return Mode.plain({ httpPort: port, publicPort: 80 });
  return Mode.tls({
    httpPort: redirectPort,
    httpsPort: port,
    publicPort: 443,
    material: TlsMaterial.fromFiles(site.tls),
    policy: TlsPolicy.fileSync(),
  });
}
