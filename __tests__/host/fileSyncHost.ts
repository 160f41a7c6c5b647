import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalProvider } from "@cdktf/provider-local/lib/provider";
import { TlsProvider } from "@cdktf/provider-tls/lib/provider";
import { App, TerraformStack } from "cdktf";
import { buildBundle } from "../../build/bundle.js";
import { layOut } from "../../demo/layOut.js";
import { Delivery, FileSyncFrontEnd, Mode } from "../../src/constructs/index.js";
import type { DeploymentInput } from "../../src/model/index.js";
import { bootHost, type TestHost } from "./harness/index.js";

const INSTALLED = "/srv/sync";

/** The application's daemons: small programs that answer as the real ones do (spec 4.3). */
const DAEMONS = `import { createServer } from "node:http";
const [, , variant, role, address, port] = process.argv;
const answers = {
  web: (request, response) => {
    const scheme = request.headers["x-forwarded-proto"] ?? "http";
    const host = process.env.WRONG_HOST ?? request.headers.host;
    const location = scheme + "://" + host + "/sync/accounts/login/?next=" + request.url;
    response.writeHead(302, { Location: location, "Content-Type": "text/html; charset=utf-8",
      Vary: "Accept-Language, Cookie", "Content-Language": "en" }).end();
  },
  fileServer: (_request, response) => response.end("file server"),
  webdav: (_request, response) => response.writeHead(401).end(),
};
const server = createServer(answers[role]);
// FastCGI is another protocol than HTTP: what comes is not understood.
if (variant === "start-fastcgi") server.removeAllListeners("connection").on("connection", (s) => s.on("data", () => s.destroy()));
server.listen(Number(port), address);
`;

const UNITS = { web: 8000, fileServer: 8082, webdav: 8080 } as const;
export type DaemonRole = keyof typeof UNITS;

/** A host with the whole front end in TLS mode, the application's daemons, its settings and its media. */
export class FileSyncHost {
  private constructor(
    readonly host: TestHost,
    private readonly folder: string,
  ) {}

  static async boot(name: string): Promise<FileSyncHost> {
    const folder = mkdtempSync(join(tmpdir(), "portico-file-sync-"));
    const one = new FileSyncHost(await bootHost({ name }), folder);
    try {
      await one.deploy();
    } catch (error) {
      await one.remove();
      throw error;
    }
    return one;
  }

  async remove(): Promise<void> {
    await this.host.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Copies, on this machine, of what a person would take along to look from elsewhere. */
  async copyDocuments(): Promise<{ runtime: string; config: string; deployment: string }> {
    const copy = async (from: string, name: string): Promise<string> => {
      const to = join(this.folder, name);
      writeFileSync(to, await this.host.must(`cat ${from}`));
      return to;
    };
    return {
      runtime: join(this.folder, "portico.mjs"),
      config: await copy("/etc/portico/portico.json", "portico.json"),
      deployment: await copy("/etc/portico/deployment.json", "deployment.json"),
    };
  }

  /** What the constructs deploy, laid out as an activation leaves it. */
  private async deploy(): Promise<void> {
    const { host, folder } = this;
    const root = join(folder, "root");
    const { file: runtimeBundle } = await buildBundle(join(folder, "portico.mjs"));
    const app = new App({ outdir: join(folder, "out") });
    const stack = new TerraformStack(app, "stack");
    new LocalProvider(stack, "local");
    new TlsProvider(stack, "tls");
    const frontEnd = new FileSyncFrontEnd(stack, "FrontEnd", {
      host: { address: host.address, ipv6Address: host.address6, delivery: Delivery.local({ root }) },
      mode: Mode.tls(),
      installDirectory: INSTALLED,
      service: { nodePath: "/usr/lib/portico/node", runtimeBundle },
    });
    app.synth();
    const files = await layOut(join(folder, "out/stacks/stack/cdk.tf.json"), root);
    execFileSync("chown", ["-R", "0:0", root]);
    await host.must("tar -C / -xf -", {
      input: execFileSync("tar", ["-C", root, "-cf", "-", "."], { maxBuffer: 1 << 28 }),
    });
    await host.copyIn(process.execPath, "/usr/lib/portico/node", "0755");
    await this.addApplication();
    const paths = files.map((file) => file.path.slice(root.length)).sort();
    await host.write("/etc/portico/deployment.json", JSON.stringify(this.deployment(paths, frontEnd)));
    await host.must("systemctl daemon-reload && systemctl enable --now portico.socket portico.service 2>&1");
  }

  private deployment(paths: readonly string[], { settings }: FileSyncFrontEnd): DeploymentInput {
    const unit = (role: DaemonRole): string => `sync-${role}.service`;
    return {
      version: 1,
      config: "/etc/portico/portico.json",
      files: paths.map((path) => ({
        path,
        mode: "0644",
        sha256: "0".repeat(64),
        role: path.endsWith("/portico.json") ? "config" : "other",
      })),
      services: {
        proxy: { service: "portico.service", socket: "portico.socket" },
        webApplication: unit("web"),
        fileServer: unit("fileServer"),
        webdav: unit("webdav"),
      },
      settings: { values: settings.values as never, files: SETTINGS },
      media: { directory: `${INSTALLED}/media` },
      network: { loopbackPorts: [3306, 8000, 8080, 8082], exposedPorts: [80, 443] },
    };
  }

  private async addApplication(): Promise<void> {
    const { host } = this;
    await host.write("/opt/daemons.mjs", DAEMONS);
    for (const [role, port] of Object.entries(UNITS)) {
      const command = `/usr/lib/portico/node /opt/daemons.mjs start ${role} 127.0.0.1 ${port}`;
      await host.write(
        `/etc/systemd/system/sync-${role}.service`,
        `[Service]\nExecStart=${command}\n[Install]\nWantedBy=multi-user.target\n`,
      );
    }
    const units = Object.keys(UNITS)
      .map((role) => `sync-${role}`)
      .join(" ");
    await host.must(`systemctl daemon-reload && systemctl enable --now ${units} 2>&1`);
    for (const path of ["icons/logo.png", "avatars/default.png"]) {
      await host.write(`${INSTALLED}/media/${path}`, "\x89PNG");
    }
    // As the deployment wants them.
    const rendered = "/usr/share/portico/application-settings";
    await host.must(
      `mkdir -p /srv/sync/conf && cp ${rendered}/network-daemon.conf ${SETTINGS.networkDaemon} && cp ${rendered}/file-server.conf ${SETTINGS.fileServer}`,
    );
    const items = readFileSync(join(this.folder, "root", rendered, "web-application-settings.py"), "utf8");
    await host.write(SETTINGS.webApplication, `SECRET_KEY = "not to be shown"\n${items}DATABASES = {}\n`);
  }
}

const SETTINGS = {
  networkDaemon: "/srv/sync/conf/network.conf",
  webApplication: "/srv/sync/conf/settings.py",
  fileServer: "/srv/sync/conf/fileserver.conf",
};
