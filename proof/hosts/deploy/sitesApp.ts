import { App, TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode, NodeRuntime, TlsMaterial } from "../../../src/index.js";
import type { DeployedApp } from "./app.js";

/** Three sites of different kinds behind one front end; what differs between deployments, as JSON in `PORTICO_TEST`. */
export interface SitesApp extends DeployedApp {
  readonly without?: "files";
  /** A setting that only the web application of the site `files` reads. */
  readonly settingsViaWeb?: boolean;
  /** A limit of one route of the site `files`. */
  readonly bodyBytesMax?: number;
  /** A server that is not the one of the site. */
  readonly wrongServer?: { readonly site: "files" | "wiki"; readonly url: string };
}

const given = JSON.parse(process.env.PORTICO_TEST!) as SitesApp;

const app = new App();
const stack = new TerraformStack(app, "portico");
const { directory, roots } = given.acme!;

const front = new FrontEnd(stack, "home", {
  host: {
    address: given.address,
    ipv6Address: given.ipv6Address,
    delivery: Delivery.ssh(given.ssh),
  },
  mode: Mode.tls({
    material: TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true, directory, roots }),
  }),
  service: {
    runtimeBundle: given.runtimeBundle,
    nodeRuntime: NodeRuntime.pinned({
      platform: process.arch === "arm64" ? "linux-arm64" : "linux-x64",
      cacheDirectory: given.nodeCache,
    }),
  },
  firewall: {},
  activation: {
    settings: { apply: true },
    probe: { timeoutSeconds: given.probeSeconds ?? 30 },
    requireCertificate: true,
  },
});

const wrongServer = (site: string): string | undefined =>
  given.wrongServer?.site === site ? given.wrongServer.url : undefined;

front.addSite("wiki", {
  serverNames: ["wiki.example.net"],
  application: Application.server(wrongServer("wiki") ?? "http://127.0.0.1:3000"),
});

front.addSite("pages", {
  serverNames: ["pages.example.net"],
  application: Application.staticFiles("/srv/pages", { index: ["index.html"] }),
});

if (given.without !== "files") {
  const files = front.addSite("files", {
    serverNames: ["files.example.net"],
    application: Application.fileSync({
      installDirectory: "/srv/sync",
      fixMedia: true,
      units: {
        webApplication: "sync-web.service",
        fileServer: "sync-files.service",
        webdav: "sync-webdav.service",
      },
      settings: {
        enableSettingsViaWeb: given.settingsViaWeb,
        files: {
          networkDaemon: "/srv/sync/conf/network.conf",
          webApplication: "/srv/sync/conf/web_settings.py",
          fileServer: "/srv/sync/conf/fileserver.conf",
        },
      },
    }),
    upstreams: { web: { url: wrongServer("files") ?? "http://127.0.0.1:8000" } },
  });
  if (given.bodyBytesMax !== undefined)
    files.routes.web.configure({ requestBodyBytesMax: given.bodyBytesMax });
}

app.synth();
