import { App, TerraformStack } from "cdktf";
import {
  Action,
  Application,
  Delivery,
  FrontEndPair,
  Mode,
  type PairHostProps,
  type SshDeliveryOptions,
  TlsMaterial,
} from "../../../src/index.js";

/** What differs between the deployments of one test; passed as JSON in `PORTICO_TEST`. */
export interface PairApp {
  readonly hosts: readonly { readonly address: string; readonly ssh: SshDeliveryOptions }[];
  readonly virtualAddress: string;
  readonly without?: "first" | "second";
  readonly runtimeBundle: string;
  /** A private authority that issues the certificate; without one it is in files. */
  readonly acme?: { readonly directory: string; readonly roots: string };
}

const given = JSON.parse(process.env.PORTICO_TEST!) as PairApp;

const app = new App();
const stack = new TerraformStack(app, "portico");

/** Files, or an authority, so that no key is in Terraform's state. */
const material =
  given.acme === undefined
    ? TlsMaterial.fromFiles({ certificate: "/srv/tls/cert.pem", key: "/srv/tls/key.pem" })
    : TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true, ...given.acme });

const pair = new FrontEndPair(stack, "pair", {
  hosts: given.hosts.map(({ address, ssh }): PairHostProps => ({
    address,
    netmask: "255.255.255.0",
    interface: "eth0",
    delivery: Delivery.ssh(ssh),
  })),
  virtualAddress: given.virtualAddress,
  without: given.without,
  mode: Mode.tls({ material }),
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
  service: { runtimeBundle: given.runtimeBundle, nodePath: "/srv/sync/bin/node" },
  firewall: {},
  activation: {
    settings: {
      apply: true,
    },
    probe: { timeoutSeconds: 30 },
    requireCertificate: given.acme !== undefined,
  },
});

// Load over plain HTTP as well, which the front end itself only redirects.
for (const { proxy, listeners, site } of pair.frontEnds) {
  const server = proxy.addVirtualServer("load", {
    serverNames: ["load.example"],
    listeners: [listeners.http!],
  });
  for (const one of [server, site.virtualServer]) {
    one.addRoute("load", { path: "/load", match: "prefix", action: Action.proxy(site.upstreams.fileServer) });
  }
}

app.synth();
