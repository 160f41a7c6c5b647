import { App, TerraformOutput, TerraformStack } from "cdktf";
import {
  Action,
  Application,
  Delivery,
  FrontEnd,
  Mode,
  NodeRuntime,
  type SshDeliveryOptions,
  TlsMaterial,
} from "../../../src/index.js";

/** What differs between the deployments of one test; passed as JSON in `PORTICO_TEST`. */
export interface DeployedApp {
  readonly address: string;
  readonly ipv6Address: string;
  readonly ssh: SshDeliveryOptions;
  readonly runtimeBundle: string;
  readonly nodeCache: string;
  /** A Node binary, instead of the pinned one. */
  readonly nodeFile?: string;
  /** Id of the front end. */
  readonly construct?: string;
  /** Adds a route `/health`. */
  readonly health?: boolean;
  /** A port that nothing listens on for the web application: valid, and wrong. */
  readonly brokenUpstream?: boolean;
  readonly probeSeconds?: number;
  /** Certificates by ACME, from a private authority. */
  readonly acme?: {
    readonly directory: string;
    readonly roots: string;
    /** Virtual servers, each with a certificate of its own. */
    readonly names: readonly string[];
    readonly requireCertificate?: boolean;
  };
}

/** Proves wildcards. */
const DNS_PROGRAM = { command: "/usr/local/bin/dns-record", credentialFile: "/etc/dns-token" };

const given = JSON.parse(process.env.PORTICO_TEST!) as DeployedApp;

const app = new App();
const stack = new TerraformStack(app, "portico");

const byAcme = ({ directory, roots }: Required<DeployedApp>["acme"], name = ""): TlsMaterial =>
  TlsMaterial.acme({
    ...{ email: "admin@example.org", agreeToTerms: true, directory, roots },
    ...(name.startsWith("*.") ? { dns: { type: "program", ...DNS_PROGRAM } } : {}),
  });

const files = new FrontEnd(stack, given.construct ?? "files", {
  host: {
    address: given.address,
    ipv6Address: given.ipv6Address,
    delivery: Delivery.ssh(given.ssh),
  },
  mode: Mode.tls(given.acme === undefined ? {} : { material: byAcme(given.acme) }),
  application: Application.fileSync({
    installDirectory: "/srv/sync",
    units: {
      webApplication: "sync-web.service",
      fileServer: "sync-files.service",
      webdav: "sync-webdav.service",
    },
    settings: {
      files: {
        networkDaemon: "/srv/sync/conf/network.conf",
        webApplication: "/srv/sync/conf/web_settings.py",
        fileServer: "/srv/sync/conf/fileserver.conf",
      },
    },
  }),
  service: {
    runtimeBundle: given.runtimeBundle,
    nodeRuntime:
      given.nodeFile === undefined
        ? NodeRuntime.pinned({
            platform: process.arch === "arm64" ? "linux-arm64" : "linux-x64",
            cacheDirectory: given.nodeCache,
          })
        : NodeRuntime.fromFile(given.nodeFile),
  },
  upstreams: given.brokenUpstream === true ? { web: { url: "http://127.0.0.1:8999" } } : {},
  firewall: {},
  activation: {
    settings: {
      apply: true,
    },
    probe: { timeoutSeconds: given.probeSeconds ?? 30 },
    requireCertificate: given.acme?.requireCertificate,
  },
});

// Load over plain HTTP as well, which the front end itself only redirects.
const load = files.proxy.addVirtualServer("load", {
  serverNames: ["load.example"],
  listeners: [files.listeners.http!, files.listeners.http6!],
});
load.addRoute("load", {
  path: "/load",
  match: "prefix",
  action: Action.proxy(files.site.upstreams.fileServer),
});
files.site.virtualServer.addRoute("load", {
  path: "/load",
  match: "prefix",
  action: Action.proxy(files.site.upstreams.fileServer),
});
if (given.health === true) {
  files.site.virtualServer.addRoute("health", {
    path: "/health",
    match: "exact",
    action: Action.respond(200, { body: "ok\n" }),
  });
}
for (const name of given.acme?.names ?? []) {
  const server = files.proxy.addVirtualServer(name.replace("*.", "").split(".")[0]!, {
    serverNames: [name],
    listeners: [files.httpsListener, files.listeners.https6!],
    tls: byAcme(given.acme!, name),
  });
  server.addRoute("name", { path: "/", match: "prefix", action: Action.respond(200, { body: `${name}\n` }) });
}

new TerraformOutput(stack, "url", { value: files.site.url });
app.synth();
