import { App, TerraformStack } from "cdktf";
import {
  Application,
  Delivery,
  FrontEnd,
  HostFile,
  Mode,
  NodeRuntime,
  SystemdUnit,
  TlsMaterial,
  type UnitDocument,
} from "../../../src/index.js";
import type { DeployedApp } from "./app.js";

/** Three sites of different kinds behind one front end; what differs between deployments, as JSON in `PORTICO_TEST`. */
export interface SitesApp extends DeployedApp {
  readonly without?: "files";
  /** A site that brings its daemon, and all that it needs. */
  readonly vault?: boolean;
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

if (given.vault === true) {
  const unit = (id: string, name: string, document: UnitDocument): unknown =>
    new SystemdUnit(stack, id, { host: front.host, name, unit: document });
  unit("Vault", "vault.service", {
    Service: {
      ExecStart: { command: ["/srv/sync/bin/interpreter", "/srv/vault/vault.cjs"] },
      LoadCredential: "token:/etc/vault/token",
      EnvironmentFile: "/srv/vault/vault.env",
      RuntimeDirectory: "vault",
      Restart: "always",
    },
    Install: { WantedBy: "multi-user.target" },
  });
  unit("VaultLimits", "vault.service.d/limits.conf", { Service: { LimitNOFILE: 4096 } });
  // Fails again and again, and waits in between.
  unit("VaultIndex", "vault-index.service", {
    Unit: { StartLimitIntervalSec: 0 },
    Service: { Type: "exec", ExecStart: { command: ["/bin/false"] }, Restart: "always", RestartSec: 1 },
  });
  unit("VaultSweep", "vault-sweep.service", {
    Service: { Type: "oneshot", ExecStart: { command: ["/bin/true"] } },
  });
  unit("VaultTimer", "vault-sweep.timer", {
    Timer: { OnCalendar: "hourly" },
    Install: { WantedBy: "timers.target" },
  });
  const [token, mode] = ["a token of the vault\n", "0600"] as const;
  new HostFile(stack, "VaultToken", {
    ...{ host: front.host, path: "/etc/vault/token", content: token, mode, sensitive: true },
  });
  front.addSite("vault", {
    serverNames: ["vault.example.net"],
    tls: TlsMaterial.selfSigned(),
    application: Application.custom({
      ...{ name: "vault", title: "The vault", main: "web" },
      parts: { web: { title: "vault", url: "http://127.0.0.1:3001" } },
      routes: () => ({ web: { path: "/", action: { type: "proxy", upstream: "web" } } }),
      daemons: [{ unit: "vault.service", restartOn: ["vault"] }],
      settings: ({ origin }) => [
        {
          ...{ name: "vault", path: "/srv/vault/vault.env", kind: "env" },
          items: [{ name: "DOMAIN", value: origin }],
        },
      ],
    }),
  });
}

app.synth();
