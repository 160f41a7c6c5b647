import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, TerraformStack } from "cdktf";
import { layOut } from "../../demo/layOut.js";
import { Application, Delivery, FrontEnd, Mode } from "../../src/constructs/index.js";
import { type DeploymentInput, INCOMING_DIRECTORY } from "../../src/model/index.js";
import { copyOfBundle } from "../../testkit/sharedBundle.js";
import { bootHost, type TestHost } from "./harness/index.js";

const INSTALLED = "/srv/sync";

/** The application's daemons: small programs that respond as the real ones do (service 5.1). */
const DAEMONS = `import { createServer } from "node:http";
const [, , variant, role, address, port] = process.argv;
const responses = {
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
const server = createServer(responses[role]);
// FastCGI is another protocol than HTTP: what comes is not understood.
if (variant === "start-fastcgi") server.removeAllListeners("connection").on("connection", (s) => s.on("data", () => s.destroy()));
server.listen(Number(port), address);
`;

export const NODE = "/usr/lib/portico/node";
const RUNTIME = "/usr/lib/portico/portico.mjs";
/** The command on the host. */
export const PORTICO = `${NODE} ${RUNTIME}`;

const UNITS = { web: 8000, fileServer: 8082, webdav: 8080 } as const;

const units = () => ({
  webApplication: "sync-web.service",
  fileServer: "sync-fileServer.service",
  webdav: "sync-webdav.service",
});

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

  /** What the constructs deploy, activated as a delivery over ssh does it. */
  private async deploy(): Promise<void> {
    const { host, folder } = this;
    const root = join(folder, "root");
    const runtimeBundle = await copyOfBundle(join(folder, "portico.mjs"));
    const app = new App({ outdir: join(folder, "out") });
    const stack = new TerraformStack(app, "stack");
    const frontEnd = new FrontEnd(stack, "FrontEnd", {
      host: { address: host.address, ipv6Address: host.address6, delivery: Delivery.local({ root }) },
      mode: Mode.tls(),
      application: Application.fileSync({
        installDirectory: INSTALLED,
        units: units(),
        settings: { files: SETTINGS },
      }),
      service: { nodePath: NODE, runtimeBundle },
      // Each worker takes as long to start as the rest of the proxy; other suites have several.
      proxy: { workers: 1 },
      firewall: {},
      activation: {
        settings: { apply: true },
        probe: { timeoutSeconds: 8 },
        doctor: { onFailure: "alert@portico-doctor.service" },
      },
    });
    app.synth();
    const stackFile = join(folder, "out/stacks/stack/cdk.tf.json");
    const resources = JSON.parse(readFileSync(stackFile, "utf8")) as {
      resource: Record<string, Record<string, unknown>>;
    };
    // It takes Terraform to know the hashes in the document; it is written below.
    const [document] = Object.keys(resources.resource["local_file"]!).filter((id) => /Document/.test(id));
    delete resources.resource["local_file"]![document!];
    writeFileSync(stackFile, JSON.stringify(resources));
    await layOut(stackFile, root);
    await host.copyIn(process.execPath, NODE, "0755");
    await host.copyIn(runtimeBundle, RUNTIME, "0755");
    await this.addApplication();
    const { files, deployment } = frontEnd.activation!;
    const contents = new Map(files.map(({ path }) => [path, readFileSync(join(root, path))]));
    const hash = (path: string): string => createHash("sha256").update(contents.get(path)!).digest("hex");
    const delivered: DeploymentInput = {
      ...deployment,
      files: files.map(({ path, mode, role }) => ({ path, mode, role, sha256: hash(path) })),
    };
    mkdirSync(join(host.root, INCOMING_DIRECTORY), { recursive: true, mode: 0o700 });
    this.contents = new Map(files.map(({ path }) => [hash(path), contents.get(path)!]));
    await this.deliver(delivered);
    await host.must(`${PORTICO} activate --incoming ${INCOMING_DIRECTORY}`, { timeoutSeconds: 120 });
    await host.must(`cp ${NODE} /root/node && cp ${RUNTIME} /root/portico.mjs`);
  }

  /** Uploads a deployment, whole. */
  async deliver(document?: DeploymentInput): Promise<void> {
    const incoming = join(this.host.root, INCOMING_DIRECTORY);
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    if (document !== undefined) this.document = JSON.stringify(document, undefined, 1);
    for (const [sha256, content] of this.contents) writeFileSync(join(incoming, sha256), content);
    writeFileSync(join(incoming, "deployment.json"), this.document);
  }

  /** Deploys after a destroy, which takes the programs along. */
  async activateAnew(): Promise<void> {
    await this.deliver();
    await this.host.must(`/root/node /root/portico.mjs activate --incoming ${INCOMING_DIRECTORY}`, {
      timeoutSeconds: 120,
    });
  }

  private contents: ReadonlyMap<string, Buffer> = new Map();
  private document = "";

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
    await host.write(
      "/etc/systemd/system/alert@.service",
      "[Service]\nType=oneshot\nExecStart=/bin/touch /run/alert-of-%i\n",
    );
    const names = Object.values(units()).join(" ");
    await host.must(`systemctl daemon-reload && systemctl enable --now ${names} 2>&1`);
    for (const path of ["icons/logo.png", "avatars/default.png"]) {
      await host.write(`${INSTALLED}/media/${path}`, "\x89PNG");
    }
    await host.write(SETTINGS.networkDaemon, "[General]\nID = 1\n");
    await host.write(SETTINGS.fileServer, "[fileserver]\nport = 8082\n");
    await host.write(SETTINGS.webApplication, 'SECRET_KEY = "not to be shown"\nDATABASES = {}\n');
  }
}

const SETTINGS = {
  networkDaemon: "/srv/sync/conf/network.conf",
  webApplication: "/srv/sync/conf/settings.py",
  fileServer: "/srv/sync/conf/fileserver.conf",
};
